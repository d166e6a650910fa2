"""Runs spread over the workers of a Dask cluster; all of them must see the data and the output
folder.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from .data import DataError
from .progress import say
from .runner import WAIT, attempt
from .runs import Run
from .store import Store

ROOT = Path(__file__).resolve().parents[1]
SIGNS = ("No module named 'studies'", "deserialization", "no worker")


def carry_out_on(address: str, runs: Sequence[Run], data: Path, store: Store) -> None:
    """One task per run; a worker that dies gives its run to another, which goes on from the
    checkpoint. Runs that belong to a process outside the cluster are looked at again."""
    from howsure.workers import connected

    left = store.unfinished(runs)
    if not left:
        return
    with connected(address) as mapped:
        while left:
            try:
                spread(left, mapped, data, store)
            except (ValueError, ModuleNotFoundError) as error:
                raise explained(error) from None
            left = store.unfinished(left)
            if left:
                time.sleep(WAIT)


def spread(left: Sequence[Run], mapped: Callable, data: Path, store: Store) -> None:
    for number, name in enumerate(mapped(partial(named, data=data, store=store), left), 1):
        say(f"{number} of {len(left)}: {name}")


def explained(error: Exception) -> Exception:
    """With the most likely reason in words: `studies` is a folder and not installed, and the
    cluster imports it too.
    """
    if any(sign in str(error) for sign in SIGNS):
        return DataError(
            "the cluster cannot import `studies` or has lost its workers; "
            f"start scheduler and workers with PYTHONPATH={ROOT}."
        )
    return error


def named(run: Run, data: Path, store: Store) -> str:
    """Carry out a run, and name it."""
    attempt(run, data, store)
    return run.settings.name
