"""Segmentation with the image as the unit: rows that add up, and the section of a report about
images.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from howsure import metrics
from howsure._core.checks import Array, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.text import format_rounded_up
from howsure.metrics.proper_scores import mean_loss
from howsure.policies.guarantee import guaranteed_threshold
from howsure.predictions import Predictions
from howsure.predictions.images import Images, images_of
from howsure.predictions.outcomes import Outcomes
from howsure.report.measurement import build_number
from howsure.report.report_types import (
    Entry,
    ImageClass,
    ImageGuarantee,
    ImageRow,
    ImageScore,
    ImagesData,
)
from howsure.uncertainty.intervals import each_interval

# Mean losses of the accepted images that may be promised.
RISK_LADDER = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)
MAX_LISTED_IMAGES = 50
MAX_OVERLAYS = 12
OVERLAY_PIXELS = 64  # of the longer side
MIN_IMAGES = 2
# A smaller share is not worth a sentence, where a larger one can be promised at the next risk.
MIN_SHARE_TO_MENTION = 0.05

PixelPlace = tuple[int, int]  # file and row of an image's first pixel

THUMBNAIL_PIXELS = 32  # of the longer side; larger pictures are thinned
# By code: neither mask, false alarm (orange), missed (blue), found (green).
MASK_COLOURS = np.array([[0, 0, 0], [213, 94, 0], [0, 114, 178], [0, 158, 115]])


@frozen(eq=False)
class ImageSums:
    """One row per image, with the place of its first pixel, and the masks of the worst; `a + b` has
    the images of both.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1], group=["a", "b"])
    >>> len(ImageSums.of(p, (0, 0)).images)
    2
    """

    images: Images
    place: Array  # (images, 2): file and row
    maps: dict[PixelPlace, Array]  # of the worst images: predicted + 2 · true foreground

    @classmethod
    def of(cls, preds: Predictions, place: PixelPlace, score: str | None = None) -> ImageSums:
        """The images of predictions that begin at a row of a file; `score` as in `images_of`."""
        images = images_of(preds, score=score)
        layout = preds.layout
        unit = np.asarray(preds.group) if layout is None else layout.unit
        first_row = np.unique(unit, return_index=True)[1]
        places = np.stack([np.full(len(first_row), place[0]), place[1] + first_row], axis=1)
        maps: dict[PixelPlace, Array] = {}
        # Only whole images in two dimensions can be drawn.
        if layout is not None and layout.whole and len(layout.shape) == 2:
            step = -(-max(layout.shape) // OVERLAY_PIXELS)
            for i in _order_by_loss(images)[:MAX_OVERLAYS].tolist():
                rows = slice(i * layout.size, (i + 1) * layout.size)
                predicted = np.isin(preds.prediction[rows], images.classes)
                code = predicted + 2 * np.isin(preds.labels[rows], images.classes)
                small = code.reshape(layout.shape)[::step, ::step]
                maps[_get_place(places, i)] = small.astype(np.uint8)
        return cls(images=images, place=places, maps=maps)

    @property
    def outcomes(self) -> Outcomes:
        """Images by their first score, the mean confidence unless another is given, with 1 − Dice
        as loss.
        """
        return self.images.outcomes()


def _order_by_loss(images: Images) -> Ints:
    """The images, largest loss first."""
    return np.lexsort((images.names.astype(str), -images.loss))


def _get_place(places: Array, i: int) -> PixelPlace:
    return int(places[i, 0]), int(places[i, 1])


def merge_image_sums(every: Sequence[ImageSums]) -> ImageSums:
    """All images of all of them, in the order of files and rows."""
    if len(every) == 1:
        return every[0]
    first = every[0].images
    if any(s.images.classes != first.classes for s in every):
        raise InputError("the parts have different foreground classes; evaluate them separately.")
    place = np.concatenate([s.place for s in every])
    order = np.lexsort((place[:, 1], place[:, 0]))
    place = place[order]
    scores: dict[str, Floats] = {}
    for name in first.scores:
        scores[name] = np.concatenate([s.images.scores[name] for s in every])[order]
    images = Images(
        unit=np.arange(len(order)),
        names=np.concatenate([s.images.names for s in every])[order],
        classes=first.classes,
        dice=np.concatenate([s.images.dice for s in every])[order],
        scores=scores,
        predicted=np.concatenate([s.images.predicted for s in every])[order],
        true=np.concatenate([s.images.true for s in every])[order],
    )
    known: dict[PixelPlace, Array] = {}
    for s in every:
        known |= s.maps
    worst = [_get_place(place, i) for i in _order_by_loss(images)[:MAX_OVERLAYS].tolist()]
    return ImageSums(
        images=images, place=place, maps={key: known[key] for key in worst if key in known}
    )


def move_to_file(s: ImageSums, file: int) -> ImageSums:
    """The same images, of a file with another number."""
    place = s.place.copy()
    place[:, 0] = file
    maps = {(file, row): code for (_, row), code in s.maps.items()}
    return ImageSums(images=s.images, place=place, maps=maps)


def build_image_section(
    s: ImageSums, level: float, names: Sequence[str], pictures: Sequence[ArrayLike] | None
) -> ImagesData:
    """What is said of images: their mean loss, scores, promises, classes, and the worst of them
    with overlays.
    """
    images = s.images
    if len(images) < MIN_IMAGES:
        raise InputError(
            f"there is {len(images)} image; at least {MIN_IMAGES} are needed to ask which images "
            "to trust. Leave out the loss to evaluate its pixels."
        )
    if pictures is not None and len(pictures) != len(images):
        raise InputError(
            f"images has {len(pictures):,} pictures for {len(images):,} images; one for each is "
            "needed."
        )
    scores: list[ImageScore] = []
    for name in images.scores:
        outcomes = images.outcomes(name)
        limits = each_interval([metrics.aurc], outcomes, level)[0]
        aurc = build_number(metrics.aurc(outcomes.tally()), limits, with_note=True)
        scores.append({"name": name, "aurc": aurc})
    classes: list[ImageClass] = []
    for i, c in enumerate(images.classes):
        dice = images.dice[:, i]
        limits = each_interval([mean_loss], Outcomes(-dice, loss=dice), level)[0]
        of_class: ImageClass = {
            "name": names[c],
            "dice": build_number(float(dice.mean()), limits, with_note=True),
            "missed": int((dice == 0).sum()),
            "perfect": int((dice == 1).sum()),
        }
        classes.append(of_class)
    worst = _order_by_loss(images)[:MAX_LISTED_IMAGES].tolist()
    own = float(images.loss.mean())
    return {
        "images": len(images),
        "scores": scores,
        "guarantees": [_find_guarantee(s.outcomes, risk, level) for risk in choose_risks(own)],
        "classes": classes,
        "rows": [_build_row(s, i, pictures) for i in worst],
    }


def choose_risks(own: float) -> tuple[float, ...]:
    """Levels near the mean loss of all images: one below it and two above.

    >>> choose_risks(0.053), choose_risks(0.9)
    ((0.05, 0.07, 0.1), (0.5, 0.7))
    """
    above = sum(risk < own for risk in RISK_LADDER)
    return (
        RISK_LADDER[max(0, above - 1) : above + 2] if above < len(RISK_LADDER) else RISK_LADDER[-2:]
    )


def _find_guarantee(outcomes: Outcomes, risk: float, level: float) -> ImageGuarantee:
    # The data decide which risks of the ladder are told, so each has its share of delta.
    delta = (1 - level) / len(RISK_LADDER)
    # The loss lies in [0, 1] but is not 0 or 1, which the betting bound handles best.
    g = guaranteed_threshold(outcomes, risk=risk, delta=delta, bound="betting")
    return {
        "risk": risk,
        "sure": level,
        "threshold": g.threshold if g.feasible else None,
        "coverage": g.coverage,
        "observed": g.observed if g.feasible else None,
        "bound": g.bound if g.feasible else None,
        "images_needed": g.labels_needed,
    }


def _build_row(s: ImageSums, i: int, pictures: Sequence[ArrayLike] | None) -> ImageRow:
    images = s.images
    row: ImageRow = {
        "name": str(images.names[i]),
        "score": float(images.score()[i]),
        "dice": float(1 - images.loss[i]),
        "predicted": float(images.predicted[i]),
        "true": float(images.true[i]),
    }
    code = s.maps.get(_get_place(s.place, i))
    if code is not None:
        picture = None if pictures is None else np.asarray(pictures[i])
        row["overlay"] = draw_overlay(code, picture)
    return row


def write_image_verdict(loss: Entry, section: ImagesData) -> list[str]:
    """Two sentences for those who read nothing else: how good the masks are, and which may be used
    as they are.

    >>> loss = {"value": 0.2, "low": 0.1, "high": 0.3, "better": "lower"}
    >>> write_image_verdict(loss, {"images": 9, "guarantees": []})[0]
    'The mean Dice of 9 images is 0.800 (0.700–0.900).'
    """
    value, low, high = loss["value"] or 0.0, loss.get("low"), loss.get("high")
    limits = ""
    if low is not None and high is not None:
        limits = f" ({1 - high:.3f}–{1 - low:.3f})"
    quality = f"The mean Dice of {section['images']:,} images is {1 - value:.3f}{limits}."
    kept = [promise for promise in section["guarantees"] if promise["threshold"] is not None]
    if kept:
        worth = [promise for promise in kept if promise["coverage"] >= MIN_SHARE_TO_MENTION]
        best = worth[0] if worth else kept[-1]
        which, rest = "Use all masks as they are", ""
        if best["coverage"] < 1:
            share = f"{best['coverage'] * 100:.1f}".removesuffix(".0")
            which = f"Use the most confident {share} % of the masks as they are"
            rest = "; the others go to a reader"
        promise = f"guaranteed a mean 1 − Dice of at most {best['risk']:g} among such images"
        return [quality, f"{which}: {promise} ({best['sure'] * 100:g} % confidence){rest}."]
    last = section["guarantees"][-1:]
    if last and last[0]["images_needed"] is not None:
        needed, risk = format_rounded_up(last[0]["images_needed"]), last[0]["risk"]
        return [
            quality,
            f"Not enough images to guarantee a mean 1 − Dice of at most {risk:g}; about {needed} "
            "would usually be enough.",
        ]
    return [quality, "No share of the masks is guaranteed to be good enough; all go to a reader."]


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
