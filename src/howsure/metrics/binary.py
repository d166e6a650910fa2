"""Yes or no: the positive class of a case, or each of its many labels. How well a probability ranks
the cases, what a threshold on it gets right and is worth, and numbers of cases with many labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan
from typing import Literal

import numpy as np

from howsure._core.checks import Bools, Floats, InputError
from howsure._core.text import is_count
from howsure.curves import Curve
from howsure.metrics.discrimination import auroc
from howsure.metrics.metric_facts import OutcomesWithMetric, metric
from howsure.metrics.proper_scores import accuracy, mean_loss
from howsure.predictions.input_shapes import InputLayout
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.tallies.tally import Tally, is_tally

Denominator = Literal["positive", "negative", "called", "cleared"]
NAMES_IN_ERROR = 20  # class names that an error lists
PRESENT_FROM = 0.5  # a label is called present where its probability is at least this


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


# ---- many labels per case: numbers of whole cases, and means over labels


def _need_whole_cases(preds: Predictions) -> InputLayout:
    """The layout of the cases; raise where labels of a case are missing."""
    layout = preds.needs_labels("this number")
    if not layout.whole:
        raise InputError("these rows are not whole cases; select cases with all their labels.")
    return layout


def mark_wrong_labels(preds: Predictions) -> Bools:
    """(cases, labels): where the call, present iff P >= 1/2, is not the label.

    >>> mark_wrong_labels(Predictions.from_multilabel([[0.9, 0.5]], [[1, 0]]))
    array([[False,  True]])
    """
    layout = _need_whole_cases(preds)
    wrong: Bools = (preds.probs[:, 1] >= PRESENT_FROM) != (preds.labels == 1)
    return wrong.reshape(preds.n // layout.size, layout.size)


def _pool_cases(
    preds: Predictions, score: Floats, correct: Bools | None = None, loss: Floats | None = None
) -> Outcomes:
    """Outcomes of one row per case, with the weight and the group of its first label."""
    layout = preds.needs_labels("this number")
    weight = group = None
    if preds.weight is not None:
        weight = preds.weight[:: layout.size]
    if preds.group is not None and not layout.alone:
        group = preds.group[:: layout.size]
    return Outcomes(score, correct=correct, loss=loss, weight=weight, group=group)


def build_case_outcomes(preds: Predictions, *, exact: bool = False) -> Outcomes:
    """One row per case: the share of wrong labels as its loss, or with `exact` whether all labels
    are right.
    """
    wrong = mark_wrong_labels(preds)
    share: Floats = wrong.mean(axis=1)
    if exact:
        correct: Bools = np.equal(share, 0.0)
        return _pool_cases(preds, -share, correct=correct)
    return _pool_cases(preds, -share, loss=share)


def _share_wrong(preds: Predictions) -> OutcomesWithMetric:
    return build_case_outcomes(preds), mean_loss


def _match_exactly(preds: Predictions) -> OutcomesWithMetric:
    return build_case_outcomes(preds, exact=True), accuracy


@metric(better="lower", bounds=(0, 1), takes="multilabel", through=_share_wrong)
def hamming_loss(preds: Predictions) -> float:
    r"""The share of wrong labels, :math:`\frac1{nL} \sum_i \sum_l 1[\hat y_{il} \ne y_{il}]`, of
    many per case.

    A label is called present where its probability is at least 1/2. Range [0, 1], 0 is perfect; a
    model that calls nothing reaches the mean prevalence. Limits are over cases.
    Schapire & Singer 1999.

    >>> hamming_loss(Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]]))
    0.25
    """
    needs_predictions(preds, "hamming_loss")
    return mean_loss(build_case_outcomes(preds).tally())


@metric(better="higher", bounds=(0, 1), takes="multilabel", through=_match_exactly)
def exact_match(preds: Predictions) -> float:
    """The share of cases whose labels are all right; present where the probability is at least 1/2.

    Range [0, 1], 1 is perfect. Also called subset accuracy. Godbole & Sarawagi 2004.

    >>> exact_match(Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]]))
    0.5
    """
    needs_predictions(preds, "exact_match")
    return accuracy(build_case_outcomes(preds, exact=True).tally())


def compute_pseudo_aucs(preds: Predictions) -> Floats:
    """(cases, labels): the AUC of each label plus what each case adds to n times it; the mean over
    cases is the AUC.

    nan for a label that is everywhere or nowhere. The limits of any mean of AUCs are those of a
    mean of these: they are spread as far as the unbiased variance of an AUC, with one more case of
    either side that may stand anywhere.

    >>> both = Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [0, 0]])
    >>> compute_pseudo_aucs(both).mean(axis=0)
    array([ 1., nan])
    """
    layout = _need_whole_cases(preds)
    p = preds.probs[:, 1].reshape(preds.n // layout.size, layout.size)
    y: Bools = (preds.labels == 1).reshape(p.shape)
    w = np.ones(len(p))
    if preds.weight is not None:
        w = preds.weight[:: layout.size]
    columns = [_compute_pseudo_auc(p[:, i], y[:, i], w) for i in range(layout.size)]
    return np.stack(columns, axis=1)


def _compute_pseudo_auc(p: Floats, positive: Bools, w: Floats) -> Floats:
    """AUC + influence of each case, in weights `w`."""
    mass = {True: float(w[positive].sum()), False: float(w[~positive].sum())}
    # For each case the share of the other side that it is on the right side of, ties half.
    share = np.full(len(p), nan)
    if not all(mass.values()):
        return share
    for is_positive in (True, False):
        own, other = positive == is_positive, positive != is_positive
        order = np.argsort(p[other], kind="stable")
        ordered = p[other][order]
        below = np.concatenate(([0.0], np.cumsum(w[other][order])))
        under = below[np.searchsorted(ordered, p[own], "left")]
        up_to = below[np.searchsorted(ordered, p[own], "right")]
        lower = (under + up_to) / 2 / mass[not is_positive]
        share[own] = lower if is_positive else 1 - lower
    area = float(np.average(share[positive], weights=w[positive]))
    own_mass = np.where(positive, mass[True], mass[False])
    influence = (share - area) * float(w.sum()) / own_mass
    # Few positive cases hardly tell how much they differ: widen the influences by what they lack.
    w = w / w.mean()
    seen = float(np.dot(w, influence**2))
    if seen <= 0:
        return area + influence
    wanted = 0.0
    for side in (positive, ~positive):
        m = float(w[side].sum())
        # The sum of squares is that of m values around their own mean, so m − 1 count.
        wanted += float(np.dot(w[side], influence[side] ** 2)) * m / max(m - 1, 1.0)
        # Of one more case nothing is known but that it is right with probability `area`.
        wanted += area * (1 - area) * (len(w) / m) ** 2
    return area + influence * float(np.sqrt(wanted / seen))


def build_case_aucs(preds: Predictions) -> OutcomesWithMetric:
    """One row per case: its part of the mean AUC as a loss; the mean of these is the number."""
    preds.needs_labels("macro_auroc")
    aucs = compute_pseudo_aucs(preds)
    known = ~np.isnan(aucs).any(axis=0)
    value: Floats = aucs[:, known].mean(axis=1)
    return _pool_cases(preds, -value, loss=value), mean_loss


@metric(better="higher", bounds=(0, 1), takes="multilabel", through=build_case_aucs)
def macro_auroc(preds: Predictions) -> float:
    """The mean of `class_auroc` over the labels that have both positive and negative cases; nan
    where none has.

    Every label counts alike, however rare it is. Range [0, 1], 1/2 is a coin. Limits are over
    cases: Student's, from what each case adds to all AUCs. Hanley & McNeil 1982; DeLong et al.
    1988.

    >>> macro_auroc(Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [0, 1]]))
    1.0
    """
    needs_predictions(preds, "macro_auroc")
    layout = preds.needs_labels("macro_auroc")
    return average_known([class_auroc(preds.label(i)) for i in range(layout.size)])


def average_known(values: Sequence[float]) -> float:
    """The mean of those that are numbers; nan where none is.

    >>> average_known([0.5, float("nan"), 1.0])
    0.75
    """
    known = [v for v in values if v == v]
    if not known:
        return nan
    return float(np.mean(known))


__all__ = [
    "class_auroc",
    "exact_match",
    "hamming_loss",
    "macro_auroc",
    "net_benefit",
    "npv",
    "positive_class",
    "positive_outcomes",
    "positive_tally",
    "ppv",
    "sensitivity",
    "specificity",
]
