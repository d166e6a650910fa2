"""Records with several questions: which may be answered without a person.

Guarantees for each question never add up to one for the record: a record with ten answers, each
wrong in at most 1 of 100, may be wrong in 10 of 100.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike

from howsure import bounds
from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.indices import count_values, repeat_values
from howsure.policies.guarantee import Guaranteed, guaranteed_threshold
from howsure.policies.policy import sum_cases
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes


def guaranteed_cases(
    confidence: ArrayLike,
    correct: ArrayLike,
    asked: ArrayLike | None = None,
    *,
    risk: float,
    delta: float,
    partial: bool = False,
) -> Guaranteed:
    r"""A threshold for records with several questions, from arrays (records, questions).

    Whole records: the score of a record is the sum of the logs of its confidences,

    .. math:: s_i = \sum_j \ln \max(c_{ij}, 10^{-300}), \qquad
        P\big( P(\text{a wrong answer} \mid s \ge \theta) > \mathrm{risk} \big) \le \delta,

    and the band chooses the threshold: at most `risk` of the automatic records contain a wrong
    answer. `partial=True` thresholds the confidence of single answers instead: at most `risk` of
    *all* records get a wrong automatic answer. With v the largest confidence of a wrong answer of
    each record and q the largest number with :math:`P(\mathrm{Bin}(n, \mathrm{risk}) \le q) <
    \delta`, the threshold is the least confidence above the (q + 1)-th largest v; exact, ties
    included. `coverage`, `kept` and `n` then count answers, `observed` and `bound` the share of
    records with a wrong automatic answer.

    `asked` says which questions a record has (all of them unless given): what was not asked is
    neither wrong nor unsure. Records must be independent. Clopper & Pearson 1934.

    >>> confidence = np.repeat([[0.9, 0.8], [0.6, 0.9]], 100, axis=0)
    >>> correct = np.repeat([[1, 1], [0, 1]], 100, axis=0)
    >>> g = guaranteed_cases(confidence, correct, risk=0.05, delta=0.05)
    >>> g.coverage, round(float(np.exp(g.threshold)), 2)
    (0.5, 0.72)
    >>> guaranteed_cases(confidence, correct, risk=0.05, delta=0.05, partial=True).threshold
    0.8
    """
    checks.fraction(risk, "risk")
    bounds.check_proportion(delta, "delta")
    c, right, there = _check_records(confidence, correct, asked)
    if partial:
        return _guarantee_answers(c, right, there, risk=risk, delta=delta)
    place = repeat_values(np.arange(len(c)), c.shape[1])
    score = sum_cases(c.reshape(-1), place, len(c))  # what was not asked has confidence 1
    from howsure.tallies.building import tally

    t = tally(score, correct=(right | ~there).all(axis=1))
    return guaranteed_threshold(t, risk=risk, delta=delta)


def _check_records(
    confidence: ArrayLike, correct: ArrayLike, asked: ArrayLike | None
) -> tuple[Floats, Bools, Bools]:
    """Confidence, right or wrong, and asked or not, all of shape (records, questions)."""
    c = checks.floats(confidence, "confidence").astype(np.float64)
    if c.ndim != 2 or c.size == 0:
        raise InputError(
            "confidence",
            got=f"has shape {c.shape}",
            need="one row per record and one column per question is needed",
        )
    there = np.ones(c.shape, dtype=bool)
    if asked is not None:
        there = _check_zero_one(asked, "asked", c.shape)
    asks_nothing = np.asarray(~there.any(axis=1))
    if asks_nothing.any():
        row = checks.find_first(asks_nothing)
        raise InputError("asked", row=row, got="asks nothing", hint="Leave out such records")
    bad = there & ~((c >= 0) & (c <= 1))
    if bad.any():
        row = checks.find_first(np.asarray(bad.any(axis=1)))
        got = f"holds {c[row][bad[row]][0]:g}"
        raise InputError("confidence", row=row, got=got, need="a confidence lies in [0, 1]")
    # What was not asked may hold anything, also nan.
    answers = np.where(there, np.asarray(correct), 0) if np.shape(correct) == c.shape else correct
    return np.where(there, c, 1.0), _check_zero_one(answers, "correct", c.shape), there


def _check_zero_one(given: ArrayLike, name: str, shape: tuple[int, ...]) -> Bools:
    a = np.asarray(given)
    if a.shape != shape:
        raise InputError(name, got=f"has shape {a.shape}", need=f"{shape} as for confidence")
    return checks.zero_one(a.reshape(-1), name).reshape(shape)


def _guarantee_answers(
    c: Floats, right: Bools, there: Bools, *, risk: float, delta: float
) -> Guaranteed:
    """The threshold of single answers; see `guaranteed_cases`."""
    from scipy.special import betaincc

    n = len(c)
    wrong = there & ~right
    surest_wrong = np.where(wrong, c, -inf).max(axis=1)
    # The largest q with P(Bin(n, risk) <= q) < delta; -1 where there is none.
    allowed = n
    if risk < 1:
        q = np.arange(n)
        allowed = int(np.searchsorted(betaincc(q + 1.0, n - q, risk), delta)) - 1
    asked = np.sort(c[there])
    threshold = inf
    if allowed >= n:
        threshold = float(asked[0])
    elif allowed >= 0:
        limit = float(np.sort(surest_wrong)[::-1][allowed])
        above = int(np.searchsorted(asked, limit, side="right"))
        if above < len(asked):
            threshold = float(asked[above])
    feasible = threshold < inf
    automatic = there & (c >= threshold)
    kept = int(automatic.sum())
    broken = int((wrong & automatic).any(axis=1).sum())
    accuracy = observed = upper = nan
    if feasible:
        accuracy = float(right[automatic].mean())
        observed = broken / n
        upper = bounds.clopper_pearson(broken, n, delta)
    return Guaranteed(
        feasible=feasible,
        threshold=threshold,
        coverage=kept / len(asked),
        accuracy=accuracy,
        observed=observed,
        bound=upper,
        kept=kept,
        n=len(asked),
        risk=risk,
        delta=delta,
        method="partial",
        loss_bound="clopper_pearson",
        groups=n,
    )


def join_cases(preds: Predictions, by: str | None) -> tuple[Outcomes, Predictions]:
    """Whole cases, the groups of these answers: score and right or wrong of each, and one answer of
    each, for its segment.
    """
    cases, first, place = number_cases(preds.group)
    score = sum_cases(preds.confidence, place, len(cases))
    wrong = count_values(place, weights=~preds.correct, minlength=len(cases)) > 0
    if by is not None:
        from howsure.predictions.segments import PREDICTED, find_column, parse_segments

        for cut in parse_segments(by):
            if cut.column == PREDICTED:
                raise InputError("a case has several answers; segments of cases are columns.")
            values = find_column(preds, cut.column)
            differs = values != values[first][place]
            if differs.any():
                case = cases[place[checks.find_first(np.asarray(differs))]]
                got = f"has several values within case {str(case)[:60]!r}"
                raise InputError(cut.column, got=got, need="a case lies in one segment")
    return Outcomes(score, correct=~wrong, id=cases), preds[first]


def number_cases(group: Array | None) -> tuple[Array, Ints, Ints]:
    """The cases, the first row of each, and the case of each row."""
    if group is None:
        raise InputError("the answers do not say which case they belong to; give group=.")
    return np.unique(group, return_index=True, return_inverse=True)


def guaranteed_answers(o: Outcomes, *, risk: float, delta: float) -> Guaranteed:
    """The threshold of `guaranteed_cases(..., partial=True)` for answers in rows, whose `group` is
    their case.

    >>> o = Outcomes([0.9] * 200, correct=[1] * 200, group=np.arange(200) // 2)
    >>> guaranteed_answers(o, risk=0.05, delta=0.05).threshold
    0.9
    """
    cases, _, place = number_cases(o.group)
    order = np.argsort(place, kind="stable")
    sizes = count_values(place, minlength=len(cases))
    column = np.arange(len(order)) - repeat_values(np.cumsum(sizes) - sizes, sizes)
    shape = (len(cases), int(sizes.max()))
    confidence, right, asked = (
        np.ones(shape),
        np.ones(shape, dtype=bool),
        np.zeros(shape, dtype=bool),
    )
    at = (place[order], column)
    confidence[at] = np.asarray(o.score, dtype=np.float64)[order]
    right[at], asked[at] = o.right[order], True
    return guaranteed_cases(confidence, right, asked, risk=risk, delta=delta, partial=True)
