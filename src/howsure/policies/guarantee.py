"""Thresholds with a finite-sample guarantee on the risk of what is accepted.

The chapter goes from the public functions down: `guaranteed_threshold` counts what each threshold
accepts (`AcceptedCounts`), picks a bound on the risk, and searches the thresholds for the widest one
whose bound stays below the risk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import ceil, inf, log, log1p, nan
from typing import Literal, TypeAlias

import numpy as np

from howsure import bounds
from howsure._core import checks
from howsure._core.checks import Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, sort_distinct
from howsure.policies.band import count_labels_for_band, find_band_row, list_ranks
from howsure.predictions.outcomes import Outcomes, needs_outcomes
from howsure.tallies.tally import Tally

Method = Literal["fixed_sequence", "fallback", "sgr", "band"]
Bound = Literal["clopper_pearson", "hoeffding_bentkus", "betting", "groups"]
Accepted: TypeAlias = tuple[int | None, float]  # the accepted row, if any, with its bound
METHOD_NAMES = {
    "sgr": "SGR",
    "fixed_sequence": "fixed-sequence testing",
    "fallback": "fallback testing",
    "band": "joint limits",
}
FEW_GROUPS = 10  # below it nothing is promised about groups that are not among them
SEQUENCE_STEPS = 50  # coverages that the fixed sequence tests
# Coverage at which the fallback begins anew, and its share of delta.
FALLBACK_SHARES = {0.0: 0.5, 0.25: 0.1, 0.5: 0.15, 1.0: 0.25}
MAX_LABEL_FACTOR = 2.0**10  # more labels than this many times those given are not proposed


@frozen
class Guaranteed:
    """A threshold whose true risk is above `risk` with probability at most `delta`, or the word
    that none is known.

    `bound` is the upper bound at the threshold, `coverage`, `accuracy` and `observed` (risk) are
    those of the data. Where nothing can be promised, feasible is False, threshold inf, coverage 0,
    the rest nan, and `labels_needed` says how many labels like these would usually be enough (None:
    these labels cannot tell). Where samples come in groups it counts groups. `why` says what else
    keeps it from being promised.
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
    method: Method | Literal["partial"]  # partial: single answers of records, policies.cases
    loss_bound: Bound
    labels_needed: int | None = None
    groups: int | None = None  # independent groups that the promise rests on, if there are any
    why: str = ""
    max_missed: float | None = None  # share of the positives that may be passed as negative
    tested: tuple[
        tuple[float, ...], ...
    ] = ()  # thresholds, kept and errors that the search looked at

    @property
    def rule(self) -> str:
        """How it was chosen, in words."""
        if self.method == "partial":
            return (
                f"at most {self.risk:g} of all records get a wrong automatic answer, "
                f"with probability {1 - self.delta:g} ({self.groups:,} records)"
            )
        how = METHOD_NAMES[self.method]
        if self.groups is not None:
            how += f", {self.groups:,} groups"
        if self.loss_bound == "betting":
            how += ", betting"
        what = f"risk of the accepted at most {self.risk:g}"
        if self.max_missed is not None:
            what += f" and at most {self.max_missed:g} of the positives passed as negative, both"
        return f"{what} with probability {1 - self.delta:g} ({how})"


