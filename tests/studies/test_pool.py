"""Runs on a Dask cluster of real worker processes."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
distributed = pytest.importorskip("distributed")

from studies.__main__ import main  # noqa: E402
from studies.plans import runs_of  # noqa: E402
from studies.store import Store  # noqa: E402


def test_runs_on_workers_give_what_one_process_gives(tmp_path, smoke, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        assert main(["odds", "--out", str(tmp_path), "--scheduler", cluster.scheduler_address]) == 0
    for run in runs_of(["odds"], "smoke"):
        here, there = (
            np.load(Store(out).predictions(run.settings))["test_logits"]
            for out in (tmp_path, smoke)
        )
        assert np.array_equal(here, there)


def test_a_killed_worker_costs_nothing(tmp_path, smoke, monkeypatch):
    """The only worker dies in the middle of a network; the one that takes its place goes on from
    the checkpoint.
    """
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    runs = runs_of(["odds"], "smoke")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        victim = cluster.workers[0].pid
        over = threading.Event()
        killer = threading.Thread(target=kill_in_the_middle, args=(tmp_path, runs, victim, over))
        killer.start()
        try:
            call = ["odds", "--out", str(tmp_path), "--scheduler", cluster.scheduler_address]
            assert main(call) == 0
        finally:
            over.set()
            killer.join()
        assert cluster.workers[0].pid != victim
    for run in runs:
        here, there = (
            np.load(Store(out).predictions(run.settings))["test_logits"]
            for out in (tmp_path, smoke)
        )
        assert np.array_equal(here, there)


def kill_in_the_middle(out, runs, pid, over):
    store = Store(out)
    while not over.is_set():
        if any(
            (store.checkpoints(r.settings).folder / "state.pt").exists() and not store.finished(r)
            for r in runs
        ):
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.005)


def test_no_scheduler_is_one_sentence(tmp_path, capsys):
    assert main(["odds", "--out", str(tmp_path), "--scheduler", "tcp://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.strip() == (
        "studies: no scheduler answers at tcp://127.0.0.1:9; start one with `dask scheduler`."
    )


def test_a_cluster_that_cannot_import_the_studies_is_one_sentence(tmp_path, capfd):
    """A real scheduler that knows nothing of this folder."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--port",
        "0",
        "--no-dashboard",
    ]
    note = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen([*command, "--scheduler-file", str(note)], cwd=tmp_path, env=alone)
    try:
        while not note.exists() or not note.read_text().strip():
            assert scheduler.poll() is None
            time.sleep(0.05)
        address = json.loads(note.read_text())["address"]
        assert main(["odds", "--out", str(tmp_path), "--scheduler", address]) == 2
    finally:
        scheduler.kill()
        scheduler.wait()
    assert "cannot import `studies`" in capfd.readouterr().err
