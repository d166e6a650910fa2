"""Mean losses of whole predictions: accuracy and the proper scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import expm1, inf, log, sqrt

import numpy as np

from howsure import losses
from howsure._core.check import Floats, InputError
from howsure._core.exact import mean
from howsure.metrics.facts import metric
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Blocks, Counts, Tally, is_tally, needs_zero_one


def _mean(values: Floats, preds: Predictions) -> float:
    return mean(values) if preds.weight is None else float(np.average(values, weights=preds.weight))


Other = Callable[
    [float], float
]  # a mean loss → what a sample of that loss would lose if another class were true


def _through_loss(
    of: Callable[..., Floats], other: Other
) -> Callable[..., tuple[Outcomes, Callable[[Tally], float]]]:
    """Outcomes ordered by the loss itself: samples of about the same loss end up in the same rows."""

    def through(preds: Predictions, **options: object) -> tuple[Outcomes, Callable[[Tally], float]]:
        loss = of(preds, **options)
        return Outcomes.of(preds, -loss, loss=loss), partial(mean_loss, other=other)

    return through


def mean_loss(t: Tally, other: Other | None = None) -> float:
    """The risk at full coverage; its limits allow for what `other` says, where it is given: a
    surprise not yet seen.

    >>> from howsure import tally
    >>> mean_loss(tally([0.9, 0.8], loss=[1.0, 3.0]))
    2.0
    """
    del other
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


def _right(block: Blocks, n: Counts) -> Floats:
    return 1.0 - block.loss.sum(axis=-1) / n


def _correct(preds: Predictions) -> tuple[Outcomes, Callable[[Tally], float]]:
    return Outcomes.of(preds), accuracy


def _correct_top_k(preds: Predictions, k: int = 5) -> tuple[Outcomes, Callable[[Tally], float]]:
    return Outcomes.of(preds, correct=losses.top_k(k)(preds) == 0), accuracy


@metric(better="higher", bounds=(0, 1), takes="predictions", through=_correct, of_blocks=_right)
def accuracy(preds: Predictions | Tally) -> float:
    r"""The share of right answers, :math:`\frac1n \sum_i 1[\hat y_i = y_i]`, of predictions or of a
    tally.

    Ties in the argmax go to the smaller class number. Range [0, 1], 1 is perfect. Ding et al. 2019.

    >>> accuracy(Predictions.from_probs([[0.7, 0.3], [0.4, 0.6]], [0, 0]))
    0.5
    """
    if is_tally(preds):
        needs_zero_one(preds, "accuracy")
        return float((preds.n - preds.total) / preds.n)
    needs_predictions(preds, "accuracy")
    return _mean(preds.correct.astype(np.float64), preds)


@metric(better="higher", bounds=(0, 1), takes="predictions", through=_correct_top_k)
def top_k_accuracy(preds: Predictions, k: int = 5) -> float:
    """The share of samples whose label is among the k most probable classes.

    Range [0, 1], 1 is perfect, and 1 for k >= K. Finlay & Oberman, section 7.

    >>> top_k_accuracy(Predictions.from_probs([[0.5, 0.3, 0.2]], [1]), 2)
    1.0
    """
    needs_predictions(preds, "top_k_accuracy")
    return 1.0 - _mean(losses.top_k(k)(preds), preds)


def _clipped_nll(preds: Predictions, eps: float | None = None) -> Floats:
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
    through=_through_loss(_clipped_nll, other_nll),
)
def nll(preds: Predictions, eps: float | None = None) -> float:
    r"""Mean negative log likelihood, :math:`-\frac1n \sum_i \log p_{i,y_i}`, in nats.

    From logits always finite. From probabilities a label of probability 0 gives inf; nothing is
    clipped unless `eps` asks for it. Range [0, inf), 0 is perfect. Good 1952.

    >>> round(nll(Predictions.from_probs([[0.5, 0.5]], [0])), 3)
    0.693
    """
    needs_predictions(preds, "nll")
    return _mean(_clipped_nll(preds, eps), preds)


@metric(
    better="lower",
    bounds=(0, 2),
    takes="predictions",
    through=_through_loss(losses.brier, other_brier),
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
    return _mean(losses.brier(preds), preds)


__all__ = ["accuracy", "brier", "nll", "top_k_accuracy"]
