"""One builder: loaded, streamed and over workers, from every kind of file, the same report in every
form.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import workers

TELLING = {"provenance", "streamed"}  # what a report says of how it was made
FORMS = ("to_text", "to_markdown", "to_json", "to_html")


def logits(n: int = 400, k: int = 24, **columns: Any) -> hs.Predictions:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, k, n)
    values = (3 * np.eye(k)[labels] + 2 * rng.standard_normal((n, k))).astype(np.float32)
    return hs.Predictions.from_logits(values, labels, **columns)


def two_classes() -> hs.Predictions:
    rng = np.random.default_rng(5)
    p = rng.random(400)
    return hs.Predictions.from_probs(
        p, (rng.random(400) < p).astype(int), ids=[f"case {i}" for i in range(400)]
    )


def words() -> hs.Predictions:
    rng = np.random.default_rng(6)
    labels, said = (rng.choice(["cat", "dog", "emu"], 400) for _ in range(2))
    return hs.Predictions.from_confidence(rng.random(400).round(2), prediction=said, labels=labels)


def groups() -> hs.Predictions:
    return logits(k=4, group=[f"patient {i % 90}" for i in range(400)])


def weights() -> hs.Predictions:
    return logits(k=3, weight=np.random.default_rng(7).random(400))


def equal_weights() -> hs.Predictions:
    return logits(k=3, weight=np.full(400, 0.3))


SETS = {
    "logits": logits,
    "two classes": two_classes,
    "words": words,
    "groups": groups,
    "weights": weights,
    "equal weights": equal_weights,
}


@pytest.fixture(scope="module")
def two_workers() -> Generator[Any]:
    pytest.importorskip("distributed")
    with workers.processes(2) as mapped:
        yield mapped


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[hs.Predictions, str], list[Path]]:
    """The predictions in three files of unequal length."""

    def save(preds: hs.Predictions, suffix: str) -> list[Path]:
        if suffix == ".parquet":
            pytest.importorskip("pyarrow")
        paths = [tmp_path / f"{i}{suffix}" for i in range(3)]
        for path, rows in zip(
            paths, (slice(0, 100), slice(100, 250), slice(250, None)), strict=True
        ):
            hs.write(preds[rows], path)
        return paths

    return save


def backwards(f: Callable[[Any], Any], items: Any) -> Iterator[Any]:
    return map(f, reversed(list(items)))


def same(a: Any, b: Any, where: str = "") -> Iterator[str]:
    """The keys at which two reports differ by more than one in the twelfth digit, to which they are
    rounded.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a.keys() | b.keys():
            if key not in TELLING or where:
                yield from same(a.get(key, "absent"), b.get(key, "absent"), f"{where}/{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from same(x, y, f"{where}/{i}")
    elif (
        isinstance(a, int | float) and isinstance(b, int | float) and float in (type(a), type(b))
    ):  # 400 or 400.0…06
        if abs(a - b) > 1e-11 * max(1.0, abs(a)):
            yield f"{where}: {a!r} {b!r}"
    elif a != b:
        yield f"{where}: {a!r} {b!r}"


def exactly(report: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report.items() if key not in TELLING}


MATRIX = [
    *(("logits", suffix) for suffix in (".csv", ".jsonl", ".npz", ".parquet")),
    *((name, ".csv") for name in SETS),
]


@pytest.mark.parametrize(("name", "suffix"), dict.fromkeys(MATRIX))
def test_loaded_and_streamed_reports_are_equal_in_every_form(
    saved: Callable[[hs.Predictions, str], list[Path]], two_workers: Any, name: str, suffix: str
) -> None:
    paths = saved(SETS[name](), suffix)
    loaded = hs.evaluate(hs.read(paths))
    for mapped in (backwards, two_workers):
        streamed = hs.evaluate_files(paths, map=mapped)
        assert list(same(loaded.data, streamed.data)) == []
        assert streamed.data["streamed"]["left_out"] == {}
        if name == "words":  # made of integers only
            assert exactly(loaded.data) == exactly(streamed.data)
        alike = hs.Report(
            {
                key: {**streamed.data, "provenance": loaded.data["provenance"]}[key]
                for key in loaded.data
            }
        )
        for form in FORMS:
            if form in ("to_text", "to_markdown"):  # the others show the last digits of float sums
                assert getattr(alike, form)() == getattr(loaded, form)()
            assert getattr(streamed, form)()  # with its own provenance


def test_a_page_of_a_stream_names_its_files(
    saved: Callable[[hs.Predictions, str], list[Path]],
) -> None:
    """It ended with KeyError: 'sha256'."""
    paths = saved(words(), ".csv")
    page = hs.evaluate_files(paths).to_html()
    assert all(path.name in page for path in paths)
    assert f"{paths[0].stat().st_size:,} bytes" in page


def test_a_report_of_a_sum_is_that_of_the_whole() -> None:
    from howsure.report.summary import Place, Summary

    preds = logits()
    parts = [
        Summary.of_part(preds[i : i + 100], Place(0, i), None, compact=False)
        for i in (300, 0, 200, 100)
    ]
    one, two = Summary.of(preds), sum(parts[1:], parts[0])
    for name, moments in one.losses.items():
        assert two.losses[name] == pytest.approx(moments, rel=1e-12)
    assert one.suspects == two.suspects
    assert np.array_equal(one.sample, two.sample)
    assert all((one.tallies[name].score == two.tallies[name].score).all() for name in one.tallies)
