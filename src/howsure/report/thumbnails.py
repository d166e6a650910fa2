"""Small pictures as PNG, without a package for it."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

import numpy as np

from howsure._core.check import Array, InputError, Ints

THUMBNAIL_PIXELS = 32  # of the longer side; larger pictures are thinned
# By code: neither mask, false alarm (orange), missed (blue), found (green).
MASK_COLOURS = np.array([[0, 0, 0], [213, 94, 0], [0, 114, 178], [0, 158, 115]])


def draw_thumbnail(image: Array) -> str:
    """A picture (h, w) or (h, w, 3), uint8 or floats in [0, 1], as a data address of at most 32 ×
    32 pixels.

    >>> draw_thumbnail(np.zeros((2, 2)))[:22]
    'data:image/png;base64,'
    """
    pixels = _read_pixels(image)
    step = -(-max(pixels.shape[:2]) // THUMBNAIL_PIXELS)
    return _encode_address(pixels[::step, ::step])


def draw_overlay(code: Array, image: Array | None) -> str:
    """Masks over a grey picture as a data address: 1 false alarm (orange), 2 missed (blue), 3 found
    (green).

    >>> draw_overlay(np.array([[0, 1], [2, 3]]), None)[:22]
    'data:image/png;base64,'
    """
    ground = np.full(code.shape, 40.0)
    if image is not None:
        grey = _read_pixels(image)
        if grey.ndim == 3:
            grey = grey.mean(axis=2)
        # The picture at as many points as the masks have.
        rows = _spread(code.shape[0], grey.shape[0])
        columns = _spread(code.shape[1], grey.shape[1])
        ground = np.asarray(grey[np.ix_(rows, columns)], dtype=np.float64)
    ground = ground // 16 * 16 + 8  # 16 greys: a third of the bytes
    opacity = np.where(code > 0, 0.55, 0.0)[..., None]
    mixed = (1 - opacity) * ground[..., None] + opacity * MASK_COLOURS[code]
    return _encode_address(mixed.round().astype(np.uint8))


def _spread(points: int, size: int) -> Ints:
    return np.arange(points) * size // points


def _read_pixels(image: Array) -> Array:
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


def _encode_address(pixels: Array) -> str:
    return "data:image/png;base64," + b64encode(encode_png(pixels)).decode()


def encode_png(pixels: Array) -> bytes:
    """The bytes of a grey or RGB picture."""
    height, width = pixels.shape[:2]
    colour_type = 2 if pixels.ndim == 3 else 0
    head = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each begins with its filter: none
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")):
        checksum = zlib.crc32(kind + data)
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
    return png
