"""Numbers at their edges: ways to one number agree, bounds of exact data are points, and what is
refused.
"""

from __future__ import annotations

from math import fsum, isnan, log, nan
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions, metrics
from howsure.metrics.binary import compute_pseudo_aucs
from howsure.metrics.calibration_error import find_bins, sum_classes
from howsure.metrics.class_calibration import (
    LOGIT_CLIP,
    fit_flexible,
    fit_log_odds,
    has_both_outcomes_at_ends,
    logit,
    place_knots,
)
from howsure.metrics.risk_coverage import (
    SEARCH_ROWS,
    SERIES_START,
    find_last_reaching,
    find_widest_row,
    harmonic,
    harmonic_rise,
    risk_sum,
    sum_logs,
)
from howsure.tallies.tally import Blocks

RNG = np.random.default_rng(0)
WORLDS = {
    "a few": hs.tally([0.9, 0.8, 0.8, 0.6, 0.5], correct=[1, 1, 0, 1, 0]),
    "one wrong": hs.tally([0.9, 0.7, 0.6, 0.3], correct=[1, 1, 0, 1]),
    "pairs": hs.tally([0.95, 0.94, 0.75, 0.74, 0.55, 0.54], correct=[1, 0, 1, 1, 0, 0]),
    "all right": hs.tally([0.9, 0.8, 0.8], correct=[1, 1, 1]),
    "all wrong": hs.tally([0.9, 0.8, 0.8], correct=[0, 0, 0]),
    "three decimals": hs.tally(RNG.integers(200, 1000, 400) / 1000, correct=RNG.random(400) < 0.7),
    "no ties": hs.tally(RNG.uniform(0.2, 1, 250), correct=RNG.random(250) < 0.8),
}
WEIGHTED = hs.tally(
    RNG.integers(2, 10, 60) / 10, correct=RNG.random(60) < 0.7, weight=RNG.uniform(0.2, 3, 60)
)


# Several ways to one number


@pytest.mark.parametrize(
    "name", [n for n in metrics.__all__ if getattr(getattr(metrics, n), "of_blocks", None)]
)
@pytest.mark.parametrize("world", WORLDS)
def test_numbers_of_blocks_are_those_of_tallies(name: str, world: str) -> None:
    t, metric = WORLDS[world], getattr(metrics, name)
    assert float(metric.of_blocks(t.blocks(), np.array(t.n))) == pytest.approx(
        metric(t), abs=1e-14, nan_ok=True
    )


OPTIONS: dict[str, dict[str, Any]] = {
    **{
        key: {"threshold": 0.5, "positive": 1}
        for key in ("sensitivity", "specificity", "ppv", "npv")
    },
    "class_auroc": {"positive": 2},
    "top_k_accuracy": {"k": 2},
    "nll": {"eps": 0.2},
}


def answers(takes: str, weighted: bool) -> Predictions:
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.5, 2, 40) if weighted else None
    if takes == "multilabel":
        y = (rng.random((40, 3)) < 0.4).astype(int)
        return Predictions.from_multilabel(rng.random((40, 3)).round(2), y, weight=weight)
    p = rng.dirichlet(np.ones(3), 40)
    y = np.array([rng.choice(3, p=row) for row in p])
    return Predictions.from_probs(
        p, y, weight=weight, group=np.arange(40) // 8 if takes == "pixels" else None
    )


