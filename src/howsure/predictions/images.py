"""Segmentation with the image as the unit: pixels → one loss, 1 − Dice, and a few scores for each
image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.tallies.tally import Tally

SURE = 0.9  # confidence from which a pixel counts as sure
SCORES = ("mean_confidence", "mean_certainty", "sure_pixels")


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
    >>> found = images_of(Predictions.from_probs(p, [0, 1, 0, 1], group=["a", "a", "b", "b"]))
    >>> found.loss, found.scores["mean_confidence"]
    (array([0., 1.]), array([0.85, 0.65]))
    """
    needs_predictions(preds, "images_of")
    unit, names = _units(preds)
    fore = _foreground(preds, classes)
    size = np.bincount(unit)
    mean: Callable[[Array], Floats] = lambda a: np.bincount(unit, a) / size
    said, true = preds.prediction, preds.labels
    return Images(
        np.arange(len(names), dtype=np.int64)
        if preds.layout is None
        else np.unique(preds.layout.unit),
        names,
        fore,
        np.stack([_dice(unit, said == f, true == f) for f in fore], axis=1),
        _scores(preds, unit, score),
        mean(np.isin(said, fore).astype(np.float64)),
        mean(np.isin(true, fore).astype(np.float64)),
    )


def image_confidences(preds: Predictions, score: str | None = None) -> Predictions:
    """One row per image, with its score as confidence and its name as id; true masks are not
    needed.

    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]
    >>> image_confidences(Predictions.from_probs(p, group=["a", "a", "b", "b"])).confidence
    array([0.85, 0.65])
    """
    unit, names = _units(preds)
    return Predictions.from_confidence(_scores(preds, unit, score)[score or SCORES[0]], ids=names)


def _scores(preds: Predictions, unit: Ints, first: str | None) -> dict[str, Floats]:
    """The scores of each image, `first` before the others."""
    size, c = np.bincount(unit), preds.columns
    mean: Callable[[Array], Floats] = lambda a: np.bincount(unit, a) / size
    whole = np.log(preds.k) if preds.k is not None and preds.k > 1 else 1.0
    scores = {
        "mean_confidence": mean(c.max_prob),
        "mean_certainty": 1.0 - np.clip(mean(c.entropy) / whole, 0.0, 1.0),
        "sure_pixels": mean((c.max_prob >= SURE).astype(np.float64)),
    }
    if first is None:
        return scores
    return {first: scores[first] if first in scores else _given(preds, first, unit)} | scores


def _given(preds: Predictions, name: str, unit: Ints) -> Floats:
    """A further column, averaged over the pixels of each image; what is the same in all of them
    stays what it is.
    """
    known = preds.attributes or {}
    if name not in known:
        there = ", ".join([*SCORES, *known])
        raise InputError(f"there is no column {name!r} for a score of images; there are {there}.")
    column = check.finite(check.column(known[name], name).astype(np.float64), name)
    first = column[np.unique(unit, return_index=True)[1]]
    return first + np.bincount(unit, column - first[unit]) / np.bincount(unit)


def _units(preds: Predictions) -> tuple[Ints, Array]:
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
        return unit.reshape(-1).astype(np.int64), preds.group[first]
    names, unit = np.unique(preds.group, return_inverse=True)
    return unit.reshape(-1).astype(np.int64), names


def _foreground(preds: Predictions, classes: Sequence[int] | None) -> tuple[int, ...]:
    k = preds.k or 0
    found = tuple(range(1, k)) if classes is None else tuple(int(c) for c in classes)
    bad = next((c for c in found if not 0 <= c < k), None)
    if not found or bad is not None:
        raise InputError(
            "classes",
            got=f"is {list(found)}",
            need=f"foreground classes between 0 and {k - 1} are needed",
        )
    return found


def _dice(unit: Ints, said: Array, true: Array) -> Floats:
    many = int(unit.max()) + 1
    both, one, two = (np.bincount(unit[mask], minlength=many) for mask in (said & true, said, true))
    size = one + two
    return np.where(size > 0, 2 * both / np.maximum(size, 1), 1.0)


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
    found = images_of(preds, classes)
    if score is None:
        return found.outcomes().tally()
    given = check.same_length(check.column(score, "score"), "score", len(found), "the images")
    return Outcomes(given, loss=found.loss).tally()
