"""The positive class, and what clinicians ask of its probability: how well it ranks the cases, what
a threshold on it gets right and is worth, and whether it is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan
from typing import Literal, NamedTuple

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count
from howsure.binning import Binning, equal_size
from howsure.curves import Curve, bin_table
from howsure.metrics.discrimination import auroc
from howsure.metrics.metric_facts import OutcomesWithMetric, metric
from howsure.metrics.proper_scores import accuracy
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.tallies.tally import Tally, is_tally

Denominator = Literal["positive", "negative", "called", "cleared"]
NAMES_IN_ERROR = 20  # class names that an error lists

LOGIT_CLIP = 1e-12  # a probability of exactly 0 or 1 has no logit
# Where the knots of a spline stand, by their number: quantiles of the logits (Harrell 2015).
KNOT_QUANTILES = {
    3: (0.1, 0.5, 0.9),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
}
CASES_PER_KNOT = 10  # of the rarer outcome
CASES_PER_END = 3  # of each outcome beyond the inner knots


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


# ---- ranking


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


# ---- at a threshold


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


# ---- is the probability right


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


class Recalibration(NamedTuple):
    """Logistic recalibration: outcome log odds = intercept + slope × logit(p), with standard
    errors.

    >>> round(recalibration(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0])).slope, 1)
    0.5
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float


def recalibration(preds: Predictions | Tally, positive: str | int | None = None) -> Recalibration:
    r"""Slope and intercept of the outcome's log odds against the logit of P(y = 1), by Newton's
    method.

    Of predictions, or of their `positive_tally`.

    Slope 1 and intercept 0 are perfect; a slope below 1 means predictions that are too extreme.
    Probabilities are kept 1e-12 away from 0 and 1. nan where one class is missing or the classes
    separate. Cox 1958.

    >>> r = recalibration(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8, 0.8, 0.8], [0, 1, 1, 1, 1, 1, 0]))
    >>> round(r.slope, 2), round(abs(r.intercept), 2)
    (1.0, 0.0)
    """
    fit = fit_log_odds(as_positive(preds, positive))
    if fit is None:
        return Recalibration(intercept=nan, slope=nan, intercept_error=nan, slope_error=nan)
    intercept, slope = fit.coefficients.tolist()
    intercept_error, slope_error = np.sqrt(np.diag(fit.covariance)).tolist()
    return Recalibration(
        intercept=intercept,
        slope=slope,
        intercept_error=intercept_error,
        slope_error=slope_error,
    )


def calibration_intercept(preds: Predictions | Tally, positive: str | int | None = None) -> float:
    """Intercept of `recalibration`: 0 is perfect, negative means that risks are overestimated. Cox
    1958.

    >>> round(abs(calibration_intercept(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0]))), 2)
    0.0
    """
    return recalibration(preds, positive).intercept


def calibration_slope(preds: Predictions | Tally, positive: str | int | None = None) -> float:
    """Slope of `recalibration`: 1 is perfect, below 1 predictions are too extreme. Cox 1958.

    >>> round(calibration_slope(Predictions.from_probs([0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0])), 1)
    0.5
    """
    return recalibration(preds, positive).slope


# ---- log odds as a line or a spline of the logit


@frozen(eq=False)
class LogOdds:
    """Outcome log odds as a spline of logit(p), linear beyond the outer knots; a straight line
    without knots.

    `covariance` is that of the coefficients for independent cases.
    """

    knots: tuple[float, ...]
    coefficients: Floats
    covariance: Floats

    def basis(self, p: Floats) -> Floats:
        """The columns that the coefficients belong to."""
        return spline_basis(logit(p), self.knots)


