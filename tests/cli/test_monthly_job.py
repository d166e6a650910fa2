"""The monthly job of docs/monitor.md, run as it stands: three months, alarm in the third."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "monitor.md").read_text()


def csv(path: Path, seed: int, *, labelled: bool, hard: bool = False) -> None:
    rng = np.random.default_rng(seed)
    s = rng.beta(3, 1.5, 2000) if hard else rng.beta(8, 1, 2000)
    right = (rng.random(2000) < s).astype(int)
    head = "id,confidence" + (",correct" if labelled else "")
    rows = [f"{seed}-{i},{x!r}" + (f",{y}" if labelled else "") for i, (x, y) in
            enumerate(zip(s.tolist(), right.tolist(), strict=True))]  # fmt: skip
    path.write_text("\n".join([head, *rows]) + "\n")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    script = next(
        s
        for s in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
        if s.startswith("#!/bin/sh")
    )
    (tmp_path / "monthly.sh").write_text(script)
    tool = tmp_path / "bin" / "howsure"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m howsure "$@"\n')
    tool.chmod(0o755)
    csv(tmp_path / "val.csv", 0, labelled=True)
    for seed, name in enumerate(("april", "may", "june"), start=1):
        csv(tmp_path / f"{name}.csv", seed, labelled=False, hard=name == "june")
    return tmp_path


def run(job: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{job / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run([*command], cwd=job, env=env, capture_output=True, text=True)


def test_three_months(job: Path):
    codes = [
        run(job, "sh", "monthly.sh", f"{month}.csv").returncode
        for month in ("april", "may", "june")
    ]
    assert codes == [0, 0, 3]
    assert '"alarm": "score"' in (job / "alarms.jsonl").read_text()
    assert all((job / f"{month}.html").exists() for month in ("april", "may", "june"))
    assert len((job / "june.decisions.jsonl").read_text().splitlines()) == 2000
    assert run(job, "howsure", "alarms", "status", "drift.json").returncode == 3
    assert (
        run(job, "howsure", "alarms", "reset", "drift.json", "--reason", "retrained").returncode
        == 0
    )
    assert run(job, "howsure", "alarms", "status", "drift.json").returncode == 0


def test_a_month_that_is_run_again_or_was_cut_off(job: Path):
    assert run(job, "sh", "monthly.sh", "april.csv").returncode == 0
    out, watch = job / "april.decisions.jsonl", job / "drift.json"
    decided, state = out.read_bytes(), watch.read_bytes()
    assert run(job, "sh", "monthly.sh", "april.csv").returncode == 0
    assert (out.read_bytes(), watch.read_bytes()) == (decided, state)
    out.write_bytes(
        b"".join(decided.splitlines(keepends=True)[:700]) + b'{"line":701'
    )  # all but the watch was lost
    assert run(job, "sh", "monthly.sh", "april.csv").returncode == 0
    assert out.read_bytes() == decided


def test_an_empty_month_is_a_mistake(job: Path):
    (job / "july.csv").write_text("id,confidence\n")
    found = run(job, "sh", "monthly.sh", "july.csv")
    assert found.returncode == 2
    assert not (job / "july.html").exists()
