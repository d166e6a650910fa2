"""Mean losses of whole predictions: accuracy, the proper scores, and their skill."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import expm1, inf, log, nan, sqrt

import numpy as np

from howsure import losses
from howsure._core.checks import Floats, InputError
from howsure._core.indices import count_values
from howsure.metrics.metric_facts import OutcomesWithMetric, metric
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.tallies.tally import Blocks, Counts, Tally, is_tally, needs_grades

__all__ = ["accuracy", "brier", "nll", "ranked_probability_score", "skill", "top_k_accuracy"]

# A mean loss → what a sample of that loss would lose if another class were true.
OtherLoss = Callable[[float], float]


def _average(values: Floats, preds: Predictions) -> float:
    if preds.weight is None:
        return float(values.mean(dtype=np.float64))
    return float(np.average(values, weights=preds.weight))


def _rank_by_loss(
    of: Callable[..., Floats], other: OtherLoss | None = None
) -> Callable[..., OutcomesWithMetric]:
    """Outcomes ordered by the loss itself: samples of about the same loss end up in the same rows."""

    def through(preds: Predictions, **options: object) -> OutcomesWithMetric:
        loss = of(preds, **options)
        return Outcomes.of(preds, -loss, loss=loss), partial(mean_loss, other=other)

    return through


def mean_loss(t: Tally, other: OtherLoss | None = None) -> float:  # noqa: ARG001
    """The risk at full coverage.

    `other` does not change the number. Its limits allow for what `other` says, where it is given:
    a surprise not yet seen.

    >>> from howsure import tally
    >>> mean_loss(tally([0.9, 0.8], loss=[1.0, 3.0]))
    2.0
    """
    return float(t.total / t.n)


def other_nll(loss: float) -> float:
    """The least that a label loses where another one, which is true, loses this much: -log(1 -
    exp(-loss)).

    >>> round(other_nll(log(2)), 6)
    0.693147
    """
    return -log(max(-expm1(-loss), 2.0**-53))


def other_brier(loss: float) -> float:
    """The same of two classes by the Brier score: 2(1 - sqrt(loss/2))^2.

    >>> other_brier(0.0), other_brier(0.5)
    (2.0, 0.5)
    """
    return 2 * max(0.0, 1 - sqrt(max(0.0, loss) / 2)) ** 2


def _compute_accuracy(block: Blocks, n: Counts) -> Floats:
    return 1.0 - block.loss.sum(axis=-1) / n


def _mark_correct(preds: Predictions) -> OutcomesWithMetric:
    return Outcomes.of(preds), accuracy


def _mark_top_k(preds: Predictions, k: int = 5) -> OutcomesWithMetric:
    return Outcomes.of(preds, correct=losses.top_k(k)(preds) == 0), accuracy


@metric(
    better="higher",
    bounds=(0, 1),
    takes="predictions",
    through=_mark_correct,
    of_blocks=_compute_accuracy,
)
def accuracy(preds: Predictions | Tally) -> float:
    r"""The share of right answers, :math:`\frac1n \sum_i 1[\hat y_i = y_i]`, of predictions or of a
    tally; the mean grade of graded answers, whose loss is 1 − grade.

    Ties in the argmax go to the smaller class number. Range [0, 1], 1 is perfect. Ding et al. 2019.

    >>> accuracy(Predictions.from_probs([[0.7, 0.3], [0.4, 0.6]], [0, 0]))
    0.5
    """
    if is_tally(preds):
        needs_grades(preds, "accuracy")
        # Sums of weights are rounded, so that nothing right may come out below nothing.
        return max(0.0, float((preds.n - preds.total) / preds.n))
    needs_predictions(preds, "accuracy")
    if preds.graded:
        return accuracy(Outcomes.of(preds).tally())
    return _average(preds.correct.astype(np.float64), preds)


@metric(better="higher", bounds=(0, 1), takes="predictions", through=_mark_top_k)
def top_k_accuracy(preds: Predictions, k: int = 5) -> float:
    """The share of samples whose label is among the k most probable classes.

    Range [0, 1], 1 is perfect, and 1 for k >= K. Finlay & Oberman, section 7.

    >>> top_k_accuracy(Predictions.from_probs([[0.5, 0.3, 0.2]], [1]), 2)
    1.0
    """
    needs_predictions(preds, "top_k_accuracy")
    return 1.0 - _average(losses.top_k(k)(preds), preds)


def _clip_nll(preds: Predictions, eps: float | None = None) -> Floats:
    loss = losses.nll(preds)
    if eps is None:
        return loss
    if not 0 < eps < 1:
        raise InputError(f"eps is {eps:g}; a small number between 0 and 1 is needed.")
    return np.clip(loss, -np.log1p(-eps), -np.log(eps))


@metric(
    better="lower",
    bounds=(0, inf),
    takes="predictions",
    through=_rank_by_loss(_clip_nll, other_nll),
)
def nll(preds: Predictions, eps: float | None = None) -> float:
    r"""Mean negative log likelihood, :math:`-\frac1n \sum_i \log p_{i,y_i}`, in nats.

    From logits always finite. From probabilities a label of probability 0 gives inf; nothing is
    clipped unless `eps` asks for it. Range [0, inf), 0 is perfect. Good 1952.

    >>> round(nll(Predictions.from_probs([[0.5, 0.5]], [0])), 3)
    0.693
    """
    needs_predictions(preds, "nll")
    return _average(_clip_nll(preds, eps), preds)


@metric(
    better="lower",
    bounds=(0, 2),
    takes="predictions",
    through=_rank_by_loss(losses.brier, other_brier),
)
def brier(preds: Predictions) -> float:
    r"""Mean squared distance to the one-hot label, :math:`\frac1n \sum_i \sum_k (p_{ik} - 1[y_i =
    k])^2`.

    Range [0, 2], 0 is perfect. Brier 1950. See also: `correctness_brier`, which looks at the top
    label alone.

    >>> brier(Predictions.from_probs([[0.5, 0.5]], [0]))
    0.5
    """
    needs_predictions(preds, "brier")
    return _average(losses.brier(preds), preds)


@metric(
    better="lower",
    bounds=(0, 1),
    takes="predictions",
    through=_rank_by_loss(losses.ranked_probability),
)
def ranked_probability_score(preds: Predictions) -> float:
    r"""Mean squared distance between cumulated probabilities and the label, where classes are ordered
    levels.

    .. math:: \frac1n \sum_i \frac{1}{K-1} \sum_{k} \big( F_{ik} - 1[y_i \le k] \big)^2

    Range [0, 1], 0 is perfect; an answer two levels off costs more than one that is next to the
    label. With two classes it is half of `brier`. Epstein 1969. See also: `losses.off_by_more`,
    `losses.level_distance`.

    >>> ranked_probability_score(Predictions.from_probs([[0.5, 0.5, 0.0]], [0]))
    0.125
    """
    needs_predictions(preds, "ranked_probability_score")
    return _average(losses.ranked_probability(preds), preds)


def skill(metric: Callable[[Predictions], float], preds: Predictions) -> float:
    r"""How much better than always answering with the class shares.

    .. math:: 1 - \frac{\mathrm{value}}{\mathrm{value\ of\ the\ shares}}

    `metric` is one that should be low: `nll`, `brier`. 1 is perfect, 0 knows no more than the shares of the same data,
    below 0 is worse than that; 0/0 is nan. Murphy 1973 (skill scores).

    >>> from howsure import brier
    >>> round(skill(brier, Predictions.from_probs([[0.8, 0.2], [0.3, 0.7]], [0, 1])), 2)
    0.74
    """
    needs_predictions(preds, "skill")
    k = preds.needs_vector("skill")
    weight = preds.weight
    if weight is None:
        weight = np.ones(preds.n)
    share = count_values(preds.labels, weights=weight, minlength=k) / weight.sum()
    constant = Predictions.from_probs(
        np.tile(share, (preds.n, 1)), preds.labels, weight=preds.weight, renormalise=True
    )
    value = metric(preds)
    base = metric(constant)
    if base != 0:
        return float(1 - value / base)
    if value == 0:
        return nan
    return -inf
