"""Compiled kernels for the hottest loops, used only where `HOWSURE_FAST=1` asks for them (extra `fast`: numba).

They are optional: each has a NumPy counterpart that agrees within 1e-12, and without the variable numba is not
imported, because loading it takes longer than most jobs. They are compiled at the first call and cached on disk, so
the seconds that this takes are spent once per machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TypeVar

from howsure._core.optional import need

F = TypeVar("F", bound=Callable[..., object])
FUSED = {"contract"}  # a product and a sum may be rounded once
LOOSE = FUSED | {"reassoc", "nsz", "nnan"}  # and sums may be taken in any order; no kernel ever meets a nan


def kernels(name: str) -> ModuleType | None:
    """The module `howsure._core.fast.<name>` if HOWSURE_FAST=1, else None.

    >>> import os
    >>> kernels("ranks") is None if os.environ.get("HOWSURE_FAST", "") in ("", "0") else True
    True
    """
    if os.environ.get("HOWSURE_FAST", "0") in ("", "0"):
        return None
    need("numba", for_="HOWSURE_FAST=1", extra="fast")
    return import_module(f"howsure._core.fast.{name}")


def compiled(f: F) -> F:
    """`f` compiled at its first call for the types it gets, and kept on disk."""
    return _njit(f, LOOSE)


def as_written(f: F) -> F:
    """The same for a function in which the order of the operations matters."""
    return _njit(f, FUSED)


def _njit(f: F, flags: set[str]) -> F:
    return need("numba", for_="a fast kernel", extra="fast").njit(cache=True, fastmath=flags)(f)
