"""What some studies keep besides the logits: dropout passes, scores that need the network, the course of training."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import Normaliser, in_order
from .checkpoints import Checkpoints
from .settings import Settings
from .training import Task, logits_of

MC_PASSES, MC_VAL, MC_TEST = 25, 1_000, 2_000
DROPOUT_RATES = (0.002, 0.01, 0.05)
VARIANCE_PASSES = 30
COURSE_TEST, COURSE_TRAIN = 2_500, 1_500
Part = tuple[np.ndarray, np.ndarray]  # images and labels


@dataclass(frozen=True)
class Finished:
    """A trained network with all that made it."""

    network: nn.Module
    task: Task
    settings: Settings
    checkpoints: Checkpoints


def mc(run: Finished) -> dict[str, np.ndarray]:
    """Logits of each dropout pass (Laves): 25 passes over the first validation and test images."""
    data, val = run.task.dataset, run.task.split.val[:MC_VAL]
    parts = {"val": (data.train_x[val], data.train_y[val]), "test": (data.test_x[:MC_TEST], data.test_y[:MC_TEST])}
    found: dict[str, np.ndarray] = {}
    for split, (images, labels) in parts.items():
        passes = dropout_passes(run, features_of(run, images), rate=run.settings.dropout, passes=MC_PASSES)
        found[f"mc_{split}_logits"] = passes.numpy().astype(np.float16)
        found[f"{split}_logits"] = logits_of(run.network, images, run.task.normalise).numpy().astype(np.float16)
        found[f"{split}_labels"] = labels
    return found


def dropout_variance(run: Finished) -> dict[str, np.ndarray]:
    """Variance over dropout passes, summed over classes, at Finlay's three rates; kept as scores, because the
    differences between passes at the smallest rate are below the resolution of float16 logits."""
    features = features_of(run, run.task.dataset.test_x)
    return {
        f"test_dropout_variance_{rate}": spread(dropout_passes(run, features, rate=rate, passes=VARIANCE_PASSES))
        for rate in DROPOUT_RATES
    }


def spread(passes: Tensor) -> np.ndarray:
    return passes.softmax(2).var(0, unbiased=False).sum(1).numpy()


def features_of(run: Finished, images: np.ndarray) -> Tensor:
    """What dropout acts on; computed once for all passes, since dropout comes only after it."""
    return logits_of(run.network.features, images, run.task.normalise)


def dropout_passes(run: Finished, features: Tensor, *, rate: float, passes: int) -> Tensor:
    """Logits (passes, n, classes)."""
    generator = torch.Generator().manual_seed(run.settings.seed)
    with torch.inference_mode():
        return torch.stack([run.network.last(dropped(features, rate, generator)) for _ in range(passes)])


def dropped(features: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    keep = torch.rand(features.shape, generator=generator) >= rate
    return features * keep / (1 - rate)


def boundary(run: Finished) -> dict[str, np.ndarray]:
    """First-order distance to the decision boundary (Vemuri, Elsayed), validation and test."""
    data, rows = run.task.dataset, run.task.split.val
    parts = {"val": (data.train_x[rows], data.train_y[rows]), "test": (data.test_x, data.test_y)}
    return distances(run.network, parts, run.task.normalise)


def distances(network: nn.Module, parts: dict[str, Part], normalise: Normaliser) -> dict[str, np.ndarray]:
    """To the boundary between the two most likely classes, in units of the normalised input."""
    from howsure.torch import boundary_distance  # training alone needs no howsure

    return {
        f"{split}_boundary_distance": boundary_distance(
            network, in_order(images, labels, normalise), progress=False
        ).astype(np.float32)
        for split, (images, labels) in parts.items()
    }


def course(run: Finished) -> dict[str, np.ndarray]:
    """Confidence, correctness and loss after every epoch, on test and training images: early stopping, overfitting."""
    data, train = run.task.dataset, run.task.split.train[:COURSE_TRAIN]
    parts = {
        "test": (data.test_x[:COURSE_TEST], data.test_y[:COURSE_TEST]),
        "train": (data.train_x[train], data.train_y[train]),
    }
    rows = [epoch_columns(run, epoch, parts) for epoch in range(1, run.settings.epochs + 1)]
    run.checkpoints.load_weights(run.network, run.settings.epochs)
    return {key: np.stack([row[key] for row in rows]) for key in rows[0]}


def epoch_columns(run: Finished, epoch: int, parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    network = run.checkpoints.load_weights(run.network, epoch)
    found: dict[str, np.ndarray] = {}
    for split, (images, labels) in parts.items():
        logits = logits_of(network, images, run.task.normalise)
        target = torch.from_numpy(labels).long()
        found[f"{split}_confidence"] = logits.softmax(1).amax(1).numpy().astype(np.float16)
        found[f"{split}_correct"] = (logits.argmax(1) == target).numpy()
        found[f"{split}_nll"] = F.cross_entropy(logits, target, reduction="none").numpy().astype(np.float16)
    return found


EXTRAS = {"mc": mc, "dropout_variance": dropout_variance, "boundary": boundary, "course": course}