@pytest.mark.parametrize(
    "name", [n for n in metrics.__all__ if getattr(getattr(metrics, n), "through", None)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_of_predictions_are_those_of_their_outcomes(name: str, weighted: bool) -> None:
    metric, given = getattr(metrics, name), OPTIONS.get(name, {})
    preds = answers(metric.takes, weighted and metric.takes != "pixels")
    outcomes, number = metric.through(preds, **given)
    assert number(outcomes.tally()) == pytest.approx(metric(preds, **given), abs=1e-12)
    if outcomes.loss is not None and name not in (
        "dice_loss",
        "image_aurc",
    ):  # a smaller loss is trusted more
        assert outcomes.score.tolist() == (-outcomes.loss).tolist()


def test_cases_with_fewer_wrong_labels_are_trusted_more() -> None:
    preds = answers("multilabel", False)
    wrong = ((preds.probs[:, 1] >= 0.5) != preds.labels).reshape(40, 3)
    outcomes, _ = metrics.exact_match.through(preds)
    assert outcomes.score.tolist() == (-wrong.mean(axis=1)).tolist()
    assert outcomes.correct.tolist() == (~wrong.any(axis=1)).tolist()


@pytest.mark.parametrize("x", [0, 1, 2, SERIES_START - 1, SERIES_START, SERIES_START + 1, 5000])
def test_harmonic_numbers(x: int) -> None:
    assert float(harmonic(np.array([float(x)]))[0]) == pytest.approx(
        fsum(1 / j for j in range(1, x + 1)), abs=4e-15
    )
    rise = harmonic_rise(np.array([float(x)]), np.array([x + 3.0]))
    assert float(rise[0]) == pytest.approx(fsum(1 / (x + j) for j in (1, 2, 3)), rel=1e-13, abs=0)


@pytest.mark.parametrize("n", [1, 7, 1000, 10_000])
@pytest.mark.parametrize("odd", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("least", [1e-300, 1e-9, 0.5])
def test_logarithms_of_products_are_sums_of_logarithms(n: int, odd: float, least: float) -> None:
    rng = np.random.default_rng(n)
    x = rng.uniform(least, 1.0, n)
    x[0] = least
    weight = np.where(rng.random(n) < odd, rng.uniform(0, 5, n), 1.0)
    wanted = fsum(w * log(v) for w, v in zip(weight, x, strict=True))
    assert float(sum_logs(x, weight)) == pytest.approx(wanted, rel=1e-11)
    assert sum_logs(np.stack([x, x]), np.stack([weight, weight])) == pytest.approx(
        [wanted] * 2, rel=1e-11
    )


def test_a_kept_sum_is_that_of_its_own_number_of_samples() -> None:
    block = Blocks(np.array([1]), np.array([2]), np.array([1]))
    for n in (4, 9, 4):
        assert float(risk_sum(block, np.array(n))) == pytest.approx(
            fsum(1 / j for j in range(2, n + 1))
        )


@pytest.mark.parametrize("n", [SEARCH_ROWS - 1, SEARCH_ROWS, SEARCH_ROWS + 1, 3 * SEARCH_ROWS])
@pytest.mark.parametrize("after", [-1, 0, 5])
def test_the_last_row_of_a_share_by_looking_at_all(n: int, after: int) -> None:
    rng = np.random.default_rng(n)
    right, kept = np.cumsum(rng.random(n) < 0.7), np.arange(1, n + 1)
    before, of = (0, 0) if after < 0 else (right[after], kept[after])
    for share in (0.6, 0.7, 0.72, 0.8, 1.0):
        rows = np.arange(after + 1, n)
        good = rows[right[rows] - before >= share * (kept[rows] - of) - 1e-9]
        assert find_last_reaching(right, kept, share, after) == (good[-1] if len(good) else None)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("accuracy", [0.5, 0.6, 2 / 3, 0.75, 1.0])
def test_the_widest_row_of_an_accuracy_by_looking_at_all(world: str, accuracy: float) -> None:
    t = WORLDS[world]
    kept, wrong = np.cumsum(t.count), np.cumsum(t.loss)
    good = np.flatnonzero(kept - wrong >= accuracy * kept - 1e-9)
    assert find_widest_row(t, accuracy) == (good[-1] if len(good) else None)


# Positive classes and skill


THREE = Predictions.from_probs([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]], [0, 1])


@pytest.mark.parametrize(
    ("positive", "words"),
    [
        (None, "these predictions have 3 classes; say which one is positive"),
        ("cat", "no class is called 'cat'; they are numbered 0 to 2"),
        (3, "there is no class 3; classes are numbered 0 to 2"),
        (-1, "there is no class -1; classes are numbered 0 to 2"),
        ("-1", "there is no class -1"),
        (0.5, "there is no class 0.5; a name or a whole number is needed"),
    ],
)
def test_a_positive_class_that_is_not_there(positive: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        hs.positive_class(THREE, positive)


def test_positive_classes_by_name_and_number() -> None:
    named = Predictions.from_probs([[0.5, 0.3, 0.2]], [0], class_names=["7", "b", "c"])
    for given, number in (("7", 0), ("b", 1), (2, 2), ("2", 2), (0, 0), (1.0, 1)):
        assert hs.positive_class(named, given) == number
    many = Predictions.from_probs(
        np.full((1, 25), 0.04), [0], class_names=[f"c{i}" for i in range(25)]
    )
    with pytest.raises(InputError, match=r"they are c0, .*, c19\.$"):
        hs.positive_class(many, "dog")


def test_calls_at_thresholds_of_0_and_1() -> None:
    preds = Predictions.from_probs([0.0, 1.0, 0.5, 1.0], [0, 1, 1, 0])
    assert (hs.sensitivity(preds, 0.0), hs.specificity(preds, 0.0)) == (1.0, 0.0)
    assert (hs.sensitivity(preds, 1.0), hs.ppv(preds, 1.0), hs.npv(preds, 1.0)) == (0.5, 0.5, 0.5)
    for threshold in (-0.01, 1.01):
        with pytest.raises(
            InputError, match=f"threshold is {threshold:g}; a probability between 0 and 1"
        ):
            hs.ppv(preds, threshold)


def test_observed_over_expected() -> None:
    assert hs.observed_expected(Predictions.from_probs([0.5, 0.5, 0.25, 0.75], [1, 1, 1, 0])) == 1.5
    assert isnan(hs.observed_expected(Predictions.from_probs([0.0, 0.0], [1, 0])))


def test_two_classes_have_one_decomposition_and_three_the_sum() -> None:
    p, y = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.8, 0.2]]), [0, 1, 0, 1]
    parts = hs.brier_decomposition(Predictions.from_probs(p, y), hs.equal_size(2))
    assert parts.uncertainty == 0.25
    assert parts == hs.brier_decomposition(
        hs.positive_tally(Predictions.from_probs(p, y)), hs.equal_size(2)
    )
    rng = np.random.default_rng(1)
    preds = Predictions.from_probs(rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60))
    each = [hs.brier_decomposition(hs.positive_tally(preds, c)) for c in range(3)]
    assert hs.brier_decomposition(preds) == pytest.approx(np.sum(each, axis=0))


