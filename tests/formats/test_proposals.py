"""The doctor's best guess: a command that reads the file, or none."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError
from howsure.cli import main
from howsure.formats import read
from howsure.formats.proposals import find_label_file, list_proposals, propose_options
from howsure.predictions.read_options import ReadOptions

TABLES = {
    "a risk": ("sick,risk\n1,0.9\n0,0.2\n1,0.4\n", {"probs": "risk", "labels": "sick"}),
    "an answer beside": (
        "y_true,y_pred,y_score\n1,0,0.9\n0,0,0.7\n1,1,0.8\n",
        {"confidence": "y_score"},
    ),
    "three classes": (
        "truth,a,b,c\nb,0.2,0.7,0.1\na,0.5,0.3,0.2\nc,0.3,0.3,0.4\n",
        {"probs": "a,b,c", "labels": "truth"},
    ),
    "labels only": ("prob_0,prob_1,truth\n0.1,0.9,1\n0.7,0.3,0\n", {"labels": "truth"}),
    "right": ("sure,ok\n0.9,1\n0.4,0\n0.8,1\n", {"confidence": "sure", "correct": "ok"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_guess_that_reads_the_file(name: str, tmp_path: Path) -> None:
    text, names = TABLES[name]
    path = tmp_path / "a.csv"
    path.write_text(text)
    proposal = propose_options(path, ReadOptions())
    assert proposal is not None
    assert proposal.names == names
    assert read(path, options=proposal).correct.size


@pytest.mark.parametrize("at", [0.5, 0.9])
def test_a_probability_that_the_answers_were_cut_from(tmp_path: Path, at: float) -> None:
    """It was guessed to say how sure the answer is, and the time to be the label."""
    rng = np.random.default_rng(3)
    p = rng.random(300).round(2)
    rows = zip(p, (p > at).astype(int), (rng.random(300) < p).astype(float), strict=True)
    lines = [f"2018-01-{i % 28 + 1:02},{i % 80},{a},{b},{c}" for i, (a, b, c) in enumerate(rows)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["day,age,y_pred_proba,y_pred,repaid", *lines]) + "\n")
    proposal = propose_options(path, ReadOptions())
    assert proposal is not None
    assert proposal.names == {"probs": "y_pred_proba", "labels": "repaid"}
    assert proposal.answers == (None if at == 0.5 else "file")


def test_free_answers_need_not_be_those_of_the_labels(tmp_path: Path) -> None:
    lines = [f"city {i},{0.3 + i / 100},city {i + i % 3 * 100}" for i in range(60)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["prediction,confidence,capital", *lines]) + "\n")
    proposal = propose_options(path, ReadOptions())
    assert proposal is not None
    assert proposal.names == {"labels": "capital"}


def test_arrays_without_names(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, np.array([[2.0, -1.0], [0.5, 3.0]]), np.array([0, 0]))
    proposal = propose_options(path, ReadOptions())
    assert proposal is not None
    assert proposal.names == {"logits": "arr_0", "labels": "arr_1"}


@pytest.mark.parametrize("text", ["a,b\nx,y\nz,w\n", "n\n1\n2\n", "", "0.1,0.2\n"])
def test_no_guess(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert propose_options(path, ReadOptions()) is None


def test_the_doctor_ends_with_a_command_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 3 == 0:d},{0.1 + 0.8 * (i % 7) / 7}\n" for i in range(60))
    Path("my data.csv").write_text("sick,risk\n" + rows)
    with pytest.raises(SystemExit) as end:
        main(["doctor", "my data.csv"])
    assert end.value.code == 2
    last = capsys.readouterr().out.rstrip().splitlines()[-1].strip()
    with pytest.raises(SystemExit) as end:
        main(["doctor", "my data.csv", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["proposal"] == last
    with pytest.raises(SystemExit) as end:
        main([*shlex.split(last)[1:], "--json"])
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["n"] == 60


MEANINGS = {
    "percentages": ("confidence,correct\n85,1\n60,0\n99,1\n", {"percent": True}),
    "rows that miss 1": (
        "prob_0,prob_1,label\n0.9,0.3,0\n0.4,0.8,1\n0.6,0.2,1\n",
        {"renormalise": True},
    ),
    "many labels": (
        "prob_a,prob_b,label_a,label_b\n0.9,0.3,1,0\n0.4,0.8,1,1\n0.6,0.2,0,0\n",
        {"multilabel": True},
    ),
    "other answers": (
        "prob_0,prob_1,label,prediction\n0.9,0.1,0,1\n0.4,0.6,1,1\n0.6,0.4,1,0\n",
        {"answers": "file"},
    ),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_what_the_numbers_mean_is_guessed_too(name: str, tmp_path: Path) -> None:
    text, expected = MEANINGS[name]
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError):
        read(path).correct  # noqa: B018
    assert next(list_proposals(path, ReadOptions())) == ReadOptions(**expected)


def test_percentages_by_another_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("certainty,ok\n85,1\n60,0\n99,1\n")
    names = {"confidence": "certainty", "correct": "ok"}
    assert propose_options(path, ReadOptions()) == ReadOptions(names=names, percent=True)


def test_several_guesses_are_different_meanings(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sick,risk\n1,0.9\n0,0.2\n1,0.4\n")
    found = [proposal.names for proposal in list_proposals(path, ReadOptions())]
    assert found[:3] == [
        {"probs": "risk", "labels": "sick"},
        {"confidence": "risk", "correct": "sick"},
    ]


def test_the_labels_of_another_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("item,prob_0,prob_1\n7,0.9,0.1\n8,0.2,0.8\n")
    (tmp_path / "other.csv").write_text("item,gold\n1,0\n2,1\n")
    (tmp_path / "gold.csv").write_text("item,gold\n8,1\n7,1\n")
    others = [str(tmp_path / name) for name in ("missing.csv", "other.csv", "gold.csv")]
    found = find_label_file(path, others, ReadOptions())
    assert found == (str(tmp_path / "gold.csv"), "item")
    assert find_label_file(path, others[:2], ReadOptions()) is None
