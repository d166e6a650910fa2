"""Labels from a file of their own: joined by ids, in Python and in every command that needs them."""

import json
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.cli import main
from howsure.formats import read

PROBS = "id,prob_cat,prob_dog\n3,0.9,0.1\n1,0.2,0.8\n2,0.6,0.4\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def probs(tmp_path: Path) -> Path:
    return write(tmp_path / "p.csv", PROBS)


@pytest.mark.parametrize(
    ("labels", "join"),
    [
        ("id,label\n1,dog\n2,dog\n3,cat\n", "id"),
        ("id,label\n1,1\n2,1\n3,0\n4,0\n", "id"),
        ("item,gold,ward\n1,dog,a\n2,dog,b\n3,cat,c\n", "id=item"),
        ("idx,whatever\n1,dog\n2,dog\n3,cat\n", "id"),
    ],
    ids=["names", "numbers, and more of them", "other names", "the only column"],
)
def test_labels_are_joined(probs: Path, labels: str, join: str, tmp_path: Path) -> None:
    preds = read(probs, labels=write(tmp_path / "l.csv", labels), join=join)
    assert preds.labels.tolist() == [0, 1, 1]
    assert preds.correct.tolist() == [True, True, False]


def test_right_and_wrong_are_joined_to_a_confidence(tmp_path: Path) -> None:
    given = write(
        tmp_path / "p.jsonl", '{"id": "a", "confidence": 0.9}\n{"id": "b", "confidence": 0.4}\n'
    )
    truth = write(tmp_path / "l.csv", "id,correct\nb,0\na,1\n")
    assert read(given, labels=truth).correct.tolist() == [True, False]


def test_labels_are_compared_with_answers(tmp_path: Path) -> None:
    given = write(tmp_path / "p.csv", "id,answer,confidence\na,Paris,0.9\nb,Rome,0.4\n")
    truth = write(
        tmp_path / "l.jsonl", '{"id": "b", "gold": "Oslo"}\n{"id": "a", "gold": "paris"}\n'
    )
    assert read(given, labels=truth).correct.tolist() == [True, False]


def test_arrays_are_joined_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", probs=[[0.9, 0.1], [0.2, 0.8]], ids=[7, 5])
    truth = write(tmp_path / "l.csv", "id,label\n5,0\n7,0\n")
    assert read(tmp_path / "p.npz", labels=truth).correct.tolist() == [True, False]


@pytest.mark.parametrize(
    ("labels", "join", "message"),
    [
        (
            "id,label\n1,dog\n3,cat\n",
            "id",
            "1 of 3 rows whose id is not in l.csv; the first is '2'",
        ),
        ("id,label\n1,dog\n1,cat\n2,cat\n3,cat\n", "id", "1 of 4 rows whose id was there before"),
        ("id,label\n1,dog\n2,\n3,cat\n", "id", "1 of 3 rows without a label"),
        ("key,label\n1,dog\n", "id", "no column 'id' of ids"),
        ("id,label\n1,dog\n", "case=id", "no column 'case' to join"),
        ("id,a,b\n1,dog,x\n", "id", "name it with --name labels=COLUMN"),
    ],
)
def test_what_does_not_join_is_refused_with_counts(
    probs: Path, labels: str, join: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        read(probs, labels=write(tmp_path / "l.csv", labels), join=join)


def test_two_truths_are_refused(tmp_path: Path) -> None:
    given = write(tmp_path / "p.csv", "id,prob_1,label\n1,0.9,1\n")
    with pytest.raises(InputError, match=r"has 'label' itself beside the labels of l\.csv"):
        read(given, labels=write(tmp_path / "l.csv", "id,label\n1,0\n"))


@pytest.fixture
def split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same predictions with labels inside, and with labels beside."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 0.6, 400)
    y = (rng.random(400) < p).astype(int)
    rows = list(zip(range(400), p.tolist(), y.tolist(), strict=True))
    write(
        tmp_path / "whole.csv", "id,prob_1,label\n" + "".join(f"{i},{a},{b}\n" for i, a, b in rows)
    )
    write(tmp_path / "bare.csv", "id,prob_1\n" + "".join(f"{i},{a}\n" for i, a, _ in rows))
    write(tmp_path / "l.csv", "case,label\n" + "".join(f"{i},{b}\n" for i, _, b in rows[::-1]))
    return tmp_path


JOINED = ["--labels", "l.csv", "--join", "id=case"]
COMMANDS = {
    "evaluate": ["evaluate", "FILE", "--json"],
    "check": ["check", "FILE", "--require", "accuracy>=0.1"],
    "threshold": ["threshold", "FILE", "--risk", "0.3"],
    "calibrate": [
        "calibrate",
        "--fit",
        "FILE",
        "--on",
        "FILE",
        "--method",
        "temperature",
        "--json",
    ],
    "compare": ["compare", "FILE", "FILE2", "--json"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_say_the_same(name: str, split: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said: list[object] = []
    for file, options in (("whole.csv", []), ("bare.csv", JOINED)):
        (split / "two.csv").write_text((split / file).read_text())
        words = [{"FILE": file, "FILE2": "two.csv"}.get(word, word) for word in COMMANDS[name]]
        with pytest.raises(SystemExit) as end:
            main([*words, *options])
        code = end.value.code
        out = capsys.readouterr().out.replace(file, "F")
        if "--json" in words:
            data = json.loads(out)
            models = [model["metrics"] for model in data.get("models", ())]
            said.append((code, data.get("metrics"), models))
        else:
            said.append((code, out))
    assert said[0] == said[1]
    assert hs.read(split / "bare.csv", labels=split / "l.csv", join="id=case").n == 400
