"""Scores of one probability vector, and of the logits of a single pass."""

from __future__ import annotations

import numpy as np

from howsure._core import checks
from howsure._core.checks import Floats, InputError
from howsure.predictions.predictions import Predictions, needs_predictions


def max_prob(preds: Predictions) -> Floats:
    r"""The probability of the answer, :math:`\max_k p_k`; the only score here that is also a claim.

    For samples it is the largest mean probability. Range [1/K, 1].
    Hendrycks & Gimpel 2017; the confidence of all five papers.

    >>> max_prob(Predictions.from_probs([[0.7, 0.3]]))
    array([0.7])
    """
    needs_predictions(preds, "max_prob")
    return preds.confidence


def log_max_prob(preds: Predictions) -> Floats:
    r"""The log of the top probability, :math:`-U_1 = \log \max_k p_k`.

    Ranks like `max_prob` but, from logits, still tells apart answers whose probability rounds to 1.
    Range (-inf, 0]. Finlay & Oberman, section 6.1.

    >>> log_max_prob(Predictions.from_probs([[0.5, 0.5]]))
    array([-0.69314718])
    """
    needs_predictions(preds, "log_max_prob")
    if preds.kind == "confidence":
        with np.errstate(divide="ignore"):
            return np.log(preds.confidence)
    return preds.columns.log_top


def top_k_mass(preds: Predictions, k: int = 5) -> Floats:
    r"""The probability of the k most probable classes together, :math:`\sum p_{1:k}`; its -log is
    :math:`U_k`.

    With fewer than k classes it is 1. Range [k/K, 1]. Finlay & Oberman, section 6.1.

    >>> top_k_mass(Predictions.from_probs([[0.5, 0.3, 0.2]]), k=2)
    array([0.8])
    """
    from howsure.predictions.columns import sum_top_probs

    needs_predictions(preds, "top_k_mass")
    checks.at_least(k, 1, "k")
    preds.needs_vector("top_k_mass")
    return sum_top_probs(preds.raw, k)


def neg_entropy(preds: Predictions) -> Floats:
    r"""Minus the entropy of the (mean) probabilities in nats, :math:`\sum_k p_k \log p_k`, with 0
    log 0 = 0.

    Range [-log K, 0]. Finlay & Oberman, section 6.1.

    >>> neg_entropy(Predictions.from_probs([[0.5, 0.5], [1.0, 0.0]]))
    array([-0.69314718, 0. ])
    """
    needs_predictions(preds, "neg_entropy")
    return 0.0 - preds.columns.entropy


def entropy(preds: Predictions) -> Floats:
    r"""One minus the normalised entropy, :math:`1 - H(p) / \log K`.

    A ranking score in [0, 1]: 0 for the uniform distribution, 1 for certainty. It is not a
    probability of being right, so a calibration error of it means nothing. Vemuri 2020, chapter 6;
    Laves 2019, eq. 3.

    >>> entropy(Predictions.from_probs([[0.5, 0.5], [1.0, 0.0]]))
    array([0., 1.])
    """
    needs_predictions(preds, "entropy")
    return 1.0 - normalised_entropy(preds)


def normalised_entropy(preds: Predictions) -> Floats:
    """Entropy over its maximum log K, in [0, 1]; 0 for a single class. An uncertainty, not a score."""
    h = preds.columns.entropy
    if preds.k is None or preds.k < 2:
        return np.zeros_like(h)
    return np.clip(h / np.log(preds.k), 0.0, 1.0)


def margin(preds: Predictions) -> Floats:
    """How far the top probability is above the second one.

    0 for a tie, 1 for certainty; the top probability itself where there is one class.

    >>> margin(Predictions.from_probs([[0.5, 0.3, 0.2]]))
    array([0.2])
    """
    needs_predictions(preds, "margin")
    return preds.columns.margin


def max_logit(preds: Predictions) -> Floats:
    r"""The largest logit, :math:`\max_k z_k`. Any real number. Hendrycks et al. 2022.

    >>> max_logit(Predictions.from_logits([[2.0, 0.0]]))
    array([2.])
    """
    needs_predictions(preds, "max_logit")
    _need_single_pass(preds, "max_logit")
    return preds.columns.max_logit


def energy(preds: Predictions) -> Floats:
    r"""The log-sum-exp of the logits, :math:`\log \sum_k e^{z_k}` (minus the free energy). Liu et
    al. 2020.

    >>> energy(Predictions.from_logits([[0.0, 0.0]]))
    array([0.69314718])
    """
    needs_predictions(preds, "energy")
    _need_single_pass(preds, "energy")
    return preds.columns.energy


def _need_single_pass(preds: Predictions, name: str) -> None:
    if preds.logits.shape[0] > 1:
        raise InputError(
            f"{name} is a score of one pass; these predictions hold {preds.samples} samples. "
            "Use mutual_information, variance or predictive_entropy."
        )
