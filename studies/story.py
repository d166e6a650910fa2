"""One network from training to a decision: the whole of the library in one command, on
Fashion-MNIST.

Train, collect, evaluate, MC dropout, calibrate one pass and the average over passes, reject, and
ask how far inputs are from the decision boundary. What the network says is kept in prediction
files, and the page is made from those alone.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

import howsure as hs

from .batches import in_order
from .data import load
from .demo import SETTINGS as DEMO
from .extras import MC_PASSES, MC_TEST, MC_VAL, Part, distances
from .predictions import record, split_arrays, write
from .progress import say
from .runs import Run
from .store import Store
from .training import Task, train

SETTINGS = replace(DEMO, train_size=10_000, epochs=8)  # a minute on one idle core
RUN = Run("story", SETTINGS, ("mc", "boundary"))


def tell(data: Path, store: Store) -> None:
    """Train the network and ask it everything, unless that has been done."""
    if store.finished(RUN):
        return
    torch.set_num_threads(1)
    task = Task.of(SETTINGS, load(SETTINGS.data, data))
    network, history = train(SETTINGS, task, store.checkpoints(SETTINGS), show)
    write({**split_arrays(network, task), **record(SETTINGS, history)}, store.predictions(SETTINGS))
    write(with_dropout(network, task), store.predictions(SETTINGS, "mc"))
    write(
        distances(network, first_images(task), task.normalise),
        store.predictions(SETTINGS, "boundary"),
    )


def show(row: dict[str, float]) -> None:
    say(
        f"epoch {row['epoch']:.0f}/{SETTINGS.epochs}  val error {row['val_error']:.3f}  {row['seconds']:.0f} s"
    )


def with_dropout(network: nn.Module, task: Task) -> dict[str, np.ndarray]:
    """One pass and 25 with dropout over the first validation and test images, in the form of the
    other studies.
    """
    from howsure.torch import collect, mc_dropout

    found: dict[str, np.ndarray] = {}
    for split, (images, labels) in first_images(task).items():
        one = collect(network, in_order(images, labels, task.normalise), progress=False)
        many = mc_dropout(
            network, in_order(images, labels, task.normalise), passes=MC_PASSES, progress=False
        )
        found[f"{split}_logits"] = np.asarray(one.values, np.float16)
        found[f"mc_{split}_logits"] = np.asarray(many.values, np.float16)
        found[f"{split}_labels"] = labels
    return found


def first_images(task: Task) -> dict[str, Part]:
    data, val = task.dataset, task.split.val[:MC_VAL]
    return {
        "val": (data.train_x[val], data.train_y[val]),
        "test": (data.test_x[:MC_TEST], data.test_y[:MC_TEST]),
    }


def error_auroc(score: np.ndarray, correct: np.ndarray) -> float:
    """How well a score puts right answers above wrong ones."""
    return hs.auroc(hs.tally(score, correct=correct))
