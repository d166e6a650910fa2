"""Are the claims true? A test of calibration whose null distribution is exact: outcomes redrawn as
claimed.
"""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, repeat_values, sum_runs
from howsure.metrics.binary import positive_outcomes
from howsure.metrics.class_calibration import logit
from howsure.predictions import Outcomes, Predictions
from howsure.tallies.tally import PIECE_ROWS, Counts, Tally, needs_claims, needs_zero_one
from howsure.uncertainty.means import UNSAFE_BELOW_GROUPS, estimate_freedom, student_quantile

__all__ = ["CalibrationTest", "calibration_test"]

MANY_REDRAWS = 9999  # of few samples
FEW_REDRAWS = 999
TEST_SCALES = 7  # 1, 2, 4, ..., 64 intervals of equal information
LEAVES = 1 << (TEST_SCALES - 1)  # the finest of them
MAX_SINGLE_REDRAWS = 2048  # up to so many samples each is drawn by itself, and many times
MAX_REDRAWN_ROWS = 512  # beyond, neighbouring rows share their mean claim
REDRAW_CHUNK_NUMBERS = 1 << 20  # numbers drawn at a time: they stay near the processor
MIN_INTERVAL_VARIANCE = 1.0  # null variance of an interval whose residual tells something
MAX_SIGN_GROUPS = 4096  # groups whose signs are redrawn; 999 signs of each are 8 kB
MIN_INTERVAL_SAMPLES = 60  # effective samples in an interval, where signs of groups are redrawn
MIN_TESTED_GROUP = 30  # rows of a group that is tested by itself, where groups are few
SMALLEST_P, SMALLEST_VARIANCE = 1e-300, 1e-12
SMALLEST_LINE_VARIANCE = 1e-9  # of a direction of the line: below, it tells nothing
STATISTIC_DIGITS = 9  # equal outcomes must tie, however their sums were rounded
POWER_REACH = 3.2  # standard errors of a gap that the test usually finds


class CalibrationTest(NamedTuple):
    """How far the outcomes are from the claims, and how often true claims look as bad or worse.

    `p` is the p-value of the test. `gap` is the mean claim minus the share that is right, with
    the p-value of this part alone; `tilt` is above 0 where claims are too extreme and below where
    they are too timid, with its own. `detectable_gap` would probably have been found.
    `no_error_chance` is the probability of no wrong answer at all, if the claims are true.
    `statistic` is −log10 of the smallest nominal p-value over intervals of the claims.
    `worst_group` is the group that looks worst, where groups are few.

    >>> CalibrationTest(statistic=0.4, p=0.7).p
    0.7
    """

    statistic: float
    p: float
    gap: float = nan
    p_gap: float = nan
    tilt: float = nan
    p_tilt: float = nan
    detectable_gap: float = nan
    errors: int = 0
    expected_errors: float = nan
    no_error_chance: float = nan
    worst_group: str | None = None


