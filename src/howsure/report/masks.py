"""Segmentation with the image as the unit: rows that add up, and the section of a report about
images.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from howsure import metrics
from howsure._core.check import Array, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.metrics.mean_loss import mean_loss
from howsure.policies.guarantee import guaranteed_threshold
from howsure.predictions import Predictions
from howsure.predictions.images import Images, images_of
from howsure.predictions.outcomes import Outcomes
from howsure.render.model import Entry, ImageClass, ImagePromise, ImageRow, ImageScore, ImagesData
from howsure.report.measurement import with_limits
from howsure.report.thumbnails import overlay
from howsure.uncertainty.intervals import each_interval

RISKS = (0.05, 0.1, 0.2, 0.3)  # mean loss of the accepted images that a promise is looked for
LISTED, PICTURED, SIDE = 50, 12, 64
FEW = 2
WORTH = 0.05  # a share below this is not worth a sentence, where a larger one can be promised at the next risk


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
    maps: dict[
        tuple[int, int], Array
    ]  # by place: predicted + 2 · true foreground, of the worst images

    @classmethod
    def of(cls, preds: Predictions, place: tuple[int, int], score: str | None = None) -> ImageSums:
        """The images of predictions that begin at a row of a file; `score` as in `images_of`."""
        found = images_of(preds, score=score)
        first = _first_rows(preds)
        where = np.stack([np.full(len(first), place[0]), place[1] + first], axis=1)
        return cls(found, where, _maps(preds, found, where))

    @property
    def outcomes(self) -> Outcomes:
        """Images by their first score, the mean confidence unless another is given, with 1 − Dice
        as loss.
        """
        return self.images.outcomes()


def _first_rows(preds: Predictions) -> Ints:
    if preds.layout is not None:
        return np.unique(preds.layout.unit, return_index=True)[1]
    return np.unique(np.asarray(preds.group), return_index=True)[1]


def _maps(preds: Predictions, found: Images, where: Array) -> dict[tuple[int, int], Array]:
    layout = preds.layout
    if layout is None or not layout.whole or len(layout.shape) != 2:
        return {}
    step = -(-max(layout.shape) // SIDE)
    out: dict[tuple[int, int], Array] = {}
    for i in worst(found.loss, found.names)[:PICTURED].tolist():
        rows = slice(i * layout.size, (i + 1) * layout.size)
        code = np.isin(preds.prediction[rows], found.classes) + 2 * np.isin(
            preds.labels[rows], found.classes
        )
        out[_key(where, i)] = code.reshape(layout.shape)[::step, ::step].astype(np.uint8)
    return out


def _key(where: Array, i: int) -> tuple[int, int]:
    return int(where[i, 0]), int(where[i, 1])


def worst(loss: Floats, names: Array) -> Ints:
    """The order of images, largest loss first."""
    return np.lexsort((names.astype(str), -loss))


def sum_images(every: Sequence[ImageSums]) -> ImageSums:
    """All images of all of them, in the order of files and rows."""
    if len(every) == 1:
        return every[0]
    first = every[0].images
    if any(s.images.classes != first.classes for s in every):
        raise InputError("the parts have different foreground classes; evaluate them separately.")
    place = np.concatenate([s.place for s in every])
    order = np.lexsort((place[:, 1], place[:, 0]))
    names, dice, predicted, true = (
        np.concatenate([getattr(s.images, name) for s in every])[order]
        for name in ("names", "dice", "predicted", "true")
    )
    scores = {
        name: np.concatenate([s.images.scores[name] for s in every])[order] for name in first.scores
    }
    images = Images(np.arange(len(order)), names, first.classes, dice, scores, predicted, true)
    place = place[order]
    kept = [_key(place, i) for i in worst(images.loss, images.names)[:PICTURED].tolist()]
    maps = {key: s.maps[key] for key in kept for s in every if key in s.maps}
    return ImageSums(images, place, maps)


def in_file(s: ImageSums, file: int) -> ImageSums:
    """The same images, of a file with another number."""
    place = s.place.copy()
    place[:, 0] = file
    return ImageSums(s.images, place, {(file, row): a for (_, row), a in s.maps.items()})


def image_section(
    s: ImageSums, level: float, names: Sequence[str], pictures: Sequence[ArrayLike] | None
) -> ImagesData:
    """What is said of images: their mean loss, scores, promises, classes, and the worst of them
    with overlays.
    """
    images = s.images
    if len(images) < FEW:
        got = (
            f"there is {len(images)} image; at least {FEW} are needed to ask which images to trust"
        )
        raise InputError(f"{got}. Leave out the loss to evaluate its pixels.")
    if pictures is not None and len(pictures) != len(images):
        raise InputError(
            f"images has {len(pictures):,} pictures for {len(images):,} images; one for each is needed."
        )
    return {
        "images": len(images),
        "scores": [_score(name, images, level) for name in images.scores],
        "promises": [_promise(s.outcomes, risk, level) for risk in RISKS],
        "classes": [_class(images, i, names, level) for i in range(len(images.classes))],
        "rows": [_row(s, i, pictures) for i in worst(images.loss, images.names)[:LISTED].tolist()],
    }


def image_verdict(loss: Entry, found: ImagesData) -> list[str]:
    """Two sentences for those who read nothing else: how good the masks are, and which may be used
    as they are.

    >>> image_verdict({"value": 0.2, "low": 0.1, "high": 0.3, "better": "lower"}, {"images": 9, "promises": []})[0]
    'The mean Dice of 9 images is 0.800 (0.700 to 0.900).'
    """
    low, high, value = loss.get("low"), loss.get("high"), loss["value"] or 0.0
    limits = "" if low is None or high is None else f" ({1 - high:.3f} to {1 - low:.3f})"
    first = f"The mean Dice of {found['images']:,} images is {1 - value:.3f}{limits}."
    good = [p for p in found["promises"] if p["threshold"] is not None]
    p = next((p for p in good if p["coverage"] >= WORTH), good[-1] if good else None)
    if p is None:
        last = found["promises"][-1:]
        if last and last[0]["images_needed"] is not None:
            wish = f"would show a share with a mean 1 − Dice of at most {last[0]['risk']:g}, if it stays as good as here."
            return [
                first,
                f"Too few images for a promise: about {last[0]['images_needed']:,} {wish}",
            ]
        return [
            first,
            "No share of its masks can be promised to be good enough; all go to a reader.",
        ]
    if p["coverage"] == 1:
        which = "All masks may be used as they are: their mean 1 − Dice is"
    else:
        which = f"Masks of the surest {p['coverage'] * 100:.1f} % may be used as they are, the others go to a reader:"
        which += " the mean 1 − Dice of the first is"
    return [first, f"{which} at most {p['risk']:g}, {p['sure'] * 100:g} % sure."]


def _score(name: str, images: Images, level: float) -> ImageScore:
    o = images.outcomes(name)
    return {
        "name": name,
        "aurc": with_limits(metrics.aurc(o.tally()), each_interval([metrics.aurc], o, level)[0]),
    }


def _promise(o: Outcomes, risk: float, level: float) -> ImagePromise:
    g = guaranteed_threshold(o, risk=risk, delta=1 - level, bound="betting")
    none = not g.feasible
    return {
        "risk": risk,
        "sure": level,
        "threshold": None if none else g.threshold,
        "coverage": g.coverage,
        "observed": None if none else g.observed,
        "bound": None if none else g.bound,
        "images_needed": g.labels_needed,
    }


def _class(images: Images, i: int, names: Sequence[str], level: float) -> ImageClass:
    dice = images.dice[:, i]
    limits = each_interval([mean_loss], Outcomes(-dice, loss=dice), level)[0]
    return {
        "name": names[images.classes[i]],
        "dice": with_limits(float(dice.mean()), limits),
        "missed": int((dice == 0).sum()),
        "perfect": int((dice == 1).sum()),
    }


def _row(s: ImageSums, i: int, pictures: Sequence[ArrayLike] | None) -> ImageRow:
    images = s.images
    row: ImageRow = {
        "name": str(images.names[i]),
        "score": float(images.score()[i]),
        "dice": float(1 - images.loss[i]),
        "predicted": float(images.predicted[i]),
        "true": float(images.true[i]),
    }
    code = s.maps.get(_key(s.place, i))
    if code is not None:
        row["overlay"] = overlay(code, None if pictures is None else np.asarray(pictures[i]))
    return row
