"""How far a training came: the epochs that are behind it, also where its checkpoints are gone."""

import json
from functools import cache
from pathlib import Path

import torch

from .runs import Run
from .store import Store

FILE = "reached.json"


def reached(store: Store, run: Run) -> int:
    """The epochs of a finished run; of another those of its checkpoint, or of the last that was
    kept."""
    if "" not in store.missing(run):
        return run.settings.epochs
    return max(read_reached(store.root).get(run.settings.name, 0), checkpoint_epoch(store, run))


def checkpoint_epoch(store: Store, run: Run) -> int:
    path = store.checkpoints(run.settings).folder / "state.pt"
    return int(torch.load(path, weights_only=True)["epoch"]) if path.exists() else 0


@cache
def read_reached(root: Path) -> dict[str, int]:
    path = root / "kept" / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep_reached(store: Store, runs: list[Run]) -> None:
    """Of the trainings that are not finished and have begun."""
    found = {run.settings.name: reached(store, run) for run in runs if store.missing(run)}
    begun = {name: epoch for name, epoch in found.items() if epoch}
    path = store.root / "kept" / FILE
    path.write_text(json.dumps(begun, indent=1) + "\n", encoding="utf-8")
    read_reached.cache_clear()
