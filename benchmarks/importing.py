"""`import howsure` against `import numpy`, each in fresh processes that take turns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from .rows import Row

PROCESSES = 31
PROGRAM = "import time; a = time.process_time(); import {}; print(time.process_time() - a)"


def rows() -> Iterator[Row]:
    pairs = [(cpu_seconds("howsure"), cpu_seconds("numpy")) for _ in range(PROCESSES)]
    ours, numpy = (median(column) for column in zip(*pairs, strict=True))
    detail = f"{1e3 * ours:.0f} ms; numpy {1e3 * numpy:.0f} ms; medians of {PROCESSES} processes"
    yield Row("import howsure", ours / numpy, "× import numpy", 1.1, detail=detail)


def cpu_seconds(module: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module)], capture_output=True, text=True, check=True, timeout=60
    )
    return float(done.stdout)
