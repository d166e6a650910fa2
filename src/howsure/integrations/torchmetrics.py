"""For torchmetrics: metrics in constant memory that give the same bits for any number of processes.

The state of a ranking or calibration metric is the grid of a compact tally: for each of some 25,000
fixed buckets of the confidence how many answers fell into it, how many of them were wrong, and how
far they lie below its upper edge, all in whole numbers. Sums of whole numbers do not depend on
their order, so two processes that share the data compute what one process computes, bit for bit. Up
to 10,000 samples the confidences themselves are kept as well, and the value is that of all of them,
exactly. Needs the extra `torchmetrics`.

>>> import torch
>>> metric = ECE(outputs="probs")
>>> metric.update(torch.tensor([[0.9, 0.1], [0.4, 0.6]]), torch.tensor([0, 0]))
>>> round(metric.compute().item(), 2)
0.35
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from math import inf, nan
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from howsure import losses, metrics
from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints, need
from howsure.predictions import Predictions
from howsure.predictions.frames import OutputKind, build_batch, check_output_kind
from howsure.tallies.buckets import from_buckets, make_grid
from howsure.tallies.building import tally
from howsure.tallies.tally import Tally

need("torch", for_="howsure.integrations.torchmetrics", extra="torchmetrics")
need("torchmetrics", for_="howsure.integrations.torchmetrics", extra="torchmetrics")

import torch  # noqa: E402
from torchmetrics import Metric  # noqa: E402

__all__ = [
    "AECE",
    "AUGRC",
    "AUPR",
    "AURC",
    "AUROC",
    "EAURC",
    "ECE",
    "MCE",
    "NLL",
    "Accuracy",
    "Brier",
    "CoverageAtRisk",
    "LossMetric",
    "PredictionMetric",
    "TallyMetric",
]


EXACT_SAMPLES = 10_000  # samples that are kept one by one: 80 KB
BUCKET_STEPS = 1 << 30  # of a bucket: 2^33 samples of one bucket fit into 64 bits
LOSS_PARTS = 1 << 32  # of 1: 2^31 samples fit
LARGEST_LOSS = 2.0**31  # the largest loss, so that 2^31 samples fit


class Portions(NamedTuple):
    """A sum of n losses: how many are infinite, and the others in whole numbers and parts of 2^-32."""

    n: int
    infinite: int
    whole: int
    parts: int


class PredictionMetric(Metric):
    """What all metrics here share: `outputs` says whether a batch holds "logits" or "probs";
    nothing is guessed.

    `update(preds, target)` takes (n, k) with labels (n,), for pixels (n, k, ...) with (n, ...), and
    for two classes also the number of class 1 alone, (n,). Labels equal to `ignore_index` do not
    count.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self, *, outputs: OutputKind, ignore_index: int | None = None, **kwargs: object
    ) -> None:
        super().__init__(**kwargs)
        self.outputs: OutputKind = check_output_kind(outputs)
        self.ignore_index = ignore_index

    def update(self, preds: object, target: object) -> None:
        """Count a batch."""
        rows, labels = self._to_array(preds), self._to_array(target)
        given = build_batch(rows, labels, self.outputs, class_axis=1, ignore=self.ignore_index)
        if given is not None:
            self._count(given)

    def _to_array(self, given: object) -> object:
        """A tensor as an array; everything else unchanged, for the checks that follow."""
        if not isinstance(given, torch.Tensor):
            return given
        if (
            given.dtype == torch.bfloat16
        ):  # NumPy has none. float16 keeps its digits in [0, 1], and its tolerance.
            given = given.to(torch.float16 if self.outputs == "probs" else torch.float32)
        return given.detach().cpu().numpy()

    def _count(self, preds: Predictions) -> None:
        raise NotImplementedError

    def _add_states(self, names: tuple[str, ...], *shape: int) -> None:
        for name in names:
            self.add_state(name, torch.zeros(shape, dtype=torch.int64), dist_reduce_fx="sum")

    def _get_states(self, names: tuple[str, ...]) -> list[Array]:
        return [getattr(self, name).cpu().numpy() for name in names]

    def _make_result(self, value: float) -> torch.Tensor:
        dtype = (
            torch.float32 if self.device.type == "mps" else torch.float64
        )  # mps knows no float64
        return torch.tensor(value, dtype=dtype, device=self.device)

    def set_dtype(self, dst_type: str | torch.dtype) -> Self:  # noqa: ARG002  the name is given by torchmetrics
        """Return `self`: counts stay whole numbers in any precision of the model."""
        return self


