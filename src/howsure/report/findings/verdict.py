"""The verdict: three sentences on what it is worth, whether it ranks, and whether it can be read as a probability."""

from __future__ import annotations

from collections.abc import Sequence

from howsure.render.model import Entry, FindingData, Metrics

OFF = ("over_confident_above_0.9", "over_confident", "under_confident", "hidden_error", "internal_compensation")


def verdict(metrics: Metrics, findings: Sequence[FindingData]) -> list[str]:
    """Three sentences, for those who read nothing else.

    >>> entry = {"value": 0.9, "low": 0.88, "high": 0.92}
    >>> verdict({"accuracy": entry}, [])[0]
    'It is right 90.0 % of the time (88.0 to 92.0).'
    """
    return [_worth(metrics["accuracy"]), _ranks(metrics, findings), _reads(metrics, findings)]


def _worth(accuracy: Entry) -> str:
    low, high = accuracy.get("low"), accuracy.get("high")
    limits = "" if low is None or high is None else f" ({low * 100:.1f} to {high * 100:.1f})"
    return f"It is right {_percent(accuracy['value'] or 0.0)} of the time{limits}."


def _ranks(metrics: Metrics, findings: Sequence[FindingData]) -> str:
    if any(f["name"] == "does_not_rank" for f in findings):
        return "Its score does not tell right answers from wrong ones, so nothing can be gained by deferring."
    kept = {risk: _value(metrics, f"coverage_at_risk_{risk}") for risk in ("0.01", "0.05")}
    if kept["0.01"] is not None and kept["0.01"] >= 0.05:
        return f"Let it decide only the surest {_percent(kept['0.01'])} and 1 in 100 of these is wrong."
    if kept["0.05"]:
        return f"Let it decide only the surest {_percent(kept['0.05'])} and 5 in 100 of these are wrong."
    return "No threshold makes it reliable: at every one of them more than 5 in 100 accepted answers are wrong."


def _reads(metrics: Metrics, findings: Sequence[FindingData]) -> str:
    ece = _value(metrics, "ece")
    if ece is None:
        return "Its score is not a probability, so it can rank but not promise."
    signed = _value(metrics, "signed_calibration_error") or 0.0
    off = [f["name"] for f in findings if f["name"] in OFF]
    if not off:
        return f"Nothing here contradicts its confidence as a probability of being right (ECE {ece:.3f})."
    if off[0] in OFF[:3] and abs(signed) > 0.002:
        direction = "more" if signed > 0 else "less"
        return (
            f"Its confidence claims {abs(signed) * 100:.1f} points {direction} than it delivers on average "
            f"(ECE {ece:.3f}); calibrate it before reading it as a probability."
        )
    return f"Its confidence is about right on average and off in places (ECE {ece:.3f}); see the findings."


def _value(metrics: Metrics, name: str) -> float | None:
    return metrics[name]["value"] if name in metrics else None


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
