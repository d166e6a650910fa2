"""Guarantees: worked by hand, refused where they would be hollow, and kept in simulation."""

from math import ceil, inf, log

import numpy as np
import pytest
from scipy.stats import binom

from howsure import InputError, Outcomes, tally
from howsure.bounds import clopper_pearson
from howsure.policies import guaranteed_threshold, label_budget

GOOD = tally(np.linspace(0.01, 1, 400), correct=np.arange(400) >= 100)  # wrong below, right above


def test_all_correct_sgr_never_evaluates_full_coverage() -> None:
    t = tally(np.arange(200) / 200, correct=np.ones(200))
    g = guaranteed_threshold(t, risk=0.1, delta=0.1, method="sgr")
    assert (g.coverage, g.bound) == (199 / 200, pytest.approx(clopper_pearson(0, 199, 0.1 / 8)))


def test_fixed_sequence_by_hand() -> None:
    g = guaranteed_threshold(GOOD, risk=0.1, delta=0.1, method="fixed_sequence")
    best = max(k for k in range(8, 401, 8) if clopper_pearson(max(0, k - 300), k, 0.1) < 0.1)
    assert (g.kept, g.bound) == (best, pytest.approx(clopper_pearson(best - 300, best, 0.1)))
    assert g.bound < 0.1


def test_fixed_sequence_stops_at_the_first_failure() -> None:
    right = np.ones(1000)
    right[-240:-200] = 0  # a bad patch below the 200 surest, good again further down
    t = tally(np.arange(1000) / 1000, correct=right)
    g = guaranteed_threshold(t, risk=0.12, delta=0.1, method="fixed_sequence")
    assert 200 <= g.kept <= 240
    assert (
        guaranteed_threshold(t, risk=0.12, delta=0.1, method="sgr").kept == 999
    )  # SGR looks further down
    assert (
        guaranteed_threshold(t, risk=0.12, delta=0.1, method="fallback").kept == 1000
    )  # and so does the fallback


