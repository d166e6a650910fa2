"""Isotonic regression: the best map that never falls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from howsure._core.check import Bools, Floats, InputError, Ints
from howsure.calibrators._classes import answered, questions, record
from howsure.calibrators._fitted import Fitted, shares
from howsure.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Isotonic:
    r"""For each class, the non-decreasing map of its probability that fits best, by pool adjacent violators.

    .. math:: \min_{f \uparrow} \sum_i (f(p_{ik}) - 1[y_i = k])^2

    Equal probabilities are one point; between the points of the fit the map is linear, beyond them constant. Rows
    are divided by their sum; a row of zeros keeps what it was. With top labels only it maps the confidence. Flexible:
    needs about 1,000 samples; claims of exactly 0 and 1 occur. Zadrozny & Elkan 2002.

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
        if self.start.ndim != 1 or len(self.start) < 2 or self.start[0] != 0 or not (size > 0).all():
            raise InputError("start must rise from 0, one step for each map.")
        if self.x.shape != self.y.shape or self.x.shape != (int(self.start[-1]),):
            raise InputError(f"x has shape {self.x.shape} and y {self.y.shape}; {self.start[-1]} points are needed.")
        for j in range(len(size)):
            x, y = self.points(j)
            if not ((np.diff(x) > 0).all() and (np.diff(y) >= 0).all() and 0 <= y[0] <= y[-1] <= 1):
                raise InputError(f"map {j} falls somewhere or leaves [0, 1].")

    @classmethod
    def fit(cls, preds: Predictions) -> Isotonic:
        """Pool adjacent violators for each class."""
        w = shares(preds)
        maps = [_pooled(p, hit, w) for p, hit in questions(preds, "Isotonic")]
        x, y = (np.concatenate([m[i] for m in maps]) for i in (0, 1))
        start = np.cumsum([0, *(len(m[0]) for m in maps)])
        made = cls(x, y, start, preds.kind == "confidence")
        return cls(x, y, start, made.top_label, record(preds, made(preds)))

    def points(self, j: int) -> tuple[Floats, Floats]:
        """Points and values of the map of class j."""
        rows = slice(self.start[j], self.start[j + 1])
        return self.x[rows], self.y[rows]

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the maps, as probabilities or as a confidence."""
        k = None if self.top_label else len(self.start) - 1
        return answered(preds, k, self.fitted, "Isotonic", lambda p, j: np.interp(p, *self.points(j)))


def _pooled(p: Floats, hit: Bools, w: Floats) -> tuple[Floats, Floats]:
    """Ends of the pooled blocks with their values; samples that count nothing are left out."""
    p, hit, w = p[w > 0], hit[w > 0], w[w > 0]
    x, where = np.unique(p, return_inverse=True)
    weight = np.bincount(where, w)
    y = isotonic_regression(np.bincount(where, w * hit) / weight, weights=weight).x.clip(0.0, 1.0)
    inner = np.zeros(len(x), dtype=bool)
    inner[1:-1] = (y[1:-1] == y[:-2]) & (y[1:-1] == y[2:])
    return x[~inner], y[~inner]
