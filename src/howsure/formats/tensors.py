"""Torch files of tensors: a dictionary of named tensors, or one tensor named by its file. Loaded with weights_only."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from howsure._core.check import Array, InputError
from howsure._core.optional import need
from howsure.formats import zipped
from howsure.formats.contents import Contents, Entry, in_memory

suffixes = (".pt", ".pth")
title = "torch tensors"


def scan(path: Path, rows: int | None) -> Iterator[Contents]:  # noqa: ARG001 - torch loads a file whole
    """The tensors of the file."""
    torch = need("torch", for_=f"reading {path.name}", extra="torch")
    with zipped.opened(path):  # sizes are checked before torch allocates
        pass
    loaded = _loaded(torch, path)
    named = loaded if isinstance(loaded, dict) else {path.stem: loaded}
    entries = {str(name): _entry(torch, value, f"{path.name}, {str(name)!r}") for name, value in named.items()}
    yield Contents(path, entries)


def _loaded(torch: Any, path: Path) -> Any:
    """Whatever torch finds wrong is one sentence; weights_only never runs what a pickle asks for."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:
        reason = type(e).__name__ if not str(e) else str(e).splitlines()[0][:120].rstrip(".")
        raise InputError(f"{path.name} is not a file of tensors ({reason}); save a dict of tensors.") from None


def _entry(torch: Any, value: Any, where: str) -> Entry:
    if isinstance(value, torch.Tensor):
        return Entry(tuple(value.shape), str(value.dtype).removeprefix("torch."), lambda: _array(torch, value, where))
    if isinstance(value, list | tuple) and value and all(isinstance(v, str) for v in value):
        return in_memory(np.array(value, dtype=np.str_ if max(map(len, value)) <= 256 else object))

    def load() -> Array:
        raise InputError(f"{where} is a {type(value).__name__}; a tensor or a list of texts is needed.")

    return Entry((), type(value).__name__, load)


def _array(torch: Any, tensor: Any, where: str) -> Array:
    try:
        held = tensor.untyped_storage().nbytes()
        if tensor.numel() * tensor.element_size() > held:
            raise InputError(f"{where} repeats its {held:,} bytes to look larger; save tensor.contiguous().")
        wide = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        return wide.detach().numpy(force=True)
    except (TypeError, RuntimeError, NotImplementedError) as e:
        reason = str(e).splitlines()[0][:120].rstrip(".")
        raise InputError(f"{where} is not a plain tensor ({reason}); save a dense tensor.") from None


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:  # noqa: ARG001 - one layout
    """A dictionary of tensors, with columns of text as lists."""
    torch = need("torch", for_="writing .pt files", extra="torch")
    torch.save({n: a.tolist() if a.dtype.kind == "U" else torch.tensor(a) for n, a in arrays.items()}, path)
