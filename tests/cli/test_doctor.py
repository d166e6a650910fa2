"""howsure doctor: names everything, refuses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np


def test_a_good_file_and_the_next_step(howsure: Callable, snapshot: Callable, files: Path) -> None:
    ran = howsure("doctor", "both.npz")
    assert (ran.code, ran.err) == (0, "")
    snapshot(ran.out)


def test_every_problem_of_a_bad_file(howsure: Callable, snapshot: Callable) -> None:
    Path("bad.csv").write_text("prob_0,prob_1,label\n0.9,0.2,0\n0.4,x,1\n0.5,0.5,7\n0.3,0.7,1\n")
    ran = howsure("doctor", "bad.csv")
    assert ran.code == 2
    for place in ("line 2", "line 3, column 'prob_1'", "line 4"):
        assert place in ran.out
    snapshot(ran.out)


def test_json(howsure: Callable, files: Path) -> None:
    (found,) = json.loads(howsure("doctor", "test.npz", "--json").out)
    assert found["problems"] == []
    assert {item["name"]: item["part"] for item in found["holds"]["items"]} == {
        "logits": "logits",
        "labels": "labels",
    }


def test_a_file_that_does_not_exist(howsure: Callable) -> None:
    ran = howsure("doctor", "not_there.npz")
    assert ran.code == 2
    assert "not_there.npz does not exist" in ran.out


def test_unused_columns_with_telling_names_are_listed_with_their_option(
    howsure: Callable, tmp_path: Path
) -> None:
    text = "confidence,correct,freq,w,patient_id\n0.9,1,3,1.5,a\n0.6,0,2,1.0,b\n0.7,1,1,1.0,c\n"
    (tmp_path / "a.csv").write_text(text)
    options = {"freq": "count=freq", "w": "weight=w", "patient_id": "group=patient_id"}
    ran = howsure("doctor", "a.csv")
    assert ran.code == 0
    for name, option in options.items():
        assert f"not used: '{name}'; --name {option} uses it" in ran.out
        assert howsure("evaluate", "a.csv", "--name", option, "-q").code == 0
    (row,) = json.loads(howsure("doctor", "a.csv", "--json").out)
    assert row["unused"] == {name: f"--name {option}" for name, option in options.items()}
    (tmp_path / "b.csv").write_text("confidence,correct\n0.9,1\n0.6,0\n")
    assert "not used" not in howsure("doctor", "b.csv").out


def test_columns_of_classes_are_one_line(howsure: Callable, tmp_path: Path) -> None:
    names = [*(f"proba_{i}" for i in range(10)), "label", "f1", "f2", "age"]
    row = ",".join(["0.1"] * 10 + ["3", "5", "6", "40"])
    (tmp_path / "a.csv").write_text(",".join(names) + f"\n{row}\n{row}\n")
    lines = [line.split("  ")[0] for line in howsure("doctor", "a.csv").out.splitlines()]
    assert lines[2:6] == ["proba_0 … proba_9 (10)", "label", "f1 … f2 (2)", "age"]


def test_labels_of_another_file_count(howsure: Callable, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,prob_0,prob_1\n7,0.9,0.1\n8,0.2,0.8\n")
    (tmp_path / "gold.csv").write_text("id,gold\n8,1\n7,1\n")
    (tmp_path / "few.csv").write_text("id,gold\n8,1\n")
    assert "there are no labels" in howsure("doctor", "a.csv").out
    assert "No problems." in howsure("doctor", "a.csv", "--labels", "gold.csv").out
    ran = howsure("doctor", "a.csv", "--labels", "few.csv")
    assert (ran.code, "has 1 of 2 rows whose id is not in few.csv" in ran.out) == (2, True)


def test_one_hot_labels_are_labels(howsure: Callable, tmp_path: Path) -> None:
    probs = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    np.savez(tmp_path / "a.npz", probs=probs, labels=np.eye(2)[[0, 1, 0]])
    assert howsure("doctor", "a.npz").code == howsure("evaluate", "a.npz", "-q").code == 0
    np.savez(tmp_path / "b.npz", probs=probs, labels=np.ones((3, 2)))
    assert howsure("doctor", "b.npz").code == howsure("evaluate", "b.npz", "-q").code == 2


def test_a_report_is_no_predictions(howsure: Callable, files: Path) -> None:
    howsure("evaluate", "test.npz", "-q", "-o", "report.json")
    assert "was written by howsure" in howsure("doctor", "report.json").out
