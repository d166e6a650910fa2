"""Sums that do not depend on order or parts: compared with whole numbers of Python."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from howsure._core.exact import fixed_columns, fixed_sums, from_fixed
from howsure.binning import equal_range
from howsure.metrics.calibration_error import find_bins


@pytest.mark.parametrize("rows", [1, 1024, 1025, 5000])
def test_columns_are_summed_exactly(rows: int) -> None:
    p = np.random.default_rng(rows).random((rows, 3))
    p[:, 2] = 1.0
    high, low = fixed_columns(p).tolist()
    for c in range(3):
        units = sum(round(Fraction(x) * 2**52) for x in p[:, c].tolist())
        assert (high[c] << 26) + low[c] == units


def test_halves_of_parts_make_the_same_float() -> None:
    p = np.random.default_rng(0).random((3000, 4))
    cell = np.tile(np.arange(4), 3000)
    parts = sum(fixed_columns(p[i : i + 7]) for i in range(0, 3000, 7))
    assert from_fixed(parts).tolist() == from_fixed(fixed_columns(p)).tolist()
    assert from_fixed(parts).tolist() == from_fixed(fixed_sums(cell, p.ravel(), 4)).tolist()


@pytest.mark.parametrize("m", [1, 2, 3, 7, 10, 15, 49, 100, 1000])
def test_bins_are_found_by_arithmetic(m: int) -> None:
    edges = equal_range(m).edges()
    near = np.concatenate((edges, np.nextafter(edges, 2), np.nextafter(edges, -1), [5e-324]))
    p = np.concatenate((near, np.random.default_rng(m).random(1000))).clip(0, 1)
    assert find_bins(p, edges).tolist() == np.searchsorted(edges[1:-1], p).tolist()
