"""The section of the positive class in streams with compact tallies is that of the predictions in
memory.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, evaluate_files
from howsure.report import summary

N = 60_000  # more distinct probabilities than a compact tally has buckets


@pytest.fixture(scope="module")
def preds() -> hs.Predictions:
    rng = np.random.default_rng(4)
    p = rng.beta(0.7, 2.0, N)
    return hs.Predictions.from_probs(
        p, (rng.random(N) < p**1.3).astype(int), class_names=["no", "yes"]
    )


def written(preds: hs.Predictions, folder: Path, parts: int) -> list[Path]:
    paths = [folder / f"part{i}.npz" for i in range(parts)]
    for i, path in enumerate(paths):
        hs.write(preds[i::parts], path)
    return paths


def numbers(value: object, where: str = "") -> Iterator[tuple[str, object]]:
    """Every leaf of a section with its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from numbers(inner, f"{where}[{i}]")
    else:
        yield where, value


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("positive", ["yes", "no"])
def test_compact_streams_have_the_section_of_memory(
    preds: hs.Predictions, tmp_path: Path, positive: str, weighted: bool
) -> None:
    if weighted:
        weight = np.random.default_rng(5).uniform(0.5, 2, N)
        preds = hs.Predictions.from_probs(
            preds.probs, preds.labels, class_names=preds.class_names, weight=weight
        )
    paths = written(preds, tmp_path, 3)
    streamed = evaluate_files(paths, compact=True, positive=positive).data
    whole = dict(numbers(hs.evaluate(preds, positive=positive).data["binary"]))
    found = dict(numbers(streamed["binary"]))
    assert "compacted" in streamed["approximate"]
    assert "binary" not in streamed["streamed"]["left_out"]
    assert list(found) == list(whole)
    for where, value in whole.items():
        if isinstance(value, float):
            assert found[where] == pytest.approx(value, rel=1e-12, abs=1e-12), where
        else:
            assert found[where] == value, where


@pytest.mark.parametrize("weights", ["equal", "unequal"])
def test_counts_of_weighted_streams_are_never_negative(
    preds: hs.Predictions, tmp_path: Path, weights: str
) -> None:
    """Missed cases were -7.3e-12 in a stream where there were none in memory."""
    weight = np.full(N, 0.3)
    if weights == "unequal":
        weight = np.random.default_rng(6).uniform(0.01, 3, N)
    p = 0.02 + 0.9 * preds.probs[:, 1]  # nothing is missed where all are called from 0.01 on
    weighted = hs.Predictions.from_probs(p, preds.labels, weight=weight)
    streamed = evaluate_files(written(weighted, tmp_path, 7)).data
    loaded = hs.evaluate(weighted).data
    assert streamed["verdict"] == loaded["verdict"]
    calling, whole = streamed["binary"]["calling"], loaded["binary"]["calling"]
    assert (calling["false_negative"][0], calling["true_negative"][0]) == (0, 0)
    for name in ("true_positive", "false_positive", "false_negative", "true_negative"):
        assert min(calling[name]) >= 0
        assert calling[name] == pytest.approx(whole[name], rel=1e-12)
        if weights == "equal":
            assert all(isinstance(count, int) for count in calling[name])
            assert calling[name] == whole[name]
    bars = streamed["views"]["histogram"]
    assert min(*bars["right"], *bars["top_5"], *bars["wrong"]) >= 0


def test_beyond_what_is_kept_it_is_close_and_says_so(
    preds: hs.Predictions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "MAX_EXACT_POSITIVE_ROWS", 30_000)
    streamed = [
        evaluate_files(written(preds, tmp_path, parts), compact=True).data for parts in (1, 4)
    ]
    exact = hs.evaluate(preds).data["binary"]
    for data in streamed:  # four parts fit one by one, their sum does not
        assert "more than 30,000 distinct" in data["streamed"]["left_out"]["binary.exact"]
        for name, entry in exact["numbers"].items():
            assert data["binary"]["numbers"][name]["value"] == pytest.approx(
                entry["value"], rel=1e-4
            )
        for ours, whole in zip(data["binary"]["thresholds"], exact["thresholds"], strict=True):
            assert ours["net_benefit"] == pytest.approx(whole["net_benefit"], abs=1e-4)
        assert data["binary"]["calibration_slope"]["value"] == pytest.approx(
            exact["calibration_slope"]["value"], rel=1e-3
        )


def test_an_unknown_positive_class_is_refused_in_streams(
    preds: hs.Predictions, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no class is called 'ill'; they are no, yes"):
        evaluate_files(written(preds[:100], tmp_path, 1), compact=True, positive="ill")
