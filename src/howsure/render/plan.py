"""A plan (`howsure threshold --json`) in words."""

from __future__ import annotations

from howsure.policies.planning import (
    AllData,
    DeferralData,
    ExpectedData,
    PlanData,
    ShareData,
    TrialData,
)
from howsure.render.tables import Sheet, Table
from howsure.render.words import percent

ROWS = 12  # of a long deferral table


def sheet(plan: PlanData) -> Sheet:
    """Everything that is printed of a plan."""
    found = [_own(plan), *(_deferral(what, rows) for what, rows in plan["deferral"].items())]
    return Sheet(_headline(plan), _sentences(plan), [table for table in found if table.rows])


def _headline(plan: PlanData) -> str:
    if plan["by"] == "label" and plan["feasible"]:
        return (
            f"Accept a label where its {plan['score']} reaches its own threshold, defer the rest."
        )
    if plan["threshold"] is None:
        return "Nothing can be accepted: defer everything."
    if plan["by"] == "image":
        score = next(iter(plan["thresholds"]))
        return f"Accept images whose {score} is at least {plan['threshold']:.6g}, send the others to a reader."
    return f"Accept where {plan['score']} >= {plan['threshold']:.6g}, defer the rest."


def _sentences(plan: PlanData) -> list[str]:
    out = _promised(plan)
    if plan["expected"]:
        out.append(_found("expected", plan["expected"]))
    if plan["test"]:
        trial = plan["test"]
        out.append(_found("test", trial) + _verdict(trial))
    return out


def _promised(plan: PlanData) -> list[str]:
    out: list[str] = []
    promise = plan.get("promise")
    n = f"{plan['n']:,}" if "n" in plan else "these"
    if promise:
        out.append(f"rule       {promise['rule']}")
    if "n" in plan:
        shares = f"coverage {percent(plan.get('coverage'), 2)}, accuracy {percent(plan.get('accuracy'), 2)}"
        out.append(f"data       {shares} of {n} samples")
    if "questions" in plan:
        out.append(_all(plan["questions"]))
    if promise and promise["delta"] is not None:
        sure = percent(1 - promise["delta"], 2)
        if promise["bound"] is not None:
            out.append(
                f"bound      risk below {percent(promise['bound'], 2)} with probability {sure}"
            )
        if not promise["feasible"]:
            out.append(
                f"infeasible {n} labels do not allow this promise; {_needed(promise['labels_needed'])}"
            )
    return out


def _all(q: AllData) -> str:
    counts = (
        (q["unparseable"], "unparseable"),
        (q["refused"], "refused"),
        (q["missing"], "missing"),
        (q["unstated"], "without confidence"),
    )
    reasons = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    alone = f"alone on {percent(q['coverage'], 2)} of all {q['asked']:,} questions"
    return f"questions  {percent(q['answered'], 2)} answered ({reasons}); {alone}"


def _needed(labels: int | None) -> str:
    return (
        "more labels alone would not help"
        if labels is None
        else f"about {labels:,} labels like these would do"
    )


def _found(name: str, e: ExpectedData | TrialData) -> str:
    return f"{name:10} coverage {_share(e['coverage'])}, accuracy {_share(e['accuracy'])}"


def _verdict(trial: TrialData) -> str:
    promised = percent(trial["risk_promised"], 2)
    if trial["compatible"] is None:
        return ""
    if trial["observed_below"]:
        return f"; promise of risk {promised} kept"
    return f"; risk above {promised}" + (", within chance" if trial["compatible"] else ": BROKEN")


def _own(plan: PlanData) -> Table:
    by = plan["by"] or ""
    own = {} if by == "image" else plan["thresholds"]
    rows = [[key, "defer all" if v is None else f"{v:.6g}"] for key, v in own.items()]
    rest = "" if plan["threshold"] is None else " (others take the common one)"
    return Table(f"Thresholds by {by}{rest}", [by, "threshold"], rows)


def _deferral(what: str, rows: list[DeferralData]) -> Table:
    some = f" (the {ROWS - 1} most deferred of {len(rows) - 1})" if len(rows) > ROWS else ""
    head = [what, "n", "deferred", "accuracy accepted", "accuracy deferred"]
    body = [
        [
            r["name"],
            f"{r['n']:,}",
            _share(r["deferred"]),
            _share(r["accuracy_accepted"]),
            _share(r["accuracy_deferred"]),
        ]
        for r in rows[:ROWS]
    ]
    return Table(f"What would be deferred, by {what}{some}", head, body)


def _share(s: ShareData) -> str:
    if s["value"] is None:
        return "none"
    return f"{percent(s['value'], 2)} ({percent(s['low'], 2)}–{percent(s['high'], 2)})"
