"""A calibrator stores how its file was read, as a policy does: others are read alike or refused."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.formats import ReadOptions

METHODS = ("temperature", "isotonic", "platt", "histogram", "diagonal", "vector", "dirichlet")


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 400)
    logits = (2 * np.eye(3)[labels] + 1.5 * rng.standard_normal((400, 3))).round(4)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for name, values in {"z": logits, "p": probs}.items():
        rows = [",".join(map(str, (*row, y))) for row, y in zip(values, labels, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,c,gold", *rows]) + "\n")
    return tmp_path


@pytest.mark.parametrize("method", METHODS)
def test_a_calibrator_stores_how_its_file_was_read(
    howsure: Callable[..., tuple[int, str, str]], tables: Path, method: str
) -> None:
    names = ("--name", "logits=a,b,c", "--name", "labels=gold")
    command = ("calibrate", "--fit", "z.csv", "--on", "z.csv", "-o", "c.json", "-q")
    assert howsure(*command, *names, "--method", method)[0] == 0
    calibrator = hs.load(tables / "c.json")
    assert calibrator.fitted.read == ReadOptions(
        names={"logits": "a,b,c", "labels": "gold"}, kind="logits"
    )
    # The same file needs no word about its values, only about its labels.
    labels = ("--name", "labels=gold")
    code, out, err = howsure("evaluate", "z.csv", *labels, "--calibrator", "c.json", "--json")
    assert code == 0, err
    whole = hs.read(tables / "z.csv", options=calibrator.fitted.read)
    assert json.loads(out)["metrics"]["nll"]["value"] == pytest.approx(hs.nll(calibrator(whole)))


@pytest.mark.parametrize("command", ["evaluate", "threshold"])
def test_another_kind_of_numbers_is_refused_in_one_sentence(
    howsure: Callable[..., tuple[int, str, str]], tables: Path, command: str
) -> None:
    names = ("--name", "logits=a,b,c", "--name", "labels=gold")
    assert (
        howsure(
            "calibrate",
            "--fit",
            "z.csv",
            "--on",
            "z.csv",
            "--method",
            "temperature",
            "-o",
            "c.json",
            "-q",
            *names,
        )[0]
        == 0
    )
    other = ("--name", "probs=a,b,c", "--name", "labels=gold", "--calibrator", "c.json")
    rule = ("--coverage", "0.5") if command == "threshold" else ()
    code, out, err = howsure(command, "p.csv", *other, *rule)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "hold probabilities" in err
    assert "the policy or calibrator was fitted on logits" in err
    assert tables.is_dir()
