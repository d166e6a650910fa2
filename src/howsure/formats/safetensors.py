"""Safetensors: a JSON header with shapes and offsets, then the numbers. Small enough to need no
package.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from howsure._core.check import Array, InputError
from howsure._core.text import array_of
from howsure.formats.contents import AGAIN, Contents, Entry, as_list, as_record, in_memory
from howsure.formats.npy import native

suffixes = (".safetensors",)
title = "safetensors"
DTYPES = {
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
HEADER = 100 << 20
PARTS = 200_000  # lists, objects and values in a header, beside its texts: each takes far more memory than bytes
TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def read(path: Path, rows: int | None) -> Iterator[Contents]:  # noqa: ARG001 - entries are read when they are asked for
    """The tensors; they stay in the file until they are loaded. Texts are lists in the metadata."""
    header, start = _header(path)
    metadata = as_record(header.pop("__metadata__", None)) or {}
    entries = {name: _entry(path, name, facts, start) for name, facts in header.items()}
    yield Contents(
        path, {**{name: in_memory(a) for name, a in _texts(metadata).items()}, **entries}
    )


def _header(path: Path) -> tuple[dict[str, Any], int]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(HEADER, path.stat().st_size - 8):
            raise InputError(
                path.name, got="is not a safetensors file, or is truncated", hint=AGAIN
            )
        raw = file.read(length)
    marks = (b"{", b"[", b",")
    quoted = sum(found[0].count(mark) for found in TEXT.finditer(raw) for mark in marks)
    if (parts := sum(map(raw.count, marks)) - quoted) > PARTS:
        raise InputError(
            path.name, got=f"has a header of {parts:,} parts", need=f"at most {PARTS:,} are read"
        )
    try:
        header = as_record(json.loads(raw))
    except (ValueError, RecursionError):
        header = None
    if header is None:
        raise InputError(path.name, got="has a header that is not readable", hint=AGAIN)
    return header, 8 + length


def _entry(path: Path, name: str, facts: Any, start: int) -> Entry:
    where = f"{path.name}, tensor {name[:60]!r}"
    kind, shape, begin, end = _facts(facts, where)
    if kind not in DTYPES:
        need = f"known are {', '.join(DTYPES)}, so convert it"
        raise InputError(where, got=f"has dtype {kind[:20]!r}", need=need)
    dtype = np.dtype(DTYPES[kind])
    if math.prod(shape) * dtype.itemsize != end - begin or start + end > path.stat().st_size:
        raise InputError(
            where,
            got=f"claims shape {shape} of {kind} in {end - begin:,} bytes, which is not there",
        )
    if begin == end:
        raise InputError(
            where, got=f"has shape {shape}, so it is empty", need="at least one sample is needed"
        )

    def load() -> Array:
        return _widened(_read(path, start + begin, end - begin, dtype), kind).reshape(shape)

    def blocks(step: int) -> Iterator[Array]:
        row = math.prod(shape[1:]) * dtype.itemsize
        for i in range(0, shape[0], step):
            n = min(step, shape[0] - i)
            yield _widened(_read(path, start + begin + i * row, n * row, dtype), kind).reshape(
                n, *shape[1:]
            )

    return Entry(
        shape, str(dtype) if kind != "BF16" else "bfloat16", load, blocks if shape else None
    )


def _facts(facts: Any, where: str) -> tuple[str, tuple[int, ...], int, int]:
    try:
        kind, shape, (begin, end) = facts["dtype"], tuple(facts["shape"]), facts["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise InputError(
            where, got="has a header entry that is not readable", hint="save it again"
        ) from None
    whole = all(type(x) is int and x >= 0 for x in (*shape, begin, end))
    if not whole or begin > end or len(shape) > 32 or not isinstance(kind, str):
        raise InputError(where, got="has a header entry that makes no sense", hint="save it again")
    return kind, shape, begin, end


def _read(path: Path, offset: int, length: int, dtype: np.dtype[Any]) -> Array:
    with path.open("rb") as file:
        file.seek(offset)
        raw = file.read(length)
    if len(raw) != length:
        raise InputError(path.name, got="ends too early", hint=AGAIN)
    return native(raw, dtype)


def _widened(a: Array, kind: str) -> Array:
    """A bfloat16 is the upper half of a float32."""
    return (a.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else a


def _texts(metadata: dict[str, Any]) -> dict[str, Array]:
    """Columns of text, which tensors cannot hold."""
    out: dict[str, Array] = {}
    for name, value in metadata.items():
        try:
            cells = as_list(json.loads(value))
        except (ValueError, TypeError, RecursionError):
            continue  # other programs keep what they like there
        if cells and all(isinstance(c, str) for c in cells):
            out[name] = array_of(cells)
    return out


def write(arrays: dict[str, Array], path: Path, *, suffix: str) -> None:  # noqa: ARG001 - one layout
    """Tensors in the order given; columns of text as JSON lists in the metadata."""
    codes = {np.dtype(code): kind for kind, code in DTYPES.items() if kind != "BF16"}
    tensors = {
        n: np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<")))
        for n, a in arrays.items()
        if a.dtype.kind != "U"
    }
    texts = {n: json.dumps(a.tolist()) for n, a in arrays.items() if a.dtype.kind == "U"}
    header: dict[str, Any] = {"__metadata__": texts} if texts else {}
    end = 0
    for name, a in tensors.items():
        header[name] = {
            "dtype": codes[a.dtype],
            "shape": list(a.shape),
            "data_offsets": [end, end + a.nbytes],
        }
        end += a.nbytes
    front = json.dumps(header).encode()
    front += b" " * (-len(front) % 8)
    with path.open("wb") as file:
        file.writelines(
            [len(front).to_bytes(8, "little"), front, *(a.tobytes() for a in tensors.values())]
        )
