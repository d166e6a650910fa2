"""Verdicts: the word follows from the numbers, by hand-worked cases."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

pytest.importorskip("torch")
pytest.importorskip("sklearn")
hs = pytest.importorskip("howsure")

from studies.claims import estimates  # noqa: E402
from studies.claims.calibration import binned, error_of, held_out, last  # noqa: E402
from studies.claims.claim import (  # noqa: E402
    AGREES,
    MISSING,
    MIXED,
    NOT,
    OPEN,
    Claim,
    Evidence,
    combined,
    evidence_table,
    sided,
    within,
)
from studies.claims.densenet_m import densenet_m  # noqa: E402
from studies.claims.growth import Grown, flat, ordered, trend, unsteady  # noqa: E402
from studies.claims.mc_temperature import flipped, straightness  # noqa: E402
from studies.claims.odds import drawn, sharper, times_entropy, wider  # noqa: E402
from studies.claims.paired import alike, alike_on_average, on_average, over_images, paired  # noqa: E402
from studies.claims.regularisation import overfitting_word  # noqa: E402
from studies.pages.overview import would_take  # noqa: E402
from studies.provided import NAMES, note  # noqa: E402
from studies.store import Store  # noqa: E402
from studies.tables.calibration import Parts, outcomes, too_large  # noqa: E402
from studies.tables.odds import hundred_methods  # noqa: E402

NAN = float("nan")


@pytest.mark.parametrize(
    ("sign", "low", "high", "word"),
    [
        ("-", -2, -1, AGREES), ("+", -2, -1, NOT), ("+", 1, 2, AGREES), ("-", 1, 2, NOT),
        ("-", -1, 1, OPEN), ("+", 0, 1, OPEN), ("-", NAN, NAN, OPEN),
    ],
)  # fmt: skip
def test_a_side_is_decided_only_where_the_interval_excludes_zero(sign, low, high, word):
    assert sided(low, high, sign) == word


@pytest.mark.parametrize(
    ("sign", "low", "high", "word"),
    [
        ("-", -3, -2, AGREES),
        ("-", -0.5, 2, NOT),
        ("-", -2, -0.5, OPEN),
        ("+", 2, 3, AGREES),
        ("+", -3, 0.5, NOT),
    ],
)
def test_with_a_margin_a_small_difference_of_the_right_sign_is_not_enough(sign, low, high, word):
    assert sided(low, high, sign, 1) == word


def outcomes_with(accuracy):
    """A hundred answers, all claimed to be right with 0.8."""
    return hs.Outcomes(np.full(100, 0.8), correct=np.arange(100) < 100 * accuracy)


def test_the_mean_over_networks_decides_and_the_networks_are_listed():
    pairs = {
        name: (outcomes_with(a), outcomes_with(0.5))
        for name, a in (("a", 0.8), ("b", 0.78), ("c", 0.79))
    }
    found = on_average("first against second", hs.ece, pairs, "-")
    assert [e.counts for e in found] == [True, False, False, False]
    assert found[0].word == AGREES
    assert found[0].found == "-29.00 points, one by one -30.00 to -28.00"
    assert found[0].case == "mean over 3 networks: first against second"
    assert found[0].low == pytest.approx(
        estimates.mean([-0.3, -0.28, -0.29], over_images(hs.ece, pairs))[1]
    )
    claim = Claim("x", "", [*found, Evidence("y", "", NAN, NAN, OPEN)])
    assert claim.counts() == "1 / 0 / 1"
    assert evidence_table([claim]).rows[1][-1] == "(agrees)"


def test_draws_of_images_are_the_same_for_all_networks():
    """Right 60 and 50 times of the same hundred: sqrt(0.1 * 0.9 / 100) for one network, and for
    three that answer alike no less."""
    one = {"a": (outcomes_with(0.6), outcomes_with(0.5))}
    three = one | {name: (outcomes_with(0.6), outcomes_with(0.5)) for name in "bc"}
    spread = over_images(hs.ece, one)
    assert spread == pytest.approx(np.sqrt(0.1 * 0.9 / 100), rel=0.2)
    assert over_images(hs.ece, three) == pytest.approx(spread, rel=1e-12)


def test_two_networks_have_no_mean_and_count_one_by_one():
    pairs = {name: (outcomes_with(0.8), outcomes_with(0.5)) for name in "ab"}
    assert [e.counts for e in on_average("x", hs.ece, pairs, "-")] == [True, True]
    assert [e.counts for e in alike_on_average("x", hs.ece, pairs, 0.01)] == [True, True]


def test_alike_on_average_needs_the_whole_interval_inside_the_margin():
    pairs = {
        name: (outcomes_with(a), outcomes_with(0.7))
        for name, a in (("a", 0.70), ("b", 0.71), ("c", 0.69))
    }
    low, high = (
        getattr(alike_on_average("x", hs.ece, pairs, 1.0)[0], end) for end in ("low", "high")
    )
    assert low == pytest.approx(-high)
    assert alike_on_average("x", hs.ece, pairs, 1.1 * high)[0].word == AGREES
    assert alike_on_average("x", hs.ece, pairs, 0.9 * high)[0].word == OPEN


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.5, 0.5, AGREES),
        (1.5, 2, NOT),
        (-3, -2, NOT),
        (0.5, 1.5, OPEN),
        (-2, 2, OPEN),
        (NAN, NAN, OPEN),
    ],
)
def test_nearly_zero_needs_the_whole_interval_inside_the_margin(low, high, word):
    assert within(low, high, 1) == word


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        ([], MISSING), ([AGREES], AGREES), ([NOT], NOT), ([OPEN], OPEN), ([AGREES, AGREES, OPEN], AGREES),
        ([AGREES, OPEN], OPEN), ([NOT, NOT, OPEN], NOT), ([AGREES, NOT, OPEN], MIXED),
    ],
)  # fmt: skip
def test_many_cases_make_one_word(words, whole):
    evidence = [Evidence("x", "", NAN, NAN, word) for word in words]
    assert combined(words) == whole
    reason = Claim("x", "", evidence, {AGREES: "so", MIXED: "both"}).reason
    hidden = " Taken alone this stays open: x." if OPEN in words and whole in (AGREES, NOT) else ""
    assert reason == ({AGREES: "so", MIXED: "both"}.get(whole, "") + hidden).strip()


def test_limits_are_shown_in_per_cent_or_as_they_are():
    assert Evidence("x", "", -0.01, 0.02, OPEN).limits == "-1.00 to +2.00"
    assert Evidence("x", "", 1.5, 2.25, OPEN, scale=1, digits=1).limits == "+1.5 to +2.2"
    assert Evidence("x", "", NAN, NAN, OPEN).limits == "none"


def test_mean_with_students_interval_by_hand():
    """2, 4, 6: mean 4, standard deviation 2, t(2) = 4.3027."""
    assert estimates.mean([2, 4, 6]) == pytest.approx(
        (4, 4 - 4.3027 * 2 / 3**0.5, 4 + 4.3027 * 2 / 3**0.5), abs=1e-3
    )
    assert np.isnan(estimates.mean([1.0])).all()


def test_the_interval_of_a_mean_holds_trainings_and_images():
    """Variances 4 / 3 of the trainings and 16 of the images: 17.33² / (1.333² / 2) = 338 degrees of
    freedom. Little noise of images leaves Student's interval, which is never undercut."""
    _, low, high = estimates.mean([2, 4, 6], 4.0)
    assert (high - low) / 2 == pytest.approx(1.967007 * np.sqrt(52 / 3), abs=1e-5)
    assert np.diff(estimates.mean([4, 4, 4], 2.0)[1:])[0] == pytest.approx(
        2 * 1.959964 * 2, abs=1e-5
    )
    assert estimates.mean([2, 4, 6], 0.2) == estimates.mean([2, 4, 6])


