"""Histogram binning and isotonic regression: maps by counting, without a curve in mind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.binning import equal_range
from howsure.calibrators.calibrator import (
    Fitted,
    check_samples,
    collect_targets,
    map_probabilities,
    read_probabilities,
    record_fit,
    scale_floor,
    takes_arrays,
)
from howsure.predictions import Predictions, needs_predictions
from howsure.tallies.tally import Counts, Tally


@frozen(eq=False)
class HistogramBinning:
    r"""For each class, M equal bins of its probability; each bin answers with the share of that
    class in it.

    .. math:: \theta_{km} = \frac{\sum_i 1[y_i = k,\ p_{ik} \in B_m]}{\sum_i 1[p_{ik} \in B_m]}

    Bin m is ((m−1)/M, m/M], and 0 belongs to the first; an empty bin answers with its middle. Rows are divided by
    their sum, so more than M confidences occur; a row of zeros keeps what it was. Answers may change, and the ranking
    inside a bin is lost. Shares of exactly 0 and 1 occur unless `floor` keeps them away. Zadrozny & Elkan 2001; Vemuri
    2020, chapter 5.

    >>> preds = Predictions.from_probs([[0.9, 0.1]] * 4 + [[0.2, 0.8]] * 2, [0, 0, 0, 1, 1, 1])
    >>> HistogramBinning.fit(preds, bins=2)(preds).probs[[0, 4]]
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """

    share: Floats  # (k, bins): how often the class came true in each bin
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        share = self.share
        if share.ndim != 2 or not share.size or not ((share >= 0) & (share <= 1)).all():
            raise InputError("share needs one row of numbers in [0, 1] for each class.")

    @takes_arrays
    @classmethod
    def fit(cls, preds: Predictions, *, bins: int = 15, floor: float = 0.0) -> HistogramBinning:
        """Count, bin by bin, all classes in one pass.

        `floor` bounds the shares away from 0 and 1: a bin of c samples counts at least `floor` of
        them as the class and as another one. 0.5 is half a sample.
        """
        checks.at_least(bins, 1, "the number of bins")
        check_samples(preds, "HistogramBinning")
        least = scale_floor(preds, floor)
        k = preds.k or 0
        total, right = np.zeros(k * bins), np.zeros(k * bins)
        for rows, p in read_probabilities(preds):
            place, labels = _find_bins(p, bins), preds.labels[rows]
            weight = of_classes = None
            if preds.weight is not None:
                weight = preds.weight[rows]
                of_classes = np.tile(weight, k)
            total += count_values(place.ravel(), of_classes, minlength=k * bins)
            own = place[labels, np.arange(len(labels))]
            right += count_values(own, weight, minlength=k * bins)
        total, right = total.reshape(k, bins), right.reshape(k, bins)
        some = total > 0
        half = np.minimum(least, total / 2)
        counted = np.clip(right, half, total - half) / np.where(some, total, 1.0)
        middle = (np.arange(bins, dtype=np.float64) + 0.5) / bins
        made = cls(share=np.where(some, np.minimum(counted, 1.0), middle))
        return replace(made, fitted=record_fit(preds, made, measured=True))

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions as the bins answer, as probabilities."""
        needs_predictions(preds, "HistogramBinning")
        preds.needs_vector("histogram binning")
        return map_probabilities(
            preds, len(self.share), self.fitted, what="HistogramBinning", apply=self.map_values
        )

    def map_values(self, p: Floats) -> Floats:
        """The answers to probabilities that have a row for each class."""
        return self.share.ravel()[_find_bins(p, self.share.shape[1])]


