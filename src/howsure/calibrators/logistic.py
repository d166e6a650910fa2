"""Platt and beta calibration: a logistic curve of two or three parameters for each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from howsure._core.checks import Floats, InputError, Ints, parameters
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, repeat_values
from howsure.calibrators.calibrator import (
    SMALLEST_PROBABILITY,
    Fitted,
    collect_targets,
    compute_shares,
    map_probabilities,
    record_fit,
    takes_arrays,
)
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.columns import iterate_chunks

MAX_NEWTON_STEPS = 100
NEWTON_GRADIENT_GOAL = 1e-9
WORTHLESS_FALL = 1e-16  # of the loss: a step that promises less is not worth a pass
SHORTEST_NEWTON_STEP = 1e-10
FLAT_SHARE = 1e-13  # of the largest curvature: what is below is rounding
CURVES_CHUNK_NUMBERS = 1 << 23  # probabilities that are worked on together

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
        _check_columns(self.top_label, slope=self.slope, intercept=self.intercept)

    @takes_arrays
    @classmethod
    def fit(cls, preds: Predictions, *, start: Platt | None = None, measured: bool = True) -> Platt:
        """Newton's method for all classes at once; from `start` it needs fewer steps to the same
        curves. Without `measured` the loss of these samples is left out.
        """
        begin = np.array([1.0, 0.0])
        if start is not None:
            begin = np.stack((start.slope, start.intercept), axis=1)
        slope, intercept = _fit_curves(preds, "Platt", _take_log_odds, begin).T
        made = cls(slope=slope.copy(), intercept=intercept.copy(), top_label=not preds.vectors)
        return replace(made, fitted=record_fit(preds, made, measured))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the curves, as probabilities or as a confidence."""
        needs_predictions(preds, "Platt")
        k = None if self.top_label else len(self.slope)
        return map_probabilities(preds, k, self.fitted, what="Platt", apply=self.map_values)

    def map_values(self, p: Floats) -> Floats:
        """The curves at probabilities that have a row for each class."""
        log_odds = _take_log_odds(p)[0]
        return _apply_logistic(self.slope[:, None] * log_odds + self.intercept[:, None])


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
        _check_columns(self.top_label, a=self.a, b=self.b, c=self.c)
        if (self.a < 0).any() or (self.b < 0).any():
            raise InputError("a and b must not be negative: the map would fall.")

    @takes_arrays
    @classmethod
    def fit(cls, preds: Predictions, *, start: Beta | None = None, measured: bool = True) -> Beta:
        """Newton's method for all classes at once; where a or b would be negative, the best fit
        that keeps it 0.

        From `start` it needs fewer steps to the same maps. Without `measured` the loss of these
        samples is left out.
        """
        begin = np.array([1.0, 1.0, 0.0])
        if start is not None:
            begin = np.stack((start.a, start.b, start.c), axis=1)
        a, b, c = _fit_curves(preds, "Beta", _take_logs, begin).T
        top_label = not preds.vectors
        made = cls(a=a.copy(), b=b.copy(), c=c.copy(), top_label=top_label)
        return replace(made, fitted=record_fit(preds, made, measured))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the maps, as probabilities or as a confidence."""
        needs_predictions(preds, "Beta")
        k = None if self.top_label else len(self.a)
        return map_probabilities(preds, k, self.fitted, what="Beta", apply=self.map_values)

    def map_values(self, p: Floats) -> Floats:
        """The maps at probabilities that have a row for each class."""
        log_p, minus_log_q = _take_logs(p)
        scores = self.a[:, None] * log_p + self.b[:, None] * minus_log_q + self.c[:, None]
        return _apply_logistic(scores)


def _check_columns(top_label: bool, **columns: Floats) -> None:
    """Refuse parameters that are not one number of each for each class."""
    sizes = {len(c) if c.ndim == 1 else -1 for c in columns.values()}
    if len(sizes) != 1 or min(sizes) < 1:
        raise InputError(f"{', '.join(columns)} must have one number of each for each class.")
    for name, column in columns.items():
        parameters(column, name)
    if top_label and max(sizes) != 1:
        raise InputError("a confidence has one map, not several.")


# ---- features of probabilities


def _take_logs(p: Floats) -> list[Floats]:
    """log p and −log(1 − p), of numbers that are at least 1e-12."""
    log_p = np.log(np.maximum(p, SMALLEST_PROBABILITY))
    log_q = np.log(np.maximum(1.0 - p, SMALLEST_PROBABILITY))
    return [log_p, -log_q]


def _take_log_odds(p: Floats) -> list[Floats]:
    log_p, minus_log_q = _take_logs(p)
    log_p += minus_log_q
    return [log_p]


def _apply_logistic(s: Floats) -> Floats:
    """1 / (1 + exp(−s)), in the place of s; beyond ±700 it is that of 700."""
    np.clip(s, -700.0, 700.0, out=s)
    np.negative(s, out=s)
    np.exp(s, out=s)
    s += 1.0
    return np.reciprocal(s, out=s)


# ---- fits


def _fit_curves(preds: Predictions, what: str, features: Features, start: Floats) -> Floats:
    """Coefficients of the features and the intercept, a row for each map; as many maps at a time as
    fit in memory.
    """
    given, came = collect_targets(preds, what)
    if start.ndim == 2 and len(start) != len(given):
        raise InputError(
            f"start has maps for {len(start)} classes, these predictions need {len(given)}."
        )
    start = np.broadcast_to(start, (len(given), start.shape[-1]))
    share = None if preds.weight is None else compute_shares(preds)
    step = max(1, CURVES_CHUNK_NUMBERS // preds.n)
    curves: list[Floats] = []
    for i in range(0, len(given), step):
        x = features(given[i : i + step].astype(np.float64))
        regressions = LogisticRegressions.of(x, came - i, share)
        curves.append(regressions.solve_rising(start[i : i + step]))
    return np.concatenate(curves)


def fit_score_curves(scores: Floats, came: Ints, weight: Floats | None = None) -> Floats:
    """Slope and intercept of a logistic curve of each row of any scores, to Platt's targets.

    `came` is the row that came true for each sample, or a number that is none of them. A weight is
    repetition here: the targets count it. A row that never came true, or always, has a curve too.

    >>> fit_score_curves(np.array([[5.0, -4.0, 1.0]]), np.array([0, 1, 1])).round(3)  # LibSVM: 0.2026, -0.6524
    array([[ 0.203, -0.652]])
    """
    total, share = float(scores.shape[1]), None
    if weight is not None:
        total = float(weight.sum())
        share = weight / total
    # Slopes of large scores are small; scaled, none is lost to rounding.
    scale = np.maximum(np.abs(scores).max(axis=1), 1.0)
    regressions = LogisticRegressions.of([scores / scale[:, None]], came, share, total)
    curves = regressions.solve(np.zeros((len(scores), 2)))
    return curves / np.stack((scale, np.ones(len(scale))), axis=1)


@frozen(eq=False)
class LogisticRegressions:
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
    ) -> LogisticRegressions:
        """`came` is the row that came true for each sample; other numbers are none of these rows.

        The targets count `total` samples, or as many as there are.
        """
        rows, n = x[0].shape
        size = n if total is None else total
        here = np.flatnonzero((came >= 0) & (came < rows))
        row = came[here]
        weight = 1 / n if share is None else share[here]

        def sum_by_row(values: Floats) -> Floats:
            return count_values(row, weight * values, minlength=rows).astype(np.float64)

        reached = sum_by_row(np.ones(len(row)))
        high = (size * reached + 1) / (size * reached + 2)
        low = 1 / (size - size * reached + 2)
        pull: list[Floats] = []
        for feature in x:
            mean = feature.mean(axis=1) if share is None else feature @ share
            pull.append(low * mean + (high - low) * sum_by_row(feature[row, here]))
        pull.append(low + (high - low) * reached)
        return cls(x=x, pull=np.stack(pull, axis=1), share=share)

    def select(self, rows: Ints, features: Sequence[int]) -> LogisticRegressions:
        """Some of the regressions, with some of the features."""
        return LogisticRegressions(
            x=[self.x[f][rows] for f in features or [0]],
            pull=self.pull[rows][:, [*features, -1]],
            share=self.share,
        )

    def solve(self, v: Floats) -> Floats:
        """Coefficients of the least loss, by Newton's method from v.

        A step is halved until the slope along it is at most half as steep upwards as it was
        downwards: the loss is convex, so its slope says what its value would, and costs no
        logarithm.
        """
        gradient, second = self._derive(v)
        length = np.ones(len(v))
        for _ in range(MAX_NEWTON_STEPS):
            # The pseudo-inverse: a flat direction is not followed.
            curve, turn = np.linalg.eigh(second)
            curve[curve <= FLAT_SHARE * curve.max(axis=1, keepdims=True)] = np.inf
            turned = turn.transpose(0, 2, 1) @ gradient[:, :, None]
            step = -(turn @ (turned / curve[:, :, None]))[:, :, 0]
            fall = -_dot_rows(gradient, step)
            steep = np.abs(gradient).max(axis=1) > NEWTON_GRADIENT_GOAL
            long = length > SHORTEST_NEWTON_STEP
            move = steep & (fall > WORTHLESS_FALL) & long
            if not move.any():
                return v + np.where(long, 1.0, 0.0)[:, None] * step
            new = v + np.where(move, length, 0.0)[:, None] * step
            new_gradient, new_second = self._derive(new)
            better = move & (_dot_rows(new_gradient, step) <= fall / 2)
            length = np.where(better, 1.0, length / 2)
            v = np.where(better[:, None], new, v)
            gradient = np.where(better[:, None], new_gradient, gradient)
            second = np.where(better[:, None, None], new_second, second)
        return v

    def solve_rising(self, start: Floats) -> Floats:
        """The best coefficients; with two features none of them negative.

        The problem is convex with two signs, so one of the four choices of active bounds solves it.
        """
        v = self.solve(start)
        if v.shape[1] < 3 or (v[:, :2] >= 0).all():
            return v
        below = np.flatnonzero((v[:, :2] < 0).any(axis=1))
        least = np.full(len(below), np.inf)
        for free in ([0], [1], list[int]()):
            some = self.select(below, free)
            part = some.solve(np.maximum(start[below][:, [*free, 2]], 0.0))
            loss = some.compute_loss(part)
            better = np.flatnonzero((part[:, :-1] >= 0).all(axis=1) & (loss < least))
            v[below[better]] = 0.0
            v[below[better][:, None], [*free, 2]] = part[better]
            least[better] = loss[better]
        return v

    def compute_loss(self, v: Floats) -> Floats:
        """The mean loss of each regression."""
        s = repeat_values(v[:, -1:], self.x[0].shape[1], axis=1)
        for j in range(v.shape[1] - 1):
            s += v[:, j : j + 1] * self.x[j]
        each = np.logaddexp(0.0, s)
        mean = each.mean(axis=1) if self.share is None else each @ self.share
        return mean - _dot_rows(self.pull, v)

    def _derive(self, v: Floats) -> tuple[Floats, Floats]:
        """First and second derivatives of the mean loss at v."""
        (rows, size), n = v.shape, self.x[0].shape[1]
        first, second = np.zeros((rows, size)), np.zeros((rows, size, size))
        for cols in iterate_chunks(n, rows):
            x = [feature[:, cols] for feature in self.x[: size - 1]]
            p = repeat_values(v[:, -1:], self.x[0][:, cols].shape[1], axis=1)
            for j, feature in enumerate(x):
                p += v[:, j : j + 1] * feature
            bend = 1.0 - _apply_logistic(p)
            if self.share is not None:
                p *= self.share[cols]
            bend *= p
            # The last feature is 1, so its sums need no product.
            for i in range(size):
                first[:, i] += _dot_rows(p, x[i]) if i < size - 1 else p.sum(axis=1)
                bent = bend * x[i] if i < size - 1 else bend
                for j in range(i, size):
                    second[:, i, j] += _dot_rows(bent, x[j]) if j < size - 1 else bent.sum(axis=1)
        second += np.triu(second, 1).transpose(0, 2, 1)
        unit = 1 / n if self.share is None else 1.0
        return unit * first - self.pull, unit * second


def _dot_rows(a: Floats, b: Floats) -> Floats:
    return np.einsum("ij,ij->i", a, b)