def fit_flexible(t: Tally) -> LogOdds | None:
    """A restricted cubic spline with 5 knots, fewer where the rarer outcome has fewer than 50 cases
    (Harrell 2015).

    Fewer also until both outcomes occur on either side of the inner knots: where one is missing at
    an end, nothing holds the curve there.

    >>> from howsure import tally
    >>> fit = fit_flexible(tally(np.arange(1, 100) / 100, correct=np.arange(99) % 3 > 0))
    >>> tuple(round(x, 1) for x in fit.knots)
    (-2.2, 0.0, 2.2)
    """
    rarer = int(min(t.total, t.n - t.total))
    for number in range(min(5, rarer // CASES_PER_KNOT), min(KNOT_QUANTILES) - 1, -1):
        knots = place_knots(t, number)
        if knots and has_both_outcomes_at_ends(t, knots):
            return fit_log_odds(t, knots)
    return fit_log_odds(t)


def place_knots(t: Tally, number: int) -> tuple[float, ...]:
    """Quantiles of the logits; none where they are not all different."""
    below = np.cumsum(t.count[::-1])
    ranks = np.array(KNOT_QUANTILES[number]) * float(t.n)
    rows = np.searchsorted(below, ranks).clip(max=len(below) - 1)
    knots = np.unique(logit(t.score[::-1][rows]))
    if len(knots) < number:
        return ()
    return tuple(knots.tolist())


def has_both_outcomes_at_ends(t: Tally, knots: tuple[float, ...]) -> bool:
    """Whether some of both outcomes lie below the second knot and above the last but one."""
    z = logit(t.score)
    for end in (z < knots[1], z > knots[-2]):
        wrong = float(t.loss[end].sum())
        right = float((t.count - t.loss)[end].sum())
        if min(wrong, right) < CASES_PER_END:
            return False
    return True


def fit_log_odds(t: Tally, knots: tuple[float, ...] = ()) -> LogOdds | None:
    """The maximum-likelihood fit, by Newton's method; None where one outcome is missing, claims are constant or
    outcomes separate.

    >>> from howsure import tally
    >>> fit_log_odds(tally([0.5, 0.5, 0.8, 0.8, 0.8], correct=[0, 1, 1, 1, 0])).coefficients.round(2) + 0.0
    array([0. , 0.5])
    """
    z = logit(t.score)
    if not 0 < t.total < t.n or np.ptp(z) == 0:
        return None
    # Each score twice: with its right answers as positive cases and its wrong ones as negative.
    x = np.tile(spline_basis(z, knots), (2, 1))
    y = np.repeat([1.0, 0.0], len(z))
    w = np.concatenate((t.count - t.loss, t.loss)).astype(np.float64)
    beta: Floats = np.zeros(int(x.shape[1]), dtype=np.float64)
    for _ in range(100):
        q = 1 / (1 + np.exp(-np.clip(x @ beta, -700, 700)))
        information: Floats = (x * (w * q * (1 - q))[:, None]).T @ x
        gradient: Floats = x.T @ (w * (y - q))
        if np.abs(beta).max() > 1e4 or np.linalg.cond(information) > 1e15:
            return None  # the coefficients run away: outcomes separate
        step: Floats = np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
            covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
            return LogOdds(knots=knots, coefficients=beta, covariance=covariance)
        # Newton may overshoot far from the optimum: halve the step until it is no step back.
        before = _log_likelihood(x @ beta, y, w)
        while _log_likelihood(x @ (beta + step), y, w) < before - 1e-12 * abs(before):
            step = step / 2
        beta = beta + step
    return None


def _log_likelihood(z: Floats, y: Floats, w: Floats) -> float:
    return float(np.dot(w, y * z - np.logaddexp(0.0, z)))


def logit(p: Floats) -> Floats:
    """Log odds of probabilities, which are kept away from 0 and 1."""
    kept = np.clip(p, LOGIT_CLIP, 1 - LOGIT_CLIP)
    return np.log(kept) - np.log1p(-kept)


def spline_basis(z: Floats, knots: tuple[float, ...]) -> Floats:
    """1, z and the columns of a restricted cubic spline, which is linear beyond its outer knots."""
    columns: list[Floats] = [np.ones(len(z)), z]
    if knots:
        *inner, last, end = knots
        for at in inner:
            # Cubes from the last two knots cancel the cube and the square beyond the end.
            tail = _cube_above(z, last) * (end - at) - _cube_above(z, end) * (last - at)
            bent = _cube_above(z, at) - tail / (end - last)
            columns.append(bent / (end - knots[0]) ** 2)
    return np.stack(columns, axis=1)


def _cube_above(z: Floats, at: float) -> Floats:
    return np.clip(z - at, 0.0, None) ** 3


__all__ = [
    "BrierParts",
    "Recalibration",
    "brier_decomposition",
    "calibration_intercept",
    "calibration_slope",
    "class_auroc",
    "net_benefit",
    "npv",
    "observed_expected",
    "positive_class",
    "positive_outcomes",
    "positive_tally",
    "ppv",
    "recalibration",
    "sensitivity",
    "specificity",
]
