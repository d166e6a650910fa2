"""Segmentation with the image as the unit, and arrays with masked rows.

Pixels → one loss, 1 − Dice, and a few scores for each image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.predictions.class_labels import read_array
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions

if TYPE_CHECKING:
    from howsure.tallies.tally import Tally

SURE_CONFIDENCE = 0.9  # from which a pixel counts as sure
IMAGE_SCORES = ("mean_confidence", "mean_certainty", "sure_pixels")


@frozen(eq=False)
class Images:
    """One row per image: Dice of each foreground class (images, classes), and scores by name,
    higher = trust more.

    `loss` is 1 minus the mean Dice over the classes; `predicted` and `true` are the shares of
    foreground pixels. `unit` numbers the images, `names` are their groups.

    >>> half = np.array([0.5])
    >>> Images(np.array([0]), np.array(["scan"]), (1,), np.array([[0.75]]), {}, half, half).loss
    array([0.25])
    """

    unit: Ints
    names: Array
    classes: tuple[int, ...]
    dice: Floats
    scores: dict[str, Floats]
    predicted: Floats
    true: Floats

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def loss(self) -> Floats:
        """1 − Dice of each image."""
        return 1.0 - self.dice.mean(axis=1)

    def predictions(self, score: str | None = None) -> Predictions:
        """One row per image: its score as confidence, 1 − Dice as its loss, its name as id: what a
        policy is fitted on.

        The first score unless named: the given one, or the mean confidence of the pixels.
        """
        return Predictions.from_confidence(self.score(score), loss=self.loss, ids=self.names)

    def score(self, name: str | None = None) -> Floats:
        """A score by its name; the first unless named."""
        if name is not None and name not in self.scores:
            raise InputError(f"{name!r} is no score of images; there are {', '.join(self.scores)}.")
        return self.scores[name or next(iter(self.scores))]

    def outcomes(self, score: str | None = None) -> Outcomes:
        """Images with a score and their loss; the first score unless named."""
        return Outcomes(self.score(score), loss=self.loss, id=self.names)


def images_of(
    preds: Predictions, classes: Sequence[int] | None = None, score: str | None = None
) -> Images:
    """Each image of pixel predictions. Both masks empty: Dice 1; one of them empty: Dice 0.

    `score` names a further column of the predictions (`attributes`), higher = trust more, that is
    averaged over the pixels of an image and becomes its first score; or one of the usual scores,
    which then comes first.

    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]
    >>> images = images_of(Predictions.from_probs(p, [0, 1, 0, 1], group=["a", "a", "b", "b"]))
    >>> images.loss, images.scores["mean_confidence"]
    (array([0., 1.]), array([0.85, 0.65]))
    """
    needs_predictions(preds, "images_of")
    unit, names = _number_images(preds)
    k = preds.k or 0
    if classes is None:
        classes = range(1, k)
    foreground = tuple(int(c) for c in classes)
    if not foreground or not all(0 <= c < k for c in foreground):
        raise InputError(
            "classes",
            got=f"is {list(foreground)}",
            need=f"foreground classes between 0 and {k - 1} are needed",
        )
    answer, true = preds.prediction, preds.labels
    # 2 |both| / (|answer| + |true|) of each image, 1 where both masks are empty.
    dice: list[Floats] = []
    for c in foreground:
        of_answer, of_true = answer == c, true == c
        both = count_values(unit[of_answer & of_true], minlength=len(names))
        size = count_values(unit[of_answer], minlength=len(names))
        size += count_values(unit[of_true], minlength=len(names))
        dice.append(np.where(size > 0, 2 * both / np.maximum(size, 1), 1.0))
    numbers = np.arange(len(names), dtype=np.int64)
    if preds.layout is not None:
        numbers = np.unique(preds.layout.unit)
    return Images(
        unit=numbers,
        names=names,
        classes=foreground,
        dice=np.stack(dice, axis=1),
        scores=_score_images(preds, unit, score),
        predicted=_average_pixels(unit, np.isin(answer, foreground)),
        true=_average_pixels(unit, np.isin(true, foreground)),
    )


def image_confidences(preds: Predictions, score: str | None = None) -> Predictions:
    """One row per image, with its score as confidence and its name as id; true masks are not
    needed.

    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]
    >>> image_confidences(Predictions.from_probs(p, group=["a", "a", "b", "b"])).confidence
    array([0.85, 0.65])
    """
    unit, names = _number_images(preds)
    scores = _score_images(preds, unit, score)
    return Predictions.from_confidence(scores[score or IMAGE_SCORES[0]], ids=names)


def _average_pixels(unit: Ints, values: Array) -> Floats:
    """The mean over the pixels of each image."""
    return count_values(unit, values.astype(np.float64)) / count_values(unit)


def _score_images(preds: Predictions, unit: Ints, first: str | None) -> dict[str, Floats]:
    """The scores of each image, `first` before the others."""
    columns = preds.columns
    most_entropy = 1.0
    if preds.k is not None and preds.k > 1:
        most_entropy = np.log(preds.k)
    entropy = _average_pixels(unit, columns.entropy)
    scores = {
        "mean_confidence": _average_pixels(unit, columns.max_prob),
        "mean_certainty": 1.0 - np.clip(entropy / most_entropy, 0.0, 1.0),
        "sure_pixels": _average_pixels(unit, columns.max_prob >= SURE_CONFIDENCE),
    }
    if first is None:
        return scores
    if first in scores:
        return {first: scores[first]} | scores
    known = preds.attributes or {}
    if first not in known:
        there = ", ".join([*IMAGE_SCORES, *known])
        raise InputError(f"there is no column {first!r} for a score of images; there are {there}.")
    column = checks.finite(checks.column(known[first], first).astype(np.float64), first)
    # Around the first pixel: what is the same in all pixels stays what it is, to the last bit.
    at_first = column[np.unique(unit, return_index=True)[1]]
    return {first: at_first + _average_pixels(unit, column - at_first[unit])} | scores


def _number_images(preds: Predictions) -> tuple[Ints, Array]:
    """The number of each pixel's image, and what the images are called."""
    preds.needs_vector("an image")
    if preds.weight is not None:
        raise InputError("pixels have weights; images count alike, so leave out weight.")
    if preds.group is None:
        raise InputError(
            "an image is a group of pixels; give group=, the image that each pixel belongs to."
        )
    if preds.layout is not None and preds.layout.parts == "pixels":
        _, first, unit = np.unique(preds.layout.unit, return_index=True, return_inverse=True)
        names = preds.group[first]
    else:
        names, unit = np.unique(preds.group, return_inverse=True)
    return unit.reshape(-1).astype(np.int64), names


