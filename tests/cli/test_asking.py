"""On a terminal a command asks one question where a file does not say what it holds."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

RNG = np.random.default_rng(7)
RISK = RNG.random(80).round(3)
SICK = (RNG.random(80) < RISK).astype(int)


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Run a command on a terminal of its own, which types the answer; standard output is a pipe."""

    def call(answer: str, *args: str) -> tuple[int, str, str]:
        ours, theirs = pty.openpty()
        shown: list[bytes] = []

        def listen() -> None:
            # A terminal that nobody reads would hold the command up.
            with suppress(OSError):  # so it ends
                while block := os.read(ours, 4096):
                    shown.append(block)

        process = subprocess.Popen(
            [sys.executable, "-m", "howsure", *args],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            cwd=tmp_path,
            text=True,
        )
        os.close(theirs)
        listener = Thread(target=listen)
        listener.start()
        os.write(ours, answer.encode())
        out, _ = process.communicate()
        listener.join()
        os.close(ours)
        return process.returncode, out, b"".join(shown).decode("utf-8", "replace")

    return call


@pytest.fixture
def sick(tmp_path: Path) -> str:
    rows = [f"{r},{y}" for r, y in zip(RISK, SICK, strict=True)]
    (tmp_path / "sick.csv").write_text("\n".join(["risk,sick", *rows]) + "\n")
    return "sick.csv"


def test_yes_reads_the_file(ask: Callable[..., tuple[int, str, str]], sick: str) -> None:
    code, out, shown = ask("\n", "evaluate", sick)
    assert code == 0, shown
    assert "Is 'risk' the probability of class 1, and is 'sick' the label? [Y/n]" in shown
    assert "--name probs=risk --name labels=sick" in shown
    right = int(((RISK > 0.5) == SICK).sum())
    assert f"{right} of 80 right" in " ".join(out.split())


def test_no_is_the_error(ask: Callable[..., tuple[int, str, str]], sick: str) -> None:
    code, out, shown = ask("n\n", "evaluate", sick)
    assert (code, out) == (2, "")
    assert "sick.csv has no logit_0" in shown


def test_a_policy_stores_what_was_answered(
    ask: Callable[..., tuple[int, str, str]], sick: str, tmp_path: Path
) -> None:
    code, _, shown = ask("y\n", "threshold", sick, "--coverage", "0.5", "-o", "p.json")
    assert code == 0, shown
    (tmp_path / "new.csv").write_text("risk\n0.99\n0.5\n")
    call = [sys.executable, "-m", "howsure", "decide", "p.json", "new.csv"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    decisions = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["prediction"] for one in decisions] == [1, 0]
    assert [one["decision"] for one in decisions] == ["accept", "defer"]


def test_quiet_and_pipes_ask_nothing(
    ask: Callable[..., tuple[int, str, str]], sick: str, tmp_path: Path
) -> None:
    code, _, shown = ask("", "evaluate", sick, "--quiet")
    assert (code, "[Y/n]" in shown) == (2, False)
    call = [sys.executable, "-m", "howsure", "evaluate", sick]
    done = subprocess.run(call, cwd=tmp_path, input="y\n", capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("answer", "expected"), [("p", '"n": 120'), ("e", '"samples": 2'), ("c", '"models"')]
)
def test_two_files_of_the_same_rows(
    ask: Callable[..., tuple[int, str, str]], tmp_path: Path, answer: str, expected: str
) -> None:
    labels = RNG.integers(0, 3, 60)
    for name in ("a", "b"):
        logits = 2 * np.eye(3)[labels] + RNG.normal(size=(60, 3))
        np.savez(tmp_path / f"{name}.npz", logits=logits, labels=labels)
    code, out, shown = ask(f"{answer}\n", "evaluate", "a.npz", "b.npz", "--json")
    assert code == 0, shown
    assert "a.npz and b.npz have the same 60 rows (identical labels)." in shown
    assert "[c]ompare" in shown
    assert expected in out
