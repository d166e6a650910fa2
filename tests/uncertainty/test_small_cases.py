"""Rows, draws, tests of claims, pairs and many models: small cases by loops, and what does not
matter.
"""

from __future__ import annotations

from functools import partial
from math import exp, hypot, inf, isnan, log, nan, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.uncertainty.test_second_way import (
    HALF,
    Z,
    made,
    slow_augrc,
    slow_aurc,
    slow_auroc,
    slow_freedom,
)

import howsure as hs
from howsure import InputError, Outcomes, Predictions
from howsure.uncertainty import (
    bootstrap,
    calibration_testing,
    class_limits,
    influence,
    intervals,
    limits,
    means,
    sample_case,
)
from howsure.uncertainty.calibration_limits import (
    compute_error_limits,
    compute_noise_floor,
    subtract_noise,
)
from howsure.uncertainty.influence import ClaimLoss, RowInfluence
from howsure.uncertainty.limits import Interval
from howsure.uncertainty.means import DecidingUnits, Units, compute_group_design
from howsure.uncertainty.paired import (
    MetricSide,
    combine_limits,
    correlate_influences,
    cover_both_limits,
    limit_accuracy_difference,
    limit_student_difference,
)
from howsure.uncertainty.ranking_limits import (
    NumberSample,
    UnseenError,
    compute_coverage_limits,
    compute_rare_sum_limits,
)
from howsure.uncertainty.sample_case import SampleCase

RNG = np.random.default_rng(8)
SCORE = RNG.permutation(np.linspace(0.05, 0.99, 50))
RIGHT = RNG.random(50) < SCORE
WEIGHT = RNG.random(50) * 3 + 0.1
LOSS = np.round(RNG.random(50) * 2 - 0.5, 2)
GROUP = RNG.integers(0, 8, 50)