class TallyMetric(PredictionMetric):
    """A metric of the tally of confidences; a subclass names it: `class MyMetric(TallyMetric,
    measure=function)`.

    Options of `measure` are given by name, as in `ECE(outputs="logits", bins=equal_size(15))`; the
    other names are torchmetrics' own. Up to 10,000 samples of all processes together the value is
    exact. With more, confidences of one bucket count as ties, so the value is that of
    `Tally.compact`: calibration errors of the usual equal-range bins are exact, AURC is good to
    about 1e-6. It costs 680 KB for 25,000 `buckets`, whatever the number of samples. Before the
    first `update` the value is not a number.
    """

    measure: ClassVar[Callable[..., float]]
    STATES = ("count", "wrong", "below")
    if (
        TYPE_CHECKING
    ):  # an annotation at run time would stop `torch.jit.script`, which reads no postponed ones
        single: torch.Tensor

    def __init_subclass__(
        cls, *, measure: Callable[..., float] | None = None, **kwargs: object
    ) -> None:
        super().__init_subclass__(**kwargs)
        if measure is not None:
            cls.measure = staticmethod(measure)
            cls.higher_is_better = getattr(measure, "better", None) == "higher"
            cls.plot_lower_bound, cls.plot_upper_bound = getattr(measure, "bounds", (None, None))

    def __init__(
        self,
        *,
        outputs: OutputKind,
        buckets: int = 25_000,
        ignore_index: int | None = None,
        **kwargs: object,
    ):
        known = signature(self.measure).parameters
        super().__init__(
            outputs=outputs,
            ignore_index=ignore_index,
            **{k: v for k, v in kwargs.items() if k not in known},
        )
        self.options = {name: value for name, value in kwargs.items() if name in known}
        self.buckets = buckets
        self._add_states(self.STATES, len(make_grid(buckets)))
        self.add_state(
            "single",
            torch.full((EXACT_SAMPLES,), -1, dtype=torch.int64),
            dist_reduce_fx=concat_samples,
        )

    def _count(self, preds: Predictions) -> None:
        added = torch.from_numpy(pack_samples(preds.confidence, preds.correct)).to(self.device)
        before = int(self._get_states(("count",))[0].sum())
        self.single = _keep_samples(
            torch.cat((self.single[self.single >= 0], added)), before + len(added)
        )
        bucket, wrong, below = locate_cells(preds.confidence, preds.correct, self.buckets)
        at = torch.from_numpy(bucket).to(self.device)
        for name, values in zip(self.STATES, (np.ones_like(bucket), wrong, below), strict=True):
            added = getattr(self, name).index_add(0, at, torch.from_numpy(values).to(self.device))
            setattr(self, name, added)

    def tally(self) -> Tally | None:
        """What has been counted, for any other metric or curve: exact where few, else compact; None
        before `update`.
        """
        (single,) = self._get_states(("single",))
        count, wrong, below = self._get_states(self.STATES)
        held = single[single >= 0]
        if len(held) == count.sum() > 0:
            return unpack_samples(held)
        return build_grid_tally(count, wrong, below, self.buckets)

    def compute(self) -> torch.Tensor:
        """The metric of everything counted by all processes."""
        t = self.tally()
        return self._make_result(nan if t is None else self.measure(t, **self.options))


