"""Scores of several answers to each sample: MC dropout, ensembles. Uncertainties, negated."""

from __future__ import annotations

from typing import Literal

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure.predictions.predictions import Predictions, needs_predictions


def predictive_entropy(preds: Predictions) -> Floats:
    r"""Minus the entropy of the mean probability, :math:`-H(\bar q)`, in nats. All uncertainty
    together.

    >>> predictive_entropy(Predictions.from_samples(probs=[[[1.0, 0.0]], [[0.0, 1.0]]]))
    array([-0.69314718])
    """
    needs_predictions(preds, "predictive_entropy")
    return 0.0 - _need_samples(preds, "predictive_entropy").columns.entropy


def expected_entropy(preds: Predictions) -> Floats:
    r"""Minus the mean entropy of the members, :math:`-\frac1S \sum_s H(q_s)`. What no further pass
    can remove.

    >>> expected_entropy(Predictions.from_samples(probs=[[[1.0, 0.0]], [[0.0, 1.0]]]))
    array([0.])
    """
    needs_predictions(preds, "expected_entropy")
    return 0.0 - _need_samples(preds, "expected_entropy").columns.expected_entropy


def mutual_information(preds: Predictions) -> Floats:
    r"""Minus what the members disagree by, :math:`-(H(\bar q) - \frac1S \sum_s H(q_s))`, never
    above 0.

    0 where all members agree. Houlsby et al. 2011; Gal 2016.

    >>> mutual_information(Predictions.from_samples(probs=[[[1.0, 0.0]], [[0.0, 1.0]]]))
    array([-0.69314718])
    """
    needs_predictions(preds, "mutual_information")
    c = _need_samples(preds, "mutual_information").columns
    return 0.0 - (c.entropy - c.expected_entropy).clip(min=0.0)


def variance(preds: Predictions, over: Literal["sum", "mean", "predicted"] = "sum") -> Floats:
    """Minus the population variance of the members' probabilities.

    Summed over the classes (as Finlay & Oberman's Table 3 implies), their mean, or that of the
    predicted class. 0 where all members agree.

    >>> variance(Predictions.from_samples(probs=[[[1.0, 0.0]], [[0.0, 1.0]]]))
    array([-0.5])
    """
    needs_predictions(preds, "variance")
    c = _need_samples(preds, "variance").columns
    if over == "predicted":
        return 0.0 - c.variance_predicted
    if over == "sum":
        return 0.0 - c.variance_sum
    if over == "mean":
        return 0.0 - c.variance_sum / preds.values.shape[-1]
    raise InputError(f"over={over!r}; variance knows 'sum', 'mean' and 'predicted'.")


def variation_ratio(preds: Predictions) -> Floats:
    r"""Minus the share of the members that do not give the commonest answer, :math:`-(1 - \max_c
    f_c)`.

    0 where all members agree. Freeman 1965; Gal 2016.

    >>> variation_ratio(Predictions.from_samples(probs=[[[0.9, 0.1]], [[0.6, 0.4]], [[0.2, 0.8]], [[0.7, 0.3]]]))
    array([-0.25])
    """
    needs_predictions(preds, "variation_ratio")
    return _share_votes(_need_samples(preds, "variation_ratio")).max(axis=1) - 1.0


def disagreement(preds: Predictions) -> Floats:
    r"""Minus the share of pairs of members that answer differently.

    .. math:: -\binom S2^{-1} \sum_{s<t} 1[\hat y_s \ne \hat y_t]

    0 where all members agree, and for a single member. Kuncheva & Whitaker 2003.

    >>> disagreement(Predictions.from_samples(probs=[[[0.9, 0.1]], [[0.6, 0.4]], [[0.2, 0.8]], [[0.7, 0.3]]]))
    array([-0.5])
    """
    needs_predictions(preds, "disagreement")
    s = _need_samples(preds, "disagreement").samples
    if s == 1:
        return np.zeros(preds.n)
    votes = np.round(_share_votes(preds) * s)
    return ((votes * (votes - 1)).sum(axis=1) - s * (s - 1)) / (s * (s - 1))


def _share_votes(preds: Predictions) -> Floats:
    """The share of the members that answer with each class."""
    answer = preds.values.argmax(axis=2)
    votes = np.zeros((preds.n, preds.values.shape[2]))
    for member in answer:
        votes[np.arange(preds.n), member] += 1.0
    return votes / len(answer)


def _need_samples(preds: Predictions, name: str) -> Predictions:
    if preds.values.ndim != 3:
        raise InputError(f"{name} needs several answers per sample. Use Predictions.from_samples.")
    return preds
