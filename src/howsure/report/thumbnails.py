"""Small pictures as PNG, without a package for it."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

import numpy as np

from howsure._core.check import Array, InputError

SIDE = 32  # pixels; larger pictures are thinned


def thumbnail(image: Array) -> str:
    """A picture (h, w) or (h, w, 3), uint8 or floats in [0, 1], as a data address of at most 32 ×
    32 pixels.

    >>> thumbnail(np.zeros((2, 2)))[:22]
    'data:image/png;base64,'
    """
    a = _pixels(image)
    step = -(-max(a.shape[:2]) // SIDE)
    return "data:image/png;base64," + b64encode(png(a[::step, ::step])).decode()


PAINT = np.array(
    [[0, 0, 0], [213, 94, 0], [0, 114, 178], [0, 158, 115]]
)  # nothing, false alarm, missed, found


def overlay(code: Array, image: Array | None) -> str:
    """Masks over a grey picture as a data address: 1 false alarm (orange), 2 missed (blue), 3 found
    (green).

    >>> overlay(np.array([[0, 1], [2, 3]]), None)[:22]
    'data:image/png;base64,'
    """
    ground = np.full(code.shape, 40.0) if image is None else _fitted(_pixels(image), code.shape)
    ground = ground // 16 * 16 + 8  # 16 greys: a third of the bytes
    part = np.where(code > 0, 0.55, 0.0)[..., None]
    mixed = (1 - part) * ground[..., None] + part * PAINT[code]
    return "data:image/png;base64," + b64encode(png(mixed.round().astype(np.uint8))).decode()


def _fitted(a: Array, shape: tuple[int, ...]) -> Array:
    """A grey picture at as many points as the masks have."""
    grey = a if a.ndim == 2 else a.mean(axis=2)
    rows, columns = (np.arange(n) * size // n for n, size in zip(shape, grey.shape, strict=True))
    return np.asarray(grey[np.ix_(rows, columns)], dtype=np.float64)


def _pixels(image: Array) -> Array:
    a = np.asarray(image)
    if a.ndim == 3 and a.shape[2] == 1:
        a = a[:, :, 0]
    if a.ndim not in (2, 3) or (a.ndim == 3 and a.shape[2] != 3) or 0 in a.shape:
        raise InputError(
            f"an image has shape {a.shape}; (height, width) or (height, width, 3) is needed."
        )
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