@pytest.fixture(autouse=True)
def groups_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipes of groups are looked at with few of them, which would be taken as rows."""
    monkeypatch.setattr(sample_case, "UNSAFE_BELOW_GROUPS", 0)


# ---- one set of answers


def linear(case: SampleCase) -> RowInfluence:
    rng = np.random.default_rng(1)
    n = len(case.rows.score)
    return RowInfluence(rng.normal(size=n), rng.normal(size=n))


def singly(case: SampleCase, part: RowInfluence, score: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """The influence of each sample, looked up by its score."""
    where = {s: i for i, s in enumerate(case.rows.score.tolist())}
    return np.array(
        [
            part.start[where[s]] + part.slope[where[s]] * x
            for s, x in zip(score.tolist(), loss, strict=True)
        ]
    )


@pytest.mark.parametrize("decimals", [1, 9])
@pytest.mark.parametrize("losses", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_samples(decimals: int, losses: bool, weighted: bool) -> None:
    score = SCORE.round(decimals)
    weight = WEIGHT if weighted else None
    o = (
        Outcomes(score, loss=LOSS, weight=weight)
        if losses
        else Outcomes(score, correct=RIGHT, weight=weight)
    )
    case = SampleCase.of(o, singly=True)
    part, loss = linear(case), LOSS if losses else (~RIGHT).astype(float)
    each = singly(case, part, score, loss)
    w = WEIGHT / WEIGHT.mean() if weighted else np.ones(50)
    assert case.spread_over_samples(part) == pytest.approx(each)
    assert case.sum_squares(part) == pytest.approx(float((w * each**2).sum()))
    assert case.sum_cubes(part) == pytest.approx(float((w * each**3).sum()))
    mean = float((w * each).sum()) / 50
    centred = case.centre(*part)
    assert centred.start == pytest.approx(part.start - mean)
    assert case.spread_over_samples(centred) == pytest.approx(each - mean)


def test_cubes_of_forgotten_losses_are_none() -> None:
    case = SampleCase.of(hs.tally(SCORE, loss=LOSS))
    assert case.sum_cubes(linear(case)) == 0


def test_the_design_effect_of_weights() -> None:
    """Squared weights over weights, times Student's t of as many as decide over that without
    weights.
    """
    o = Outcomes(SCORE, correct=RIGHT, weight=WEIGHT)
    case = SampleCase.of(o)
    part = linear(case)
    each, w = singly(case, part, SCORE, (~RIGHT).astype(float)), WEIGHT / WEIGHT.mean()
    double, single = w**2 * each**2, w * each**2
    few, plenty = (stats.t.ppf(1 - HALF, slow_freedom(x, 50)) for x in (double, single))
    expected = max(1.0, double.sum() / single.sum()) * max(1.0, few / plenty) ** 2
    assert expected > 1
    assert case.compute_design(lambda: part, HALF) == pytest.approx(expected)
    nothing = RowInfluence(0 * part.start, 0 * part.slope)
    assert case.compute_design(lambda: nothing, HALF) == pytest.approx(float((w**2).sum()) / 50)
    losses = SampleCase.of(hs.tally(SCORE, loss=LOSS, weight=WEIGHT))
    each = singly(losses, part, SCORE, LOSS)
    double, single = w**2 * each**2, w * each**2
    few, plenty = (stats.t.ppf(1 - HALF, slow_freedom(x, 50)) for x in (double, single))
    expected = max(1.0, double.sum() / single.sum()) * max(1.0, few / plenty) ** 2
    assert losses.compute_design(lambda: part, HALF) == pytest.approx(expected)


def test_the_design_effect_of_groups_or_of_nothing() -> None:
    plain = SampleCase.of(Outcomes(SCORE, correct=RIGHT))
    assert plain.compute_design(lambda: linear(plain), HALF) == 1
    case = SampleCase.of(Outcomes(SCORE, correct=RIGHT, group=GROUP))
    expected = compute_group_design(
        case.spread_over_samples(linear(case)), Units.of(50, group=GROUP), HALF
    )
    assert case.compute_design(lambda: linear(case), HALF) == expected
    assert case.groups == 8


def test_what_is_kept_of_outcomes() -> None:
    o = Outcomes(SCORE, correct=RIGHT)
    assert SampleCase.of(o).outcomes is None
    assert SampleCase.of(o, singly=True).outcomes is not None
    assert SampleCase.of(Outcomes(SCORE, correct=RIGHT, group=GROUP)).outcomes is not None
    assert SampleCase.of(Outcomes(SCORE, loss=LOSS)).outcomes is not None
    some = np.where(np.arange(50) < 10, 0.0, 0.5)
    kept = SampleCase.of(Outcomes(SCORE, correct=RIGHT, weight=some), singly=True)
    assert kept.outcomes is not None
    assert len(kept.outcomes) == 40  # a weight of 0 is no sample
    assert SampleCase.of(o).groups is None


def test_ranks_and_cuts() -> None:
    case = SampleCase.of(hs.tally([0.9, 0.9, 0.8, 0.5, 0.5, 0.5], correct=[1, 0, 1, 0, 1, 1]))
    r = case.ranks
    assert (r.before.tolist(), r.after.tolist(), r.wrong.tolist(), r.n) == (
        [0, 3],
        [2, 6],
        [1, 1],
        6,
    )
    assert (r.free.tolist(), r.tied.tolist(), r.upto.tolist(), r.k, r.m) == (
        [0, 1, 0],
        [1, 2],
        [1, 2],
        2,
        4,
    )
    assert case.find_cuts(np.array([0.0, 0.5, 2.0, 2 + 1e-10, 2.1, 3.0, 3.5, 6.0])).tolist() == [
        0,
        2,
        2,
        2,
        3,
        3,
        6,
        6,
    ]
    assert case.mark_accepted(2.0).tolist() == [1, 0, 0]
    assert case.mark_accepted(3.0 - 1e-12).tolist() == [1, 1, 0]
    assert case.mark_accepted(5.9).tolist() == [1, 1, 0]


def test_losses_that_did_not_happen_may_be_infinite() -> None:
    t = hs.tally([1.0, 1.0, 0.6, 0.6, 0.0], correct=[1, 1, 1, 0, 0])
    part = SampleCase.of(t).compute_loss_influence(
        ClaimLoss(right=lambda r: -np.log(r), wrong=lambda r: -np.log1p(-r)), 0.3
    )
    assert part.start == pytest.approx([-0.3, -log(0.6) - 0.3, -0.3])
    assert part.start + part.slope == pytest.approx([-0.3, -log(0.4) - 0.3, -0.3])


@pytest.mark.parametrize("sign", [np.sign, influence.weigh_over, influence.weigh_under])
def test_gaps_of_single_samples(sign: Any) -> None:
    bins, o = hs.equal_range(5), Outcomes(SCORE, correct=RIGHT, group=GROUP)
    case = SampleCase.of(o)
    which = np.minimum(np.ceil(SCORE * 5).astype(int) - 1, 4)
    gap = SCORE - RIGHT
    side = np.array([sign(np.array([gap[which == j].sum()]))[0] for j in range(5)])
    each = side[which] * gap
    assert case.spread_over_samples(case.compute_gap_influence(bins, sign)) == pytest.approx(
        each - each.mean()
    )
    squares = sorted(float((gap[which == j] ** 2).sum()) for j in range(5))
    assert sorted(case.sum_gap_squares(bins).tolist()) == pytest.approx(squares)
    b = case.count_in_bins(bins, sign, HALF)
    assert sorted(b.count.tolist()) == sorted(np.bincount(which).tolist())
    assert sorted(b.gap.tolist()) == pytest.approx(
        sorted(float(gap[which == j].mean()) for j in range(5))
    )
    assert b.design == case.compute_design(lambda: case.compute_gap_influence(bins, sign), HALF)
    assert SampleCase.of(o.tally()).count_in_bins(bins, sign, HALF).design == 1


# ---- draws


@pytest.mark.parametrize("mean", [1, 2, 7, 32])
def test_counts_that_are_looked_up_are_poisson(mean: int) -> None:
    found = bootstrap.tabulate_poisson(mean)
    assert len(found) == 1 << 16
    k = np.arange(200)
    share = np.bincount(found, minlength=200) / (1 << 16)
    assert np.abs(np.cumsum(share) - stats.poisson.cdf(k, mean)).max() <= 2.0**-16


@pytest.mark.parametrize("losses", [False, True])
def test_drawn_tables_vary_as_samples_do(losses: bool) -> None:
    score = np.repeat([0.9, 0.7, 0.5], [200, 50, 12])
    rng = np.random.default_rng(0)
    loss = rng.normal(1, 2, 262).round(3) if losses else (rng.random(262) < 0.3).astype(float)
    t = hs.tally(score, loss=loss) if losses else hs.tally(score, correct=loss == 0)
    stack = bootstrap.draw_rows(t, 0)
    assert stack.count.shape == (1000, 3)
    for j, s in enumerate((0.9, 0.7, 0.5)):
        here = loss[score == s]
        assert stack.count[:, j].mean() == pytest.approx(len(here), abs=4 * sqrt(len(here) / 1000))
        assert stack.count[:, j].var() == pytest.approx(len(here), rel=0.2)
        squares = float((here**2).sum())
        assert stack.loss[:, j].mean() == pytest.approx(here.sum(), abs=4 * sqrt(squares / 1000))
        assert stack.loss[:, j].var() == pytest.approx(squares, rel=0.2)
    assert np.array_equal(stack.n, stack.count.sum(axis=1))


def test_drawn_tables_one_by_one() -> None:
    t = hs.tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0])
    stack = bootstrap.draw_rows(t, 3)
    found = list(stack.build_tallies())
    assert len(found) == len(stack.count)
    for one, count, loss in zip(found, stack.count, stack.loss, strict=True):
        rows = count > 0
        assert one.count.tolist() == count[rows].tolist()
        assert one.loss.tolist() == one.square.tolist() == loss[rows].tolist()
        assert one.score.tolist() == np.array([0.9, 0.8, 0.7, 0.6])[rows].tolist()
        assert one.claim == pytest.approx(one.score * one.count)
    other = bootstrap.draw_rows(hs.tally([0.9, 0.8, 0.7, 0.6], loss=[1.5, 0, 1, 0]), 3)
    assert all((one.square == 0).all() for one in other.build_tallies())
    parts = stack.parts
    assert [len(part.count) for part in parts[:-1]] == [64] * (len(parts) - 1)
    assert np.array_equal(np.concatenate([part.loss for part in parts]), stack.loss)


def test_blocks_and_bins_of_drawn_tables() -> None:
    t = hs.tally([0.9, 0.9, 0.8, 0.7, 0.6, 0.35], correct=[1, 0, 1, 0, 1, 0])
    stack = bootstrap.draw_rows(t, 1)
    n, bins = stack.n, hs.equal_range(2)
    sums = stack.sum_in_bins(bins)
    for i, one in enumerate(stack.build_tallies()):
        b, plain = stack.blocks, one.blocks()
        some = b.loss[i] != 0
        assert b.before[i][some].tolist() == plain.before.tolist()
        assert b.after[i][some].tolist() == plain.after.tolist()
        assert b.loss[i][some].tolist() == plain.loss.tolist()
        assert set(b.after[i][~some].tolist()) <= {n[i]}
        assert set((b.after[i] - b.before[i])[~some].tolist()) <= {1}
        high = one.score > 0.5
        assert sums.count[i].tolist() == [one.count[high].sum(), one.count[~high].sum()]
        assert sums.claim[i] == pytest.approx([one.claim[high].sum(), one.claim[~high].sum()])
        assert sums.loss[i].tolist() == [one.loss[high].sum(), one.loss[~high].sum()]


@pytest.mark.parametrize(("n", "exact"), [(600, True), (601, False), (5000, False)])
def test_few_rows_stay_and_many_are_cut(n: int, exact: bool) -> None:
    rng = np.random.default_rng(0)
    score = rng.permutation(n) / n
    for share in 0.001, 0.5:
        t = hs.tally(score, correct=rng.random(n) >= share)
        rows = bootstrap.coarsen(t)
        assert (len(rows.score) == n) == exact
        assert len(rows.score) <= (
            n if exact else 2 * bootstrap.BOOTSTRAP_CUTS + len(bootstrap.USUAL_EDGES) + 2
        )
        assert (rows.count.sum(), rows.loss.sum()) == (n, t.total)


def test_groups_are_drawn_whole() -> None:
    score = np.array([0.9, 0.9, 0.5, 0.5, 0.5])
    o = Outcomes(score, correct=[1, 0, 1, 1, 0], group=[0, 1, 0, 0, 1])
    stack = bootstrap.draw_units(o, 0)
    first, second = (
        stack.count[:, 0] - stack.loss[:, 0],
        stack.loss[:, 0],
    )  # how often each group was drawn
    assert np.array_equal(stack.count[:, 1], 2 * first + second)
    assert np.array_equal(stack.loss[:, 1], second)
    some = 1 - exp(-2)  # draws without a sample are left out
    for times in first, second:
        assert times.mean() == pytest.approx(1 / some, abs=0.15)
        assert (times.astype(float) ** 2).mean() == pytest.approx(2 / some, rel=0.3)
    weighted = bootstrap.draw_units(
        Outcomes(score, correct=[1, 0, 1, 1, 0], weight=[1, 2, 1, 4, 2]), 0
    )
    assert weighted.count.mean(axis=0) == pytest.approx([1.5, 3.5], rel=0.15)  # of mean 1
    assert weighted.loss.mean(axis=0) == pytest.approx([1.0, 1.0], rel=0.2)


def test_pairs_are_drawn_together() -> None:
    rng = np.random.default_rng(0)
    a = Outcomes(rng.integers(0, 6, 300) / 10, correct=rng.random(300) < 0.7)
    b = Outcomes(rng.integers(0, 4, 300) / 10, correct=rng.random(300) < 0.5)
    one, two = bootstrap.draw_pair(a, b, 0)
    assert np.array_equal(one.n, two.n)
    for stack, o in (one, a), (two, b):
        rows = SampleCase.of(o).rows
        assert stack.count.mean(axis=0) == pytest.approx(rows.count, rel=0.05)
        assert stack.loss.mean(axis=0) == pytest.approx(rows.loss, rel=0.08)
    same = bootstrap.draw_pair(a, a, 0)
    assert np.array_equal(same[0].loss, same[1].loss)
    both = float(((~a.right) & (~b.right)).sum())
    assert np.cov(one.loss.sum(axis=1), two.loss.sum(axis=1))[0, 1] == pytest.approx(both, rel=0.25)


# ---- are claims true


def test_intervals_of_equal_variance() -> None:
    variance = np.random.default_rng(0).random(500)
    found = calibration_testing.assign_leaves(variance)
    middle = [(variance[:i].sum() + variance[i] / 2) / variance.sum() for i in range(500)]
    assert found.tolist() == [int(m * 64) for m in middle]
    assert calibration_testing.assign_leaves(np.zeros(3)).tolist() == [0, 0, 0]
    assert calibration_testing.assign_leaves(np.array([1.0])).tolist() == [32]


def test_the_statistic_is_the_smallest_p_value() -> None:
    rng = np.random.default_rng(1)
    standard = [rng.normal(size=(5, m)) for m in (1, 2, 4, 8)]
    expected = []
    for i in range(5):
        p = [1.0]
        for part in standard:
            m = part.shape[1]
            p.append(stats.chi2.sf((part[i] ** 2).sum(), m))
            p.append(1 - (1 - 2 * stats.norm.sf(np.abs(part[i]).max())) ** m)
        expected.append(-np.log10(min(p)))
    assert calibration_testing.compute_statistic(standard) == pytest.approx(np.array(expected))
    assert calibration_testing.compute_statistic([np.array([[1e4]])])[0] == pytest.approx(300)
    assert calibration_testing.compute_statistic([np.array([[0.0]])])[0] == pytest.approx(
        0, abs=1e-9
    )


def test_sums_of_neighbours_are_standardised() -> None:
    rng = np.random.default_rng(2)
    residual, variance = rng.normal(size=(3, 64)), rng.random(64)
    for i, part in enumerate(calibration_testing.standardise(residual, variance, 7)):
        many = 2**i
        for line in range(3):
            for j in range(many):
                at = slice(j * 64 // many, (j + 1) * 64 // many)
                assert part[line, j] == pytest.approx(
                    residual[line, at].sum() / sqrt(variance[at].sum())
                )


@pytest.mark.parametrize("count", [1, 40])
def test_outcomes_are_redrawn_as_claimed(count: int) -> None:
    claim = np.linspace(0.1, 0.95, 128)
    rows = calibration_testing.ClaimRows(claim, np.full(128, float(count)), np.zeros(128))
    leaf = calibration_testing.assign_leaves(rows.variance)
    right = calibration_testing.redraw_outcomes(rows, 4000, np.random.default_rng(0))
    directions = calibration_testing.list_directions(rows, with_line=True)
    drawn = calibration_testing.sum_residuals(right, rows, leaf, directions)
    null = np.concatenate(
        (np.bincount(leaf, rows.variance, minlength=64), rows.variance @ directions**2)
    )
    assert drawn.shape == (4000, 68)
    assert np.abs(drawn.mean(axis=0) / np.sqrt(np.maximum(null, 1e-9) / 4000)).max() < 4.5
    assert drawn.var(axis=0) == pytest.approx(null, rel=0.15)
    residual = right[7] - count * claim
    assert drawn[7, 64:] == pytest.approx(residual @ directions)
    assert drawn[7, :64] == pytest.approx(np.bincount(leaf, residual, minlength=64))


def test_directions_of_residuals() -> None:
    claim = np.array([0.0, 0.2, 0.7, 1.0])
    rows = calibration_testing.ClaimRows(claim, np.array([3.0, 5, 10, 2]), np.array([0.0, 2, 6, 1]))
    z, v = np.log(claim[1:3] / (1 - claim[1:3])), rows.variance[1:3]
    z -= np.dot(v, z) / v.sum()
    found = calibration_testing.list_directions(rows, with_line=True)
    assert found == pytest.approx(
        np.stack((1 - 2 * claim, np.ones(4), [0, 1, 1, 0], [0, *z, 0]), axis=1)
    )
    assert calibration_testing.list_directions(rows, with_line=False).shape == (4, 2)
    e = np.array([[0.0, 1, -1, -1]])
    tilt, gap, line = calibration_testing.measure_directions(e @ found, rows.variance @ found**2)
    assert tilt[0] == pytest.approx(abs(0.6 + 0.4 + 1) / sqrt(0.8 * 0.36 + 2.1 * 0.16))
    assert gap[0] == pytest.approx(1 / sqrt(2.9))
    assert line[0] == pytest.approx(0.0 + (z[0] - z[1]) ** 2 / np.dot(v, z**2))
    nothing = calibration_testing.measure_directions(np.ones((2, 4)), np.zeros(4))
    assert [column.tolist() for column in nothing] == [[0.0, 0.0]] * 3


def test_p_is_the_best_rank_among_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The definition, by loops."""
    rng = np.random.default_rng(1)
    lines = rng.integers(0, 6, (40, 3)) + 1e-12 * rng.random((40, 3))  # equal but for rounding
    ranks = [
        [sum(round(x, 9) >= round(line[j], 9) for x in lines[:, j]) for j in range(3)]
        for line in lines
    ]
    best = [min(rank) for rank in ranks]
    found = calibration_testing.rank_in_pool(lines)
    assert found.p == pytest.approx(sum(b <= best[0] for b in best) / 40)
    assert found[1:] == pytest.approx(np.array(ranks[0]) / 40)
    asked: list[int] = []
    drawn = calibration_testing.redraw_outcomes
    monkeypatch.setattr(
        calibration_testing, "redraw_outcomes", lambda *args: asked.append(args[1]) or drawn(*args)
    )
    monkeypatch.setattr(calibration_testing, "REDRAW_CHUNK_NUMBERS", 1000)
    t = hs.tally(SCORE, correct=RIGHT)
    found = hs.calibration_test(t)
    assert (max(asked), sum(asked)) == (20, 9999)
    monkeypatch.undo()
    assert hs.calibration_test(t) == found


