"""Torch files of tensors: a dictionary of named tensors, or one tensor named by its file. Loaded
with weights_only.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from howsure._core.budget import Budget
from howsure._core.check import Array, InputError
from howsure._core.optional import need
from howsure._core.text import array_of
from howsure.formats import zipped
from howsure.formats.contents import Contents, Entry, as_list, as_record, in_memory, reason

suffixes = (".pt", ".pth")
title = "torch tensors"


def read(path: Path, rows: int | None) -> Iterator[Contents]:  # noqa: ARG001 - torch loads a file whole
    """The tensors of the file."""
    torch = need("torch", for_=f"reading {path.name}", extra="torch")
    size = _size(path)
    loaded = _loaded(torch, path)
    named = as_record(loaded)
    pairs = {path.stem: loaded}.items() if named is None else named.items()
    entries = {
        str(name): _entry(torch, value, size, f"{path.name}, {str(name)[:60]!r}")
        for name, value in pairs
    }
    yield Contents(path, entries)


def _size(path: Path) -> int:
    """The bytes of the members, which are checked before torch allocates; none may ask for memory
    by itself.
    """
    with zipped.reading(path), zipfile.ZipFile(path) as archive:
        members = zipped.members(archive, path)
        size = sum(info.file_size for info in members.values())
        Budget(path.name, path.stat().st_size).spend(size)
        pickles = [archive.read(name) for name in members if name.endswith(".pkl")]
    if any(b"bytearray" in raw for raw in pickles):  # weights_only would make one of any length
        raise InputError(
            path.name, got="asks for memory that it does not fill", hint="save a dict of tensors"
        )
    return size


def _loaded(torch: Any, path: Path) -> Any:
    """Whatever torch finds wrong is one sentence; weights_only never runs what a pickle asks for."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:
        got = f"is not a file of tensors ({reason(e)})"
        raise InputError(path.name, got=got, hint="save a dict of tensors") from None


def _entry(torch: Any, value: Any, size: int, where: str) -> Entry:
    kind = type(cast("object", value)).__name__
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return Entry(tuple(value.shape), dtype, lambda: _array(torch, value, size, where))
    words = as_list(value) or (
        list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else None
    )
    if words and all(isinstance(word, str) for word in words):
        return in_memory(array_of(words))

    def load() -> Array:
        raise InputError(where, got=f"is a {kind}", need="a tensor or a list of texts is needed")

    return Entry((), kind, load)


def _array(torch: Any, tensor: Any, size: int, where: str) -> Array:
    try:
        held = min(size, tensor.untyped_storage().nbytes())
        if tensor.numel() * tensor.element_size() > held:
            got = f"repeats its {held:,} bytes to look larger"
            raise InputError(where, got=got, hint="save tensor.contiguous()")
        wide = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        return wide.detach().numpy(force=True)
    except (TypeError, RuntimeError, NotImplementedError) as e:
        raise InputError(
            where, got=f"is not a plain tensor ({reason(e)})", hint="save a dense tensor"
        ) from None


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:  # noqa: ARG001 - one layout
    """A dictionary of tensors, with columns of text as lists."""
    torch = need("torch", for_="writing .pt files", extra="torch")
    torch.save(
        {n: a.tolist() if a.dtype.kind == "U" else torch.tensor(a) for n, a in arrays.items()}, path
    )