@pytest.mark.parametrize(
    ("eps", "allowed"), [(0.0, False), (1.0, False), (0.1, True), (-0.1, False)]
)
def test_a_clipped_log_loss(eps: float, allowed: bool) -> None:
    preds = Predictions.from_probs([[1.0, 0.0], [0.95, 0.05], [0.5, 0.5]], [1, 0, 0])
    if allowed:
        assert hs.nll(preds, eps) == pytest.approx(-(log(0.1) + log(0.9) + log(0.5)) / 3)
    else:
        with pytest.raises(InputError, match=f"eps is {eps:g}; a small number between 0 and 1"):
            hs.nll(preds, eps)


@pytest.mark.parametrize("metric", [hs.fpr_at_tpr, hs.oracle_accuracy])
def test_shares_lie_between_0_and_1(metric: Any) -> None:
    t = hs.tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0])
    assert (metric(t, 0.0), metric(t, 1.0)) == (
        (0.0, 0.5) if metric is hs.fpr_at_tpr else (0.5, 1.0)
    )
    for bad in (-0.01, 1.01):
        with pytest.raises(InputError, match="a share between 0 and 1 is needed"):
            metric(t, bad)


def test_one_right_answer_or_one_wrong_one_is_enough() -> None:
    one_right, one_wrong = (hs.tally([0.9, 0.8, 0.7], correct=c) for c in ([0, 1, 0], [1, 0, 1]))
    assert (hs.fpr_at_tpr(one_right), hs.fpr_at_tpr(one_wrong)) == (0.5, 1.0)
    assert (hs.auroc(one_right), hs.auroc(one_wrong)) == (0.5, 0.5)
    assert (hs.aupr(one_right, "success"), hs.aupr(one_wrong)) == (0.5, 0.5)


def test_an_expert_takes_whole_answers_in_spite_of_rounding() -> None:
    t = hs.tally(np.arange(100) / 100, correct=np.arange(100) >= 40)
    assert hs.oracle_accuracy(t, 0.29) == pytest.approx(
        0.6 + 0.29
    )  # 0.29 · 100 is 28.999999999999996
    assert hs.oracle_accuracy(t, 0.295) == pytest.approx(0.6 + 0.29)
    halves = hs.tally([0.9, 0.1], correct=[1, 0], weight=[1.25, 0.75])
    assert hs.oracle_accuracy(halves, 0.1) == pytest.approx((1.25 + 0.2) / 2)