def calibration_test(
    data: Tally | Outcomes | Predictions, seed: int = 0, *, positive: str | int | None = None
) -> CalibrationTest:
    r"""Whether outcomes fall as the claims say: a test of perfect calibration, exact for
    independent samples.

    Outcomes are redrawn as :math:`c_i \sim \mathrm{Bernoulli}(p_i)` 9,999 times (999 above 2,048
    samples), with residuals :math:`e_i = c_i - p_i` of variance :math:`v_i = p_i (1 - p_i)`. Three
    statistics look at them: the smallest nominal p-value over 1, 2, 4, ..., 64 intervals of equal
    null variance, of the sum of their squared standardised residuals (smooth defects) and of the
    largest of them (local ones); :math:`|\sum e_i (1 - 2p_i)| / \sqrt{\sum v_i (1 - 2p_i)^2}`
    (too extreme or too timid); :math:`|\sum e_i| / \sqrt{\sum v_i}` (too high or too low). p is the
    share of all lines, the seen one among them, whose best rank in any column is as good.

    `positive` names the class whose probability is tested, of predictions or of their
    `positive_outcomes`: there the score test of the recalibration line joins them. With a `group`,
    signs of whole groups are redrawn, which holds for many groups; more than 4,096 are pooled at
    random. Fewer than 10 groups: the smallest p-value of all rows and of each group of 30 rows,
    times how many were looked at; rows inside a group are taken as independent. Unequal weights and
    graded losses are refused. Bröcker & Smith 2007 for redrawn outcomes.

    >>> from howsure import tally
    >>> calibration_test(tally([0.9] * 50 + [0.6] * 50, correct=[1] * 45 + [0] * 5 + [1] * 30 + [0] * 20)).p > 0.5
    True
    >>> calibration_test(tally([0.9] * 100, correct=[1] * 60 + [0] * 40)).p
    0.0001
    """
    if not isinstance(data, Predictions):
        source = data
    elif positive is None:
        source = Outcomes.of(data)
    else:
        source = positive_outcomes(data, positive)
    t = source.tally() if isinstance(source, Outcomes) else source
    needs_zero_one(t, "calibration_test")
    needs_claims(t, "calibration_test")
    if not t.equal_weights:
        raise InputError(
            "calibration_test redraws the outcomes of single samples; unequal weights are refused."
        )
    with_line = positive is not None
    rows = ClaimRows.of(t)
    if not isinstance(source, Outcomes) or source.group is None:
        return run_outcome_test(rows, seed, with_line=with_line)
    if int(source.units.max()) + 1 < UNSAFE_BELOW_GROUPS:
        return run_group_tests(source, seed, with_line=with_line)
    group = pool_groups(source.units, seed)
    row = np.searchsorted(rows.claim, source.score.astype(np.float64) + 0.0)
    return run_sign_test(
        rows, group=group, row=row, residual=source.right - source.score, seed=seed
    )


# ---- independent samples


@frozen(eq=False)
class ClaimRows:
    """Rows of one claim each, ascending: claims, samples, right answers."""

    claim: Floats
    count: Counts
    right: Counts

    @classmethod
    def of(cls, t: Tally) -> ClaimRows:
        """The rows of a tally of equal weights."""
        return cls(claim=t.score[::-1], count=t.count[::-1], right=(t.count - t.loss)[::-1])

    @property
    def variance(self) -> Floats:
        """Variance of the number of right answers, if claims are true."""
        return self.count * self.claim * (1 - self.claim)


