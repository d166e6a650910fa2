"""Summaries on disk: whole or not there, known by what they belong to, and enough to go on from
after kill -9.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.scale import parts
from howsure.scale.many_files import gather
from howsure.scale.parts import PartResult

pytest.importorskip("pyarrow")

Prepared = Callable[..., Any]
Equal = Callable[[PartResult, PartResult], bool]


def logged(task: Any, log: list[int]) -> Any:
    """The task, with a record of the parts that it really reads."""

    def call(part: Any) -> PartResult:
        before = set(os.listdir(task.keywords["folder"]))
        found = task(part)
        if set(os.listdir(task.keywords["folder"])) != before:
            log.append(part.index)
        return found

    return call


def test_what_is_stored_is_not_read_again(
    tables: list[Path], tmp_path: Path, prepared: Prepared, whole: PartResult, equal: Equal
) -> None:
    folder = tmp_path / "done"
    folder.mkdir()
    log: list[int] = []
    job, task = prepared(tables, folder)
    assert equal(gather(job, logged(task, log), map), whole)
    assert log == list(range(12))
    assert equal(gather(job, logged(task, log), map), whole)
    assert log == list(range(12))


def test_a_changed_file_and_other_settings_are_noticed(
    tables: list[Path], tmp_path: Path, prepared: Prepared
) -> None:
    folder = tmp_path / "done"
    folder.mkdir()
    gather(*prepared(tables, folder), map)
    log: list[int] = []
    os.utime(tables[1], ns=(1, 1))
    job, task = prepared(tables, folder)
    gather(job, logged(task, log), map)
    assert log == [4, 5, 6, 7]
    job, task = prepared(tables, folder, compact=True)
    gather(job, logged(task, log), map)
    assert len(log) == 16


def test_files_may_be_added(
    tables: list[Path], tmp_path: Path, prepared: Prepared, whole: PartResult, equal: Equal
) -> None:
    folder = tmp_path / "done"
    folder.mkdir()
    gather(*prepared(tables[1:], folder), map)
    log: list[int] = []
    job, task = prepared(tables, folder)
    assert equal(gather(job, logged(task, log), map), whole)
    assert log == [0, 1, 2, 3]


def test_a_broken_summary_is_made_again(
    tables: list[Path], tmp_path: Path, prepared: Prepared, whole: PartResult, equal: Equal
) -> None:
    folder = tmp_path / "done"
    folder.mkdir()
    gather(*prepared(tables, folder), map)
    first, second, *_ = sorted(folder.iterdir())
    first.write_bytes(first.read_bytes()[:100])
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(bytes(data))
    assert equal(gather(*prepared(tables, folder), map), whole)


def test_vectors_and_compact_tallies_come_back_as_they_were(
    tmp_path: Path, prepared: Prepared, equal: Equal
) -> None:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((900, 7))
    np.savez(tmp_path / "a.npz", logits=logits, labels=rng.integers(0, 7, 900))
    for compact in (False, True):
        job, task = prepared(tmp_path / "a.npz", compact=compact)
        found = gather(job, task, map)
        parts.save_result(found, tmp_path / "s.npz")
        back = parts.load_result(tmp_path / "s.npz")
        assert back is not None
        assert equal(PartResult(found.parts, back.summary, back.skipped), found)


def test_nothing_in_a_summary_is_code(
    tables: list[Path], tmp_path: Path, prepared: Prepared
) -> None:
    folder = tmp_path / "done"
    folder.mkdir()
    gather(*prepared(tables, folder), map)
    for path in folder.iterdir():
        with np.load(path, allow_pickle=False) as file:
            assert all(file[name].dtype.kind in "iufb" for name in file.files)


DRIVER = """
import os, sys, time
from functools import partial
from howsure import workers
from howsure.scale import many_files, parts
from howsure.scale.many_files import gather
from howsure.scale.parts import summarise, load_or_summarise
folder, log, go, *files = sys.argv[1:]
many_files.PART_ROWS = 250

def slow(part, settings):
    with open(log, "a") as f:
        f.write(f"{part.index}\\n")
    # After some parts nothing goes on until it is killed, and started again with a `go`.
    while len(open(log).readlines()) > 6 and not os.path.exists(go):
        time.sleep(0.01)
    return summarise(part, settings)

parts.summarise = slow
settings = parts.Settings()
job = many_files.plan_parts(many_files.expand_paths(files), settings)
gather(job, partial(load_or_summarise, settings=settings, folder=folder), workers.threads(2))
"""


def test_after_kill_9_at_most_one_part_per_worker_is_repeated(
    tables: list[Path], tmp_path: Path
) -> None:
    folder, log = tmp_path / "done", tmp_path / "log"
    folder.mkdir()
    go = tmp_path / "go"
    call = [sys.executable, "-c", DRIVER, str(folder), str(log), str(go), *map(str, tables)]
    driver = subprocess.Popen(call)
    while len(list(folder.glob("*.npz"))) < 4:
        assert driver.poll() is None
        time.sleep(0.01)
    os.kill(driver.pid, signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL
    stored = len(list(folder.glob("*.npz")))
    assert 4 <= stored < 12
    go.touch()
    subprocess.run(call, check=True)
    begun = Counter(log.read_text().split())
    assert len(begun) == 12
    assert sum(begun.values()) - 12 <= 2


def test_the_report_says_how_much_was_there(tables: list[Path], tmp_path: Path) -> None:
    hs.evaluate_files(tables[:1], resume=tmp_path / "done", map=map)
    report = hs.evaluate_files(tables, resume=tmp_path / "done", map=map)
    assert report.data["streamed"]["resumed"] == 4