def slow_lines(p: Any, outcomes: Any, with_line: bool) -> Any:
    """T1 to T4 of each line of single outcomes, as they are defined."""
    v = p * (1 - p)
    scales = min(6, int(np.log2(max(1.0, v.sum()))))
    middle = (np.cumsum(v) - v / 2) / v.sum()
    lines = []
    for c in outcomes:
        e = c - p
        least = 1.0
        for scale in range(scales + 1):
            many = 2**scale
            # Rows lie in one of 64 parts by the middle of their variance; intervals join parts.
            part = (np.minimum(middle * 64, 63).astype(int)) // (64 // many)
            z = [
                e[part == j].sum() / sqrt(v[part == j].sum()) if (part == j).any() else 0.0
                for j in range(many)
            ]
            least = min(least, stats.chi2.sf(np.square(z).sum(), many))
            least = min(least, 1 - (1 - 2 * stats.norm.sf(np.abs(z).max())) ** many)
        tilt = abs((e * (1 - 2 * p)).sum()) / sqrt((v * (1 - 2 * p) ** 2).sum())
        line = [-np.log10(least), tilt, abs(e.sum()) / sqrt(v.sum())]
        if with_line:
            z = np.log(p / (1 - p))
            z = z - (v * z).sum() / v.sum()
            line.append(e.sum() ** 2 / v.sum() + (e * z).sum() ** 2 / (v * z * z).sum())
        lines.append(line)
    return np.array(lines)