def guaranteed_threshold(
    t: Tally | Outcomes,
    *,
    risk: float,
    delta: float,
    method: Method | None = None,
    bound: Bound | None = None,
    thresholds: Sequence[float] | None = None,
    largest_group: int | None = None,
    seed: int = 0,
) -> Guaranteed:
    r"""A threshold whose accepted answers have true risk at most `risk`, with probability 1 −
    `delta` over the data.

    .. math:: P\big( R(\theta) > \mathrm{risk} \big) \le \delta, \quad R(\theta) = E[\ell \mid s \ge \theta]

    `band`, the default for right and wrong, has a limit on the errors at each per cent of coverage, which all
    hold at once, so that it finds the widest threshold also where the most trusted answers are noisy or labels
    are few (`policies.band`). `fixed_sequence`, the default for other losses, for `thresholds=` and for
    `bound=`, tests 50 coverages (or these thresholds) from the strictest up at full delta and stops at the first
    failure. `fallback` begins anew at 25, 50 and 100 % of coverage with a share of delta each. `sgr` searches by
    bisection and pays for each of its log2 n steps. The labels must be independent of the fitting of the model and
    of its calibrator; weights are refused.

    Samples that come in groups (`Outcomes` with `group`) are not independent: the promise then
    rests on one row of each group, drawn with `seed`, and `labels_needed` counts groups;
    `bound="groups"` bets on the sums of whole groups instead (`bounds.group_betting`), which
    accepts more where groups are large and have many errors. Either is about a random answer of a
    random group: a random answer, where the size of a group has nothing to do with its errors.
    Where it has, `bound="groups"` with `largest_group`, how large a group can be, is about a random
    answer. Fewer than 10 groups carry no promise about new ones; each may have one of its own.

    Losses other than right and wrong must lie in [0, 1] and exclude `sgr` and `band`; they have the
    Hoeffding–Bentkus bound or, for `Outcomes`, `bound="betting"`, which gains where losses vary
    little: it takes them one after the other, in an order drawn with `seed`. Their sequence starts
    where half the risk would pass. Infeasible is an answer: see `Guaranteed`. Angelopoulos et al.
    2021 (fixed sequence); Wiens 2003 (fallback); Geifman & El-Yaniv 2017, algorithm 1 (SGR).

    >>> from howsure import tally
    >>> t = tally([0.9] * 300 + [0.5] * 100, correct=[1] * 300 + [0] * 100)
    >>> g = guaranteed_threshold(t, risk=0.05, delta=0.05)
    >>> g.threshold, g.coverage, round(g.bound, 5)
    (0.9, 0.75, 0.00994)
    >>> guaranteed_threshold(tally([0.9] * 40, correct=[1] * 40), risk=0.05, delta=0.05).labels_needed
    280
    """
    needs_outcomes(t, "a guarantee")
    checks.fraction(risk, "risk")
    bounds.check_proportion(delta, "delta")
    if method is None:
        method = choose_method(t, bound, thresholds)
    groups = None
    if isinstance(t, Outcomes) and t.group is not None:
        groups = len(sort_distinct(t.group))
    if bound == "betting" and isinstance(t, Outcomes):
        t = shuffle_rows(t, seed)
    if thresholds is not None or method in ("sgr", "band") or groups:
        whole = count_accepted(t, largest_group)
    else:
        whole = count_at_steps(t, bound)
    # Rows of a group are not independent: the tests see one of each, the report sees all.
    tested = whole
    if isinstance(t, Outcomes) and groups and bound != "groups":
        tested = count_accepted(draw_one_per_group(t, seed))
    loss_bound = _choose_bound(tested, method, bound)
    test = RiskTest(risk=risk, delta=delta, bound=loss_bound)
    sequence = None if thresholds is None else find_given_rows(tested, thresholds, method)
    row, upper = search_thresholds(tested, test, method, sequence)
    why = ""
    if groups is not None and groups < FEW_GROUPS:
        row, why = None, write_few_groups(groups)
    if row is None:
        needed = None
        if not why:
            needed = _count_labels_needed(tested, test, method)
        return Guaranteed(
            feasible=False,
            threshold=inf,
            coverage=0.0,
            accuracy=nan,
            observed=nan,
            bound=nan,
            kept=0,
            n=int(whole.n),
            risk=risk,
            delta=delta,
            method=method,
            loss_bound=loss_bound,
            labels_needed=needed,
            groups=groups,
            why=why,
        )
    threshold = float(tested.score[row])
    accepted, loss = whole.at_score(threshold)
    return Guaranteed(
        feasible=True,
        threshold=threshold,
        coverage=accepted / whole.n,
        accuracy=(accepted - loss) / accepted if tested.zero_one else nan,
        observed=loss / accepted,
        bound=upper,
        kept=int(accepted),
        n=int(whole.n),
        risk=risk,
        delta=delta,
        method=method,
        loss_bound=loss_bound,
        groups=groups,
        tested=_list_tested(tested, test, method, row) if sequence is None else (),
    )


