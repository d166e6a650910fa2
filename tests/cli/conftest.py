"""Run the command as a user would, in this process, and compare what it prints with a stored text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from howsure.cli import main

SNAPSHOTS = Path(__file__).parent / "snapshots"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def howsure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Ran]:
    """Call `howsure ARGS` inside an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*args: str) -> Ran:
        monkeypatch.setattr("sys.argv", ["howsure", *args])
        with pytest.raises(SystemExit) as stop:
            main(list(args))
        out, err = capsys.readouterr()
        return Ran(int(stop.value.code or 0), out, err)

    return run


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare text with the stored one; UPDATE_SNAPSHOTS=1 stores it."""
    name = re.sub(r"[^\w]+", "_", request.node.name).strip("_")
    path = SNAPSHOTS / f"{name}.txt"

    def compare(text: str) -> None:
        if os.environ.get("UPDATE_SNAPSHOTS"):
            SNAPSHOTS.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), (
            f"no snapshot {path.name}; run with UPDATE_SNAPSHOTS=1 and read what it stores"
        )
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Predictions of a made-up classifier that is overconfident, as files."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 6, 400)
    logits = (
        (4 * np.eye(6)[labels] + 2.5 * rng.standard_normal((400, 6))).round(3).astype(np.float32)
    )
    np.savez(tmp_path / "test.npz", logits=logits, labels=labels)
    np.savez(tmp_path / "both.npz", val_logits=logits[:200], val_labels=labels[:200], test_logits=logits[200:],
             test_labels=labels[200:])  # fmt: skip
    p = 1 / (1 + np.exp(-(logits[:, 1] - logits[:, 0])))
    np.savez(tmp_path / "binary.npz", probs=p.astype(np.float64), labels=(labels % 2))
    return tmp_path
