"""The recipes of limits once more, sample by sample, by loops or by another library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import hypot, inf, log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats

import howsure as hs
from howsure import Outcomes
from howsure.bounds import compute_proportion_limits
from howsure.metrics.proper_scores import mean_loss
from howsure.uncertainty import (
    calibration_limits,
    calibration_testing,
    influence,
    limits,
    means,
    ranking_limits,
    sample_case,
)
from howsure.uncertainty.calibration_limits import BinCounts
from howsure.uncertainty.influence import Ranks
from howsure.uncertainty.means import Units, compute_group_design, estimate_freedom, sum_by_unit
from howsure.uncertainty.paired import (
    combine_limits,
    correlate_influences,
    cover_both_limits,
    limit_accuracy_difference,
    limit_student_difference,
)
from howsure.uncertainty.sample_case import SampleCase

HALF = 0.025
Z = stats.norm.ppf(1 - HALF)


@pytest.fixture(autouse=True)
def groups_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipes of groups are looked at with few of them, which would be taken as rows."""
    monkeypatch.setattr(sample_case, "UNSAFE_BELOW_GROUPS", 0)


def made(
    n: int = 60, decimals: int = 1, seed: int = 0, right: float = 0.0, **more: Any
) -> Outcomes:
    """Outcomes with ties, and with errors among the most trusted; `right` moves the share of right
    answers.
    """
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 1, n).round(decimals).clip(0.01, 0.99)
    return Outcomes(score, correct=rng.random(n) < np.clip(score + right, 0.05, 0.95), **more)


def rows_of(o: Outcomes) -> list[tuple[float, float, float, float]]:
    """Count, errors, samples before and at the end of each distinct score, from the most trusted
    down.
    """
    out, before = [], 0
    for score in sorted(set(o.score.tolist()), reverse=True):
        at = o.score == score
        out.append((int(at.sum()), int((~o.right[at]).sum()), before, before + int(at.sum())))
        before += int(at.sum())
    return out


def row_of(o: Outcomes) -> list[int]:
    order = sorted(set(o.score.tolist()), reverse=True)
    return [order.index(s) for s in o.score.tolist()]


def slow_aurc(o: Outcomes, excess: bool = False) -> list[float]:
    n, rows, out = len(o), rows_of(o), []
    e = float((~o.right).mean())
    for j, ok in zip(row_of(o), o.right.tolist(), strict=True):
        c, wrong, before, end = rows[j]
        rise = before / c * log(end / before) if before else 0.0
        x = 1 + log(n / end) - rise
        below = sum(w / size * log(a / b) for size, w, b, a in rows[j + 1 :])
        g = below + wrong / c * (1 - rise)
        out.append(
            (0 if ok else x) - g + (log(1 - e) * ((not ok) - e) if excess and e < 1 else 0.0)
        )
    return out


def slow_augrc(o: Outcomes) -> list[float]:
    n, rows, out = len(o), rows_of(o), []
    for j, ok in zip(row_of(o), o.right.tolist(), strict=True):
        _, wrong, before, end = rows[j]
        below = sum(w for _, w, _, _ in rows[j + 1 :]) + wrong / 2
        out.append((0 if ok else 1 - (end + before) / (2 * n)) - below / n)
    return out


def slow_auroc(o: Outcomes) -> list[float]:
    """Of AUROC itself: pairs are compared one by one."""
    n, k = len(o), int((~o.right).sum())
    a = 1 - hs.auroc(o.tally())
    beats = lambda one, two: 1.0 if one < two else 0.5 if one == two else 0.0
    good, bad = o.score[o.right].tolist(), o.score[~o.right].tolist()
    out = []
    for s, ok in zip(o.score.tolist(), o.right.tolist(), strict=True):
        place = np.mean([beats(s, w) for w in bad]) if ok else np.mean([beats(r, s) for r in good])
        out.append((a - place) * n / (n - k if ok else k))
    return out


def slow_aupr(o: Outcomes, errors: bool) -> list[float]:
    n, positive = len(o), ~o.right if errors else o.right
    score = -o.score if errors else o.score
    order = sorted(set(score.tolist()), reverse=True)
    k, y, shown, found, parts = int(positive.sum()), 0.0, 0, 0, []
    for s in order:
        here = int(positive[score == s].sum())
        shown, found = shown + int((score == s).sum()), found + here
        parts.append((shown, found / shown, here))
        y += here / k * found / shown
    out = []
    for s, pos in zip(score.tolist(), positive.tolist(), strict=True):
        j = order.index(s)
        later = sum(here * (pos - p) / a for a, p, here in parts[j:])
        out.append(n / k * (pos * (parts[j][1] - y) + later))
    return out


PARTS: list[tuple[Callable[[Ranks], Any], Callable[[Outcomes], list[float]], float]] = [
    (influence.compute_aurc_influence, slow_aurc, 1e-9),
    (influence.compute_e_aurc_influence, partial(slow_aurc, excess=True), 1e-9),
    (influence.compute_augrc_influence, slow_augrc, 1e-9),
    (influence.compute_auroc_influence, slow_auroc, 1e-9),
    (influence.compute_aupr_error_influence, partial(slow_aupr, errors=True), 1e-9),
    (
        influence.compute_aupr_success_influence,
        partial(slow_aupr, errors=False),
        0.05,
    ),  # gaps are taken as free of ties
]


