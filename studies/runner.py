"""Carry out a list of runs: skip what is finished, go on with what was killed, save each at once."""

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import torch

from .data import load
from .extras import EXTRAS, Finished
from .predictions import record, split_arrays, write
from .progress import bar, say
from .runs import Run
from .store import Store
from .training import Task, train

WAIT = 20.0
ONE_AT_A_TIME = (
    Lock()
)  # PyTorch has one random state per process; two runs in two threads would share it


def carry_out(runs: Sequence[Run], data: Path, store: Store) -> None:
    """All runs, in order; those claimed by another process are looked at again at the end."""
    left = store.unfinished(runs)
    while left:
        for run in left:
            attempt(run, data, store)
        left = store.unfinished(left)
        if left:
            time.sleep(WAIT)


def attempt(run: Run, data: Path, store: Store) -> None:
    """Nothing happens where another process has the run or has finished it."""
    with ONE_AT_A_TIME, store.claim(run) as mine:
        if mine and not store.finished(run):
            carry_out_one(run, data, store)


def carry_out_one(run: Run, data: Path, store: Store) -> None:
    torch.set_num_threads(1)
    start = time.perf_counter()
    settings, checkpoints = run.settings, store.checkpoints(run.settings)
    task = Task.of(settings, load(settings.data, data))
    say(f"{settings.name} ({run.label}, seed {settings.seed})")
    network, history = train(settings, task, checkpoints, lambda row: show(run, row))
    if "" in store.missing(run):
        write(
            {**split_arrays(network, task), **record(settings, history)},
            store.predictions(settings),
        )
    for extra in store.missing(run):
        found = EXTRAS[extra](Finished(network, task, settings, checkpoints))
        write(found, store.predictions(settings, extra))
    say(f"{settings.name} done in {(time.perf_counter() - start) / 60:.1f} min")


def show(run: Run, row: dict[str, float]) -> None:
    note = f"loss {row['train_loss']:.3f}  val error {row['val_error']:.3f}  {row['seconds']:.0f} s"
    bar(run.label, int(row["epoch"]), run.settings.epochs, note)
    say(f"  epoch {row['epoch']:.0f}/{run.settings.epochs}  {note}")
