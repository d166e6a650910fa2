"""choose_calibrator: which correction to trust, judged on samples that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite, isinf, nan
from typing import Any, TypeAlias

import numpy as np

from howsure._core import check
from howsure._core.check import InputError, Ints
from howsure.calibrators import (
    Beta,
    Calibrator,
    Dirichlet,
    HistogramBinning,
    Identity,
    Isotonic,
    MatrixScaling,
    Platt,
    Temperature,
    VectorScaling,
)
from howsure.metrics import correctness_nll, nll
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.uncertainty.intervals import interval, paired_difference

__all__ = ["CALIBRATORS", "Choice", "Contender", "choose_calibrator", "contenders"]

Fit: TypeAlias = Callable[[Predictions], Calibrator]
Metric: TypeAlias = Callable[[Any], float]

CALIBRATORS: dict[str, Fit] = {
    "none": Identity.fit,
    "temperature": Temperature.fit,
    "vector": VectorScaling.fit,
    "matrix": MatrixScaling.fit,
    "dirichlet": Dirichlet.fit,
    "histogram": HistogramBinning.fit,
    "isotonic": Isotonic.fit,
    "platt": Platt.fit,
    "beta": Beta.fit,
}
TOP_LABEL = ("none", "isotonic", "platt", "beta")
SQUARE = ("matrix", "dirichlet")  # k² + k parameters


@dataclass(frozen=True)
class Contender:
    """One calibrator on samples it has not seen: the criterion and how it differs from doing nothing.

    `low`, `high` and the limits of the gain are nan where there are none; `gain` below 0 is better where lower is
    better. `real` says that the limits of the gain exclude 0 on the better side.
    """

    name: str
    value: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    real: bool
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """The outcome of `choose_calibrator`: the table, the winner's name and the winner fitted on all samples.

    >>> preds = Predictions.from_confidence([0.9, 0.9, 0.9, 0.6] * 50, [1, 0, 1, 0] * 50)
    >>> choice = choose_calibrator(preds)
    >>> [row.name for row in choice.table], choice.winner
    (['none', 'isotonic', 'platt', 'beta'], 'isotonic')
    """

    criterion: str
    folds: int
    level: float
    seed: int
    n: int
    table: tuple[Contender, ...]
    winner: str
    calibrator: Calibrator

    def __str__(self) -> str:
        lines = [f"{'calibrator':<12} {self.criterion:>9}   {self.level:.0%} interval      against none"]
        lines += [_line(row, "  <- chosen" if row.name == self.winner else "") for row in self.table]
        return "\n".join(lines)


def _line(row: Contender, mark: str) -> str:
    pair: Callable[[float, float], str] = lambda a, b: f"[{a:.4f}, {b:.4f}]" if isfinite(a) and isfinite(b) else ""
    gain = "" if row.name == "none" else f"{row.gain:+.4f} {pair(row.gain_low, row.gain_high)}"
    if row.note and not isfinite(row.value):
        gain = row.note
    return f"{row.name:<12} {row.value:9.4f}   {pair(row.low, row.high):<16}  {gain}{mark}".rstrip()


def choose_calibrator(
    val: Predictions,
    *,
    criterion: Metric | None = None,
    calibrators: Mapping[str, Fit] | None = None,
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
) -> Choice:
    """Fit every calibrator on all folds but one, judge it on the one left out, and take the best that is truly better.

    Each sample is judged by a fit that has not seen it. A calibrator beats "none" only if the paired interval of the
    difference excludes 0, at a level shared among the calibrators (1 − (1 − level)/m for m of them), so that trying
    many does not make a gain. Among those the best value wins; none of them: "none". The winner is then fitted
    on all samples. `criterion` is any metric, by default `nll` (`correctness_nll` for top labels); `ece`, `aece` and
    `aurc` are usual too. Folds keep whole groups together, else they spread each class evenly. Calibrators with
    more parameters than samples are left out. The protocol of Vemuri 2020, figure 6.3, made robust.

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 600)
    >>> logits = 3 * (rng.normal(size=(600, 3)) + 2 * np.eye(3)[labels])
    >>> choice = choose_calibrator(Predictions.from_logits(logits, labels), folds=3)
    >>> choice.winner
    'temperature'
    """
    metric = criterion or (correctness_nll if val.kind == "confidence" else nll)
    fits = {"none": Identity.fit} | dict(calibrators or contenders(val))
    fold = _folds(val, check.at_least(folds, 2, "folds"), seed)
    levels = level, 1 - (1 - level) / max(1, len(fits) - 1)
    rows = [_judged(name, _unseen(val, fit, fold), val, metric, levels, seed) for name, fit in fits.items()]
    winner = _winner(rows, _lower(metric))
    return Choice(_name(metric), folds, level, seed, val.n, tuple(rows), winner, fits[winner](val))


def contenders(preds: Predictions) -> dict[str, Fit]:
    """The calibrators that can be fitted on such predictions, by name."""
    if preds.kind == "confidence":
        return {name: CALIBRATORS[name] for name in TOP_LABEL}
    k = preds.k or 0
    left_out = SQUARE if k * k + k > preds.n else ()
    return {name: fit for name, fit in CALIBRATORS.items() if name not in left_out}


def _folds(val: Predictions, folds: int, seed: int) -> Ints:
    """The fold of each sample: groups stay together, else each class is dealt out evenly."""
    rng = np.random.default_rng(seed)
    if val.group is not None:
        names, where = np.unique(val.group, return_inverse=True)
        _enough(len(names), folds, "groups")
        return (rng.permutation(len(names)) % folds)[where]
    _enough(val.n, folds, "samples")
    kind = val.correct if val.kind == "confidence" else val.labels
    order = np.lexsort((rng.permutation(val.n), kind))
    out = np.empty(val.n, dtype=np.int64)
    out[order] = np.arange(val.n) % folds
    return out


def _enough(n: int, folds: int, what: str) -> None:
    if n < folds:
        raise InputError(f"{n} {what} cannot be dealt into {folds} folds; take fewer folds or more {what}.")


def _unseen(val: Predictions, fit: Fit, fold: Ints) -> Predictions | str:
    """Predictions of every sample by a fit without its fold; the reason where a fit is not possible."""
    parts: list[Predictions] = []
    for j in range(int(fold.max()) + 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a fit that is too sure shows in the criterion
                parts.append(fit(val[fold != j])(val[fold == j]))
        except InputError as e:
            return f"not fitted: {e}"
    axis = 0 if val.kind == "confidence" else -2
    place = np.argsort(np.argsort(fold, kind="stable"))  # folds one after the other → the order of the samples
    values = np.take(np.concatenate([part.values for part in parts], axis=axis), place, axis=axis)
    return replace(val, kind=parts[0].kind, values=values)


def _judged(
    name: str, made: Predictions | str, none: Predictions, metric: Metric, levels: tuple[float, float], seed: int
) -> Contender:
    """One row of the table."""
    if isinstance(made, str):
        return Contender(name, nan, nan, nan, nan, nan, nan, False, made)
    level, shared = levels
    value = value_of(metric, made)
    low, high = limits_of(metric, made, level, seed)
    if name == "none":
        return Contender(name, value, low, high, 0.0, nan, nan, False)
    gain = gain_of(metric, made, none, shared, seed)
    return Contender(name, value, low, high, *gain, is_real(gain, _lower(metric)))


def value_of(metric: Metric, preds: Predictions) -> float:
    """The metric of predictions, whatever it takes."""
    takes = getattr(getattr(metric, "func", metric), "takes", "tally")  # also of functools.partial
    return float(metric(preds if takes == "predictions" else Outcomes.of(preds).tally()))


def limits_of(metric: Metric, preds: Predictions, level: float, seed: int) -> tuple[float, float]:
    """Its interval; (nan, nan) where there is none."""
    return interval(metric, preds, level, seed) if isfinite(value_of(metric, preds)) else (nan, nan)


def gain_of(
    metric: Metric, made: Predictions, none: Predictions, level: float, seed: int
) -> tuple[float, float, float]:
    """metric(made) − metric(none) with paired limits; a difference with an infinite value has none."""
    difference = value_of(metric, made) - value_of(metric, none)
    return paired_difference(metric, made, none, level, seed) if isfinite(difference) else (difference, nan, nan)


def is_real(gain: tuple[float, float, float], lower: bool) -> bool:
    """Whether a difference is on the better side for certain: its limits exclude 0, or it is infinite."""
    difference, low, high = gain
    if isinf(difference):  # one side claims 0 for what happened: no resampling is needed to tell them apart
        return (difference < 0) == lower
    return high < 0 if lower else low > 0


def _winner(rows: list[Contender], lower: bool) -> str:
    real = [row for row in rows if row.real]
    if not real:
        return "none"
    return min(real, key=lambda row: row.value if lower else -row.value).name


def _lower(metric: Metric) -> bool:
    return getattr(metric, "better", "lower") == "lower"


def _name(metric: Metric) -> str:
    return getattr(metric, "__name__", "criterion")
