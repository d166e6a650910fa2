"""A system clock that is set back while howsure runs: nothing that is decided, stored or estimated
looks at it.

The processes are real. Each look at the clock finds it an hour earlier than the look before; the
monotonic clock, which nobody can set, is left as it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure._core.saving import identify_saved
from howsure.policies import DriftMonitor, OnlinePolicy, Policy
from howsure.serving import GuaranteeMonitor

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux", reason="left out: needs gcc on Linux"
)

CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long looks;

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec -= 3600 * __sync_add_and_fetch(&looks, 1);
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec read;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &read);
  now->tv_sec = read.tv_sec;
  now->tv_usec = read.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec read;
  clock_gettime(CLOCK_REALTIME, &read);
  if (now) *now = read.tv_sec;
  return read.tv_sec;
}
"""


@pytest.fixture(scope="module")
def backwards(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process whose clock goes backwards."""
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(CLOCK)
    made = folder / "clock.so"
    command = ["gcc", "-shared", "-fPIC", "-o", str(made), str(folder / "clock.c")]
    subprocess.run(command, check=True, capture_output=True)
    env = {**os.environ, "LD_PRELOAD": str(made)}
    look = "import time; from datetime import datetime as d; a, b = time.time(), d.now(); "
    look += "assert time.time() < a - 3000 and d.now() < b and time.monotonic() <= time.monotonic()"
    subprocess.run([sys.executable, "-c", look], env=env, check=True)
    return env


def run(folder: Path, env: dict[str, str] | None, *args: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "howsure", *args]
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stdout


def make_folder(folder: Path) -> Path:
    """A policy with its monitors, a stream that drifts, and labels that break the guarantee."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    policy = Policy("max_prob", 0.6)
    hs.save(policy, folder / "policy.json")
    start = policy.decide(hs.Predictions.from_confidence(rng.random(400)))
    hs.save(DriftMonitor.start(start), folder / "drift.json")
    stamp = identify_saved(folder / "policy.json")[1][:12]
    hs.save(GuaranteeMonitor.start(risk=0.1, policy=stamp), folder / "kept.json")
    online = OnlinePolicy.start(policy, np.linspace(0.5, 1, 11), risk=0.2, audit=1.0)
    hs.save(online, folder / "online.json")
    sure = np.concatenate([rng.random(150), rng.random(250) ** 4]).round(3).tolist()
    rows = "".join(f'{{"id": "x{i}", "confidence": {c}}}\n' for i, c in enumerate(sure))
    (folder / "in.jsonl").write_text(rows)
    right = rng.random(2000) < 0.8
    for name, part in ("val", slice(0, 1000)), ("new", slice(1000, 2000)):
        preds = hs.Predictions.from_confidence(rng.beta(5, 1.2, 1000), right[part])
        hs.write(preds, folder / f"{name}.csv")
    return folder


def read_all(folder: Path) -> dict[str, bytes]:
    """Every file but those that say when they were written."""
    return {f.name: f.read_bytes() for f in sorted(folder.iterdir()) if f.name != "alarms.jsonl"}


def test_decisions_states_and_estimates(tmp_path: Path, backwards: dict[str, str]) -> None:
    found: list[dict[str, bytes]] = []
    said: list[list[str]] = []
    for name, env in ("usual", None), ("back", backwards):
        folder = make_folder(tmp_path / name)
        monitors = ["--drift", "drift.json", "--guarantee", "kept.json", "--labels", "came.jsonl"]
        first = ["decide", "policy.json", "in.jsonl", "-o", "out.jsonl", "-q"]
        (folder / "came.jsonl").write_text("")
        run(folder, env, *first, *monitors, "--alarms", "alarms.jsonl", code=3)
        made = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
        labels = [json.dumps({**row, "correct": 0}) + "\n" for row in made]
        (folder / "came.jsonl").write_text("".join(labels))
        # Resumed, with the labels that have come since.
        more = (folder / "in.jsonl").read_text().replace("x", "y")
        with (folder / "in.jsonl").open("a") as file:
            file.write(more)
        run(folder, env, *first, "--resume", *monitors, "--alarms", "alarms.jsonl", code=3)
        run(folder, env, "decide", "online.json", "in.jsonl", "-o", "online.jsonl", "-q")
        texts = [
            run(folder, env, "evaluate", "val.csv", "-q", "-o", "e.csv"),
            run(folder, env, "monitor", "val.csv", "new.csv", "--policy", "policy.json"),
            run(folder, env, "threshold", "val.csv", "--risk", "0.3", "-o", "made.json"),
        ]
        found.append(read_all(folder))
        said.append(texts)
        alarms = [json.loads(line) for line in (folder / "alarms.jsonl").read_text().splitlines()]
        assert {alarm["state"] for alarm in alarms} == {"drift.json", "kept.json"}
    assert said[0] == said[1]
    assert found[0] == found[1]


def test_pages_and_exports_are_written(tmp_path: Path, backwards: dict[str, str]) -> None:
    """They hold the day on which they were made, and nothing else that differs."""
    folder = make_folder(tmp_path / "back")
    run(folder, backwards, "evaluate", "val.csv", "--html", "page.html", "-q")
    assert "</html>" in (folder / "page.html").read_text()
    options = ["--to", "sql", "--input", "confidence", "--expires", "2020-01-01"]
    run(folder, backwards, "export", "policy.json", *options, "-o", "policy.sql", "-q")
    assert "2020-01-01" in (folder / "policy.sql").read_text()


def test_parts_of_files_with_odd_times(tmp_path: Path) -> None:
    """A stored part belongs to a file by its time, which may lie in the future or go back: then it
    is counted anew.
    """
    folder = make_folder(tmp_path / "odd")
    call = ["evaluate", "val.csv", "--stream", "--resume", "parts", "--json", "-q"]
    for when in (0, 1, 2**33, 5):
        os.utime(folder / "val.csv", (when, when))
        first = json.loads(run(folder, None, *call))
    rows = (folder / "val.csv").read_text().splitlines()
    flipped = [row[:-1] + "10"[int(row[-1])] for row in rows[1:]]
    (folder / "val.csv").write_text("\n".join([rows[0], *flipped]) + "\n")
    os.utime(folder / "val.csv", (4, 4))  # of the same size, and older than what is stored
    after = json.loads(run(folder, None, *call))
    total = sum(found["metrics"]["accuracy"]["value"] for found in (first, after))
    assert total == pytest.approx(1)


def test_a_service_answers_and_keeps_its_journal(tmp_path: Path, backwards: dict[str, str]) -> None:
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("uvicorn")
    folder = make_folder(tmp_path / "back")
    command = [sys.executable, "-m", "howsure", "serve", "policy.json", "--port", "0"]
    command += ["--drift", "drift.json", "--guarantee", "kept.json", "--labels", "came.jsonl"]
    (folder / "came.jsonl").write_text("")
    rows = [json.loads(line) for line in (folder / "in.jsonl").read_text().splitlines()]
    with subprocess.Popen(
        command, cwd=folder, env=backwards, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            url = re.search(r"http://[\d.]+:\d+", process.stderr.readline())
            assert url is not None
            with httpx.Client(base_url=url[0], timeout=300) as client:
                first = [client.post("/decide", json=row).json() for row in rows[:50]]
                again = [client.post("/decide", json=row).json() for row in rows[:50]]
                many = client.post("/decide", json=rows[50:]).json()
                labels = [{"id": row["id"], "correct": 0} for row in [*first, *many]]
                assert client.post("/labels", json=labels).status_code == 200
                assert client.get("/metrics").status_code == 200
                assert client.get("/healthz").status_code == 200
        finally:
            process.terminate()
        assert process.wait() == 3
        assert "Traceback" not in process.stderr.read()
    assert first == again
    journal = [json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines()]
    assert journal == [*first, *many]
    assert hs.load(folder / "kept.json").alarms
    assert hs.load(folder / "drift.json").written == len(rows)
