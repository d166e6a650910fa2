"""Binnings: values passed as `bins=`. Each maps a tally to cuts, ranks counted from the most
trusted.

No binning splits a tie block, so binned numbers never depend on the order of the samples.
"""

from __future__ import annotations

from math import inf
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import sort_distinct, sum_runs
from howsure.tallies.tally import Counts, RangeSums, Tally, needs_whole_counts

__all__ = ["adaptive", "adaptive_reference", "equal_range", "equal_size", "unique"]

USUAL_LEVEL, USUAL_Z = 0.8, 1.2815515655446008  # of bins that grow: the normal quantile at 0.9
# What the authors' released code uses.
REFERENCE_Z = 1.645
REFERENCE_TAIL = 40
REFERENCE_MARGIN = 0.05


class Binning(Protocol):
    """Anything that maps a tally to its cuts, from 0 to n."""

    def cuts(self, t: Tally) -> Counts:
        """Where the bins end, as ranks."""
        ...


class RankedScores(Protocol):
    """Scores by rank: all that growing bins need of a tally."""

    @property
    def n(self) -> int | float: ...

    def score_at(self, rank: int) -> float: ...

    def score_range(self) -> tuple[float, float]: ...


_ADAPTIVE_CUTS: WeakKeyDictionary[Tally, dict[Binning, Counts]] = WeakKeyDictionary()


def sum_bins(bins: Binning, t: Tally) -> RangeSums:
    """Sums over the samples of each bin, most trusted bin first."""
    if not callable(getattr(bins, "cuts", None)):
        raise InputError(f"bins={bins!r}; a binning is needed, such as equal_range(15).")
    return t.between(find_cuts(bins, t))


def compute_grade_variance(count: Floats, loss: Floats, square: Floats) -> Floats:
    """The sample variance of graded losses in each bin, from their number, sum and sum of squares.

    Where all are equal nothing tells how they vary: the variance of (sum + ½)/(n + 1) as a
    proportion.

    >>> compute_grade_variance(np.array([2.0, 3.0]), np.array([1.0, 0.0]), np.array([0.625, 0.0]))
    array([0.125  , 0.109375])
    """
    deviations = square - loss * loss / count
    p = (loss + 0.5) / (count + 1)
    equal = deviations <= 1e-12 * np.maximum(square, 1e-300)
    return np.where(equal, p * (1 - p), deviations / np.maximum(count - 1, 1))


def find_cuts(bins: Binning, t: Tally) -> Counts:
    """`bins.cuts(t)`, found once for a tally: growing bins costs more than summing them."""
    if not isinstance(bins, adaptive):
        return bins.cuts(t)
    known = _ADAPTIVE_CUTS.setdefault(t, {})
    if bins not in known:
        known[bins] = bins.cuts(t)
    return known[bins]


def _close_cuts(cuts: Counts, t: Tally) -> Counts:
    """Strictly increasing cuts from 0 to n: empty bins are dropped."""
    return sort_distinct(np.concatenate((cuts[:0], [0], cuts, [t.n])))


@frozen
class equal_range:
    """M bins of equal width: bin j is ((j-1)/M, j/M], and a score of 0 belongs to the first.

    Empty bins are dropped. Naeini et al. 2015; Ding uses M = 10, Vemuri and Laves M = 15.

    >>> from howsure import tally
    >>> equal_range(10).cuts(tally([0.1, 0.95], correct=[1, 1])).tolist()
    [0, 1, 2]
    """

    m: int = 15

    def __post_init__(self) -> None:
        checks.at_least(self.m, 1, "the number of bins")

    def edges(self) -> Floats:
        """Nominal edges 0, 1/M, ..., 1; one division each, so 3/10 is exactly what a user would
        type.
        """
        return np.arange(self.m + 1) / self.m

    def cuts(self, t: Tally) -> Counts:
        return _close_cuts(t.above(self.edges()[1:-1]), t)


