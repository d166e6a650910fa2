"""Scores straight into buckets: the same rows as by way of the exact tally."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.tallies.buckets import (
    ChunkColumns,
    build_compact,
    find_cells,
    list_cell_buckets,
    make_grid,
)
from howsure.tallies.row_tally import RowTally, as_rows


def awkward(edges: Any, kind: type) -> Any:
    """Edges and their neighbours up to two floats away, scores crowded at both ends, 0, -0 and 1."""
    rng = np.random.default_rng(0)
    at = edges.astype(kind)
    near = [np.nextafter(at, kind(end)) for end in (0, 1)]
    further = [np.nextafter(x, kind(end)) for x, end in zip(near, (0, 1), strict=True)]
    crowded = [
        2.0 ** rng.uniform(-160, 0, 20_000),
        1 - 2.0 ** rng.uniform(-60, 0, 20_000),
        rng.random(20_000),
    ]
    rest = np.concatenate([*crowded, [0.0, -0.0, 1.0, 5e-324]]).astype(kind)
    return np.clip(np.concatenate([at, *near, *further, rest]), 0, 1).astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("buckets", [400, 1000, 3001, 25_000, 60_000])
def test_arithmetic_finds_the_bucket(buckets: int, kind: type) -> None:
    edges = make_grid(buckets)
    score = awkward(edges, kind)
    found = list_cell_buckets(buckets, score.itemsize)[
        find_cells(score, buckets, ChunkColumns.of(len(score), score.dtype))
    ]
    assert np.array_equal(found, np.searchsorted(edges, score.astype(np.float64)))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("buckets", [400, 25_000])
def test_gives_the_rows_of_the_sorted_way(buckets: int, kind: type) -> None:
    score = awkward(make_grid(25_000), kind)
    score = np.concatenate(
        (score, np.random.default_rng(1).random(200_000).astype(kind))
    )  # several chunks
    correct = np.random.default_rng(2).random(len(score)) < 0.8
    direct, sorted_ = (
        hs.tally(score, correct=correct, compact=buckets),
        hs.tally(score, correct=correct).compact(buckets),
    )
    assert isinstance(build_compact(score, correct, buckets), RowTally)
    assert direct.approximate == sorted_.approximate
    for column in ("count", "loss"):
        assert np.array_equal(getattr(direct, column), getattr(sorted_, column))
    for column in ("score", "claim", "square", "edges"):
        a, b = getattr(as_rows(direct), column), getattr(as_rows(sorted_), column)
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize(
    "score",
    [
        np.random.default_rng(0).random(2000).round(2),  # few distinct scores: nothing is lost
        np.random.default_rng(0).normal(size=2000),  # any sign
        np.random.default_rng(0).random(2000) * 2,  # beyond 1
        np.random.default_rng(0).random(300),  # fewer samples than buckets
    ],
)
def test_sorts_where_it_must(score: Any) -> None:
    correct = np.arange(len(score)) % 3 > 0
    assert build_compact(score, correct, 400) is None
    direct, sorted_ = (
        hs.tally(score, correct=correct, compact=400),
        hs.tally(score, correct=correct).compact(400),
    )
    assert repr(direct) == repr(sorted_)
    assert hs.aurc(direct) == hs.aurc(sorted_)


def test_parts_add_up() -> None:
    rng = np.random.default_rng(0)
    score, correct = rng.random(50_000), rng.random(50_000) < 0.7
    whole = hs.tally(score, correct=correct, compact=1000)
    both = sum(hs.tally(score[i::2], correct=correct[i::2], compact=1000) for i in range(2))
    assert np.array_equal(whole.count, both.count)
    assert np.array_equal(whole.loss, both.loss)
    assert both.approximate == whole.approximate


def test_weights_and_losses_are_compacted_too() -> None:
    rng = np.random.default_rng(0)
    score, loss, weight = rng.random((3, 5000))
    for options in (
        {"loss": loss},
        {"loss": loss, "weight": weight},
        {"correct": loss < 0.5, "weight": weight},
    ):
        direct, sorted_ = (
            hs.tally(score, compact=400, **options),
            hs.tally(score, **options).compact(400),
        )
        assert hs.aurc(direct) == hs.aurc(sorted_)
        assert direct.approximate


def test_needs_less_than_ten_megabytes() -> None:
    rng = np.random.default_rng(0)
    score, correct = rng.random(2_000_000).astype(np.float32), rng.random(2_000_000) < 0.9
    hs.tally(
        score[:100_001], correct=correct[:100_001], compact=25_000
    )  # what is kept for all tallies
    tracemalloc.start()
    hs.tally(score, correct=correct, compact=25_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**20


@pytest.mark.parametrize("buckets", [0, 399, 1.5, "many"])
def test_too_few_buckets_are_refused(buckets: Any) -> None:
    with pytest.raises(hs.InputError, match=r"buckets is .* a whole number of at least 400"):
        hs.tally([0.5], correct=[1], compact=buckets)
