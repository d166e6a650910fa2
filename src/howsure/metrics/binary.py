"""The positive class: what clinicians ask of its probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan
from typing import Literal, NamedTuple

import numpy as np

from howsure._core.check import Floats, InputError
from howsure._core.text import is_count
from howsure.binning import Binning, equal_size
from howsure.curves import Curve, bin_table
from howsure.metrics.discrimination import auroc
from howsure.metrics.metric_facts import OutcomesWithMetric, metric
from howsure.metrics.proper_scores import accuracy
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.tallies.tally import Tally, is_tally

__all__ = [
    "BrierParts",
    "brier_decomposition",
    "class_auroc",
    "net_benefit",
    "npv",
    "observed_expected",
    "positive_class",
    "positive_outcomes",
    "positive_tally",
    "ppv",
    "sensitivity",
    "specificity",
]

Denominator = Literal["positive", "negative", "called", "cleared"]
NAMES_IN_ERROR = 20  # class names that an error lists


def positive_class(preds: Predictions, positive: str | int | None = None) -> int:
    """The number of the positive class: the one that is named or numbered, class 1 of two where
    none is.

    >>> positive_class(Predictions.from_probs([[0.9, 0.1]], [0], class_names=["healthy", "ill"]), "ill")
    1
    """
    needs_predictions(preds, "positive_class")
    k = preds.needs_vector("a positive class")
    if positive is None:
        if k != 2:
            raise InputError(
                f"these predictions have {k} classes; say which one is positive (positive=)."
            )
        return 1
    names = preds.class_names or ()
    if isinstance(positive, str) and positive in names:
        return names.index(positive)
    if isinstance(positive, str) and not is_count(positive.removeprefix("-")):
        known = f"they are numbered 0 to {k - 1}"
        if names:
            known = f"they are {', '.join(names[:NAMES_IN_ERROR])}"
        raise InputError(f"no class is called {positive!r}; {known}.")
    if isinstance(positive, float) and not positive.is_integer():
        raise InputError(f"there is no class {positive:g}; a name or a whole number is needed.")
    number = int(positive)
    if not 0 <= number < k:
        raise InputError(f"there is no class {number}; classes are numbered 0 to {k - 1}.")
    return number


def positive_tally(preds: Predictions, positive: str | int | None = None) -> Tally:
    """P(y = positive) as the score, y = positive as the outcome: any metric of it speaks of the
    positive class.

    >>> positive_tally(Predictions.from_probs([0.9, 0.2], [1, 0]))
    <Tally: n=2, wrong=1, 2 distinct scores>
    """
    needs_predictions(preds, "positive_tally")
    return positive_outcomes(preds, positive).tally()


def as_positive(data: Predictions | Tally, positive: str | int | None = None) -> Tally:
    """A tally as it is; of predictions, that of the positive class."""
    if is_tally(data):
        return data
    return positive_tally(data, positive)


def positive_outcomes(preds: Predictions, positive: str | int | None = None) -> Outcomes:
    """The rows of `positive_tally`, with weights, ids and groups.

    >>> positive_outcomes(Predictions.from_probs([0.9, 0.2], [1, 0])).correct
    array([ True, False])
    """
    needs_predictions(preds, "positive_outcomes")
    c = positive_class(preds, positive)
    return Outcomes.of(preds, preds.probs[:, c], correct=preds.labels == c)


def _rank_class(preds: Predictions, positive: str | int | None = None) -> OutcomesWithMetric:
    return positive_outcomes(preds, positive), auroc


@metric(better="higher", bounds=(0, 1), takes="predictions", through=_rank_class)
def class_auroc(preds: Predictions, positive: str | int | None = None) -> float:
    r"""The AUC of the class: the probability that a positive case has a higher P(positive) than a
    negative one.

    .. math:: P(p_+ > p_-) + \tfrac12 P(p_+ = p_-)

    What a clinician calls AUC. `auroc` is another number: that of finding wrong answers by the confidence. More than
    two classes: the named one against all others. nan where one side is empty. Range [0, 1], 1/2 is a coin.
    Hanley & McNeil 1982.

    >>> class_auroc(Predictions.from_probs([0.9, 0.4, 0.3, 0.2], [1, 0, 1, 0]))
    0.75
    """
    needs_predictions(preds, "class_auroc")
    return auroc(positive_tally(preds, positive))


class EmptyDenominator(Exception):
    """A denominator without cases: the number is undefined."""


def _call_cases(
    preds: Predictions, threshold: float, positive: str | int | None, of: Denominator
) -> Outcomes:
    """The cases of one denominator, correct where the call is.

    A case is called positive where P(positive) is at least the threshold.
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold:g}; a probability between 0 and 1 is needed.")
    outcomes = positive_outcomes(preds, positive)
    called, is_positive = outcomes.score >= threshold, outcomes.right
    cases = {
        "positive": is_positive,
        "negative": ~is_positive,
        "called": called,
        "cleared": ~called,
    }[of]
    if not cases.any():
        raise EmptyDenominator(of)
    return replace(outcomes, correct=called == is_positive)[cases]


