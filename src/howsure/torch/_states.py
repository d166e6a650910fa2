"""The weights of a model: kept, loaded from a checkpoint, put back."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false
from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from howsure._core.check import InputError
from howsure._core.optional import need

Checkpoint: TypeAlias = Mapping[str, Any] | str | os.PathLike[str]


@contextmanager
def keeping_state(model: nn.Module) -> Generator[None]:
    """Whatever is loaded inside, `model` has its own weights again afterwards; they wait in main memory."""
    own = {
        name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
        for name, value in model.state_dict().items()
    }
    try:
        yield
    finally:
        model.load_state_dict(own)


def load(model: nn.Module, checkpoint: Checkpoint, key: str | None) -> None:
    """Put the weights of a checkpoint into `model`; every one of them must be there."""
    state, where = checkpoint, "the checkpoint"
    if not isinstance(checkpoint, Mapping):
        where = Path(checkpoint).name
        state = _read(Path(checkpoint))
    if key is not None:
        state = _entry(state, key, where)
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        found = (
            f"the keys {', '.join(map(repr, list(state)[:6]))}" if isinstance(state, Mapping) else type(state).__name__
        )
        raise InputError(f"{where} holds {found}; a state dict of tensors is needed. Name its entry with key=.")
    try:
        model.load_state_dict(state)
    except RuntimeError as e:
        reason = " ".join(str(e).split())[:300]
        raise InputError(f"{where} does not fit the model: {reason}") from None


def _read(path: Path) -> Any:
    """Tensors only: nothing that a pickle asks for is run."""
    safe = path.suffix == ".safetensors" and need("safetensors.torch", for_=f"reading {path.name}", extra="files")
    try:
        return safe.load_file(path) if safe else torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:
        reason = type(e).__name__ if not str(e) else str(e).splitlines()[0][:120].rstrip(".")
        raise InputError(f"{path.name} is not a checkpoint of tensors ({reason}); save model.state_dict().") from None


def _entry(state: Any, key: str, where: str) -> Any:
    if isinstance(state, Mapping) and key in state:
        return state[key]
    there = ", ".join(map(repr, list(state)[:6])) if isinstance(state, Mapping) else type(state).__name__
    raise InputError(f"{where} has no entry {key!r}; there is {there}.")
