"""The same call on a real cluster: a scheduler and workers that are processes of their own, some of
them killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
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

from benchmarks.killed_workers import Cluster, held, slowed

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
    cluster: Cluster, tables: list[Path], prepared: Prepared, whole: PartResult, equal: Any
) -> None:
    job, task = prepared(tables)
    seen: list[Any] = []

    def kill(progress: Any) -> None:
        """After the second part one worker goes, after the seventh the other."""
        seen.append(progress)
        if len(seen) in (2, 7):
            cluster.kill(len(seen) // 7)

    with workers.connected(cluster.address) as mapped:
        found = gather(job, partial(slowed, task=task, seconds=0.2), mapped, kill)
    assert len(seen) == 12
    assert equal(found, whole)


def test_an_interrupt_keeps_what_is_done(
    cluster: Cluster,
    tables: list[Path],
    prepared: Prepared,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    job, task = prepared(tables)
    go = tmp_path / "go"
    done: list[Any] = []

    def pause(seconds: float) -> None:
        if len(done) >= 5 and "interrupted" not in done:
            done.append("interrupted")
            go.touch()
            raise KeyboardInterrupt
        time.sleep(seconds)

    monkeypatch.setattr(workers, "time", SimpleNamespace(sleep=pause, monotonic=time.monotonic))
    with workers.connected(cluster.address) as mapped:
        found = gather(job, partial(held, task=task, go=str(go)), mapped, done.append)
    assert 5 <= len(found.parts) <= 6
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
    """It is killed when the first part is done."""
    job, task = prepared(tables)
    with (
        Cluster(1) as lost,
        workers.connected(lost.address) as mapped,
        pytest.raises(InputError, match=r"scheduler was lost|lost track"),
    ):
        gather(
            job,
            partial(slowed, task=task, seconds=0.2),
            mapped,
            lambda _: lost.scheduler.kill(),
        )


# Runs the command and kills the scheduler, whose number comes first, when two parts are done.
LOSES_ITS_SCHEDULER = """
import os, signal, sys
from functools import partial
from howsure import workers
from howsure.cli import main
from howsure.scale import many_files

many_files.PART_ROWS = 250
summing = workers.Cluster.sums


def sums(self, f, items, done):
    def tell(item):
        done(item)
        tell.parts += 1
        if tell.parts == 2:
            os.kill(int(sys.argv[1]), signal.SIGKILL)

    tell.parts = 0
    return summing(self, f, items, tell)


workers.Cluster.sums = sums
main(sys.argv[2:])
"""


def test_a_command_that_loses_its_scheduler_says_so_and_is_resumed(
    tables: list[Path], tmp_path: Path
) -> None:
    call = ["evaluate", *map(str, tables), "--json", "-q", "--resume", str(tmp_path / "parts")]
    with Cluster(1) as lost:
        command = [sys.executable, "-c", LOSES_ITS_SCHEDULER, str(lost.scheduler.pid), *call]
        done = subprocess.run(
            [*command, "--scheduler", lost.address], capture_output=True, text=True, check=False
        )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    said = " ".join(done.stderr.split())
    assert "scheduler was lost" in said or "lost track" in said
    with Cluster(1) as second:
        command = [sys.executable, "-m", "howsure.cli", *call, "--scheduler", second.address]
        again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["metrics"] == hs.evaluate_files(tables).data["metrics"]
