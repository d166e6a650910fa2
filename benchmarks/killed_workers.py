"""Kill workers of a Dask cluster while they evaluate, at random moments, and see what becomes of
the result.

    python -m benchmarks.killed_workers FILES... [--kills 20] [--seed 0] [--rows 131072]

Every round evaluates all files on a scheduler and two workers, real processes; one worker is ended
by SIGKILL, and another is started in its place. A round is right (every count equal to those of
this process), an error that says so, or wrong. Exit 1 if any round was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from howsure import InputError, workers
from howsure.scale import many_files
from howsure.scale.many_files import Job, expand_paths, gather, plan_parts
from howsure.scale.parts import PartResult, Settings, load_or_summarise

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Cluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, size: int = 2, preload: str | None = None):
        self.preload = [] if preload is None else ["--preload", preload]
        self.folder = tempfile.TemporaryDirectory()
        note = Path(self.folder.name, "scheduler.json")
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = _dask("scheduler", *options, "--scheduler-file", str(note))
        # It takes a free port itself, and says which: one that was free before may be taken.
        while not note.exists() or not note.read_text().strip():
            if self.scheduler.poll() is not None:
                raise RuntimeError("the scheduler did not start")
            time.sleep(0.05)
        self.address: str = json.loads(note.read_text())["address"]
        self.workers = [self._worker() for _ in range(size)]

    def _worker(self) -> subprocess.Popen[bytes]:
        return _dask(
            "worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard", *self.preload
        )

    def kill(self, number: int, *, replace: bool = True) -> None:
        """End one worker without a word; start another in its place."""
        os.kill(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()
        if replace:
            self.workers[number] = self._worker()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self.folder.cleanup()


def _dask(*args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "dask", *args], **QUIET)  # type: ignore[call-overload]


def counts(g: PartResult) -> list[Any]:
    """Everything that a result holds, to be compared exactly."""
    assert g.summary is not None
    t = g.summary.tallies["max_prob"]
    return [g.parts, g.summary.files, g.summary.suspects, t.score, t.count, t.loss]


def equal(a: PartResult, b: PartResult) -> bool:
    """Whether two results are the same to the last bit."""
    return all(
        np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y
        for x, y in zip(counts(a), counts(b), strict=True)
    )


def slowed(part: Any, task: Any, seconds: float) -> PartResult:
    """The task with a pause, so that little data give time to kill in."""
    time.sleep(seconds)
    return task(part)


def held(part: Any, task: Any, go: str) -> PartResult:
    """The task, which from the seventh part on waits for a file."""
    while part.index >= 6 and not os.path.exists(go):
        time.sleep(0.05)
    return task(part)


def survived(
    cluster: Cluster, job: Job, task: Any, exact: PartResult, delay: float, victim: int
) -> str:
    """One evaluation with a worker killed after `delay` seconds: right, wrong, or the error."""
    timer = threading.Timer(delay, cluster.kill, (victim,))
    with workers.connected(cluster.address) as mapped:
        timer.start()
        try:
            found = gather(job, task, mapped)
        except InputError as e:
            return f"error: {e}"
        finally:
            timer.join()
    return "right" if equal(found, exact) else "WRONG"


def main(args: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=1 << 17)
    given = parser.parse_args(args)
    many_files.PART_ROWS = given.rows
    settings = Settings()
    job = plan_parts(expand_paths(given.files), settings)
    task = partial(load_or_summarise, settings=settings)
    exact = gather(job, task, map)
    rng, seen = random.Random(given.seed), Counter[str]()
    with Cluster() as cluster:
        start = time.monotonic()
        with workers.connected(cluster.address) as mapped:
            assert equal(gather(job, task, mapped), exact)
        usual = time.monotonic() - start
        print(f"{len(job.parts)} parts, {usual:.1f} s on two workers without a kill")
        for i in range(given.kills):
            delay, victim = rng.uniform(0, usual), rng.randrange(2)
            found = survived(cluster, job, task, exact, delay, victim)
            seen[found.split(":")[0]] += 1
            print(f"{i + 1:2d}: worker {victim} killed after {delay:5.2f} s: {found}", flush=True)
    print(dict(seen))
    return 1 if seen["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
