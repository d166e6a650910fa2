"""What one small change in a recipe of limits would change for a user."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Outcomes, Predictions, metrics
from howsure.uncertainty import bootstrap
from howsure.uncertainty.calibration_testing import ClaimRows, list_directions, run_group_tests
from howsure.uncertainty.class_limits import compute_net_benefit_limits
from howsure.uncertainty.intervals import net_benefit_difference
from howsure.uncertainty.limits import compute_limits
from howsure.uncertainty.means import Units, compute_group_design, estimate_freedom
from howsure.uncertainty.paired import limit_student_difference
from howsure.uncertainty.sample_case import SampleCase

RNG = np.random.default_rng(7)
SCORE = RNG.beta(3, 1, 400).round(2)
RIGHT = RNG.random(400) < SCORE
GRADES = np.where(RIGHT, 0.0, RNG.random(400))
TWICE = np.repeat(np.arange(400), 2)


def test_units_that_end_one_row_and_begin_the_next() -> None:
    """All samples are one unit: what it adds to each row is what the row holds."""
    o = Outcomes(SCORE, correct=RIGHT)
    rows = bootstrap.coarsen(o.tally())
    table = bootstrap._build_table(o, np.zeros(400, np.int64), rows)
    assert table.row.tolist() == list(range(len(rows.score)))
    assert np.array_equal(np.bincount(table.row, table.count), rows.count)
    assert np.array_equal(np.bincount(table.row, table.loss), rows.loss)


def test_claims_without_doubt_have_no_line() -> None:
    rows = ClaimRows.of(hs.tally([0.0, 1.0, 1.0], correct=[0, 1, 1]))
    directions = list_directions(rows, with_line=True)
    assert directions.shape[1] == 4
    assert not directions[:, 2:].any()


@pytest.mark.parametrize(("size", "tested"), [(30, True), (29, False)])
def test_a_group_of_thirty_is_tested(size: int, tested: bool) -> None:
    group = np.repeat(["good", "bad"], size)
    claims = np.full(2 * size, 0.8)
    right = np.concatenate([np.arange(size) % 5 > 0, np.arange(size) % 5 == 0])
    found = run_group_tests(Outcomes(claims, correct=right, group=group), 0, with_line=False)
    assert found.worst_group == ("bad" if tested else None)


def test_net_benefit_of_samples_and_of_counts() -> None:
    o = Outcomes(SCORE, correct=RIGHT)
    one, two = (compute_net_benefit_limits(source, 0.7, 0.95) for source in (o, o.tally()))
    assert (one.low, one.high) == pytest.approx((two.low, two.high))
    assert one.low < one.high


def make_pair(times: int) -> tuple[Predictions, Predictions]:
    """Two models on the same cases, each case so many times."""
    rng = np.random.default_rng(1)
    truth = rng.random(400)
    labels = (rng.random(400) < truth).astype(int).repeat(times)
    group = None if times == 1 else TWICE
    noisy = [np.clip(truth + rng.normal(0, s, 400), 0, 1).repeat(times) for s in (0.1, 0.3)]
    one, two = (Predictions.from_probs(p, labels, group=group) for p in noisy)
    return one, two


def test_cases_that_are_there_twice_widen_no_benefit() -> None:
    once = net_benefit_difference(*make_pair(1), 0.3)
    twice = net_benefit_difference(*make_pair(2), 0.3)
    assert twice == pytest.approx(once, rel=0.05)
    for threshold in (0.0, 1.0):
        with pytest.raises(InputError, match="a probability between 0 and 1 is needed"):
            net_benefit_difference(*make_pair(1), threshold)


@pytest.mark.parametrize("kind", ["accuracy", "coverage", "risk", "grades"])
def test_samples_that_are_there_twice_widen_no_limits(kind: str) -> None:
    measures = {
        "coverage": partial(metrics.coverage_at_risk, risk=0.2),
        "risk": partial(metrics.risk_at_coverage, coverage=0.5),
    }
    measure = measures.get(kind, hs.accuracy)
    given = {"loss": GRADES} if kind == "grades" else {"correct": RIGHT}
    doubled = {name: values.repeat(2) for name, values in given.items()}
    once = hs.interval(measure, Outcomes(SCORE, **given))
    twice = hs.interval(measure, Outcomes(SCORE.repeat(2), **doubled, group=TWICE))
    assert twice == pytest.approx(once, abs=0.005)


def test_limits_of_grades_are_about_two_standard_errors_away() -> None:
    low, high = hs.interval(hs.accuracy, Outcomes(SCORE, loss=GRADES))
    reach = 1.96 * GRADES.std() / 20
    assert (low, high) == pytest.approx(
        (1 - GRADES.mean() - reach, 1 - GRADES.mean() + reach), abs=0.2 * reach
    )


@pytest.mark.parametrize(("n", "unsafe"), [(9, True), (10, False)])
def test_limits_of_few_grades_are_unsafe(n: int, unsafe: bool) -> None:
    case = SampleCase.of(Outcomes(SCORE[:n], loss=GRADES[:n]))
    found = compute_limits(hs.accuracy, case, 0.025)
    assert found is not None
    assert ("unsafe" in (found.note or "")) == unsafe


def test_gaps_of_grades_are_squared_one_by_one() -> None:
    o, bins = Outcomes(SCORE, loss=GRADES), hs.binning.equal_range(10)
    gaps = (SCORE - (1 - GRADES)) ** 2
    place = np.clip(np.ceil(SCORE * 10) - 1, 0, 9)
    by_bin = [gaps[place == i].sum() for i in range(9, -1, -1) if (place == i).any()]
    found = SampleCase.of(o).sum_gap_squares(bins)
    assert sorted(found) == pytest.approx(sorted(by_bin))


def test_freedom_does_not_depend_on_the_unit() -> None:
    squares = np.exp(3 * RNG.normal(size=50))
    assert estimate_freedom(squares * 1e15, 49) == pytest.approx(estimate_freedom(squares, 49))
    assert estimate_freedom(squares, 49) < 49


def test_small_influences_have_groups_too() -> None:
    """Design effects and degrees of freedom are ratios, however small the numbers are."""
    group, influence = np.arange(100) // 2, np.tile([1.0, 1.0, -1.0, -1.0], 25)
    units = Units.of(100, group=group)
    assert compute_group_design(influence / 1e3, units, 0.025) == pytest.approx(
        compute_group_design(influence, units, 0.025)
    )
    low, high = limit_student_difference(0.0, influence / 1e3, units, 0.025, errors=50)
    wide = limit_student_difference(0.0, influence, units, 0.025, errors=50)
    assert (low * 1e3, high * 1e3) == pytest.approx(wide)
