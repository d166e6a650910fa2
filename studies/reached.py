"""How far a training came, also where its checkpoints and predictions are gone: the epochs that are
behind it, and of a finished one how often it is right and its ECE.
"""

import json
from functools import cache
from pathlib import Path
from typing import TypedDict

import torch

import howsure as hs

from .counts import read_test
from .runs import Run
from .store import Store

FILE = "reached.json"


def reached(store: Store, run: Run) -> int:
    """The epochs of a finished run; of another those of its checkpoint, or of the last that was
    kept."""
    if "" not in store.missing(run):
        return run.settings.epochs
    kept = read_reached(store.root).get(run.settings.name)
    return max(kept["epoch"] if kept else 0, checkpoint_epoch(store, run))


def checkpoint_epoch(store: Store, run: Run) -> int:
    path = store.checkpoints(run.settings).folder / "state.pt"
    return int(torch.load(path, weights_only=True)["epoch"]) if path.exists() else 0


class Reached(TypedDict):
    """`accuracy` and `ece` are those of the test images, None where it is not finished."""

    epoch: int
    accuracy: float | None
    ece: float | None


@cache
def read_reached(root: Path) -> dict[str, Reached]:
    path = root / "kept" / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def measure_reached(store: Store, run: Run) -> Reached:
    """From the predictions where they are here, else as it was kept."""
    path = store.predictions(run.settings)
    preds = read_test(path) if path.exists() else None
    if preds is not None:
        return {
            "epoch": run.settings.epochs,
            "accuracy": round(float(hs.accuracy(preds)), 6),
            "ece": round(float(hs.ece(preds)), 6),
        }
    kept = read_reached(store.root).get(run.settings.name)
    epoch = reached(store, run)
    if kept is not None and kept["epoch"] >= epoch:
        return kept
    return {"epoch": epoch, "accuracy": None, "ece": None}


def keep_reached(store: Store, runs: list[Run]) -> None:
    """Of the trainings that have begun."""
    found = {run.settings.name: measure_reached(store, run) for run in runs}
    begun = {name: came for name, came in found.items() if came["epoch"]}
    path = store.root / "kept" / FILE
    path.write_text(json.dumps(begun, indent=1) + "\n", encoding="utf-8")
    read_reached.cache_clear()
