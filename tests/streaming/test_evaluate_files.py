"""A stream gives what the whole gives: the same report, number by number."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.streaming import partitions

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

STREAMED = {"streamed", "provenance"}  # keys that tell the two apart


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "ROWS", 700)


def confidences(n: int, decimals: int | None = None, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    score = rng.beta(4, 1, n)
    score = (score if decimals is None else score.round(decimals)).astype(dtype)
    return score, rng.random(n) < score**1.4


def write_tables(folder: Path, columns: dict[str, Any], files: int = 3, group: int = 250) -> list[Path]:
    n = len(next(iter(columns.values())))
    paths = []
    for i, rows in enumerate(np.array_split(np.arange(n), files)):
        table = pa.table(
            {name: [c[j] for j in rows] if isinstance(c, list) else c[rows] for name, c in columns.items()}
        )
        paths.append(folder / f"part-{i}.parquet")
        pq.write_table(table, paths[-1], row_group_size=group)
    return paths


def same(a: dict[str, Any], b: dict[str, Any]) -> None:
    for key in a.keys() - STREAMED:
        assert a[key] == b[key], key


@pytest.mark.parametrize(("decimals", "dtype"), [(None, np.float32), (2, np.float32), (None, np.float64)])
def test_the_report_of_a_stream_is_that_of_the_whole(tmp_path: Path, decimals: int | None, dtype: Any) -> None:
    score, correct = confidences(5_000, decimals, dtype)
    paths = write_tables(tmp_path, {"confidence": score, "correct": correct})
    same(hs.evaluate(hs.read(paths)).data, hs.evaluate_files(paths).data)


def backwards(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    return map(f, reversed(list(items)))


def shuffled(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    order = list(items)
    random.Random(5).shuffle(order)
    return map(f, order)


def twice(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    return (result for item in items for result in (f(item), f(item)))


def in_sums(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    first, *rest = list(items)
    yield first  # a part that is done and whose result is still under way
    yield f(first) + f(rest[0])
    yield from map(f, rest[1:])


@pytest.mark.parametrize("mapped", [map, backwards, shuffled, twice, in_sums, hs.workers.threads(3)])
def test_neither_order_nor_repetition_changes_a_bit(tmp_path: Path, mapped: Any) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 30, 3_000)
    logits = (3 * np.eye(30)[labels] + 2 * rng.standard_normal((3_000, 30))).astype(np.float32)
    paths = [tmp_path / f"{i}.parquet" for i in range(4)]
    for path, rows in zip(paths, np.array_split(np.arange(3_000), 4), strict=True):
        hs.write(hs.Predictions.from_logits(logits[rows], labels[rows]), path)
    one = hs.evaluate_files(paths, map=map).data
    assert hs.evaluate_files(paths, map=mapped).data == one