class Accuracy(TallyMetric, measure=metrics.accuracy):
    """The share of right answers: `howsure.accuracy`."""


class ECE(TallyMetric, measure=metrics.ece):
    """Expected calibration error: `howsure.ece`, option `bins`."""


class MCE(TallyMetric, measure=metrics.mce):
    """Maximum calibration error: `howsure.mce`, option `bins`."""


class AECE(TallyMetric, measure=metrics.aece):
    """Expected calibration error of adaptive bins: `howsure.aece`, option `bins`."""


class AURC(TallyMetric, measure=metrics.aurc):
    """Area under the risk-coverage curve: `howsure.aurc`, option `variant`."""


class EAURC(TallyMetric, measure=metrics.e_aurc):
    """The part of AURC that a better ranking could save: `howsure.e_aurc`."""


class AUGRC(TallyMetric, measure=metrics.augrc):
    """Area under the generalised risk-coverage curve: `howsure.augrc`."""


class AUROC(TallyMetric, measure=metrics.auroc):
    """AUROC of spotting errors, how well the confidence tells right from wrong: `howsure.auroc`."""


class AUPR(TallyMetric, measure=metrics.aupr):
    """Area under precision and recall of finding errors: `howsure.aupr`, options `positive`,
    `method`.
    """


class CoverageAtRisk(TallyMetric, measure=metrics.coverage_at_risk):
    """The share that can be accepted at a risk: `howsure.coverage_at_risk`, option `risk`."""


class LossMetric(PredictionMetric):
    """A mean loss of whole predictions; a subclass names it: `class MyLoss(LossMetric,
    loss=function)`.

    Whole numbers and parts of 2^-32 are summed apart as integers, so this too is the same for any
    number of processes.
    """

    loss: ClassVar[Callable[[Predictions], Floats]]
    higher_is_better = False
    STATES = Portions._fields

    def __init_subclass__(
        cls, *, loss: Callable[[Predictions], Floats] | None = None, **kwargs: object
    ) -> None:
        super().__init_subclass__(**kwargs)
        if loss is not None:
            cls.loss = staticmethod(loss)

    def __init__(
        self, *, outputs: OutputKind, ignore_index: int | None = None, **kwargs: object
    ) -> None:
        super().__init__(outputs=outputs, ignore_index=ignore_index, **kwargs)
        self._add_states(self.STATES)

    def _count(self, preds: Predictions) -> None:
        for name, value in split_losses(type(self).loss(preds))._asdict().items():
            setattr(self, name, getattr(self, name) + value)

    def compute(self) -> torch.Tensor:
        """The mean over everything counted by all processes."""
        n, infinite, whole, parts = (int(state) for state in self._get_states(self.STATES))
        return self._make_result(mean(Portions(n, infinite, whole, parts)))


class NLL(LossMetric, loss=losses.nll):
    """Mean negative log likelihood, in nats: `howsure.nll`."""


class Brier(LossMetric, loss=losses.brier):
    """Mean squared distance to the one-hot label: `howsure.brier`."""


def pack_samples(score: Floats, correct: Bools) -> Ints:
    """Each score in [0, 1] and its outcome as one whole number, in the order of the scores.

    >>> t = unpack_samples(pack_samples(np.array([0.5, 1.0]), np.array([False, True])))
    >>> t.score, t.loss
    (array([1. , 0.5]), array([0, 1]))
    """
    bits: Ints = (score + 0.0).astype(np.float64).view(np.int64)
    return bits << 1 | ~correct


def unpack_samples(single: Ints) -> Tally:
    """The tally of packed samples."""
    return tally(np.ascontiguousarray(single >> 1).view(np.float64), correct=single & 1 == 0)


def concat_samples(stacked: torch.Tensor) -> torch.Tensor:
    """The samples that several processes keep, or none where they are too many together."""
    held = stacked.reshape(-1)
    held = held[held >= 0]
    return _keep_samples(held, len(held))


