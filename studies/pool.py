"""Runs spread over the workers of a Dask cluster; all of them must see the data and the output folder."""

from collections.abc import Sequence
from pathlib import Path

from .progress import say
from .runner import attempt
from .runs import Run
from .store import Store


def carry_out_on(address: str, runs: Sequence[Run], data: Path, store: Store) -> None:
    """One task per run; a worker that dies gives its run to another, which goes on from the checkpoint."""
    from distributed import Client, as_completed

    left = [run for run in runs if not store.finished(run)]
    with Client(address) as client:
        names = [run.settings.name for run in left]
        tasks = client.map(attempt, left, data=data, store=store, key=names, retries=3)
        for number, task in enumerate(as_completed(tasks), 1):
            task.result()
            say(f"{number} of {len(tasks)}: {task.key}")
