"""The doctor names every problem, with its place, a repair, and what works anyway."""

from pathlib import Path

import numpy as np
import pytest

from howsure import read
from howsure.formats import describe, problems


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "prob_0,prob_1,label,id,weight\n0.5,0.5,0,a,1\n0.5,0.4,1,b,1\n2,-1,0,c,1\nx,1,0,d,1\n0.5,0.5,2,a,1\n1,0,0,f,-1\n"
    )
    found = {(p.where, p.what) for p in problems(path)}
    assert found == {
        ("a.csv, line 5, column 'prob_0'", "the value is 'x'"),
        ("a.csv, line 3", "probs sum to 0.9, expected 1"),
        ("a.csv, line 4", "probs lie outside [0, 1]"),
        ("a.csv, line 6", "labels are 2, with 2 classes they run from 0 to 1"),
        ("a.csv, line 6", "ids repeat (first: a)"),
        ("a.csv, line 7", "weight is -1"),
    }


def test_what_can_be_evaluated_anyway(tmp_path: Path) -> None:
    z = np.zeros((10, 3))
    z[4] = np.nan
    np.savez(tmp_path / "a.npz", logits=z, labels=np.arange(1, 11) % 3 + 1)
    by_what = {p.what: p for p in problems(tmp_path / "a.npz")}
    assert by_what["logits is nan"].anyway == "the other 9 rows"
    label = by_what["labels are 3, with 3 classes they run from 0 to 2"]
    assert label.where == "a.npz, rows 1, 4, 7"
    assert label.fix == "number them from 0 (subtract 1)"


def test_many_rows_are_counted_not_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", confidence=np.full(100, 2.0), correct=np.ones(100))
    assert problems(tmp_path / "a.npz")[0].where == "a.npz, rows 0, 1, 2, 3, 4 and 95 more"


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"confidence": [0.5, 0.5], "correct": [1, 0]}, "every confidence is 0.5"),
        ({"confidence": [0.5, 0.6]}, "nothing says which answers are right"),
        (
            {"logits": [[0.25, 0.75], [0.5, 0.5]], "labels": [0, 1]},
            "logits are all in [0, 1] with rows that sum to 1",
        ),
        ({"logits": [[1.0, 3.0]]}, "there are no labels"),
        (
            {"confidence": [0.5, 0.6], "correct": [1, 0], "pred": [1, 1], "labels": [1, 1]},
            "correct disagrees with prediction and label",
        ),
    ],
)
def test_doubts_do_not_stop_reading(arrays: dict, what: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    assert [(p.what, p.stops) for p in problems(tmp_path / "a.npz")] == [(what, False)]
    assert read(tmp_path / "a.npz").n


def test_every_split_is_looked_at(tmp_path: Path) -> None:
    good, bad = np.eye(2) * 2, np.array([[np.inf, 0.0], [0.0, 1.0]])
    np.savez(
        tmp_path / "a.npz", val_logits=good, val_labels=[0, 1], test_logits=bad, test_labels=[0, 1]
    )
    assert [p.where for p in problems(tmp_path / "a.npz")] == ["split 'test', a.npz, row 0"]
    assert problems(tmp_path / "a.npz", split="val") == []


def test_renormalise_is_a_repair(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", probs=[[1.0, 3.0]], labels=[0])
    assert len(problems(tmp_path / "a.npz")) == 1
    np.savez(tmp_path / "b.npz", probs=[[0.2, 0.3]], labels=[0])
    assert problems(tmp_path / "b.npz", renormalise=True) == []


def test_a_broken_file_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"")
    (found,) = problems(tmp_path / "a.npz")
    assert (found.where, found.fix, found.anyway) == ("a.npz", "save or copy it again", "nothing")


def test_description_of_a_table_and_of_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("logit_0,logit_1,label,note\n" + "1,2,0,x\n" * 5)
    table = describe(tmp_path / "a.csv")
    assert [(i.name, i.shape, i.part) for i in table.items] == [
        ("logit_0", (5,), "logits"),
        ("logit_1", (5,), "logits"),
        ("label", (5,), "labels"),
        ("note", (5,), ""),
    ]
    np.savez(
        tmp_path / "a.npz",
        test_logits=np.zeros((4, 2), dtype=np.float16),
        mc_val_probs=np.zeros((3, 4, 2)),
    )
    arrays = describe(tmp_path / "a.npz")
    assert [(i.name, i.shape, i.dtype, i.part) for i in arrays.items] == [
        ("test_logits", (4, 2), "float16", "logits"),
        ("mc_val_probs", (3, 4, 2), "float64", "mc_probs"),
    ]
    assert arrays.splits == ("test", "val")
    assert arrays.format == "NumPy archive"


def test_of_many_splits_the_first_are_examined(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("confidence,correct,split\n" + "".join(f"2,1,s{i:03}\n" for i in range(300)))
    first, *rest = problems(path)
    assert first.what == "has 300 splits, of which the first 20 are examined"
    assert not first.stops
    assert [p.where for p in rest] == [f"split 's{i:03}', a.csv, line {i + 2}" for i in range(20)]
