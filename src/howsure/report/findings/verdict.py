"""The verdict: three sentences on what it is worth, what it may decide, and whether it can be read
as a probability.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from howsure._core.check import InputError
from howsure.policies.guarantee import guaranteed_threshold, one_of_each
from howsure.predictions.outcomes import Outcomes
from howsure.render.model import ClaimsTest, Entry, FindingData, Guarantee, Metrics
from howsure.tallies.tally import Tally

OFF = (
    "over_confident_above_0.9",
    "over_confident",
    "under_confident",
    "hidden_error",
    "internal_compensation",
)
RISKS = {0.01: "1 in 100 of these is", 0.05: "5 in 100 of these are"}
WORTH = 0.05  # a share below this is not worth a sentence, where a larger one can be promised at the next risk
SURPRISING = (
    0.01  # p-value below which claims are said to be off although no single finding says where
)
DOUBTFUL = 0.05  # and below which it is said that they may be


def guarantees(source: Tally | Outcomes | str, n: int, level: float) -> list[Guarantee]:
    """What fixed-sequence testing promises of these samples, at each risk that a verdict speaks of.

    >>> from howsure import tally
    >>> found = guarantees(tally([0.9] * 600 + [0.5] * 200, correct=[1] * 600 + [0] * 200), 800, 0.95)
    >>> [(g["risk"], g["coverage"]) for g in found]
    [(0.01, 0.75), (0.05, 0.75)]
    """
    if isinstance(source, str):
        return [{**_none(risk, level, None), "why": source} for risk in RISKS]
    groups = (
        None
        if not isinstance(source, Outcomes) or source.group is None
        else int(source.units.max()) + 1
    )
    drawn = (
        one_of_each(source, 0) if groups is not None and isinstance(source, Outcomes) else source
    )
    return [_guarantee(source, drawn, risk, n, level, groups) for risk in RISKS]


def _guarantee(
    source: Tally | Outcomes,
    drawn: Tally | Outcomes,
    risk: float,
    n: int,
    level: float,
    groups: int | None,
) -> Guarantee:
    """The promise that rests on what was drawn, with its share of all samples."""
    try:
        g = guaranteed_threshold(drawn, risk=risk, delta=1 - level)
    except InputError as e:
        return {**_none(risk, level, None), "why": str(e)}
    if not g.feasible:
        return _none(risk, level, g.labels_needed, groups)
    t = source.tally() if isinstance(source, Outcomes) else source
    kept = int(t.above(np.array([np.nextafter(g.threshold, -np.inf)]))[0])
    found: Guarantee = {
        "risk": risk,
        "sure": level,
        "feasible": True,
        "coverage": kept / n,
        "kept": kept,
        "threshold": g.threshold,
        "labels_needed": None,
    }
    return found if groups is None else {**found, "groups": groups}


def _none(risk: float, level: float, more: int | None, groups: int | None = None) -> Guarantee:
    found: Guarantee = {
        "risk": risk,
        "sure": level,
        "feasible": False,
        "coverage": 0.0,
        "kept": 0,
        "threshold": None,
        "labels_needed": more,
    }
    return found if groups is None else {**found, "groups": groups}


def verdict(
    metrics: Metrics,
    findings: Sequence[FindingData],
    promised: Sequence[Guarantee] = (),
    test: ClaimsTest | None = None,
    n: int | None = None,
    *,
    calibrated: bool = False,
) -> list[str]:
    """Three sentences, for those who read nothing else; `n` where answers may be counted.

    >>> entry = {"value": 0.9, "low": 0.88, "high": 0.92}
    >>> verdict({"accuracy": entry}, [], n=1000)[0]
    'It was right 900 times of 1,000: 90.0 % (88.0 to 92.0).'
    """
    return [
        _worth(metrics["accuracy"], n),
        _decides(promised, findings),
        _reads(metrics, findings, test, calibrated),
    ]


def _worth(accuracy: Entry, n: int | None) -> str:
    low, high, value = accuracy.get("low"), accuracy.get("high"), accuracy["value"] or 0.0
    limits = "" if low is None or high is None else f" ({low * 100:.1f} to {high * 100:.1f})"
    if n is None:
        return f"It was right {_percent(value)} of the time{limits}."
    right = round(value * n)
    return f"It was right {right:,} time{'' if right == 1 else 's'} of {n:,}: {_percent(value)}{limits}."


def told(promised: Sequence[Guarantee]) -> Guarantee | None:
    """The promise that a verdict speaks of: the strictest that is worth it."""
    good = [g for g in promised if g["feasible"]]
    return next((g for g in good if g["coverage"] >= WORTH), good[-1]) if good else None


def _decides(promised: Sequence[Guarantee], findings: Sequence[FindingData]) -> str:
    """What it may be let decide alone, as a promise; or what it would take."""
    g = told(promised)
    if g is not None:
        which = (
            "It may decide them all"
            if g["coverage"] == 1
            else f"Let it decide only the surest {_percent(g['coverage'])} ({g['kept']:,})"
        )
        return f"{which}: at most {RISKS[g['risk']]} wrong, {g['sure'] * 100:g} % sure."
    if any(f["name"] == "does_not_rank" for f in findings):
        return "Nothing here shows that its score tells right answers from wrong ones, or that deferring would help."
    if not promised:
        return "How much it may decide alone was not looked at."
    last = promised[-1]
    if "why" in last:
        return f"How much it may decide alone cannot be promised: {last['why']}"
    wish = f"at most {RISKS[last['risk']].removesuffix(' are').replace('of these', 'accepted answers')} wrong"
    if last["labels_needed"] is None:
        return (
            f"No share of its answers can be promised to be right: {wish} is out of reach, also with more labels, "
            "if it stays as good as here."
        )
    unit = "groups" if "groups" in last else "labels"
    return (
        f"Too few {unit} for a promise: about {last['labels_needed']:,} would show a share with {wish}, if it stays as "
        "good as here."
    )


def _reads(
    metrics: Metrics, findings: Sequence[FindingData], test: ClaimsTest | None, calibrated: bool
) -> str:
    entry = metrics.get("ece")
    if entry is None or entry["value"] is None:
        return "Its score is not a probability, so it can rank but not promise."
    ece = f"ECE {entry['value']:.3f}" + (
        f", {entry['floor']:.3f} by chance alone" if "floor" in entry else ""
    )
    signed = _value(metrics, "signed_calibration_error") or 0.0
    off = [f["name"] for f in findings if f["name"] in OFF]
    if not off and test is not None and test["p"] < SURPRISING:
        return f"Its confidence is not a probability of being right (p = {test['p']:.3g}; {ece}), without a plain pattern."
    if not off and test is not None and test["p"] < DOUBTFUL:
        doubt = f"Its confidence may be off as a probability of being right ({ece}; p = {test['p']:.2g})"
        return f"{doubt}; more labels would tell."
    if not off:
        p = "" if test is None else f"; p = {test['p']:.2g}"
        return (
            f"Nothing here contradicts its confidence as a probability of being right ({ece}{p})."
        )
    if off[0] in OFF[:3] and abs(signed) > 0.002:
        direction = "more" if signed > 0 else "less"
        so = (
            "still so after calibration"
            if calibrated
            else "calibrate it before reading it as a probability"
        )
        return (
            f"Its confidence claims {abs(signed) * 100:.1f} points {direction} than it delivers on average "
            f"({ece}); {so}."
        )
    return f"Its confidence is about right on average and off in places ({ece}); see the findings."


def _value(metrics: Metrics, name: str) -> float | None:
    return metrics[name]["value"] if name in metrics else None


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
