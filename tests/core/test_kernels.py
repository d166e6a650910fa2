"""Compiled kernels give what NumPy gives, within 1e-12; without the variable NumPy does all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import howsure as hs
from conftest import shared_or_skip
from generators import Rows, predictions, rows
from howsure.metrics.harmonic import mean_rank_share, risk_sum
from howsure.predictions.columns import Columns, Values, columns
from howsure.tallies.packed import PackedTally
from real_sets import SETS

PANEL = (hs.auroc, hs.aupr, hs.aurc, hs.e_aurc, hs.augrc, hs.ece, hs.mce, hs.aece, hs.amce)
SAME_FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs a call with kernels and without."""
    pytest.importorskip("numba")

    def both(call: Any) -> tuple[Any, Any]:
        results = []
        for value in ("1", "0"):
            monkeypatch.setenv("HOWSURE_FAST", value)
            results.append(call())
        return results[0], results[1]

    return both


def same(fast: Any, plain: Any) -> None:
    np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)


def panel(score: Any, correct: Any) -> list[float]:
    t = hs.tally(score, correct=correct)
    return [metric(t) for metric in PANEL]


@SAME_FIXTURE
@given(r=rows())
def test_panel(switch: Any, r: Rows) -> None:
    same(*switch(lambda: panel(r.score, r.correct)))


@SAME_FIXTURE
@given(r=rows())
def test_weighted_panel(switch: Any, r: Rows) -> None:
    if r.weight.any():
        t = hs.tally(r.score, correct=r.correct, weight=r.weight)
        same(*switch(lambda: [metric(hs.tally(r.score, correct=r.correct, weight=r.weight)) for metric in PANEL[:5]]))
        assert t.weighted


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_panel_of_many_with_long_ties(switch: Any, kind: type) -> None:
    rng = np.random.default_rng(0)
    score = np.minimum(1, rng.random(300_000) * 1.2).astype(kind)  # one in six is exactly 1
    correct = rng.random(300_000) < 0.9
    same(*switch(lambda: panel(score, correct)))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_blocks(switch: Any, kind: type) -> None:
    score = np.random.default_rng(0).integers(0, 50, 5000).astype(kind) / 49
    correct = np.random.default_rng(1).random(5000) < 0.5

    def blocks() -> Any:
        b = hs.tally(score, correct=correct).blocks()
        return np.stack((b.before, b.after, b.loss))

    fast, plain = switch(blocks)
    assert np.array_equal(fast, plain)
    assert isinstance(hs.tally(score, correct=correct), PackedTally)


@pytest.mark.parametrize("z", [None, 0.3, 1.645])
def test_adaptive_cuts(switch: Any, z: float | None) -> None:
    rng = np.random.default_rng(0)
    for score in (rng.random(20_000), rng.random(20_000).round(2), np.full(99, 0.5), 1 - rng.beta(0.3, 4, 20_000)):
        t = hs.tally(score.astype(np.float32), correct=np.ones(len(score)))
        fast, plain = switch(lambda t=t: hs.adaptive(z=z).cuts(t))
        assert np.array_equal(fast, plain)


@pytest.mark.parametrize("before", [0, 1, 5, 31, 40, 499, 10_000, 10**9])
@pytest.mark.parametrize("size", [1, 2, 7, 1000, 10**6])
def test_sums_of_ranks(switch: Any, before: int, size: int) -> None:
    from howsure.tallies.tally import Blocks

    column = np.array([before])
    make = lambda: risk_sum(Blocks(column, column + size, np.array([min(size, 3)])), np.array(before + size + 17))
    fast, plain = switch(make)
    assert float(fast) == pytest.approx(float(plain), rel=1e-12)
    pytest.importorskip("numba")
    from howsure._core.fast.ranks import rank_share

    share = mean_rank_share(column.astype(float), column.astype(float) + size)[0]
    assert rank_share(float(before), float(before + size)) == pytest.approx(share, rel=1e-12)


