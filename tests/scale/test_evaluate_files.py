"""A stream gives what the whole gives: the same report, number by number, in any order of its
parts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, workers
from howsure.formats import ReadOptions
from howsure.scale.many_files import gather
from howsure.scale.parts import PartResult

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Prepared = Callable[..., Any]
Equal = Callable[[PartResult, PartResult], bool]
TELLING = {"streamed", "provenance"}  # what a report says of how it was made


def differing(a: dict[str, Any], b: dict[str, Any]) -> set[str]:
    return {key for key in (a.keys() | b.keys()) - TELLING if a.get(key) != b.get(key)}


def numbers(x: Any) -> Iterator[float]:
    """Every number of a report."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, list):
        for item in x:
            yield from numbers(item)
    elif isinstance(x, int | float):
        yield x


def test_the_report_of_a_stream_is_that_of_the_whole(tables: list[Path]) -> None:
    assert not differing(hs.evaluate(hs.read(tables)).data, hs.evaluate_files(tables).data)


@pytest.mark.parametrize("how", ["rounded", "float64", "npz", "arrow"])
def test_metrics_are_equal_for_other_scores_and_files(tmp_path: Path, how: str) -> None:
    rng = np.random.default_rng(1)
    score = rng.beta(4, 1, 1_200)
    score = (
        score.round(2)
        if how == "rounded"
        else score.astype(np.float64 if how == "float64" else np.float32)
    )
    suffix = {"npz": ".npz", "arrow": ".feather"}.get(how, ".parquet")
    correct = rng.random(1_200) < score
    paths = [tmp_path / f"{i}{suffix}" for i in range(2)]
    for path, rows in zip(paths, (slice(0, 500), slice(500, None)), strict=True):
        hs.write(hs.Predictions.from_confidence(score[rows], correct[rows]), path)
    one, two = hs.evaluate(hs.read(paths)), hs.evaluate_files(paths)
    values, others = (list(numbers(report.data["metrics"])) for report in (one, two))
    assert values == pytest.approx(others, rel=1e-12, abs=1e-12)  # sums of floats
    assert one.data["views"]["label_errors"] == two.data["views"]["label_errors"]


