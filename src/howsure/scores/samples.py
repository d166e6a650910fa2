"""Scores of several answers to each sample: MC dropout, ensembles. Uncertainties, negated."""

from __future__ import annotations

from typing import Literal

from howsure._core.check import Floats, InputError
from howsure.predictions import Predictions


def predictive_entropy(preds: Predictions) -> Floats:
    r"""Minus the entropy of the mean probability, :math:`-H(\bar q)`, in nats. All uncertainty together.

    >>> predictive_entropy(Predictions.from_samples(probs=[[[1.0, 0.0]], [[0.0, 1.0]]]))
    array([-0.69314718])
    """
    return 0.0 - _sampled(preds, "predictive_entropy").columns.entropy


def expected_entropy(preds: Predictions) -> Floats:
    r"""Minus the mean entropy of the members, :math:`-\frac1S \sum_s H(q_s)`. What no further pass can remove.

    >>> expected_entropy(Predictions.from_samples(probs=[[[1.0, 0.0]], [[0.0, 1.0]]]))
    array([0.])
    """
    return 0.0 - _sampled(preds, "expected_entropy").columns.expected_entropy


def mutual_information(preds: Predictions) -> Floats:
    r"""Minus what the members disagree by, :math:`-(H(\bar q) - \frac1S \sum_s H(q_s))`, never above 0.

    0 where all members agree. Houlsby et al. 2011; Gal 2016.

    >>> mutual_information(Predictions.from_samples(probs=[[[1.0, 0.0]], [[0.0, 1.0]]]))
    array([-0.69314718])
    """
    c = _sampled(preds, "mutual_information").columns
    return 0.0 - (c.entropy - c.expected_entropy).clip(min=0.0)


def variance(preds: Predictions, over: Literal["sum", "mean", "predicted"] = "sum") -> Floats:
    """Minus the population variance of the members' probabilities.

    Summed over the classes (as Finlay & Oberman's Table 3 implies), their mean, or that of the predicted
    class. 0 where all members agree.

    >>> variance(Predictions.from_samples(probs=[[[1.0, 0.0]], [[0.0, 1.0]]]))
    array([-0.5])
    """
    c = _sampled(preds, "variance").columns
    if over == "predicted":
        return 0.0 - c.variance_predicted
    if over in ("sum", "mean"):
        return 0.0 - c.variance_sum / (1 if over == "sum" else preds.values.shape[-1])
    raise InputError(f"over={over!r}; variance knows 'sum', 'mean' and 'predicted'.")


def _sampled(preds: Predictions, name: str) -> Predictions:
    if preds.values.ndim != 3:
        raise InputError(f"{name} needs several answers per sample. Use Predictions.from_samples.")
    return preds
