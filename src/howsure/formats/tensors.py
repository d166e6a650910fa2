"""Named tensors: torch files, loaded with weights_only, and safetensors, which need no package.

Safetensors are a JSON header with shapes and offsets, then the numbers.
"""

from __future__ import annotations

import json
import math
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from howsure._core.checks import Array, InputError, need
from howsure._core.file_access import Budget
from howsure._core.frozen import frozen
from howsure._core.text import make_text_array
from howsure.formats.contents import (
    SAVE_AGAIN,
    Contents,
    FileEntry,
    as_list,
    as_record,
    describe_error,
    make_array_entry,
)
from howsure.formats.npy import convert_bytes
from howsure.formats.unpacked_sizes import check_members, refuse_damaged_zip

SAFETENSORS_DTYPES = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "BF16": "<u2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
}
MAX_JSON_HEADER_BYTES = 100 << 20
# Lists, objects and values in a header, beside its texts: each takes far more memory than bytes.
MAX_HEADER_PARTS = 200_000
QUOTED_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
MAX_TENSOR_AXES = 32


def read(path: Path, rows: int | None) -> Iterator[Contents]:  # noqa: ARG001 - torch loads a file whole, safetensors are read when asked for
    """The tensors of the file."""
    read_entries = _read_torch
    if path.suffix.lower() == ".safetensors":
        read_entries = _read_safetensors
    yield Contents(path=path, entries=read_entries(path))


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:
    """Tensors by name, in the order given; columns of text, which tensors cannot hold, as lists."""
    if suffix != ".safetensors":
        torch = need("torch", for_="writing .pt files", extra="torch")
        named: dict[str, Any] = {}
        for name, a in arrays.items():
            named[name] = a.tolist() if a.dtype.kind == "U" else torch.tensor(a)
        torch.save(named, path)
        return
    codes = {np.dtype(code): kind for kind, code in SAFETENSORS_DTYPES.items() if kind != "BF16"}
    texts: dict[str, str] = {}  # the metadata
    tensors: dict[str, Any] = {}  # name → its entry of the header
    blocks: list[bytes] = []
    end = 0
    for name, a in arrays.items():
        if a.dtype.kind == "U":
            texts[name] = json.dumps(a.tolist())
            continue
        little = a.astype(a.dtype.newbyteorder("<"))
        offsets = [end, end + little.nbytes]
        tensors[name] = {
            "dtype": codes[little.dtype],
            "shape": list(a.shape),
            "data_offsets": offsets,
        }
        blocks.append(little.tobytes())
        end = offsets[1]
    header = {"__metadata__": texts, **tensors} if texts else tensors
    front = json.dumps(header).encode()
    front += b" " * (-len(front) % 8)  # the numbers begin at a multiple of 8
    with path.open("wb") as file:
        file.writelines([len(front).to_bytes(8, "little"), front, *blocks])


# Torch


def _read_torch(path: Path) -> dict[str, FileEntry]:
    """A dictionary of named tensors, or one tensor named by its file."""
    torch = need("torch", for_=f"reading {path.name}", extra="torch")
    # The bytes of the members are checked before torch allocates.
    with refuse_damaged_zip(path), zipfile.ZipFile(path) as archive:
        members = check_members(archive, path)
        size = sum(info.file_size for info in members.values())
        Budget(path.name, path.stat().st_size).spend(size)
        pickles = [archive.read(name) for name in members if name.endswith(".pkl")]
    # weights_only would make a bytearray of any length.
    if any(b"bytearray" in raw for raw in pickles):
        got = "asks for memory that it does not fill"
        raise InputError(path.name, got=got, hint="save a dict of tensors")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # weights_only never runs what a pickle asks for.
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as e:
        got = f"is not a file of tensors ({describe_error(e)})"
        raise InputError(path.name, got=got, hint="save a dict of tensors") from None
    named = as_record(loaded)
    if named is None:
        named = {path.stem: loaded}
    entries: dict[str, FileEntry] = {}
    for name, value in named.items():
        where = f"{path.name}, {str(name)[:60]!r}"
        entries[str(name)] = _make_torch_entry(torch, value, size, where)
    return entries


def _make_torch_entry(torch: Any, value: Any, size: int, where: str) -> FileEntry:
    """A tensor of an archive of `size` bytes, or a list of texts; anything else is refused when it
    is loaded.
    """
    if not isinstance(value, torch.Tensor):
        words = as_list(value)
        if isinstance(value, tuple):
            words = list(cast("tuple[Any, ...]", value))
        if words and all(isinstance(word, str) for word in words):
            return make_array_entry(make_text_array(words))
        kind = type(cast("object", value)).__name__

        def refuse_load() -> Array:
            need = "a tensor or a list of texts is needed"
            raise InputError(where, got=f"is a {kind}", need=need)

        return FileEntry(shape=(), dtype=kind, load=refuse_load)
    tensor: Any = value

    def load() -> Array:
        try:
            # Strides of 0 repeat a few bytes as often as one likes.
            stored = min(size, tensor.untyped_storage().nbytes())
            if tensor.numel() * tensor.element_size() > stored:
                got = f"repeats its {stored:,} bytes to look larger"
                raise InputError(where, got=got, hint="save tensor.contiguous()")
            # NumPy has no numbers of brain floats.
            plain = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
            return plain.detach().numpy(force=True)
        except (TypeError, RuntimeError, NotImplementedError) as e:
            got = f"is not a plain tensor ({describe_error(e)})"
            raise InputError(where, got=got, hint="save a dense tensor") from None

    dtype = str(tensor.dtype).removeprefix("torch.")
    return FileEntry(shape=tuple(tensor.shape), dtype=dtype, load=load)


