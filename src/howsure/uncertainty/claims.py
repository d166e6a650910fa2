"""Are the claims true? A test of calibration whose null distribution is exact: outcomes redrawn as
claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from howsure._core.check import Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Tally, needs_claims
from howsure.uncertainty.clusters import freedom
from howsure.uncertainty.means import student

__all__ = ["CalibrationTest", "calibration_test"]

DRAWS = 999
SCALES = 7  # 1, 2, 4, ..., 64 intervals of equal information
SINGLY = 2048  # up to so many samples each is drawn by itself
ROWS = (
    512  # rows whose numbers of right answers are drawn; beyond, neighbours share their mean claim
)
CHUNK = 1 << 22  # numbers drawn at a time
TELLING = 1.0  # null variance of an interval whose residual tells something
GROUPS = 4096  # whose signs are redrawn; 999 signs of each are 8 kB
ENOUGH = 60  # effective samples in an interval, where signs of groups are redrawn
LEAST, LEAST_VARIANCE = 1e-300, 1e-12


class CalibrationTest(NamedTuple):
    """How far the outcomes are from the claims, and how often true claims look as bad or worse.

    `statistic` is −log10 of the smallest nominal p-value over all scales; `p` corrects for the
    choice among them.

    >>> CalibrationTest(statistic=0.4, p=0.7).p
    0.7
    """

    statistic: float
    p: float


@frozen(eq=False)
class Residuals:
    """Rows of one claim each, ascending: claims, samples, right answers."""

    claim: Floats
    count: Floats
    right: Floats


def redrawn_test(rows: Residuals, seed: int) -> CalibrationTest:
    """Outcomes of every row are redrawn as binomial numbers at the row's claim, 999 times.

    The statistic looks at 1, 2, 4, ..., 64 neighbouring intervals of equal null variance: at the
    sum of their squared standardised residuals, which sees smooth defects, and at the largest of
    them, which sees local ones. Only as many intervals as leave a null variance of 1 to each: in
    thinner ones a single wrong answer among sure ones looks worse than all that whole data can
    show.
    """
    few = rows.count.sum() <= SINGLY
    rows = rows if few else _merged(rows, ROWS)
    variance = rows.count * rows.claim * (1 - rows.claim)
    leaf = _leaves(variance)
    null: Floats = np.bincount(leaf, variance, minlength=1 << (SCALES - 1)).astype(np.float64)
    rng = np.random.default_rng(seed)
    seen: Floats = np.bincount(
        leaf, rows.right - rows.count * rows.claim, minlength=len(null)
    ).astype(np.float64)
    if few:  # single outcomes are drawn much faster than binomial numbers
        rows, leaf = _single(rows), np.repeat(leaf, rows.count.astype(np.int64))
    step = max(1, CHUNK // len(leaf))
    drawn = [
        _drawn(rows, leaf, min(step, DRAWS - i), len(null), rng) for i in range(0, DRAWS, step)
    ]
    scales = _fine(float(null.sum()) / TELLING)
    return _judged(
        _standard(seen[None], null, scales), _standard(np.concatenate(drawn), null, scales)
    )


def grouped_test(leaf_sums: Floats, variance: Floats, n: int, seed: int) -> CalibrationTest:
    """The same where n samples come in groups, a line of residual sums each: signs of whole groups
    are redrawn.

    Not exact: it takes residual sums to be as likely of either sign, which needs many samples in an
    interval; so there are only as many intervals as leave 60 effective samples to each, the
    skewness of the groups is taken out of the seen and of the drawn sums (Hall 1992), and what was
    seen is held against Student's t of so many groups. `variance` are the null variances of
    independent samples; the standardisation takes the larger of these and of what the groups show.
    """
    rng = np.random.default_rng(seed)
    signs = rng.choice(np.array([-1.0, 1.0]), (DRAWS, len(leaf_sums)))
    design = max(
        1.0, float((leaf_sums.sum(axis=1) ** 2).sum()) / max(float(variance.sum()), LEAST_VARIANCE)
    )
    scales = _fine(n / design / ENOUGH)
    parts = zip(_scales(leaf_sums, scales), _scales(variance[None], scales), strict=True)
    found = [_of_signs(part, null, signs) for part, null in parts]
    return _judged([seen for seen, _ in found], [drawn for _, drawn in found])


def _fine(intervals: float) -> int:
    """How many scales have at most so many intervals; at least one."""
    return int(np.clip(np.log2(max(1.0, intervals)), 0, SCALES - 1)) + 1


def _of_signs(part: Floats, null: Floats, signs: Floats) -> tuple[Floats, Floats]:
    """Standardised sums of the intervals of one scale: as seen, and with signs redrawn."""
    squares = part**2
    shown: Floats = squares.sum(axis=0, keepdims=True)
    spread = np.sqrt(np.maximum(np.maximum(shown, null), LEAST_VARIANCE))
    scale = np.maximum(shown, LEAST_VARIANCE) ** 1.5
    freedoms = [freedom(column, len(part) - 1) for column in squares.T]
    wider = np.array([[student(df, 0.025) / student(inf, 0.025) for df in freedoms]])
    one: Floats = np.ones((1, len(part)))
    seen = _straight(one @ part / (spread * wider), one @ part**3 / scale)
    return seen, _straight(signs @ part / spread, signs @ part**3 / scale)


def _straight(t: Floats, skew: Floats) -> Floats:
    """Hall's transformation: a studentised sum without its skewness, `skew` over the root of the
    number of groups.
    """
    return t + skew * (t * t / 3 + 1 / 6) + skew**2 * t**3 / 27


def _judged(seen: list[Floats], drawn: list[Floats]) -> CalibrationTest:
    """Standardised residuals of every scale, one line for each set of outcomes."""
    found, null = _statistic(seen)[0], _statistic(drawn)
    return CalibrationTest(
        float(found), float((1 + (null >= found - 1e-12).sum()) / (len(null) + 1))
    )


def _standard(residual: Floats, variance: Floats, scales: int) -> list[Floats]:
    """Residuals of the leaves as standardised ones of every scale."""
    parts = zip(_scales(residual, scales), _scales(variance[None], scales), strict=True)
    return [part / np.sqrt(np.maximum(null, LEAST_VARIANCE)) for part, null in parts]


def _statistic(standard: list[Floats]) -> Floats:
    """−log10 of the smallest nominal p-value of each line."""
    from scipy.special import chdtrc, ndtr

    least = np.ones(len(standard[0]))
    for part in standard:
        square = part**2
        total: Floats = np.sum(square, axis=1)
        together = chdtrc(np.float64(part.shape[1]), total)
        most: Floats = np.max(square, axis=1)
        tail = ndtr(-np.sqrt(most))
        alone = -np.expm1(part.shape[1] * np.log1p(-2 * tail.clip(max=0.5 - 1e-16)))
        least = np.minimum(least, np.minimum(together, alone))
    return -np.log10(np.maximum(least, LEAST))


def _scales(leaves: Floats, scales: int) -> list[Floats]:
    """Sums over 1, 2, 4, ... intervals of neighbouring leaves."""
    return [leaves.reshape(len(leaves), 1 << i, -1).sum(axis=2) for i in range(scales)]


def _leaves(variance: Floats) -> Ints:
    """The interval of each row: the total variance is cut into equal parts; rows are never split."""
    many, total = 1 << (SCALES - 1), float(variance.sum())
    if total <= 0:
        return np.zeros(len(variance), dtype=np.int64)
    middle = (np.cumsum(variance) - variance / 2) / total
    return np.minimum((middle * many).astype(np.int64), many - 1)


def _drawn(
    rows: Residuals, leaf: Ints, draws: int, leaves: int, rng: np.random.Generator
) -> Floats:
    """Residual sums of the leaves for so many redrawn data sets, one line each."""
    singly = bool((rows.count == 1).all())
    shape = (draws, len(leaf))
    right = (
        rng.random(shape) < rows.claim
        if singly
        else rng.binomial(rows.count.astype(np.int64), rows.claim, shape)
    )
    start = np.flatnonzero(np.concatenate(([True], leaf[1:] != leaf[:-1])))
    out = np.zeros((draws, leaves))
    claimed = np.add.reduceat(rows.count * rows.claim, start)
    out[:, leaf[start]] = np.add.reduceat(right, start, axis=1, dtype=np.float64) - claimed
    return out


def _single(rows: Residuals) -> Residuals:
    """A row for each sample."""
    times = rows.count.astype(np.int64)
    one = np.ones(int(times.sum()))
    return Residuals(np.repeat(rows.claim, times), one, one)


def _merged(rows: Residuals, most: int) -> Residuals:
    """At most so many rows, neighbours merged at their mean claim: a binomial number there varies
    no less.
    """
    if len(rows.claim) <= most:
        return rows
    start = np.arange(0, len(rows.claim), -(-len(rows.claim) // most))
    add: Callable[[Floats], Floats] = lambda a: np.add.reduceat(a, start)
    count = add(rows.count)
    return Residuals(add(rows.count * rows.claim) / count, count, add(rows.right))


def calibration_test(data: Tally | Outcomes | Predictions, seed: int = 0) -> CalibrationTest:
    r"""Whether outcomes fall as the claims say: a test of perfect calibration, exact for
    independent samples.

    Outcomes are redrawn as :math:`c_i \sim \mathrm{Bernoulli}(r_i)` 999 times. The statistic is the
    smallest nominal p-value over 1, 2, 4, ..., 64 intervals of equal null variance (at least 1
    each), of the sum of their squared standardised residuals (smooth defects) and of the largest of
    them (local ones). With a `group`, signs of whole groups are redrawn instead, which holds for
    many groups; more than 4,096 are pooled at random. Unequal weights are refused. Bröcker & Smith
    2007 for redrawn outcomes.

    >>> from howsure import tally
    >>> calibration_test(tally([0.9] * 50 + [0.6] * 50, correct=[1] * 45 + [0] * 5 + [1] * 30 + [0] * 20)).p > 0.5
    True
    >>> calibration_test(tally([0.9] * 100, correct=[1] * 60 + [0] * 40)).p
    0.001
    """
    source = Outcomes.of(data) if isinstance(data, Predictions) else data
    t = source.tally() if isinstance(source, Outcomes) else source
    needs_claims(t, "calibration_test")
    if not t.equal_weights:
        raise InputError(
            "calibration_test redraws the outcomes of single samples; unequal weights are refused."
        )
    claim, count, right = (
        np.asarray(c, dtype=np.float64)[::-1] for c in (t.score, t.count, t.count - t.loss)
    )
    if not isinstance(source, Outcomes) or source.group is None:
        return redrawn_test(Residuals(claim, count, right), seed)
    return _of_groups(source, claim, count, seed)


def _of_groups(o: Outcomes, claim: Floats, count: Floats, seed: int) -> CalibrationTest:
    """Residual sums of every group in every interval."""
    variance = count * claim * (1 - claim)
    leaf, leaves = _leaves(variance), 1 << (SCALES - 1)
    group = _pooled(o.units, seed)
    many = int(group.max()) + 1
    if many < 2:
        raise InputError("calibration_test needs more than one group to tell how groups differ.")
    where = group * leaves + leaf[np.searchsorted(claim, o.score.astype(np.float64) + 0.0)]
    sums = (
        np.bincount(where, o.right - o.score, minlength=many * leaves)
        .reshape(many, leaves)
        .astype(np.float64)
    )
    null: Floats = np.bincount(leaf, variance, minlength=leaves).astype(np.float64)
    return grouped_test(sums, null, len(o), seed)


def _pooled(group: Ints, seed: int) -> Ints:
    """Groups, put together at random where there are very many: sums of independent groups are
    independent too.
    """
    many = int(group.max()) + 1
    if many <= GROUPS:
        return group
    return (np.random.default_rng([seed, many]).permutation(many) % GROUPS)[group]
