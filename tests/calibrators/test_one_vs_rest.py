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
    out = HistogramBinning(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))(
        Predictions.from_probs([[0.4, 0.3, 0.3]])
    )
    assert out.values == pytest.approx(np.array([[0.4, 0.3, 0.3]]))


def test_isotonic_is_scikit_learns():
    sklearn = pytest.importorskip("sklearn.isotonic")
    p, hit = claims()
    ours = Isotonic.fit(Predictions.from_confidence(p, hit))
    theirs = sklearn.IsotonicRegression(out_of_bounds="clip").fit(p, hit)
    new = np.linspace(0, 1, 101)
    assert ours(Predictions.from_confidence(new)).confidence == pytest.approx(
        theirs.predict(new), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(20))
def test_isotonic_with_ties_and_weights_is_scikit_learns(seed):
    sklearn = pytest.importorskip("sklearn.isotonic")
    rng = np.random.default_rng(seed)
    n, places = rng.integers(5, 1500), rng.integers(2, 3000)
    p = rng.integers(0, places, n) / places
    hit = np.arange(n) < 1 + rng.integers(0, n - 2)
    hit = rng.permutation(hit) if seed % 2 else rng.random(n) < np.sort(p)
    hit[:2] = 0, 1
    w = 0.1 + rng.random(n) if seed % 3 else None
    ours = Isotonic.fit(Predictions.from_confidence(p, hit, weight=w))
    theirs = sklearn.IsotonicRegression(out_of_bounds="clip").fit(p, hit, w)
    new = np.concatenate((np.linspace(0, 1, 101), p))
    out = ours(Predictions.from_confidence(new)).confidence
    assert out == pytest.approx(theirs.predict(new), abs=1e-12)
    with np.errstate(divide="ignore"):
        loss = -np.log(np.where(hit, out[101:], 1 - out[101:]))
    assert ours.fitted.nll == pytest.approx(np.average(loss, weights=w), abs=1e-12)


def test_isotonic_where_one_error_pools_all_steps_one_by_one():
    """Steps that rise everywhere but at the end: every pass over neighbours can pool only the last
    two.
    """
    p = np.concatenate([np.full(200, i) for i in range(200)]) / 400
    hit = np.concatenate([np.arange(200) < i + 1 for i in range(200)])
    low = Predictions.from_confidence(
        np.append(p, np.full(50_000, 0.9)), np.append(hit, np.zeros(50_000, dtype=bool))
    )
    right = np.append(np.arange(1, 201), 0)[::-1].cumsum()
    highest = (right / np.append(50_000 + 200 * np.arange(201), np.inf)[:201]).max()
    assert Isotonic.fit(low)(low).confidence[-1] == pytest.approx(highest, abs=1e-12)


def test_floors_keep_steps_half_a_sample_away_from_certainty():
    preds = Predictions.from_confidence(
        [0.2, 0.2, 0.4, 0.4, 0.9, 0.9, 0.9, 0.9, 0.9], [0, 0, 1, 0, 1, 1, 1, 1, 1]
    )
    out = Isotonic.fit(preds, floor=0.5)(preds).confidence
    assert out[[0, 2, 4]] == pytest.approx([0.5 / 2, 0.5, 1 - 0.5 / 5])
    both = Predictions.from_probs([[0.9, 0.1]] * 4 + [[0.2, 0.8]] * 2, [0, 0, 0, 0, 1, 1])
    assert HistogramBinning.fit(both, bins=2, floor=0.5).share == pytest.approx(
        np.array([[0.25, 0.875], [0.125, 0.75]])
    )


@pytest.mark.parametrize("calibrator", [HistogramBinning, Isotonic])
def test_a_floor_is_a_number_of_samples(calibrator):
    with pytest.raises(InputError, match="floor is -1; a finite number of samples"):
        calibrator.fit(Predictions.from_probs([[0.9, 0.1]] * 2, [0, 1]), floor=-1)


def test_histogram_bins_are_those_of_the_edges():
    """A product with the number of bins is rounded; the edges decide."""
    m = 15
    edges = np.arange(m + 1) / m
    near = np.concatenate([np.nextafter(edges, -1), edges, np.nextafter(edges, 2)]).clip(0, 1)
    share = np.stack((np.ones(m), np.arange(m) / m))
    out = HistogramBinning(share)(Predictions.from_probs(near)).values
    bins = np.searchsorted(edges[1:-1], near, side="left")
    assert out[:, 1] == pytest.approx(bins / m / (bins / m + 1))


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
    weighted = calibrator.fit(Predictions.from_probs(p, y, weight=w))(
        Predictions.from_probs(p)
    ).values
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


@pytest.mark.parametrize(
    ("second", "works"),
    [
        ([0.0, 1.0], True),
        ([0.5, 0.5], True),
        ([0.5, 0.2], False),
        ([0.5, 1.2], False),
        ([-0.1, 0.5], False),
        ([0.5, np.nan], False),
    ],
)
def test_each_map_rises_inside_0_and_1(second, works):
    x, y = np.array([0.2, 0.8, 0.1, 0.9]), np.array([0.3, 0.7, *second])
    if works:
        assert len(Isotonic(x=x, y=y, start=np.array([0, 2, 4])).points(1)[0]) == 2
        return
    with pytest.raises(hs.InputError, match="map 1 falls somewhere"):
        Isotonic(x=x, y=y, start=np.array([0, 2, 4]))
