"""What is kept of the published ResNets for CIFAR-10: see `published`, which computes it."""

from functools import cache
from pathlib import Path

import numpy as np

import howsure as hs

FOLDER = Path(__file__).parent / "kept"
DEPTHS = (20, 32, 44, 56)


def is_kept(*names: str) -> bool:
    return all((FOLDER / f"published_{name}.npz").exists() for name in names)


@cache
def read_kept(name: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / f"published_{name}.npz") as found:
        return dict(found)


@cache
def read_logits(depth: int) -> hs.Predictions:
    """All 10,000 test images."""
    found = read_kept("logits")
    return hs.Predictions.from_logits(found[f"resnet{depth}_logits"], found["labels"])