@pytest.mark.parametrize("with_line", [False, True])
def test_the_test_of_claims_as_it_is_defined(
    monkeypatch: pytest.MonkeyPatch, with_line: bool
) -> None:
    monkeypatch.setattr(calibration_testing, "MANY_REDRAWS", 99)
    rng = np.random.default_rng(4)
    p = np.sort(rng.uniform(0.05, 0.95, 60))
    right = rng.random(60) < p**1.5
    drawn = (np.random.default_rng(3).random((99, 60)) < p).astype(float)
    lines = slow_lines(p, [right, *drawn], with_line).round(9)
    ranks = np.array([[(lines[:, j] >= x[j]).sum() for j in range(len(x))] for x in lines])
    best = ranks.min(axis=1)
    positive = 1 if with_line else None
    found = hs.calibration_test(Outcomes(p, correct=right), 3, positive=positive)
    assert found.p == pytest.approx((best <= best[0]).mean())
    assert found.statistic == pytest.approx(lines[0, 0], abs=1e-8)
    assert (found.p_tilt, found.p_gap) == pytest.approx(tuple(ranks[0, 1:3] / 100))
    e = right - p
    assert found.gap == pytest.approx(-e.mean())
    assert found.tilt == pytest.approx((e * (1 - 2 * p)).mean())
    assert found.detectable_gap == pytest.approx((3.2 * sqrt((p * (1 - p)).sum()) + 2) / 60)
    assert (found.errors, found.expected_errors) == (60 - right.sum(), pytest.approx((1 - p).sum()))
    assert found.no_error_chance == pytest.approx(np.prod(p))


def test_tied_claims_are_drawn_one_by_one() -> None:
    p = np.repeat([0.3, 0.6, 0.9], 20)
    right = np.concatenate((np.arange(20) < 9, np.arange(20) < 10, np.arange(20) < 18))
    found = hs.calibration_test(hs.tally(p, correct=right))
    shuffled = np.random.default_rng(0).permutation(60)
    assert hs.calibration_test(hs.tally(p[shuffled], correct=right[shuffled])) == found


def test_many_rows_are_merged_at_their_mean_claim() -> None:
    rows = calibration_testing.ClaimRows(
        np.linspace(0, 1, 1000), np.arange(1.0, 1001), np.arange(1000.0) / 2
    )
    found = calibration_testing.merge_rows(rows, 300)
    assert len(found.claim) == 250
    assert found.count.tolist() == [sum(range(4 * i + 1, 4 * i + 5)) for i in range(250)]
    assert found.right[3] == pytest.approx(sum(rows.right[12:16]))
    assert found.claim[3] == pytest.approx(
        np.dot(rows.count[12:16], rows.claim[12:16]) / rows.count[12:16].sum()
    )
    assert calibration_testing.merge_rows(rows, 1000) is rows


