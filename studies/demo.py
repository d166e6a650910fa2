"""The network behind `howsure demo`: a small CNN on Fashion-MNIST, nothing done for or against its
confidence.
"""

from pathlib import Path

import numpy as np

from .checkpoints import Checkpoints
from .data import load
from .predictions import split_arrays, write
from .settings import Settings
from .training import Task, train

SETTINGS = Settings(
    data="fashion_mnist", network="cnn", train_size=20_000, epochs=12, batch=128, optimiser="adamw", lr=1e-3,
    schedule="constant", weight_decay=0.01, dropout=0.5, augment=False,
)  # fmt: skip
FILE = "fashion_mnist_cnn.npz"
SHIPPED = ("logits", "labels", "ids")


def demo(data: Path, out: Path) -> Path:
    """Train, and write validation and test predictions."""
    task = Task.of(SETTINGS, load("fashion_mnist", data))
    network, _ = train(SETTINGS, task, Checkpoints(out / "checkpoints" / SETTINGS.name), print)
    found = split_arrays(network, task)
    found["val_ids"] = task.split.val.astype(np.int32)
    found["test_ids"] = np.arange(len(found["test_labels"]), dtype=np.int32)
    keep = {
        f"{split}_{part}": found[f"{split}_{part}"] for split in ("val", "test") for part in SHIPPED
    }
    path = out / FILE
    write({**keep, "class_names": found["class_names"]}, path)
    return path


def summary(path: Path) -> str:
    with np.load(path, allow_pickle=False) as file:
        return "\n".join(
            describe(file[f"{s}_logits"], file[f"{s}_labels"], s) for s in ("val", "test")
        )


def describe(logits: np.ndarray, labels: np.ndarray, split: str) -> str:
    z = logits.astype(np.float64)
    confidence = 1 / np.exp(z - z.max(1, keepdims=True)).sum(1)
    accuracy = (z.argmax(1) == labels).mean()
    return f"{split}: {len(labels):,} images, accuracy {accuracy:.4f}, mean confidence {confidence.mean():.4f}"
