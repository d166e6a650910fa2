"""A killed stream with an online policy: the state is whole, no label is lost and none counts
twice.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.policies import OnlinePolicy, Policy
from howsure.policies.policy import Decisions
from howsure.serving.feedback import LabelFeed, compute_identity, learn_labels, make_tickets
from howsure.serving.journal import decision_lines

COMMAND = [
    sys.executable,
    "-m",
    "howsure.cli",
    "decide",
    "online.json",
    "-",
    "--labels",
    "labels.jsonl",
    "-q",
]


def lines(n: int) -> str:
    confidence = np.random.default_rng(0).uniform(0.3, 1, n).round(4)
    return "".join(f'{{"id": {i}, "confidence": {c}}}\n' for i, c in enumerate(confidence))


def labelled(state: OnlinePolicy, n: int) -> str:
    """Decisions of this policy that came back with their labels."""
    rng = np.random.default_rng(1)
    score = rng.uniform(0.3, 1, n).round(4)
    yes = np.ones(n, dtype=bool)
    made = Decisions(yes, np.full(n, -1), score, score, audit=yes)
    made = replace(made, ticket=make_tickets(made, 0, compute_identity(state)))
    lines = decision_lines(made, range(1, n + 1), None).decode().splitlines()
    right = (rng.random(n) < 0.9).tolist()
    return "".join(
        f'{line[:-1]},"correct":{int(ok)}}}\n' for line, ok in zip(lines, right, strict=True)
    )


def killed_after(folder: Path, saves: int) -> None:
    """Feed lines until the state has been saved so often; then SIGKILL."""
    state = folder / "online.json"
    seen = {state.stat().st_mtime_ns}
    with subprocess.Popen(
        COMMAND, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        try:
            while len(seen) <= saves:
                process.stdin.write(lines(50))
                process.stdin.flush()
                time.sleep(0.05)
                seen.add(state.stat().st_mtime_ns)
        finally:
            process.kill()
            process.wait()
            process.stdin.close()


def test_kill_9_and_go_on(tmp_path: Path) -> None:
    start = OnlinePolicy.start(Policy("max_prob", 0.6), np.linspace(0.3, 1, 500), risk=0.1)
    hs.save(start, tmp_path / "online.json")
    text = labelled(start, 900)
    read = 0
    for part, saves in enumerate((1, 2, 1), start=1):
        (tmp_path / "labels.jsonl").write_text(
            "".join(text.splitlines(keepends=True)[: 300 * part])
        )
        killed_after(tmp_path, saves)
        state = hs.load(tmp_path / "online.json")  # whole: its digest is checked
        assert read <= state.read <= (tmp_path / "labels.jsonl").stat().st_size
        read = state.read
    subprocess.run(
        COMMAND, cwd=tmp_path, input=lines(10), stdout=subprocess.DEVNULL, text=True, check=True
    )
    end, once = (
        hs.load(tmp_path / "online.json"),
        learn_labels(start, LabelFeed(tmp_path / "labels.jsonl")),
    )
    assert end.read == once.read == len(text.encode())
    assert end.level == pytest.approx(once.level, abs=1e-12)
    assert end.labels == once.labels == 900