def test_slope_removes_the_level_of_each_family():
    x, y = [0, 1, 2, 0, 1, 2], [5, 6, 7, 50, 51, 52]
    assert estimates.slope(["a"] * 3 + ["b"] * 3, x, y) == pytest.approx((1, 1, 1))


def test_slope_and_its_interval_by_hand():
    """y = 0, 1, 5 on x = -1, 0, 1: slope 2.5, residuals 0.5, -1, 0.5; its error is sqrt(1.5 / 1 /
    2), t(1) = 12.706.
    """
    b, low, high = estimates.slope(["a"] * 3, [-1, 0, 1], [0, 1, 5])
    assert b == pytest.approx(2.5)
    assert (high - low) / 2 == pytest.approx(12.706 * 0.75**0.5, rel=1e-3)


@pytest.mark.parametrize("family", [["a", "b", "c"], ["a", "a"]])
def test_too_few_networks_have_no_slope(family):
    assert np.isnan(
        estimates.slope(family, list(range(len(family))), list(range(len(family))))
    ).all()


def grown(values):
    return Grown(["a"] * 4, [0.0, 1.0, 2.0, 3.0], {"one": values, "two": [[0.5, 0.5001]] * 4})


def test_each_training_can_be_a_point_of_its_own():
    two = Grown(["a", "a"], [0.0, 1.0], {"one": [[0.4, 0.3], [0.1]]}).single
    assert (two.family, two.doublings, two.means("one")) == (
        ["a"] * 3,
        [0.0, 0.0, 1.0],
        [0.4, 0.3, 0.1],
    )
    assert two.text == "3 trainings of 2 networks in 1 family"


