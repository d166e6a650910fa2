"""20 real MC dropout passes of a network on Fashion-MNIST, against the definitions written out."""

import numpy as np
import pytest

import howsure as hs
from howsure.calibrators import Temperature


@pytest.fixture(scope="module")
def sets(arrays):
    a = arrays("mc_fashion_cnn")
    return {
        s: hs.Predictions.from_samples(a[f"mc_{s}_logits"], a[f"{s}_labels"])
        for s in ("val", "test")
    }


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def entropy(p):
    return -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1)


def binned(r, value, claim, bins=15):
    """Σ n_j/n |mean value − mean claim| over bins (lo, hi], 0 in the first."""
    which = np.clip(np.ceil(r * bins).astype(int), 1, bins)
    parts = [(which == j) for j in range(1, bins + 1)]
    return sum(
        part.mean() * abs(value[part].mean() - claim[part].mean()) for part in parts if part.any()
    )


def test_the_mean_over_passes_is_what_counts(sets):
    preds = sets["test"]
    q = softmax(preds.values.astype(np.float64))
    mean = q.mean(axis=0)
    wrong = (mean.argmax(axis=1) != preds.labels).astype(float)
    h = entropy(mean) / np.log(10)
    assert hs.accuracy(preds) == pytest.approx(1 - wrong.mean(), abs=1e-12)
    assert hs.nll(preds) == pytest.approx(
        -np.log(mean[np.arange(len(mean)), preds.labels]).mean(), abs=1e-10
    )
    assert hs.uce(preds) == pytest.approx(binned(h, wrong, h), abs=1e-10)
    t = hs.tally(hs.scores.max_prob(preds), correct=preds.correct)
    assert hs.ece(t) == pytest.approx(
        binned(mean.max(axis=1), 1 - wrong, mean.max(axis=1)), abs=1e-10
    )
    assert -hs.scores.mutual_information(preds) == pytest.approx(
        entropy(mean) - entropy(q).mean(axis=0), abs=1e-10
    )
    assert -hs.scores.variance(preds) == pytest.approx(q.var(axis=0).sum(axis=1), abs=1e-10)


@pytest.mark.filterwarnings("ignore:.*predictions change at temperature")
def test_the_two_temperatures_differ_as_they_should(sets):
    """Each is best at its own objective. A single pass is less accurate than the mean, so it needs
    the larger T.
    """
    val = sets["val"][:1000]
    averaged, per_pass = Temperature.fit(val), Temperature.fit(val, objective="per_pass")
    each = lambda t: np.mean(
        [hs.nll(hs.Predictions.from_logits(z / t.temperature, val.labels)) for z in val.logits]
    )
    assert averaged.temperature < 1 < per_pass.temperature
    assert hs.nll(averaged(val)) < hs.nll(per_pass(val))
    assert each(per_pass) < each(averaged)
