"""Segmentation with the image as the unit: numbers of predictions of pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from howsure.metrics.facts import metric
from howsure.metrics.mean_loss import mean_loss
from howsure.metrics.risk_coverage import aurc
from howsure.predictions import Outcomes, Predictions, needs_predictions
from howsure.tallies.tally import Tally


def _images(preds: Predictions, classes: Sequence[int] | None) -> Outcomes:
    from howsure.predictions.images import images_of  # masks, which most metrics do without

    return images_of(preds, classes).outcomes()


def _loss(
    preds: Predictions, classes: Sequence[int] | None = None
) -> tuple[Outcomes, Callable[[Tally], float]]:
    return _images(preds, classes), mean_loss


def _order(
    preds: Predictions, classes: Sequence[int] | None = None
) -> tuple[Outcomes, Callable[[Tally], float]]:
    return _images(preds, classes), aurc


@metric(better="lower", bounds=(0, 1), takes="pixels", through=_loss)
def dice_loss(preds: Predictions, classes: Sequence[int] | None = None) -> float:
    r"""The mean over images of 1 − Dice, :math:`1 - 2|P \cap T| / (|P| + |T|)`, averaged over
    foreground classes.

    Both masks empty: Dice 1; one of them empty: 0. Images count alike, whatever their foreground.
    Range [0, 1], 0 is perfect. Limits are over images. Ding et al. 2020, section 4.1.

    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]
    >>> dice_loss(Predictions.from_probs(p, [0, 1, 0, 1], group=["a", "a", "b", "b"]))
    0.5
    """
    needs_predictions(preds, "dice_loss")
    return mean_loss(_images(preds, classes).tally())


@metric(better="lower", bounds=(0, 1), takes="pixels", through=_order)
def image_aurc(preds: Predictions, classes: Sequence[int] | None = None) -> float:
    """`aurc` of `image_tally`: the mean 1 − Dice of the images that are kept, over all shares of
    images.

    Images are accepted whole, by the mean confidence of their pixels. `aurc(dice_tally(...))` is
    another number: it accepts single pixels. Range [0, 1], 0 is perfect. Ding et al. 2020, section
    4.1.

    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]
    >>> image_aurc(Predictions.from_probs(p, [0, 1, 0, 1], group=["a", "a", "b", "b"]))
    0.25
    """
    needs_predictions(preds, "image_aurc")
    return aurc(_images(preds, classes).tally())


__all__ = ["dice_loss", "image_aurc"]
