"""The training loop: deterministic under a seed, saved after each epoch, goes on where it was killed."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import Normaliser, augmented, shuffled_rows
from .checkpoints import Checkpoints
from .data.dataset import Dataset, Split, fixed_split
from .networks import build
from .objective import objective
from .optimisation import learning_rate, optimiser, set_rate
from .settings import Settings

EVALUATION_PIXELS = 500 * 32 * 32
TRACKED = 2_000


@dataclass(frozen=True)
class Task:
    """A data set as one run sees it: its split and its normalisation."""

    dataset: Dataset
    split: Split
    normalise: Normaliser

    @classmethod
    def of(cls, settings: Settings, dataset: Dataset) -> "Task":
        split = fixed_split(len(dataset.train_y), train=settings.train_size, val=settings.val_size)
        return cls(dataset, split, Normaliser.of(dataset.train_x[split.train]))


def new_network(settings: Settings, dataset: Dataset) -> nn.Module:
    torch.manual_seed(settings.seed)
    network = build(settings.network, classes=dataset.classes, channels=dataset.channels, dropout=settings.dropout)
    return network.to(memory_format=torch.channels_last)


def train(
    settings: Settings, task: Task, checkpoints: Checkpoints, report: Callable[[dict[str, float]], None]
) -> tuple[nn.Module, list[dict[str, float]]]:
    """The trained network and one row of history per epoch."""
    torch.use_deterministic_algorithms(True)
    network = new_network(settings, task.dataset)
    opt = optimiser(network, settings)
    done, history = checkpoints.load(network, opt)
    for epoch in range(done, settings.epochs):
        start = time.perf_counter()
        rate = learning_rate(settings, epoch, [row["val_nll"] for row in history])
        set_rate(opt, rate)
        loss = train_epoch(network, opt, settings, task, epoch)
        history.append({"epoch": epoch + 1.0, "lr": rate, "train_loss": loss, **validate(network, task)})
        history[-1]["seconds"] = time.perf_counter() - start
        checkpoints.save(epoch + 1, network, opt, history)
        report(history[-1])
    return network, history


def train_epoch(network: nn.Module, opt: torch.optim.Optimizer, settings: Settings, task: Task, epoch: int) -> float:
    """One pass; its randomness depends on seed and epoch only, so a restart repeats it exactly."""
    torch.manual_seed(settings.seed * 1_000 + epoch)
    generator = torch.Generator().manual_seed(settings.seed * 1_000 + epoch)
    images, labels = training_tensors(task)
    network.train()
    losses = []
    for rows in shuffled_rows(len(labels), settings.batch, generator):
        x, y = images[rows], labels[rows]
        x, y = augmented(x, y, generator) if settings.augment else (x, y)
        loss = objective(network(task.normalise(x)), y, settings)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return float(np.mean(losses))


def training_tensors(task: Task) -> tuple[Tensor, Tensor]:
    rows = task.split.train
    return torch.from_numpy(task.dataset.train_x[rows]), torch.from_numpy(task.dataset.train_y[rows]).long()


def logits_of(network: nn.Module, images: np.ndarray, normalise: Normaliser) -> Tensor:
    """Outputs in evaluation mode, in the order of the images."""
    network.eval()
    with torch.inference_mode():
        parts = torch.from_numpy(images).split(max(1, EVALUATION_PIXELS // math.prod(images.shape[2:])))
        return torch.cat([network(normalise(part)) for part in parts])


def validate(network: nn.Module, task: Task) -> dict[str, float]:
    """Loss and error on the first validation images; a part is enough to watch a run."""
    rows = task.split.val[:TRACKED]
    logits = logits_of(network, task.dataset.train_x[rows], task.normalise)
    labels = torch.from_numpy(task.dataset.train_y[rows]).long()
    wrong = (logits.argmax(1) != labels).float().mean()
    return {"val_nll": F.cross_entropy(logits, labels).item(), "val_error": wrong.item()}