# Safetensors


def _read_safetensors(path: Path) -> dict[str, FileEntry]:
    """The tensors, which stay in the file until they are loaded. Texts are lists in the metadata."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(MAX_JSON_HEADER_BYTES, path.stat().st_size - 8):
            got = "is not a safetensors file, or is truncated"
            raise InputError(path.name, got=got, hint=SAVE_AGAIN)
        raw = file.read(length)
    marks = (b"{", b"[", b",")
    parts = sum(map(raw.count, marks))
    for text in QUOTED_TEXT.finditer(raw):
        parts -= sum(map(text[0].count, marks))
    if parts > MAX_HEADER_PARTS:
        got = f"has a header of {parts:,} parts"
        raise InputError(path.name, got=got, need=f"at most {MAX_HEADER_PARTS:,} are read")
    try:
        header = as_record(json.loads(raw))
    except (ValueError, RecursionError):
        header = None
    if header is None:
        raise InputError(path.name, got="has a header that is not readable", hint=SAVE_AGAIN)
    metadata = as_record(header.pop("__metadata__", None)) or {}
    entries: dict[str, FileEntry] = {}
    for name, value in metadata.items():
        try:
            cells = as_list(json.loads(value))
        except (ValueError, TypeError, RecursionError):
            continue  # other programs keep what they like there
        if cells and all(isinstance(cell, str) for cell in cells):
            entries[name] = make_array_entry(make_text_array(cells))
    for name, facts in header.items():
        where = f"{path.name}, tensor {name[:60]!r}"
        entries[name] = _StoredTensor.locate(path, facts, 8 + length, where).make_entry()
    return entries


@frozen
class _StoredTensor:
    """A tensor that stays in its file, from byte `offset` on."""

    path: Path
    kind: str
    shape: tuple[int, ...]
    offset: int

    @classmethod
    def locate(cls, path: Path, facts: Any, start: int, where: str) -> _StoredTensor:
        """What the header says of a tensor, checked against the bytes that are there."""
        try:
            kind, shape, (begin, end) = facts["dtype"], tuple(facts["shape"]), facts["data_offsets"]
        except (TypeError, KeyError, ValueError):
            got = "has a header entry that is not readable"
            raise InputError(where, got=got, hint="save it again") from None
        whole = all(type(x) is int and x >= 0 for x in (*shape, begin, end))
        if not whole or begin > end or len(shape) > MAX_TENSOR_AXES or not isinstance(kind, str):
            raise InputError(
                where, got="has a header entry that makes no sense", hint="save it again"
            )
        if kind not in SAFETENSORS_DTYPES:
            need = f"known are {', '.join(SAFETENSORS_DTYPES)}, so convert it"
            raise InputError(where, got=f"has dtype {kind[:20]!r}", need=need)
        tensor = cls(path=path, kind=kind, shape=shape, offset=start + begin)
        claimed = math.prod(shape) * tensor.dtype.itemsize
        if claimed != end - begin or start + end > path.stat().st_size:
            got = f"claims shape {shape} of {kind} in {end - begin:,} bytes, which is not there"
            raise InputError(where, got=got)
        if begin == end:
            got = f"has shape {shape}, so it is empty"
            raise InputError(where, got=got, need="at least one sample is needed")
        return tensor

    @property
    def dtype(self) -> np.dtype[Any]:
        """How its numbers are stored."""
        return np.dtype(SAFETENSORS_DTYPES[self.kind])

    def make_entry(self) -> FileEntry:
        """The tensor as an entry."""
        return FileEntry(
            shape=self.shape,
            dtype="bfloat16" if self.kind == "BF16" else str(self.dtype),
            load=self.load,
            blocks=self.read_blocks if self.shape else None,
        )

    def load(self) -> Array:
        """All of it."""
        return self._read(self.offset, self.shape)

    def read_blocks(self, step: int) -> Iterator[Array]:
        """Runs of `step` rows."""
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        for first in range(0, self.shape[0], step):
            rows = min(step, self.shape[0] - first)
            yield self._read(self.offset + first * row_bytes, (rows, *self.shape[1:]))

    def _read(self, offset: int, shape: tuple[int, ...]) -> Array:
        length = math.prod(shape) * self.dtype.itemsize
        with self.path.open("rb") as file:
            file.seek(offset)
            raw = file.read(length)
        if len(raw) != length:
            raise InputError(self.path.name, got="ends too early", hint=SAVE_AGAIN)
        a = convert_bytes(raw, self.dtype)
        if self.kind == "BF16":  # the upper half of a float32
            a = (a.astype(np.uint32) << 16).view(np.float32)
        return a.reshape(shape)
