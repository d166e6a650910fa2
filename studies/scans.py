"""The U-Net behind docs/imaging.md: nuclei, cross entropy, as many images for the promise as for
the training.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from .checkpoints import Checkpoints
from .data import load
from .plans.segmentation import NUCLEI
from .predictions import rounded, write
from .training import Task, logits_of, train

SETTINGS = replace(
    NUCLEI, network="unet-8", loss="cross_entropy", train_size=265, val_size=264, epochs=18
)
FILE = "nuclei_unet.npz"
EVERY = 4  # pixels in both directions that one is kept of


def scans(data: Path, out: Path) -> Path:
    """Train, and write predictions of all validation and test images as `hs.read` takes them."""
    task = Task.of(SETTINGS, load("nuclei", data))
    network, _ = train(SETTINGS, task, Checkpoints(out / "checkpoints" / SETTINGS.name), print)
    found, rows = task.dataset, task.split.val
    arrays = {"class_names": np.array(found.class_names)}
    for split, x, y in (
        ("val", found.train_x[rows], found.train_y[rows]),
        ("test", found.test_x, found.test_y),
    ):
        logits = logits_of(network, x, task.normalise).numpy()
        arrays |= {
            f"{split}_logits": thinned(logits),
            f"{split}_labels": y[:, ::EVERY, ::EVERY].astype(np.uint8),
            f"{split}_image_ids": np.array([f"{split}{i:03}" for i in range(len(y))]),
        }
    path = out / "predictions" / FILE
    write(arrays, path)
    return path


def thinned(logits: np.ndarray) -> np.ndarray:
    """Every fourth pixel in both directions, with 0 for the background, which leaves the softmax as
    it is.
    """
    difference = rounded((logits[:, 1] - logits[:, 0])[:, ::EVERY, ::EVERY].astype(np.float16))
    return np.stack([np.zeros_like(difference), difference], axis=1)