def _find_bins(p: Floats, bins: int) -> Array:
    """The bin of each probability, those of a class after those of the one before."""
    edges = equal_range(bins).edges()
    at = np.minimum((p * bins).astype(np.int32), bins - 1)
    # A product is rounded, so the edges decide between neighbours.
    at -= p <= np.concatenate(([-1.0], edges[1:-1]))[at]
    at += p > np.concatenate((edges[1:-1], [2.0]))[at]
    return at + bins * np.arange(len(p))[:, None]


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
        start = self.start
        size = np.diff(start)
        if start.ndim != 1 or len(start) < 2 or start[0] != 0 or not (size > 0).all():
            raise InputError("start must rise from 0, one step for each map.")
        if self.x.shape != self.y.shape or self.x.shape != (int(start[-1]),):
            raise InputError(
                f"x has shape {self.x.shape} and y {self.y.shape}; {start[-1]} points are needed."
            )
        rises = (np.diff(self.x) > 0) & (np.diff(self.y) >= 0)
        rises[start[1:-1] - 1] = True  # from one map to the next anything goes
        inside = (self.y >= 0) & (self.y <= 1)
        inside[1:] &= rises
        bad = np.flatnonzero(~inside)
        if len(bad):
            j = int(np.searchsorted(start, int(bad[0]), side="right")) - 1
            raise InputError(f"map {j} falls somewhere or leaves [0, 1].")

    @takes_arrays
    @classmethod
    def fit(cls, preds: Predictions, *, floor: float = 0.0, measured: bool = True) -> Isotonic:
        """Pool adjacent violators for each class: one sort, then time linear in the number of
        errors.

        `floor` bounds the two end steps away from 0 and 1, where a single new sample may cost an
        infinite loss: a step of c samples counts at least `floor` of them as right and as wrong.
        0.5 is half a sample. Without `measured` the loss of these samples is left out.
        """
        from howsure.tallies.building import tally

        least = scale_floor(preds, floor)
        given, came = collect_targets(preds, "Isotonic")
        steps: list[RisingSteps] = []
        for j, p in enumerate(given):
            steps.append(pool_steps(tally(p, correct=came == j, weight=preds.weight), least))
        points = [step.list_points() for step in steps]
        made = cls(
            x=np.concatenate([x for x, _ in points]),
            y=np.concatenate([y for _, y in points]),
            start=np.cumsum([0, *(len(x) for x, _ in points)]),
            top_label=not preds.vectors,
        )
        if not made.top_label:
            return replace(made, fitted=record_fit(preds, made, measured))
        fitted = Fitted(
            status="converged",
            n=preds.n,
            k=None,
            class_names=preds.class_names,
            nll=steps[0].compute_nll(),
        )
        return replace(made, fitted=fitted)

    def points(self, j: int) -> tuple[Floats, Floats]:
        """Points and values of the map of class j."""
        rows = slice(self.start[j], self.start[j + 1])
        return self.x[rows], self.y[rows]

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions through the maps, as probabilities or as a confidence."""
        needs_predictions(preds, "Isotonic")
        k = None if self.top_label else len(self.start) - 1
        return map_probabilities(preds, k, self.fitted, what="Isotonic", apply=self.map_values)

    def map_values(self, p: Floats) -> Floats:
        """The maps at probabilities that have a row for each class."""
        rows: list[Floats] = [np.interp(row, *self.points(j)) for j, row in enumerate(p)]
        return np.stack(rows)


def fit_score_steps(
    scores: Floats, came: Ints, weight: Floats | None = None
) -> list[tuple[Floats, Floats]]:
    """Points and values of the best rising map of each row of any scores; `came` is the row that
    came true.

    >>> fit_score_steps(np.array([[-2.0, 0.5, 3.0, 7.0]]), np.array([1, 0, 1, 0]))
    [(array([-2. ,  0.5,  3. ,  7. ]), array([0. , 0.5, 0.5, 1. ]))]
    """
    from howsure.tallies.building import tally

    tallies = [tally(row, correct=came == j, weight=weight) for j, row in enumerate(scores)]
    return [pool_steps(t).list_points() for t in tallies]


@frozen(eq=False)
class RisingSteps:
    """The steps of one map, lowest first: its ends, its samples, those that came true, and its
    value.
    """

    low: Floats
    high: Floats
    count: Counts
    right: Counts
    value: Floats

    def list_points(self) -> tuple[Floats, Floats]:
        """Both ends of every step with its value; a step at a single place is one point."""
        x = np.stack((self.low, self.high), axis=1)
        y = np.stack((self.value, self.value), axis=1)
        keep = np.stack((np.ones(len(x), dtype=bool), self.low < self.high), axis=1)
        return x[keep], y[keep]

    def compute_nll(self) -> float:
        """The mean loss of the samples, which the steps tell without being asked one by one."""
        total = 0.0
        with np.errstate(divide="ignore"):
            for count, p in ((self.right, self.value), (self.count - self.right, 1 - self.value)):
                some = count > 0
                total += np.dot(count[some], np.log(p[some]))
        return -float(total / self.count.sum())


def pool_steps(t: Tally, least: float = 0.0) -> RisingSteps:
    """Pool adjacent violators; `least` samples keep the end steps away from 0 and 1."""
    from howsure.tallies.building import pool_adjacent_violators

    blocks = pool_adjacent_violators(t)
    count = blocks.count[::-1]
    right = (blocks.count - blocks.loss)[::-1]
    value = np.maximum.accumulate(right / count)  # sums of weights are rounded
    half = np.minimum(least, count / 2)
    value[0] = max(value[0], min(half[0] / count[0], *value[1:2], 1.0))
    value[-1] = min(value[-1], max(1 - half[-1] / count[-1], *value[-2:-1], 0.0))
    return RisingSteps(
        low=blocks.low[::-1], high=blocks.high[::-1], count=count, right=right, value=value
    )
