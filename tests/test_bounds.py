"""Upper bounds: hand values, edges, and that they are missed as rarely as they say."""

import numpy as np
import pytest
from scipy.stats import binom

from howsure import InputError, bounds


def test_no_error_is_the_rule_of_three_in_exact_form() -> None:
    assert bounds.clopper_pearson(0, 50, 0.05) == pytest.approx(1 - 0.05 ** (1 / 50), abs=1e-12)


def test_clopper_pearson_solves_its_equation() -> None:
    b = bounds.clopper_pearson(7, 90, 0.1)
    assert binom.cdf(7, 90, b) == pytest.approx(0.1, abs=1e-10)


@pytest.mark.parametrize(("errors", "n"), [(0, 0), (4, 4)])
def test_nothing_known_or_all_wrong_is_one(errors: int, n: int) -> None:
    assert bounds.clopper_pearson(errors, n, 0.05) == 1.0


def test_interval_has_both_sides() -> None:
    low, high = bounds.clopper_pearson_interval(9, 10, 0.9)
    assert binom.sf(8, 10, low) == pytest.approx(0.05, abs=1e-10)
    assert binom.cdf(9, 10, high) == pytest.approx(0.05, abs=1e-10)
    assert bounds.clopper_pearson_interval(0, 0) == (0.0, 1.0)


def test_hoeffding_bentkus_of_no_loss_equals_the_exact_one() -> None:
    assert bounds.hoeffding_bentkus(0.0, 50, 0.05) == pytest.approx(1 - 0.05 ** (1 / 50), abs=1e-9)


def test_hoeffding_bentkus_is_never_below_the_exact_bound() -> None:
    for errors in range(0, 40, 4):
        assert (
            bounds.hoeffding_bentkus(errors / 40, 40, 0.1)
            >= bounds.clopper_pearson(errors, 40, 0.1) - 1e-9
        )


def test_betting_gains_from_a_small_variance() -> None:
    losses = np.full(300, 0.2)
    assert 0.2 < bounds.betting(losses, 0.05) < bounds.hoeffding_bentkus(0.2, 300, 0.05)


def test_betting_of_nothing_and_of_ones() -> None:
    assert bounds.betting([], 0.1) == 1.0
    assert bounds.betting([1.0] * 50, 0.1) == 1.0


@pytest.mark.parametrize("bound", ["hoeffding_bentkus", "betting"])
def test_bounds_for_losses_are_missed_at_most_delta(bound: str) -> None:
    rng, missed = np.random.default_rng(1), 0
    for _ in range(400):
        x = rng.beta(0.5, 2.0, 60)  # mean 0.2
        upper = (
            bounds.betting(x, 0.1)
            if bound == "betting"
            else bounds.hoeffding_bentkus(x.mean(), 60, 0.1)
        )
        missed += upper < 0.2
    assert binom.sf(missed - 1, 400, 0.1) > 1e-3


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2, float("nan")])
def test_delta_must_lie_inside(delta: float) -> None:
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        bounds.clopper_pearson(1, 10, delta)


def test_counts_must_be_counts() -> None:
    with pytest.raises(InputError, match="11 of 10"):
        bounds.clopper_pearson(11, 10, 0.05)


def test_losses_beyond_one_are_refused() -> None:
    with pytest.raises(InputError, match="lie in \\[0, 1\\]"):
        bounds.betting([0.5, 3.0], 0.1)


@pytest.mark.parametrize("bad", [None, "x", [1], np.array([1]), np.nan, np.inf, -np.inf, 2**63])
def test_what_is_no_number_of_samples_is_refused(bad: object) -> None:
    with pytest.raises(InputError):
        bounds.hoeffding_bentkus(0.5, bad, 0.05)


@pytest.mark.parametrize("bad", [None, "x", [1], np.array([1])])
def test_what_is_no_number_is_refused(bad: object) -> None:
    for call in (
        lambda: bounds.clopper_pearson(bad, 2, 0.05),
        lambda: bounds.clopper_pearson(1, bad, 0.05),
        lambda: bounds.clopper_pearson(1, 2, bad),
        lambda: bounds.clopper_pearson_interval(1, bad, 0.95),
        lambda: bounds.hoeffding_bentkus(bad, 2, 0.05),
    ):
        with pytest.raises(InputError, match="a number is needed"):
            call()


def test_edges_of_betting() -> None:
    assert bounds.betting([1.0], 5e-324) == 1.0  # 1/delta is infinite
    assert bounds.group_betting([0.0, 0.0], [0.0, 5.0], [0.0, 5.0], 0.05) == bounds.group_betting(
        0, [5], 5, 0.05
    )
    tiny = [5e-324] * 5
    assert bounds.group_betting(tiny, tiny, tiny, 0.05) == 1.0
    assert bounds.group_betting([], [], [], 0.05) == 1.0
    for wrong in ([float("nan")], [float("inf")], ["a"], None):
        with pytest.raises(InputError):
            bounds.group_betting(wrong, wrong, wrong, 0.05)
    with pytest.raises(InputError, match="is not a count"):
        bounds.clopper_pearson(float("inf"), float("inf"), 0.05)


def test_probabilities_of_more_trials_than_32_bits_hold() -> None:
    k = np.array([0, 20, 95, 100])
    near = bounds.compute_binomial_cdf(k, 100, 0.2)
    assert near == pytest.approx(binom.cdf(k, 100, 0.2), rel=1e-12)
    n, risk = 10**12, 0.01
    spread = (n * risk * (1 - risk)) ** 0.5
    far = bounds.compute_binomial_cdf([n * risk - 3 * spread, n * risk + 3 * spread], n, risk)
    assert far == pytest.approx([0.00135, 0.99865], abs=1e-5)
