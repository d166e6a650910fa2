"""Tables, figures and splits from the command line, on the demo's own file."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

DEMO = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")


def test_a_table_and_a_figure_are_written(howsure: Callable, tmp_path: Path) -> None:
    tex, svg = tmp_path / "t.tex", tmp_path / "odds.svg"
    ran = howsure("evaluate", DEMO, "--split", "test", "-o", str(tex), "--figure", f"odds={svg}")
    assert ran.code == 0
    assert tex.read_text().startswith("\\begin{table}")
    assert "Odds by quantile" in svg.read_text()


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("x.gif", "figures are written as .svg, .pdf, .png; '.gif' is none of them"),
        ("nothing=x.svg", "there is no picture 'nothing' here"),
    ],
)
def test_a_figure_that_cannot_be(
    howsure: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = howsure("evaluate", DEMO, "--split", "test", "-q", "--figure", option)
    assert ran.code == 2
    assert says in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_figure_is_not_written_over_the_input(howsure: Callable, tmp_path: Path) -> None:
    source = tmp_path / "a.svg"
    source.write_bytes(Path(DEMO).read_bytes())
    ran = howsure("evaluate", str(source), "--figure", f"risk={source}")
    assert ran.code == 2
    assert "are one file" in ran.err


def test_calibrate_takes_val_and_test_of_one_file(howsure: Callable) -> None:
    ran = howsure("calibrate", DEMO, "--method", "temperature")
    assert ran.code == 0
    assert "split val fitted on, split test judged on" in ran.err


def test_other_splits_are_asked_for(howsure: Callable, tmp_path: Path) -> None:
    a = np.load(DEMO)
    path = tmp_path / "three.npz"
    arrays = {f"{s}_logits": a["val_logits"][:200] for s in ("val", "test", "ood")}
    arrays |= {f"{s}_labels": a["val_labels"][:200] for s in ("val", "test", "ood")}
    np.savez(path, **arrays)
    ran = howsure("calibrate", str(path))
    assert ran.code == 2
    assert "--on-split" in ran.err


def test_objective_is_one_of_temperature(howsure: Callable) -> None:
    ran = howsure("calibrate", DEMO, "--objective", "per_pass")
    assert ran.code == 2
    assert "is one of temperature" in ran.err
