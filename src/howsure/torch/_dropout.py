"""The dropout layers of a model, switched on alone."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import nn

from howsure._core.check import InputError

Dropout: TypeAlias = nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d | nn.AlphaDropout | nn.FeatureAlphaDropout


def dropout_layers(model: nn.Module) -> list[Dropout]:
    """All layers that drop something."""
    found = [module for module in model.modules() if isinstance(module, Dropout)]
    if not found:
        raise InputError(
            f"{type(model).__name__} has no dropout layer, so all passes would be equal; MC dropout needs nn.Dropout "
            "layers. Calls of F.dropout and the dropout= of attention and recurrent layers cannot be switched on."
        )
    return found


@contextmanager
def stochastic(layers: Sequence[Dropout], p: float | None) -> Generator[None]:
    """`layers` drop with probability p, or with their own; the rest of the model stays in evaluation mode."""
    if p is not None and not 0 < p < 1:
        raise InputError(f"p is {p:g}; a probability above 0 and below 1 is needed.")
    before = [(layer, layer.p, layer.inplace, layer.training) for layer in layers]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # the fast path of transformers leaves their dropout layers out
    try:
        for layer in layers:
            layer.p = layer.p if p is None else p
            layer.inplace = False  # the input of the first layer is used again
            layer.training = True
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for layer, own, inplace, training in before:
            layer.p, layer.inplace, layer.training = own, inplace, training