@pytest.fixture
def logits(tmp_path: Path) -> list[Path]:
    """Logits of 30 classes in two files of two record batches' worth of rows."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 30, 1_500)
    values = (3 * np.eye(30)[labels] + 2 * rng.standard_normal((1_500, 30))).astype(np.float32)
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for path, rows in zip(paths, np.array_split(np.arange(1_500), 2), strict=True):
        hs.write(
            hs.Predictions.from_logits(values[rows], labels[rows], ids=[f"i{j}" for j in rows]),
            path,
        )
        pq.write_table(pq.read_table(path), path, row_group_size=300)
    return paths


def test_logits_give_all_values(logits: list[Path]) -> None:
    one, two = hs.evaluate(hs.read(logits)).data, hs.evaluate_files(logits).data
    values: Any = lambda report: {name: entry["value"] for name, entry in report["metrics"].items()}
    summed = {"nll", "brier", "classwise_ece"}  # float sums; all others are made of counts
    assert {k: v for k, v in values(one).items() if k not in summed} == {
        k: v for k, v in values(two).items() if k not in summed
    }
    for name in summed:
        assert values(two)[name] == pytest.approx(values(one)[name], rel=1e-12)
    for name in ("nll", "brier", "top_5_accuracy"):  # normal limits, near those of the bootstrap
        a, b = one["metrics"][name], two["metrics"][name]
        assert (b["low"], b["high"]) == pytest.approx(
            (a["low"], a["high"]), abs=0.15 * (a["high"] - a["low"])
        )
    assert one["scores"] == two["scores"]
    assert one["curves"] == two["curves"]
    assert one["findings"] == two["findings"]
    for view in ("histogram", "label_errors", "classes", "bands"):
        assert one["views"][view] == two["views"][view], view


def backwards(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    return map(f, reversed(list(items)))


def shuffled(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    order = list(items)
    random.Random(5).shuffle(order)
    return map(f, order)


def twice(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    return (result for item in items for result in (f(item), f(item)))


@pytest.mark.parametrize("mapped", [backwards, shuffled, twice, workers.threads(3)])
def test_neither_order_nor_repetition_changes_a_result(
    logits: list[Path], prepared: Prepared, equal: Equal, mapped: Any
) -> None:
    job, task = prepared(logits)
    assert equal(gather(job, task, mapped), gather(job, task, map))


def test_a_part_in_two_sums_is_refused(tables: list[Path], prepared: Prepared) -> None:
    job, task = prepared(tables)
    a, b, c, *_ = map(task, job.parts)
    with pytest.raises(InputError, match="in two overlapping sums"):
        _ = (a + b) + (b + c)


def test_a_map_that_loses_parts_is_refused(tables: list[Path], prepared: Prepared) -> None:
    with pytest.raises(InputError, match="11 of 12 parts came back"):
        gather(*prepared(tables), lambda f, items: map(f, list(items)[1:]))


def test_an_interrupt_leaves_a_report_marked_partial(tables: list[Path]) -> None:
    def interrupted(f: Any, items: Any) -> Iterator[Any]:
        for i, item in enumerate(items):
            if i == 5:
                raise KeyboardInterrupt
            yield f(item)

    report = hs.evaluate_files(tables, map=interrupted)
    assert report.data["streamed"]["partial"]
    assert (report.data["streamed"]["parts"], report.data["streamed"]["of"], report.data["n"]) == (
        5,
        12,
        1_250,
    )
    assert report.data["findings"][0]["name"] == "partial"
    assert report.to_text().startswith("PARTIAL, 5 of 12 parts: 1,250 predictions")
    first = hs.read(tables)[:1_250]
    assert report.data["metrics"]["aurc"] == hs.evaluate(first).data["metrics"]["aurc"]


def test_an_interrupt_before_anything_is_read_is_an_interrupt(tables: list[Path]) -> None:
    def interrupted(f: Any, items: Any) -> Iterator[Any]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        hs.evaluate_files(tables, map=interrupted)


def test_progress_reaches_the_end(tables: list[Path], prepared: Prepared) -> None:
    seen: list[Any] = []
    gather(*prepared(tables), workers.threads(2), seen.append)
    assert [p.parts for p in seen] == list(range(1, 13))
    last = seen[-1]
    assert (last.rows, last.bytes) == (3_000, pytest.approx(last.of_bytes, abs=12))


def test_beyond_the_limit_the_compact_tally_is_offered(
    tables: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howsure.scale.parts.MAX_DISTINCT_SCORES", 1_000)
    with pytest.raises(
        InputError, match=r"more than 1,000 distinct scores.*compact=True, --compact"
    ):
        hs.evaluate_files(tables)


def test_compact_tallies_carry_bounds_that_hold(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    score = rng.random(60_000)
    correct = rng.random(60_000) < score
    paths = [tmp_path / f"{i}.parquet" for i in range(2)]
    for path, rows in zip(paths, (slice(0, 30_000), slice(30_000, None)), strict=True):
        pq.write_table(pa.table({"confidence": score[rows], "correct": correct[rows]}), path)
    report = hs.evaluate_files(paths, compact=True).data
    low, high = report["metrics"]["aurc"]["bounds"]
    exact = hs.aurc(hs.tally(score, correct=correct))
    assert low < exact < high
    assert high - low < 1e-3 * exact
    assert "compacted" in report["approximate"]


def test_a_split_is_found_in_whatever_pieces_it_is(tmp_path: Path) -> None:
    score, correct = np.linspace(0.1, 1, 1_000), np.arange(1_000) % 3 > 0
    split = ["val"] * 500 + ["test"] * 500
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"confidence": score, "correct": correct, "split": split}),
        path,
        row_group_size=250,
    )
    assert hs.evaluate_files(path, split="test").data["n"] == 500
    with pytest.raises(InputError, match="no rows of the split 'train'"):
        hs.evaluate_files(path, split="train")
    with pytest.raises(InputError, match="has a column split; say which"):
        hs.evaluate_files(path)


def test_too_many_grouped_samples_say_why_they_have_no_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howsure.report.samples.MAX_HELD_NUMBERS", 10)
    path = tmp_path / "a.npz"
    hs.write(
        hs.Predictions.from_confidence([0.9, 0.8, 0.7] * 9, [1, 1, 0] * 9, group=list("abc") * 9),
        path,
    )
    report = hs.evaluate_files(path).data
    assert report["metrics"]["aurc"]["value"] > 0
    assert "single samples" in report["metrics"]["aurc"]["why"]
    assert "single samples" in report["streamed"]["left_out"]["limits"]


def test_the_report_is_strict_json(tables: list[Path]) -> None:
    report = hs.evaluate_files(tables)
    assert hs.Report.from_json(report.to_json()).data == json.loads(report.to_json())


def test_an_interrupt_of_the_second_reading_leaves_out_what_it_would_have_told(
    logits: list[Path],
) -> None:
    readings: list[int] = []

    def interrupted(f: Any, items: Any) -> Iterator[Any]:
        readings.append(len(readings))
        for i, item in enumerate(items):
            if len(readings) == 2 and i == 1:
                raise KeyboardInterrupt
            yield f(item)

    report = hs.evaluate_files(logits, map=interrupted).data
    assert not report["streamed"]["partial"]
    assert set(report["streamed"]["left_out"]) == {
        "views.operating.classes",
        "views.histogram.top_5",
    }
    assert report["views"]["operating"]["classes"] == []
    metrics = hs.evaluate_files(logits).data["metrics"]
    assert report["metrics"].keys() == metrics.keys()
    for name, entry in metrics.items():
        value = report["metrics"][name]["value"]
        assert value == entry["value"] or value == pytest.approx(entry["value"], rel=1e-12)


def test_a_confidence_is_read_once(tables: list[Path]) -> None:
    readings: list[int] = []

    def counting(f: Any, items: Any) -> Iterator[Any]:
        readings.append(len(readings))
        return map(f, items)

    hs.evaluate_files(tables, map=counting)
    assert len(readings) == 1


def test_options_in_one_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sure,correct,split\n" + "0.9,1,test\n0.8,0,val\n0.7,1,test\n" * 20)
    keywords = {"names": {"confidence": "sure"}, "split": "test"}
    options = ReadOptions(**keywords)
    report = hs.evaluate_files(path, options=options)
    assert report.data["metrics"] == hs.evaluate_files(path, **keywords).data["metrics"]
    with pytest.raises(hs.InputError, match="together with keywords"):
        hs.evaluate_files(path, options=options, mc=True)
    with pytest.raises(hs.InputError, match="options has percent, which needs all predictions"):
        hs.evaluate_files(path, options=replace(options, percent=True))
