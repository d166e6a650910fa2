"""The band: its chance of a wrong promise by another dynamic programme, worked values, simulation."""

from __future__ import annotations

from math import ceil, inf, log
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from howsure import InputError, Outcomes, Predictions, tally
from howsure.policies import band, guaranteed_threshold, label_thresholds
from howsure.policies.band import (
    compute_band_limits,
    count_labels_for_band,
    find_band_row,
    find_chain_start,
)

# Computed by another hand: n, risk, delta, ranks, limits of the band and of the chain.
LIMITS = [
    (1, 0.5, 0.5, [1], [-1], [0]),
    (10, 0.5, 0.3, [2, 4, 6, 10], [-1, 0, 0, 2], [0, 0, 1, 3]),
    (59, 0.05, 0.05, [59], [-1], [0]),
    (58, 0.05, 0.05, [], [], []),
]
# Rows (kept, errors), and the row that is accepted at risk and delta 0.05.
ROWS = [
    ([100, 200, 300], [0, 0, 0], 2),
    ([100, 200, 300], [100, 200, 300], None),
    ([300], [7], 0),
    ([1], [0], None),
    ([59], [0], 0),
]


def test_a_walk_stays_as_narrow_as_its_distribution() -> None:
    """Noise of the Fourier transforms beyond both tails is cut, or each step would widen the walk."""
    step = band.BandStep(10_000, 0.05)
    walk = band.Mass(0, np.ones(1))
    for _ in range(50):
        walk = step.add_to(walk)
    assert walk.p.sum() == pytest.approx(1, abs=1e-8)
    assert len(walk.p) < 2 * 10 * binom(500_000, 0.05).std()


@pytest.mark.parametrize(("n", "risk", "delta", "ranks", "band", "chain"), LIMITS)
def test_limits_of_another_hand(
    n: int, risk: float, delta: float, ranks: list[int], band: list[int], chain: list[int]
) -> None:
    limits = compute_band_limits(n, risk, delta)
    place = np.searchsorted(limits.rank, ranks)
    assert limits.rank[place].tolist() == ranks
    assert limits.band[place].tolist() == band
    assert limits.chain[place].tolist() == chain


@pytest.mark.parametrize(("kept", "errors", "row"), ROWS)
def test_rows_of_another_hand(kept: list[int], errors: list[int], row: int | None) -> None:
    assert find_band_row(np.array(kept), np.array(errors), risk=0.05, delta=0.05) == row


def compute_chance_of_a_promise(n: int, risk: float, delta: float) -> float:
    """The exact chance that a walk of errors at rate `risk`, without ties, is accepted anywhere.

    Forwards over all ranks from 1 to n, with whole distributions: no tails are cut, no step is
    skipped. A state is (errors, whether the chain still runs).
    """
    limits = compute_band_limits(n, risk, delta)
    start = find_chain_start(n, risk, delta)
    steps = limits.rank.tolist()
    running, ended = np.zeros(n + 2), np.zeros(n + 2)
    running[0] = 1.0
    states = np.arange(n + 2)
    accepted = 0.0
    for k in range(1, n + 1):
        for mass in (running, ended):
            mass[1:] = mass[1:] * (1 - risk) + mass[:-1] * risk
            mass[0] *= 1 - risk
        place = int(np.searchsorted(limits.rank, k, side="right")) - 1
        if place < 0:
            continue
        met = states <= limits.band[place]
        accepted += float(running[met].sum() + ended[met].sum())
        running[met] = ended[met] = 0.0
        if k in steps and k >= start:
            met = states <= limits.chain[place]
            accepted += float(running[met].sum())
            running[met] = 0.0
            ended += running
            running = np.zeros(n + 2)
    return accepted


