"""Curves of an order: the points, what belongs to them, and that the metrics are their areas."""

import numpy as np
import pytest
from hypothesis import given

import howsure as hs
from generators import ANY, Rows, predictions, rows
from howsure.scores import normalised_entropy
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
