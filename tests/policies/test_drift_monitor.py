"""Alarms: exact ranks, rare on streams that do not change, quick on those that do."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, kstest

from howsure import InputError, Predictions, load, save
from howsure.policies import DriftMonitor, Policy
from howsure.policies.drift_monitor import conformal_p

POLICY = Policy("max_prob", 0.8)


def made(score: np.ndarray):
    return POLICY.decide(Predictions.from_confidence(score))


def test_ranks_by_hand() -> None:
    # 2 below, 1 equal: ranks from 2/4 to 4/4; then the first sample counts too
    p = conformal_p(np.array([2, 1]), np.array([1, 0]), np.array([0.5, 0.5]))
    assert p.tolist() == [(2 + 0.5 * 2) / 4, (0 + 0.5 * 3) / 5]


def test_ranks_are_uniform_without_change() -> None:
    rng = np.random.default_rng(0)
    counts = np.bincount(rng.integers(0, 5, 50), minlength=5)
    p = conformal_p(counts, rng.integers(0, 5, 4000), rng.random(4000))
    assert kstest(p, "uniform").pvalue > 0.001


@pytest.mark.parametrize("decimals", [None, 1])
def test_false_alarms_are_as_rare_as_stated(decimals: int | None) -> None:
    """The short version of `benchmarks.drift alarms`; rate 0.2, so that a broken one would show."""
    rng, false = np.random.default_rng(1), 0
    for seed in range(120):
        draw = lambda n: (
            rng.beta(5, 1.2, n) if decimals is None else rng.beta(5, 1.2, n).round(decimals)
        )
        watch = DriftMonitor.start(made(draw(200)), false_alarms=0.2, seed=seed)
        false += bool(watch.see(made(draw(1500))).alarms)
    assert binom.sf(false - 1, 120, 0.2) > 0.01


def test_a_change_is_found_also_late() -> None:
    rng = np.random.default_rng(2)
    watch = DriftMonitor.start(made(rng.beta(5, 1.2, 2000)), false_alarms=0.001)
    for _ in range(20):
        watch = watch.see(made(rng.beta(5, 1.2, 1000)))
    assert watch.alarms == {}
    watch = watch.see(made(rng.beta(2, 2, 1000)))
    assert set(watch.alarms) == {"score", "coverage"}
    assert all(20_000 < at < 20_400 for at in watch.alarms.values())


def test_a_change_of_spread_alone_is_found() -> None:
    rng = np.random.default_rng(3)
    watch = DriftMonitor.start(made(rng.beta(20, 5, 2000)), false_alarms=0.01)
    assert "score" in watch.see(made(rng.beta(4, 1, 3000))).alarms


@pytest.mark.parametrize("size", [1, 7, 50, 1100])
def test_batches_change_no_bit(size: int) -> None:
    rng = np.random.default_rng(4)
    score = rng.random(1300)
    watch = DriftMonitor.start(made(rng.random(300)))
    whole, parts = watch.see(made(score)), watch
    for i in range(0, 1300, size):
        parts = parts.see(made(score[i : i + size]))
    assert parts.seen == whole.seen == 1300
    for one, other in ((parts.score, whole.score), (parts.coverage, whole.coverage)):
        assert one.counts.tolist() == other.counts.tolist()
        assert one.capital.tolist() == other.capital.tolist()


def test_saved_and_loaded(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    watch = DriftMonitor.start(made(rng.random(300))).see(made(rng.random(130)))
    save(watch, tmp_path / "w.json")
    again, more = load(tmp_path / "w.json"), made(rng.random(700) ** 3)
    assert again.see(more).alarms == watch.see(more).alarms != {}


def test_too_little_to_watch_against() -> None:
    with pytest.raises(InputError, match="at least 20"):
        DriftMonitor.start(made(np.array([0.5, 0.6])))
    with pytest.raises(InputError, match="false_alarms is 0"):
        DriftMonitor.start(made(np.linspace(0, 1, 50)), false_alarms=0)
