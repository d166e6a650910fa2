"""Temperature: the optimum, its status at the edges, samples, and real networks."""

from math import log

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import howsure as hs
from howsure import InputError, Predictions
from howsure.calibrators import Temperature

REAL = [
    "nn_resnet110_c10",
    "netcal_wideresnet_16_4_c10",
    "netcal_densenet_bc_100_c100",
    "cleanlab_mnist",
    "cleanlab_imdb",
    "eurosat_rgb",
    "f538_nfl",
    "f538_mlb",
    "f538_worldcup_ingame",
    "ak_resnet20_c10",
    "ak_resnet32_c10",
    "mc_fashion_cnn",
]


def noisy(n, k, seed=0, scale=3.0, signal=1.5):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    z = rng.normal(size=(n, k))
    z[np.arange(n), y] += signal
    return scale * z, y


def loss_at(z, y, t):
    """Mean negative log-likelihood in extended precision, straight from the definition."""
    s = z.astype(np.longdouble) / np.longdouble(t)
    s -= s.max(axis=1, keepdims=True)
    return float((np.log(np.exp(s).sum(axis=1)) - s[np.arange(len(s)), y]).mean())


def least(z, y):
    """An independent minimiser: golden section on log T from a fine grid."""
    grid = np.linspace(log(1e-6), log(1e6), 241)
    at = lambda u: loss_at(z, y, np.exp(u))
    i = int(np.argmin([at(u) for u in grid]))
    found = minimize_scalar(
        at,
        bounds=(grid[max(i - 1, 0)], grid[min(i + 1, 240)]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return min(found.fun, at(grid[i]))


@pytest.mark.parametrize(
    ("n", "k", "options"),
    [
        (300, 2, {}),
        (200, 10, {"scale": 0.01}),
        (200, 10, {"scale": 1000.0}),
        (5_000, 3, {}),
        (60, 1000, {"signal": 3.0}),
        (100, 4, {"signal": 0.0}),
        (100, 5, {"signal": -2.0}),
    ],
)
def test_loss_is_the_least(n, k, options):
    z, y = noisy(n, k, **options)
    preds = Predictions.from_logits(z, y)
    t = Temperature.fit(preds)
    assert hs.nll(t(preds)) <= least(z, y) + 1e-9
    assert t.fitted.nll == pytest.approx(hs.nll(t(preds)), abs=1e-12)


def test_two_values_by_hand():
    """Three of four right with logits ±a: σ(2a/T) = 3/4, so T = 2a / log 3."""
    preds = Predictions.from_logits([[1.0, -1.0]] * 4, [0, 0, 0, 1])
    t = Temperature.fit(preds)
    assert t.temperature == pytest.approx(2 / log(3), rel=1e-10)
    assert t.fitted.status == "interior"


def test_weights_are_repetitions():
    z, y = noisy(200, 3)
    w = np.random.default_rng(1).integers(0, 4, 200)
    weighted = Temperature.fit(Predictions.from_logits(z, y, weight=w)).temperature
    repeated = Temperature.fit(
        Predictions.from_logits(np.repeat(z, w, axis=0), np.repeat(y, w))
    ).temperature
    assert weighted == pytest.approx(repeated, rel=1e-9)


def test_all_right_is_the_lower_bound():
    t = Temperature.fit(Predictions.from_logits([[2.0, 0.0], [0.0, 2.0]], [0, 1]))
    assert (t.temperature, t.fitted.status) == (1e-6, "lower")


def test_worse_than_chance_is_the_upper_bound():
    t = Temperature.fit(Predictions.from_logits([[2.0, 0.0], [0.0, 2.0]], [1, 0]))
    assert (t.temperature, t.fitted.status) == (1e6, "upper")


def test_equal_logits_are_flat():
    t = Temperature.fit(Predictions.from_logits([[2.0, 2.0], [5.0, 5.0]], [1, 0]))
    assert (t.temperature, t.fitted.status) == (1.0, "flat")


def test_bounds_are_kept():
    z, y = noisy(500, 3)
    t = Temperature.fit(Predictions.from_logits(z, y), bounds=(0.5, 1.0))
    assert (t.temperature, t.fitted.status) == (1.0, "upper")


def test_grid_takes_the_best_of_the_given():
    z, y = noisy(500, 3)
    preds = Predictions.from_logits(z, y)
    grid = np.linspace(0.5, 5, 10)
    t = Temperature.fit(preds, grid=grid)
    assert t.temperature == min(grid, key=lambda x: loss_at(z, y, x))
    assert t.fitted.status == "grid"


def test_answers_stay_the_same_even_where_rounding_would_tie():
    near = np.nextafter(1.9999999, 2)
    preds = Predictions.from_logits([[1.9999999, near]] * 50 + [[3.0, 1.0]] * 50, [0, 1] * 50)
    for t in (0.3, 0.7, 1.7, 1.9999999, 123.0):
        assert (Temperature(t)(preds).prediction == preds.prediction).all()


def test_probabilities_stay_probabilities():
    preds = Predictions.from_probs([[0.8, 0.2], [0.0, 1.0]], [0, 1])
    out = Temperature(2.0)(preds)
    assert out.kind == "probs"
    assert out.values[0] == pytest.approx([2 / 3, 1 / 3])
    assert out.values[1, 0] == pytest.approx(1e-6 / (1 + 1e-6))


def samples(seed=0, s=7, n=150, k=4, scale=4.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    z = rng.normal(size=(s, n, k)) + rng.normal(size=(n, k)) + 2 * np.eye(k)[y]
    return scale * z, y


def mean_loss(z, y, t):
    s = z / t
    s = np.exp(s - s.max(axis=-1, keepdims=True))
    p = (s / s.sum(axis=-1, keepdims=True)).mean(axis=0)
    return float(-np.log(p[np.arange(len(y)), y]).mean())


@pytest.mark.filterwarnings("ignore:.*predictions change")
def test_averaged_objective_is_the_loss_of_the_mean():
    z, y = samples()
    preds = Predictions.from_samples(z, y)
    t = Temperature.fit(preds)
    best = min(mean_loss(z, y, x) for x in np.geomspace(0.05, 50, 2000))
    assert hs.nll(t(preds)) <= best + 1e-12
    assert t.fitted.nll == pytest.approx(hs.nll(t(preds)), abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*predictions change")
def test_per_pass_objective_is_a_plain_fit_of_all_passes():
    z, y = samples()
    per_pass = Temperature.fit(Predictions.from_samples(z, y), objective="per_pass")
    flat = Temperature.fit(Predictions.from_logits(z.reshape(-1, 4), np.tile(y, len(z))))
    assert per_pass.temperature == pytest.approx(flat.temperature, rel=1e-8)


def test_flips_of_the_mean_are_told():
    z = np.array([[[9.0, 0.0, 0.0]], [[0.0, 3.0, 0.0]], [[0.0, 3.0, 0.0]]])
    z = np.concatenate((z, np.full((3, 1, 3), 1.0) * [[[0, 2, 1]]]), axis=1)
    with pytest.warns(UserWarning, match="1 of 2 predictions change at temperature"):
        Temperature.fit(Predictions.from_samples(z, [0, 1]), grid=[30.0])


@pytest.mark.parametrize("name", REAL)
def test_real_networks(name, index, arrays):
    a, known = arrays(name), index[name]
    kind = "logits" if "val_logits" in a else "probs"
    make = getattr(Predictions, f"from_{kind}")
    more = {"renormalise": True} if name == "cleanlab_imdb" else {}
    val, test = (
        make(a[f"{split}_{kind}"], a[f"{split}_labels"], **more) for split in ("val", "test")
    )
    t = Temperature.fit(val)
    after = t(test)
    assert t.temperature == pytest.approx(known["temperature_fit_on_val"], rel=1e-4)
    assert hs.ece(hs.tally(after.confidence, after.correct)) == pytest.approx(
        known["test_after_temperature"]["ece15"], abs=1e-6
    )


def test_bad_temperatures():
    for t in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError, match="a finite number above 0 is needed"):
            Temperature(t)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "mean"}, "'averaged' or 'per_pass' is needed"),
        ({"bounds": (0.0, 1.0)}, "two finite temperatures above 0"),
        ({"grid": [1.0, -2.0]}, "not finite and above 0"),
    ],
)
def test_bad_options(options, message):
    z, y = noisy(50, 3)
    with pytest.raises(InputError, match=message):
        Temperature.fit(Predictions.from_logits(z, y), **options)
