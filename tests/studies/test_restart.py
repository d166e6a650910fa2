"""Kill -9 in mid-study, and go on: a real process, a real signal."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("PIL")

from studies.__main__ import main
from studies.plans import runs_of
from studies.store import Store

ROOT = Path(__file__).parents[2]
STUDY = "complexity"


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A study killed while a network was half trained and others were finished, and what it had
    left by then.
    """
    out = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "studies", STUDY, "--scale", "smoke", "--out", str(out)]
    victim = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for(lambda: (finished(out) and half_trained(out)) or victim.poll() is not None)
    finally:
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
    left = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in finished(out)}
    return out, left, victim.returncode


def wait_for(condition):
    while not condition():
        time.sleep(0.005)


def finished(out):
    return sorted(path for path in out.glob("predictions/*.npz") if ".partial" not in path.name)


def half_trained(out):
    """Networks with a saved epoch and no predictions yet."""
    names = {path.parent.name for path in out.glob("checkpoints/*/state.pt")}
    return names - {path.name.split(".")[0] for path in finished(out)}


def arrays(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files if name != "history_seconds"}


def test_the_kill_came_in_the_middle(killed):
    _, left, code = killed
    assert code == -signal.SIGKILL
    assert 0 < len(left) < len(runs_of([STUDY], "smoke"))


def test_a_restart_finishes_the_study_and_leaves_finished_runs_alone(killed, smoke):
    out, left, _ = killed
    assert main([STUDY, "--scale", "smoke", "--out", str(out)]) == 0
    assert all(Store(out).finished(run) for run in runs_of([STUDY], "smoke"))
    assert all(
        (path.stat().st_mtime_ns, path.read_bytes()) == before for path, before in left.items()
    )
    for path in finished(out):
        mine, whole = arrays(path), arrays(smoke / "predictions" / path.name)
        assert mine.keys() == whole.keys()
        assert all(np.array_equal(mine[name], whole[name]) for name in mine), path.name
