"""Claims against outcomes: bins by hand, and the band of honest ones."""

from math import comb

import numpy as np
import pytest
from hypothesis import given

import howsure as hs
from generators import UNIT, Rows, rows


@given(rows(UNIT))
def test_reliability_shows_the_ece(r: Rows) -> None:
    c = hs.reliability(r.tally())
    assert c.weight.sum() == len(r)
    assert np.dot(c.weight, abs(c.x - c.y)) / len(r) == pytest.approx(hs.ece(r.tally()), abs=1e-12)
    assert (np.diff(c.x) > 0).all()


def test_bin_table_by_hand() -> None:
    table = hs.bin_table(
        hs.tally([0.05, 0.95, 0.97, 0.95], correct=[0, 1, 1, 0]), hs.equal_range(10)
    )
    assert table.count.tolist() == [1, 3]
    np.testing.assert_allclose(table.confidence, [0.05, 2.87 / 3])
    np.testing.assert_allclose(table.accuracy, [0, 2 / 3])
    np.testing.assert_allclose(table.gap, [0.05, 2.87 / 3 - 2 / 3])
    assert table.low.tolist() == [0.05, 0.95]
    assert table.high.tolist() == [0.05, 0.97]


class TestConsistencyBars:
    """What accuracy would be were every claim true."""

    @pytest.mark.parametrize(("n", "p"), [(100, 0.3), (200, 0.9)])
    def test_match_binomial_quantiles(self, n: int, p: float) -> None:
        chance = np.cumsum([comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
        c = hs.reliability(hs.tally([p] * n, correct=[1] * n), consistency=True)
        assert c.low[0] == pytest.approx(np.argmax(chance >= 0.05) / n, abs=0.011)
        assert c.high[0] == pytest.approx(np.argmax(chance >= 0.95) / n, abs=0.011)

    def test_hold_90_percent_of_honest_bins(self) -> None:
        rng = np.random.default_rng(0)
        inside = []
        for seed in range(30):
            score = rng.random(600)
            c = hs.reliability(
                hs.tally(score, correct=rng.random(600) < score), consistency=True, seed=seed
            )
            inside += ((c.low <= c.y) & (c.y <= c.high)).tolist()
        assert 0.86 < np.mean(inside) < 0.96

    def test_depend_on_the_seed_alone(self) -> None:
        t = hs.tally(np.linspace(0, 1, 3000), correct=np.arange(3000) % 2)
        a, b, other = (hs.reliability(t, consistency=True, seed=s) for s in (1, 1, 2))
        assert a.low.tolist() == b.low.tolist()
        assert a.low.tolist() != other.low.tolist()