@frozen
class equal_size:
    """M bins of equally many samples: a tie block whose first rank is s goes to bin floor(M s / n).

    Sizes differ by at most 1 without ties; with ties some bins may be empty and are dropped.

    >>> from howsure import tally
    >>> equal_size(2).cuts(tally([0.1, 0.5, 0.5, 0.9], correct=[1, 1, 0, 1])).tolist()
    [0, 3, 4]
    """

    m: int = 15

    def __post_init__(self) -> None:
        checks.at_least(self.m, 1, "the number of bins")

    def cuts(self, t: Tally) -> Counts:
        j = range(1, self.m)
        if isinstance(t.n, int):  # rounded up, in Python's whole numbers: i * n may leave int64
            ranks = np.asarray([-(-i * t.n // self.m) for i in j], dtype=np.int64)
        else:
            ranks = np.asarray([i * t.n / self.m for i in j], dtype=np.float64)
        return _close_cuts(t.cut_at(ranks), t)


@frozen
class unique:
    """One bin per distinct score: the ground truth of Ding 2019, eq. 6.

    >>> from howsure import tally
    >>> unique().cuts(tally([0.1, 0.5, 0.5], correct=[1, 1, 0])).tolist()
    [0, 2, 3]
    """

    def cuts(self, t: Tally) -> Counts:
        return _close_cuts(np.cumsum(t.count), t)


@frozen
class adaptive:
    """Bins as narrow as their accuracy can still be estimated (Ding 2019 and 2020, section 4.2).

    From the most trusted down, a bin closes as soon as its count exceeds 0.25 (z / width)^2: then
    the normal interval of its accuracy at `level` is narrower than the bin is wide. No bin starts
    with `tail` or fewer samples left or with a score within `margin` of the lowest; the last bin is
    topped up from the others. The authors write 80 % (z = 1.2816); their released code uses z =
    1.645, which `z=` reproduces.

    >>> from howsure import tally
    >>> adaptive().cuts(tally([0.9, 0.8], correct=[1, 0])).tolist()
    [0, 2]
    """

    level: float = USUAL_LEVEL
    z: float | None = None
    tail: int = 40
    margin: float = 0.05

    def __post_init__(self) -> None:
        if self.z is None and not 0 < self.level < 1:
            raise InputError(f"level is {self.level:g}; a number between 0 and 1 is needed.")
        if self.z is not None and not self.z > 0:
            raise InputError(f"z is {self.z:g}; a positive number is needed.")
        checks.at_least(self.tail, 0, "tail")
        if not self.margin >= 0:
            raise InputError(f"margin is {self.margin:g}; a number that is not negative is needed.")

    def cuts(self, t: Tally) -> Counts:
        needs_whole_counts(t, "adaptive", "equal_size")
        z = self.z
        if z is None and self.level == USUAL_LEVEL:
            z = USUAL_Z
        elif z is None:
            from statistics import NormalDist  # a dozen modules that nothing else needs

            z = NormalDist().inv_cdf(0.5 + self.level / 2)
        ends, target = _grow_bins(t, z, self.tail, self.margin)
        ends = top_up_last_bin(ends, target)
        return _close_cuts(t.cut_at(np.asarray(ends[1:-1], dtype=np.int64)), t)


def _grow_bins(t: RankedScores, z: float, tail: int, margin: float) -> tuple[list[int], float]:
    """Step 1: cuts from 0 to n, and the count that the last bin would want."""
    n, lowest = int(t.n), t.score_range()[0]
    ends = [0]
    while True:
        start = ends[-1]
        top = t.score_at(start)
        # The first end with more than enough samples: both sides are monotone in it, so bisect.
        low, high = start + 1, n
        while low < high:
            end = (low + high) // 2
            if end - start > count_wanted(top, t.score_at(end - 1), z):
                high = end
            else:
                low = end + 1
        if low >= n or n - low <= tail or not t.score_at(low - 1) - lowest > margin:
            return [*ends, n], count_wanted(top, lowest, z)
        ends.append(low)


def count_wanted(high: float, low: float, z: float) -> float:
    """How many samples a bin of this width must exceed."""
    if high == low:
        return inf
    ratio = z / (high - low)
    return 0.25 * ratio * ratio  # inf where scores are nearly equal; ** would raise


def top_up_last_bin(ends: list[int], target: float) -> list[int]:
    """Step 2: take from the other bins what the last one lacks, unless a bin would become empty."""
    count = _move_to_last_bin(np.diff(ends), target)
    if (count <= 0).any():
        return ends
    return [0, *np.cumsum(count).tolist()]


def _move_to_last_bin(count: Ints, target: float) -> Ints:
    last = int(count[-1])
    if len(count) < 2 or target <= last or target == inf:
        return count
    # The share is proportional to the last bin's own count, an apparent slip of the released code
    # that is kept so that results agree.
    n = int(count.sum())
    take = int(min((target - last) * last / n, n))  # n empties every bin, as more would
    return np.append(count[:-1] - take, last + take * (len(count) - 1))


@frozen(eq=False)
class ReferenceBins:
    """What the authors' released code computes."""

    ece: float
    mce: float
    count: Ints
    confidence: Floats
    accuracy: Floats


def adaptive_reference(score: ArrayLike, correct: ArrayLike) -> ReferenceBins:
    """Ding's adaptive binning as released: z = 1.645, ties in input order, so it depends on row
    order.

    Only for reproducing the authors' numbers; use `adaptive` otherwise. Raises where their code
    breaks.

    >>> round(adaptive_reference([0.9, 0.6], [1, 0]).ece, 3)
    0.25
    """
    s = checks.column(score, "score").astype(np.float64)
    c = checks.same_length(checks.zero_one(correct, "correct"), "correct", len(s), "score")
    order = np.argsort(-s, kind="stable")
    ordered, right = s[order], c[order].astype(np.float64)
    n, single = len(s), _SingleScores(ordered)  # ties are samples like any other
    ends, target = _grow_bins(single, REFERENCE_Z, REFERENCE_TAIL, REFERENCE_MARGIN)
    if target == inf and n > 1:
        raise InputError(
            "the released code breaks when all scores of the last bin are equal; use adaptive()."
        )
    count = _move_to_last_bin(np.diff(ends), target)
    if n < 2 or (count <= 0).any():
        raise InputError(
            "the released code breaks on this input (one value in the last bin); use adaptive()."
        )
    start = np.cumsum(count) - count
    confidence = sum_runs(ordered, start) / count
    accuracy = sum_runs(right, start) / count
    gap = np.abs(confidence - accuracy)
    return ReferenceBins(
        ece=float((gap * count).sum() / n),
        mce=float(gap.max()),
        count=count,
        confidence=confidence,
        accuracy=accuracy,
    )


class _SingleScores:
    """Descending scores, one rank each."""

    def __init__(self, scores: Floats):
        self.scores, self.n = scores, len(scores)

    def score_at(self, rank: int) -> float:
        """Score at a rank."""
        return float(self.scores[rank])

    def score_range(self) -> tuple[float, float]:
        """Lowest and highest score."""
        return float(self.scores[-1]), float(self.scores[0])