@pytest.mark.parametrize(("part", "slow", "close"), PARTS, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize(("decimals", "right"), [(1, 0.0), (6, 0.0), (1, -0.5), (2, 0.3)])
def test_influences_sample_by_sample(
    part: Any, slow: Any, close: float, decimals: int, right: float
) -> None:
    if close > 1e-3:
        decimals, close = 6, 0.05 if right >= 0 else 0.2  # nothing is tied, and few stand in a gap
    o = made(80, decimals, right=right)
    case = SampleCase.of(o, singly=True)
    expected = np.array(slow(o))
    expected = expected - expected.mean()
    found = part(case.ranks)
    assert case.spread_over_samples(case.spread_over_rows(found)) == pytest.approx(
        expected, abs=close * max(1.0, np.abs(expected).max())
    )
    assert found.sum_squares(case.ranks) == pytest.approx(
        float((expected**2).sum()), rel=max(close, 1e-9)
    )


def test_nothing_is_to_be_gained_where_everything_is_wrong() -> None:
    r = Ranks(np.array([0.0]), np.array([4.0]), np.array([4.0]), 4.0)
    for one, two in zip(
        influence.compute_e_aurc_influence(r), influence.compute_aurc_influence(r), strict=True
    ):
        assert one.tolist() == two.tolist()


def test_what_an_error_adds_to_its_own_precision() -> None:
    o = made(50)
    rows = rows_of(o)[::-1]
    shown = found = 0
    total = 0.0
    for c, wrong, *_ in rows:
        shown, found = shown + c, found + wrong
        total += wrong * (1 - found / shown) / shown
    assert influence.compute_own_precision(SampleCase.of(o).ranks) == pytest.approx(
        total / int((~o.right).sum())
    )


# ---- means


@pytest.mark.parametrize("skew", [-0.4, -1e-3, 1e-3, 0.2, 0.7])
@pytest.mark.parametrize("t", [-3.0, -1.0, 0.5, 2.2])
def test_hall_s_transformation_is_inverted(t: float, skew: float) -> None:
    x = means.invert_hall(t, skew)
    assert calibration_testing.apply_hall(np.array([x]), np.array([skew]))[0] == pytest.approx(
        t
    )  # the same forwards
    assert x + skew * (x * x / 3 + 1 / 6) + skew**2 * x**3 / 27 == pytest.approx(t)
    assert means.invert_hall(t, 0.0) == t


@pytest.mark.parametrize("n", [1.0, 1.5, 2.0, 7.0, 300.0])
def test_a_mean_without_skewness_is_student_s(n: float) -> None:
    df = max(1.0, n - 1)
    reach = stats.t.ppf(1 - HALF, df) * sqrt(0.4 / df / n)
    assert means.compute_mean_limits(0.3, 0.4, 0.0, n, HALF) == pytest.approx(
        (0.3 - reach, 0.3 + reach)
    )
    assert means.compute_mean_limits(0.3, 0.0, 0.0, n, HALF) == (0.3, 0.3)
    assert means.compute_mean_limits(0.3, -1e-20, 0.0, n, HALF) == (0.3, 0.3)  # rounding


def test_the_scale_of_losses_does_not_matter() -> None:
    one, thousand = (
        means.compute_mean_limits(2.0, 5.0, 3.0, 20, HALF),
        means.compute_mean_limits(2e3, 5e6, 3e9, 20, HALF),
    )
    assert thousand == pytest.approx(tuple(1e3 * x for x in one))
    assert one[1] - 2 > 2 - one[0] > 0  # what is skewed upwards is surer downwards


def test_student() -> None:
    assert means.student_quantile(inf, HALF) == pytest.approx(Z)
    assert means.student_quantile(3.5, 0.01) == pytest.approx(stats.t.ppf(0.99, 3.5))


@pytest.mark.parametrize("group", [None, np.array([0, 0, 1, 1, 1, 2])])
def test_the_standard_error_of_a_mean(group: np.ndarray | None) -> None:
    d = np.array([1.0, 2.0, 4.0, 1.0, 0.0, 7.0])
    rest = d - d.mean()
    sums = rest if group is None else np.array([rest[group == g].sum() for g in range(3)])
    assert means.standard_error(d, group) == pytest.approx(sqrt((sums**2).sum()) / 6)


# ---- groups, weights and differences


def unit_squares(psi: np.ndarray, units: Units) -> np.ndarray:
    w = np.ones(units.n) if units.weight is None else units.weight
    if units.group is None:
        return (w * psi) ** 2
    out = []
    for g in range(units.many):
        at = units.group == g
        out.append((w * psi)[at].sum() / (1 - w[at].sum() / units.n))
    return np.array(out) ** 2 * (units.many - 1) / units.many


def kinds() -> list[Units]:
    rng = np.random.default_rng(3)
    weight, group = rng.random(40) + 0.2, rng.integers(0, 7, 40)
    return [
        Units.of(40),
        Units.of(40, weight),
        Units.of(40, group=group),
        Units.of(40, 1e-6 * weight, [f"g{g}" for g in group]),
    ]


@pytest.mark.parametrize("units", kinds())
def test_units(units: Units) -> None:
    psi = np.random.default_rng(0).normal(size=40)
    squares = unit_squares(psi, units)
    assert sum_by_unit(psi, units) ** 2 == pytest.approx(squares)
    weight = np.ones(40) if units.weight is None else units.weight
    assert weight.mean() == pytest.approx(1)
    assert units.total(psi) == pytest.approx(float((weight * psi).sum()))
    if units.group is not None:
        wide = (stats.t.ppf(1 - HALF, slow_freedom(squares, 6)) / Z) ** 2
        expected = max(1.0, squares.sum() / (weight * psi**2).sum()) * wide
        assert compute_group_design(psi, units, HALF) == pytest.approx(expected)
        assert compute_group_design(0 * psi, units, HALF) == pytest.approx(40 / 7)


def slow_freedom(squares: np.ndarray, most: float) -> float:
    rest = (squares**2).sum() - squares.sum() ** 2 / len(squares)
    return max(1.0, min(most, 2 * squares.sum() ** 2 / rest))


@pytest.mark.parametrize("scale", [1e-18, 1e-9, 1.0, 1e9])
def test_degrees_of_freedom_have_no_unit(scale: float) -> None:
    uneven = np.array([1.0, 2.0, 5.0, 0.5])
    assert estimate_freedom(scale * uneven, 50) == pytest.approx(slow_freedom(uneven, 50))
    assert estimate_freedom(scale * uneven, 2) == pytest.approx(2)
    assert estimate_freedom(scale * np.ones(6), 5) == 5
    assert estimate_freedom(scale * np.ones(6), 1) == 1
    assert estimate_freedom(scale * np.ones(6), 0.5) == 1
    assert estimate_freedom(scale * np.array([1.0, 0, 0, 0]), 50) == pytest.approx(2 / (3 / 4))


@pytest.mark.parametrize(("a", "b", "n"), [(5, 2, 30), (0, 0, 4), (12.5, 3.25, 100.5)])
def test_bonett_and_price(a: float, b: float, n: float) -> None:
    p, q = (a + 1) / (n + 2), (b + 1) / (n + 2)
    reach = Z * sqrt((p + q - (p - q) ** 2) / (n + 2))
    assert limit_accuracy_difference(a, b, n, HALF) == pytest.approx((p - q - reach, p - q + reach))


def test_a_difference_of_shares_is_one_of_shares() -> None:
    assert limit_accuracy_difference(0, 1, 1, 1e-6)[0] == -1
    assert limit_accuracy_difference(1, 0, 1, 1e-6)[1] == 1


@pytest.mark.parametrize("units", kinds())
@pytest.mark.parametrize(
    ("errors", "unseen", "extra"), [(12, 0.4, 0.0), (3, 0.0, 1e-3), (inf, 0.0, 0.0)]
)
def test_student_s_difference(units: Units, errors: float, unseen: float, extra: float) -> None:
    d = np.random.default_rng(1).normal(size=40)
    squares = unit_squares(d, units)
    variance = (squares.sum() * (1 + 4 / (errors + 1)) + unseen) / 40**2 + extra
    df = slow_freedom(squares, inf if units.group is None else 6)
    reach = stats.t.ppf(1 - HALF, df) * sqrt(variance)
    found = limit_student_difference(0.1, d, units, HALF, errors=errors, unseen=unseen, extra=extra)
    assert found == pytest.approx((0.1 - reach, 0.1 + reach))


def test_a_difference_has_no_more_degrees_of_freedom_than_groups() -> None:
    """Five groups that add as much each, with either sign."""
    units, d = Units.of(40, group=np.arange(40) // 8), np.repeat([1.0, -1.0, 1.0, -1.0, 1.0], 8)
    squares = unit_squares(d, units)
    reach = stats.t.ppf(1 - HALF, 4) * sqrt(squares.sum()) / 40
    assert limit_student_difference(0.0, d, units, HALF, errors=inf)[1] == pytest.approx(reach)


def test_a_difference_without_variation_has_one_degree_of_freedom() -> None:
    low, high = limit_student_difference(
        0.0, np.zeros(10), Units.of(10), HALF, errors=0, unseen=0.4
    )
    assert (low, high) == pytest.approx(
        (-stats.t.ppf(0.975, 1) * sqrt(0.4) / 10, stats.t.ppf(0.975, 1) * sqrt(0.4) / 10)
    )


@pytest.mark.parametrize("units", kinds())
def test_correlations(units: Units) -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=40)
    b = a + rng.normal(size=40)
    one, two = sum_by_unit(a, units), sum_by_unit(b, units)
    expected = float((one * two).sum()) / sqrt(float((one**2).sum()) * float((two**2).sum()))
    assert correlate_influences(a, b, units) == pytest.approx(expected)
    assert -1 < expected < 1
    assert correlate_influences(a, a, units) == pytest.approx(1)
    assert correlate_influences(a, -a, units) == pytest.approx(-1)
    assert correlate_influences(a, 0 * a, units) == 0


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.7])
def test_zou_and_donner(rho: float) -> None:
    low, high = combine_limits(0.5, (0.3, 0.6), 0.2, (0.15, 0.4), rho)
    assert low == pytest.approx(0.3 - sqrt(0.2**2 + 0.2**2 - 2 * rho * 0.2 * 0.2))
    assert high == pytest.approx(0.3 + sqrt(0.1**2 + 0.05**2 - 2 * rho * 0.1 * 0.05))


