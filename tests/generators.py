"""Scores, outcomes and predictions for property tests: ties, edges, extremes and both float widths."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from howsure import Predictions, Tally, tally

MAX_ROWS = 240  # adaptive bins need more than 40 rows to split
UNIT = (
    "three_decimals",
    "edges",
    "coarse",
    "extremes",
    "uniform",
    "confident",
    "neighbours",
    "constant",
)
ANY = (*UNIT, "signed", "infinite", "negative")


@dataclass(frozen=True, eq=False)
class Rows:
    """One score, one outcome and one whole weight per sample."""

    score: Any
    correct: Any
    weight: Any

    def tally(self, rows: Any = slice(None)) -> Tally:
        return tally(self.score[rows], correct=self.correct[rows])

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:  # what hypothesis prints
        return f"score={self.score.tolist()} ({self.score.dtype}), correct={self.correct.astype(int).tolist()}"


def draw_scores(kind: str, n: int, rng: np.random.Generator) -> Any:
    """n scores of one kind; heavy ties in most of them."""
    m = int(rng.choice([10, 15, 20]))
    near = rng.random(4)
    return {
        "three_decimals": lambda: rng.integers(0, 1001, n) / 1000,
        "edges": lambda: rng.integers(0, m + 1, n) / m,
        "coarse": lambda: rng.choice([0.25, 0.5, 0.75], n),
        "extremes": lambda: rng.choice([0.0, -0.0, 1.0, 5e-324, 1 - 2**-53], n),
        "uniform": lambda: rng.random(n),
        "confident": lambda: 1 - rng.beta(0.3, 4.0, n),
        "neighbours": lambda: np.nextafter(rng.choice(near, n), rng.choice([0.0, 1.0], n)),
        "constant": lambda: np.full(n, near[0]),
        "signed": lambda: rng.normal(size=n).round(1),
        "infinite": lambda: rng.choice([-np.inf, np.inf, -1.0, -0.0, 0.0, 3e38], n),
        "negative": lambda: -rng.random(n).round(2),
    }[kind]()


def draw_correct(kind: str, score: Any, rng: np.random.Generator) -> Any:
    """Outcomes: unrelated to the score, honest, backwards, or all the same."""
    claim = np.clip(np.nan_to_num(score), 0, 1)
    chance = {"even": 0.5, "honest": claim, "backwards": 1 - claim, "right": 1.0, "wrong": 0.0}[
        kind
    ]
    return rng.random(len(score)) < chance


@st.composite
def rows(draw: Any, kinds: tuple[str, ...] = UNIT, max_rows: int = MAX_ROWS) -> Rows:
    """Scored outcomes of any size from one row on."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.one_of(st.integers(1, 8), st.integers(1, max_rows)))
    score = draw_scores(draw(st.sampled_from(kinds)), n, rng).astype(
        draw(st.sampled_from([np.float64, np.float32]))
    )
    correct = draw_correct(
        draw(st.sampled_from(["even", "honest", "backwards", "right", "wrong"])), score, rng
    )
    return Rows(score, correct, rng.integers(0, 4, n) if n > 1 else np.array([2]))


@st.composite
def predictions(draw: Any, max_rows: int = 40) -> Predictions:
    """Logits, probabilities or samples of them, with ties between classes and certain answers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, k, s = draw(st.integers(1, max_rows)), draw(st.integers(2, 6)), draw(st.integers(1, 3))
    z = rng.normal(scale=draw(st.sampled_from([0.0, 1.0, 5.0, 1e4])), size=(s, n, k)).round(1)
    z = z.astype(draw(st.sampled_from([np.float32, np.float64])))
    y = rng.integers(0, k, n)
    kind = draw(st.sampled_from(["logits", "probs", "samples", "probs_samples"]))
    p = np.exp(z - z.max(axis=-1, keepdims=True), dtype=np.float64)
    p /= p.sum(axis=-1, keepdims=True)
    make = {
        "logits": lambda: Predictions.from_logits(z[0], y),
        "probs": lambda: Predictions.from_probs(p[0], y),
        "samples": lambda: Predictions.from_samples(z, y),
        "probs_samples": lambda: Predictions.from_samples(probs=p, labels=y),
    }
    return make[kind]()


def increasing(score: Any, rng: np.random.Generator) -> Any:
    """The scores under some strictly increasing map: the j-th distinct value becomes the j-th of
    new ones.
    """
    values, rank = np.unique(score + 0.0, return_inverse=True)
    low, high = (0.0, 1.0) if rng.random() < 0.5 else (-1e6, 1e6)
    new = np.unique(rng.uniform(low, high, 4 * len(values) + 4))
    chosen = np.sort(rng.choice(new, len(values), replace=False))
    return chosen[rank.reshape(-1)]
