"""The best temperature: on a convex loss, on one with several valleys, or among given ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from howsure._core.check import Floats, InputError, column
from howsure.calibrators._logits import members
from howsure.calibrators._root import least
from howsure.calibrators._slope import averaged, per_pass
from howsure.predictions import Predictions

FIRST = 2_000  # samples for a first guess; the whole set then needs two or three passes
VALLEYS = 10.0 ** np.linspace(-3, 3, 61)
ENDS = {"low": "upper", "high": "lower", "interior": "interior"}  # a low 1/T is a high T


class Found(NamedTuple):
    """A temperature, how it was found, and the mean loss there."""

    temperature: float
    status: str
    loss: float


def search(
    preds: Predictions, objective: str, grid: Sequence[float] | Floats | None, bounds: tuple[float, float]
) -> Found:
    """The temperature with the least loss under `objective`."""
    if objective not in ("averaged", "per_pass"):
        raise InputError(f"objective is {objective!r}; 'averaged' or 'per_pass' is needed.")
    low, high = bounds
    if not (0 < low <= high and isfinite(high)):
        raise InputError(f"bounds are {bounds}; two finite temperatures above 0, the lower first, are needed.")
    one_valley = preds.samples == 1 or objective == "per_pass"
    if grid is not None:
        return _best_of(partial(per_pass if one_valley else averaged, preds), grid)
    if _flat(preds):
        return Found(1.0, "flat", float(np.log(preds.k or 1)))
    return _convex(preds, low, high) if one_valley else _valleys(preds, low, high)


def _flat(preds: Predictions) -> bool:
    """Whether each row has only one value, so that no temperature changes anything."""
    values = members(preds)
    return bool((values[:, :1].max(axis=-1) == values[:, :1].min(axis=-1)).all()) and bool(
        (values.max(axis=-1) == values.min(axis=-1)).all()
    )


def _best_of(loss_at: Callable[[float], Sequence[float]], grid: Sequence[float] | Floats) -> Found:
    t = column(grid, "grid").astype(np.float64)
    if not (np.isfinite(t) & (t > 0)).all():
        raise InputError("grid holds temperatures that are not finite and above 0; remove them.")
    loss = [loss_at(1 / x)[0] for x in t.tolist()]
    best = int(np.argmin(loss))
    return Found(float(t[best]), "grid", loss[best])


def _convex(preds: Predictions, low: float, high: float) -> Found:
    """Some samples, then all in single precision, show where to look: then one exact pass is mostly enough."""
    at, start, every = partial(per_pass, preds), 1.0, preds.n // FIRST
    if every > 1:
        start = least(partial(at, every=every), 1 / high, 1 / low).b
        start = least(partial(at, quick=True), 1 / high, 1 / low, start, close=0.03).b
    found = least(at, 1 / high, 1 / low, start)
    at_end = {"low": high, "high": low}
    return Found(at_end.get(found.at, 1 / found.b), ENDS[found.at], found.loss)


def _valleys(preds: Predictions, low: float, high: float) -> Found:
    """The mean over passes has a loss of several valleys: look on a grid, then go down the best one."""
    t = VALLEYS[(low <= VALLEYS) & (high >= VALLEYS)]
    t = np.unique(np.concatenate((t, np.clip([low, high], VALLEYS[0], VALLEYS[-1]))))
    loss = np.array([averaged(preds, 1 / x)[0] for x in t.tolist()])
    i = int(np.argmin(loss))
    left, right = t[max(i - 1, 0)], t[min(i + 1, len(t) - 1)]
    if i in (0, len(t) - 1) and not _turns(preds, left, right):
        return Found(float(t[i]), "lower" if i == 0 else "upper", float(loss[i]))
    b = _root(lambda b: averaged(preds, b)[1], 1 / right, 1 / left)
    return Found(1 / b, "interior", averaged(preds, b)[0])


def _turns(preds: Predictions, left: float, right: float) -> bool:
    """Whether the loss has a minimum between two temperatures."""
    return left < right and averaged(preds, 1 / right)[1] < 0 < averaged(preds, 1 / left)[1]


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(f, low, high, xtol=1e-300, rtol=np.float64(1e-12)))  # pyright: ignore[reportArgumentType]