def test_the_hull_holds_both() -> None:
    assert cover_both_limits((0.1, 0.3), (0.2, 0.5)) == (0.1, 0.5)
    assert cover_both_limits((0.2, 0.5), (0.1, 0.3)) == (0.1, 0.5)


# ---- calibration errors

COLUMNS = (
    np.array([40.0, 300.0, 25.0, 120.0]),
    np.array([12.0, 260.0, 24.0, 60.0]),
    np.array([30.0, 190.0, 23.0, 58.0]),
)
SQUARES = np.array([14.0, 80.0, 2.0, 33.0])
KINDS = [
    BinCounts(*COLUMNS),
    BinCounts(*COLUMNS, design=2.5),
    BinCounts(*COLUMNS, squares=SQUARES),
    BinCounts(*COLUMNS, 2.0, SQUARES),
]


class Slow:
    """One bin by hand."""

    def __init__(self, b: BinCounts, j: int):
        n, claim, right = (float(c[j]) for c in (b.count, b.claim, b.right))
        self.n, self.share, self.gap = n / b.design, n / float(b.count.sum()), (claim - right) / n
        p, accuracy = (right / b.design + 1) / (n / b.design + 2), right / n
        self.seen = accuracy * (1 - accuracy)
        if b.squares is not None:
            self.seen = max(0.0, float(b.squares[j]) / n - self.gap**2)
        self.third = (
            -p * (1 - p) * (1 - 2 * p) / self.n**2 * self.share**3 * (1 if self.gap > 0 else -1)
        )
        self.differing = max(0.0, p * (1 - p) + self.seen - accuracy * (1 - accuracy))
        self.se = self.share * sqrt(self.differing / self.n)
        self.se0 = self.share * sqrt(max(claim / n * (1 - claim / n), p * (1 - p)) / self.n)
        clear = abs(self.share * self.gap) > 3.5 * self.se0
        self.sign = 0 if not clear else 1 if self.gap > 0 else -1


