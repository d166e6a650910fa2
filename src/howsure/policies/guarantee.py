"""Thresholds with a finite-sample guarantee on the risk of what is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil, inf, nan
from typing import Literal

import numpy as np

from howsure import bounds
from howsure._core import check
from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.policies.sequences import STEPS, Bound, Kept, given, search
from howsure.predictions.outcomes import Outcomes, needs_outcomes
from howsure.tallies.tally import Tally

Method = Literal["fixed_sequence", "fallback", "sgr"]
CALLED = {"sgr": "SGR", "fixed_sequence": "fixed-sequence testing", "fallback": "fallback testing"}


@frozen
class Guaranteed:
    """A threshold whose true risk is above `risk` with probability at most `delta`, or the word
    that none is known.

    `bound` is the upper bound at the threshold, `coverage`, `accuracy` and `observed` (risk) are
    those of the data. Where nothing can be promised, feasible is False, threshold inf, coverage 0,
    the rest nan, and `labels_needed` says how many labels with this same risk–coverage curve would
    do (None: more labels alone will not help, or more than a thousand times as many).
    """

    feasible: bool
    threshold: float
    coverage: float
    accuracy: float
    observed: float
    bound: float
    kept: int
    n: int
    risk: float
    delta: float
    method: Method
    loss_bound: Bound
    labels_needed: int | None = None
    groups: int | None = (
        None  # independent groups that the promise rests on, where samples come in groups
    )

    @property
    def rule(self) -> str:
        """How it was chosen, in words."""
        how = CALLED[self.method] + ("" if self.groups is None else f", {self.groups:,} groups")
        how += ", betting" if self.loss_bound == "betting" else ""
        return f"risk of the accepted at most {self.risk:g} with probability {1 - self.delta:g} ({how})"


def guaranteed_threshold(
    t: Tally | Outcomes,
    *,
    risk: float,
    delta: float,
    method: Method = "fixed_sequence",
    bound: Bound | None = None,
    thresholds: Sequence[float] | None = None,
    largest_group: int | None = None,
    seed: int = 0,
) -> Guaranteed:
    r"""A threshold whose accepted answers have true risk at most `risk`, with probability 1 −
    `delta` over the data.

    .. math:: P\big( R(\theta) > \mathrm{risk} \big) \le \delta, \quad R(\theta) = E[\ell \mid s \ge \theta]

    `fixed_sequence` tests 50 coverages from the strictest up at full delta and stops at the first failure
    (`thresholds=` gives them in advance instead). `fallback` begins anew at 25, 50 and 100 % of coverage with a share
    of delta each, for scores whose most trusted answers are noisy. `sgr` searches by bisection and pays for each
    of its log2 n steps. The labels must be independent of the fitting of the model and of its calibrator; weights are
    refused.

    Samples that come in groups (`Outcomes` with `group`) are not independent: the promise then
    rests on one row of each group, drawn with `seed`, and `labels_needed` counts groups;
    `bound="groups"` bets on the sums of whole groups instead (`bounds.group_betting`), which
    accepts more where groups are large and have many errors. Either is about a random answer of a
    random group: a random answer, where the size of a group has nothing to do with its errors.
    Where it has, `bound="groups"` with `largest_group`, how large a group can be, is about a random
    answer.

    Losses other than right and wrong must lie in [0, 1] and exclude `sgr`; they have the
    Hoeffding–Bentkus bound or, for `Outcomes`, `bound="betting"`, which gains where losses vary
    little: it takes them one after the other, in an order drawn with `seed`. Their sequence starts
    where half the risk would pass. Infeasible is an answer: see `Guaranteed`. Angelopoulos et al.
    2021 (fixed sequence); Wiens 2003 (fallback); Geifman & El-Yaniv 2017, algorithm 1 (SGR).

    >>> from howsure import tally
    >>> t = tally([0.9] * 300 + [0.5] * 100, correct=[1] * 300 + [0] * 100)
    >>> g = guaranteed_threshold(t, risk=0.05, delta=0.05)
    >>> g.threshold, g.coverage, round(g.bound, 5)
    (0.9, 0.75, 0.00994)
    >>> guaranteed_threshold(tally([0.9] * 20, correct=[1] * 20), risk=0.05, delta=0.05).labels_needed
    61
    """
    needs_outcomes(t, "a guarantee")
    check.fraction(risk, "risk")
    bounds.proportion(delta, "delta")
    groups = len(np.unique(t.group)) if isinstance(t, Outcomes) and t.group is not None else None
    if bound == "betting" and isinstance(t, Outcomes):
        t = shuffled(t, seed)
    whole = (
        kept_counts(t, largest_group)
        if thresholds is not None or method == "sgr" or groups
        else kept_at_steps(t, bound)
    )
    kept = (
        kept_counts(one_of_each(t, seed))
        if isinstance(t, Outcomes) and groups and bound != "groups"
        else whole
    )
    how = _bound_for(kept, method, bound)
    grid = None if thresholds is None else given(kept, thresholds, method)
    row, upper = search(kept, risk, delta, method, how, grid)
    if row is None:
        more = _labels_needed(kept, risk, delta, method, how)
        return Guaranteed(
            False, inf, 0.0, nan, nan, nan, 0, int(whole.n), risk, delta, method, how, more, groups
        )
    where = float(kept.score[row])
    n, k, loss = whole.n, *whole.at_score(where)
    accuracy = (k - loss) / k if kept.zero_one else nan
    of = (int(k), int(n), risk, delta, method, how)
    return Guaranteed(True, where, k / n, accuracy, loss / k, upper, *of, groups=groups)


def label_budget(error: float, *, risk: float, delta: float, coverage: float = 1.0) -> int | None:
    r"""How many labels to collect so that accepted answers with this error rate can be promised to
    stay below `risk`.

    The smallest n with :math:`B(\mathrm{error} \cdot m, m, \delta) < \mathrm{risk}`, the
    Clopper–Pearson bound, for m = coverage · n accepted; None where error >= risk. Even a perfect
    model needs ln(delta)/ln(1 − risk).

    >>> label_budget(0.0, risk=0.05, delta=0.05), label_budget(0.03, risk=0.05, delta=0.05)
    (59, 343)
    """
    check.fraction(risk, "risk")
    bounds.proportion(delta, "delta")
    check.fraction(coverage, "coverage")
    if not 0 <= error <= 1:
        raise InputError(f"error is {error:g}; an error rate lies in [0, 1].")
    if error >= risk:
        return None
    good: Callable[[int], bool] = lambda m: bounds.clopper_pearson(error * m, m, delta) < risk
    high = 1
    while not good(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return ceil(high / coverage)


def kept_counts(t: Tally | Outcomes, largest_group: int | None = None) -> Kept:
    """Running counts over the thresholds of a tally; raise where no guarantee can rest on it."""
    rows = t if isinstance(t, Outcomes) else None
    if largest_group is not None:
        _check_largest(rows, largest_group)
    table = t.tally() if isinstance(t, Outcomes) else t
    if table.weighted:
        raise InputError(
            "a guarantee counts independent labels, so weights are refused; drop weight=."
        )
    if table.approximate:
        raise InputError(
            f"a guarantee needs the exact scores, this tally is {table.approximate}; use the full one."
        )
    count, loss = table.ends.astype(np.float64), np.cumsum(table.loss).astype(np.float64)
    ideal = table.ideal
    return Kept(
        table.score,
        count,
        loss,
        table.zero_one,
        rows,
        None if ideal is None else ideal.loss,
        largest_group,
    )


def kept_at_steps(t: Tally | Outcomes, bound: Bound | None) -> Kept:
    """Only the thresholds that a sequence can test, where counts are all that its bound reads."""
    table = t.tally() if isinstance(t, Outcomes) else t
    if bound == "betting" or not table.zero_one or table.weighted or table.approximate:
        return kept_counts(t)
    ranks = -(-np.arange(1, STEPS + 1, dtype=np.int64) * int(table.n) // STEPS)
    sums = table.between(np.unique(np.append(0, table.cut_at(ranks))))
    return Kept(
        sums.low,
        np.cumsum(sums.count).astype(np.float64),
        np.cumsum(sums.loss).astype(np.float64),
        True,
    )


def shuffled(o: Outcomes, seed: int) -> Outcomes:
    """The rows in an order drawn at random, whatever order they came in."""
    outcome = o.right if o.loss is None else o.loss
    order = np.lexsort((outcome, o.score) if o.group is None else (outcome, o.score, o.units))
    return o[order[np.random.default_rng(seed).permutation(len(order))]]


def one_of_each(o: Outcomes, seed: int) -> Outcomes:
    """One row of each group at random; rows are numbered by what they hold, so their order does not
    matter.
    """
    unit, outcome = o.units, o.right if o.loss is None else o.loss
    order = np.lexsort((outcome, o.score, unit))
    _, first, size = np.unique(unit[order], return_index=True, return_counts=True)
    drawn = order[first + (np.random.default_rng(seed).random(len(size)) * size).astype(np.int64)]
    return replace(o[drawn], group=None)


def _check_largest(rows: Outcomes | None, stated: int) -> None:
    if rows is None or rows.group is None:
        raise InputError(
            "largest_group is about groups; give Outcomes with a group for each sample."
        )
    largest = int(np.unique(rows.group, return_counts=True)[1].max())
    if stated < largest:
        raise InputError(
            f"largest_group is {stated:,}, but a group has {largest:,} samples; state a larger one."
        )


def _bound_for(kept: Kept, method: str, bound: str | None) -> Bound:
    """The loss bound to use, if the combination is allowed."""
    if method not in CALLED:
        raise InputError(f"method={method!r}; 'fixed_sequence', 'fallback' or 'sgr' is needed.")
    if bound == "groups":
        return _bound_for_groups(kept, method)
    bound = bound or ("clopper_pearson" if kept.zero_one else "hoeffding_bentkus")
    if bound not in ("clopper_pearson", "hoeffding_bentkus", "betting"):
        raise InputError(
            f"bound={bound!r}; 'clopper_pearson', 'hoeffding_bentkus', 'betting' or 'groups' is needed."
        )
    if bound == "clopper_pearson" and not kept.zero_one:
        raise InputError(
            "clopper_pearson counts right and wrong; for loss= use bound='hoeffding_bentkus'."
        )
    if method == "sgr" and bound != "clopper_pearson":
        raise InputError(
            "sgr is defined for right and wrong; use method='fixed_sequence' for other losses."
        )
    if bound == "betting" and kept.rows is None:
        raise InputError(
            "betting needs each loss in its order, a tally has only sums; pass Outcomes(score, ...)."
        )
    if kept.losses is not None and (kept.losses[0] < 0 or kept.losses[-1] > 1):
        raise InputError(
            f"losses run from {kept.losses[0]:g} to {kept.losses[-1]:g}; a guarantee needs them in [0, 1]. "
            "Divide them by the largest possible loss."
        )
    return bound


def _bound_for_groups(kept: Kept, method: str) -> Bound:
    if kept.rows is None or kept.rows.group is None:
        raise InputError(
            "bound='groups' bets on groups; give Outcomes with a group for each sample."
        )
    if method == "sgr":
        raise InputError(
            "sgr is defined for single samples; use method='fixed_sequence' or 'fallback' for groups."
        )
    return "groups"


def _scaled(kept: Kept, factor: float) -> Kept:
    """The same curve with `factor` times as many labels."""
    return Kept(kept.score, kept.kept * factor, kept.loss * factor, kept.zero_one)


def _labels_needed(kept: Kept, risk: float, delta: float, method: str, how: Bound) -> int | None:
    """The fewest labels, to about 2 %, for which this same curve would pass."""
    if how == "groups":
        return None
    how = "hoeffding_bentkus" if how == "betting" else how
    good: Callable[[float], bool] = lambda factor: (
        search(_scaled(kept, factor), risk, delta, method, how, None)[0] is not None
    )
    if np.min(kept.loss / kept.kept) >= risk:
        return None
    first = next((f for f in _growing(2.0, 2.0**10, 2.0) if good(f)), None)
    if first is None:
        return None
    return ceil(kept.n * next((f for f in _growing(first / 2, first, 1.02) if good(f)), first))


def _growing(start: float, stop: float, by: float) -> Iterator[float]:
    while start <= stop:
        yield start
        start *= by
