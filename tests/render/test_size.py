"""The page stays within 300 kB whatever the data."""

import numpy as np
import pytest

from howsure import Predictions, evaluate
from howsure.metrics import npv, ppv, sensitivity, specificity

LIMIT = 300_000


@pytest.mark.parametrize(("n", "k"), [(200_000, 2), (60_000, 25), (4_000, 400)])
def test_a_page_of_many_samples_and_classes_is_small(n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    z = rng.normal(size=(n, k)).astype(np.float32)
    z[np.arange(n), y] += 2.5
    names = [f"a class with a rather long name {i}" for i in range(k)]
    html = evaluate(
        Predictions.from_logits(
            z, y, class_names=names, ids=[f"identity-{i:08d}" for i in range(n)]
        )
    ).to_html()
    assert len(html.encode()) < LIMIT


def test_the_counts_of_a_second_threshold_are_those_of_the_metrics() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(500).round(2)
    preds = Predictions.from_probs(p, (rng.random(500) < p).astype(int))
    c = evaluate(preds).data["binary"]["calling"]
    for i in (4, 29, 49, 80):
        tp, fp, fn, tn = (
            c[k][i] for k in ("true_positive", "false_positive", "false_negative", "true_negative")
        )
        at = c["threshold"][i]
        assert tp / (tp + fn) == pytest.approx(sensitivity(preds, at))
        assert tn / (tn + fp) == pytest.approx(specificity(preds, at))
        assert tp / (tp + fp) == pytest.approx(ppv(preds, at))
        assert tn / (tn + fn) == pytest.approx(npv(preds, at))


def test_a_page_with_everything_is_small() -> None:
    rng = np.random.default_rng(2)
    n, k = 60_000, 25
    y = rng.integers(0, k, n)
    z = rng.normal(size=(n, k)).astype(np.float32)
    z[np.arange(n), y] += 2.5
    names = [f"a class with a rather long name {i}" for i in range(k)]
    ids = [f"identity-{i:08d}" for i in range(n)]
    before, after = (Predictions.from_logits(c * z, y, class_names=names, ids=ids) for c in (3, 1))
    by = {
        "hospital": np.array([f"a hospital in town {i}" for i in range(20)])[rng.integers(0, 20, n)]
    }
    pictures = rng.integers(0, 255, (n, 32, 32), dtype=np.uint8)
    report = evaluate(after, before=before, by=by, images=pictures)
    assert len(report.to_html().encode()) < LIMIT
