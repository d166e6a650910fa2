"""What is kept of the published ResNets for CIFAR-10: see `published`, which computes it."""

from functools import cache
from pathlib import Path

import numpy as np

import howsure as hs

FOLDER = Path(__file__).parent / "kept"
DEPTHS = (20, 32, 44, 56)
PARAMETERS = {20: 0.27, 32: 0.46, 44: 0.66, 56: 0.85}  # millions


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


@cache
def read_scaled(depth: int) -> hs.Predictions:
    """All test images, each half with the temperature that was fitted on the other half: no image
    has a part in its own temperature."""
    preds = read_logits(depth)
    temperature = np.ones(preds.n)
    for first in (0, 1):
        fit = np.arange(first, preds.n, 2)
        temperature[1 - first :: 2] = hs.calibrators.Temperature.fit(preds[fit]).temperature
    logits = read_kept("logits")[f"resnet{depth}_logits"].astype(np.float64)
    return hs.Predictions.from_logits(logits / temperature[:, None], preds.labels)


@cache
def read_learnt(depth: int) -> hs.Predictions:
    """10,000 of the 50,000 images that the published networks were trained on, as they are."""
    found = read_kept("train")
    return hs.Predictions.from_logits(found[f"resnet{depth}_logits"], found["labels"])
