"""`import howsure` against `import numpy`, each in fresh processes that take turns.

Names are resolved on first use, so `import howsure` alone does not even load NumPy; what a user
pays before the first tally is measured too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from .commands import KEPT
from .rows import Row

PROCESSES = 31
PROGRAM = "import time; a = time.process_time(); import {}; print(time.process_time() - a)"


def rows() -> Iterator[Row]:
    programs = ("howsure", "howsure; howsure.tally; howsure.aurc", "numpy")
    turns = [[cpu_seconds(program) for program in programs] for _ in range(PROCESSES)]
    bare, used, numpy = (median(column) for column in zip(*turns, strict=True))
    jobs = (
        ("import howsure", bare, 1.1, None),
        ("import howsure and its first metric", used, 1.3, 1.1),
    )
    for job, ours, must, moonshot in jobs:
        detail = (
            f"{1e3 * ours:.0f} ms; numpy {1e3 * numpy:.0f} ms; medians of {PROCESSES} processes"
        )
        yield Row(job, ours / numpy, "× import numpy", must, moonshot, detail=detail)


def cpu_seconds(module: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=KEPT,
    )
    return float(done.stdout)
