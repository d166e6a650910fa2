"""What some studies keep besides the logits: dropout passes, scores that need the network, the
course of training.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import IN_ORDER, in_order
from .checkpoints import Checkpoints
from .predictions import outputs, rounded
from .settings import Settings
from .shifts import NAMES as SHIFTS
from .shifts import shifted
from .training import Task, logits_of

MC_PASSES, MC_VAL, MC_TEST = 25, 1_000, 2_000
FEATURES_VAL = 2_500
DROPOUT_RATES = (0.002, 0.01, 0.05)
VARIANCE_PASSES = 30
COURSE_TEST, COURSE_TRAIN, LONG_STEP = 2_500, 1_500, 4
TRAIN_ROWS = 3_000
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
    parts = {
        "val": (data.train_x[val], data.train_y[val]),
        "test": (data.test_x[:MC_TEST], data.test_y[:MC_TEST]),
    }
    found: dict[str, np.ndarray] = {}
    for split, (images, labels) in parts.items():
        passes = dropout_passes(
            run, features_of(run, images), rate=run.settings.dropout, passes=MC_PASSES
        )
        found[f"mc_{split}_logits"] = rounded(passes.numpy().astype(np.float16))
        found[f"{split}_logits"] = (
            logits_of(run.network, images, run.task.normalise).numpy().astype(np.float16)
        )
        found[f"{split}_labels"] = labels
    return found


def features(run: Finished) -> dict[str, np.ndarray]:
    """What the last layer sees of all test and half of the validation images, and that layer:
    dropout passes are drawn from these, as many as one likes."""
    data, val = run.task.dataset, run.task.split.val[:FEATURES_VAL]
    parts = {"val": (data.train_x[val], data.train_y[val]), "test": (data.test_x, data.test_y)}
    found = {
        f"{s}_features": rounded(features_of(run, x).numpy().astype(np.float16))
        for s, (x, _) in parts.items()
    }
    found |= {f"{split}_labels": labels for split, (_, labels) in parts.items()}
    last = run.network.last
    return found | {"weight": last.weight.detach().numpy(), "bias": last.bias.detach().numpy()}


def dropout_variance(run: Finished) -> dict[str, np.ndarray]:
    """Variance over dropout passes, summed over classes, at Finlay's three rates; kept as scores,
    because the differences between passes at the smallest rate are below the resolution of float16
    logits."""
    features = features_of(run, run.task.dataset.test_x)
    return {
        f"test_dropout_variance_{rate}": spread(
            dropout_passes(run, features, rate=rate, passes=VARIANCE_PASSES)
        )
        for rate in DROPOUT_RATES
    }


def spread(passes: Tensor) -> np.ndarray:
    return passes.softmax(2).var(0, unbiased=False).sum(1).numpy()


def block_passes(run: Finished) -> dict[str, np.ndarray]:
    """Variance over passes with the dropout of every block at work, summed over classes; the test
    images.
    """
    torch.manual_seed(run.settings.seed)
    images = run.task.dataset.test_x
    return {
        "test_dropout_variance": spread(
            torch.stack([random_pass(run, images) for _ in range(VARIANCE_PASSES)])
        )
    }


def random_pass(run: Finished, images: np.ndarray) -> Tensor:
    """Dropout at work, batch norm at rest."""
    run.network.eval()
    for module in run.network.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    with torch.inference_mode():
        parts = [
            run.network(run.task.normalise(part))
            for part in torch.from_numpy(images).split(IN_ORDER)
        ]
    run.network.eval()
    return torch.cat(parts)


def features_of(run: Finished, images: np.ndarray) -> Tensor:
    """What dropout acts on; computed once for all passes, since dropout comes only after it."""
    return logits_of(run.network.features, images, run.task.normalise)


def dropout_passes(run: Finished, features: Tensor, *, rate: float, passes: int) -> Tensor:
    """Logits (passes, n, classes)."""
    generator = torch.Generator().manual_seed(run.settings.seed)
    with torch.inference_mode():
        return torch.stack(
            [run.network.last(dropped(features, rate, generator)) for _ in range(passes)]
        )


def dropped(features: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    keep = torch.rand(features.shape, generator=generator) >= rate
    return features * keep / (1 - rate)


def boundary(run: Finished) -> dict[str, np.ndarray]:
    """First-order distance to the decision boundary (Vemuri, Elsayed), validation and test."""
    data, rows = run.task.dataset, run.task.split.val
    parts = {"val": (data.train_x[rows], data.train_y[rows]), "test": (data.test_x, data.test_y)}
    return distances(run.network, parts, run.task.normalise)


def distances(
    network: nn.Module,
    parts: dict[str, Part],
    normalise: Callable[[Tensor], Tensor],
    *,
    outputs: str = "logits",
) -> dict[str, np.ndarray]:
    """To the boundary between the two most likely classes, in units of the normalised input."""
    from howsure.torch import boundary_distance  # training alone needs no howsure

    return {
        f"{split}_boundary_distance": boundary_distance(
            network, in_order(images, labels, normalise), progress=False, outputs=outputs
        ).astype(np.float32)
        for split, (images, labels) in parts.items()
    }


def boundary_softmax(run: Finished) -> dict[str, np.ndarray]:
    """The same on the softmax outputs, as the paper writes it, in double precision: the slope of a
    sure answer is lost in single."""
    network = nn.Sequential(deepcopy(run.network), nn.Softmax(1)).double()
    data, rows = run.task.dataset, run.task.split.val
    parts = {"val": (data.train_x[rows], data.train_y[rows]), "test": (data.test_x, data.test_y)}
    return distances(network, parts, lambda x: run.task.normalise(x).double(), outputs="probs")


def train(run: Finished) -> dict[str, np.ndarray]:
    """The first training images, without augmentation."""
    data, rows = run.task.dataset, run.task.split.train[:TRAIN_ROWS]
    logits = logits_of(run.network, data.train_x[rows], run.task.normalise).numpy()
    return outputs("train", logits, data.train_y[rows], data.keep_every)


def long_course(run: Finished) -> dict[str, np.ndarray]:
    """Every so-manieth epoch of a long training on all test images; `epochs` says which."""
    data, train = run.task.dataset, run.task.split.train[:COURSE_TRAIN]
    parts = {
        "test": (data.test_x, data.test_y),
        "train": (data.train_x[train], data.train_y[train]),
    }
    last = run.settings.epochs
    chosen = sorted({*range(LONG_STEP, last, LONG_STEP), last})
    return {"epochs": np.array(chosen), **columns_of(run, chosen, parts)}


def course(run: Finished) -> dict[str, np.ndarray]:
    """Confidence, correctness and loss after every epoch, on test and training images: early
    stopping, overfitting.
    """
    data, train = run.task.dataset, run.task.split.train[:COURSE_TRAIN]
    parts = {
        "test": (data.test_x[:COURSE_TEST], data.test_y[:COURSE_TEST]),
        "train": (data.train_x[train], data.train_y[train]),
    }
    return columns_of(run, range(1, run.settings.epochs + 1), parts)


def columns_of(
    run: Finished, epochs: Iterable[int], parts: dict[str, Part]
) -> dict[str, np.ndarray]:
    """One row per epoch; the network ends as it was."""
    rows = [epoch_columns(run, epoch, parts) for epoch in epochs]
    run.checkpoints.load_weights(run.network, run.settings.epochs)
    return {key: np.stack([row[key] for row in rows]) for key in rows[0]}


def epoch_columns(
    run: Finished, epoch: int, parts: dict[str, tuple[np.ndarray, np.ndarray]]
) -> dict[str, np.ndarray]:
    network = run.checkpoints.load_weights(run.network, epoch)
    found: dict[str, np.ndarray] = {}
    for split, (images, labels) in parts.items():
        logits = logits_of(network, images, run.task.normalise)
        target = torch.from_numpy(labels).long()
        found[f"{split}_confidence"] = logits.softmax(1).amax(1).numpy().astype(np.float16)
        found[f"{split}_correct"] = (logits.argmax(1) == target).numpy()
        found[f"{split}_nll"] = rounded(
            F.cross_entropy(logits, target, reduction="none").numpy().astype(np.float16)
        )
    return found


def shift(run: Finished, name: str) -> dict[str, np.ndarray]:
    """Logits of the test images after one of the changes in `shifts`."""
    data = run.task.dataset
    logits = logits_of(run.network, shifted(data.test_x, name), run.task.normalise)
    return {"test_logits": logits.numpy().astype(np.float16), "test_labels": data.test_y}


EXTRAS = {
    "mc": mc,
    "dropout_variance": dropout_variance,
    "block_passes": block_passes,
    "features": features,
    "boundary": boundary,
    "boundary_softmax": boundary_softmax,
    "course": course,
    "long_course": long_course,
    "train": train,
    **{name: partial(shift, name=name) for name in SHIFTS},
}
