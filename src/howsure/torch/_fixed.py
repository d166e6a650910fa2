"""Dropout with masks that are drawn once: a network with MC dropout inside becomes a function that can be exported."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core.check import InputError
from howsure.torch._dropout import Dropout, dropout_layers
from howsure.torch._modes import evaluating, random_state


class FixedDropout(nn.Module):
    """One mask for each pass and call, the same for all samples. Every kind of dropout is x · scale + shift."""

    def __init__(self, masks: Sequence[tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.number = self.call = 0
        for i, (scale, shift) in enumerate(masks):
            self.register_buffer(f"scale_{i}", scale)
            self.register_buffer(f"shift_{i}", shift)

    def begin(self, number: int) -> None:
        """The next calls belong to this pass."""
        self.number, self.call = number, 0

    def forward(self, x: Tensor) -> Tensor:
        """The input with what this pass leaves out."""
        scale, shift = (self.get_buffer(f"{name}_{self.call}")[self.number] for name in ("scale", "shift"))
        self.call += 1
        return x * scale + shift


def fixed(model: nn.Module, passes: int, source: np.random.SeedSequence, example: Any) -> nn.Module:
    """A copy of `model` that shares its weights and has fixed dropout, for inputs of the shape of `example`."""
    held = {id(t): t for t in (*model.parameters(), *model.buffers())}
    made: nn.Module = deepcopy(model, held)
    layers = dropout_layers(made)
    calls = _calls(made, layers, example)
    seeds = iter(source.generate_state(sum(map(len, calls.values())), np.uint64).tolist())
    swapped: dict[nn.Module, FixedDropout] = {}
    for layer in layers:
        masks = [_masks(layer, like.expand(passes, *like.shape[1:]), next(seeds)) for like in calls[layer]]
        swapped[layer] = FixedDropout(masks)
    for name, module in list(made.named_modules(remove_duplicate=False)):
        if module in swapped:
            made.set_submodule(name, swapped[module])
    return made


def _calls(model: nn.Module, layers: Sequence[Dropout], example: Any) -> dict[nn.Module, list[Tensor]]:
    """What each layer is given, without the samples: a first row for each of its calls."""
    calls: dict[nn.Module, list[Tensor]] = {layer: [] for layer in layers}

    def note(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
        calls[layer].append(args[0][:1].detach())

    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    with evaluating(model), torch.no_grad():
        model(*example) if isinstance(example, (tuple, list)) else model(example)
    for hook in hooks:
        hook.remove()
    unused = sum(not own for own in calls.values())
    if unused:
        raise InputError(f"{unused} of {len(layers)} dropout layers were not called, so their masks cannot be drawn.")
    return calls


def _masks(layer: Dropout, like: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Scale and shift, one row for each pass: what the layer makes of ones and zeros."""
    layer.training, layer.inplace = True, False
    with random_state(seed, like.device), torch.no_grad():
        shift = layer(torch.zeros_like(like))
    with random_state(seed, like.device), torch.no_grad():
        return layer(torch.ones_like(like)) - shift, shift