def run_outcome_test(rows: ClaimRows, seed: int, *, with_line: bool = False) -> CalibrationTest:
    """Outcomes of every row are redrawn as binomial numbers at the row's claim.

    Only as many intervals as leave a null variance of 1 to each: in thinner ones a single wrong
    answer among sure ones looks worse than all that whole data can show.
    """
    whole = rows
    redraws = FEW_REDRAWS
    if rows.count.sum() > MAX_SINGLE_REDRAWS:
        rows = merge_rows(rows, MAX_REDRAWN_ROWS)
    leaf = assign_leaves(rows.variance)
    null = _sum_by_leaf(leaf, rows.variance)
    if rows.count.sum() <= MAX_SINGLE_REDRAWS:
        # Single outcomes are drawn much faster than binomial numbers.
        redraws = MANY_REDRAWS
        times = rows.count.astype(np.int64)
        place = np.arange(int(times.sum())) - repeat_values(np.cumsum(times) - times, times)
        leaf = repeat_values(leaf, times)
        right = (place < repeat_values(rows.right, times)).astype(np.float64)
        one = np.ones(len(right))
        rows = ClaimRows(claim=repeat_values(rows.claim, times), count=one, right=right)
    directions = list_directions(rows, with_line)
    # The seen outcomes go the way of the redrawn ones, so that equal outcomes give equal sums.
    sums = [sum_residuals(rows.right[None], rows, leaf, directions)]
    rng = np.random.default_rng(seed)
    step = max(1, REDRAW_CHUNK_NUMBERS // len(leaf))
    for i in range(0, redraws, step):
        drawn = redraw_outcomes(rows, min(step, redraws - i), rng)
        sums.append(sum_residuals(drawn, rows, leaf, directions))
    lines = np.concatenate(sums)
    scales = _count_scales(float(null.sum()) / MIN_INTERVAL_VARIANCE)
    standard = standardise(lines[:, :LEAVES], null, scales)
    columns = [compute_statistic(standard)]
    columns += measure_directions(lines[:, LEAVES:], rows.variance @ directions**2)
    return describe_test(rank_in_pool(np.stack(columns, axis=1)), columns[0][0], whole, design=1.0)


def list_directions(rows: ClaimRows, with_line: bool) -> Floats:
    """(rows, directions): what residuals are multiplied with before they are summed.

    Too extreme or too timid, too high or too low; with the line also its intercept and slope, in
    which claims of exactly 0 or 1 have no part.
    """
    directions = [1 - 2 * rows.claim, np.ones(len(rows.claim))]
    if with_line:
        inner = (rows.claim > 0) & (rows.claim < 1)
        z = np.where(inner, logit(rows.claim), 0.0)
        total = float(rows.variance.sum())
        if total > 0:
            z = z - float(np.dot(rows.variance, z)) / total
        directions += [inner.astype(np.float64), np.where(inner, z, 0.0)]
    return np.stack(directions, axis=1)


def measure_directions(sums: Floats, variance: Floats) -> list[Floats]:
    """The statistic of each direction, and of the line, for every line of residual sums."""
    columns: list[Floats] = []
    for total, null in zip(sums.T[:2], variance[:2], strict=True):
        columns.append(np.abs(total) / np.sqrt(null) if null > 0 else 0 * total)
    if len(variance) > 2:
        squares = np.zeros(len(sums))
        for total, null in zip(sums.T[2:], variance[2:], strict=True):
            if null > SMALLEST_LINE_VARIANCE:
                squares += total**2 / null
        columns.append(squares)
    return columns


def merge_rows(rows: ClaimRows, most: int) -> ClaimRows:
    """At most so many rows, neighbours merged at their mean claim: a binomial number there varies
    no less.
    """
    if len(rows.claim) <= most:
        return rows
    start = np.arange(0, len(rows.claim), -(-len(rows.claim) // most))
    count = sum_runs(rows.count, start)
    claim = sum_runs(rows.count * rows.claim, start) / count
    return ClaimRows(claim=claim, count=count, right=sum_runs(rows.right, start))


def assign_leaves(variance: Floats) -> Ints:
    """The interval of each row: the total variance is cut into equal parts; rows are never split."""
    total = float(variance.sum())
    if total <= 0:
        return np.zeros(len(variance), dtype=np.int64)
    middle = (np.cumsum(variance) - variance / 2) / total
    return np.minimum((middle * LEAVES).astype(np.int64), LEAVES - 1)


def _sum_by_leaf(leaf: Ints, column: Floats) -> Floats:
    return count_values(leaf, column, minlength=LEAVES).astype(np.float64)


def redraw_outcomes(rows: ClaimRows, draws: int, rng: np.random.Generator) -> Floats:
    """How many of each row are right, if claims are true, for so many data sets, one line each."""
    shape = (draws, len(rows.claim))
    if (rows.count == 1).all():
        return (rng.random(shape) < rows.claim).astype(np.float64)
    return rng.binomial(rows.count.astype(np.int64), rows.claim, shape).astype(np.float64)


def sum_residuals(right: Floats, rows: ClaimRows, leaf: Ints, directions: Floats) -> Floats:
    """Residual sums of the leaves, then of the directions; one line for each line of outcomes."""
    start = np.flatnonzero(np.concatenate(([True], leaf[1:] != leaf[:-1])))
    claimed = rows.count * rows.claim
    sums = np.zeros((len(right), LEAVES + directions.shape[1]))
    in_leaves = sum_runs(right, start, axis=1) - sum_runs(claimed, start)
    sums[:, leaf[start]] = in_leaves
    sums[:, LEAVES:] = right @ directions - claimed @ directions
    return sums


# ---- groups


def run_group_tests(source: Outcomes, seed: int, *, with_line: bool) -> CalibrationTest:
    """All rows, and each group of at least 30 rows, as if rows were independent."""
    whole = run_outcome_test(ClaimRows.of(source.tally()), seed, with_line=with_line)
    unit = source.units
    groups = int(unit.max()) + 1
    if groups < 2:
        return whole
    p_of: dict[str, float] = {}
    for i in range(groups):
        part = source[unit == i]
        if len(part) >= MIN_TESTED_GROUP and part.group is not None:
            rows = ClaimRows.of(part.tally())
            p_of[str(part.group[0])] = run_outcome_test(rows, seed, with_line=with_line).p
    least = min([whole.p, *p_of.values()])
    worst = None
    if p_of:
        worst = min(p_of, key=lambda name: p_of[name])
    return whole._replace(p=min(1.0, (len(p_of) + 1) * least), worst_group=worst)


def pool_groups(group: Ints, seed: int) -> Ints:
    """Groups, put together at random where there are very many: sums of independent groups are
    independent too.
    """
    groups = int(group.max()) + 1
    if groups <= MAX_SIGN_GROUPS:
        return group
    return (np.random.default_rng([seed, groups]).permutation(groups) % MAX_SIGN_GROUPS)[group]


def run_sign_test(
    rows: ClaimRows, *, group: Ints, row: Ints, residual: Floats, seed: int
) -> CalibrationTest:
    """The same where samples come in groups: signs of whole groups are redrawn.

    `group`, `row` and `residual` are those of each sample. Not exact: it takes residual sums to be
    as likely of either sign, which needs many samples in an interval; so there are only as many
    intervals as leave 60 effective samples to each, the skewness of the groups is taken out of the
    seen and of the drawn sums (Hall 1992), and what was seen is held against Student's t of so many
    groups. The standardisation takes the larger of the null variances of independent samples and of
    what the groups show.
    """
    groups, n = int(group.max()) + 1, len(group)
    leaf, variance = assign_leaves(rows.variance), rows.variance
    null = _sum_by_leaf(leaf, variance)
    cell = group * LEAVES + leaf[row]
    leaf_sums = count_values(cell, residual, minlength=groups * LEAVES)
    leaf_sums = leaf_sums.reshape(groups, LEAVES).astype(np.float64)
    directions = list_directions(rows, with_line=False)
    by_direction = np.zeros((groups, directions.shape[1]))
    np.add.at(by_direction, group, residual[:, None] * directions[row])
    design = compute_sign_design(leaf_sums, null)
    parts = [(by_direction, (variance @ directions**2)[None])]
    for scale in range(_count_scales(n / design / MIN_INTERVAL_SAMPLES)):
        parts.append((_sum_leaves(leaf_sums, scale), _sum_leaves(null[None], scale)))
    rng = np.random.default_rng(seed)
    redraws = MANY_REDRAWS if n <= MAX_SINGLE_REDRAWS else FEW_REDRAWS
    signs = rng.choice(np.array([-1.0, 1.0]), (redraws, groups))
    standard: list[Floats] = []
    for part, null_of_part in parts:
        standard.append(np.concatenate(standardise_signs(part, null_of_part, signs)))
    two = np.abs(standard[0])
    columns = [compute_statistic(standard[1:]), two[:, 0], two[:, 1]]
    ranks = rank_in_pool(np.stack(columns, axis=1))
    return describe_test(ranks, columns[0][0], rows, design=design)


def compute_sign_design(leaf_sums: Floats, null: Floats) -> float:
    """The design effect of the groups, one line of residual sums each, for the mean residual."""
    of_groups = float((leaf_sums.sum(axis=1) ** 2).sum())
    return max(1.0, of_groups / max(float(null.sum()), SMALLEST_VARIANCE))


def standardise_signs(part: Floats, null: Floats, signs: Floats) -> tuple[Floats, Floats]:
    """Standardised sums of the intervals of one scale: as seen, and with signs redrawn."""
    squares = part**2
    shown: Floats = squares.sum(axis=0, keepdims=True)
    spread = np.sqrt(np.maximum(np.maximum(shown, null), SMALLEST_VARIANCE))
    scale = np.maximum(shown, SMALLEST_VARIANCE) ** 1.5
    freedoms = [estimate_freedom(column, len(part) - 1) for column in squares.T]
    normal = student_quantile(inf, 0.025)
    wider = np.array([[student_quantile(df, 0.025) / normal for df in freedoms]])
    one: Floats = np.ones((1, len(part)))
    seen = apply_hall(one @ part / (spread * wider), one @ part**3 / scale)
    return seen, apply_hall(signs @ part / spread, signs @ part**3 / scale)


def apply_hall(t: Floats, skew: Floats) -> Floats:
    """Hall's transformation: a studentised sum without its skewness, `skew` over the root of the
    number of groups.
    """
    return t + skew * (t * t / 3 + 1 / 6) + skew**2 * t**3 / 27


# ---- scales and the statistic


def _count_scales(intervals: float) -> int:
    """How many scales have at most so many intervals; at least one."""
    return int(np.clip(np.log2(max(1.0, intervals)), 0, TEST_SCALES - 1)) + 1


def _sum_leaves(leaves: Floats, scale: int) -> Floats:
    """Sums over the 2^scale intervals of neighbouring leaves."""
    return leaves.reshape(len(leaves), 1 << scale, -1).sum(axis=2)


def standardise(residual: Floats, variance: Floats, scales: int) -> list[Floats]:
    """Residuals of the leaves as standardised ones of every scale."""
    standard: list[Floats] = []
    for scale in range(scales):
        null = np.maximum(_sum_leaves(variance[None], scale), SMALLEST_VARIANCE)
        standard.append(_sum_leaves(residual, scale) / np.sqrt(null))
    return standard


class PoolRanks(NamedTuple):
    """p-values of the seen line: over all columns together, and of the first three by themselves."""

    p: float
    of_intervals: float
    of_tilt: float
    of_gap: float


def rank_in_pool(statistics: Floats) -> PoolRanks:
    """The seen line, the first, among all lines: how many have a best rank as good as its own.

    >>> rank_in_pool(np.array([[2.0, 0.1, 0.2], [1.0, 3.0, 0.1], [0.5, 0.2, 0.3]])).of_gap.__round__(3)
    0.667
    """
    lines = np.round(statistics, STATISTIC_DIGITS)
    ranks = np.empty(lines.shape, dtype=np.int64)
    for j, column in enumerate(lines.T):
        ranks[:, j] = len(lines) - np.searchsorted(np.sort(column), column, side="left")
    best = ranks.min(axis=1)
    own = ranks[0] / len(lines)
    return PoolRanks(
        p=float((best <= best[0]).mean()),
        of_intervals=float(own[0]),
        of_tilt=float(own[1]),
        of_gap=float(own[2]),
    )


def describe_test(
    ranks: PoolRanks, statistic: float, rows: ClaimRows, *, design: float
) -> CalibrationTest:
    """The result, with what a sentence about it needs."""
    n = float(rows.count.sum())
    variance = gap = tilt = expected = log_chance = 0.0
    for first in range(0, len(rows.claim), PIECE_ROWS):  # columns of all rows would be new memory
        some = slice(first, first + PIECE_ROWS)
        claim, count = rows.claim[some], rows.count[some].astype(np.float64)
        doubt, claimed = 1 - claim, count * claim
        residual = rows.right[some] - claimed
        variance += float(np.dot(claimed, doubt))
        gap -= float(residual.sum())
        tilt += float(np.dot(residual, 1 - 2 * claim))
        expected += float(np.dot(count, doubt))
        # Nothing that was claimed for certain to be wrong can be right: its logarithm is -inf, the
        # chance 0.
        with np.errstate(divide="ignore"):
            log_chance += float(np.dot(count, np.log(claim)))
    return CalibrationTest(
        statistic=float(statistic),
        p=ranks.p,
        gap=gap / n,
        p_gap=ranks.of_gap,
        tilt=tilt / n,
        p_tilt=ranks.of_tilt,
        detectable_gap=(POWER_REACH * sqrt(design * variance) + 2 * design) / n,
        errors=round(n - float(rows.right.sum())),
        expected_errors=expected,
        no_error_chance=float(np.exp(log_chance)),
    )


def compute_statistic(standard: list[Floats]) -> Floats:
    """−log10 of the smallest nominal p-value of each line."""
    from scipy.special import chdtrc, ndtr

    smallest = np.ones(len(standard[0]))
    for part in standard:
        intervals = part.shape[1]
        square = part**2
        total: Floats = np.sum(square, axis=1)
        largest: Floats = np.max(square, axis=1)
        of_sum = chdtrc(np.float64(intervals), total)
        tail = ndtr(-np.sqrt(largest))
        of_largest = -np.expm1(intervals * np.log1p(-2 * tail.clip(max=0.5 - 1e-16)))
        smallest = np.minimum(smallest, np.minimum(of_sum, of_largest))
    return -np.log10(np.maximum(smallest, SMALLEST_P))
