"""Histogram binning, isotonic, Platt and beta: by hand and against scikit-learn."""

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure.calibrators import Beta, HistogramBinning, Isotonic, Platt


def claims(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    return p, rng.random(n) < p**2


def test_histogram_by_hand():
    preds = Predictions.from_probs([[0.9, 0.1]] * 4 + [[0.3, 0.7]] * 2, [0, 0, 0, 1, 0, 1])
    h = HistogramBinning.fit(preds, bins=2)
    assert h.share == pytest.approx(np.array([[0.5, 0.75], [0.25, 0.5]]))


def test_an_empty_bin_answers_with_its_middle():
    preds = Predictions.from_probs([[0.9, 0.1]] * 2, [0, 1])
    assert HistogramBinning.fit(preds, bins=4).share[0] == pytest.approx([1 / 8, 3 / 8, 5 / 8, 0.5])


def test_edges_belong_to_the_lower_bin_and_zero_to_the_first():
    h = HistogramBinning(np.array([[0.1, 0.2], [0.9, 0.8]]))
    out = h(Predictions.from_probs([[0.5, 0.5], [0.0, 1.0]]))
    assert out.values == pytest.approx(np.array([[0.1, 0.9], [0.1 / 0.9, 0.8 / 0.9]]))


def test_a_row_of_zeros_keeps_what_it_was():
    out = HistogramBinning(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))(Predictions.from_probs([[0.4, 0.3, 0.3]]))
    assert out.values == pytest.approx(np.array([[0.4, 0.3, 0.3]]))


def test_isotonic_is_scikit_learns():
    sklearn = pytest.importorskip("sklearn.isotonic")
    p, hit = claims()
    ours = Isotonic.fit(Predictions.from_confidence(p, hit))
    theirs = sklearn.IsotonicRegression(out_of_bounds="clip").fit(p, hit)
    new = np.linspace(0, 1, 101)
    assert ours(Predictions.from_confidence(new)).confidence == pytest.approx(theirs.predict(new), abs=1e-12)


def test_platt_is_scikit_learns_sigmoid_of_the_log_odds():
    sklearn = pytest.importorskip("sklearn.calibration")
    p, hit = claims()
    ours = Platt.fit(Predictions.from_confidence(p, hit))
    theirs = sklearn._SigmoidCalibration().fit(np.log(p / (1 - p)), hit.astype(int))
    assert (ours.slope[0], ours.intercept[0]) == pytest.approx((-theirs.a_, -theirs.b_), abs=1e-4)


def test_beta_keeps_its_signs():
    p, hit = claims()
    b = Beta.fit(Predictions.from_confidence(p, ~hit))
    assert b.a[0] >= 0
    assert b.b[0] >= 0
    assert (np.diff(b(Predictions.from_confidence(np.linspace(0, 1, 50))).confidence) >= 0).all()


@pytest.mark.parametrize("calibrator", [Beta, Platt])
def test_calibrated_input_is_left_almost_alone(calibrator):
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, 20_000)
    preds = Predictions.from_confidence(p, rng.random(20_000) < p)
    assert np.abs(calibrator.fit(preds)(preds).confidence - p).max() < 0.03


@pytest.mark.parametrize("calibrator", [Beta, Isotonic, Platt])
def test_separable_confidence_gives_finite_maps(calibrator):
    preds = Predictions.from_confidence([0.2, 0.3, 0.8, 0.9], [0, 0, 1, 1])
    out = calibrator.fit(preds)(preds).confidence
    assert np.isfinite(out).all()
    assert (np.diff(out) >= 0).all()


@pytest.mark.parametrize("calibrator", [Beta, HistogramBinning, Isotonic, Platt])
def test_weights_are_repetitions(calibrator):
    rng = np.random.default_rng(0)
    y, w = rng.integers(0, 3, 120), rng.integers(1, 4, 120)
    p = rng.dirichlet(np.ones(3), 120)
    weighted = calibrator.fit(Predictions.from_probs(p, y, weight=w))(Predictions.from_probs(p)).values
    repeated = calibrator.fit(Predictions.from_probs(np.repeat(p, w, axis=0), np.repeat(y, w)))
    tolerance = 0.02 if calibrator in (Beta, Platt) else 1e-9  # Platt's targets count samples
    assert weighted == pytest.approx(repeated(Predictions.from_probs(p)).values, abs=tolerance)


@pytest.mark.parametrize("calibrator", [Beta, HistogramBinning, Isotonic, Platt])
def test_rows_are_distributions(calibrator):
    rng = np.random.default_rng(0)
    preds = Predictions.from_logits(3 * rng.normal(size=(200, 5)), rng.integers(0, 5, 200))
    out = calibrator.fit(preds)(preds)
    assert out.values.sum(axis=1) == pytest.approx(1.0)
    assert hs.accuracy(out) >= 0


@pytest.mark.parametrize("calibrator", [Beta, Isotonic, Platt])
@pytest.mark.parametrize(("right", "word"), [(1, "right"), (0, "wrong")])
def test_one_outcome_only(calibrator, right, word):
    with pytest.raises(InputError, match=f"all 2 answers are {word}; both kinds are needed"):
        calibrator.fit(Predictions.from_confidence([0.5, 0.6], [right, right]))
