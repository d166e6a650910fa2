"""Sums that need the probabilities of all classes: proper scores, class by class counts, a sample of single answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from howsure import losses
from howsure._core.check import Array, Floats, Ints
from howsure._core.exact import exact_sum, fixed_sums
from howsure.binning import equal_range
from howsure.predictions import Predictions
from howsure.predictions.columns import mean_probs
from howsure.report.catalogue import TOP_K
from howsure.report.views import BARS, DOTS, fates

BINS = 15  # of the class-wise ECE


class Moments(NamedTuple):
    """Exact sums of a loss and of its square, in units of 2^-1127, and how often it is infinite."""

    first: int
    second: int
    infinite: int


@dataclass(frozen=True, eq=False)
class Vectors:
    """Mergeable sums of predictions that hold all classes."""

    losses: dict[str, Moments]  # nll, brier, top_k
    count: Ints  # samples per true class
    given: Ints  # answers per class
    hits: Ints  # right ones among them
    claim: Ints  # summed confidence per answer, fixed point
    bins: Ints  # summed probability per class and bin, fixed point
    true: Ints  # samples of the class per class and bin
    near: Ints  # wrong answers with the label among the five most probable, per bar of the histogram
    sample: Array  # columns order, score, loss, fate; the least orders of all rows


def vectors(preds: Predictions, score: Floats, salt: int, row: int) -> Vectors:
    """The sums of one run of rows."""
    k = preds.values.shape[-1]
    y, said, right = preds.labels, preds.prediction, preds.correct
    p = np.clip(mean_probs(preds.raw), 0.0, 1.0)
    cell = np.searchsorted(equal_range(BINS).edges()[1:-1], p.ravel(), side="left").reshape(p.shape)
    cell += np.arange(k) * BINS
    fate = fates(preds)
    near = score[(fate == 1) & (score >= 0) & (score <= 1)]
    return Vectors(
        {name: moments(loss) for name, loss in _losses(preds).items()},
        np.bincount(y, minlength=k),
        np.bincount(said, minlength=k),
        np.bincount(y[right], minlength=k),
        fixed_sums(said, preds.confidence, k),
        fixed_sums(cell.ravel(), p.ravel(), k * BINS),
        np.bincount(cell[np.arange(len(p)), y], minlength=k * BINS),
        np.histogram(near, BARS, (0, 1))[0],
        _sample(losses.nll(preds), score, fate, salt, row),
    )


def _losses(preds: Predictions) -> dict[str, Floats]:
    few = preds.k is None or preds.k <= TOP_K
    top = {} if few else {f"top_{TOP_K}": losses.top_k(TOP_K)(preds)}
    return {"nll": losses.nll(preds), "brier": losses.brier(preds), **top}


def moments(loss: Floats) -> Moments:
    """Sums of the finite losses, and the number of the others.

    >>> moments(np.array([1.0, np.inf])).infinite
    1
    """
    finite = loss[np.isfinite(loss)]
    return Moments(exact_sum(finite), exact_sum(finite * finite), len(loss) - len(finite))


def add_vectors(a: Vectors, b: Vectors) -> Vectors:
    """The sums of both."""
    both = {name: Moments(*(x + y for x, y in zip(a.losses[name], b.losses[name], strict=True))) for name in a.losses}
    names = ("count", "given", "hits", "claim", "bins", "true", "near")
    columns = {name: getattr(a, name) + getattr(b, name) for name in names}
    return Vectors(both, **columns, sample=_least(np.concatenate((a.sample, b.sample))))


def _sample(loss: Floats, score: Floats, fate: Ints, salt: int, row: int) -> Array:
    """The rows whose scrambled number is least: the same sample however the rows were cut into parts."""
    order = scrambled(salt, np.arange(row, row + len(loss), dtype=np.uint64))
    shown = np.isfinite(loss) & np.isfinite(score)
    return _least(np.stack([c[shown].astype(np.float64) for c in (order, score, loss, fate)], axis=1))


def _least(rows: Array) -> Array:
    return rows[np.lexsort(rows.T[::-1])][:DOTS]


def scrambled(salt: int, row: Array) -> Floats:
    """A number in [0, 1) for each row of a file that looks random: the finaliser of splitmix64.

    >>> scrambled(0, np.arange(2, dtype=np.uint64)).round(3)
    array([0.883, 0.432])
    """
    with np.errstate(over="ignore"):
        z = (row + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
