"""Runs on a Dask cluster."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
distributed = pytest.importorskip("distributed")

from studies.plans import runs_of  # noqa: E402
from studies.pool import carry_out_on  # noqa: E402
from studies.store import Store  # noqa: E402


def test_runs_are_spread_over_workers(tmp_path):
    runs, store = runs_of(["odds"], "smoke"), Store(tmp_path)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        carry_out_on(cluster.scheduler_address, runs, Path(), store)
    assert all(store.finished(run) for run in runs)