def test_fixed_sequence_starts_where_success_is_possible() -> None:
    n = 60
    x = log(0.1) / log(0.9)
    start = min(ceil(2.5 * x), ceil((ceil(x) + n) / 2))
    right = np.ones(n)
    right[-(start // 2)] = 0
    wrong_first = tally(np.arange(n) / n, correct=right)
    g = guaranteed_threshold(wrong_first, risk=0.1, delta=0.1, method="fixed_sequence")
    assert g.feasible is (
        clopper_pearson(1, max(start, ceil(n / 50)), 0.1) < 0.1 or g.kept >= start
    )


def test_thresholds_given_in_advance() -> None:
    g = guaranteed_threshold(
        GOOD, risk=0.1, delta=0.1, method="fixed_sequence", thresholds=[0.3, 0.5, 2.0]
    )
    assert g.threshold == pytest.approx(float(GOOD.score[GOOD.score >= 0.3][-1]))
    with pytest.raises(InputError, match="fixed_sequence"):
        guaranteed_threshold(GOOD, risk=0.1, delta=0.1, thresholds=[0.5], method="sgr")


def test_infeasible_is_an_answer_with_a_label_budget() -> None:
    t = tally(np.arange(40) / 40, correct=np.ones(40))
    g = guaranteed_threshold(t, risk=0.02, delta=0.05, method="fixed_sequence")
    assert (g.feasible, g.threshold, g.coverage) == (False, inf, 0.0)
    assert g.labels_needed is not None
    assert 149 <= g.labels_needed <= 300
    enough = tally(np.arange(g.labels_needed) / g.labels_needed, correct=np.ones(g.labels_needed))
    assert guaranteed_threshold(enough, risk=0.02, delta=0.05, method="fixed_sequence").feasible


def test_more_labels_do_not_help_a_bad_model() -> None:
    t = tally(np.arange(100) / 100, correct=np.zeros(100))
    assert guaranteed_threshold(t, risk=0.05, delta=0.05).labels_needed is None


def test_label_budget_is_the_smallest() -> None:
    n = label_budget(0.02, risk=0.05, delta=0.1)
    assert n is not None
    assert clopper_pearson(0.02 * n, n, 0.1) < 0.05 <= clopper_pearson(0.02 * (n - 1), n - 1, 0.1)
    assert label_budget(0.06, risk=0.05, delta=0.1) is None
    assert label_budget(0.0, risk=0.05, delta=0.05, coverage=0.5) == 2 * 59


def test_bounded_losses() -> None:
    rng = np.random.default_rng(0)
    o = Outcomes(np.linspace(1, 0, 2000), loss=rng.beta(1, 20, 2000))
    plain = guaranteed_threshold(o.tally(), risk=0.12, delta=0.1, method="fixed_sequence")
    bets = guaranteed_threshold(o, risk=0.12, delta=0.1, method="fixed_sequence", bound="betting")
    assert (plain.loss_bound, bets.loss_bound) == ("hoeffding_bentkus", "betting")
    assert bets.coverage >= plain.coverage > 0
    assert bets.observed < bets.bound < 0.12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"risk": 0}, "risk is 0"),
        ({"risk": 1.5}, "risk is 1.5"),
        ({"delta": 0}, "delta is 0"),
        ({"delta": 1}, "delta is 1"),
        ({"method": "guess"}, "method='guess'"),
        ({"bound": "betting", "method": "fixed_sequence"}, "pass Outcomes"),
        ({"bound": "hoeffding_bentkus", "method": "sgr"}, "use method='fixed_sequence'"),
    ],
)
def test_bad_requests(change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        guaranteed_threshold(GOOD, **({"risk": 0.1, "delta": 0.1} | change))


def test_weights_are_refused() -> None:
    with pytest.raises(InputError, match="weights are refused"):
        guaranteed_threshold(tally([0.9], correct=[1], weight=[2.0]), risk=0.1, delta=0.1)


def test_losses_outside_are_refused() -> None:
    t = tally([0.9, 0.8], loss=[0.5, 4.0])
    with pytest.raises(InputError, match=r"0.5 to 4"):
        guaranteed_threshold(t, risk=0.1, delta=0.1, method="fixed_sequence")


def test_a_loss_needs_fixed_sequence() -> None:
    with pytest.raises(InputError, match="fixed_sequence"):
        guaranteed_threshold(tally([0.9, 0.8], loss=[0.5, 0.4]), risk=0.1, delta=0.1, method="sgr")


def beta_scores(
    rng: np.random.Generator, n: int, decimals: int | None
) -> tuple[np.ndarray, np.ndarray]:
    s = rng.beta(5, 1.2, n)
    s = s if decimals is None else s.round(decimals)
    return s, rng.random(n) < s**1.5


@pytest.mark.parametrize("decimals", [None, 2])
def test_guarantee_in_simulation(decimals: int | None) -> None:
    """The short version of benchmarks/guarantees.py: 150 runs each, and fixed-sequence accepts
    more.
    """
    rng = np.random.default_rng(3)
    s, _ = beta_scores(rng, 400_000, decimals)
    s.sort()
    risk = np.cumsum((1 - s**1.5)[::-1])[::-1] / np.arange(len(s), 0, -1)
    coverage = {}
    for method in ("sgr", "fixed_sequence"):
        broken, covered = 0, 0.0
        for _ in range(150):
            x, right = beta_scores(rng, 300, decimals)
            g = guaranteed_threshold(tally(x, correct=right), risk=0.1, delta=0.1, method=method)
            if g.feasible:
                i = min(int(np.searchsorted(s, g.threshold)), len(s) - 1)
                broken += risk[i] > 0.1
                covered += 1 - i / len(s)
        assert binom.sf(broken - 1, 150, 0.1) > 0.01
        coverage[method] = covered / 150
    assert coverage["fixed_sequence"] > coverage["sgr"]


def test_a_model_beyond_the_limit_is_rarely_promised() -> None:
    """Every promise is broken here, so the share of feasible runs must stay below delta."""
    rng, promised = np.random.default_rng(4), 0
    for _ in range(150):
        t = tally(rng.random(200), correct=rng.random(200) >= 0.1001)
        promised += guaranteed_threshold(t, risk=0.1, delta=0.1, method="fixed_sequence").feasible
    assert binom.sf(promised - 1, 150, 0.1) > 0.01


def clusters(rng: np.random.Generator, groups: int, size: int, shared: float = 0.5) -> Outcomes:
    """Patients whose samples share their fate: one score and one error rate a patient, one in ten
    of them hard.
    """
    hard = rng.random(groups) < 0.1
    rate = np.where(hard, 0.6, 0.05)
    group = np.repeat(np.arange(groups), size)
    alike = rng.random(groups) < rate
    wrong = np.where(
        rng.random(groups * size) < shared, alike[group], rng.random(groups * size) < rate[group]
    )
    return Outcomes(rng.random(groups)[group], correct=~wrong, group=group)


@pytest.mark.parametrize("bound", [None, "groups"])
def test_a_promise_for_groups_is_kept(bound: str | None) -> None:
    """The true risk is 0.105 at every threshold, so that each promise of 0.1 is broken: few may be
    made.
    """
    rng = np.random.default_rng(5)
    promised = alone = 0
    for _ in range(120):
        o = clusters(rng, 60, 20)
        promised += guaranteed_threshold(o, risk=0.1, delta=0.1, bound=bound).feasible
        alone += guaranteed_threshold(o.tally(), risk=0.1, delta=0.1).feasible
    assert binom.sf(promised - 1, 120, 0.1) > 0.01
    assert alone > 24  # rows taken as independent break it twice as often as they promise


def test_groups_that_are_good_are_promised() -> None:
    o = Outcomes(np.arange(900) / 900, correct=np.ones(900), group=np.arange(900) // 3)
    g = guaranteed_threshold(o, risk=0.05, delta=0.05)
    assert (g.feasible, g.groups) == (True, 300)
    assert g.coverage > 0.99
    assert "300 groups" in g.rule
    bets = guaranteed_threshold(o, risk=0.05, delta=0.05, bound="groups")
    assert bets.feasible
    wide = guaranteed_threshold(o, risk=0.05, delta=0.05, bound="groups", largest_group=30)
    assert not wide.feasible


def test_the_row_that_speaks_for_a_group_does_not_depend_on_their_order() -> None:
    rng = np.random.default_rng(8)
    o = clusters(rng, 80, 5)
    order = rng.permutation(len(o))
    found, again = (guaranteed_threshold(rows, risk=0.3, delta=0.1) for rows in (o, o[order]))
    assert repr(found) == repr(
        again
    )  # nan is nan here; since Python 3.13 two equal dataclasses hold none


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "sgr", "bound": "groups"}, "sgr is defined for single samples"),
        ({"largest_group": 2}, "a group has 3 samples"),
    ],
)
def test_requests_that_groups_do_not_allow(change: dict, message: str) -> None:
    o = Outcomes(np.arange(30) / 30, correct=np.ones(30), group=np.arange(30) // 3)
    with pytest.raises(InputError, match=message):
        guaranteed_threshold(o, **({"risk": 0.1, "delta": 0.1} | change))


def test_the_fallback_keeps_its_promise() -> None:
    """A noisy top and a good rest; the risk at full coverage is just too high."""
    rng, broken = np.random.default_rng(6), 0
    for _ in range(150):
        s = rng.random(400)
        right = rng.random(400) >= np.where(s > 0.9, 0.35, 0.0745)  # 0.102 in all
        g = guaranteed_threshold(tally(s, correct=right), risk=0.1, delta=0.1, method="fallback")
        broken += g.feasible
    assert binom.sf(broken - 1, 150, 0.1) > 0.01


def test_the_band_is_the_default_where_right_and_wrong_are_counted() -> None:
    rng = np.random.default_rng(6)
    score = rng.random(2000)
    right = rng.random(2000) < np.where(score > 0.98, 0.6, 0.97)  # the very surest are noisy
    t = tally(score, correct=right)
    found = guaranteed_threshold(t, risk=0.05, delta=0.05)
    assert found == guaranteed_threshold(t, risk=0.05, delta=0.05, method="band")
    assert found.coverage > 0.5
    assert not guaranteed_threshold(t, risk=0.05, delta=0.05, method="fixed_sequence").feasible
    rows = guaranteed_threshold(Outcomes(score, right), risk=0.05, delta=0.05)
    assert (rows.threshold, rows.method) == (found.threshold, "band")


@pytest.mark.parametrize(
    "options", [{"thresholds": [0.5]}, {"bound": "betting"}, {"bound": "hoeffding_bentkus"}]
)
def test_what_the_band_cannot_count_takes_the_fixed_sequence(options: dict) -> None:
    o = Outcomes(np.arange(400) / 400, correct=np.ones(400))
    assert guaranteed_threshold(o, risk=0.1, delta=0.1, **options).method == "fixed_sequence"
    graded = Outcomes(np.arange(400) / 400, loss=np.full(400, 0.01))
    assert guaranteed_threshold(graded, risk=0.1, delta=0.1).method == "fixed_sequence"


@pytest.mark.parametrize("bound", [None, "groups"])
def test_few_groups_promise_nothing_about_new_ones(bound: str | None) -> None:
    for groups, feasible in ((9, False), (10, True)):
        o = Outcomes(np.full(900, 0.9), np.ones(900), group=np.arange(900) % groups)
        found = guaranteed_threshold(o, risk=0.4, delta=0.2, bound=bound)
        assert (found.feasible, found.groups) == (feasible, groups)
        assert found.why.startswith("9 groups are too few" if groups == 9 else "")
        assert bool(found.why) is not feasible
        assert found.labels_needed is None


def test_weights_are_refused_without_advice_to_drop_them() -> None:
    with pytest.raises(InputError) as e:
        guaranteed_threshold(tally([0.9], correct=[1], weight=[2.0]), risk=0.1, delta=0.1)
    assert "drop" not in str(e.value)