@pytest.mark.parametrize("b", KINDS)
@pytest.mark.parametrize("part", ["all", "over", "under"])
def test_limits_of_calibration_errors(b: BinCounts, part: str) -> None:
    bins = [Slow(b, j) for j in range(4)]
    assert {x.sign for x in bins} == {-1, 0, 1}
    side = {"all": abs, "over": lambda g: max(g, 0.0), "under": lambda g: max(-g, 0.0)}[part]
    out = {"all": None, "over": -1, "under": 1}[part]  # bins of this clear sign have no share
    size = [x.share * side(x.gap) for x in bins]
    value = sum(size)
    spread = max(
        0.0, sum(s * s / x.share for s, x in zip(size, bins, strict=True)) - value**2
    ) / sum(x.n for x in bins)
    known = [x for x in bins if x.sign not in (0, out)]
    unclear = [x for x in bins if x.sign == 0]
    variance = sum(x.se**2 for x in known) + spread
    rare = (
        inf
        if b.squares is None
        else max(1.0, min(b.right.sum(), (b.count - b.right).sum()) / b.design)
    )
    wide = [x.se if b.squares is None else max(x.se, x.se0) for x in unclear]
    above = variance + sum(e * e for e in wide)
    bent = max(0.0, sum(x.third for x in bins if x.sign != out)) / above**1.5
    upper = value - means.invert_hall(-means.student_quantile(rare, HALF), bent) * sqrt(above)
    noise = calibration_limits.HALF_NORMAL if part == "all" else calibration_limits.POSITIVE_PART
    first, second, third = (m * sum(x.se0 ** (i + 1) for x in unclear) for i, m in enumerate(noise))
    sd = sqrt(second + variance)
    skew = third / sd**3
    lower = value - first - sd * stats.pearson3.ppf(1 - HALF, skew)
    limits = {
        "all": calibration_limits.compute_error_limits,
        "over": partial(calibration_limits.compute_error_limits, part="over"),
        "under": partial(calibration_limits.compute_error_limits, part="under"),
    }[part]
    assert limits(b, HALF) == pytest.approx((max(0.0, lower), min(1.0, upper)), abs=1e-9)


def test_moments_of_one_sided_noise() -> None:
    half = stats.halfnorm.stats(moments="mvs")
    for found, true in zip(
        calibration_limits.HALF_NORMAL, (half[0], half[1], half[2] * half[1] ** 1.5), strict=True
    ):
        assert found == pytest.approx(float(true), abs=1e-9)
    mean = 1 / sqrt(2 * np.pi)  # of max(0, Z); its square has mean 1/2, its cube 2/√(2π)
    third = 2 * mean - 3 * mean / 2 + 2 * mean**3
    assert (
        pytest.approx((mean, 1 / 2 - mean**2, third), abs=1e-9) == calibration_limits.POSITIVE_PART
    )


@pytest.mark.parametrize(
    ("variance", "third"), [(2.0, 0.5), (0.3, 0.4), (4.0, 0.0), (0.0, 0.0), (1e-12, 1e-18)]
)
@pytest.mark.parametrize("at", [0.025, 0.5, 0.975])
def test_three_moments(variance: float, third: float, at: float) -> None:
    sd = sqrt(variance)
    expected = sd * stats.pearson3.ppf(at, third / sd**3) if sd else 0.0
    assert calibration_limits.shifted_gamma_quantile(variance, third, at) == pytest.approx(
        expected, rel=1e-6, abs=1e-12
    )


@pytest.mark.parametrize("b", KINDS)
def test_limits_of_the_root_mean_square(b: BinCounts) -> None:
    bins = [Slow(b, j) for j in range(4)]
    n = sum(x.n for x in bins)
    square = sum(x.share * x.gap**2 for x in bins)
    spread = max(0.0, sum(x.share * x.gap**4 for x in bins) - square**2) / n
    along = (sum(x.share**2 * x.gap**2 * x.differing / x.n for x in bins) + spread / 4) / square
    second = third = bias = 0.0
    for x in bins:
        noise = x.differing / x.n
        true = max(0.0, x.gap**2 - noise)
        second += x.share**2 * (2 * noise**2 + 4 * true * noise)  # of (gap + noise)²
        third += x.share**3 * (8 * noise**3 + 24 * true * noise**2)
        bias += x.share * x.seen / (x.n - 1)
    second += spread
    low = square - bias - sqrt(second) * stats.pearson3.ppf(1 - HALF, third / second**1.5)
    found = calibration_limits.compute_rms_limits(b, HALF)
    assert found == pytest.approx((sqrt(max(0.0, low)), min(1.0, sqrt(square) + Z * sqrt(along))))


def test_bins_of_one_sample_tell_no_noise() -> None:
    more = [np.append(column, x) for column, x in zip(COLUMNS, (1.0, 0.5, 1.0), strict=True)]
    assert np.isfinite(calibration_limits.compute_rms_limits(BinCounts(*more), HALF)).all()
    flat = BinCounts(np.array([50.0, 50.0]), np.array([25.0, 40.0]), np.array([25.0, 40.0]))
    noise = sum(0.5 * p * (1 - p) / 50 for p in (26 / 52, 41 / 52))
    assert calibration_limits.compute_rms_limits(flat, HALF) == pytest.approx(
        (0.0, Z * sqrt(noise))
    )  # no gap at all


@pytest.mark.parametrize("b", KINDS)
@pytest.mark.parametrize("part", ["all", "over", "under"])
def test_what_is_left_without_noise(b: BinCounts, part: str) -> None:
    total = 0.0
    for j in range(4):
        x = Slow(b, j)
        signed = x.share * (-x.gap if part == "under" else x.gap)
        z = signed / x.se0
        mean = (
            x.se0 * (1 if part == "all" else 0.5) * sqrt(2 / np.pi) * sqrt(2) * np.exp(-z * z / 2)
        )
        total += (abs(signed) if part == "all" else max(signed, 0.0)) - mean
    assert calibration_limits.subtract_noise(b, part) == pytest.approx(max(0.0, total), abs=1e-9)  # type: ignore[arg-type]


def test_the_noise_floor_is_the_mean_deviation_of_a_binomial_number() -> None:
    n, p = np.array([3, 17, 40]), np.array([0.2, 0.6, 0.95])
    each = []
    for count, chance in zip(n.tolist(), p.tolist(), strict=True):
        k = np.arange(count + 1)
        each.append(float((stats.binom.pmf(k, count, chance) * np.abs(k / count - chance)).sum()))
    b = BinCounts(n.astype(float), n * p, n * 0.5)
    assert calibration_limits.compute_noise_floor(b) == pytest.approx(float(np.dot(n / 60, each)))
    certain = BinCounts(np.array([5.0, 5.0]), np.array([0.0, 5.0]), np.array([1.0, 4.0]))
    assert calibration_limits.compute_noise_floor(certain) == 0


