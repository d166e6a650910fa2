"""Platt and beta calibration: a logistic curve of two or three parameters for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howsure._core.check import Bools, Floats, InputError
from howsure.calibrators._classes import Map, answered, questions, record, targets
from howsure.calibrators._fitted import Fitted, shares
from howsure.calibrators._logistic import expit, logistic
from howsure.calibrators._logits import SMALLEST
from howsure.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Platt:
    r"""For each class, a logistic curve of its log-odds.

    .. math:: q = \sigma\Big(a \log \frac{p}{1 - p} + b\Big)

    Fitted to Platt's targets (n₊+1)/(n₊+2) and 1/(n₋+2), so it is finite for separable data too. The log-odds are
    clipped at those of 1e-12; on them no change is a = 1, b = 0. Rows are divided by their sum; with top labels only it
    maps the confidence. Platt 1999.

    >>> preds = Predictions.from_confidence([0.9] * 50 + [0.6] * 50, [1] * 40 + [0] * 10 + [1] * 25 + [0] * 25)
    >>> Platt.fit(preds)(preds).confidence[[0, -1]]
    array([0.79, 0.50])
    """

    slope: Floats  # a for each class
    intercept: Floats  # b for each class
    top_label: bool = False
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        _checked(self.top_label, slope=self.slope, intercept=self.intercept)

    @classmethod
    def fit(cls, preds: Predictions) -> Platt:
        """Newton's method for each class."""
        w = shares(preds)
        found = np.stack([_platt(p, hit, w) for p, hit in questions(preds, "Platt")])
        made = cls(found[:, 0].copy(), found[:, 1].copy(), preds.kind == "confidence")
        return cls(made.slope, made.intercept, made.top_label, record(preds, made(preds)))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the curves, as probabilities or as a confidence."""
        answer: Map = lambda p, j: expit(self.slope[j] * _log_odds(p) + self.intercept[j])
        return answered(preds, None if self.top_label else len(self.slope), self.fitted, "Platt", answer)


@dataclass(frozen=True, eq=False)
class Beta:
    r"""For each class, the calibration map of beta distributed scores.

    .. math:: q = \sigma(a \log p - b \log(1 - p) + c), \qquad a, b \ge 0

    Contains no change (a = b = 1, c = 0), unlike a logistic curve of p itself, and is never decreasing. Targets,
    clipping, rows and top labels as for `Platt`. Kull, Silva Filho & Flach 2017.

    >>> preds = Predictions.from_confidence([0.9] * 50 + [0.6] * 50, [1] * 40 + [0] * 10 + [1] * 25 + [0] * 25)
    >>> Beta.fit(preds)(preds).confidence[[0, -1]]
    array([0.79, 0.50])
    """

    a: Floats
    b: Floats
    c: Floats
    top_label: bool = False
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        _checked(self.top_label, a=self.a, b=self.b, c=self.c)
        if (self.a < 0).any() or (self.b < 0).any():
            raise InputError("a and b must not be negative: the map would fall.")

    @classmethod
    def fit(cls, preds: Predictions) -> Beta:
        """Newton's method for each class; the best of the fits whose a and b are not negative."""
        w = shares(preds)
        found = np.stack([_beta(p, hit, w) for p, hit in questions(preds, "Beta")])
        a, b, c = (column.copy() for column in found.T)
        made = cls(a, b, c, preds.kind == "confidence")
        return cls(a, b, c, made.top_label, record(preds, made(preds)))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the maps, as probabilities or as a confidence."""

        def answer(p: Floats, j: int) -> Floats:
            log_p, log_q = _logs(p)
            return expit(self.a[j] * log_p - self.b[j] * log_q + self.c[j])

        return answered(preds, None if self.top_label else len(self.a), self.fitted, "Beta", answer)


def _logs(p: Floats) -> tuple[Floats, Floats]:
    """log p and log(1 − p), both at least log 1e-12."""
    return np.log(np.maximum(p, SMALLEST)), np.log(np.maximum(1.0 - p, SMALLEST))


def _log_odds(p: Floats) -> Floats:
    log_p, log_q = _logs(p)
    return log_p - log_q


def _platt(p: Floats, hit: Bools, w: Floats) -> Floats:
    x = np.stack((_log_odds(p), np.ones_like(p)), axis=1)
    return logistic(x, targets(hit, w, len(p)), w)[0]


def _beta(p: Floats, hit: Bools, w: Floats) -> Floats:
    """The convex problem with two signs: one of the four choices of active bounds solves it."""
    log_p, log_q = _logs(p)
    x, target = np.stack((log_p, -log_q, np.ones_like(p)), axis=1), targets(hit, w, len(p))
    best, least = np.zeros(3), np.inf
    for columns in ([0, 1, 2], [0, 2], [1, 2], [2]):
        part, loss = logistic(x[:, columns], target, w)
        full = np.zeros(3)
        full[columns] = part
        if (full[:2] >= 0).all() and loss < least:
            best, least = full, loss
            if len(columns) == 3:
                break  # no bound is active, so nothing can be better
    return best


def _checked(top_label: bool, **columns: Floats) -> None:
    size = {len(c) if c.ndim == 1 else -1 for c in columns.values()}
    if len(size) != 1 or min(size) < 1 or not all(np.isfinite(c).all() for c in columns.values()):
        raise InputError(f"{', '.join(columns)} must be finite, one number of each for each class.")
    if top_label and max(size) != 1:
        raise InputError("a confidence has one map, not several.")
