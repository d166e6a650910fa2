"""Runs on a Dask cluster of real worker processes."""

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
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        assert main(["odds", "--out", str(tmp_path), "--scheduler", cluster.scheduler_address]) == 0
    for run in runs_of(["odds"], "smoke"):
        here, there = (np.load(Store(out).predictions(run.settings))["test_logits"] for out in (tmp_path, smoke))
        assert np.array_equal(here, there)


def test_no_scheduler_is_one_sentence(tmp_path, capsys):
    assert main(["odds", "--out", str(tmp_path), "--scheduler", "tcp://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.strip() == (
        "studies: no scheduler answers at tcp://127.0.0.1:9; start one with `dask scheduler`."
    )