def test_a_failed_training_does_not_hide_an_order():
    """One value far off leaves the slope open; the ranks see that all others fall."""
    values = [[0.9, 0.5], [0.4, 0.45], [0.3, 0.35], [0.2, 9.0], [0.1, 0.15], [0.05, 0.06]]
    found = Grown(["a"] * 6, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], {"one": values})
    assert trend(found, "one", "-").word == OPEN
    assert ordered(found, "one", "-").word == AGREES
    assert ordered(found, "one", "+").word == NOT


def test_trends_and_flatness():
    falling = grown([[0.4, 0.4], [0.3, 0.3], [0.2, 0.2], [0.1, 0.1001]])
    assert trend(falling, "one", "-").word == AGREES
    assert trend(falling, "one", "+").word == NOT
    assert flat(falling, "one", 0.01).word == NOT
    assert flat(falling, "two", 0.01).word == AGREES


def test_the_metric_that_jumps_between_repeats_is_unsteady():
    jumping = grown([[0.1, 0.4], [0.3, 0.1], [0.2, 0.5], [0.1, 0.2]])
    assert unsteady(jumping, "one", "two", "x").word == AGREES
    assert unsteady(jumping, "two", "one", "x").word == NOT


def test_pooled_spread_by_hand():
    assert estimates.pooled_spread([[0, 2], [1, 1], [7]]) == pytest.approx(1)
    assert np.isnan(estimates.pooled_spread([[1], [2]]))


def test_paired_evidence_of_a_good_and_a_bad_network():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    sure = 3.0 * np.eye(3)[labels] + rng.normal(size=(400, 3))
    good, bad = (hs.Predictions.from_logits(z, labels) for z in (sure, rng.normal(size=(400, 3))))
    found = paired("x", hs.accuracy, good, bad, "+")
    assert found.found.startswith(
        f"{100 * hs.accuracy(good):.2f} against {100 * hs.accuracy(bad):.2f}"
    )
    assert found.word == AGREES
    assert paired("x", hs.aurc, good, bad, "+").word == NOT
    assert alike("x", hs.accuracy, good, bad, 0.01).word == NOT


def test_a_line_is_straight():
    """Entropy uniform and error equal to it: below any threshold h the error is h / 2."""
    entropy = (np.arange(100_000) + 0.5) / 100_000
    wrong = np.random.default_rng(0).random(100_000) < entropy
    assert straightness(entropy, wrong) > 0.999
    assert straightness(entropy, entropy > 0.7) < 0.7


def test_overfitting_needs_a_rising_loss_and_an_error_that_does_not_rise():
    assert overfitting_word((0.1, 0.2), (-0.01, 0.005)) == AGREES
    assert overfitting_word((0.1, 0.2), (-0.01, 0.02)) == OPEN
    assert overfitting_word((0.1, 0.2), (0.01, 0.02)) == NOT
    assert overfitting_word((-0.2, -0.1), (-0.01, 0.005)) == NOT
    assert overfitting_word((-0.1, 0.1), (-0.01, 0.005)) == OPEN


def test_methods_are_told_apart_by_what_they_know():
    """One score that knows much, one that knows little, one copy: two of three pairs differ, in
    every metric.
    """
    rng = np.random.default_rng(0)
    correct = rng.random(3_000) < 0.7
    much, little = correct + rng.normal(size=3_000), correct + 9 * rng.normal(size=3_000)
    found = drawn({"much": much, "little": little, "copy": much}, correct)
    assert sharper("x", found, "Brier").found == "of 3 pairs EOR tells 2 apart, Brier 2"
    assert sharper("x", found, "Brier").word == OPEN
    assert wider("x", found).found.startswith("best over worst method: EOR ")


def test_the_label_among_the_five_best():
    p = np.array([[0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05]] * 2)
    scores, correct = hundred_methods(hs.Predictions.from_probs(p, [4, 5]))
    assert correct.tolist() == [True, False]
    assert scores["U5"][0] == pytest.approx(np.log(0.87))


def test_calibrators_with_more_parameters_than_images_are_left_out():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 10
    preds = hs.Predictions.from_logits(rng.normal(size=(60, 10)) + 2 * np.eye(10)[labels], labels)
    assert too_large(preds) == ("matrix scaling", "Dirichlet")
    found = outcomes(Parts(preds, (preds,)))
    assert "temperature" in found
    assert not {"matrix scaling", "boundary distance"} & set(found)


def test_fully_trained_networks_are_judged_without_any_run(tmp_path, shared, monkeypatch):
    monkeypatch.setenv("HOWSURE_SHARED", str(shared))
    claims = densenet_m(Store(tmp_path), "cpu")
    assert [claim.word for claim in claims] == [AGREES] * 4
    assert all(name in note() for name in NAMES.values())
    assert "not at hand" not in note()


