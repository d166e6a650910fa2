"""Small pictures as PNG, without a package for it."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

import numpy as np

from howsure._core.check import Array, InputError

SIDE = 32  # pixels; larger pictures are thinned


def thumbnail(image: Array) -> str:
    """A picture (h, w) or (h, w, 3), uint8 or floats in [0, 1], as a data address of at most 32 × 32 pixels.

    >>> thumbnail(np.zeros((2, 2)))[:22]
    'data:image/png;base64,'
    """
    a = _pixels(image)
    step = -(-max(a.shape[:2]) // SIDE)
    return "data:image/png;base64," + b64encode(png(a[::step, ::step])).decode()


def _pixels(image: Array) -> Array:
    a = np.asarray(image)
    if a.ndim == 3 and a.shape[2] == 1:
        a = a[:, :, 0]
    if a.ndim not in (2, 3) or (a.ndim == 3 and a.shape[2] != 3) or 0 in a.shape:
        raise InputError(f"an image has shape {a.shape}; (height, width) or (height, width, 3) is needed.")
    if a.dtype == np.uint8:
        return a
    if a.dtype.kind != "f" or a.min() < 0 or a.max() > 1:
        raise InputError(f"images have dtype {a.dtype}; uint8, or floats in [0, 1], are needed.")
    return (a * 255).round().astype(np.uint8)


def png(a: Array) -> bytes:
    """The bytes of a grey or RGB picture."""
    height, width = a.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if a.ndim == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in a)  # each row starts with its filter: none
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