# ---- ranking


@pytest.mark.parametrize(("mean", "variance"), [(0.2, 0.01), (3.0, 5.0), (0.7, 1e-6)])
def test_gamma_and_beta_quantiles(mean: float, variance: float) -> None:
    for at in 0.01, 0.5, 0.975:
        shape = mean**2 / variance
        expected = stats.gamma.ppf(at, shape, scale=variance / mean)
        assert ranking_limits.gamma_quantile(mean, variance, at) == pytest.approx(expected)
        if mean < 1:
            size = mean * (1 - mean) / variance - 1
            expected = stats.beta.ppf(at, mean * size, (1 - mean) * size)
            assert ranking_limits.beta_quantile(mean, variance, at) == pytest.approx(expected)


def test_quantiles_without_a_distribution() -> None:
    assert ranking_limits.gamma_quantile(0.5, 0.0, 0.9) == 0.5
    assert ranking_limits.gamma_quantile(0.0, 0.5, 0.9) == 0.0
    assert ranking_limits.gamma_quantile(-0.1, 0.5, 0.9) == 0.0
    for mean in 0.0, 0.3, 1.0:
        assert ranking_limits.beta_quantile(mean, 0.0, 0.9) == mean
    for mean in 0.0, 1.0:
        assert ranking_limits.beta_quantile(mean, 0.1, 0.025) == mean
    assert ranking_limits.beta_quantile(0.4, 0.3, 0.025) == 0.0  # all mass at the ends
    assert ranking_limits.beta_quantile(0.4, 0.3, 0.975) == 1.0


def slow_high(
    value: float,
    n: float,
    k: float,
    squares: float,
    unit: tuple[float, float],
    beside: tuple[float, float],
    half: float,
) -> float:
    """DEFINITIONS 13.2, with the weights of what is unseen: u alone, going over to `beside` with
    more errors.
    """
    mean, square = ((u + k * b) / (k + 1) for u, b in zip(unit, beside, strict=True))
    m = value + (mean + 2 * n * value / (k + 1)) / n
    v = (squares + square + 2 * squares / (k + 1)) / n**2
    return float(stats.gamma.ppf(1 - half, m * m / v, scale=v / m))


@pytest.mark.parametrize(
    ("value", "k"), [(0.0, 0.0), (0.02, 5.0), (0.3, 35.5), (0.7, 80.0), (0.93, 99.0)]
)
def test_gamma_limits(value: float, k: float) -> None:
    n, squares = 100.0, 40 * value * (1 - value)
    s = ranking_limits.NumberSample(value, n, k, squares)
    m = n - k
    low = (
        stats.gamma.ppf(HALF, value**2 * n**2 / squares, scale=squares / n**2 / value)
        if value
        else 0.0
    )
    high = slow_high(value, n, k, squares, (1, 2), (2, 6), HALF)
    lower = (
        1 - min(1.0, slow_high(1 - value, n, m, squares, (1, 2), (0.5, 1), HALF)) if m < k else 1.0
    )
    assert ranking_limits.compute_gamma_limits(s, ranking_limits.AREA_ERROR, HALF) == pytest.approx(
        (max(0.0, min(low, lower)), min(1.0, high))
    )
    a = log(n / (m + 1))
    more = (
        slow_high(value, n, m, squares, (a, a * a + 1), (a / 2, (a * a + 1) / 2), HALF)
        if m < k
        else 0.0
    )
    assert ranking_limits.compute_excess_limits(s, HALF) == pytest.approx(
        (low, max(min(1.0, high), min(1.0, more)))
    )
    if value <= 0.5:
        general = slow_high(value, n, k, squares, (1 / 2, 1 / 3), (1 / 4, 1 / 6), HALF)
        found = ranking_limits.compute_gamma_limits(s, ranking_limits.GENERALISED_ERROR, HALF)
        assert found[1] == pytest.approx(min(0.5, general))
    rare = ranking_limits.compute_rare_sum_limits(
        s, ranking_limits.UnseenError(1.5, 3.0, inf), HALF
    )
    assert rare == pytest.approx(
        (low, slow_high(value, n, k, squares, (1.5, 3), (0.75, 1.5), HALF))
    )


@pytest.mark.parametrize("design", [1.0, 2.5])
@pytest.mark.parametrize(
    "o",
    [
        made(60),
        made(50, 3),
        made(40, right=-0.5),
        Outcomes([0.9, 0.8, 0.7, 0.1], correct=[1, 1, 1, 0]),
    ],
)
def test_auroc_limits(o: Outcomes, design: float) -> None:
    good, bad = o.score[o.right], o.score[~o.right]
    pairs = (good[:, None] < bad).astype(float) + 0.5 * (good[:, None] == bad)
    v, w, a = pairs.mean(axis=0), pairs.mean(axis=1), float(pairs.mean())
    k, m = len(bad) / design, len(good) / design
    ends = []
    for h1, h2, at in (0.0, 0.0, HALF), (0.5, 1 / 3, 1 - HALF):
        mean = min(1.0, max(0.0, a + (h1 - a) * (1 / (k + 1) + 1 / (m + 1))))
        variance = 0.0
        for z, c in (v, k), (w, m):
            variance += (
                ((z**2).sum() / design + h2) / (c + 1) - ((z.sum() / design + h1) / (c + 1)) ** 2
            ) / (c + 2)
        size = mean * (1 - mean) / variance - 1 if variance > 0 else 0
        ends.append(mean if not size else stats.beta.ppf(at, mean * size, (1 - mean) * size))
    case = SampleCase.of(o)
    assert ranking_limits.compute_auroc_limits(case.ranks, design, HALF) == pytest.approx(
        (1 - ends[1], 1 - ends[0])
    )