def test_a_flat_risk_is_promised_with_at_most_delta() -> None:
    # The first step of the chain that is met accepts and the first that is not ends it: at a flat
    # risk everything that is accepted is a broken promise, so this is all that may happen.
    rng = np.random.default_rng(1)
    most = 0.0
    for _ in range(200):
        n = int(rng.integers(1, 400))
        risk, delta = float(rng.uniform(0.01, 0.9)), float(rng.uniform(0.01, 0.5))
        chance = compute_chance_of_a_promise(n, risk, delta)
        assert chance <= delta + 1e-9, (n, risk, delta, chance)
        most = max(most, chance / delta)
    assert most > 0.8  # and little is given away


def test_limits_rise_and_the_chain_is_above_the_band() -> None:
    for n, risk, delta in [(300, 0.1, 0.1), (5000, 0.02, 0.05), (200_000, 0.05, 0.05)]:
        limits = compute_band_limits(n, risk, delta)
        assert (np.diff(limits.band) >= 0).all()
        assert (np.diff(limits.chain) >= 0).all()
        assert (limits.chain >= limits.band).all()
        # No step may accept by itself what a single exact test at delta would refuse.
        assert (binom.cdf(limits.chain, limits.rank, risk) <= delta + 1e-9).all()


GRID = (np.arange(100_000) + 0.5) / 100_000  # places from the most trusted on
WORLDS = {
    "falls slowly": 0.02 + 0.2 * GRID,
    "flat just beyond": np.full(len(GRID), 0.1001),
    "a noisy top": np.where(GRID < 0.03, 0.6, 0.08),
    "good, then just beyond": np.where(GRID < 0.3, 0.0, 0.16),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("digits", [6, 1])
def test_promises_are_broken_in_at_most_delta(world: str, digits: int) -> None:
    rng = np.random.default_rng(5)
    error_rate = WORLDS[world]
    # Ties in score: what is accepted is cut where the rounded place ends.
    true_risk = np.cumsum(error_rate) / np.arange(1, len(GRID) + 1)
    broken, runs, n = 0, 400, 300
    for _ in range(runs):
        u = rng.random(n)
        wrong = rng.random(n) < error_rate[(u * len(GRID)).astype(np.int64)]
        t = tally(-np.ceil(u * 10**digits) / 10**digits, correct=~wrong)
        row = find_band_row(t.ends, np.cumsum(t.loss), risk=0.1, delta=0.1)
        if row is not None:
            end = min(len(GRID), ceil(-t.score[row] * len(GRID)))
            broken += true_risk[end - 1] > 0.1
    assert binom.sf(broken - 1, runs, 0.1) > 1e-3


def test_a_noisy_top_does_not_end_it() -> None:
    right = np.arange(2000) % 25 != 0
    right[:30] = False
    t = tally(-np.arange(2000.0), correct=right)
    band = guaranteed_threshold(t, risk=0.1, delta=0.05, method="band")
    assert band.coverage == 1
    assert not guaranteed_threshold(t, risk=0.1, delta=0.05, method="fixed_sequence").feasible
    assert "joint limits" in band.rule


def test_risk_one_accepts_all_and_few_labels_nothing() -> None:
    t = tally([0.9, 0.8], correct=[0, 0])
    assert guaranteed_threshold(t, risk=1, delta=0.1, method="band").coverage == 1
    g = guaranteed_threshold(t, risk=0.1, delta=0.1, method="band")
    assert (g.feasible, g.threshold, g.labels_needed) == (False, inf, None)


def test_one_row_of_each_group_counts() -> None:
    group = np.repeat(np.arange(30), 20)
    o = Outcomes(np.linspace(1, 0.5, 600), correct=np.ones(600), group=group)
    g = guaranteed_threshold(o, risk=0.05, delta=0.05, method="band")
    assert (g.feasible, g.groups) == (False, 30)
    assert g.labels_needed is not None
    assert g.labels_needed > ceil(log(0.05) / log(0.95))


@pytest.mark.parametrize(
    "options", [{"bound": "hoeffding_bentkus"}, {"bound": "betting"}, {"thresholds": [0.5]}]
)
def test_what_the_band_refuses(options: Any) -> None:
    o = Outcomes([0.9, 0.8], correct=[1, 0])
    with pytest.raises(InputError, match="fixed_sequence"):
        guaranteed_threshold(o, risk=0.1, delta=0.1, method="band", **options)


def test_the_band_refuses_other_losses_and_weights() -> None:
    with pytest.raises(InputError, match="fixed_sequence"):
        guaranteed_threshold(tally([0.9, 0.8], loss=[0.5, 0.1]), risk=0.1, delta=0.1, method="band")
    weighted = tally([0.9, 0.8], correct=[1, 0], weight=[1, 2])
    with pytest.raises(InputError, match="weights are refused"):
        guaranteed_threshold(weighted, risk=0.1, delta=0.1, method="band")


def test_each_label_may_have_a_band() -> None:
    p = np.repeat([[0.99, 0.6]], 300, axis=0)
    y = np.stack([np.ones(300), np.arange(300) % 2], axis=1)
    preds = Predictions.from_multilabel(p, y, label_names=["cat", "dog"])
    by_label = label_thresholds(preds, risk=0.05, delta=0.05, method="band")
    assert (by_label["cat"].feasible, by_label["dog"].feasible) == (True, False)


# How many labels, computed by another hand for rows of 2, 4 … 100 samples.
LABELS: list[Any] = [
    (np.zeros(50), 0.02, 1449),
    (np.arange(2, 101, 2) >= 60, 0.05, 431),
    (np.arange(2, 101, 2) // 25, 0.05, 15025),
    (np.arange(2, 101, 2) // 10, 0.05, None),
    (np.arange(2, 101, 2) // 25, 0.1, 216),
]


@pytest.mark.parametrize(("errors", "risk", "labels"), LABELS)
def test_labels_of_another_hand(errors: Any, risk: float, labels: int | None) -> None:
    kept = np.arange(2, 101, 2)
    assert count_labels_for_band(kept, errors.astype(np.int64), risk=risk, delta=0.05) == labels


def find_row_by_all_limits(kept: Any, errors: Any, risk: float, delta: float) -> int | None:
    """The rule as docs/act.md has it: every limit, row by row."""
    n = int(kept[-1])
    limits = compute_band_limits(n, risk, delta)
    reached = np.searchsorted(limits.rank, kept, side="right") - 1
    accepted = [i for i, at in enumerate(reached) if at >= 0 and errors[i] <= limits.band[at]]
    for rank in limits.rank[limits.rank >= find_chain_start(n, risk, delta)]:
        row = int(np.searchsorted(kept, rank))
        if errors[row] > limits.chain[reached[row]]:
            break
        accepted.append(row)
    return max(accepted, default=None)


@pytest.mark.parametrize("n", [60, 199, 1000])
def test_what_is_clear_without_all_limits_is_what_they_give(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(n)
    asked: list[tuple[float, float]] = []
    seen = compute_band_limits
    monkeypatch.setattr(
        band, "compute_band_limits", lambda n, r, d: asked.append((r, d)) or seen(n, r, d)
    )
    tried = 0
    for level in (0.0, 0.02, 0.2, 0.8):
        score = np.sort(rng.random(n).round(2))[::-1]
        wrong = rng.random(n) < level * (1.2 - score)
        kept = np.flatnonzero(np.diff(score, append=-1)) + 1
        errors = np.cumsum(wrong)[kept - 1]
        for risk in (0.02, 0.05, 0.2, 0.5):
            for delta in (0.01, 0.1):
                tried += 1
                row = band.find_band_row(kept, errors, risk=risk, delta=delta)
                assert row == find_row_by_all_limits(kept, errors, risk, delta)
    assert 0 < len(asked) < tried / 2


@pytest.mark.parametrize("scale", [10**3, 5 * 10**5, 10**8])
def test_more_answers_of_the_same_risk_never_lose_coverage(scale: int) -> None:
    wrong = np.arange(1, 100)
    kept = np.cumsum((1000 - 9 * wrong) * scale)
    assert find_band_row(kept, np.cumsum(wrong) * scale, risk=0.01, delta=0.05) == 15
