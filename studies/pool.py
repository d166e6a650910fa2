"""Runs spread over the workers of a Dask cluster; all of them must see the data and the output folder."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .progress import say
from .runner import WAIT, attempt, unfinished
from .runs import Run
from .store import Store


def carry_out_on(address: str, runs: Sequence[Run], data: Path, store: Store) -> None:
    """One task per run; a worker that dies gives its run to another, which goes on from the checkpoint. Runs that
    belong to a process outside the cluster are looked at again."""
    from howsure.workers import connected

    left = unfinished(runs, store)
    if not left:
        return
    with connected(address) as mapped:
        while left:
            done = (found for found in mapped(partial(named, data=data, store=store), left) if isinstance(found, Run))
            for number, run in enumerate(done, 1):
                say(f"{number} of {len(left)}: {run.settings.name}")
            left = unfinished(left, store)
            if left:
                time.sleep(WAIT)


def named(run: Run, data: Path, store: Store) -> list[str]:
    """Carry out a run; a list, because the cluster adds up what its tasks return."""
    attempt(run, data, store)
    return [run.settings.name]