@pytest.mark.parametrize("variant", ["expected", "step", "trapezoid"])
def test_the_best_order_of_one_sample(variant: Any) -> None:
    assert hs.optimal_aurc(hs.tally([0.5], correct=[1]), variant) == 0.0
    assert hs.optimal_aurc(hs.tally([0.5], correct=[0]), variant) == 1.0
    assert hs.optimal_aurc(hs.tally([0.5, 0.4], correct=[1, 1]), variant) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: hs.coverage_at_risk(t, 1.0), "risk is 1; a number from 0 to below 1 is needed"),
        (lambda t: hs.coverage_at_risk(t, -0.1), "risk is -0.1"),
        (lambda t: hs.optimal_aurc(t, "best"), "variant='best'; optimal_aurc knows"),
        (lambda t: hs.aurc(t, "best"), "variant='best'; aurc knows"),
        (
            lambda t: hs.aupr(t, method="best"),
            "method='best'; aupr knows 'step', 'trapezoid', 'davis_goadrich'",
        ),
        (lambda t: hs.optimal_aurc_asymptotic(1.01), "error is 1.01"),
        (lambda t: hs.optimal_aurc_asymptotic(-0.01), "error is -0.01"),
        (lambda t: hs.bands(t, (1.1,)), "a level of bands is 1.1"),
        (lambda t: hs.dominates(t, WORLDS["one wrong"]), "got n=5, 2 wrong and n=4, 1 wrong"),
    ],
)
def test_mistakes_are_named(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(WORLDS["a few"])


# Recalibration


def test_one_case_of_an_outcome_has_a_line() -> None:
    for right in ([1, 0, 1, 1], [0, 1, 0, 0]):
        found = fit_log_odds(hs.tally([0.2, 0.4, 0.6, 0.8], correct=right))
        assert found is not None
        assert np.isfinite(found.coefficients).all()


@pytest.mark.parametrize(
    ("width", "right", "line"),
    [
        (1e-10, (1, 1), False),  # claims that hardly differ tell nothing about a slope
        (1e-5, (1, 3), False),  # a slope of more than ten thousand is none
        (1e-3, (1, 3), True),
        (1e-3, (0, 4), False),
    ],
)
def test_claims_that_hardly_differ_have_no_line(
    width: float, right: tuple[int, int], line: bool
) -> None:
    total = sum(right)
    score = np.repeat([0.5 - width, 0.5 + width], total)
    correct = np.concatenate([np.arange(total) < r for r in right])
    found = fit_log_odds(hs.tally(score, correct=correct))
    assert (found is not None) == line
    if found is not None:
        assert found.coefficients[1] == pytest.approx(2 * log(3) / (8 * width), rel=1e-3)


def test_log_odds_that_are_one_apart_have_a_line() -> None:
    p = [1 / (1 + np.exp(-1.0))]
    for _ in range(200):
        p.append(np.nextafter(p[-1], 1.0))
    p = next(x for x in (*p, *(2 * p[0] - np.array(p))) if np.ptp(logit(np.array([0.5, x]))) == 1.0)
    found = fit_log_odds(hs.tally([0.5] * 4 + [p] * 4, correct=[0, 0, 1, 1, 0, 1, 1, 1]))
    assert found is not None
    assert found.coefficients == pytest.approx([0.0, log(3)], abs=1e-9)


def test_logits_are_kept_away_from_certainty() -> None:
    found = logit(np.array([0.0, 1e-13, 0.5, 0.9, 1.0]))
    assert found == pytest.approx(
        [log(LOGIT_CLIP), log(LOGIT_CLIP), 0.0, log(9), -log(LOGIT_CLIP)], rel=1e-5
    )


@pytest.mark.parametrize("many", [3, 4, 5])
def test_knots_are_quantiles_of_the_cases(many: int) -> None:
    t = hs.tally(np.arange(1, 1001) / 1001, correct=np.arange(1000) % 2)
    share = {3: (0.1, 0.5, 0.9), 4: (0.05, 0.35, 0.65, 0.95), 5: (0.05, 0.275, 0.5, 0.725, 0.95)}[
        many
    ]
    p = np.array([round(1000 * s) for s in share]) / 1001
    assert place_knots(t, many) == pytest.approx(np.log(p / (1 - p)), rel=1e-9)
    assert place_knots(hs.tally([0.2] * 90 + [0.8] * 10, correct=[1, 0] * 50), many) == ()


@pytest.mark.parametrize("many", [3, 4, 5])
def test_knots_count_equal_cases(many: int) -> None:
    times = np.arange(1, 61)
    score = np.repeat(times / 61, times)
    share = {3: (0.1, 0.5, 0.9), 4: (0.05, 0.35, 0.65, 0.95), 5: (0.05, 0.275, 0.5, 0.725, 0.95)}[
        many
    ]
    wanted = logit(np.quantile(score, share, method="inverted_cdf"))
    assert place_knots(hs.tally(score, correct=np.arange(len(score)) % 2), many) == pytest.approx(
        wanted
    )


@pytest.mark.parametrize(
    ("below", "above", "held"),
    [
        ((3, 3), (3, 3), True),
        ((2, 3), (3, 3), False),
        ((3, 2), (3, 3), False),
        ((3, 3), (2, 3), False),
        ((3, 3), (3, 2), False),
    ],
)
def test_a_spline_is_held_by_three_of_each_outcome_at_either_end(
    below: tuple[int, int], above: tuple[int, int], held: bool
) -> None:
    """Of five knots the second and the fourth bound the ends; what lies on them or between does not
    hold anything.
    """
    p = 1 / (1 + np.exp(-np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])))
    cases = [below, (9, 9), (9, 9), (9, 9), (9, 9), (9, 9), above]
    score = np.repeat(p, [sum(c) for c in cases])
    right = np.concatenate([[1] * r + [0] * w for r, w in cases])
    t = hs.tally(score, correct=right)
    knots = (-2.0, logit(p[1:2])[0], 0.0, logit(p[5:6])[0], 2.0)
    assert has_both_outcomes_at_ends(t, knots) is held
    assert has_both_outcomes_at_ends(
        t, (-2.0, -0.7, 0.7, 2.0)
    )  # here the inner cases are beyond the knots