@pytest.mark.parametrize(("n", "scales"), [(100, 1), (2000, 5), (60_000, 7)])
def test_signs_of_groups_are_redrawn(monkeypatch: pytest.MonkeyPatch, n: int, scales: int) -> None:
    monkeypatch.setattr(calibration_testing, "MANY_REDRAWS", 199)
    monkeypatch.setattr(calibration_testing, "FEW_REDRAWS", 199)
    rng = np.random.default_rng(3)
    p = np.sort(rng.uniform(0.3, 0.98, n))
    group = rng.integers(0, 25, n)
    c = rng.random(n) < np.clip(p + rng.normal(0, 2 / np.sqrt(n), 25)[group], 0, 1)
    found = hs.calibration_test(Outcomes(p, correct=c, group=group), 5)

    v, e = p * (1 - p), c - p
    leaf = calibration_testing.assign_leaves(v)
    sums = np.zeros((25, 64))
    np.add.at(sums, (group, leaf), e)
    variance = np.bincount(leaf, v, minlength=64)
    design = max(1.0, (sums.sum(axis=1) ** 2).sum() / variance.sum())
    assert int(np.clip(np.log2(max(1.0, n / design / 60)), 0, 6)) + 1 == scales
    signs = np.random.default_rng(5).choice(np.array([-1.0, 1.0]), (199, 25))
    straight = lambda t, s: t + s * (t * t / 3 + 1 / 6) + s**2 * t**3 / 27

    def standard(part: Any, null: Any) -> Any:
        """What was seen, and below it what was drawn."""
        shown = (part**2).sum(axis=0)
        spread = np.sqrt(np.maximum(shown, null))
        wide = [stats.t.ppf(0.975, slow_freedom(column, 24)) / Z for column in (part**2).T]
        seen = straight(part.sum(axis=0) / (spread * wide), (part**3).sum(axis=0) / shown**1.5)
        drawn = straight(signs @ part / spread, signs @ part**3 / shown**1.5)
        return np.concatenate((seen[None], drawn))

    intervals = []
    for i in range(scales):
        part, null = (a.reshape(-1, 2**i, 64 // 2**i).sum(axis=2) for a in (sums, variance[None]))
        intervals.append(standard(part, null[0]))
    tilt = np.bincount(group, e * (1 - 2 * p))
    both = standard(
        np.stack((tilt, sums.sum(axis=1)), axis=1),
        np.array([(v * (1 - 2 * p) ** 2).sum(), v.sum()]),
    )
    columns = (calibration_testing.compute_statistic(intervals), *np.abs(both).T)
    ranks = calibration_testing.rank_in_pool(np.stack(columns, axis=1))
    assert found.statistic == pytest.approx(columns[0][0])
    assert (found.p, found.p_tilt, found.p_gap) == (ranks.p, ranks.of_tilt, ranks.of_gap)
    wide = (3.2 * sqrt(design * v.sum()) + 2 * design) / n
    assert found.detectable_gap == pytest.approx(wide)


def test_few_groups_are_looked_at_one_by_one() -> None:
    """The smallest p-value, times how many were looked at; rows count as independent."""
    rng = np.random.default_rng(6)
    n = 400
    p = rng.beta(5, 1, n)
    group = np.array(["a", "b", "c", "d"])[rng.choice(4, n, p=[0.4, 0.3, 0.28, 0.02])]
    c = rng.random(n) < np.where(group == "c", 0.57, p)
    found = hs.calibration_test(Outcomes(p, correct=c, group=group))
    alone = [hs.calibration_test(hs.tally(p[group == g], correct=c[group == g])).p for g in "abc"]
    pooled = hs.calibration_test(hs.tally(p, correct=c))
    assert found.p == pytest.approx(min(1, 4 * min(pooled.p, *alone)))
    assert found.p <= 0.001
    assert found.worst_group == "c"
    assert found.gap == pooled.gap
    one = hs.calibration_test(Outcomes(p, correct=c, group=np.zeros(n)))
    assert one == pooled
    tiny = hs.calibration_test(Outcomes(p[:8], correct=c[:8], group=[0, 1] * 4))
    assert (tiny.p, tiny.worst_group) == (
        hs.calibration_test(hs.tally(p[:8], correct=c[:8])).p,
        None,
    )


# ---- single limits


def test_the_best_order_follows_accuracy() -> None:
    for o in Outcomes(SCORE, correct=RIGHT), Outcomes(SCORE, correct=RIGHT, weight=WEIGHT):
        low, high = hs.interval(hs.accuracy, o)
        best = hs.metrics.optimal_aurc_asymptotic
        assert hs.interval(hs.metrics.optimal_aurc, o) == pytest.approx(
            (best(1 - high), best(1 - low))
        )


def test_floors_stand_beside_calibration_errors() -> None:
    t = hs.tally(SCORE, correct=RIGHT)
    metrics = [hs.ece, hs.over_confidence, hs.under_confidence, hs.aece]
    ece, over, under, adaptive = hs.uncertainty.intervals.each_interval(metrics, t)
    floor = compute_noise_floor(SampleCase.of(t).count_in_bins(hs.equal_range(15), np.sign, HALF))
    assert ece.floor == pytest.approx(floor)
    assert over.floor == under.floor == pytest.approx(floor / 2)
    assert adaptive.floor not in (None, ece.floor)
    assert (ece.low, ece.high) == compute_error_limits(
        SampleCase.of(t).count_in_bins(hs.equal_range(15), np.sign, HALF), HALF
    )


def test_where_nothing_can_be_accepted_groups_count_as_for_all() -> None:
    """Whole groups are right or wrong together."""
    wrong = np.repeat(np.arange(12) % 2 == 0, 10)
    o = Outcomes(np.linspace(1, 0, 120), correct=~wrong, group=np.repeat(np.arange(12), 10))
    case = SampleCase.of(o)
    design = case.compute_design(lambda: case.centre(np.full(120, -0.2), np.ones(120)), HALF)
    assert design > 12
    assert hs.coverage_at_risk(o.tally(), risk=0.2) == 0
    expected = compute_coverage_limits(
        case.ranks, risk=0.2, point=0.0, find_cuts=case.find_cuts, design=design, half=HALF
    )
    assert hs.interval(partial(hs.coverage_at_risk, risk=0.2), o) == pytest.approx(expected)


def test_equal_losses_leave_what_one_more_may_weigh() -> None:
    """Twice the square of the largest: the mean of ln² over ranks."""
    found = hs.interval(hs.aurc, Outcomes(np.linspace(0, 1, 20), loss=np.full(20, 1.5)))
    assert found == pytest.approx((1.5, 1.5 + stats.t.ppf(0.975, 19) * sqrt(2 * 1.5**2 / 19 / 20)))


@pytest.mark.parametrize("few_wrong", [True, False])
def test_means_where_one_outcome_is_rare(few_wrong: bool) -> None:
    """What the rare outcome adds is a sum of rare events; what all have in common varies as a mean
    does.
    """
    rng = np.random.default_rng(4)
    score = rng.beta(5, 1, 120) if few_wrong else rng.beta(1, 5, 120)
    rare = np.zeros(120, bool)
    rare[:6] = True
    correct = ~rare if few_wrong else rare
    right, wrong = (lambda r: (1 - r) ** 2), (lambda r: r**2)
    usual, other = (right, wrong) if few_wrong else (wrong, right)
    base, size = usual(score), np.abs(other(score) - usual(score))
    total = float(size[rare].sum()) / 120
    sample = NumberSample(total, 120.0, 6.0, float((size[rare] ** 2).sum()))
    low, high = compute_rare_sum_limits(
        sample, UnseenError(float(size.mean()), float((size**2).mean()), inf), HALF
    )
    reach = Z * sqrt(float(((base - base.mean()) ** 2).sum())) / 120
    down, up = (total - low, high - total) if few_wrong else (high - total, total - low)
    t = hs.tally(score, correct=correct)
    value = hs.metrics.correctness_brier(t)
    task = limits.LimitsTask(
        metric=hs.metrics.correctness_brier,
        options={},
        case=SampleCase.of(t),
        value=value,
        half=HALF,
    )
    found = limits.limit_rare_outcome(task, ClaimLoss(right=right, wrong=wrong), 1.0)
    assert found == pytest.approx((value - hypot(reach, down), value + hypot(reach, up)))
    interval = hs.interval(hs.metrics.correctness_brier, t)
    assert interval[0] <= max(0.0, found[0]) + 1e-12
    assert interval[1] >= min(1.0, found[1]) - 1e-12


# ---- differences


def sides(n: int = 70, **more: Any) -> tuple[Outcomes, Outcomes]:
    a, b = made(n, 1, 0, **more), made(n, 1, 1, **more)
    return a, b


@pytest.mark.parametrize(
    ("metric", "slow", "unseen"),
    [
        (hs.aurc, slow_aurc, 0.4),
        (hs.e_aurc, partial(slow_aurc, excess=True), 0.4),
        (hs.augrc, slow_augrc, 1 / 15),
        (hs.auroc, slow_auroc, 0.0),
    ],
)
@pytest.mark.parametrize("grouped", [False, True])
def test_differences_of_ranking_numbers(
    metric: Any, slow: Any, unseen: float, grouped: bool
) -> None:
    a, b = sides(group=np.arange(70) // 5) if grouped else sides()
    units = Units.of(70, group=a.group)
    one, two = (np.array(slow(o)) for o in (a, b))
    one, two = one - one.mean(), two - two.mean()
    values = metric(a.tally()), metric(b.tally())
    errors = float((~a.right | ~b.right).sum())
    fewest = min((~o.right).sum() for o in (a, b))
    extra = 1 / (12 * (fewest + 1) ** 2) if metric is hs.auroc else 0.0
    found = limit_student_difference(
        values[0] - values[1], one - two, units, HALF, errors=errors, unseen=unseen, extra=extra
    )
    single = [hs.interval(metric, o) for o in (a, b)]
    expected = cover_both_limits(
        found,
        combine_limits(
            values[0], single[0], values[1], single[1], correlate_influences(one, two, units)
        ),
    )
    assert hs.paired_difference(metric, a, b) == pytest.approx((values[0] - values[1], *expected))


def test_a_side_without_limits_leaves_those_of_the_difference() -> None:
    perfect = Outcomes(np.linspace(0, 1, 60), correct=np.arange(60) >= 8)
    other = Outcomes(np.linspace(0, 1, 60), correct=np.arange(60) % 7 > 0)
    assert isnan(hs.interval(hs.aupr, perfect)[0])
    for a, b in (perfect, other), (other, perfect):
        difference, low, high = hs.paired_difference(hs.aupr, a, b)
        assert low < difference < high
        assert difference - low == pytest.approx(high - difference)  # Student's alone


@pytest.mark.parametrize("kind", ["plain", "weight", "group"])
def test_differences_of_accuracies(kind: str) -> None:
    a, b = sides(50)
    more: dict[str, Any] = {} if kind == "plain" else {kind: WEIGHT if kind == "weight" else GROUP}
    a, b = Outcomes(a.score, correct=a.right, **more), Outcomes(b.score, correct=b.right, **more)
    units = Units.of(50, more.get("weight"), more.get("group"))
    w = np.ones(50) if units.weight is None else units.weight
    d = a.right.astype(float) - b.right
    design = 1.0
    if kind == "weight":
        design = max(1.0, float((w**2 * d * d).sum() / (w * d * d).sum()))
    if kind == "group":
        design = compute_group_design(d - d.mean(), units, HALF)
    only_a, only_b = (float(w[d == x].sum()) / design for x in (1, -1))
    expected = limit_accuracy_difference(only_a, only_b, 50 / design, HALF)
    assert hs.paired_difference(hs.accuracy, a, b)[1:] == pytest.approx(expected)
    same = hs.paired_difference(hs.accuracy, a, a)[1:]
    least = {"plain": 1.0, "weight": float((w**2).sum()) / 50, "group": 50 / 8}[kind]
    assert same == pytest.approx(limit_accuracy_difference(0, 0, 50 / least, HALF))


def test_two_samples_are_enough_for_a_difference() -> None:
    a, b = Outcomes([0.9, 0.8], correct=[1, 0]), Outcomes([0.9, 0.8], correct=[0, 1])
    assert hs.paired_difference(hs.accuracy, a, b)[1:] == pytest.approx(
        limit_accuracy_difference(1, 1, 2, HALF)
    )
    assert isnan(hs.paired_difference(hs.accuracy, a[[0]], b[[0]])[1])


@pytest.mark.parametrize("metric", [hs.ece, hs.over_confidence, hs.under_confidence])
def test_differences_of_calibration_errors(metric: Any) -> None:
    a, b = made(400, 3, 0), made(400, 3, 1, right=-0.2)
    bins = hs.equal_range(15)
    part, sign = {
        hs.ece: ("all", np.sign),
        hs.over_confidence: ("over", influence.weigh_over),
        hs.under_confidence: ("under", influence.weigh_under),
    }[metric]
    cases = [SampleCase.of(o, singly=True) for o in (a, b)]
    single = [hs.interval(metric, o) for o in (a, b)]
    fair = [
        min(high, max(low, subtract_noise(c.count_in_bins(bins, sign, HALF), part)))
        for c, (low, high) in zip(cases, single, strict=True)
    ]
    one, two = (c.spread_over_samples(c.compute_gap_influence(bins, sign)) for c in cases)
    rho = max(0.0, correlate_influences(one, two, Units.of(400)))
    low, high = combine_limits(fair[0], single[0], fair[1], single[1], rho)
    difference = metric(a.tally()) - metric(b.tally())
    expected = difference, min(low, difference), max(high, difference)
    assert hs.paired_difference(metric, a, b) == pytest.approx(expected)


def test_being_right_counts_for_accuracy_and_against_a_loss() -> None:
    case = SampleCase.of(made(30), singly=True)
    assert case.outcomes is not None
    wrong = (~case.outcomes.right).astype(float)
    find = lambda metric: MetricSide(case=case, metric=metric, half=HALF).influence
    assert find(hs.accuracy) == pytest.approx(wrong.mean() - wrong)
    assert find(hs.metrics.proper_scores.mean_loss) == pytest.approx(wrong - wrong.mean())
    assert find(hs.ece) is None


# ---- joining, groups and weights of one side


@pytest.mark.parametrize("metric", [hs.aurc, hs.accuracy])
@pytest.mark.parametrize("name", ["group", "weight"])
def test_a_column_of_one_side_holds_for_both(metric: Any, name: str) -> None:
    column = {"group": GROUP, "weight": WEIGHT}[name]
    a, b = sides(50)
    bare = [Outcomes(o.score, correct=o.right) for o in (a, b)]
    full = [Outcomes(o.score, correct=o.right, **{name: column}) for o in (a, b)]
    both = hs.paired_difference(metric, *full)[1:]
    if name == "group":  # what is weighted has another value
        assert hs.paired_difference(metric, full[0], bare[1])[1:] == pytest.approx(both)
        assert hs.paired_difference(metric, bare[0], full[1])[1:] == pytest.approx(both)
    assert both != pytest.approx(hs.paired_difference(metric, *bare)[1:])


def test_samples_without_weight_are_none() -> None:
    a, b = sides(50)
    weight = np.where(np.arange(50) % 5 == 0, 0.0, WEIGHT)
    some = weight > 0
    full = [Outcomes(o.score, correct=o.right, weight=weight) for o in (a, b)]
    left = [Outcomes(o.score[some], correct=o.right[some], weight=weight[some]) for o in (a, b)]
    assert hs.paired_difference(hs.aurc, *full) == pytest.approx(
        hs.paired_difference(hs.aurc, *left)
    )
    assert hs.interval(hs.aurc, full[0]) == pytest.approx(hs.interval(hs.aurc, left[0]))


def test_groups_must_be_the_same() -> None:
    a, b = sides(50)
    one, two = (
        Outcomes(o.score, correct=o.right, group=g) for o, g in ((a, GROUP), (b, GROUP[::-1]))
    )
    with pytest.raises(InputError, match="put the same samples into different groups"):
        hs.paired_difference(hs.aurc, one, two)


def test_ids_of_one_side_say_nothing() -> None:
    a, b = sides(50)
    ids = np.random.default_rng(0).permutation(50)
    named = Outcomes(a.score, correct=a.right, id=ids)
    assert hs.paired_difference(hs.aurc, named, b) == hs.paired_difference(hs.aurc, a, b)
    assert hs.paired_difference(hs.aurc, b, named) == hs.paired_difference(hs.aurc, b, a)
    order = np.argsort(ids)
    other = Outcomes(b.score[order], correct=b.right[order], id=np.arange(50))
    assert hs.paired_difference(hs.aurc, named, other) == pytest.approx(
        hs.paired_difference(hs.aurc, a, b)
    )
    for where in (0, 1), (48, 49), (3, 20):
        twice = np.arange(50)
        twice[where[1]] = twice[where[0]]
        with pytest.raises(
            InputError,
            match=rf"id {where[0]} occurs twice in the first set \(rows {where[0]} and {where[1]}\)",
        ):
            hs.paired_difference(hs.aurc, Outcomes(a.score, correct=a.right, id=twice), named)


def test_what_cannot_be_paired() -> None:
    a, b = sides(50)
    with pytest.raises(InputError, match="a tally has forgotten which sample is which"):
        hs.paired_difference(hs.aurc, a.tally(), b)
    with pytest.raises(InputError, match="50 samples against 49"):
        hs.paired_difference(hs.aurc, a, b[:49])


def own(t: Any) -> float:
    """A metric of one's own, which has no closed form."""
    return float(t.total) / float(t.n)


def test_a_metric_of_ones_own_is_drawn_by_groups_where_there_are_any() -> None:
    right = np.repeat(RIGHT, 6)
    score = np.repeat(SCORE, 6)
    plain = hs.interval(own, Outcomes(score, correct=right))
    assert plain == hs.interval(own, hs.tally(score, correct=right))
    low, high = hs.interval(own, Outcomes(score, correct=right, group=np.repeat(np.arange(50), 6)))
    assert (high - low) / (plain[1] - plain[0]) == pytest.approx(sqrt(6), rel=0.12)
    a, b = Outcomes(score, correct=right), Outcomes(score, correct=np.roll(right, 6))
    _, low, high = hs.paired_difference(own, a, b)
    group = np.repeat(np.arange(50), 6)
    _, lower, higher = hs.paired_difference(
        own, *(Outcomes(o.score, correct=o.right, group=group) for o in (a, b))
    )
    assert (higher - lower) / (high - low) == pytest.approx(sqrt(6), rel=0.15)


def test_percentiles() -> None:
    found = np.arange(1, 1001.0)
    assert intervals.compute_percentiles(found, 0.9)[:2] == pytest.approx(
        np.quantile(found, [0.05, 0.95]).tolist()
    )
    some = np.append(np.full(30, nan), found[:970])
    assert (
        intervals.compute_percentiles(some, 0.95).why
        == "undefined in 3.0% of the draws: too few right or too few wrong answers"
    )
    assert intervals.compute_percentiles(some, 0.9).why is None
    assert "the same value" in str(intervals.compute_percentiles(np.ones(10), 0.9).why)


def test_a_metric_of_predictions_is_refused_for_tallies() -> None:
    assert isnan(hs.interval(hs.metrics.mce, hs.tally(SCORE, correct=RIGHT))[0])
    with pytest.raises(InputError, match="needs Predictions"):
        hs.interval(hs.metrics.nll, hs.tally(SCORE, correct=RIGHT))
    p = np.column_stack((SCORE, 1 - SCORE))
    preds = Predictions.from_probs(p, np.where(RIGHT, 0, 1))
    loss = -np.log(np.where(RIGHT, SCORE, 1 - SCORE))
    low, high = hs.interval(hs.metrics.nll, preds)
    assert low < loss.mean() < high
    other = Predictions.from_probs(p[:, ::-1], np.where(RIGHT, 0, 1))
    difference, low, high = hs.paired_difference(hs.metrics.nll, preds, other)
    assert difference == pytest.approx(
        loss.mean() + np.log(np.where(RIGHT, 1 - SCORE, SCORE)).mean()
    )
    assert low < difference < high


# ---- many models


def test_two_models_are_compared_as_by_a_normal_quantile() -> None:
    for k, extra in (9.0, 0.0), (1.0, 1e-3):
        c = np.array([[4.0, 1.0], [1.0, 3.0]]) * 1e-4
        error = sqrt((4 + 3 - 2) * 1e-4 * (1 + 4 / (k + 1)) + extra)
        table = intervals.ModelSpread(c, k, 1.3, extra)
        for times, far in (0.98, False), (1.02, True), (-1.02, True), (-0.98, False):
            assert intervals.find_beyond_equal(
                table, np.array([times * 1.3 * Z * error]), [(0, 1)], 0.95, 0
            ) == [far]
        assert intervals.find_beyond_equal(table, np.array([nan]), [(0, 1)], 0.95, 0) == [False]


def test_equal_influences_are_never_clear() -> None:
    table = intervals.ModelSpread(np.ones((3, 3)), 5.0, 1.0, 0.0)
    assert (
        intervals.find_beyond_equal(table, np.ones(3), [(0, 1), (0, 2), (1, 2)], 0.95, 0)
        == [False] * 3
    )


def test_ten_independent_models_need_the_studentised_range() -> None:
    """All pairs of ten independent normal numbers: Tukey's quantile over √2."""
    pair = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    q = stats.studentized_range.ppf(0.95, 10, 1e6) / sqrt(2)
    table = intervals.ModelSpread(np.eye(10), inf, 1.0, 0.0)
    for times, far in (0.97, False), (1.03, True):
        assert (
            intervals.find_beyond_equal(table, np.full(45, times * q * sqrt(2)), pair, 0.95, 0)
            == [far] * 45
        )


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("metric", [hs.accuracy, hs.auroc])
def test_the_covariance_of_models(metric: Any, grouped: bool) -> None:
    group = np.arange(70) // 5 if grouped else None
    models = [made(70, 1, seed, group=group) for seed in range(3)]
    slow = {hs.accuracy: lambda o: o.right - o.right.mean(), hs.auroc: slow_auroc}[metric]
    psi = np.array([slow(o) for o in models], dtype=float)
    if grouped:
        psi = np.array(
            [[p[group == g].sum() / (1 - 5 / 70) for g in range(14)] for p in psi]
        ) * sqrt(13 / 14)
    found = intervals.measure_spread(metric, intervals.join_sides(metric, models, 0.95))
    fewest = min(int((~o.right).sum()) for o in models)
    assert found is not None
    assert found.covariance == pytest.approx(psi @ psi.T / 70**2)
    assert found.errors == fewest
    assert found.wider == pytest.approx(stats.t.ppf(0.975, 13) / Z if grouped else 1.0)
    assert found.extra == pytest.approx(1 / (12 * (fewest + 1) ** 2) if metric is hs.auroc else 0.0)
    sides = intervals.join_sides(hs.ece, models, 0.95)
    assert intervals.measure_spread(hs.ece, sides) is None


def test_limits_of_other_metrics_are_shared_out_among_pairs() -> None:
    risk = partial(hs.risk_at_coverage, coverage=0.9)
    rng = np.random.default_rng(0)
    models = [
        Outcomes(rng.random(200), correct=rng.random(200) < p) for p in (0.95, 0.9, 0.82, 0.75)
    ]
    found = intervals.all_differences(risk, models)
    assert [(p.first, p.second) for p in found] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    alone = 0
    for p in found:
        difference, low, high = hs.paired_difference(risk, models[p.first], models[p.second])
        assert (p.difference, p.low, p.high) == (difference, low, high)
        _, lower, higher = hs.paired_difference(
            risk, models[p.first], models[p.second], 1 - 0.05 / 6
        )
        assert p.clear == (lower > 0 or higher < 0)
        alone += low > 0 or high < 0
    assert 0 < sum(p.clear for p in found) < alone
    assert sum(p.clear for p in intervals.all_differences(risk, models[::-1])) == sum(
        p.clear for p in found
    )


def test_a_comparison_needs_two() -> None:
    a, b = sides()
    assert len(intervals.all_differences(hs.accuracy, [a, b])) == 1
    with pytest.raises(InputError, match="1 model; a comparison needs at least two"):
        intervals.all_differences(hs.accuracy, [a])


def test_clear_needs_the_pair_s_own_limits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "find_beyond_equal", lambda *_: [True, False, True])
    for own_limits, clear in (
        ([(0.1, -0.1, 0.3), (0.3, 0.1, 0.5), (-0.2, -0.4, -0.1)], [False, False, True]),
        ([(0.1, 0.0, 0.3), (0.3, 0.1, 0.5), (-0.2, -0.4, 0.0)], [False, False, False]),
        ([(0.1, 1e-9, 0.3), (0.3, 0.1, 0.5), (-0.2, -0.4, -1e-9)], [True, False, True]),
    ):
        monkeypatch.setattr(intervals, "measure_pairs", lambda *_, own=own_limits: own)
        found = intervals.all_differences(hs.accuracy, [*sides(), made(70, 1, 5)])
        assert [p.clear for p in found] == clear


# ---- the positive class


@pytest.mark.parametrize("kind", ["plain", "weight", "group"])
def test_observed_over_expected(kind: str) -> None:
    more: dict[str, Any] = {} if kind == "plain" else {kind: WEIGHT if kind == "weight" else GROUP}
    o = Outcomes(SCORE, correct=RIGHT, **more)
    w = WEIGHT / WEIGHT.mean() if kind == "weight" else np.ones(50)
    value = float((w * RIGHT).sum() / (w * SCORE).sum())
    psi = (RIGHT - value * SCORE) / float((w * SCORE).mean())
    case = SampleCase.of(o)
    where = {s: i for i, s in enumerate(case.rows.score.tolist())}
    part = RowInfluence(np.empty(50), np.full(50, -1 / float((w * SCORE).mean())))
    for s in SCORE.tolist():
        part.start[where[s]] = (1 - value * s) / float((w * SCORE).mean())
    design = case.compute_design(lambda: part, HALF)
    error = sqrt(float((w * psi**2).sum()) * design) / 50
    reach = exp(Z * error / value)
    assert class_limits.compute_observed_limits(o, 0.95) == Interval(
        pytest.approx(value / reach), pytest.approx(value * reach)
    )


def test_nothing_observed_or_expected_has_no_limits() -> None:
    assert "no positive cases" in str(
        class_limits.compute_observed_limits(hs.tally([0.2, 0.4], correct=[0, 0]), 0.95).why
    )
    assert "no positive cases" in str(
        class_limits.compute_observed_limits(hs.tally([0.0, 0.0], correct=[0, 1]), 0.95).why
    )
    even = class_limits.compute_observed_limits(hs.tally([0.5] * 10, correct=[1, 0] * 5), 0.95)
    assert even.why is None  # a ratio of 1 is one


def logistic(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        information = (x * (p * (1 - p))[:, None]).T @ x
        beta = beta + np.linalg.solve(information, x.T @ (y - p))
    return beta, np.linalg.inv(information)


@pytest.mark.parametrize("grouped", [False, True])
def test_recalibration_by_newton(grouped: bool) -> None:
    rng = np.random.default_rng(2)
    score, group = rng.beta(2, 2, 120).clip(0.02, 0.98), np.arange(120) // 4
    y = rng.random(120) < score
    x = np.column_stack((np.ones(120), np.log(score / (1 - score))))
    beta, covariance = logistic(x, y.astype(float))
    o = Outcomes(score, correct=y, group=group if grouped else None)
    for i, found in enumerate(class_limits.compute_line_limits(o, 0.95)):
        design = 1.0
        if grouped:
            psi = 120 * (x @ covariance[i]) * (y - 1 / (1 + np.exp(-x @ beta)))
            design = compute_group_design(psi, Units.of(120, group=group), HALF)
        reach = Z * sqrt(covariance[i, i] * design)
        assert (found.low, found.high) == pytest.approx(
            (beta[i] - reach, beta[i] + reach), rel=1e-6
        )
    why = class_limits.compute_line_limits(hs.tally(score, correct=np.ones(120)), 0.95)[0].why
    assert "one class is missing" in str(why)


def test_a_curve_lies_between_its_outer_half_percents() -> None:
    rng = np.random.default_rng(3)
    score = np.sort(rng.beta(2, 2, 1000).clip(0.001, 0.999))
    y = rng.random(1000) < score
    c = class_limits.flexible_calibration(Outcomes(score, correct=y))
    assert (c.x[0], c.x[-1], len(c.x)) == (pytest.approx(score[4]), pytest.approx(score[994]), 101)
    assert ((c.low > 0) & (c.low < c.y) & (c.y < c.high) & (c.high < 1)).all()
    assert np.abs(c.y - c.x).max() < 0.12
    assert np.diff(c.x) == pytest.approx(np.full(100, (c.x[-1] - c.x[0]) / 100))
    logit = lambda p: np.log(p / (1 - p))
    assert logit(c.y) - logit(c.low) == pytest.approx(logit(c.high) - logit(c.y))
    wide = class_limits.flexible_calibration(Outcomes(score, correct=y), level=0.99)
    assert (logit(wide.high) - logit(wide.y)) / (logit(c.high) - logit(c.y)) == pytest.approx(
        np.full(101, stats.norm.ppf(0.995) / Z)
    )
    with pytest.raises(InputError, match="there is no curve"):
        class_limits.flexible_calibration(Outcomes(score, correct=np.ones(1000)))


def test_under_confidence_without_an_error_is_seen() -> None:
    """Sixty right answers of sixty at claims of 0.95 have a chance of 0.046; thin intervals drown
    it.
    """
    assert (
        calibration_testing.calibration_test(
            Outcomes(np.linspace(0.9, 1, 60), correct=np.ones(60, dtype=bool))
        ).p
        < 0.25
    )


# ---- where a few groups or heavy samples decide


@pytest.mark.parametrize("kind", ["group", "weight"])
def test_the_few_that_decide(kind: str) -> None:
    """Distinct scores, so that every sample has its own row."""
    o = Outcomes(SCORE, correct=RIGHT, **{kind: GROUP if kind == "group" else WEIGHT})  # type: ignore[arg-type]
    case = SampleCase.of(o)
    w = WEIGHT / WEIGHT.mean() if kind == "weight" else np.ones(50)
    share = float((w * ~RIGHT).sum()) / 50
    if kind == "group":
        many = np.bincount(GROUP)
        size = [
            (~RIGHT - share)[g == GROUP].sum() / (1 - many[g] / 50) * sqrt(7 / 8) for g in range(8)
        ]
        squares = sum(s * s for s in size)
        worse = [max(0.0, s) for s in size]
        largest = power(worse, 2) / sum(s * m for s, m in zip(worse, many, strict=True)) * max(many)
    else:
        squares = float((w**2 * (~RIGHT - share) ** 2).sum())
        worse, largest = [(1 - share) * x for x in w[~RIGHT]], (1 - share) * max(w)
    decide, wrong = power(worse, 2) ** 2 / power(worse, 4), float((w * ~RIGHT).sum())
    part = influence.compute_error_influence(case, share)
    assert case.find_deciding(part) == pytest.approx(
        (power(worse, 1), squares, decide, largest, wrong)
    )
    some = sqrt(max(0.0, 1 - decide / wrong))
    mean = some * (largest + power(worse, 1) / (decide + 1))
    square = some * (largest**2 + squares / (decide + 1))
    wider = stats.t.ppf(0.975, 7) / Z if kind == "group" else 1.0
    m, v = share + mean / 50, (squares * wider**2 + square) / 50**2
    found = limits.find_deciding_high(case, part, share, HALF)
    assert found == pytest.approx(stats.gamma.ppf(0.975, m * m / v, scale=v / m))
    low, high = hs.interval(hs.accuracy, o)
    assert low <= 1 - found + 1e-12
    assert low < 1 - share < high


def power(sizes: Any, i: int) -> float:
    return sum(s**i for s in sizes)


def test_where_nobody_is_wrong_nobody_decides() -> None:
    assert means.count_deciding(np.zeros(3)) == 0
    assert means.count_deciding(np.array([0.1]), np.array([2.0])) == pytest.approx(2)
    right = SampleCase.of(Outcomes(SCORE, correct=np.ones(50, dtype=bool), group=GROUP))
    assert right.find_deciding(influence.compute_error_influence(right, 0.0)) == DecidingUnits(
        0.0, 0.0, 0.0, 0.0, 0.0
    )


def test_weights_of_groups_count_in_what_decides() -> None:
    case = SampleCase.of(Outcomes(SCORE, correct=RIGHT, group=GROUP, weight=WEIGHT))
    w, wrong = WEIGHT / WEIGHT.mean(), (~RIGHT).astype(float)
    share = float((w * wrong).mean())
    found = case.find_deciding(influence.compute_error_influence(case, share))
    alone = np.maximum(w * (wrong - share), 0.0)
    assert found.alone == pytest.approx(power(alone, 2) ** 2 / power(alone, 4))
    size = np.bincount(GROUP, w)
    worse = np.maximum(means.sum_by_unit(wrong - share, case.units), 0.0)
    assert found.largest == pytest.approx(power(worse, 2) / (worse @ size) * size.max())


UPPER: list[Any] = [
    hs.aurc,
    hs.e_aurc,
    hs.augrc,
    hs.ece,
    hs.aece,
    hs.over_confidence,
    hs.debiased_ece,
    hs.rms_calibration_error,
    hs.correctness_brier,
    hs.correctness_nll,
    partial(hs.risk_at_coverage, coverage=0.8),
    partial(hs.ece, bins=hs.equal_range(4)),
]


@pytest.mark.parametrize("metric", UPPER)
def test_upper_ends_with_groups_allow_for_the_few_that_decide(metric: Any) -> None:
    case = SampleCase.of(Outcomes(SCORE, correct=RIGHT, group=GROUP))
    value = metric(case.tally)
    part = influence.compute_influence(metric, case, value)
    assert part is not None
    few = limits.find_deciding_high(case, part, value, HALF)
    found = limits.compute_limits(metric, case, HALF)
    assert found is not None
    top = {hs.augrc: 0.5, hs.correctness_nll: np.inf}.get(metric, 1.0)
    assert found.high >= min(top, few) - 1e-12
    assert found.high <= top


@pytest.mark.parametrize(
    "metric",
    [
        hs.ece,
        hs.over_confidence,
        hs.under_confidence,
        partial(hs.aece, bins=hs.equal_range(7)),
        partial(hs.rms_calibration_error, bins=hs.equal_range(7)),
        hs.correctness_brier,
        hs.correctness_nll,
        hs.accuracy,
    ],
)
def test_influences_are_the_slopes_of_their_numbers(metric: Any) -> None:
    """A sample counts a little more: the number moves by its influence over n."""
    case = SampleCase.of(Outcomes(SCORE, correct=RIGHT, group=GROUP))
    value = metric(case.tally)
    part = influence.compute_influence(metric, case, value)
    assert part is not None
    for i in range(0, 50, 7):
        heavier = np.ones(50)
        heavier[i] += 1e-6
        moved = (metric(Outcomes(SCORE, correct=RIGHT, weight=heavier).tally()) - value) / 1e-6 * 50
        assert moved == pytest.approx(case.spread_over_samples(part)[i], abs=1e-3)


def test_a_risk_at_a_coverage_is_moved_by_the_accepted() -> None:
    case = SampleCase.of(Outcomes(SCORE, correct=RIGHT, group=GROUP))
    value = hs.risk_at_coverage(case.tally, coverage=0.6)
    part = influence.compute_influence(partial(hs.risk_at_coverage, coverage=0.6), case, value)
    assert part is not None
    kept = np.sort(SCORE)[::-1][29] <= SCORE
    assert case.spread_over_samples(part) == pytest.approx(kept * (~RIGHT - value) / 0.6, abs=1e-9)


def test_a_number_that_is_better_the_higher_it_is_has_no_such_end() -> None:
    case = SampleCase.of(Outcomes(SCORE, correct=RIGHT, group=GROUP))
    assert limits.find_group_high(hs.auroc, case, hs.auroc(case.tally), HALF) == -np.inf
    assert limits.find_group_high(hs.signed_calibration_error, case, 0.1, HALF) == -np.inf
    assert limits.find_group_high(hs.optimal_aurc, case, 0.1, HALF) == -np.inf
    alike = SampleCase.of(Outcomes(SCORE, correct=RIGHT))
    assert limits.find_group_high(hs.ece, alike, 0.1, HALF) == -np.inf