def assert_same_columns(fast: Columns, plain: Columns) -> None:
    assert np.array_equal(fast.prediction, plain.prediction)
    for name in Columns.__dataclass_fields__:
        np.testing.assert_allclose(getattr(fast, name), getattr(plain, name), rtol=1e-12, atol=1e-12, err_msg=name)


@SAME_FIXTURE
@given(preds=predictions())
def test_columns(switch: Any, preds: hs.Predictions) -> None:
    values = Values(preds.values, preds.kind == "logits")
    assert_same_columns(*switch(lambda: columns(values, preds.labels)))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(7, 1), (50, 2), (50, 3), (40, 100), (20, 1000), (5, 4099)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_columns_of_any_width_and_scale(switch: Any, n: int, k: int, scale: float, kind: type) -> None:
    rng = np.random.default_rng(k)
    z = (scale * rng.standard_normal((n, k))).astype(kind)
    labels = rng.integers(0, k, n)
    for known in (labels, None):
        assert_same_columns(*switch(lambda known=known: columns(Values(z, True), known)))


def test_a_sure_answer_keeps_its_digits(switch: Any) -> None:
    z = np.array([[50.0, 0.0, -3.0], [800.0, 0.0, 1.0]])
    fast, plain = switch(lambda: columns(Values(z, True), np.array([0, 1])))
    assert fast.log_top[0] == pytest.approx(plain.log_top[0], rel=1e-12)
    assert fast.log_top[0] != 0
    assert fast.nll == pytest.approx(plain.nll, rel=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_real_sets(switch: Any, name: str) -> None:
    preds = hs.read(shared_or_skip(f"data/{name}.npz"), split="test", mc=name == "mc_fashion_cnn")
    some = preds[:20_000] if preds.n > 20_000 else preds
    same(*switch(lambda: panel(some.confidence, some.correct)))
    if some.kind == "logits" and some.samples == 1:
        assert_same_columns(*switch(lambda: columns(Values(some.values, True), some.labels)))


def test_compact_tally(switch: Any) -> None:
    rng = np.random.default_rng(0)
    score = (1 / (1 + np.exp(-np.abs(rng.normal(5, 5, 400_000))))).astype(np.float32)
    correct = rng.random(400_000) < score
    fast, plain = switch(lambda: hs.tally(score, correct=correct, compact=25_000))
    for column in ("score", "count", "loss", "claim"):
        assert np.array_equal(getattr(fast, column), getattr(plain, column)), column


LOADED = """
import sys, numpy as np, howsure as hs
score = np.random.default_rng(0).random(100_000).astype(np.float32)
t = hs.tally(score, correct=score > 0.3)
hs.aurc(t), hs.aupr(t), hs.ece(t), hs.tally(score, correct=score > 0.3, compact=25_000)
hs.scores.entropy(hs.Predictions.from_logits(np.ones((3, 4)), [0, 1, 2]))
print("numba" in sys.modules)
"""
WITHOUT = "import sys; sys.modules['numba'] = None\n"


def run(program: str, fast: str | None) -> subprocess.CompletedProcess[str]:
    import os

    environment = {k: v for k, v in os.environ.items() if k != "HOWSURE_FAST"} | (
        {"HOWSURE_FAST": fast} if fast else {}
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.parametrize("fast", [None, "0", ""])
def test_numba_is_not_loaded_unless_asked_for(fast: str | None) -> None:
    assert run(LOADED, fast).stdout == "False\n"


def test_numpy_does_all_where_numba_is_missing() -> None:
    done = run(WITHOUT + LOADED.replace('"numba" in sys.modules', "True"), None)
    assert done.stdout == "True\n", done.stderr


def test_asking_for_what_is_not_installed_is_said() -> None:
    done = run(WITHOUT + LOADED, "1")
    assert "HOWSURE_FAST=1 needs numba: pip install 'howsure[fast]'" in done.stderr