@pytest.mark.parametrize("rare", [0, 1])
def test_the_rarer_outcome_decides_how_many_knots_there_are(rare: int) -> None:
    p = np.linspace(0.02, 0.98, 400)
    for many, knots in ((29, 0), (30, 3), (40, 4), (50, 5), (90, 5)):
        right = np.full(400, 1 - rare)
        right[np.linspace(3, 396, many).astype(int)] = rare
        found = fit_flexible(hs.tally(p, correct=right))
        assert found is not None
        assert len(found.knots) == knots


def test_a_curve_that_nothing_holds_is_a_line() -> None:
    p = np.concatenate([np.linspace(0.05, 0.4, 150), np.linspace(0.6, 0.95, 150)])
    right = np.concatenate([np.zeros(150), np.arange(150) % 3 > 0])
    assert fit_flexible(hs.tally(p, correct=right)).knots == ()


# Cells of classes


@pytest.mark.parametrize("bins", [1, 2, 3, 10, 15, 49])
def test_a_probability_on_an_edge_belongs_to_the_bin_below(bins: int) -> None:
    edges = hs.equal_range(bins).edges()
    p = np.concatenate([edges, np.nextafter(edges, 2)[:-1], np.nextafter(edges, -1)[1:]])
    wanted = [max(0, int(np.searchsorted(edges, x)) - 1) for x in p]
    assert find_bins(p, edges).tolist() == wanted


@pytest.mark.parametrize("m", [1, 2, 3, 7, 10, 15, 49, 100, 1000])
def test_bins_are_found_by_arithmetic(m: int) -> None:
    edges = hs.equal_range(m).edges()
    near = np.concatenate((edges, np.nextafter(edges, 2), np.nextafter(edges, -1), [5e-324]))
    p = np.concatenate((near, np.random.default_rng(m).random(1000))).clip(0, 1)
    assert find_bins(p, edges).tolist() == np.searchsorted(edges[1:-1], p).tolist()