def case(low, high, word, **more):
    return Evidence("x", "", low, high, word, **more)


def test_an_open_case_says_how_many_times_as_much_it_would_take():
    """Half width 2, one away from the edge: the width must halve, which takes four times as much."""
    assert case(-1, 3, OPEN, edges=(0.0,)).times == 4
    assert case(-1, 3, OPEN, edges=(-5.0, 3.0)).times == 1
    assert case(-2, 2, OPEN, edges=(0.0,)).times == np.inf
    assert np.isnan(case(-1, 3, OPEN).times)


def test_an_open_claim_needs_as_many_cases_as_make_a_majority():
    """One of three agrees: one more is needed, and the nearest will do."""
    cases = [case(1, 2, AGREES), case(-1, 3, OPEN, edges=(0.0,)), case(-3, 5, OPEN, edges=(0.0,))]
    assert Claim("x", "", cases).times == 4
    assert Claim("x", "", cases[1:]).times == 16
    assert would_take(Claim("x", "", cases)) == "4 times as much"
    assert (
        would_take(Claim("x", "", [case(-2, 2, OPEN, edges=(0.0,))]))
        == "more than a hundred times as much"
    )
    assert would_take(Claim("x", "", [case(-2, 2, OPEN)])) == "more of everything"
    assert would_take(Claim("x", "", [])) == "its networks"


def test_one_changed_answer_is_enough():
    assert flipped("x", np.array([False, False])).word == AGREES
    assert flipped("x", np.array([False, True])).word == NOT
    assert flipped("x", np.array([False, True])).found == "1 of 2 answers change"


def test_dropout_must_be_worth_half_as_much_again():
    draws = {"entropy": np.ones(201), "variance": np.linspace(1.4, 1.6, 201)}
    assert times_entropy("0.1", draws).word == OPEN
    assert times_entropy("0.1", draws | {"variance": np.full(201, 2.0)}).word == AGREES
    assert times_entropy("0.1", draws | {"variance": np.full(201, 1.1)}).word == NOT


def test_the_papers_own_areas_tell_its_errors():
    """An error of 1/2 has the ideal area 1/2 + ln(1/2) / 2; a tenth of a per cent leaves no room
    for a fifth.
    """
    assert error_of(0.5 + 0.5 * np.log(0.5)) == pytest.approx(0.5)
    assert held_out().word == NOT
    assert held_out().found == (
        "an AAC of at most 0.15 % allows an error of at most 5.4 %; the ideal AAC 2.3 % of the test means 20.7 %"
    )


def test_binning_fitted_on_learnt_images_believes_in_them():
    """All of 500 learnt images are right, whatever the confidence: every bin says 1, on new images
    too.
    """
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(500, 3)) * 3
    learnt = hs.Predictions.from_logits(logits, logits.argmax(1))
    new = hs.Predictions.from_logits(
        logits, np.where(rng.random(500) < 0.3, (logits.argmax(1) + 1) % 3, logits.argmax(1))
    )
    tests = last(outcomes(Parts(learnt, (learnt, new))))
    assert hs.ece(tests["histogram binning"].tally()) > 0.25
    assert [e.word for e in binned([{"a network": tests}, {}], hs.ece)] == [AGREES]


def test_entropy_is_greatest_at_the_temperature_of_least_nll_under_equation_16():
    """Laves, section A.2, for single passes: the condition holds there, and every small step that
    keeps it and the sums of the rows lowers the entropy."""
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(300, 5))
    softmax = lambda t: np.exp(z / t) / np.exp(z / t).sum(1, keepdims=True)
    labels = np.array([rng.choice(5, p=row) for row in softmax(2.0)])
    chosen = np.arange(300), labels
    least = minimize_scalar(
        lambda t: -np.log(softmax(t)[chosen]).mean(),
        bounds=(0.5, 10),
        method="bounded",
        options={"xatol": 1e-10},
    ).x
    sides = lambda t: (z[chosen].mean(), (z * softmax(t)).sum(1).mean())
    assert sides(least)[0] == pytest.approx(sides(least)[1], rel=1e-5)
    assert abs(np.subtract(*sides(1.2 * least))) > 0.01 * abs(sides(least)[0])
    p = softmax(least)
    entropy = lambda q: -(q * np.log(q)).sum()
    direction = z - z.mean(1, keepdims=True)
    for _ in range(20):
        step = rng.normal(size=z.shape) * p.min(1, keepdims=True)
        step -= step.mean(1, keepdims=True)
        step -= direction * (z * step).sum() / (z * direction).sum()
        step *= 0.1 * (p / np.abs(step)).min()
        assert (z * step).sum() == pytest.approx(0, abs=1e-9)
        assert entropy(p + step) < entropy(p)
