"""howsure compare, as a user runs it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.cli import main


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rng = np.random.default_rng(0)
    y, ids = rng.integers(0, 3, 200), np.arange(200)
    for name, signal in (("small", 1.5), ("large", 4.0)):
        z = signal * np.eye(3)[y] + rng.normal(size=(200, 3))
        np.savez(tmp_path / f"{name}.npz", logits=z, labels=y, ids=ids, site=ids % 2)
    np.savez(tmp_path / "noise.npz", logits=rng.normal(size=(40, 3)))
    return {p.stem: str(p) for p in tmp_path.iterdir()}


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *args])
    return int(stopped.value.code or 0)


def test_models_are_named_by_their_files_and_ranked(
    files: dict[str, str], capsys: Any, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert (
        run(
            files["small"],
            files["large"],
            "--cost",
            "small=1",
            "--cost",
            "large=2",
            "--html",
            str(page),
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "large ranks best by AURC" in out
    assert "withheld" in out
    assert page.read_text().startswith("<!doctype html>")


def test_json_slices_and_outside(files: dict[str, str], capsys: Any) -> None:
    assert (
        run(
            files["small"],
            files["large"],
            "--json",
            "--by",
            "site",
            "--outside",
            f"large={files['noise']}",
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert {s["group"] for s in found["slices"]} == {"0", "1"}
    assert found["outside"][0]["set"] == "noise"


def test_slicing_changes_no_interval(files: dict[str, str], capsys: Any) -> None:
    """Two sites are two slices, not two samples."""
    intervals: list[Any] = []
    for more in ([], ["--by", "site"]):
        assert run(files["small"], files["large"], "--json", *more) == 0
        intervals.append([row["behind"] for row in json.loads(capsys.readouterr().out)["models"]])
    assert intervals[0] == intervals[1]


def test_a_long_name_stands_whole_beside_its_numbers(
    files: dict[str, str], capsys: Any, tmp_path: Path
) -> None:
    name = "resnet_with_a_long_name_32"
    Path(files["small"]).rename(tmp_path / f"{name}.npz")
    assert run(str(tmp_path / f"{name}.npz"), files["large"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ranking = lines[lines.index("Leaderboard") :]
    assert any(line.startswith(name) and " %" in line for line in ranking[:6])
    assert all(len(line) <= 110 for line in lines)


def test_scores_of_one_file(files: dict[str, str], capsys: Any) -> None:
    assert run(files["small"], "--score", "max_prob", "--score", "margin", "--json") == 0
    assert json.loads(capsys.readouterr().out)["comparable"]["auroc"]["fair"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["small"], "one FILE is given"),
        (["small", "large", "--cost", "small"], "is not MODEL=VALUE"),
        (["small", "large", "--cost", "small=much"], "is not a number"),
        (["small", "large", "--score", "max_porb"], "Did you mean max_prob?"),
        (["small", "large", "--by", "sight"], "sight"),
    ],
)
def test_mistakes_are_told_in_one_line(
    files: dict[str, str], capsys: Any, arguments: list[str], message: str
) -> None:
    assert run(*(files.get(a, a) for a in arguments)) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_numpy_files_of_one_model_are_one_model(tmp_path: Path, capsys: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    for name, signal in (("small", 1.5), ("large", 4.0)):
        np.save(tmp_path / f"{name}_logits.npy", signal * np.eye(3)[y] + rng.normal(size=(200, 3)))
        np.save(tmp_path / f"{name}_labels.npy", y)
    assert run(*sorted(map(str, tmp_path.iterdir())), "--json") == 0
    found = json.loads(capsys.readouterr().out)["models"]
    assert [model["name"] for model in found] == ["large_labels", "small_labels"]
