"""Answers of language models: log-probabilities, stated confidence, sampled answers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure import InputError, read
from howsure.formats import fields


def lines(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "a.jsonl"


def test_logprob_of_the_answer(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"answer": "Paris", "logprob": float(np.log(0.25)), "label": "paris"},
        {"answer": "x", "logprob": 0, "label": "y"},
    )
    preds = read(path)
    assert preds.confidence == pytest.approx([0.25, 1.0])
    assert preds.correct.tolist() == [True, False]


def test_logprobs_of_the_options_are_logits(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"logprobs": {"A": -1.0, "B": -2.0}, "label": "B"},
        {"logprobs": {"A": -3.0, "B": -0.5}, "label": "B"},
    )
    preds = read(path)
    assert preds.kind == "logits"
    assert preds.class_names == ("A", "B")
    assert preds.correct.tolist() == [False, True]
    assert preds.confidence[0] == pytest.approx(1 / (1 + np.exp(-1)))


def test_stated_confidence(tmp_path: Path) -> None:
    rows = [{"confidence": c, "correct": True} for c in ("85%", " 7.5 % ", "0.5", 1, "100%")]
    assert read(lines(tmp_path, *rows)).confidence.tolist() == [0.85, 0.075, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("stated", ["85", "high", "85 percent", "%", "~85%", "", "-5%", "101%", 85])
def test_stated_confidence_that_is_not_clear(stated: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1"):
        read(
            lines(
                tmp_path, {"confidence": stated, "correct": 1}, {"confidence": "5%", "correct": 1}
            )
        )


def test_agreement_of_samples_with_the_majority(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"samples": ["Yes", "yes ", "no"], "label": "YES"},
        {"samples": ["b", "a", "c", "a"], "label": "b"},
    )
    preds = read(path)
    assert preds.confidence.tolist() == [2 / 3, 0.5]
    assert preds.prediction.tolist() == ["Yes", "a"]
    assert preds.correct.tolist() == [True, False]


def test_agreement_with_a_given_answer(tmp_path: Path) -> None:
    path = lines(tmp_path, {"samples": ["a", "a", "b", "c"], "answer": "B", "correct": 1})
    assert read(path).confidence.tolist() == [0.25]


def test_ties_do_not_depend_on_order() -> None:
    assert {fields.majority(order) for order in (["b", "a"], ["a", "b"], ["b", "a", "a", "b"])} == {
        "a"
    }
    assert {fields.majority(order) for order in (["X", "x"], ["x", "X"])} == {"X"}


def test_samples_in_a_csv_cell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('samples,label\n"[""7"", ""8"", ""7""]",7\n"[9, 9]",8\n')
    preds = read(tmp_path / "a.csv")
    assert preds.confidence.tolist() == [2 / 3, 1.0]
    assert preds.correct.tolist() == [True, False]


def test_samples_in_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        pa.table({"samples": [["a", "b", "a"], ["c", "c", "c"]], "label": ["a", "d"]}),
        tmp_path / "a.parquet",
    )
    preds = read(tmp_path / "a.parquet")
    assert preds.confidence.tolist() == [2 / 3, 1.0]
    assert preds.correct.tolist() == [True, False]


def test_same_answer_of_numbers_and_texts() -> None:
    assert fields.same_answer(np.array([1, 2]), np.array(["1", "3"])).tolist() == [
        True,
        False,
    ]
    assert fields.same_answer(np.array(["Straße"]), np.array(["STRASSE"])).tolist() == [True]
