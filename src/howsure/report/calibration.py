"""What a calibrator changes on a test set: before, after, and where it does harm."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from howsure import metrics
from howsure._core.check import InputError
from howsure._core.frames import frame
from howsure._core.frozen import frozen
from howsure.calibrators import Calibrator, Identity
from howsure.calibrators.change import Change, Number, changes_of
from howsure.calibrators.choice import (
    CALIBRATORS,
    Choice,
    Contender,
    Metric,
    choose_calibrator,
    value_of,
)
from howsure.calibrators.labels import per_label
from howsure.predictions import Predictions, needs_predictions
from howsure.render.model import CalibrationData, Candidate, ChangeData, ChoiceData, FindingData
from howsure.render.model import Number as NumberData
from howsure.report.findings import changes as what_changed
from howsure.report.report import written
from howsure.uncertainty.clusters import few_groups

__all__ = ["CalibrationReport", "calibration_report"]

SCALING = ("temperature", "vector", "matrix")
MEANT = ("ece", "nll", "correctness_nll")  # what calibration is for


@frozen
class CalibrationReport:
    """The outcome of `calibration_report`.

    `methods` has the value of every metric for every calibrator fitted on the validation set, on
    the test set; `choice` says how the method was chosen, None where it was given; `findings` and
    `notes` say in words what changed. `rows()` is the table as text, `to_dict()` all of it as JSON.

    >>> preds = Predictions.from_confidence([0.9, 0.9, 0.9, 0.6] * 20, [1, 0, 1, 0] * 20)
    >>> report = calibration_report(preds, preds, "isotonic")
    >>> ece = report.changes[0]
    >>> ece.before[0], round(ece.after[0], 3), ece.verdict
    (0.325, 0.0, 'better')
    """

    method: str
    calibrator: Calibrator
    n_fit: int
    n_test: int
    level: float
    changes: tuple[Change, ...]
    methods: dict[str, dict[str, float]]
    choice: Choice | None
    findings: tuple[FindingData, ...]
    notes: tuple[str, ...]
    changed: int = 0
    groups: int | None = None

    @property
    def lead(self) -> list[str]:
        """What changed, in two sentences."""
        return lead(self.method, self.changes, self.changed, self.n_test)

    def to_text(self, path: str | Path | None = None, *, width: int = 110) -> str:
        """What `howsure calibrate` prints."""
        from howsure.render.sections import calibrated

        return written(calibrated(self.to_dict()).text(width), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The same as Markdown."""
        from howsure.render.sections import calibrated

        return written(calibrated(self.to_dict()).markdown(), path)

    def frame(self, library: str = "pandas") -> Any:
        """Every metric before and after as a data frame of pandas or polars."""
        rows = [
            {"metric": c.metric, "before": c.before[0], "after": c.after[0]}
            | dict(zip(("difference", "low", "high"), c.difference, strict=True))
            | {"verdict": c.verdict}
            for c in self.changes
        ]
        return frame(rows, library)

    def _repr_html_(self) -> str:
        from howsure.render.html import fragment
        from howsure.render.sections import calibrated

        return fragment(calibrated(self.to_dict()))

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Header and one row for each metric: name, before, after, difference, verdict."""
        head = ("metric", "before", f"after {self.method}", "difference", "")
        return [
            head,
            *(
                (c.metric, _cell(c.before), _cell(c.after), _cell(c.difference, "+"), c.verdict)
                for c in self.changes
            ),
        ]

    def method_rows(self) -> list[tuple[str, ...]]:
        """Header and one row for each calibrator with its metrics on the test set."""
        names = [c.metric for c in self.changes]
        values = [
            (name, *(_number(row[metric]) for metric in names))
            for name, row in self.methods.items()
        ]
        return [("calibrator", *names), *values]

    def to_dict(self) -> CalibrationData:
        """Strict JSON: nan and infinities are null."""
        fitted = self.calibrator.fitted
        found: CalibrationData = {
            "method": self.method,
            "status": None if fitted is None else fitted.status,
            "n_fit": self.n_fit,
            "n_test": self.n_test,
            "level": self.level,
            "metrics": change_data(self.changes),
            "methods": {
                name: {m: v if isfinite(v) else None for m, v in row.items()}
                for name, row in self.methods.items()
            },
            "choice": None if self.choice is None else _choice(self.choice),
            "findings": list(self.findings),
            "notes": list(self.notes),
            "lead": self.lead,
            "changed": self.changed,
        }
        return found if self.groups is None else {**found, "groups": self.groups}


def calibration_report(
    val: Predictions,
    test: Predictions,
    method: str = "all",
    *,
    criterion: Metric | None = None,
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
) -> CalibrationReport:
    """Fit on `val`, compare before and after on `test`, and say so where calibration does harm.

    `method` is the name of a calibrator in `calibrators.choice.CALIBRATORS`, or "all": then
    `choose_calibrator` chooses on `val` alone, with `criterion` and `folds`. The test set is never
    fitted to.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 800)
    >>> preds = Predictions.from_logits(8 * (rng.normal(size=(800, 3)) + 2 * np.eye(3)[y]), y)
    >>> report = calibration_report(preds[:400], preds[400:], "temperature")
    >>> {c.metric: c.verdict for c in report.changes}["nll"]
    'better'
    """
    needs_predictions(val, "calibration_report")
    if method != "all" and method not in CALIBRATORS:
        raise InputError(
            f"there is no calibrator {method!r}; known: all, {', '.join(CALIBRATORS)}."
        )
    choice = (
        choose_calibrator(val, criterion=criterion, folds=folds, level=level, seed=seed)
        if method == "all"
        else None
    )
    made = choice.calibrator if choice else per_label(CALIBRATORS[method])(val)
    name = choice.winner if choice else method
    others = choice.fitted if choice else {"none": Identity(), name: made}
    after = made(test)
    changes = changes_of(test, after, level, seed)
    names = tuple(c.metric for c in changes)
    methods = {n: _values(after if n == name else c(test), names) for n, c in others.items()}
    found = () if isinstance(made, Identity) else tuple(what_changed(test, after))
    groups = None if test.group is None else len(np.unique(np.asarray(test.group)))
    unsafe = few_groups(groups)
    notes = (
        *_harm(name, changes, found),
        *_choice_notes(name, changes, choice, val, made),
        *([] if unsafe is None else [f"{unsafe}."]),
    )
    ordered = {n: methods[n] for n in CALIBRATORS if n in methods}
    moved = answers_changed(test, after)
    return CalibrationReport(
        name, made, val.n, test.n, level, changes, ordered, choice, found, notes, moved, groups
    )


def answers_changed(before: Predictions, after: Predictions) -> int:
    """How many answers a calibrator turned into others; with top labels only, none can change."""
    if before.kind == "confidence":
        return 0
    return int((before.prediction != after.prediction).sum())


def lead(method: str, changes: Sequence[Change], changed: int, n: int) -> list[str]:
    """What a calibrator changed, for those who read nothing else."""
    if method == "none":
        return ["Nothing was corrected: no calibrator is clearly better than doing nothing."]
    who = (
        f"{method.replace('_', ' ').capitalize()} scaling"
        if method in SCALING
        else method.capitalize()
    )
    answers = (
        f"{changed:,} of {n:,} answers changed" if changed else f"none of {n:,} answers changed"
    )
    c = next((c for c in changes if c.metric == "ece"), None)
    if c is None:
        return [f"{who} was fitted; {answers}."]
    did = {"better": "cut", "worse": "raised"}.get(c.verdict, "moved")
    low, high = c.difference[1:]
    limits = f", difference {low:+.3f} to {high:+.3f}" if isfinite(low) and isfinite(high) else ""
    unclear = "" if c.verdict in ("better", "worse") else ", which may be chance"
    change = f"from {c.before[0]:.3f} to {c.after[0]:.3f}{limits}{unclear}"
    first = f"{who} {did} the calibration error (ECE) {change}; {answers}."
    order = next((c for c in changes if c.metric == "aurc"), None)
    if order is None:
        return [first]
    said = {"better": "a better order", "worse": "a worse order"}.get(
        order.verdict, "no clear change of the order"
    )
    return [first, f"AURC was {order.before[0]:.4g} and is {order.after[0]:.4g}: {said}."]


def _values(preds: Predictions, names: tuple[str, ...]) -> dict[str, float]:
    return {name: value_of(getattr(metrics, name), preds) for name in names}


def _harm(name: str, changes: tuple[Change, ...], found: tuple[FindingData, ...]) -> list[str]:
    """What became worse for certain and no finding tells, and what calibration is for and did not
    achieve.
    """
    told = [f["evidence"].get("loss") for f in found]
    failed = [
        f"{name} did not lower {c.metric} on the test set: {c.before[0]:.4g} became {c.after[0]:.4g}, "
        "though the limits of the difference include 0."
        for c in changes
        if c.metric in MEANT and c.verdict == "unclear" and c.difference[0] > 0
    ]
    return failed + [
        f"{name} made {c.metric} worse on the test set: {c.before[0]:.4g} became {c.after[0]:.4g} "
        f"(difference {_cell(c.difference, '+')})."
        for c in changes
        if c.verdict == "worse" and c.metric not in told
    ]


def _choice_notes(
    name: str,
    changes: tuple[Change, ...],
    choice: Choice | None,
    val: Predictions,
    made: Calibrator,
) -> list[str]:
    """Doing nothing, and a validation set that does not speak for the test set."""
    if choice and name == "none":
        return [
            "no calibrator is truly better than doing nothing on the validation set, so nothing is changed."
        ]
    worse = next(
        (c.metric for c in changes if c.metric.endswith("nll") and c.verdict == "worse"), None
    )
    if worse is None:
        return []
    metric = getattr(metrics, worse)
    if not value_of(metric, made(val)) < value_of(metric, val):
        return []
    return [
        f"{worse} fell on the validation set and rose on the test set: the two sets are not alike."
    ]


def change_data(changes: tuple[Change, ...]) -> dict[str, ChangeData]:
    """Each metric before and after, as report JSON."""
    return {
        c.metric: {
            "before": number_data(c.before),
            "after": number_data(c.after),
            "difference": number_data(c.difference),
            "verdict": c.verdict,
        }
        for c in changes
    }


def number_data(number: Number) -> NumberData:
    """A value and its limits, null where they are not finite."""
    value, low, high = map(_finite, number)
    return {"value": value, "low": low, "high": high}


def _finite(x: float) -> float | None:
    return x if isfinite(x) else None


def _candidate(row: Contender) -> Candidate:
    value, low, high = map(_finite, (row.value, row.low, row.high))
    gain = number_data((row.gain, row.gain_low, row.gain_high))
    return {
        "value": value,
        "low": low,
        "high": high,
        "gain": gain,
        "real": row.real,
        "behind": row.behind,
        "changed": row.changed,
        "note": row.note or None,
    }


def _choice(choice: Choice) -> ChoiceData:
    return {
        "criterion": choice.criterion,
        "folds": choice.folds,
        "seed": choice.seed,
        "winner": choice.winner,
        "table": {row.name: _candidate(row) for row in choice.table},
    }


def _number(x: float, sign: str = "") -> str:
    return f"{x:{sign}.4f}"


def _cell(number: Number, sign: str = "") -> str:
    value, low, high = number
    limits = (
        f" [{_number(low, sign)}, {_number(high, sign)}]"
        if isfinite(low) and isfinite(high)
        else ""
    )
    return "" if value is nan else _number(value, sign) + limits
