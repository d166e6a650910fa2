"""The numbers of a report under flat names, for loggers."""

from __future__ import annotations

from howsure._core.check import InputError
from howsure.report import Report


def scalars(report: Report) -> dict[str, float]:
    """Each metric of the first score, with `_low` and `_high` where it has an interval; undefined ones are left out.

    >>> scalars(Report({"metrics": {"ece": {"value": 0.1, "low": 0.05, "high": 0.2}, "auroc": {"value": None}}}))
    {'ece': 0.1, 'ece_low': 0.05, 'ece_high': 0.2}
    """
    if not isinstance(report, Report):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"this is a {type(report).__name__}; a Report is needed. Make one with evaluate(preds).")
    ends = (("value", ""), ("low", "_low"), ("high", "_high"))
    found = {name + end: entry.get(key) for name, entry in report.data["metrics"].items() for key, end in ends}
    return {name: value for name, value in found.items() if value is not None}
