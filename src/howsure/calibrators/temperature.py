"""Temperature scaling: one number that makes all answers surer or less sure."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import copysign, inf, isfinite
from typing import Literal, NamedTuple

import numpy as np

from howsure._core.check import Array, Bools, Floats, InputError, column
from howsure._core.frozen import frozen
from howsure.calibrators._fitted import Fitted, needs_classes, same_classes, with_values
from howsure.calibrators._logits import as_logits, members
from howsure.calibrators._slope import averaged, least, per_pass
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.columns import chunks, log_softmax

FIRST = 2_000  # samples for a first guess; the whole set then needs two or three passes
VALLEYS = 10.0 ** np.linspace(-3, 3, 61)
ENDS = {"low": "upper", "high": "lower", "interior": "interior"}  # a low 1/T is a high T
FAR = 1e8  # below the largest logit of a row: nothing at any temperature that occurs
CLOSE = 1e-12  # relative: where two temperatures are one


@frozen
class Temperature:
    r"""Divide the logits by one temperature T, fitted by maximum likelihood.

    .. math:: p = \mathrm{softmax}(z / T), \qquad T = \arg\min_T \, \mathrm{NLL}

    T > 1 makes answers less sure, T < 1 surer; the answers themselves stay the same, and with more than two
    classes their ranking may change. Of probabilities the logits are their logs, clipped below at 1e-12. Samples
    (MC dropout, ensembles) are scaled inside their average, where answers may change.
    Guo et al. 2017; Laves et al. 2019, eq. 9.

    >>> preds = Predictions.from_logits([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 4.0]], [0, 0, 1, 0])
    >>> t = Temperature.fit(preds)
    >>> round(t.temperature, 3)
    3.641
    >>> t(preds).confidence
    array([0.75, 0.75, 0.75, 0.75])
    """

    temperature: float
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        if not (isfinite(self.temperature) and self.temperature > 0):
            raise InputError(
                f"temperature is {self.temperature:g}; a finite number above 0 is needed."
            )

    @classmethod
    def fit(
        cls,
        preds: Predictions,
        *,
        objective: Literal["averaged", "per_pass"] = "averaged",
        grid: Sequence[float] | Floats | None = None,
        bounds: tuple[float, float] = (1e-6, 1e6),
    ) -> Temperature:
        """The temperature with the least mean negative log-likelihood.

        One pass: convex in 1/T, solved to 1e-8 of T. Samples: `objective="averaged"` is the
        likelihood of the mean probability, which is not convex and searched within [1e-3, 1e3];
        `"per_pass"` is the mean over the passes (Laves' released code), convex again. `grid` takes
        the best of the given temperatures instead, as Ding does.

        `fitted.status` is "interior"; "lower" or "upper" where the likelihood still grows at that
        bound (all answers right; answers worse than chance); "flat" where all logits of each row
        are equal, with T = 1; or "grid".
        """
        needs_predictions(preds, "Temperature.fit")
        needs_classes(preds, "Temperature")
        found = _search(_possible(preds), objective, grid, bounds)
        _warn_of_flips(preds, found.temperature)
        return cls(
            float(found.temperature),
            Fitted(found.status, preds.n, preds.k, preds.class_names, found.loss),
        )

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions at this temperature: logits stay logits, probabilities stay
        probabilities.
        """
        needs_predictions(preds, "Temperature")
        preds.needs_vector("temperature")
        same_classes(preds, self.fitted and self.fitted.k, self.fitted, "Temperature")
        values = _scaled(members(preds), preds.kind, self.temperature)
        return with_values(preds, preds.kind, values if preds.values.ndim == 3 else values[0])


def _possible(preds: Predictions) -> Predictions:
    """The same with far below the others what is ruled out by -inf, so that it adds nothing and is
    a number.
    """
    v = preds.values
    if preds.kind != "logits" or v.min() > -inf:
        return preds
    out = np.isneginf(v)
    own: Bools = (out if v.ndim == 3 else out[None])[:, np.arange(preds.n), preds.labels]
    wrong = np.flatnonzero(np.logical_and.reduce(own, axis=0))
    if len(wrong):
        i = int(wrong[0])
        need = "the likelihood is 0 at every temperature"
        raise InputError(
            "labels", row=i, got="is a class of logit -inf", need=need, hint="Leave out these rows"
        )
    low = v.max(axis=-1, keepdims=True).astype(np.float64) - FAR
    return replace(preds, values=np.where(out, low, v))


def _scaled(values: Array, kind: str, t: float) -> Floats:
    """All members at temperature t."""
    out = np.empty(values.shape)
    for member, scaled in zip(values, out, strict=True):
        for rows in chunks(*member.shape):
            z = as_logits(member[rows], kind) / t
            scaled[rows] = z if kind == "logits" else np.exp(log_softmax(z))
            _keep_top(member[rows], scaled[rows])
    return out


def _keep_top(given: Array, scaled: Floats) -> None:
    """Rounding may make the two largest of a row equal; the one that was largest stays it."""
    top = given.argmax(axis=1)
    row = np.flatnonzero(scaled.argmax(axis=1) != top)
    scaled[row, top[row]] = np.nextafter(scaled[row].max(axis=1, initial=-inf), inf)


def _warn_of_flips(preds: Predictions, t: float) -> None:
    if preds.samples == 1:
        return
    flips = int((Temperature(t)(preds).prediction != preds.prediction).sum())
    if flips:
        warnings.warn(
            f"{flips:,} of {preds.n:,} predictions change at temperature {t:.4g}: the mean over passes is taken after "
            "scaling, so compare accuracies too.",
            stacklevel=3,
        )


class Found(NamedTuple):
    """A temperature, how it was found, and the mean loss there."""

    temperature: float
    status: str
    loss: float


def _search(
    preds: Predictions,
    objective: str,
    grid: Sequence[float] | Floats | None,
    bounds: tuple[float, float],
) -> Found:
    """The temperature with the least loss under `objective`."""
    if objective not in ("averaged", "per_pass"):
        raise InputError(f"objective is {objective!r}; 'averaged' or 'per_pass' is needed.")
    low, high = bounds
    if not (0 < low <= high and isfinite(high)):
        raise InputError(
            f"bounds are {bounds}; two finite temperatures above 0, the lower first, are needed."
        )
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
    """Some samples, then all in single precision, show where to look: then one exact pass is mostly
    enough.
    """
    at, start, every = partial(per_pass, preds), 1.0, preds.n // FIRST
    if every > 1:
        start = least(partial(at, every=every), 1 / high, 1 / low).b
        start = least(partial(at, quick=True), 1 / high, 1 / low, start, close=0.03).b
    found = least(at, 1 / high, 1 / low, start)
    at_end = {"low": high, "high": low}
    return Found(at_end.get(found.at, 1 / found.b), ENDS[found.at], found.loss)


def _valleys(preds: Predictions, low: float, high: float) -> Found:
    """The mean over passes has a loss of several valleys: look on a grid, then go down the best
    one.
    """
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
    """Where f crosses 0 between two places of different sign: the ITP method (Oliveira & Takahashi
    2021).
    """
    at_low, at_high = f(low), f(high)
    if at_low == 0 or at_high == 0:
        return low if at_low == 0 else high
    first, steps = high - low, 0
    while high - low > CLOSE * high:
        middle, chord = (low + high) / 2, (at_high * low - at_low * high) / (at_high - at_low)
        shift = min(0.2 / first * (high - low) ** 2, abs(middle - chord))
        near = chord + copysign(shift, middle - chord)
        reach = max(first * 2.0 ** (1 - steps) - (high - low) / 2, 0.0)
        x = near if abs(near - middle) <= reach else middle - copysign(reach, middle - near)
        value, steps = f(x), steps + 1
        if value == 0:
            return x
        low, at_low, high, at_high = (
            (x, value, high, at_high) if (value < 0) == (at_low < 0) else (low, at_low, x, value)
        )
    return (low + high) / 2
