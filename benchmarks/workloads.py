"""Inputs that look like those of real classifiers, drawn with a fixed seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PART = 10**7


class Outcome(NamedTuple):
    """Confidence in the predicted class, and whether it was right."""

    score: np.ndarray
    correct: np.ndarray


def usual(n: int) -> Outcome:
    """About one error in eight, few ties: a network that is a little over-confident."""
    return _drawn(n, mean=3.0, spread=2.5)


def large(n: int) -> Outcome:
    """The usual workload in parts of PART with seeds of their own, so that no more than a part is
    ever in float64.
    """
    score, correct = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.bool_)
    for seed, start in enumerate(range(0, n, PART)):
        size = min(PART, n - start)
        score[start : start + size], correct[start : start + size] = _drawn(
            size, mean=3.0, spread=2.5, seed=seed
        )
    return Outcome(score, correct)


def saturated(n: int) -> Outcome:
    """About one error in sixteen; one score in eleven is exactly 1, wrong ones among them."""
    return _drawn(n, mean=8.0, spread=7.0)


def _drawn(n: int, *, mean: float, spread: float, seed: int = 0) -> Outcome:
    rng = np.random.default_rng(seed)
    score = (1 / (1 + np.exp(-np.abs(rng.normal(mean, spread, n))))).astype(np.float32)
    return Outcome(score, rng.random(n) < 0.98 * score)


def logits(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """float32 logits with labels drawn from their softmax."""
    rng = np.random.default_rng(0)
    z = (2.5 * rng.standard_normal((n, k))).astype(np.float32)
    return z, (z + rng.gumbel(size=(n, k))).argmax(axis=1)
