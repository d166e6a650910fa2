"""Structured scaling: values of another hand, its minimum by another optimiser, what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

import howsure as hs
from howsure import InputError, Predictions
from howsure.calibrators import StructuredScaling, descent

LOGITS = [
    [2.0, 0.5, -1.0],
    [0.2, 1.5, 0.1],
    [-0.5, 0.3, 2.2],
    [0.4, 0.9, -0.2],
    [0.0, 2.5, 0.3],
    [0.1, -0.2, 1.1],
    [3.0, 0.0, 0.0],
    [1.2, 0.8, 0.0],
    [0.0, 0.6, 0.5],
    [1.0, 1.0, -1.0],
    [-0.3, 0.7, 0.2],
    [0.5, 0.0, 0.1],
]
LABELS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 1]
PREDS = Predictions.from_logits(LOGITS, LABELS)
FIRST = {
    "full": [0.901048124633968, 0.08111365089024807, 0.017838224475783728],
    "diagonal": [0.8971306970601143, 0.08389703470533613, 0.018972268234549512],
}
MATRICES: list[Any] = ["full", "diagonal"]


@pytest.mark.parametrize("matrix", MATRICES)
def test_values_of_another_hand(matrix: Literal["full", "diagonal"]) -> None:
    made = StructuredScaling.fit(PREDS, matrix=matrix)
    assert made(PREDS).probs[0] == pytest.approx(FIRST[matrix], abs=2e-6)
    assert 1 / made.temperature == pytest.approx(1.9912767491220658, abs=1e-7)
    assert made.weight.ndim == (2 if matrix == "full" else 1)


def test_the_minimum_by_another_optimiser() -> None:
    rng = np.random.default_rng(4)
    n, k = 80, 4
    y = rng.integers(0, k, n)
    z = rng.normal(size=(n, k)) + 1.5 * np.eye(k)[y]
    made = StructuredScaling.fit(Predictions.from_logits(z, y))
    p = np.exp(log_softmax(z / made.temperature, axis=1))
    x = np.log((n * p + 1 / k) / (n + 1))
    off = 1 - np.eye(k)

    def cost(v: Any) -> float:
        a, b = v[: k * k].reshape(k, k), v[k * k :]
        nll = -log_softmax(x + x @ a.T + b, axis=1)[np.arange(n), y].mean()
        near = k / n * (b @ b + (np.diag(a) ** 2).sum())
        return float(nll + near + k * (k - 1) / n * ((a * off) ** 2).sum())

    ours = np.concatenate((made.weight.reshape(-1), made.intercept))
    other = minimize(cost, np.zeros(k * k + k), method="BFGS", options={"gtol": 1e-6})
    assert cost(ours) == pytest.approx(other.fun, abs=1e-9)
    assert ours == pytest.approx(other.x, abs=1e-3)


def test_a_fit_of_almost_the_same_samples_needs_few_passes(monkeypatch: Any) -> None:
    """The penalty of the weights is not that of the intercepts, which the first guess of the second
    derivative has to know.
    """
    rng = np.random.default_rng(0)
    n, k = 2000, 40
    y = rng.integers(0, k, n)
    preds = Predictions.from_logits(rng.normal(size=(n, k)) + 1.5 * np.eye(k)[y], y)
    whole = StructuredScaling.fit(preds)
    passes: list[int] = []
    measure = descent.measure_point
    monkeypatch.setattr(descent, "measure_point", lambda *a: passes.append(1) or measure(*a))
    StructuredScaling.fit(preds[:1600], start=whole)
    assert len(passes) <= 8


@pytest.mark.parametrize("matrix", MATRICES)
def test_logits_and_probabilities_have_the_same_map(matrix: Any) -> None:
    probs = Predictions.from_probs(PREDS.probs, LABELS)
    made, again = (StructuredScaling.fit(p, matrix=matrix) for p in (PREDS, probs))
    assert made(PREDS).probs == pytest.approx(again(probs).probs, abs=1e-6)
    assert made(probs).kind == "probs"
    assert made(PREDS).kind == "logits"
    assert made(probs).probs == pytest.approx(made(PREDS).probs, abs=1e-12)


def test_a_weight_is_as_good_as_repetition_in_the_likelihood() -> None:
    # The penalty counts rows, so only weights that are equal leave everything as it was.
    weighted = Predictions.from_logits(LOGITS, LABELS, weight=np.full(12, 3.0))
    assert StructuredScaling.fit(weighted)(PREDS).probs == pytest.approx(
        StructuredScaling.fit(PREDS)(PREDS).probs, abs=1e-9
    )


def test_samples_are_averaged_first() -> None:
    members = np.stack([np.array(LOGITS), np.array(LOGITS) * 0.5])
    several = Predictions.from_samples(members, LABELS)
    mean = Predictions.from_probs(several.probs, LABELS)
    made = StructuredScaling.fit(several)
    assert made(several).probs == pytest.approx(StructuredScaling.fit(mean)(mean).probs, abs=1e-9)


def test_no_error_in_the_fit_never_costs_an_infinite_loss() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    z = 4 * np.eye(3)[y] + rng.normal(size=(500, 3)) * 0.3
    made = StructuredScaling.fit(Predictions.from_logits(z, y))
    wrong = made(Predictions.from_logits([[50.0, 0.0, 0.0]], [1]))
    assert hs.nll(wrong) < 30


def test_probabilities_of_zero_and_ruled_out_classes() -> None:
    p = np.array(PREDS.probs)
    p[0] = [1.0, 0.0, 0.0]
    zero = Predictions.from_probs(p, LABELS)
    assert np.isfinite(hs.nll(StructuredScaling.fit(zero)(zero)))
    with pytest.raises(InputError, match="finite"):
        StructuredScaling.fit(Predictions.from_logits([[0.0, -np.inf], [0.0, 1.0]], [0, 1]))


def test_saved_and_loaded(tmp_path: Path) -> None:
    made = StructuredScaling.fit(PREDS, matrix="diagonal")
    hs.save(made, tmp_path / "c.json")
    assert (hs.load(tmp_path / "c.json")(PREDS).probs == made(PREDS).probs).all()


def test_what_is_refused() -> None:
    matrix: Any = "half"
    with pytest.raises(InputError, match="'full' or 'diagonal'"):
        StructuredScaling.fit(PREDS, matrix=matrix)
    good = {"intercept": np.zeros(3), "temperature": 1.0, "samples": 10}
    with pytest.raises(InputError, match="do not fit together"):
        StructuredScaling(**{**good, "weight": np.zeros((3, 2))})
    with pytest.raises(InputError, match="temperature is 0"):
        StructuredScaling(**{**good, "weight": np.zeros(3), "temperature": 0.0})
