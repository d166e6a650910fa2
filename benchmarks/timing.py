"""CPU time of a call, the best of several, and memory it needs at its peak."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

Job = Callable[[], Any]


def seconds(*jobs: Job, repeats: int) -> list[float]:
    """Best CPU seconds of each job; the jobs take turns, so that a busy moment strikes them all."""
    best = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for i, job in enumerate(jobs):
            best[i] = min(best[i], once(job))
    return best


def once(job: Job) -> float:
    gc.collect()
    start = time.process_time()
    job()
    return time.process_time() - start


def peak_bytes(job: Job) -> int:
    """Memory that was newly allocated and alive at the same time, as NumPy and Python report it."""
    gc.collect()
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