def _through_calls(of: Denominator) -> Callable[..., OutcomesWithMetric]:
    """The route of a share of right calls: the accuracy of the cases in its denominator."""

    def through(
        preds: Predictions, threshold: float, positive: str | int | None = None
    ) -> OutcomesWithMetric:
        return _call_cases(preds, threshold, positive, of), accuracy

    return through


def _share_right_calls(
    preds: Predictions, threshold: float, positive: str | int | None, of: Denominator
) -> float:
    try:
        return accuracy(_call_cases(preds, threshold, positive, of).tally())
    except EmptyDenominator:
        return nan


@metric(better="higher", bounds=(0, 1), takes="predictions", through=_through_calls("positive"))
def sensitivity(preds: Predictions, threshold: float, positive: str | int | None = None) -> float:
    """The share of positive cases that are called positive, that is whose P(positive) is at least
    `threshold`.

    nan without positive cases. Range [0, 1]. Yerushalmy 1947.

    >>> sensitivity(Predictions.from_probs([0.9, 0.4, 0.3, 0.2], [1, 0, 1, 0]), 0.5)
    0.5
    """
    needs_predictions(preds, "sensitivity")
    return _share_right_calls(preds, threshold, positive, "positive")


@metric(better="higher", bounds=(0, 1), takes="predictions", through=_through_calls("negative"))
def specificity(preds: Predictions, threshold: float, positive: str | int | None = None) -> float:
    """The share of negative cases that are not called positive: P(positive) below `threshold`.

    nan without negative cases. Range [0, 1]. Yerushalmy 1947.

    >>> specificity(Predictions.from_probs([0.9, 0.4, 0.3, 0.2], [1, 0, 1, 0]), 0.5)
    1.0
    """
    needs_predictions(preds, "specificity")
    return _share_right_calls(preds, threshold, positive, "negative")


@metric(better="higher", bounds=(0, 1), takes="predictions", through=_through_calls("called"))
def ppv(preds: Predictions, threshold: float, positive: str | int | None = None) -> float:
    """Positive predictive value: the share of those called positive who are. nan where none is
    called positive.

    Range [0, 1]; it depends on the prevalence. Vecchio 1966.

    >>> ppv(Predictions.from_probs([0.9, 0.4, 0.3, 0.2], [1, 0, 1, 0]), 0.35)
    0.5
    """
    needs_predictions(preds, "ppv")
    return _share_right_calls(preds, threshold, positive, "called")


@metric(better="higher", bounds=(0, 1), takes="predictions", through=_through_calls("cleared"))
def npv(preds: Predictions, threshold: float, positive: str | int | None = None) -> float:
    """Negative predictive value: the share of those not called positive who are not. nan where all
    are called.

    Range [0, 1]; it depends on the prevalence. Vecchio 1966.

    >>> round(npv(Predictions.from_probs([0.9, 0.4, 0.3, 0.2], [1, 0, 1, 0]), 0.5), 3)
    0.667
    """
    needs_predictions(preds, "npv")
    return _share_right_calls(preds, threshold, positive, "cleared")


