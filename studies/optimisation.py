"""Optimisers and learning-rate schedules, as pure functions of the settings and the epoch."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from .settings import Settings

PATIENCE = 10
STEPS = {
    "steps": (0.1, (0.5, 0.75)),
    "wide_steps": (0.2, (0.3, 0.6, 0.8)),
}  # ResNet and DenseNet; WideResNet
SCHEDULES = ("constant", *STEPS, "cosine", "plateau")


def optimiser(network: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    if settings.optimiser == "sgd":
        return torch.optim.SGD(
            network.parameters(),
            lr=settings.lr,
            momentum=0.9,
            nesterov=True,
            weight_decay=settings.weight_decay,
        )
    if settings.optimiser == "adamw":
        return torch.optim.AdamW(
            network.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
        )
    raise ValueError(f"optimiser {settings.optimiser!r} is unknown; use 'sgd' or 'adamw'.")


def learning_rate(settings: Settings, epoch: int, val_losses: Sequence[float]) -> float:
    """The rate of an epoch (from 0); it needs no state but the losses so far, so a restart finds
    the same value.
    """
    if settings.schedule == "constant":
        return settings.lr
    if settings.schedule in STEPS:
        factor, shares = STEPS[settings.schedule]
        return settings.lr * factor ** sum(epoch >= share * settings.epochs for share in shares)
    if settings.schedule == "cosine":
        return settings.lr * 0.5 * (1 + math.cos(math.pi * epoch / settings.epochs))
    if settings.schedule == "plateau":
        return settings.lr * 0.1 ** plateaus(val_losses)
    raise ValueError(f"schedule {settings.schedule!r} is unknown; use {', '.join(SCHEDULES)}.")


def plateaus(losses: Sequence[float]) -> int:
    """How often the loss failed to improve for more than PATIENCE epochs in a row (Laves A.3)."""
    best, bad, count = math.inf, 0, 0
    for loss in losses:
        best, bad = (loss, 0) if loss < best else (best, bad + 1)
        if bad > PATIENCE:
            bad, count = 0, count + 1
    return count


def set_rate(opt: torch.optim.Optimizer, rate: float) -> None:
    for group in opt.param_groups:
        group["lr"] = rate
