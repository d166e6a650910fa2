"""Limits of very many rows are made from runs of neighbours; they must hardly differ from those of
single rows.
"""

import numpy as np
import pytest

import howsure as hs
from howsure.uncertainty import sample_case

METRICS = [hs.aurc, hs.e_aurc, hs.augrc, hs.auroc, hs.aupr]


@pytest.fixture
def tally() -> hs.Tally:
    rng = np.random.default_rng(0)
    score = rng.beta(4, 1.5, 400_000)
    return hs.tally(score, correct=rng.random(400_000) < score)


def test_runs_give_the_limits_of_single_rows(
    tally: hs.Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_case, "MAX_SINGLE_RANKS", 1 << 16)
    some = hs.each_interval(METRICS, tally)
    monkeypatch.setattr(sample_case, "MAX_SINGLE_RANKS", 1 << 30)
    every = hs.each_interval(METRICS, tally)
    for a, b in zip(some, every, strict=True):
        assert a != b, "runs were not used"
        assert abs(a.low - b.low) + abs(a.high - b.high) < 1e-4 * (b.high - b.low)
