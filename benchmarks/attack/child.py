"""The command in a process of its own, whose memory and processor time are limited and measured."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ADDRESSES = 8 << 30  # bytes of addresses that a child may have: an attack that works must not take the machine down
SECONDS = 40  # of processor time


@dataclass(frozen=True)
class Outcome:
    """How a child ended: its exit code (negative: the signal), what it wrote, its peak memory and its time."""

    code: int
    out: str
    err: str
    megabytes: int
    seconds: float

    def fault(self, megabytes: int) -> str:
        """What is wrong with it; empty where it read the file, or refused it in one line, with so much memory."""
        if self.code not in (0, 1, 2, 3):
            return f"exit {self.code}: {self.err[-200:]}"
        if "Traceback" in self.err or "Warning" in self.err:
            return f"trace: {self.err[-200:]}"
        if self.code == 2 and max(map(len, self.err.splitlines()), default=0) > 2000:
            return f"an error of {len(self.err):,} characters"
        return f"{self.megabytes:,} MB" if self.megabytes > megabytes else ""


def run(args: Sequence[str | Path], *, stdin: Path | None = None, env: dict[str, str] | None = None) -> Outcome:
    """`howsure ARGS` in a child."""
    call = [sys.executable, "-m", "howsure.cli", *map(str, args)]
    start = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(stdin or os.devnull, "rb") as source:
        child = subprocess.Popen(call, stdin=source, stdout=out, stderr=err, preexec_fn=_limit, env=_environment(env))
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = [_text(file) for file in (out, err)]
    return Outcome(child.returncode, *texts, used.ru_maxrss // 1024, time.monotonic() - start)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _environment(more: dict[str, str] | None) -> dict[str, str]:
    path = os.pathsep.join(p for p in sys.path if p)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **(more or {})}


def _text(file: object) -> str:
    file.seek(0)
    return file.read(1 << 20).decode("utf-8", "replace")