def observed_expected(preds: Predictions | Tally, positive: str | int | None = None) -> float:
    r"""Positive cases over the sum of P(positive): observed over expected, :math:`\sum_i y_i /
    \sum_i p_i`.

    Of predictions, or of their `positive_tally`. 1 is perfect; below 1 risks are overestimated on
    the whole. nan where all probabilities are 0. Debray et al. 2017.

    >>> observed_expected(Predictions.from_probs([0.9, 0.4, 0.3, 0.4], [1, 0, 0, 0]))
    0.5
    """
    t = as_positive(preds, positive)
    expected = float(np.dot(t.score, t.count))
    if not expected:
        return nan
    return float(t.n - t.total) / expected


class BrierParts(NamedTuple):
    """Murphy's parts of the Brier score: brier = reliability − resolution + uncertainty + within.

    >>> brier_decomposition(Predictions.from_probs([0.5, 0.5], [0, 1]))
    BrierParts(reliability=0.0, resolution=0.0, uncertainty=0.25, within=0.0)
    """

    reliability: float
    resolution: float
    uncertainty: float
    within: float


def brier_decomposition(preds: Predictions | Tally, bins: Binning = equal_size(10)) -> BrierParts:
    r"""The Brier score, taken apart over bins: of the positive class where there are two, else
    summed over classes.

    .. math:: \sum_j w_j (\bar p_j - \bar y_j)^2 - \sum_j w_j (\bar y_j - \bar y)^2 + \bar y (1 - \bar y)

    plus what varies inside bins, so that the parts always add up. Low reliability and high resolution are
    good. Murphy 1973.

    >>> brier_decomposition(Predictions.from_probs([0.5, 0.5], [0, 1])).uncertainty
    0.25
    """
    if is_tally(preds):
        return _decompose_brier(preds, bins)
    needs_predictions(preds, "brier_decomposition")
    k = preds.needs_vector("brier_decomposition")
    if k == 2:
        return _decompose_brier(positive_tally(preds, 1), bins)
    parts = np.sum([_decompose_brier(positive_tally(preds, c), bins) for c in range(k)], axis=0)
    return BrierParts(*parts.tolist())


def _decompose_brier(t: Tally, bins: Binning) -> BrierParts:
    table = bin_table(t, bins)
    weight = table.count / table.count.sum()
    base = float(np.dot(weight, table.accuracy))
    reliability = float(np.dot(weight, table.gap**2))
    resolution = float(np.dot(weight, (table.accuracy - base) ** 2))
    uncertainty = base * (1 - base)
    right, wrong = t.count - t.loss, t.loss
    brier = float((np.dot(right, (1 - t.score) ** 2) + np.dot(wrong, t.score**2)) / t.n)
    return BrierParts(
        reliability=reliability,
        resolution=resolution,
        uncertainty=uncertainty,
        within=brier - (reliability - resolution + uncertainty),
    )


def net_benefit(
    preds: Predictions | Tally, thresholds: Floats | None = None, positive: str | int | None = None
) -> Curve:
    r"""Net benefit of treating those with P(y = 1) of at least a threshold, against the threshold.

    .. math:: \frac{TP}{n} - \frac{FP}{n} \cdot \frac{q}{1 - q}

    `.low` is the net benefit of treating all; treating none has 0. Vickers & Elkin 2006.

    >>> net_benefit(Predictions.from_probs([0.9, 0.2], [1, 0]), thresholds=np.array([0.5])).y
    array([0.5])
    """
    if thresholds is None:
        thresholds = np.arange(1, 100) / 100
    q = np.asarray(thresholds, dtype=np.float64)
    t = as_positive(preds, positive)
    rows = np.searchsorted(-t.score, -q, side="right")
    positives = np.concatenate(([0.0], np.cumsum(t.count - t.loss)))
    negatives = np.concatenate(([0.0], np.cumsum(t.loss)))
    odds = q / (1 - q)
    return Curve(
        x=q,
        y=(positives[rows] - negatives[rows] * odds) / t.n,
        weight=positives[rows] + negatives[rows],
        threshold=q,
        low=(positives[-1] - negatives[-1] * odds) / t.n,
        labels=("threshold probability", "net benefit"),
    )
