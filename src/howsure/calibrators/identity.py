"""The calibrator that changes nothing."""

from __future__ import annotations

from howsure._core.frozen import frozen
from howsure.calibrators._fitted import Fitted
from howsure.predictions import Predictions, needs_predictions


@frozen
class Identity:
    """Leave the predictions as they are: the contender that every calibrator has to beat.

    >>> preds = Predictions.from_probs([[0.7, 0.3]], [0])
    >>> Identity.fit(preds)(preds) is preds
    True
    """

    fitted: Fitted | None = None

    @classmethod
    def fit(cls, preds: Predictions) -> Identity:
        """Nothing is learned, so nothing can go wrong."""
        needs_predictions(preds, "Identity.fit")
        del preds
        return cls()

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions themselves."""
        needs_predictions(preds, "Identity")
        return preds