def _list_tested(
    counts: AcceptedCounts, test: RiskTest, method: str, row: int
) -> tuple[tuple[float, ...], ...]:
    """Thresholds, kept and errors at the rows from which the search finds the same row again."""
    if test.bound != "clopper_pearson" or method == "sgr" or test.risk >= 1:
        return ()
    rows = find_step_rows(counts)
    if method == "band":
        ranks = list_ranks(int(counts.n), test.risk, test.delta)
        rows = np.searchsorted(counts.kept, ranks)
    rows = sort_distinct(np.append(rows, (row, len(counts.kept) - 1)))
    columns = (counts.score[rows], counts.kept[rows], counts.loss[rows])
    return tuple(tuple(column.tolist()) for column in columns)


def label_budget(error: float, *, risk: float, delta: float, coverage: float = 1.0) -> int | None:
    r"""How many labels to collect so that accepted answers with this error rate can be promised to
    stay below `risk`.

    The smallest n with :math:`B(\mathrm{error} \cdot m, m, \delta) < \mathrm{risk}`, the
    Clopper–Pearson bound, for m = coverage · n accepted; None where error >= risk. Even a perfect
    model needs ln(delta)/ln(1 − risk).

    >>> label_budget(0.0, risk=0.05, delta=0.05), label_budget(0.03, risk=0.05, delta=0.05)
    (59, 343)
    """
    checks.fraction(risk, "risk")
    bounds.check_proportion(delta, "delta")
    checks.fraction(coverage, "coverage")
    if not 0 <= error <= 1:
        raise InputError(f"error is {error:g}; an error rate lies in [0, 1].")
    if error >= risk:
        return None
    passes: Callable[[int], bool] = lambda m: bounds.clopper_pearson(error * m, m, delta) < risk
    # Double until it passes, then bisect: the bound falls as m grows at this error rate.
    high = 1
    while not passes(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if passes(middle):
            high = middle
        else:
            low = middle
    return ceil(high / coverage)


def choose_method(
    t: Tally | Outcomes, bound: Bound | None, thresholds: Sequence[float] | None
) -> Method:
    """The band where right and wrong are counted, else a fixed sequence."""
    if thresholds is not None or bound not in (None, "clopper_pearson"):
        return "fixed_sequence"
    if isinstance(t, Outcomes) and t.loss is not None:
        return "fixed_sequence"
    if isinstance(t, Tally) and not t.zero_one:
        return "fixed_sequence"
    return "band"


def write_few_groups(groups: int) -> str:
    """Why so few groups carry no guarantee about new ones."""
    if groups == 1:
        return "one group says nothing about new groups; --by guarantees for this one"
    return f"{groups} groups are too few to speak for new groups; --by guarantees for each of them"


# What each threshold accepts.


@frozen(eq=False)
class AcceptedCounts:
    """Running counts over thresholds, strictest first. Losses stand in their own order for the
    betting bound.
    """

    score: Floats
    kept: Floats
    loss: Floats
    zero_one: bool
    rows: Outcomes | None = None
    losses: Floats | None = None  # distinct losses, ascending, where they are not 0 and 1
    largest: int | None = None  # samples that the largest group can have, where that is stated

    @property
    def n(self) -> float:
        return float(self.kept[-1])

    def at_score(self, score: float) -> tuple[float, float]:
        """How many samples score at least this much, and their loss."""
        row = int(np.searchsorted(-self.score, -score, side="right")) - 1
        return float(self.kept[row]), float(self.loss[row])

    def at_rank(self, rank: float) -> int:
        """The first threshold that keeps at least `rank` samples."""
        return min(int(np.searchsorted(self.kept, rank - 1e-9)), len(self.kept) - 1)


def count_accepted(t: Tally | Outcomes, largest_group: int | None = None) -> AcceptedCounts:
    """Running counts over the thresholds of a tally; raise where no guarantee can rest on it."""
    rows = None
    if isinstance(t, Outcomes):
        rows = t
    if largest_group is not None:
        if rows is None or rows.group is None:
            raise InputError(
                "largest_group is about groups; give Outcomes with a group for each sample."
            )
        largest = int(np.unique(rows.group, return_counts=True)[1].max())
        if largest_group < largest:
            raise InputError(
                f"largest_group is {largest_group:,}, but a group has {largest:,} samples; "
                "state a larger one."
            )
    table = t.tally() if isinstance(t, Outcomes) else t
    if table.weighted:
        raise InputError("a guarantee counts independent labels, so weights are refused.")
    if table.approximate:
        raise InputError(
            f"a guarantee needs the exact scores, this tally is {table.approximate}; use the full one."
        )
    ideal = table.ideal
    return AcceptedCounts(
        score=table.score,
        kept=table.ends.astype(np.float64),
        loss=np.cumsum(table.loss, dtype=np.float64),
        zero_one=table.zero_one,
        rows=rows,
        losses=None if ideal is None else ideal.loss,
        largest=largest_group,
    )


def count_at_steps(t: Tally | Outcomes, bound: Bound | None) -> AcceptedCounts:
    """Only the thresholds that a sequence can test, where counts are all that its bound reads.

    The same answer as `count_accepted` for fifty rows instead of one per distinct score.
    """
    table = t.tally() if isinstance(t, Outcomes) else t
    if bound == "betting" or not table.zero_one or table.weighted or table.approximate:
        return count_accepted(t)
    steps = np.arange(1, SEQUENCE_STEPS + 1, dtype=np.int64)
    ranks = -(-steps * int(table.n) // SEQUENCE_STEPS)
    sums = table.between(sort_distinct(np.append(0, table.cut_at(ranks))))
    return AcceptedCounts(
        score=sums.low,
        kept=np.cumsum(sums.count).astype(np.float64),
        loss=np.cumsum(sums.loss).astype(np.float64),
        zero_one=True,
    )


def shuffle_rows(o: Outcomes, seed: int) -> Outcomes:
    """The rows in an order drawn at random, whatever order they came in."""
    outcome = o.right if o.loss is None else o.loss
    # Sorted by what the rows hold first: the draw must not depend on the order of the file.
    keys = (outcome, o.score) if o.group is None else (outcome, o.score, o.units)
    order = np.lexsort(keys)
    return o[order[np.random.default_rng(seed).permutation(len(order))]]


def draw_one_per_group(o: Outcomes, seed: int) -> Outcomes:
    """One row of each group at random; rows are numbered by what they hold, so their order does not
    matter.
    """
    unit, outcome = o.units, o.right if o.loss is None else o.loss
    order = np.lexsort((outcome, o.score, unit))
    _, first, size = np.unique(unit[order], return_index=True, return_counts=True)
    within = (np.random.default_rng(seed).random(len(size)) * size).astype(np.int64)
    return replace(o[order[first + within]], group=None)


# Which bound on the risk to use.


@frozen
class RiskTest:
    """The claim that is tested at a threshold: the risk stays below `risk`, at error rate `delta`."""

    risk: float
    delta: float
    bound: Bound


def _choose_bound(counts: AcceptedCounts, method: str, bound: str | None) -> Bound:
    """The loss bound to use, if the combination is allowed."""
    if method not in METHOD_NAMES:
        raise InputError(
            f"method={method!r}; 'fixed_sequence', 'fallback', 'sgr' or 'band' is needed."
        )
    if method == "band" and (bound not in (None, "clopper_pearson") or not counts.zero_one):
        raise InputError(
            "the band counts right and wrong; use method='fixed_sequence' for other losses and for bound=."
        )
    if bound == "groups":
        if counts.rows is None or counts.rows.group is None:
            raise InputError(
                "bound='groups' bets on groups; give Outcomes with a group for each sample."
            )
        if method == "sgr":
            raise InputError(
                "sgr is defined for single samples; use method='fixed_sequence' or 'fallback' for groups."
            )
        return "groups"
    if bound is None:
        bound = "clopper_pearson" if counts.zero_one else "hoeffding_bentkus"
    if bound not in ("clopper_pearson", "hoeffding_bentkus", "betting"):
        raise InputError(
            f"bound={bound!r}; 'clopper_pearson', 'hoeffding_bentkus', 'betting' or 'groups' is needed."
        )
    if bound == "clopper_pearson" and not counts.zero_one:
        raise InputError(
            "clopper_pearson counts right and wrong; for loss= use bound='hoeffding_bentkus'."
        )
    if method == "sgr" and bound != "clopper_pearson":
        raise InputError(
            "sgr is defined for right and wrong; use method='fixed_sequence' for other losses."
        )
    if bound == "betting" and counts.rows is None:
        raise InputError(
            "betting needs each loss in its order, a tally has only sums; pass Outcomes(score, ...)."
        )
    losses = counts.losses
    if losses is not None and (losses[0] < 0 or losses[-1] > 1):
        raise InputError(
            f"losses run from {losses[0]:g} to {losses[-1]:g}; a guarantee needs them in [0, 1]. "
            "Divide them by the largest possible loss."
        )
    return bound


def compute_upper_bound(counts: AcceptedCounts, row: int, delta: float, bound: Bound) -> float:
    """The upper bound on the risk at one threshold."""
    n, loss = float(counts.kept[row]), float(counts.loss[row])
    if bound == "clopper_pearson":
        return bounds.clopper_pearson(loss, n, delta)
    if bound == "hoeffding_bentkus":
        return bounds.hoeffding_bentkus(min(1.0, loss / n), int(n), delta)
    rows = counts.rows
    assert rows is not None  # checked in _choose_bound
    accepted = np.asarray(rows.score) >= counts.score[row]
    losses = (~rows.right).astype(np.float64) if rows.loss is None else rows.loss
    losses = losses[accepted]
    if bound == "betting":
        return bounds.betting(losses, delta)
    group = rows.units
    groups = int(group.max()) + 1
    lost = count_values(group[accepted], losses, groups)
    answered = count_values(group[accepted], None, groups)
    return bounds.group_betting(lost, answered, counts.largest or count_values(group), delta)


# The searches: which thresholds are tested, in which order, at which share of delta.


def search_thresholds(
    counts: AcceptedCounts, test: RiskTest, method: str, sequence: Sequence[int] | None = None
) -> Accepted:
    """The accepted row, if any, with its bound."""
    accepted: Accepted = (None, nan)
    if method == "sgr":
        # The widest step of a bisection that passed, by the union bound over all steps.
        n = ceil(counts.n)
        steps = max(1, (n - 1).bit_length())  # ceil(log2 n), in integers
        low, high = 1, n
        for _ in range(steps):
            middle = (low + high + 1) // 2
            row = counts.at_rank(n - middle + 1)
            upper = compute_upper_bound(counts, row, test.delta / steps, test.bound)
            if upper < test.risk:
                # A later middle is never above this one, so a later row is never stricter.
                high, accepted = middle, (row, upper)
            else:
                low = middle
        return accepted
    if method == "band":
        # The widest row within the joint limits, with the bound at this row alone.
        band_row = find_band_row(counts.kept, counts.loss, risk=test.risk, delta=test.delta)
        if band_row is None:
            return accepted
        return band_row, compute_upper_bound(counts, band_row, test.delta, test.bound)
    if sequence is None:
        sequence = find_sequence(counts, test)
    if method == "fallback":
        return _search_with_fallback(counts, test, sequence)
    # Fixed sequence: test at full delta; the last success before the first failure counts.
    for row in sequence:
        upper = compute_upper_bound(counts, row, test.delta, test.bound)
        if not upper < test.risk:
            break
        accepted = (row, upper)
    return accepted


def _search_with_fallback(
    counts: AcceptedCounts, test: RiskTest, sequence: Sequence[int]
) -> Accepted:
    """Test along the sequence, which begins anew at some coverages; a success hands its share of
    delta on.

    Wiens 2003: the chance of any wrong promise is at most delta, so the widest success counts.
    """
    accepted: Accepted = (None, nan)
    if not sequence:
        return accepted
    shares = defaultdict[int, float](float)
    for coverage, share in FALLBACK_SHARES.items():
        wide = (row for row in sequence if counts.kept[row] >= coverage * counts.n - 1e-9)
        # Where no row has this coverage, the share goes to the first.
        shares[next(wide, sequence[0])] += share
    carried = 0.0
    for row in sequence:
        level = test.delta * shares[row] + carried
        carried = 0.0
        if level > 0:
            upper = compute_upper_bound(counts, row, level, test.bound)
            if upper < test.risk:
                carried, accepted = level, (row, upper)
    return accepted


def find_sequence(counts: AcceptedCounts, test: RiskTest) -> list[int]:
    """Rows that keep j/50 of the samples, ties closed, from the first with enough samples to
    succeed upwards.
    """
    errorless = 0.0  # samples without an error that are just enough
    if test.risk < 1:
        errorless = log(test.delta) / log1p(-test.risk)
    n = units = ceil(counts.n)
    if test.bound == "groups" and counts.rows is not None:
        units = int(counts.rows.units.max()) + 1
    if test.bound in ("hoeffding_bentkus", "betting"):
        enough = count_enough_samples(test.risk, test.delta)
    else:
        enough = ceil(2.5 * errorless)
    # Below `enough` a test has little power, and one failure ends the sequence; but few data must
    # not start later than half-way between the least that can pass and all of them.
    start = min(enough, ceil((ceil(errorless) + units) / 2)) * n / units
    rows = find_step_rows(counts)
    return rows[counts.kept[rows] >= start].tolist()


def find_step_rows(counts: AcceptedCounts) -> Ints:
    """Rows that keep j/50 of the samples, ties closed: all that the fixed sequence can stop at."""
    ranks = -(-np.arange(1, SEQUENCE_STEPS + 1) * ceil(counts.n) // SEQUENCE_STEPS)
    rows = np.searchsorted(counts.kept, ranks - 1e-9)
    return sort_distinct(np.minimum(rows, len(counts.kept) - 1))


@cache
def count_enough_samples(risk: float, delta: float) -> int:
    """Samples, to a tenth, at which a mean loss of half the risk passes; other losses than 0/1 are
    rarely 0.
    """
    n = 8.0
    while bounds.hoeffding_bentkus(risk / 2, ceil(n), delta) >= risk:
        n *= 1.1
    return ceil(n)


def find_given_rows(counts: AcceptedCounts, thresholds: Sequence[float], method: str) -> list[int]:
    """Rows of thresholds fixed in advance, strictest first; those that keep nothing are left out."""
    if method in ("sgr", "band"):
        raise InputError("thresholds= are tested in sequence; use method='fixed_sequence'.")
    strictest_first = np.sort(checks.column(thresholds, "thresholds").astype(np.float64))[::-1]
    rows = np.searchsorted(-counts.score, -strictest_first, side="right") - 1
    return rows[rows >= 0].tolist()


def _count_labels_needed(counts: AcceptedCounts, test: RiskTest, method: str) -> int | None:
    """The fewest labels, to about 2 %, for which this same curve would pass; for the band those
    that would usually be enough.
    """
    if method == "band":
        return count_labels_for_band(counts.kept, counts.loss, risk=test.risk, delta=test.delta)
    if test.bound == "groups" or np.min(counts.loss / counts.kept) >= test.risk:
        return None
    if test.bound == "betting":
        # A curve has no single losses to bet on; the bound from sums comes close.
        test = replace(test, bound="hoeffding_bentkus")

    def passes(factor: float) -> bool:
        more = scale_counts(counts, factor)
        return search_thresholds(more, test, method)[0] is not None

    # First to a power of two, then in steps of 2 %.
    factor = 2.0
    while not passes(factor):
        factor *= 2
        if factor > MAX_LABEL_FACTOR:
            return None
    enough, factor = factor, factor / 2
    while factor <= enough and not passes(factor):
        factor *= 1.02
    return ceil(counts.n * min(factor, enough))


def scale_counts(counts: AcceptedCounts, factor: float) -> AcceptedCounts:
    """The same curve with `factor` times as many labels."""
    return AcceptedCounts(
        score=counts.score,
        kept=counts.kept * factor,
        loss=counts.loss * factor,
        zero_one=counts.zero_one,
    )
