"""Predictions → one number per sample, higher = trust more."""

from __future__ import annotations

from typing import Literal

import numpy as np

from howsure._core import checks
from howsure._core.checks import Floats, InputError
from howsure.predictions.predictions import Predictions, needs_predictions

__all__ = [
    "disagreement",
    "energy",
    "entropy",
    "expected_entropy",
    "log_max_prob",
    "margin",
    "max_logit",
    "max_prob",
    "mutual_information",
    "neg_entropy",
    "predictive_entropy",
    "score",
    "top_k_mass",
    "variance",
    "variation_ratio",
]

# One probability vector, and the logits of a single pass


def max_prob(preds: Predictions) -> Floats:
    r"""The probability of the answer, :math:`\max_k p_k`; the only score here that is also a claim.

    For samples it is the largest mean probability. Range [1/K, 1].
    Hendrycks & Gimpel 2017; the confidence of all five papers.

    >>> max_prob(Predictions.from_probs([[0.7, 0.3]]))
    array([0.7])
    """
    needs_predictions(preds, "max_prob")
    return preds.confidence


def score(preds: Predictions) -> Floats:
    """The score that was given with the answers; without one their confidence. Any real number.

    >>> score(Predictions.from_score([12.5, -3.0]))
    array([12.5, -3. ])
    """
    needs_predictions(preds, "score")
    return preds.score


def log_max_prob(preds: Predictions) -> Floats:
    r"""The log of the top probability, :math:`-U_1 = \log \max_k p_k`.

    Ranks like `max_prob` but, from logits, still tells apart answers whose probability rounds to 1.
    Range (-inf, 0]. Finlay & Oberman, section 6.1.

    >>> log_max_prob(Predictions.from_probs([[0.5, 0.5]]))
    array([-0.69314718])
    """
    needs_predictions(preds, "log_max_prob")
    if not preds.vectors:
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


# Several answers to each sample, of MC dropout or an ensemble: uncertainties, negated


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
    pairs = s * (s - 1)
    alike = (votes * (votes - 1)).sum(axis=1)
    return (alike - pairs) / pairs


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
