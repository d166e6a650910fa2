"""Evaluation mode, devices and random states, all left as they were found."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from howsure._core.check import InputError


@contextmanager
def evaluating(model: Any) -> Generator[None]:
    """`model` in evaluation mode; afterwards each submodule is in the mode in which it was."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}; a torch.nn.Module is needed.")
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def device_of(model: nn.Module) -> torch.device | None:
    """Where the first parameter or buffer lives; None for a model that has none."""
    held = next(model.parameters(), None)
    held = next(model.buffers(), None) if held is None else held
    return None if held is None else held.device


def moved(x: Any, device: torch.device | str | None) -> Any:
    """`x` with all tensors in it on `device`; what can move itself does, as packed sequences do."""
    if device is not None and callable(getattr(x, "to", None)):
        return x.to(device)
    if type(x) in (tuple, list):
        return type(x)(moved(part, device) for part in x)
    return {key: moved(part, device) for key, part in x.items()} if isinstance(x, dict) else x


@contextmanager
def random_state(seed: int | None, device: torch.device | None) -> Generator[None]:
    """Draws inside follow from `seed`, or go on from here where it is None; those outside never notice."""
    if device is not None and device.type != "cpu":
        with torch.random.fork_rng(devices=[device], device_type=device.type):
            if seed is not None:
                torch.manual_seed(seed)
            yield
        return
    before = torch.get_rng_state()
    try:
        if seed is not None:
            torch.default_generator.manual_seed(
                seed
            )  # torch.manual_seed goes to all devices and takes 25 times as long
        yield
    finally:
        torch.set_rng_state(before)