def _keep_samples(held: torch.Tensor, of: int) -> torch.Tensor:
    """All `of` samples, sorted, in a fixed number of slots, -1 where free; none where some are
    missing or too many.
    """
    out = torch.full((EXACT_SAMPLES,), -1, dtype=torch.int64, device=held.device)
    if len(held) == of <= EXACT_SAMPLES:
        out[:of] = held.sort().values
    return out


class GridCells(NamedTuple):
    """For each sample the bucket of its score, whether it is wrong, and how far the score is below
    the upper edge.
    """

    bucket: Ints
    wrong: Ints
    below: Ints


def locate_cells(score: Floats, correct: Bools, buckets: int) -> GridCells:
    """Where each score in [0, 1] falls on the grid of compact tallies; `below` counts steps of
    1/2^30 of its bucket.

    Summed claims in floating point would depend on the order of the batches; whole steps do not. A
    step is at most 1/2^30 of the width of a bucket, so the mean claim is off by less than 1e-13
    with the default 25,000 buckets.

    >>> locate_cells(np.array([1.0, 0.5]), np.array([True, False]), 400).wrong
    array([0, 1])
    """
    edges = make_grid(buckets)
    bucket = np.searchsorted(edges, score)
    below = (edges[bucket] - score) / _measure_widths(edges)[bucket]
    return GridCells(
        bucket, (~correct).astype(np.int64), np.rint(below * BUCKET_STEPS).astype(np.int64)
    )


def _measure_widths(edges: Floats) -> Floats:
    """Of each bucket; that of exactly 0 has no width, and nothing falls below its edge."""
    return np.concatenate(([1.0], np.diff(edges)))


def build_grid_tally(count: Ints, wrong: Ints, below: Ints, buckets: int) -> Tally | None:
    """The compact tally of summed cells, as `Tally.compact` makes it; None where nothing was
    counted.

    >>> one = np.eye(1, len(make_grid(400)), k=50, dtype=np.int64)[0]
    >>> build_grid_tally(one, one, 0 * one, 400)
    <Tally: n=1, wrong=1, 1 distinct scores, compacted to 397 fixed buckets>
    """
    edges = make_grid(buckets)
    rows = np.flatnonzero(count)[::-1]
    if not len(rows):
        return None
    n, high, lower = count[rows], edges[rows], np.concatenate(([0.0], edges))[rows]
    mean = high - _measure_widths(edges)[rows] * (below[rows] / n / BUCKET_STEPS)
    score: Floats = np.minimum(
        np.maximum(mean, np.nextafter(lower, 1)), high
    )  # rounding must not leave the bucket
    return from_buckets(score, n, wrong[rows], score * n, edges)


def split_losses(loss: Floats) -> Portions:
    """The losses of a batch; the parts are rounded, each loss by at most 2^-33.

    >>> split_losses(np.array([1.5, 2.5, inf]))
    Portions(n=3, infinite=1, whole=3, parts=4294967296)
    """
    finite = loss[np.isfinite(loss)]
    if (finite > LARGEST_LOSS).any():
        i = checks.find_first(np.isfinite(loss) & (loss > LARGEST_LOSS))
        raise InputError(
            f"the loss of row {i} is {loss[i]:g}, more than {LARGEST_LOSS:g}: these are not sensible logits."
        )
    whole = np.floor(finite)
    parts = np.rint((finite - whole) * LOSS_PARTS)
    return Portions(
        len(loss), len(loss) - len(finite), int(whole.sum()), int(parts.astype(np.int64).sum())
    )


def mean(total: Portions) -> float:
    """The mean loss; not a number where nothing was counted.

    >>> mean(split_losses(np.array([1.5, 2.5])))
    2.0
    """
    if not total.n:
        return nan
    return (
        inf if total.infinite else (total.whole * LOSS_PARTS + total.parts) / (total.n * LOSS_PARTS)
    )
