"""Curves as data: the points, what belongs to them, and that the metrics are their areas."""

from math import comb

import numpy as np
import pytest
from hypothesis import given

import howsure as hs
from generators import ANY, UNIT, Rows, predictions, rows
from howsure.scores.softmax import normalised_entropy
from reference import answers, selective


@given(rows(ANY, max_rows=60))
def test_risk_coverage_points(r: Rows) -> None:
    c = hs.risk_coverage(r.tally())
    expected = np.array(selective.rows(r.score + 0.0, 1 - r.correct))
    np.testing.assert_array_equal(c.threshold, expected[:, 0])
    np.testing.assert_allclose(np.stack((c.weight, c.x, c.y), axis=1), expected[:, 1:], rtol=1e-12)
    assert c.x[-1] == 1


@given(rows(ANY))
def test_roc_has_the_area_of_auroc(r: Rows) -> None:
    for positive in ("error", "success"):
        c = hs.roc(r.tally(), positive)
        area = np.trapezoid(c.y, c.x)
        assert area == pytest.approx(hs.auroc(r.tally()), abs=1e-12, nan_ok=True)
        assert (c.x[0], c.y[0]) == (0, 0)
        if r.correct.any() and not r.correct.all():
            assert (c.x[-1], c.y[-1]) == (1, 1)
            assert (np.diff(c.x) >= 0).all()
            assert (np.diff(c.y) >= 0).all()


@given(rows(ANY))
def test_precision_recall_has_the_area_of_aupr(r: Rows) -> None:
    c = hs.precision_recall(r.tally())
    area = np.dot(np.diff(c.x, prepend=0), c.y)
    assert area == pytest.approx(hs.aupr(r.tally()), abs=1e-12, nan_ok=True)


@given(rows(UNIT))
def test_reliability_shows_the_ece(r: Rows) -> None:
    c = hs.reliability(r.tally())
    assert c.weight.sum() == len(r)
    assert np.dot(c.weight, abs(c.x - c.y)) / len(r) == pytest.approx(hs.ece(r.tally()), abs=1e-12)
    assert (np.diff(c.x) > 0).all()


def test_bin_table_by_hand() -> None:
    table = hs.bin_table(hs.tally([0.05, 0.95, 0.97, 0.95], correct=[0, 1, 1, 0]), hs.equal_range(10))
    assert table.count.tolist() == [1, 3]
    np.testing.assert_allclose(table.confidence, [0.05, 2.87 / 3])
    np.testing.assert_allclose(table.accuracy, [0, 2 / 3])
    np.testing.assert_allclose(table.gap, [0.05, 2.87 / 3 - 2 / 3])
    assert table.low.tolist() == [0.05, 0.95]
    assert table.high.tolist() == [0.05, 0.97]


class TestConsistencyBars:
    """What accuracy would be were every claim true."""

    @pytest.mark.parametrize(("n", "p"), [(100, 0.3), (200, 0.9)])
    def test_match_binomial_quantiles(self, n: int, p: float) -> None:
        chance = np.cumsum([comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
        c = hs.reliability(hs.tally([p] * n, correct=[1] * n), consistency=True)
        assert c.low[0] == pytest.approx(np.argmax(chance >= 0.05) / n, abs=0.011)
        assert c.high[0] == pytest.approx(np.argmax(chance >= 0.95) / n, abs=0.011)

    def test_hold_90_percent_of_honest_bins(self) -> None:
        rng = np.random.default_rng(0)
        inside = []
        for seed in range(30):
            score = rng.random(600)
            c = hs.reliability(hs.tally(score, correct=rng.random(600) < score), consistency=True, seed=seed)
            inside += ((c.low <= c.y) & (c.y <= c.high)).tolist()
        assert 0.86 < np.mean(inside) < 0.96

    def test_depend_on_the_seed_alone(self) -> None:
        t = hs.tally(np.linspace(0, 1, 3000), correct=np.arange(3000) % 2)
        a, b, other = (hs.reliability(t, consistency=True, seed=s) for s in (1, 1, 2))
        assert a.low.tolist() == b.low.tolist()
        assert a.low.tolist() != other.low.tolist()


@given(predictions(max_rows=20))
def test_rejection_keeps_the_certain(preds: hs.Predictions) -> None:
    entropy = normalised_entropy(preds)
    c = hs.rejection(preds)
    assert c.x.tolist() == sorted(set(entropy.tolist()))
    for x, y, weight in zip(c.x, c.y, c.weight, strict=True):
        kept = entropy <= x
        assert weight == kept.sum()
        assert y == pytest.approx(1 - preds.correct[kept].mean())


def test_rejection_at_given_thresholds() -> None:
    preds = hs.Predictions.from_probs([[1.0, 0.0], [0.9, 0.1], [0.5, 0.5]], [1, 0, 0])
    h = answers.normalised_entropy([0.9, 0.1])
    c = hs.rejection(preds, thresholds=[-0.1, 0.0, h - 1e-9, h + 1e-9, 1.0])
    np.testing.assert_allclose(c.y, [np.nan, 1, 1, 1 / 2, 1 / 3])
    assert c.weight.tolist() == [0, 1, 1, 2, 3]


def test_odds_by_quantile_average_to_the_eor() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(20_000)
    t = hs.tally(score, correct=rng.random(20_000) < 0.5 + 0.3 * score)
    c = hs.odds_by_quantile(t)
    assert len(c) == 100
    assert np.dot(c.weight, c.y) / t.n == pytest.approx(hs.eor(t))


def test_odds_by_quantile_of_weighted_rows() -> None:
    t = hs.tally([2, 1], correct=[1, 1], weight=[0.1, 0.2])
    assert hs.odds_by_quantile(t).y.tolist() == [1, 1]