def image_tally(
    preds: Predictions, score: ArrayLike | None = None, classes: Sequence[int] | None = None
) -> Tally:
    r"""A tally of images: the loss is 1 − Dice of each image, the score its mean `max_prob` over
    pixels unless given.

    .. math:: \ell_i = 1 - \frac{2 |P_i \cap T_i|}{|P_i| + |T_i|}

    averaged over the foreground `classes` (all but 0 unless given); both masks empty counts Dice 1, one of them Dice 0.
    Images are the samples: `aurc` of it asks which *images* to send to a reader, and its limits are over images.
    `dice_tally` is another number, the paper's: it accepts single *pixels* and measures one Dice over all that are
    kept. `score` has one number per image, in the order of the images. Ding et al. 2020, section 4.1.

    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]
    >>> image_tally(Predictions.from_probs(p, [0, 1, 0, 1], group=["a", "a", "b", "b"]))
    <Tally: n=2, loss=1, 2 distinct scores>
    """
    needs_predictions(preds, "image_tally")
    images = images_of(preds, classes)
    if score is None:
        return images.outcomes().tally()
    given = checks.same_length(checks.column(score, "score"), "score", len(images), "the images")
    return Outcomes(given, loss=images.loss).tally()


def without_masked(*columns: object) -> tuple[Array, ...]:
    """The columns without the rows in which any of them is masked, as plain arrays.

    Masked arrays are refused everywhere else, for their mask would be lost without a word. Rows are
    the first axis of every column; a row is left out where any of its values is masked.

    >>> score = np.ma.array([0.9, 0.8, 0.7], mask=[False, True, False])
    >>> without_masked(score, [1, 0, 1])
    (array([0.9, 0.7]), array([1, 1]))
    """
    if not columns:
        raise InputError(
            "without_masked needs the columns that belong together, as in without_masked(probs, labels)."
        )
    arrays: list[Array] = []
    masks: list[object] = []
    for column in columns:
        is_masked = issubclass(type(column), np.ma.MaskedArray)
        arrays.append(read_array(getattr(column, "data", column) if is_masked else column))
        masks.append(getattr(column, "mask", False) if is_masked else False)
    if any(a.ndim == 0 for a in arrays):
        raise InputError(
            "without_masked needs columns with a row for each sample; one of these is a single value."
        )
    n = len(arrays[0])
    keep: Bools = np.ones(n, dtype=np.bool_)
    for i, (a, mask) in enumerate(zip(arrays, masks, strict=True)):
        checks.same_length(a, f"column {i}", n, "column 0")
        hidden: Bools = np.broadcast_to(np.asarray(mask, dtype=np.bool_), a.shape)
        keep &= ~hidden.reshape(n, -1).any(axis=1)
    if not keep.any():
        raise InputError(f"all {n:,} rows are masked in some column; nothing is left.")
    return tuple(a[keep] for a in arrays)
