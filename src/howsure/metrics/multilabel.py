"""Many labels per case: numbers of whole cases, and means over labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan

import numpy as np

from howsure._core.check import Array, Bools, Floats, InputError
from howsure.metrics.binary import class_auroc
from howsure.metrics.facts import metric
from howsure.metrics.mean_loss import accuracy, mean_loss
from howsure.predictions import Outcomes, Predictions, needs_predictions
from howsure.tallies.tally import Tally

CALLED = 0.5  # a label is called present where its probability is at least this
WHOLE = "these rows are not whole cases; select cases with all their labels."


def wrong_labels(preds: Predictions) -> Bools:
    """(cases, labels): where the call, present iff P >= 1/2, is not the label.

    >>> wrong_labels(Predictions.from_multilabel([[0.9, 0.5]], [[1, 0]]))
    array([[False,  True]])
    """
    layout = preds.needs_labels("this number")
    if not layout.whole:
        raise InputError(WHOLE)
    wrong: Bools = (preds.probs[:, 1] >= CALLED) != (preds.labels == 1)
    return wrong.reshape(preds.n // layout.size, layout.size)


def case_outcomes(preds: Predictions, *, exact: bool = False) -> Outcomes:
    """One row per case: the share of wrong labels as its loss, or with `exact` whether all labels
    are right.
    """
    layout = preds.needs_labels("this number")
    wrong = wrong_labels(preds)
    pick: Callable[[Array | None], Array | None] = lambda a: (
        None if a is None else a[:: layout.size]
    )
    weight, group = pick(preds.weight), None if layout.alone else pick(preds.group)
    share: Floats = wrong.mean(axis=1)
    if exact:
        return Outcomes(-share, correct=~wrong.any(axis=1), weight=weight, group=group)
    return Outcomes(-share, loss=share, weight=weight, group=group)


def _shares(preds: Predictions) -> tuple[Outcomes, Callable[[Tally], float]]:
    return case_outcomes(preds), mean_loss


def _exact(preds: Predictions) -> tuple[Outcomes, Callable[[Tally], float]]:
    return case_outcomes(preds, exact=True), accuracy


@metric(better="lower", bounds=(0, 1), takes="multilabel", through=_shares)
def hamming_loss(preds: Predictions) -> float:
    r"""The share of wrong labels, :math:`\frac1{nL} \sum_i \sum_l 1[\hat y_{il} \ne y_{il}]`, of
    many per case.

    A label is called present where its probability is at least 1/2. Range [0, 1], 0 is perfect; a
    model that calls nothing reaches the mean prevalence. Limits are over cases. Schapire & Singer
    1999.

    >>> hamming_loss(Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]]))
    0.25
    """
    needs_predictions(preds, "hamming_loss")
    return mean_loss(case_outcomes(preds).tally())


@metric(better="higher", bounds=(0, 1), takes="multilabel", through=_exact)
def exact_match(preds: Predictions) -> float:
    """The share of cases whose labels are all right; present where the probability is at least 1/2.

    Range [0, 1], 1 is perfect. Also called subset accuracy. Godbole & Sarawagi 2004.

    >>> exact_match(Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]]))
    0.5
    """
    needs_predictions(preds, "exact_match")
    return accuracy(case_outcomes(preds, exact=True).tally())


def pseudo_aucs(preds: Predictions) -> Floats:
    """(cases, labels): the AUC of each label plus what each case adds to n times it; the mean over
    cases is the AUC.

    nan for a label that is everywhere or nowhere. The limits of any mean of AUCs are those of a
    mean of these: they are spread as far as the unbiased variance of an AUC, with one more case of
    either side that may stand anywhere.

    >>> pseudo_aucs(Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [0, 0]])).mean(axis=0)
    array([ 1., nan])
    """
    layout = preds.needs_labels("this number")
    if not layout.whole:
        raise InputError(WHOLE)
    p = preds.probs[:, 1].reshape(preds.n // layout.size, layout.size)
    y: Bools = (preds.labels == 1).reshape(p.shape)
    w = np.ones(len(p)) if preds.weight is None else preds.weight[:: layout.size]
    return np.stack([_pseudo_auc(p[:, i], y[:, i], w) for i in range(layout.size)], axis=1)


def _pseudo_auc(p: Floats, positive: Bools, w: Floats) -> Floats:
    """AUC + influence of each case, in weights `w`."""
    total, share = float(w.sum()), np.full(len(p), nan)
    sides = {side: float(w[positive == side].sum()) for side in (True, False)}
    if not all(sides.values()):
        return share
    for side in (
        True,
        False,
    ):  # the share of the other side that a case is on the right side of, ties half
        other = positive != side
        order = np.argsort(p[other], kind="stable")
        below = np.concatenate(([0.0], np.cumsum(w[other][order])))
        left, right = (
            below[np.searchsorted(p[other][order], p[positive == side], s)]
            for s in ("left", "right")
        )
        lower = (left + right) / 2 / sides[not side]
        share[positive == side] = lower if side else 1 - lower
    area = float(np.average(share[positive], weights=w[positive]))
    off = (share - area) * total / np.where(positive, sides[True], sides[False])
    return area + off * _widened(area, off, positive, w / w.mean())


def _widened(area: float, off: Floats, positive: Bools, w: Floats) -> float:
    """What the deviations of the cases of one label lack: few positive cases hardly tell how much
    they differ.

    Each side's sum of squares is that of m values around their own mean, so m − 1 count; and of one
    more case nothing is known but that it is right with probability `area`, which has the variance
    area · (1 − area).
    """
    seen = float(np.dot(w, off**2))
    if seen <= 0:
        return 1.0
    wanted = 0.0
    for side in (positive, ~positive):
        m = float(w[side].sum())
        wanted += float(np.dot(w[side], off[side] ** 2)) * m / max(m - 1, 1.0)
        wanted += area * (1 - area) * (len(w) / m) ** 2
    return float(np.sqrt(wanted / seen))


def case_aucs(preds: Predictions) -> tuple[Outcomes, Callable[[Tally], float]]:
    """One row per case: its part of the mean AUC as a loss; the mean of these is the number."""
    layout, found = preds.needs_labels("macro_auroc"), pseudo_aucs(preds)
    known = ~np.isnan(found).any(axis=0)
    value: Floats = found[:, known].mean(axis=1)
    pick: Callable[[Array | None], Array | None] = lambda a: (
        None if a is None else a[:: layout.size]
    )
    group = None if layout.alone else pick(preds.group)
    return Outcomes(-value, loss=value, weight=pick(preds.weight), group=group), mean_loss


@metric(better="higher", bounds=(0, 1), takes="multilabel", through=case_aucs)
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
    return mean_known([class_auroc(preds.label(i)) for i in range(layout.size)])


def mean_known(values: Sequence[float]) -> float:
    """The mean of those that are numbers; nan where none is.

    >>> mean_known([0.5, float("nan"), 1.0])
    0.75
    """
    known = [v for v in values if v == v]
    return float(np.mean(known)) if known else nan


__all__ = ["exact_match", "hamming_loss", "macro_auroc"]
