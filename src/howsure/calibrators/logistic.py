"""Platt and beta calibration: a logistic curve of two or three parameters for each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from howsure._core.check import Array, Floats, InputError, Ints, parameters
from howsure._core.frozen import frozen
from howsure.calibrators._classes import Map, answered, asked, record
from howsure.calibrators._fitted import Fitted, shares
from howsure.calibrators._logits import SMALLEST
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.columns import chunks

STEPS, GOAL = 100, 1e-9
LEAST = 1e-16  # of the loss: a step that promises less is not worth a pass
SHORTEST = 1e-10
TOGETHER = 1 << 23  # probabilities that are worked on together
Features: TypeAlias = Callable[[Floats], list[Floats]]


@frozen(eq=False)
class Platt:
    r"""For each class, a logistic curve of its log-odds.

    .. math:: q = \sigma\Big(a \log \frac{p}{1 - p} + b\Big)

    Fitted to Platt's targets (n₊+1)/(n₊+2) and 1/(n₋+2), so it is finite for separable data too. The log-odds are
    clipped at those of 1e-12; on them no change is a = 1, b = 0. Rows are divided by their sum; with top labels only it
    maps the confidence. Platt 1999.

    >>> preds = Predictions.from_confidence([0.9] * 50 + [0.6] * 50, [1] * 40 + [0] * 10 + [1] * 25 + [0] * 25)
    >>> Platt.fit(preds)(preds).confidence[[0, -1]].round(3)
    array([0.793, 0.506])
    """

    slope: Floats  # a for each class
    intercept: Floats  # b for each class
    top_label: bool = False
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        _checked(self.top_label, slope=self.slope, intercept=self.intercept)

    @classmethod
    def fit(cls, preds: Predictions, *, start: Platt | None = None) -> Platt:
        """Newton's method for all classes at once; from `start` it needs fewer steps to the same
        curves.
        """
        needs_predictions(preds, "Platt.fit")
        begin = None if start is None else np.stack((start.slope, start.intercept), axis=1)
        found = _curves(preds, "Platt", _log_odds, np.array([1.0, 0.0]) if begin is None else begin)
        made = cls(found[:, 0].copy(), found[:, 1].copy(), preds.kind == "confidence")
        return replace(made, fitted=record(preds, made(preds)))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the curves, as probabilities or as a confidence."""
        needs_predictions(preds, "Platt")
        answer: Map = lambda p: _expit(
            self.slope[:, None] * _log_odds(p)[0] + self.intercept[:, None]
        )
        return answered(
            preds, None if self.top_label else len(self.slope), self.fitted, "Platt", answer
        )


@frozen(eq=False)
class Beta:
    r"""For each class, the calibration map of beta distributed scores.

    .. math:: q = \sigma(a \log p - b \log(1 - p) + c), \qquad a, b \ge 0

    Contains no change (a = b = 1, c = 0), unlike a logistic curve of p itself, and is never decreasing. Targets,
    clipping, rows and top labels as for `Platt`. Kull, Silva Filho & Flach 2017.

    >>> preds = Predictions.from_confidence([0.9] * 50 + [0.6] * 50, [1] * 40 + [0] * 10 + [1] * 25 + [0] * 25)
    >>> Beta.fit(preds)(preds).confidence[[0, -1]].round(3)
    array([0.793, 0.506])
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
    def fit(cls, preds: Predictions, *, start: Beta | None = None) -> Beta:
        """Newton's method for all classes at once; where a or b would be negative, the best fit
        that keeps it 0.

        From `start` it needs fewer steps to the same maps.
        """
        needs_predictions(preds, "Beta.fit")
        begin = None if start is None else np.stack((start.a, start.b, start.c), axis=1)
        found = _curves(preds, "Beta", _logs, np.array([1.0, 1.0, 0.0]) if begin is None else begin)
        a, b, c = (column.copy() for column in found.T)
        made = cls(a, b, c, preds.kind == "confidence")
        return replace(made, fitted=record(preds, made(preds)))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the maps, as probabilities or as a confidence."""
        needs_predictions(preds, "Beta")

        def answer(p: Floats) -> Floats:
            log_p, minus_log_q = _logs(p)
            return _expit(self.a[:, None] * log_p + self.b[:, None] * minus_log_q + self.c[:, None])

        return answered(preds, None if self.top_label else len(self.a), self.fitted, "Beta", answer)


