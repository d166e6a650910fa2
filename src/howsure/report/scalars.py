"""The numbers of a report under flat names, for loggers."""

from __future__ import annotations

from howsure._core.check import InputError
from howsure.report.report import Report


def scalars(report: Report) -> dict[str, float]:
    """Each metric of the first score, with `_low` and `_high` where it has an interval; undefined
    ones are left out.

    >>> from howsure import Predictions, evaluate
    >>> report = evaluate(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1]))
    >>> [name for name in scalars(report) if name.startswith("accuracy")]
    ['accuracy', 'accuracy_low', 'accuracy_high']
    """
    if not isinstance(report, Report):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"this is a {type(report).__name__}; a Report is needed. Make one with evaluate(preds)."
        )
    ends = (("value", ""), ("low", "_low"), ("high", "_high"))
    found = {
        name + end: entry.get(key)
        for name, entry in report.data["metrics"].items()
        for key, end in ends
    }
    return {name: value for name, value in found.items() if value is not None}
