"""The command in a process of its own, whose memory and processor time are limited and measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ADDRESSES = (
    8 << 30
)  # bytes of addresses that a child may have: an attack that works must not take the machine down
WAIT = 300  # seconds until a child that does nothing is given up
SECONDS = 40  # of processor time


@dataclass(frozen=True)
class Outcome:
    """How a child ended: its exit code (negative: the signal), what it wrote, its peak memory and
    its time.
    """

    code: int
    out: str
    err: str
    megabytes: int
    seconds: float

    def fault(self, megabytes: int) -> str:
        """What is wrong with it; empty where it read the file, or refused it in one line, with so
        much memory.
        """
        if self.code not in (0, 1, 2, 3):
            return f"exit {self.code}: {self.err[-200:]}"
        if "Traceback" in self.err or "Warning" in self.err:
            return f"trace: {self.err[-200:]}"
        if self.code == 2 and max(map(len, self.err.splitlines()), default=0) > 2000:
            return f"an error of {len(self.err):,} characters"
        return f"{self.megabytes:,} MB" if self.megabytes > megabytes else ""


# A process begins with the memory of the one that it was forked from, so a small one stands
# between.
LAUNCHER = """
import json, os, resource, sys
addresses, seconds, report, *call = sys.argv[1:]
pid = os.fork()
if pid == 0:
    resource.setrlimit(resource.RLIMIT_AS, (int(addresses),) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds),) * 2)
    os.execv(call[0], call)
_, status, used = os.wait4(pid, 0)
with open(report, "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), used.ru_maxrss // 1024], file)
"""


def run(
    args: Sequence[str | Path], *, stdin: Path | None = None, env: dict[str, str] | None = None
) -> Outcome:
    """`howsure ARGS` in a child."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report, out, err = (Path(folder) / name for name in ("report", "out", "err"))
        call = [
            sys.executable,
            "-S",
            "-E",
            "-c",
            LAUNCHER,
            str(ADDRESSES),
            str(SECONDS),
            str(report),
        ]
        call += [sys.executable, "-m", "howsure.cli", *map(str, args)]
        with open(stdin or os.devnull, "rb") as source, out.open("wb") as a, err.open("wb") as b:
            child = subprocess.Popen(
                call,
                stdin=source,
                stdout=a,
                stderr=b,
                env=_environment(env),
                start_new_session=True,
            )
            try:
                child.wait(WAIT)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        code, megabytes = (
            json.loads(report.read_text()) if report.exists() else (-signal.SIGKILL, 0)
        )
        return Outcome(code, _text(out), _text(err), megabytes, time.monotonic() - start)


def _environment(more: dict[str, str] | None) -> dict[str, str]:
    path = os.pathsep.join(p for p in sys.path if p)
    return {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **(more or {}),
    }


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(1 << 20).decode("utf-8", "replace")
