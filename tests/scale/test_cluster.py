"""The same call on a real cluster: a scheduler and workers that are processes of their own, some of
them killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import howsure as hs
from howsure import InputError, workers
from howsure.scale.many_files import gather
from howsure.scale.parts import PartResult

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

from benchmarks.killed_workers import Cluster, slowed, survived

Prepared = Callable[..., Any]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


def test_a_cluster_gives_the_same_and_tells_of_each_part(
    cluster: Cluster, tables: list[Path], prepared: Prepared, whole: PartResult, equal: Any
) -> None:
    seen: list[Any] = []
    with workers.connected(cluster.address) as mapped:
        assert equal(gather(*prepared(tables), mapped, seen.append), whole)
    assert seen[-1].parts == 12
    assert len({p.parts for p in seen}) == 12


def test_worker_processes_of_the_command(tables: list[Path]) -> None:
    call = [
        sys.executable,
        "-m",
        "howsure.cli",
        "evaluate",
        *map(str, tables),
        "--workers",
        "2",
        "--json",
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith("howsure: 3,000 answers: confidence = 'confidence'")
    assert done.stderr.count("\n") == 1
    assert json.loads(done.stdout)["metrics"] == hs.evaluate_files(tables).data["metrics"]


def test_killed_workers_cost_time_and_nothing_else(
    cluster: Cluster, tables: list[Path], prepared: Prepared, whole: PartResult
) -> None:
    job, task = prepared(tables)
    slow = partial(slowed, task=task, seconds=0.2)
    for victim, delay in ((0, 0.3), (1, 0.7)):
        assert survived(cluster, job, slow, whole, delay, victim) == "right"


def test_an_interrupt_keeps_what_is_done(
    cluster: Cluster, tables: list[Path], prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, task = prepared(tables)
    done: list[Any] = []

    def pause(seconds: float) -> None:
        if len(done) >= 5 and "interrupted" not in done:
            done.append("interrupted")
            raise KeyboardInterrupt
        time.sleep(seconds)

    monkeypatch.setattr(workers, "time", SimpleNamespace(sleep=pause, monotonic=time.monotonic))
    with workers.connected(cluster.address) as mapped:
        found = gather(job, partial(slowed, task=task, seconds=0.3), mapped, done.append)
    assert 5 <= len(found.parts) < 12
    assert found.summary is not None
    assert found.summary.n == 250 * len(found.parts)


def test_mistakes_on_workers_arrive_as_they_are(
    cluster: Cluster, tables: list[Path], prepared: Prepared
) -> None:
    job, task = prepared(tables)
    tables[1].unlink()
    with (
        workers.connected(cluster.address) as mapped,
        pytest.raises(InputError, match=r"part-1\.parquet does not exist"),
    ):
        gather(job, task, mapped)


def test_workers_of_another_version_are_refused(
    cluster: Cluster, tables: list[Path], prepared: Prepared
) -> None:
    job, task = prepared(tables, version="0.0.1")
    with (
        workers.connected(cluster.address) as mapped,
        pytest.raises(InputError, match=r"a worker runs howsure .*, the driver 0\.0\.1"),
    ):
        gather(job, task, mapped)


def test_a_cluster_without_workers_is_given_up(tables: list[Path], prepared: Prepared) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        Cluster(0) as empty,
        distributed.Client(empty.address, set_as_default=False) as client,
        pytest.raises(InputError, match=r"no worker for 0\.5 s"),
    ):
        gather(*prepared(tables), workers.cluster(client, patience=0.5))


def test_a_lost_scheduler_is_an_error(tables: list[Path], prepared: Prepared) -> None:
    distributed = pytest.importorskip("distributed")
    with Cluster(0) as lost, distributed.Client(lost.address, set_as_default=False) as client:
        timer = threading.Timer(0.5, lost.scheduler.kill)
        timer.start()
        with pytest.raises(InputError, match=r"scheduler was lost|lost track"):
            gather(*prepared(tables), workers.cluster(client))
        timer.join()
