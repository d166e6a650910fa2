"""The training loop: the same numbers under a seed, saved after each epoch and in long ones, also
after a kill.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .batches import Normaliser, augmented, shuffled_rows
from .checkpoints import Checkpoints, Place
from .data.dataset import Dataset, Split, fixed_split
from .networks import build
from .objective import in_epoch, objective
from .optimisation import learning_rate, optimiser, set_rate
from .settings import Settings

EVALUATION_PIXELS = 500 * 32 * 32
TRACKED = 2_000
PRECISIONS = ("float32", "bfloat16")
INSIDE = 180.0  # seconds after which the middle of an epoch is saved too


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
    network = build(
        settings.network,
        classes=dataset.classes,
        channels=dataset.channels,
        dropout=settings.dropout,
        block_dropout=settings.block_dropout,
    )
    return network.to(memory_format=torch.channels_last)


def train(
    settings: Settings,
    task: Task,
    checkpoints: Checkpoints,
    report: Callable[[dict[str, float]], None],
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
        loss = train_epoch(network, opt, settings, task, epoch, checkpoints)
        history.append(
            {"epoch": epoch + 1.0, "lr": rate, "train_loss": loss, **validate(network, task)}
        )
        history[-1]["seconds"] = time.perf_counter() - start
        checkpoints.save(epoch + 1, network, opt, history)
        report(history[-1])
    return network, history


def train_epoch(
    network: nn.Module,
    opt: torch.optim.Optimizer,
    settings: Settings,
    task: Task,
    epoch: int,
    checkpoints: Checkpoints,
) -> float:
    """One pass; its randomness depends on seed and epoch only, so a restart repeats it exactly."""
    torch.manual_seed(settings.seed * 1_000 + epoch)
    generator = torch.Generator().manual_seed(settings.seed * 1_000 + epoch)
    images, labels = training_tensors(task)
    batches = list(shuffled_rows(len(labels), settings.batch, generator))
    now = in_epoch(settings, epoch)
    losses, saved = (
        resumed(checkpoints.load_inside(epoch, network, opt), generator),
        time.perf_counter(),
    )
    network.train()
    for rows in batches[len(losses) :]:
        if time.perf_counter() - saved > INSIDE:
            place = Place(epoch, losses, torch.get_rng_state(), generator.get_state())
            checkpoints.save_inside(place, network, opt)
            saved = time.perf_counter()
        x, y = images[rows], labels[rows]
        x, y = augmented(x, y, generator) if settings.augment else (x, y)
        losses.append(step(opt, objective(forward(network, task.normalise(x), settings), y, now)))
    return float(np.mean(losses))


def resumed(place: Place | None, generator: torch.Generator) -> list[float]:
    """The losses of the batches that are done; the random streams go on where they stood."""
    if place is None:
        return []
    torch.set_rng_state(place.dropout_random)
    generator.set_state(place.data_random)
    return list(place.losses)


def forward(network: nn.Module, images: Tensor, settings: Settings) -> Tensor:
    """Logits for the loss. Mixed precision rounds what a convolution reads to bfloat16: twice the
    images a second where the processor knows that type; weights, their updates and all evaluation
    stay in float32."""
    if settings.precision not in PRECISIONS:
        raise ValueError(
            f"precision {settings.precision!r} is unknown; use {' or '.join(map(repr, PRECISIONS))}."
        )
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=settings.precision == "bfloat16"):
        return network(images).float()


def step(opt: torch.optim.Optimizer, loss: Tensor) -> float:
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def training_tensors(task: Task) -> tuple[Tensor, Tensor]:
    rows = task.split.train
    return torch.from_numpy(task.dataset.train_x[rows]), torch.from_numpy(
        task.dataset.train_y[rows]
    ).long()


def logits_of(network: nn.Module, images: np.ndarray, normalise: Normaliser) -> Tensor:
    """Outputs in evaluation mode, in the order of the images."""
    network.eval()
    with torch.inference_mode():
        parts = torch.from_numpy(images).split(
            max(1, EVALUATION_PIXELS // math.prod(images.shape[2:]))
        )
        return torch.cat([network(normalise(part)) for part in parts])


def validate(network: nn.Module, task: Task) -> dict[str, float]:
    """Loss and error on the first validation images; a part is enough to watch a run."""
    rows = task.split.val[:TRACKED]
    logits = logits_of(network, task.dataset.train_x[rows], task.normalise)
    labels = torch.from_numpy(task.dataset.train_y[rows]).long()
    wrong = (logits.argmax(1) != labels).float().mean()
    return {"val_nll": F.cross_entropy(logits, labels).item(), "val_error": wrong.item()}
