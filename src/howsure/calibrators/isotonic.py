"""Isotonic regression: the best map that never falls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from howsure._core.check import Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.calibrators._classes import answered, asked, record, samples_of
from howsure.calibrators._fitted import Fitted
from howsure.predictions import Predictions, needs_predictions
from howsure.tallies.build import tally
from howsure.tallies.pooling import pooled
from howsure.tallies.tally import Counts, Tally


@frozen(eq=False)
class Isotonic:
    r"""For each class, the non-decreasing map of its probability that fits best, by pool adjacent
    violators.

    .. math:: \min_{f \uparrow} \sum_i (f(p_{ik}) - 1[y_i = k])^2

    Equal probabilities are one point; between the points of the fit the map is linear, beyond them constant. Rows
    are divided by their sum; a row of zeros keeps what it was. With top labels only it maps the confidence. Flexible:
    needs about 1,000 samples; claims of exactly 0 and 1 occur unless `floor` keeps the map away from them.
    Zadrozny & Elkan 2002.

    >>> preds = Predictions.from_confidence([0.6, 0.7, 0.8, 0.9], [0, 1, 0, 1])
    >>> Isotonic.fit(preds)(preds).confidence
    array([0. , 0.5, 0.5, 1. ])
    """

    x: Floats  # the points of all maps, one map after the other
    y: Floats  # their values
    start: Ints  # where each map starts, and the end
    top_label: bool = False
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        size = np.diff(self.start)
        if (
            self.start.ndim != 1
            or len(self.start) < 2
            or self.start[0] != 0
            or not (size > 0).all()
        ):
            raise InputError("start must rise from 0, one step for each map.")
        if self.x.shape != self.y.shape or self.x.shape != (int(self.start[-1]),):
            raise InputError(
                f"x has shape {self.x.shape} and y {self.y.shape}; {self.start[-1]} points are needed."
            )
        for j in range(len(size)):
            x, y = self.points(j)
            if not ((np.diff(x) > 0).all() and (np.diff(y) >= 0).all() and 0 <= y[0] <= y[-1] <= 1):
                raise InputError(f"map {j} falls somewhere or leaves [0, 1].")

    @classmethod
    def fit(cls, preds: Predictions, *, floor: float = 0.0) -> Isotonic:
        """Pool adjacent violators for each class: one sort, then time linear in the number of
        errors.

        `floor` bounds the two end steps away from 0 and 1, where a single new sample may cost an
        infinite loss: a step of c samples counts at least `floor` of them as right and as wrong.
        0.5 is half a sample.
        """
        needs_predictions(preds, "Isotonic.fit")
        least = samples_of(preds, floor)
        given, came = asked(preds, "Isotonic")
        steps = [
            _steps(tally(p, correct=came == j, weight=preds.weight), least)
            for j, p in enumerate(given)
        ]
        maps = [step.points() for step in steps]
        x, y = (np.concatenate([m[i] for m in maps]) for i in (0, 1))
        made = cls(x, y, np.cumsum([0, *(len(m[0]) for m in maps)]), preds.kind == "confidence")
        return replace(
            made, fitted=_loss_of(steps[0], preds) if made.top_label else record(preds, made(preds))
        )

    def points(self, j: int) -> tuple[Floats, Floats]:
        """Points and values of the map of class j."""
        rows = slice(self.start[j], self.start[j + 1])
        return self.x[rows], self.y[rows]

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the maps, as probabilities or as a confidence."""
        needs_predictions(preds, "Isotonic")
        k = None if self.top_label else len(self.start) - 1
        return answered(preds, k, self.fitted, "Isotonic", self._mapped)

    def _mapped(self, p: Floats) -> Floats:
        rows: list[Floats] = [np.interp(row, *self.points(j)) for j, row in enumerate(p)]
        return np.stack(rows)


def steps_of_scores(
    scores: Floats, came: Ints, weight: Floats | None = None
) -> list[tuple[Floats, Floats]]:
    """Points and values of the best rising map of each row of any scores; `came` is the row that
    came true.

    >>> steps_of_scores(np.array([[-2.0, 0.5, 3.0, 7.0]]), np.array([1, 0, 1, 0]))
    [(array([-2. ,  0.5,  3. ,  7. ]), array([0. , 0.5, 0.5, 1. ]))]
    """
    return [
        _steps(tally(row, correct=came == j, weight=weight), 0.0).points()
        for j, row in enumerate(scores)
    ]


@frozen(eq=False)
class _Steps:
    """The steps of one map, lowest first: its ends, its samples, those that came true, and its
    value.
    """

    low: Floats
    high: Floats
    count: Counts
    right: Counts
    value: Floats

    def points(self) -> tuple[Floats, Floats]:
        """Both ends of every step with its value; a step at a single place is one point."""
        x, y = np.stack((self.low, self.high), axis=1), np.stack((self.value, self.value), axis=1)
        keep = np.stack((np.ones(len(x), dtype=bool), self.low < self.high), axis=1)
        return x[keep], y[keep]


def _steps(t: Tally, least: float) -> _Steps:
    """Pool adjacent violators on a tally."""
    found = pooled(t)
    count, right = found.count[::-1], (found.count - found.loss)[::-1]
    value = np.maximum.accumulate(right / count)  # sums of weights are rounded
    half = np.minimum(least, count / 2)
    value[0] = max(value[0], min(half[0] / count[0], *value[1:2], 1.0))
    value[-1] = min(value[-1], max(1 - half[-1] / count[-1], *value[-2:-1], 0.0))
    return _Steps(found.low[::-1], found.high[::-1], count, right, value)


def _loss_of(step: _Steps, preds: Predictions) -> Fitted:
    """The record of a map of the confidence, whose loss its steps tell without being asked sample
    by sample.
    """
    wrong = step.count - step.right
    with np.errstate(divide="ignore"):
        lost = [
            np.dot(n[n > 0], np.log(p[n > 0]))
            for n, p in ((step.right, step.value), (wrong, 1 - step.value))
        ]
    return Fitted(
        "converged", preds.n, None, preds.class_names, -float(sum(lost) / step.count.sum())
    )
