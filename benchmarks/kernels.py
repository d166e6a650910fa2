"""Compiled kernels on and off, for rows that stand beside those of NumPy alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from .rows import Row


@contextmanager
def compiled() -> Iterator[None]:
    """Everything inside runs with HOWSURE_FAST=1."""
    before = os.environ.get("HOWSURE_FAST", "0")
    os.environ["HOWSURE_FAST"] = "1"
    try:
        yield
    finally:
        os.environ["HOWSURE_FAST"] = before


def absent(job: str) -> Row | None:
    """A line that says so where numba is not installed."""
    if find_spec("numba") is not None:
        return None
    return Row(job, None, "", detail="left out, cannot be used here: numba is not installed (extra fast)")
