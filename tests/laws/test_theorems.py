"""What the papers prove, as laws over random data."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import howsure as hs
from generators import ANY, UNIT, Rows, rows
from reference.selective import errors_among, roc_polyline

BINNINGS = [
    hs.equal_range(1),
    hs.equal_range(10),
    hs.equal_range(15),
    hs.equal_size(7),
    hs.adaptive(),
    hs.unique(),
]
small = st.integers(0, 4)


@st.composite
def rivals(draw: Any) -> tuple[Any, Any, Any, Any]:
    """Two models with equally many samples and errors and their own scores: (score, correct) twice."""
    n = draw(st.integers(2, 9))
    wrong = draw(st.integers(0, n))
    column = st.lists(small, min_size=n, max_size=n)
    correct = [0] * wrong + [1] * (n - wrong)
    return np.array(draw(column)), np.array(correct), np.array(draw(column)), np.array(correct)


def roc_above(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> bool:
    """Whether polyline `a` is nowhere below `b`, vertical pieces included, in exact arithmetic."""

    def heights(line: list[tuple[int, int]], x: int) -> tuple[Fraction, Fraction]:
        at = [y for px, y in line if px == x]
        if at:
            return Fraction(min(at)), Fraction(max(at))
        left, right = max(p for p in line if p[0] < x), min(p for p in line if p[0] > x)
        y = left[1] + Fraction((right[1] - left[1]) * (x - left[0]), right[0] - left[0])
        return y, y

    crossings = sorted({x for x, _ in a} | {x for x, _ in b})
    return all(p >= q for x in crossings for p, q in zip(heights(a, x), heights(b, x), strict=True))


@given(rivals())
def test_dominance_in_risk_coverage_is_dominance_in_roc(pair: tuple[Any, Any, Any, Any]) -> None:
    """Ding 2019, theorem 2; with ties it needs counts, not risks, interpolated."""
    a, ca, b, cb = pair
    by_counts = all(x <= y for x, y in zip(errors_among(a, ca), errors_among(b, cb), strict=True))
    assert by_counts == roc_above(roc_polyline(a, ca), roc_polyline(b, cb))
    assert hs.dominates(hs.tally(a, correct=ca), hs.tally(b, correct=cb)) == by_counts


@given(rivals())
def test_dominance_shows_in_every_area(pair: tuple[Any, Any, Any, Any]) -> None:
    a, b = hs.tally(pair[0], correct=pair[1]), hs.tally(pair[2], correct=pair[3])
    assume(hs.dominates(a, b))
    assert hs.aurc(a) <= hs.aurc(b) + 1e-12
    assert hs.augrc(a) <= hs.augrc(b) + 1e-12
    assert not hs.auroc(a) < hs.auroc(b) - 1e-12


@given(rivals(), st.data())
def test_trusting_a_right_answer_more_than_a_wrong_one_dominates(
    pair: tuple[Any, Any, Any, Any], draw: Any
) -> None:
    score, correct = pair[0], pair[1]
    wrong_above = [
        (i, j)
        for i in np.flatnonzero(correct == 0)
        for j in np.flatnonzero(correct)
        if score[i] > score[j]
    ]
    assume(wrong_above)
    i, j = draw.draw(st.sampled_from(wrong_above))
    better = score.copy()
    better[[i, j]] = score[[j, i]]
    a, b = hs.tally(better, correct=correct), hs.tally(score, correct=correct)
    assert hs.dominates(a, b)
    assert not hs.dominates(b, a)
    assert hs.aurc(a) < hs.aurc(b)


@pytest.mark.parametrize("bins", BINNINGS, ids=repr)
@given(r=rows(UNIT, max_rows=80))
def test_compensation_and_its_equality_case(bins: Any, r: Rows) -> None:
    """Ding 2019, theorem 3: a binned ECE is at most the true one, and equal iff no bin mixes signs."""
    t = r.tally()
    excess = t.count * np.array([Fraction(s) for s in t.score.tolist()]) - (t.count - t.loss)
    first = np.searchsorted(np.cumsum(t.count), bins.cuts(t)[:-1], side="right")
    groups = np.split(excess, first[1:])
    binned, true = (
        Fraction(sum(parts)) / len(r)
        for parts in ([abs(sum(g)) for g in groups], [abs(x) for x in excess])
    )
    mixed = any((g > 0).any() and (g < 0).any() for g in groups)
    assert binned <= true
    assert (binned == true) == (not mixed)
    assert hs.ece(t, bins) == pytest.approx(float(binned), abs=1e-12)
    assert hs.ece(t, hs.unique()) == pytest.approx(float(true), abs=1e-12)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), min_size=1, max_size=8
    ),
    st.booleans(),
)
def test_perfect_in_both_iff_the_score_knows_the_outcome(
    table: list[tuple[float, bool]], know: bool
) -> None:
    """Ding 2019, theorem 1."""
    correct = np.array([c for _, c in table])
    score = correct.astype(float) if know else np.array([s for s, _ in table])
    t = hs.tally(score, correct=correct)
    perfect = hs.e_aurc(t) < 1e-12 and hs.ece(t, hs.unique()) < 1e-12
    assert perfect == bool((score == correct).all())


@st.composite
def histograms(draw: Any) -> hs.Histogram:
    size = draw(st.integers(1, 6))
    share = st.floats(0.01, 1.0)
    p = st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.5, 0.99, 0.01]))
    return hs.Histogram(
        draw(st.lists(share, min_size=size, max_size=size)),
        draw(st.lists(p, min_size=size, max_size=size)),
    )


@given(histograms(), st.data())
def test_refinement_never_lowers_a_convex_score(h: hs.Histogram, draw: Any) -> None:
    """Finlay & Oberman, theorem 1: the odds ratio, and any other convex score of a bin."""
    i = draw.draw(st.integers(0, len(h) - 1))
    b, spread = draw.draw(st.floats(0.05, 0.95)), draw.draw(st.floats(0.0, 0.999))
    p = h.p[i]
    d = spread * min((1 - p) / (1 - b), p / b)
    finer = hs.refine(h, i, [b, 1 - b], [p + d * (1 - b), p - d * b])
    assert len(finer) == len(h) + 1
    assert finer.base == pytest.approx(h.base, abs=1e-12)
    assert hs.eor(finer) >= hs.eor(h) * (1 - 1e-9)
    for convex in (lambda p, a: (p - a) ** 2, lambda p, a: abs(p - a), hs.odds_ratio):
        assert hs.expected_score(finer, convex) >= hs.expected_score(
            h, convex
        ) - 1e-9 * hs.expected_score(finer, convex)
    assert hs.conditional_entropy(finer) <= hs.conditional_entropy(h) + 1e-12
    assert hs.histogram_brier(finer) <= hs.histogram_brier(h) + 1e-12


@given(rows(ANY, max_rows=60), st.integers(1, 12))
def test_unique_bins_refine_all_others(r: Rows, m: int) -> None:
    t = r.tally()
    coarse, fine = hs.histogram(t, hs.equal_size(m)), hs.histogram(t, hs.unique())
    assert hs.eor(fine) >= hs.eor(coarse) * (1 - 1e-9)
    assert hs.conditional_entropy(fine) <= hs.conditional_entropy(coarse) + 1e-12


probability = st.floats(1e-6, 1 - 1e-6)


@given(probability, probability, probability, st.floats(0, 1))
def test_five_properties_of_the_odds_ratio(p: float, q: float, a: float, mix: float) -> None:
    """Finlay & Oberman, section 4."""
    s = hs.odds_ratio
    near = {"rel": 1e-6}
    assert s(a, a) == 1  # least at p = a ...
    nearer, further = sorted((p, q), key=lambda x: abs(x - a))
    if (nearer - a) * (further - a) >= 0:
        assert s(nearer, a) <= s(further, a) * (1 + 1e-9)  # ... and growing on both sides
    middle = mix * p + (1 - mix) * q
    assert s(middle, a) <= (mix * s(p, a) + (1 - mix) * s(q, a)) * (1 + 1e-9)  # convex
    assert s(0.0, a) == s(1.0, a) == np.inf  # certainty is not allowed
    assert s(p, a) == pytest.approx(s(a, p), **near)  # symmetric
    assert s(1 - p, 1 - a) == pytest.approx(s(p, a), **near)  # right and wrong may change names


@given(rows(ANY))
def test_augrc_identity(r: Rows) -> None:
    t = r.tally()
    error = t.total / t.n
    area = 0.0 if error in (0, 1) else error * (1 - error) * (1 - hs.auroc(t))
    assert hs.augrc(t) == pytest.approx(area + error**2 / 2, abs=1e-12)


@pytest.mark.parametrize("bins", BINNINGS, ids=repr)
@given(r=rows(UNIT))
def test_over_and_under_confidence_make_up_the_ece(bins: Any, r: Rows) -> None:
    t = r.tally()
    over, under = hs.over_confidence(t, bins), hs.under_confidence(t, bins)
    assert over + under == pytest.approx(hs.ece(t, bins), abs=1e-12)
    assert over - under == pytest.approx(hs.signed_calibration_error(t), abs=1e-12)
    assert hs.ece(t, bins) <= hs.mce(t, bins) + 1e-12


@pytest.mark.parametrize("variant", ["expected", "trapezoid", "step"])
@given(r=rows(ANY))
def test_aac_is_the_aurc_of_right_and_wrong(variant: Any, r: Rows) -> None:
    t = r.tally()
    assert hs.aac(t, variant) == hs.aurc(t, variant)


@pytest.mark.parametrize("variant", ["expected", "trapezoid", "step"])
@given(r=rows(ANY), constant=st.floats(allow_nan=False))
def test_constant_score_earns_the_error_rate(variant: Any, r: Rows, constant: float) -> None:
    t = hs.tally(np.full(len(r), constant), correct=r.correct)
    assert hs.aurc(t, variant) == pytest.approx(t.total / t.n, abs=1e-14)


@given(rows(ANY))
def test_no_score_beats_the_one_that_knows(r: Rows) -> None:
    t, knows = r.tally(), hs.tally(r.correct, correct=r.correct)
    assert hs.aurc(knows) == pytest.approx(hs.optimal_aurc(t), abs=1e-12)
    assert hs.optimal_aurc(t) <= hs.aurc(t) + 1e-12
    assert hs.e_aurc(t) == pytest.approx(hs.aurc(t) - hs.optimal_aurc(t), abs=1e-12)


@given(rows(ANY))
def test_auroc_turns_with_the_score(r: Rows) -> None:
    forward, backward = hs.auroc(r.tally()), hs.auroc(hs.tally(-r.score, correct=r.correct))
    renamed = hs.auroc(hs.tally(-r.score, correct=~r.correct))
    assert forward == pytest.approx(1 - backward, abs=1e-12, nan_ok=True)
    assert forward == pytest.approx(renamed, abs=1e-12, nan_ok=True)


@given(rows(UNIT))
def test_correctness_brier_splits_into_calibration_and_refinement(r: Rows) -> None:
    """Mean (r − c)² = mean (r − accuracy at r)² + the Brier score left once the distinct score is
    known.
    """
    t = r.tally()
    accuracy = (t.count - t.loss) / t.count
    calibration = np.dot(t.count, (t.score - accuracy) ** 2) / t.n
    left = hs.histogram_brier(hs.histogram(t, hs.unique()))
    assert hs.correctness_brier(t) == pytest.approx(calibration + left, abs=1e-12)
