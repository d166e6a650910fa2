"""Scores that need logits of a single pass."""

from __future__ import annotations

from howsure._core.check import Floats, InputError
from howsure.predictions import Predictions, needs_predictions


def max_logit(preds: Predictions) -> Floats:
    r"""The largest logit, :math:`\max_k z_k`. Any real number. Hendrycks et al. 2022.

    >>> max_logit(Predictions.from_logits([[2.0, 0.0]]))
    array([2.])
    """
    needs_predictions(preds, "max_logit")
    _single_pass(preds, "max_logit")
    return preds.columns.max_logit


def energy(preds: Predictions) -> Floats:
    r"""The log-sum-exp of the logits, :math:`\log \sum_k e^{z_k}` (minus the free energy). Liu et
    al. 2020.

    >>> energy(Predictions.from_logits([[0.0, 0.0]]))
    array([0.69314718])
    """
    needs_predictions(preds, "energy")
    _single_pass(preds, "energy")
    return preds.columns.energy


def _single_pass(preds: Predictions, name: str) -> None:
    if preds.logits.shape[0] > 1:
        raise InputError(
            f"{name} is a score of one pass; these predictions hold {preds.samples} samples. "
            "Use mutual_information, variance or predictive_entropy."
        )
