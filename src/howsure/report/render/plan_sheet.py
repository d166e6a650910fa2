"""A plan (`howsure threshold --json`) in words."""

from __future__ import annotations

from howsure.policies.deployment import (
    AllData,
    DeferralData,
    ExpectedData,
    PlanData,
    ShareData,
    TrialData,
)
from howsure.report.render.sentences import NONE, format_percent
from howsure.report.render.text_tables import Sheet, TableRows, TextTable

DEFERRAL_ROWS = 12  # of a long deferral table


def build_plan_sheet(plan: PlanData) -> Sheet:
    """Everything that is printed of a plan."""
    tables = [_build_thresholds_table(plan)]
    tables += [_build_deferral_table(what, rows) for what, rows in plan["deferral"].items()]
    return Sheet(
        headline=_write_headline(plan),
        sentences=_write_sentences(plan),
        tables=[table for table in tables if table.rows],
    )


def _write_headline(plan: PlanData) -> str:
    threshold, score = plan["threshold"], plan["score"]
    if plan["by"] == "label" and plan["feasible"]:
        return f"Accept a label where its {score} reaches its own threshold, defer the rest."
    if threshold is None:
        return "Nothing can be accepted: defer everything."
    if plan["by"] == "image":
        score = next(iter(plan["thresholds"]))
        return (
            f"Accept images whose {score} is at least {threshold:.6g}, send the others to a reader."
        )
    return f"Accept where {score} >= {threshold:.6g}, defer the rest."


def _write_sentences(plan: PlanData) -> list[str]:
    """What is promised, what the data show, what to expect, and what a test set said."""
    lines: list[str] = []
    promise, n = plan.get("promise"), "these"
    if promise:
        lines.append(f"rule       {promise['rule']}")
    if "n" in plan:
        n = f"{plan['n']:,}"
        coverage = format_percent(plan.get("coverage"), 2)
        accuracy = format_percent(plan.get("accuracy"), 2)
        lines.append(f"data       coverage {coverage}, accuracy {accuracy} of {n} samples")
    if "questions" in plan:
        lines.append(_write_questions(plan["questions"]))
    if promise and promise["delta"] is not None:
        if promise["bound"] is not None:
            bound, sure = (
                format_percent(promise["bound"], 2),
                format_percent(1 - promise["delta"], 2),
            )
            lines.append(f"bound      risk below {bound} with probability {sure}")
        if not promise["feasible"]:
            needed = promise["labels_needed"]
            help_ = "more labels alone would not help"
            if needed is not None:
                help_ = f"about {needed:,} labels like these would do"
            lines.append(f"infeasible {n} labels do not allow this promise; {help_}")
    if plan["expected"]:
        lines.append(f"expected   {_write_shares(plan['expected'])}")
    if plan["test"]:
        lines.append(f"test       {_write_shares(plan['test'])}{_judge_trial(plan['test'])}")
    return lines


def _write_questions(questions: AllData) -> str:
    """Questions of a language model, those without a usable answer counted by reason."""
    reasons: list[str] = []
    for count, word in (
        (questions["unparseable"], "unparseable"),
        (questions["refused"], "refused"),
        (questions["missing"], "missing"),
        (questions["unstated"], "without confidence"),
    ):
        if count:
            reasons.append(f"{count:,} {word}")
    answered = f"{format_percent(questions['answered'], 2)} answered ({', '.join(reasons)})"
    alone = format_percent(questions["coverage"], 2)
    return f"questions  {answered}; alone on {alone} of all {questions['asked']:,} questions"


def _write_shares(result: ExpectedData | TrialData) -> str:
    coverage, accuracy = _format_share(result["coverage"]), _format_share(result["accuracy"])
    return f"coverage {coverage}, accuracy {accuracy}"


def _judge_trial(trial: TrialData) -> str:
    """Whether the test set keeps the promise; nothing where it cannot tell."""
    promised = format_percent(trial["risk_promised"], 2)
    if trial["compatible"] is None:
        return ""
    if trial["observed_below"]:
        return f"; promise of risk {promised} kept"
    if trial["compatible"]:
        return f"; risk above {promised}, within chance"
    return f"; risk above {promised}: BROKEN"


def _build_thresholds_table(plan: PlanData) -> TextTable:
    """Thresholds of classes or groups of their own."""
    by, rows = plan["by"] or "", TableRows()
    if by != "image":  # there the one threshold stands in the headline
        for key, threshold in plan["thresholds"].items():
            rows.append([key, "defer all" if threshold is None else f"{threshold:.6g}"])
    rest = "" if plan["threshold"] is None else " (others take the common one)"
    return TextTable(title=f"Thresholds by {by}{rest}", head=[by, "threshold"], rows=rows)


def _build_deferral_table(what: str, rows: list[DeferralData]) -> TextTable:
    cells = TableRows()
    for row in rows[:DEFERRAL_ROWS]:
        shares = (row["deferred"], row["accuracy_accepted"], row["accuracy_deferred"])
        cells.append([row["name"], f"{row['n']:,}", *map(_format_share, shares)])
    some = ""
    if len(rows) > DEFERRAL_ROWS:  # the first row is that of all samples
        some = f" (the {DEFERRAL_ROWS - 1} most deferred of {len(rows) - 1})"
    head = [what, "n", "deferred", "accuracy accepted", "accuracy deferred"]
    return TextTable(title=f"What would be deferred, by {what}{some}", head=head, rows=cells)


def _format_share(share: ShareData) -> str:
    if share["value"] is None:
        return NONE
    value, low, high = (format_percent(share[key], 2) for key in ("value", "low", "high"))
    return f"{value} ({low}–{high})"