@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_cells_of_several_passes_are_those_of_their_mean(kind: str) -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(4, 50, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    y = rng.integers(0, 3, 50)
    several = Predictions.from_samples(labels=y, **{kind: logits if kind == "logits" else p})
    mean = Predictions.from_probs(p.mean(axis=0), y)
    assert hs.classwise_ece(several) == pytest.approx(hs.classwise_ece(mean), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["logits", "probs", "samples"])
def test_cells_are_the_same_in_however_many_pieces(
    monkeypatch: pytest.MonkeyPatch, kind: str, weighted: bool
) -> None:
    rng = np.random.default_rng(5)
    values, y = rng.normal(size=(3, 50, 4)), rng.integers(0, 4, 50)
    more: dict[str, Any] = {"weight": rng.uniform(0.5, 2, 50)} if weighted else {}
    made = {
        "logits": lambda: Predictions.from_logits(values[0], y, **more),
        "probs": lambda: Predictions.from_probs(rng.dirichlet(np.ones(4), 50), y, **more),
        "samples": lambda: Predictions.from_samples(values, y, **more),
    }[kind]()
    whole = sum_classes(made, 7)
    sizes = iter([20, *[7] * 9])
    pieces = lambda n, width: (
        slice(i, min(n, i + size)) for size in [next(sizes)] for i in range(0, n, size)
    )
    monkeypatch.setattr("howsure.metrics.calibration_error.iterate_chunks", pieces)
    parts = sum_classes(made, 7)
    assert parts.true == pytest.approx(whole.true)
    assert parts.mean_gap() == pytest.approx(whole.mean_gap(), abs=1e-12)


def test_a_probability_a_rounding_above_one_is_one() -> None:
    preds = Predictions.from_probs(np.array([[0.0, 1.0 + 4e-7], [1.0, 0.0]]), [1, 1])
    assert hs.classwise_ece(preds) == pytest.approx(0.5, abs=1e-6)
    assert hs.positive_tally(preds).score.tolist() == [1.0, 0.0]


def test_parts_of_cells_add_up() -> None:
    rng = np.random.default_rng(4)
    for weight in (None, rng.uniform(0.5, 2, 90)):
        preds = Predictions.from_probs(
            rng.dirichlet(np.ones(4), 90), rng.integers(0, 4, 90), weight=weight
        )
        whole, parts = (
            sum_classes(preds, 7),
            sum_classes(preds[:30], 7) + sum_classes(preds[30:], 7),
        )
        assert parts.mean_gap() == pytest.approx(whole.mean_gap(), abs=1e-13)
        assert parts.weight == pytest.approx(90 if weight is None else weight.sum())
        assert parts.true.sum() == pytest.approx(whole.weight)
        assert (len(whole.true), whole.claim.shape[-1]) == (4 * 7, 4 * 7)
    for bins in (0, -1):
        with pytest.raises(InputError, match="the number of bins is"):
            sum_classes(preds, bins)


# Smooth calibration error


@pytest.mark.parametrize(
    ("score", "right"),
    [
        ([1.0, 0.2], [0, 1]),
        ([0.0, 0.9, 0.9], [1, 0, 1]),
        ([1.0, 1.0 - 2**-14, 0.5], [0, 1, 0]),
        ([0.3, 0.7], [1, 0]),
    ],
)
def test_smooth_ece_by_sums_of_cosines(score: list[float], right: list[int]) -> None:
    """Residuals in the middle of their cells, the kernel of a reflected Gaussian as its series of
    cosines.
    """
    value = hs.smooth_ece(hs.tally(score, correct=right))
    x = (np.minimum(np.floor(np.array(score) * 8192), 8191) + 0.5) / 8192
    u, k = (np.arange(8192) + 0.5) / 8192, np.arange(1, 120)[:, None]
    damp = np.exp(-0.5 * (np.pi * k * value) ** 2)
    field = np.zeros(8192)
    for at, residual in zip(x, np.array(right) - np.array(score), strict=True):
        field += residual * (
            1 + 2 * (damp * np.cos(np.pi * k * at) * np.cos(np.pi * k * u)).sum(axis=0)
        )
    assert value > 0.1  # so that the series is long enough
    assert np.abs(field).mean() / len(score) == pytest.approx(value, abs=1e-9)


# Many labels


def pseudo(p: Any, y: Any) -> Any:
    """What each case adds to the AUC of one label, by loops over the cases of the other side."""
    n, m = len(p), int(y.sum())
    share = np.array(
        [
            np.mean([(a > b) + (a == b) / 2 for b in p[y != side]])
            for a, side in zip(p, y, strict=True)
        ]
    )
    share = np.where(y == 1, share, 1 - share)
    area = share[y == 1].mean()
    off = (share - area) * n / np.where(y == 1, m, n - m)
    wanted = 0.0
    for side, size in ((1, m), (0, n - m)):
        wanted += (off[y == side] ** 2).sum() * size / max(size - 1, 1) + area * (1 - area) * (
            n / size
        ) ** 2
    seen = (off**2).sum()
    return area + off * (np.sqrt(wanted / seen) if seen > 0 else 1.0)


@pytest.mark.parametrize("positives", [1, 2, 3, 10])
def test_parts_of_an_auc_with_few_positive_cases(positives: int) -> None:
    p, y = np.random.default_rng(positives).random((12, 1)).round(1), np.zeros((12, 1), dtype=int)
    y[:positives] = 1
    found = compute_pseudo_aucs(Predictions.from_multilabel(p, y))
    assert found[:, 0] == pytest.approx(pseudo(p[:, 0], y[:, 0]))


def test_parts_of_an_auc_that_is_nearly_perfect() -> None:
    p, y = np.arange(40)[:, None] / 40, (np.arange(40) >= 20).astype(int)[:, None]
    y[19:21] = 1 - y[19:21]  # the least sure of either side have changed places
    found = compute_pseudo_aucs(Predictions.from_multilabel(p, y))
    assert found[:, 0] == pytest.approx(pseudo(p[:, 0], y[:, 0]))
    assert found[:, 0].std() > 0.03


def test_a_perfect_label_has_no_spread_and_an_absent_one_no_auc() -> None:
    found = compute_pseudo_aucs(
        Predictions.from_multilabel([[0.9, 0.2], [0.8, 0.7], [0.1, 0.6]], [[1, 0], [1, 0], [0, 0]])
    )
    assert found[:, 0].tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(found[:, 1]).all()
    assert hs.macro_auroc(Predictions.from_multilabel([[0.9], [0.2]], [[1], [1]])) != 0.0


# Histograms


@pytest.mark.parametrize(
    ("n", "k", "left"),
    [
        ([5, 10, 30], [3, 10, 10], ([15, 30], [13, 10])),  # the smaller neighbour is the first
        ([30, 10, 5], [10, 10, 3], ([30, 15], [10, 13])),  # and the last
        ([8, 10, 8], [3, 0, 4], ([18, 8], [3, 4])),  # of equal ones the first
        ([10, 8, 9], [10, 3, 4], ([18, 9], [13, 4])),
        ([8, 9, 10], [3, 4, 0], ([8, 19], [3, 4])),
    ],
)
def test_bins_join_their_smaller_neighbour(
    n: list[int], k: list[int], left: tuple[list[int], list[int]]
) -> None:
    merged = hs.Histogram.from_counts(*left)
    assert hs.eor(hs.Histogram.from_counts(n, k), "merge") == pytest.approx(hs.eor(merged))
    assert hs.eor(merged) > 1.0


def test_a_histogram_without_counts_cannot_be_smoothed() -> None:
    for treatment in ("smooth", "merge"):
        with pytest.raises(InputError, match=f"degenerate='{treatment}' needs counts"):
            hs.eor(hs.Histogram([1, 1], [0.2, 0.9]), treatment)


@pytest.mark.parametrize("p", [[1.0, 1.0], [0.0, 0.0]])
def test_bins_of_one_kind_have_no_order(p: list[float]) -> None:
    assert isnan(hs.histogram_auroc(hs.Histogram([1, 1], p)))
    assert hs.histogram_auroc(hs.Histogram([1, 1], [0.0, 1.0])) == 1.0


def test_every_level_of_bands_of_single_samples() -> None:
    found = hs.bands(hs.tally([3, 2, 1], correct=[1, 0, 0]), levels=(1.0, 0.5))
    assert (found.threshold.tolist(), found.weight.tolist()) == (
        [3.0, 3.0],
        pytest.approx([1 / 3, 0, 2 / 3]),
    )
    assert found.accuracy.tolist() == pytest.approx([1.0, nan, 0.0], nan_ok=True)