def test_a_sample_with_a_design_effect() -> None:
    s = ranking_limits.NumberSample(0.1, 100.0, 20.0, 5.0).divide(2.5)
    assert (s.value, s.n, s.k, s.squares, s.m) == (0.1, 40.0, 8.0, 2.0, 32.0)


def test_right_answers_of_a_sample() -> None:
    assert [
        ranking_limits.NumberSample(0.5, 10.0, k, 1.0).m for k in (0.0, 9.5, 10.0, 10.0 + 1e-9)
    ] == [
        10.0,
        0.5,
        0.0,
        0.0,
    ]


def test_average_precision_of_a_majority_is_that_of_what_is_missing() -> None:
    s = ranking_limits.NumberSample(0.8, 90.0, 60.0, 14.0)
    low, high = ranking_limits.compute_gamma_limits(
        ranking_limits.NumberSample(0.2, 90.0, 30.0, 14.0), ranking_limits.AREA_ERROR, HALF
    )
    assert ranking_limits.compute_aupr_limits(s, HALF) == pytest.approx((1 - high, 1 - low))
    half = ranking_limits.NumberSample(0.8, 90.0, 45.0, 14.0)
    low, high = ranking_limits.compute_gamma_limits(
        ranking_limits.NumberSample(0.2, 90.0, 45.0, 14.0), ranking_limits.AREA_ERROR, HALF
    )
    assert ranking_limits.compute_aupr_limits(half, HALF) == pytest.approx((1 - high, 1 - low))
    assert (
        ranking_limits.compute_aupr_limits(ranking_limits.NumberSample(1.0, 90.0, 20.0, 0.0), HALF)
        is None
    )


@pytest.mark.parametrize(
    ("value", "k", "own"), [(0.6, 20.0, 0.0), (0.6, 20.0, 0.05), (0.3, 1.0, 0.2), (0.55, 99.0, 0.0)]
)
def test_average_precision_of_a_minority_is_student_s_on_log_odds(
    value: float, k: float, own: float
) -> None:
    """The upper end; how much further the lower one lies is a matter of simulation."""
    s = ranking_limits.NumberSample(value, 200.0, k, 30.0)
    found = ranking_limits.compute_aupr_limits(s, HALF, own)
    fair = max(value - own, value / 2)
    wider = 1 + max(2 / k, 1 / sqrt(k))
    reach = stats.t.ppf(1 - HALF, max(1.0, k - 1)) * sqrt(30 * wider) / (200 * fair * (1 - fair))
    odds = log(fair / (1 - fair))
    assert found is not None
    assert found[1] == pytest.approx(max(value, 1 / (1 + np.exp(-odds - reach))))
    below = odds - log(found[0] / (1 - found[0]))
    assert 1 < below / reach < 1 + 3 / sqrt(k)


