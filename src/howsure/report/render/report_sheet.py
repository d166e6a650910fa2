"""What is printed of a report (verdict, findings, numbers, what to do next) and of a plan for
acting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote
from typing import NamedTuple

from howsure._core.text import format_rounded_up
from howsure.policies.deployment import (
    ExpectedData,
    PlanData,
    SegmentData,
    ShareData,
    TrialData,
)
from howsure.predictions.read_options import CELLS_NOTE
from howsure.report.catalogue import TERMINAL_NUMBERS
from howsure.report.render.sections import (
    build_bands_table,
    build_calibrators_table,
    build_calls_table,
    build_candidates_table,
    build_changes_table,
    build_classes_table,
    build_confusion_matrix,
    build_confusions_table,
    build_metrics_table,
    build_positive_class_table,
    build_positive_slices_table,
    build_scores_table,
    build_slices_table,
)
from howsure.report.render.sentences import (
    NONE,
    build_headline,
    explain_limits,
    find_shared_notes,
    format_percent,
    group_by_question,
)
from howsure.report.render.text_tables import (
    Sheet,
    TableRows,
    TextTable,
    build_image_tables,
    build_label_tables,
)
from howsure.report.report_types import CalibrationData, ReportData

MISCALIBRATION_FINDINGS = {
    "over_confident_above_0.9",
    "over_confident",
    "under_confident",
    "hidden_error",
    "internal_compensation",
}
GOOD_COVERAGE = 0.3  # the share of answers that makes a threshold worth its risk
PAGE_PURPOSE = "the page: drag the threshold, price errors, download the policy"

DEFERRAL_ROWS = 12  # of a long deferral table
SENT_QUESTIONS = 12


def build_report_sheet(report: ReportData, *, full: bool = False, page: bool = False) -> Sheet:
    """Verdict, findings, numbers and next steps of a report.

    `full`: all numbers and tables, else the dozen that matter; `page`: the page is written already.
    """
    metrics, confusion = report["metrics"], report["views"].get("confusion")
    groups = group_by_question(metrics)
    if not full:
        names = TERMINAL_NUMBERS
        if report["samples"] > 1:  # entropies of samples are what UCE is about
            names = (*names, "uce")
        main = {name: entry for name, entry in metrics.items() if name in names}
        groups = [("The numbers that matter", main)]
    shared = find_shared_notes(metrics)
    numbers = [build_metrics_table(question, some, shared) for question, some in groups]
    if numbers:  # what holds for all limits stands once, below the last of them
        numbers[-1] = replace(numbers[-1], note=explain_limits(metrics))
    positive = [build_positive_class_table(report["binary"]), build_calls_table(report["binary"])]
    # Of two classes what matters is the one that is looked for; of images and labels each of them.
    first = [*build_image_tables(report), *build_label_tables(report)]
    if report["k"] == 2 and not first:
        first, positive = [*first, *positive], []
    tables: list[TextTable | None] = [
        build_changes_table(report["calibration"]),
        *first,
        *numbers,
        *positive,
        build_slices_table(report.get("slices")),
        build_positive_slices_table(report.get("slices"), report["binary"]),
    ]
    if full:
        tables += [
            build_scores_table(report),
            build_bands_table(report),
            build_classes_table(report["views"]["classes"]),
            build_confusion_matrix(confusion),
            build_confusions_table(confusion),
        ]
    return Sheet(
        headline=build_headline(report),
        sentences=["", *report["verdict"]],
        tables=[table for table in tables if table is not None],
        remarks=[finding["text"] for finding in report["findings"]],
        steps=suggest_steps(report, page=page, full=full),
    )


def build_calibration_sheet(data: CalibrationData) -> Sheet:
    """What `howsure calibrate` prints: the change first, then how it was chosen and what each would
    have done.
    """
    tables = [
        build_changes_table(data),
        build_candidates_table(data),
        build_calibrators_table(data),
    ]
    headline = f"{data['method']}, fitted on {data['n_fit']:,} and judged on {data['n_test']:,} predictions"
    if "groups" in data:
        headline += f" in {data['groups']:,} groups"
    return Sheet(
        headline=headline,
        sentences=["", *data.get("lead", [])],
        tables=[table for table in tables if table is not None],
        remarks=[*(finding["text"] for finding in data["findings"]), *data["notes"]],
    )


class NextStep(NamedTuple):
    """A line to copy, and what it is good for."""

    run: str
    why: str


def suggest_steps(report: ReportData, *, page: bool = False, full: bool = False) -> list[NextStep]:
    """What to do next, what helps most first; `page` and `full`: these are there already.

    Commands with the user's own files; lines of Python where the data came as arrays.

    >>> from howsure import Predictions, evaluate
    >>> steps = suggest_steps(evaluate(Predictions.from_confidence([0.9, 0.8], [1, 0])).data)
    >>> steps[-1].run
    "report.to_html('report.html')"
    """
    origin = report["provenance"]
    reading, command = origin.get("reading"), origin.get("command")
    steps: list[NextStep] = []
    if reading is None:  # arrays, or a query, which no other command takes
        every, to_page = "print(report.to_text(full=True))", "report.to_html('report.html')"
        if command is not None:
            every, to_page = f"{command} --full", f"{command} --html report.html"
        if not full:
            steps.append(NextStep(run=every, why="all numbers"))
        if not page:
            steps.append(NextStep(run=to_page, why=PAGE_PURPOSE))
        return steps
    # Cells of several scores tell no single answer, which other commands need.
    has_scores = CELLS_NOTE not in origin.get("receipt", {}).get("notes", ())
    # A guarantee that was not looked for, as with weights, is refused by the other command too.
    refused = any(guarantee.get("why") for guarantee in report.get("guarantees", []))
    findings = {finding["name"] for finding in report["findings"]}
    ranks, calibrated = "does_not_rank" not in findings, report["calibration"] is not None
    calibrator = ""
    if calibrated:
        file = report["provenance"].get("calibrator", "calibrator.json")
        calibrator = f" --calibrator {quote(file)}"
        if "fitting" in report["provenance"]:
            command = f"howsure calibrate {report['provenance']['fitting']} -o {quote(file)}"
            steps.append(NextStep(run=command, why="write the calibrator, for the next commands"))
    if not ranks and report["scores"]:
        others = " ".join(f"--score {name}" for name in (report["score"], *report["scores"]))
        command = f"howsure compare {reading} {others}"
        steps.append(NextStep(run=command, why="whether another score ranks better"))
    if findings & MISCALIBRATION_FINDINGS and has_scores and not calibrated:
        command = f"howsure calibrate --fit VAL --on {reading} -o calibrator.json"
        why = "make the confidence honest; VAL: labelled data that trained nothing"
        if "fitting" in origin:
            command = f"howsure calibrate {origin['fitting']} -o calibrator.json"
            why = "make the confidence honest: fitted on the split val, judged on test"
        steps.append(NextStep(run=command, why=why))
    evaluate = f"howsure evaluate {reading}"
    if "images" in report:
        evaluate += " --loss dice"
        guarantees = report["images"]["guarantees"]
        # The strictest mean 1 − Dice that can be promised, else the widest that was tried.
        possible = [g for g in guarantees if g["threshold"] is not None] or guarantees[-1:]
        options = f"--loss dice --risk {possible[0]['risk']:g} --bound betting"
        command = f"howsure threshold {reading} {options} -o policy.json"
        steps.append(NextStep(run=command, why="which images need no reader"))
    elif ranks and has_scores and not refused:
        # The lowest risk that the data allow for a good share of answers. A promise needs some
        # distance to what the data show, so 0.01 on the data allows 0.02.
        risk = "0.1"
        for observed, guaranteed in (("0.05", "0.05"), ("0.01", "0.02")):
            kept = report["metrics"].get(f"coverage_at_risk_{observed}")
            if kept is not None and (kept["value"] or 0) > GOOD_COVERAGE:
                risk = guaranteed
        command = f"howsure threshold {reading} --risk {risk}{calibrator} -o policy.json"
        why = "what may be automated, with a guarantee; set the risk that you can accept"
        steps.append(NextStep(run=command, why=why))
    evaluate += calibrator
    if not full:
        why = f"all {len(report['metrics'])} numbers"
        steps.append(NextStep(run=f"{evaluate} --full", why=why))
    if not page:
        steps.append(NextStep(run=f"{evaluate} --html report.html", why=PAGE_PURPOSE))
    return steps


def build_plan_sheet(plan: PlanData) -> Sheet:
    """Everything that is printed of a plan."""
    # Thresholds of classes or groups of their own; that of images stands in the headline.
    by, thresholds = plan["by"] or "", TableRows()
    if by != "image":
        for key, threshold in plan["thresholds"].items():
            thresholds.append([key, "defer all" if threshold is None else f"{threshold:.6g}"])
    rest = " (others are deferred)"
    if plan["threshold"] is not None:
        rest = " (others take the common one)"
    head = [by, "threshold"]
    if "segments" in plan:
        thresholds, head = list_segments(plan["segments"]), [by, "threshold", "guarantee"]
    tables = [TextTable(title=f"Thresholds by {by}{rest}", head=head, rows=thresholds)]
    for what, deferrals in plan["deferral"].items():
        rows = TableRows()
        for row in deferrals[:DEFERRAL_ROWS]:
            shares = (row["deferred"], row["accuracy_accepted"], row["accuracy_deferred"])
            rows.append([row["name"], f"{row['n']:,}", *map(_format_share, shares)])
        title = f"What would be deferred, by {what}"
        if len(deferrals) > DEFERRAL_ROWS:  # the first row is that of all samples
            title += f" (the {DEFERRAL_ROWS - 1} most deferred of {len(deferrals) - 1})"
        head = [what, "n", "deferred", "accuracy accepted", "accuracy deferred"]
        tables.append(TextTable(title=title, head=head, rows=rows))
    return Sheet(
        headline=_write_headline(plan),
        sentences=_write_sentences(plan),
        tables=[table for table in tables if table.rows],
    )


def list_segments(segments: Sequence[SegmentData]) -> TableRows:
    """The threshold of each segment, and its bound or what keeps it from having one."""
    rows = TableRows()
    for segment in segments:
        guarantee = segment["guarantee"]
        said = guarantee["why"]
        if guarantee["bound"] is not None:
            said = f"risk below {format_percent(guarantee['bound'], 2)}"
        elif guarantee["labels_needed"] is not None:
            unit = "labels" if guarantee["groups"] is None else "groups"
            said = f"about {format_rounded_up(guarantee['labels_needed'])} {unit} would usually be enough"
        elif not guarantee["feasible"] and not said:
            said = "these labels do not show it"
        threshold = "defer all"
        if segment["threshold"] is not None:
            threshold = f"{segment['threshold']:.6g}"
        rows.append([segment["name"], threshold, said or NONE])
    return rows


def _write_headline(plan: PlanData) -> str:
    threshold, score = plan["threshold"], plan["score"]
    if "asked" in plan:
        score = "confidence"
    if plan.get("segments") and plan["feasible"] and threshold is None:
        if "case_confidence" in plan:
            score = "the product of a case's confidences"
        own = "question" if plan["by"] == "question" else "segment"
        return f"Accept where {score} reaches the threshold of its own {own}, defer the rest."
    if plan["by"] == "label" and plan["feasible"]:
        return f"Accept a label where its {score} reaches its own threshold, defer the rest."
    if threshold is None:
        return "Nothing can be accepted: defer everything."
    if "case_confidence" in plan:
        product = f"{plan['case_confidence']:.6g}"
        return f"Automate a case where the product of its confidences is at least {product}, defer the rest."
    if plan["by"] == "image":
        score = next(iter(plan["thresholds"]))
        return (
            f"Accept images whose {score} is at least {threshold:.6g}, send the others to a reader."
        )
    return f"Accept where {score} >= {threshold:.6g}, defer the rest."


def _write_sentences(plan: PlanData) -> list[str]:
    """What is promised, what the data show, what to expect, and what a test set said."""
    lines: list[str] = []
    guarantee, n = plan.get("guarantee"), "these"
    counted, labelled = "samples", "labels"
    if "asked" in plan:
        counted = "answers"
    if "case_confidence" in plan:
        counted = labelled = "cases"
    if guarantee:
        lines.append(f"rule       {guarantee['rule']}")
    if "n" in plan:
        n = f"{plan['n']:,}"
        shown = f"coverage {format_percent(plan.get('coverage'), 2)}"
        if plan.get("accuracy") is not None:  # of grades there is none
            shown += f", accuracy {format_percent(plan.get('accuracy'), 2)}"
        lines.append(f"data       {shown} of {n} {counted}")
    if "questions" in plan:
        # Questions of a language model, those without a usable answer counted by reason.
        asked = plan["questions"]
        reasons: list[str] = []
        for count, word in (
            (asked["unparseable"], "unparseable"),
            (asked["refused"], "refused"),
            (asked["missing"], "missing"),
            (asked["unstated"], "without confidence"),
        ):
            if count:
                reasons.append(f"{count:,} {word}")
        answered = f"{format_percent(asked['answered'], 2)} answered ({', '.join(reasons)})"
        alone = f"alone on {format_percent(asked['coverage'], 2)} of all {asked['asked']:,}"
        lines.append(f"questions  {answered}; {alone} questions")
    if guarantee and guarantee["delta"] is not None:
        if guarantee["bound"] is not None:
            bound, sure = (
                format_percent(guarantee["bound"], 2),
                format_percent(1 - guarantee["delta"], 2),
            )
            said = f"bound      risk below {bound} with probability {sure}"
            if plan["by"] is None:
                said += ", at this threshold alone"
            elif plan.get("segments"):
                said += ", in each segment"
            lines.append(said)
        if not guarantee["feasible"]:
            needed, unit, have = guarantee["labels_needed"], labelled, f"{n} {labelled}"
            if guarantee["groups"] is not None:
                unit, have = "groups", f"{n} labels in {guarantee['groups']:,} groups"
            help_ = "they cannot tell how many would be enough"
            if needed is not None:
                help_ = f"about {format_rounded_up(needed)} {unit} would usually be enough"
            if guarantee["why"]:
                help_ = guarantee["why"]
            lines.append(f"infeasible {have} do not allow this guarantee; {help_}")
    if "asked" in plan:
        lines += [f"cases      {sentence}" for sentence in plan["asked"]["sentences"]]
        least = [f"{name} {p:.4g}" for name, p in plan["asked"]["probability"].items()]
        if least:
            lines.append(
                f"least p    {', '.join(least[:SENT_QUESTIONS])} (probability of an accepted answer)"
            )
        sent = [f"{name} {count:,}" for name, count in plan["asked"]["sent_by"].items()]
        if len(sent) > 1:
            lines.append(
                f"sent by    {', '.join(sent[:SENT_QUESTIONS])} (the least confident answer)"
            )
    if "suggestions" in plan:
        lines.append(f"suggested  {plan['suggestions']['text']}")
    if plan["expected"]:
        lines.append(f"expected   {_write_shares(plan['expected'])}")
    if plan["test"]:
        word = "1 - loss" if plan["test"]["graded"] else "accuracy"
        lines.append(f"test       {_write_shares(plan['test'], word)}{_judge_trial(plan['test'])}")
    return lines


def _write_shares(result: ExpectedData | TrialData, word: str = "accuracy") -> str:
    said = f"coverage {_format_share(result['coverage'])}"
    if result["accuracy"]["value"] is not None:  # nothing accepted has none
        said += f", {word} {_format_share(result['accuracy'])}"
    return said


def _judge_trial(trial: TrialData) -> str:
    """Whether the test set keeps the promise; nothing where it cannot tell."""
    risk = format_percent(trial["risk_guaranteed"], 2)
    if trial["compatible"] is None:
        return ""
    if trial["observed_below"]:
        return f"; guarantee of risk {risk} kept"
    if trial["compatible"]:
        return f"; risk above {risk}, within chance"
    return f"; risk above {risk}: BROKEN"


def _format_share(share: ShareData) -> str:
    if share["value"] is None:
        return NONE
    value, low, high = (format_percent(share[key], 2) for key in ("value", "low", "high"))
    return f"{value} ({low}–{high})"