def _logs(p: Floats) -> list[Floats]:
    """log p and −log(1 − p), of numbers that are at least 1e-12."""
    return [np.log(np.maximum(p, SMALLEST)), -np.log(np.maximum(1.0 - p, SMALLEST))]


def _log_odds(p: Floats) -> list[Floats]:
    log_p, minus_log_q = _logs(p)
    log_p += minus_log_q
    return [log_p]


def _expit(s: Floats) -> Floats:
    """1 / (1 + exp(−s)), in the place of s; beyond ±700 it is that of 700."""
    np.clip(s, -700.0, 700.0, out=s)
    np.negative(s, out=s)
    np.exp(s, out=s)
    s += 1.0
    return np.reciprocal(s, out=s)


def _curves(preds: Predictions, what: str, features: Features, start: Floats) -> Floats:
    """Coefficients of the features and the intercept, a row for each map; as many maps at a time as
    fit in memory.
    """
    given, came = asked(preds, what)
    if start.ndim == 2 and len(start) != len(given):
        raise InputError(
            f"start has maps for {len(start)} classes, these predictions need {len(given)}."
        )
    begin = np.broadcast_to(start, (len(given), start.shape[-1]))
    size = max(1, TOGETHER // preds.n)
    parts = [slice(i, i + size) for i in range(0, len(given), size)]
    share = None if preds.weight is None else shares(preds)
    made = [
        _Regression.of(features(given[rows].astype(np.float64)), came - rows.start, share)
        for rows in parts
    ]
    return np.concatenate(
        [_signed(one, begin[rows]) for one, rows in zip(made, parts, strict=True)]
    )


def curves_of_scores(scores: Floats, came: Ints, weight: Floats | None = None) -> Floats:
    """Slope and intercept of a logistic curve of each row of any scores, to Platt's targets.

    `came` is the row that came true for each sample, or a number that is none of them. A weight is
    repetition here: the targets count it. A row that never came true, or always, has a curve too.

    >>> curves_of_scores(np.array([[5.0, -4.0, 1.0]]), np.array([0, 1, 1])).round(3)  # LibSVM: 0.2026, -0.6524
    array([[ 0.203, -0.652]])
    """
    total = float(scores.shape[1] if weight is None else weight.sum())
    scale = np.maximum(
        np.abs(scores).max(axis=1), 1.0
    )  # slopes of large scores are small: none is lost to rounding
    share = None if weight is None else weight / total
    found = _Regression.of([scores / scale[:, None]], came, share, total).solved(
        np.zeros((len(scores), 2))
    )
    return found / np.stack((scale, np.ones(len(scale))), axis=1)


def _signed(regression: _Regression, start: Floats) -> Floats:
    """The best coefficients; with two features none of them negative.

    The problem is convex with two signs, so one of the four choices of active bounds solves it.
    """
    v = regression.solved(start)
    if v.shape[1] < 3 or (v[:, :2] >= 0).all():
        return v
    below = np.flatnonzero((v[:, :2] < 0).any(axis=1))
    least = np.full(len(below), np.inf)
    for free in ([0], [1], list[int]()):
        some = regression.only(below, free)
        part = some.solved(np.maximum(start[below][:, [*free, 2]], 0.0))
        loss = some.loss(part)
        better = np.flatnonzero((part[:, :-1] >= 0).all(axis=1) & (loss < least))
        v[below[better]] = 0.0
        v[below[better][:, None], [*free, 2]] = part[better]
        least[better] = loss[better]
    return v


@frozen(eq=False)
class _Regression:
    """Logistic regressions of the same samples, one for each class: features with a row for each,
    and an intercept.

    The targets are Platt's, (n₊+1)/(n₊+2) and 1/(n₋+2), with which a fit is finite even where all
    is separable. They enter the loss only through `pull`, the mean of target · feature.
    """

    x: list[Floats]  # at least one; those that have no coefficient are left alone
    pull: Floats
    share: Floats | None

    @classmethod
    def of(
        cls, x: list[Floats], came: Ints, share: Floats | None, total: float | None = None
    ) -> _Regression:
        """`came` is the row that came true for each sample; other numbers are none of these rows.

        The targets count `total` samples, or as many as there are.
        """
        m, size = x[0].shape
        n = size if total is None else total
        here = np.flatnonzero((came >= 0) & (came < m))
        row, w = came[here], 1 / size if share is None else share[here]
        sums: Callable[[Array], Floats] = lambda values: np.bincount(
            row, w * values, minlength=m
        ).astype(np.float64)
        reached = sums(np.ones(len(row)))
        high, low = (n * reached + 1) / (n * reached + 2), 1 / (n - n * reached + 2)
        mean: Callable[[Floats], Floats] = lambda f: f.mean(axis=1) if share is None else f @ share
        pull = [low * mean(f) + (high - low) * sums(f[row, here]) for f in x]
        return cls(x, np.stack([*pull, low + (high - low) * reached], axis=1), share)

    def only(self, rows: Ints, features: Sequence[int]) -> _Regression:
        """Some of the regressions, with some of the features."""
        return _Regression(
            [self.x[f][rows] for f in features or [0]],
            self.pull[rows][:, [*features, -1]],
            self.share,
        )

    def solved(self, v: Floats) -> Floats:
        """Newton's method from v.

        A step is halved until the slope along it is at most half as steep upwards as it was
        downwards: the loss is convex, so its slope says what its value would, and costs no
        logarithm.
        """
        gradient, second = self._at(v)
        length = np.ones(len(v))
        for _ in range(STEPS):
            inverse: Floats = np.linalg.pinv(second, rcond=1e-13, hermitian=True).astype(np.float64)
            step = -(inverse @ gradient[:, :, None])[:, :, 0]
            fall = -_sum(gradient, step)
            move = (np.abs(gradient).max(axis=1) > GOAL) & (fall > LEAST) & (length > SHORTEST)
            if not move.any():
                return v + np.where(length > SHORTEST, 1.0, 0.0)[:, None] * step
            new = v + np.where(move, length, 0.0)[:, None] * step
            there = self._at(new)
            better = move & (_sum(there[0], step) <= fall / 2)
            length = np.where(better, 1.0, length / 2)
            v, gradient = (
                np.where(better[:, None], a, b) for a, b in ((new, v), (there[0], gradient))
            )
            second = np.where(better[:, None, None], there[1], second)
        return v

    def loss(self, v: Floats) -> Floats:
        """The mean loss of each regression."""
        s = np.repeat(v[:, -1:], self.x[0].shape[1], axis=1)
        for j in range(v.shape[1] - 1):
            s += v[:, j : j + 1] * self.x[j]
        each = np.logaddexp(0.0, s)
        return (each.mean(axis=1) if self.share is None else each @ self.share) - _sum(self.pull, v)

    def _at(self, v: Floats) -> tuple[Floats, Floats]:
        """First and second derivatives of the mean loss at v."""
        (m, size), n = v.shape, self.x[0].shape[1]
        first, second = np.zeros((m, size)), np.zeros((m, size, size))
        for cols in chunks(n, m):
            x = [f[:, cols] for f in self.x]
            p = np.repeat(v[:, -1:], x[0].shape[1], axis=1)
            for j, f in enumerate(x[: size - 1]):
                p += v[:, j : j + 1] * f
            bend = 1.0 - _expit(p)
            if self.share is not None:
                p *= self.share[cols]
            bend *= p
            for i in range(size):
                first[:, i] += _dot(p, x, i, size)
                bent = bend if i == size - 1 else bend * x[i]
                for j in range(i, size):
                    second[:, i, j] += _dot(bent, x, j, size)
        second += np.triu(second, 1).transpose(0, 2, 1)
        unit = 1 / n if self.share is None else 1.0
        return unit * first - self.pull, unit * second


def _sum(a: Floats, b: Floats) -> Floats:
    return np.einsum("ij,ij->i", a, b)


def _dot(a: Floats, x: list[Floats], i: int, size: int) -> Floats:
    """The sum of a · feature i over the samples; the last feature is 1."""
    return _sum(a, x[i]) if i < size - 1 else a.sum(axis=1)


def _checked(top_label: bool, **columns: Floats) -> None:
    size = {len(c) if c.ndim == 1 else -1 for c in columns.values()}
    if len(size) != 1 or min(size) < 1:
        raise InputError(f"{', '.join(columns)} must have one number of each for each class.")
    for name, column in columns.items():
        parameters(column, name)
    if top_label and max(size) != 1:
        raise InputError("a confidence has one map, not several.")
