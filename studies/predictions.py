"""Prediction files: what a finished run leaves, and all that the tables read."""

import os
from pathlib import Path

import numpy as np
from torch import nn

from .settings import Settings
from .training import Task, logits_of

TRAIN_ROWS = 3_000


def write(arrays: dict[str, np.ndarray], path: Path) -> None:
    """A compressed npz, through a temporary file, so that a kill never leaves half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, allow_pickle=False, **arrays)
    os.replace(partial, path)


def split_arrays(network: nn.Module, task: Task) -> dict[str, np.ndarray]:
    """Logits, labels and original rows of validation and test, and of the first training images without augmentation."""
    data, rows = task.dataset, task.split
    train_rows = rows.train[:TRAIN_ROWS]
    return {
        **arrays("val", network, task, data.train_x[rows.val], data.train_y[rows.val], rows.val),
        **arrays("test", network, task, data.test_x, data.test_y, np.arange(len(data.test_y))),
        **arrays("train", network, task, data.train_x[train_rows], data.train_y[train_rows], train_rows),
        "class_names": np.array(data.class_names),
    }


def arrays(
    split: str, network: nn.Module, task: Task, x: np.ndarray, y: np.ndarray, rows: np.ndarray
) -> dict[str, np.ndarray]:
    logits = logits_of(network, x, task.normalise).numpy().astype(np.float16)
    return {
        f"{split}_logits": logits,
        f"{split}_labels": y.astype(np.uint8),
        f"{split}_ids": rows.astype(np.int32),
    }


def record(settings: Settings, history: list[dict[str, float]]) -> dict[str, np.ndarray]:
    """How the run was made: its settings as JSON, and one array per column of the history."""
    columns = {f"history_{key}": np.array([row[key] for row in history], np.float32) for key in history[0]}
    return {"settings": np.array(settings.to_json()), **columns}