def slow_last_below(
    kept: np.ndarray, missed: np.ndarray, risk: float, at: float, middle: bool
) -> int | None:
    tail = stats.binom.cdf(missed, kept, risk) - (
        stats.binom.pmf(missed, kept, risk) / 2 if middle else 0.0
    )
    return max(np.flatnonzero((kept > 0) & (tail <= at)).tolist(), default=None)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("risk", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("n", [1, 3, 12, 80, 1500])
def test_the_last_cut_below_a_risk(n: int, risk: float, seed: int) -> None:
    rng = np.random.default_rng([seed, n])
    wrong = rng.random(n) < np.linspace(0, rng.choice([2.5, 4.0]) * risk, n) + rng.choice(
        [0.0, 0.02]
    )
    kept, missed = np.arange(n + 1.0), np.append(0.0, np.cumsum(wrong))
    for at, middle in (HALF, False), (1 - HALF, True), (0.3, False), (0.3, True):
        tail = ranking_limits.binomial_mid_tail if middle else ranking_limits.binomial_tail
        found, slow = (
            ranking_limits.find_last_cut(kept, missed, risk, at, tail),
            slow_last_below(kept, missed, risk, at, middle),
        )
        assert (found or None) == (slow or None)


def test_at_a_risk_of_0_what_precedes_the_first_error_may_be_accepted() -> None:
    kept, missed = np.array([0.0, 1, 2, 3]), np.array([0.0, 0, 0, 1])
    assert ranking_limits.binomial_mid_tail(kept, missed, 0.0).tolist()[1:] == [0.5, 0.5, 1.0]
    assert (
        ranking_limits.find_last_cut(kept, missed, 0.0, 1 - HALF, ranking_limits.binomial_mid_tail)
        == 2
    )
    assert (
        ranking_limits.find_last_cut(kept, missed, 0.0, HALF, ranking_limits.binomial_tail) is None
    )


@pytest.mark.parametrize("size", [4_000, 1_000_000])
def test_a_stretch_that_may_hold_the_last_cut_is_looked_at(size: int) -> None:
    """One and a half standard errors too many everywhere: possible to the end, and surely nowhere."""
    kept = np.arange(1.0, size + 1)
    missed = np.floor(kept / 2 + 0.75 * np.sqrt(kept))
    assert (
        ranking_limits.find_last_cut(kept, missed, 0.5, 1 - HALF, ranking_limits.binomial_mid_tail)
        == size - 1
    )
    fewer = np.floor(kept / 2 - 0.75 * np.sqrt(kept))
    assert (
        ranking_limits.find_last_cut(kept, fewer, 0.5, 0.1, ranking_limits.binomial_tail)
        == size - 1
    )
    found = ranking_limits.find_last_cut(kept, fewer, 0.5, HALF, ranking_limits.binomial_tail)
    assert found is None or found < 50


def test_binomial_tails() -> None:
    n, k = np.array([10.0, 10, 10, 7, 3]), np.array([0.0, 3, 10, 1, 0])
    whole = stats.binom.cdf(k, n, 0.2)
    assert ranking_limits.binomial_tail(n, k, 0.2) == pytest.approx(whole)
    assert ranking_limits.binomial_mid_tail(n, k, 0.2) == pytest.approx(
        whole - stats.binom.pmf(k, n, 0.2) / 2
    )


@pytest.mark.parametrize("wide", [False, True])
def test_the_upper_end_of_a_share_that_may_be_accepted(wide: bool) -> None:
    """U is the last cut that may be; it moves by the error of the share, or by all of it inside a
    wide row.
    """
    n = 600
    score, wrong = np.linspace(1, 0, n), np.zeros(n, bool)
    wrong[100:142] = wrong[400:] = True  # 10.5 % of 400: more than the risk, and not clearly
    if wide:
        score[100:400], score[400:] = 0.5, 0.1
    o = Outcomes(score, correct=~wrong)
    rows = rows_of(o)
    ends = [0, *(a for *_, a in rows)]
    errors = np.append(0, np.cumsum([w for _, w, *_ in rows]))
    last = slow_last_below(np.array(ends, float), errors.astype(float), 0.1, 1 - HALF, True)
    assert last is not None
    share = ends[last] / n
    step = float(compute_proportion_limits(share * n, n, HALF)[1]) - share
    point = hs.coverage_at_risk(o.tally(), risk=0.1)
    expected = share + step if wide else point + hypot(share - point, step)
    found = hs.interval(partial(hs.coverage_at_risk, risk=0.1), o.tally())
    assert found[1] == pytest.approx(min(1.0, expected))
    assert 0 <= found[0] < point < share


@pytest.mark.parametrize("wide", [False, True])
def test_the_lower_end_of_a_share_that_is_surely_accepted(wide: bool) -> None:
    """L is the last cut that surely is: five errors of 400, before 40 of the next 100."""
    n = 600
    score, wrong = np.linspace(1, 0, n), np.zeros(n, bool)
    wrong[100:105] = wrong[400:440] = wrong[500:] = True
    score[400:500], score[500:] = 0.2, 0.1
    if wide:
        score[100:400] = 0.5
    down = 400 / n - float(compute_proportion_limits(400.0, float(n), HALF)[0])
    point = 500 / n
    expected = 400 / n - down if wide else point - hypot(point - 400 / n, down)
    t = hs.tally(score, correct=~wrong)
    assert hs.coverage_at_risk(t, risk=0.1) == pytest.approx(point)
    assert hs.interval(partial(hs.coverage_at_risk, risk=0.1), t)[0] == pytest.approx(expected)


def test_shares_at_the_ends() -> None:
    good = hs.tally(np.linspace(0, 1, 200), correct=np.ones(200))
    assert hs.interval(partial(hs.coverage_at_risk, risk=0.1), good) == (1.0, 1.0)
    bad = hs.tally(np.linspace(0, 1, 200), correct=np.zeros(200))
    none = float(compute_proportion_limits(0.0, 200.0, HALF)[1])
    assert hs.interval(partial(hs.coverage_at_risk, risk=0.001), bad) == pytest.approx((0.0, none))
    up = (
        float(compute_proportion_limits(1.0, 200.0, HALF)[1]) - 1 / 200
    )  # one error at the top may be by chance
    assert hs.interval(partial(hs.coverage_at_risk, risk=0.1), bad) == pytest.approx(
        (0.0, hypot(1 / 200, up))
    )


def rows_beside_the_cut(before: bool, after: bool) -> Outcomes:
    """Cuts at 90 % of 200: a wide row may end just before, another one may begin soon after."""
    score, wrong = np.linspace(1, 0, 200), np.zeros(200, bool)
    wrong[[20, 50, 80, 110, 140, 179]] = wrong[187:193] = True
    if before:
        score[165:179] = score[165]
    if after:
        score[187:199] = score[187]
    return Outcomes(score, correct=~wrong)


@pytest.mark.parametrize(
    "o",
    [made(60), made(300, 3), made(120, 1, right=-0.3), made(90, 2, right=0.3)]
    + [
        rows_beside_the_cut(*wide)
        for wide in ((True, True), (True, False), (False, True), (False, False))
    ],
)
@pytest.mark.parametrize("coverage", [0.1, 0.35, 0.8, 0.9, 1.0])
def test_risk_at_a_coverage(o: Outcomes, coverage: float) -> None:
    n, rows = len(o), rows_of(o)
    ends, errors = [a for *_, a in rows], np.cumsum([w for _, w, *_ in rows])

    def cut(rank: float) -> tuple[int, int]:
        j = next(i for i, end in enumerate(ends) if end >= rank - 1e-9)
        return ends[j], int(errors[j])

    share = (
        stats.beta.ppf(HALF, coverage * n, n - coverage * n + 1),
        (stats.beta.ppf(1 - HALF, coverage * n + 1, n - coverage * n) if coverage < 1 else 1.0),
    )
    ranks = [coverage * n, share[0] * n, min(share[1] * n, n)]
    (kept, wrong), (less_kept, less), (more_kept, more) = (cut(rank) for rank in ranks)
    limits = [
        compute_proportion_limits(float(w), float(k), HALF)
        for k, w in ((kept, wrong), (less_kept, less), (more_kept, more))
    ]
    value = wrong / kept
    low, high = float(limits[0][0]), float(limits[0][1])
    if coverage < 1:
        low = value - hypot(value - low, max(0.0, value - less / less_kept))
        high = value + hypot(high - value, max(0.0, more / more_kept - value))
        off = (share[1] - share[0]) / 2 * n
        wide = [k - rank > off for k, rank in zip((kept, less_kept, more_kept), ranks, strict=True)]
        low = min(low, float(limits[1][0])) if wide[1] or wide[0] else low
        high = max(high, float(limits[2][1])) if wide[2] or wide[0] else high
    found = hs.interval(partial(hs.risk_at_coverage, coverage=coverage), o.tally())
    assert found == pytest.approx((max(0.0, low), min(1.0, high)))


# ---- means of losses


def slow_mean(loss: np.ndarray, other: np.ndarray | None) -> tuple[float, float]:
    """Hall's limits of a mean from single losses; `other` is how far each would be with the other
    outcome.
    """
    n, mean = len(loss), float(loss.mean())
    off = loss - mean
    squares, cubes = sum(x**2 for x in off.tolist()), sum(x**3 for x in off.tolist())
    t, skew, step = stats.t.ppf(1 - HALF, n - 1), cubes / squares**1.5, cubes / squares / 2
    more, more_square = max(0.0, step), 0.0
    if other is not None:
        more, more_square = (
            sum(x**i for x in other.tolist()) / sum(other.tolist()) for i in (2, 3)
        )
    low = mean - means.invert_hall(t, skew) * sqrt(squares / (n - 1) / n) - max(0.0, -step) / n
    return low, mean - means.invert_hall(-t, skew) * sqrt(
        (squares + more_square) / (n - 1) / n
    ) + more / n


@pytest.mark.parametrize("claims", ["usual", "near a half"])
@pytest.mark.parametrize("metric", [hs.correctness_brier, hs.correctness_nll])
def test_means_of_losses_of_claims(metric: Any, claims: str) -> None:
    rng = np.random.default_rng(3)
    score = (
        rng.beta(2, 2, 1500).clip(0.02, 0.98) if claims == "usual" else np.full(1500, 0.5 + 1e-4)
    )
    right = rng.random(1500) < score
    if metric is hs.correctness_brier:
        good, bad = (1 - score) ** 2, score**2
    else:
        good, bad = -np.log(score), -np.log1p(-score)
    low, high = slow_mean(np.where(right, good, bad), np.abs(bad - good))
    found = hs.interval(metric, Outcomes(score, correct=right))
    assert found == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize("side", [1, -1])
def test_a_gap_may_be_skewed_to_either_side(side: int) -> None:
    rng = np.random.default_rng(4)
    score = (rng.beta(6, 2, 3000) if side > 0 else rng.beta(2, 6, 3000)).clip(0.02, 0.98)
    right = rng.random(3000) < score
    found = hs.interval(hs.signed_calibration_error, Outcomes(score, correct=right))
    assert found == pytest.approx(slow_mean(score - right, None), rel=1e-9)


@pytest.mark.parametrize("cubes", [0.02, -0.02])
def test_small_deviations_are_skewed_too(cubes: float) -> None:
    low, high = means.compute_mean_limits(0.1, 0.5, cubes, 50, HALF)
    t, skew, step, error = (
        stats.t.ppf(1 - HALF, 49),
        cubes / 0.5**1.5,
        cubes / 0.5 / 2,
        sqrt(0.5 / 49 / 50),
    )
    assert low == pytest.approx(0.1 - means.invert_hall(t, skew) * error - max(0.0, -step) / 50)
    assert high == pytest.approx(0.1 - means.invert_hall(-t, skew) * error + max(0.0, step) / 50)


@pytest.mark.parametrize("kind", ["plain", "groups", "weights"])
def test_means_of_losses_of_all_classes(kind: str) -> None:
    rng = np.random.default_rng(5)
    loss, n = rng.uniform(0.2, 0.3, 400), 400
    columns = {
        "groups": {"group": np.arange(n) // 8},
        "weights": {"weight": rng.uniform(0.5, 3, n)},
    }.get(kind, {})
    case = SampleCase.of(Outcomes(-loss, loss=loss, **columns), singly=True)
    weight = columns.get("weight", np.ones(n)) / np.mean(columns.get("weight", np.ones(n)))
    value = float((weight * loss).mean())
    squares = float((weight * (loss - value) ** 2).sum())
    design = case.compute_design(lambda: influence.compute_error_influence(case, value), HALF)
    assert (design > 1) == (kind != "plain")
    size = n / design
    student = value + stats.t.ppf(1 - HALF, size - 1) * sqrt(squares / design / (size - 1) / size)
    some = limits.compute_limits(partial(mean_loss, other=lambda _: 0.0), case, HALF, value)
    assert some is not None
    first, second = value * n, squares + value**2 * n
    seen = second / first
    sample = ranking_limits.NumberSample(value, n, first**2 / second, squares).divide(design)
    rare = ranking_limits.compute_rare_sum_limits(
        sample, ranking_limits.UnseenError(seen, seen**2, inf, (seen, seen**2)), HALF
    )
    assert (some.low, some.high) == pytest.approx((rare[0], max(rare[1], student)))
    bare = limits.compute_limits(mean_loss, case, HALF, value)
    assert bare is not None
    assert bare.low < value < bare.high


def test_the_surprise_that_was_not_seen_is_that_of_an_easy_sample() -> None:
    """Four losses of 6 among 60 decide: an easy sample is taken to lose 4/60 of the mean, and
    another label more.
    """
    loss, asked = np.repeat([0.001, 6.0], [56, 4]), list[float]()
    case = SampleCase.of(Outcomes(-loss, loss=loss))

    def other(x: float) -> float:
        asked.append(x)
        return 3.0

    with_it, without = (
        limits.compute_limits(partial(mean_loss, other=o), case, HALF)
        for o in (other, lambda _: 0.0)
    )
    assert with_it is not None
    assert without is not None
    assert asked == pytest.approx([loss.mean() * loss.sum() ** 2 / (loss**2).sum() / 60])
    assert with_it.low == without.low
    assert with_it.high > without.high + 3 / 60


def test_few_groups_of_equal_losses_are_few_degrees_of_freedom() -> None:
    """Four groups, all alike inside: Student's t with hardly more than none reaches further than
    rare surprises.
    """
    group = np.arange(40) // 10
    loss = np.where(group == 3, 0.8, 0.2)
    case, value = (
        SampleCase.of(Outcomes(-loss, loss=loss, group=group), singly=True),
        float(loss.mean()),
    )
    size = 40 / case.compute_design(lambda: influence.compute_error_influence(case, value), HALF)
    squares = float(((loss - value) ** 2).sum()) * size / 40
    found = limits.compute_limits(partial(mean_loss, other=lambda _: 0.0), case, HALF, value)
    assert found is not None
    assert found.high == pytest.approx(
        value + stats.t.ppf(1 - HALF, max(1.0, size - 1)) * sqrt(squares / size)
    )


def test_one_loss_tells_nothing_of_others() -> None:
    case = SampleCase.of(Outcomes([-0.2], loss=[0.2]))
    found = limits.compute_limits(partial(mean_loss, other=lambda _: 0.0), case, HALF, 0.2)
    assert found is not None
    assert found.why == limits.ONE_SAMPLE
