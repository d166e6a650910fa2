"""Selective prediction as one number: areas under the risk–coverage curve and points on it."""

from __future__ import annotations

from functools import partial
from math import log1p
from typing import Literal

import numpy as np

from howsure._core import check
from howsure._core.check import Floats, InputError
from howsure.curves import risk_coverage
from howsure.metrics.extremes import (
    Pair,
    at_coverage,
    of_order,
    step_area,
    trapezoid_area,
    widest,
    wrong_from_top,
)
from howsure.metrics.facts import metric
from howsure.metrics.harmonic import mean_rank_share, risk_sum
from howsure.tallies.sets import SetTally
from howsure.tallies.tally import Blocks, Counts, Tally, needs_tally, needs_zero_one

Variant = Literal["expected", "trapezoid", "step"]
STRETCH = 1 << 10  # rows that are looked at together


# Numbers of tie blocks, blocks along the last axis, so that they also take many drawn tables at
# once.


def _expected(block: Blocks, n: Counts) -> Floats:
    """Each loss counts in every risk from its own rank on: harmonic numbers of the ranks of the
    errors.
    """
    return risk_sum(block, n) / n


def _best(wrong: Counts, n: Counts) -> Floats:
    """The optimum of the 0/1 loss: one block of wrong answers at the end."""
    return wrong / n * mean_rank_share(n - np.where(wrong > 0, wrong, 1), n)


def _excess(block: Blocks, n: Counts) -> Floats:
    return np.maximum(0.0, _expected(block, n) - _best(block.loss.sum(axis=-1), n))


def _generalised(block: Blocks, n: Counts) -> Floats:
    total = np.asarray(
        block.loss.sum(axis=-1), dtype=np.float64
    )  # its product with n may leave int64
    return (n * total - block.middle_sum) / n / n


def _certified_area(t: Tally, variant: Variant | None = None) -> Pair:
    if variant == "step":
        return step_area(wrong_from_top(t))
    return trapezoid_area(wrong_from_top(t)) if variant == "trapezoid" else of_order(t, _expected)


def _certified_coverage(t: Tally, risk: float) -> Pair:
    return widest(wrong_from_top(t), 1.0 - risk)


def _certified_risk(t: Tally, coverage: float) -> Pair:
    return at_coverage(wrong_from_top(t), coverage)


@metric(better="lower", bounds=(0, 1), rank_only=True, of_blocks=_expected, certify=_certified_area)
def aurc(t: Tally | SetTally, variant: Variant | None = None) -> float:
    r"""Mean risk over all coverages, accepting the most trusted first.

    .. math:: \mathrm{AURC} = \frac1n \sum_{k=1}^{n} \mathrm{E}\Big[\frac1k \sum_{j\le k} \ell_{(j)}\Big]

    `expected` (the default) takes the expectation over random order inside tie blocks, so a constant score
    earns exactly the overall risk; `trapezoid` joins the points of the curve by lines and extends the first
    one to coverage 0; `step` weighs each threshold's risk by the coverage it adds (Geifman's). A set loss
    (`dice_tally`) has no order inside a block: its default is `step`, and `expected` is refused.

    Range [0, 1] for the 0/1 loss, 0 is perfect. Ranks scores of one or several models.
    Ding et al. 2020, eq. 5–6 and section 4.1. See also: `e_aurc`, `augrc`, `risk_coverage`.

    >>> from howsure import tally
    >>> round(aurc(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])), 3)
    0.111
    """
    if variant is None:
        variant = "step" if isinstance(t, SetTally) else "expected"
    if variant == "expected":
        if isinstance(t, SetTally):
            raise InputError(
                "variant='expected' is not defined for a set loss; use 'step' or 'trapezoid'."
            )
        needs_tally(t, "aurc")
        return float(_expected(t.blocks(), np.array(t.n)))
    if variant not in ("step", "trapezoid"):
        raise InputError(f"variant={variant!r}; aurc knows 'expected', 'trapezoid' and 'step'.")
    curve = risk_coverage(t)
    width = np.diff(curve.x, prepend=0.0)
    if variant == "step":
        return float((width * curve.y).sum())
    left = np.concatenate((curve.y[:1], curve.y[:-1]))
    return float((width * (curve.y + left)).sum() / 2)


@metric(better="lower", bounds=(0, 1), rank_only=True, of_blocks=_expected, certify=_certified_area)
def aac(t: Tally, variant: Variant | None = None) -> float:
    r"""Area above the threshold diagram: between accuracy 1 and the accuracy of the kept, over the
    deferred share.

    It is `aurc` with the 0/1 loss and the same variants; the mirrored axis does not change an area.
    Range [0, 1], 0 is perfect. Vemuri 2020, chapter 4. See also: `threshold_diagram`.

    >>> from howsure import tally
    >>> round(aac(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])), 3)
    0.111
    """
    needs_zero_one(t, "aac")
    return aurc(t, variant)


def _certified_excess(t: Tally, variant: Variant | None = None) -> Pair:
    if variant not in (None, "expected"):
        raise InputError(
            f"e_aurc has certified bounds for variant='expected', not for {variant!r}."
        )
    return of_order(t, _excess)


@metric(better="lower", bounds=(0, 1), rank_only=True)
def optimal_aurc(t: Tally | SetTally, variant: Variant | None = None) -> float:
    r"""The AURC of a score that orders the samples by their loss.

    .. math:: \frac1n \sum_{j=1}^{n_\mathrm{err}} \frac{j}{n_\mathrm{cor} + j}

    for the 0/1 loss. Depends on the losses alone. The best order has no ties, so "step" gives the same; "trapezoid"
    joins its points by lines. A set loss has no such order. Range [0, 1]. Geifman et al. 2019; Ding et al. 2020,
    section 2.

    >>> from howsure import tally
    >>> round(optimal_aurc(tally([0.7, 0.8, 0.9], correct=[1, 1, 0])), 3)
    0.111
    """
    if isinstance(t, SetTally):
        raise InputError(
            "the loss of a set is not a sum over its units, so no order of them is known to be the best."
        )
    if variant not in (None, "expected", "step", "trapezoid"):
        raise InputError(
            f"variant={variant!r}; optimal_aurc knows 'expected', 'trapezoid' and 'step'."
        )
    least, area = _ideal(t)
    return (
        area + (least - float(t.total / t.n)) / (2 * float(t.n)) if variant == "trapezoid" else area
    )


def _ideal(t: Tally) -> tuple[float, float]:
    """The smallest loss, and the area under the best order."""
    if t.zero_one:
        return float(t.total == t.n), _best(np.array([t.total]), np.array([t.n])).item()
    ideal = t.ideal
    if ideal is None:
        raise InputError("this tally no longer knows the single losses, so its optimum is unknown.")
    after = np.cumsum(ideal.count)
    area = _expected(Blocks(after - ideal.count, after, ideal.count * ideal.loss), after[-1])
    return float(ideal.loss[0]), float(area)


def optimal_aurc_asymptotic(error: float) -> float:
    r"""The limit of `optimal_aurc` for many samples at this error rate, :math:`e + (1-e) \ln(1-e)`.

    Never mixed into `e_aurc`. Range [0, 1]. Geifman et al. 2019.

    >>> round(optimal_aurc_asymptotic(0.1), 5)
    0.00518
    """
    if not 0 <= error <= 1:
        raise InputError(f"error is {error:g}; an error rate lies in [0, 1].")
    return 1.0 if error == 1 else error + (1 - error) * log1p(-error)


@metric(better="lower", bounds=(0, 1), rank_only=True, of_blocks=_excess, certify=_certified_excess)
def e_aurc(t: Tally | SetTally, variant: Variant | None = None) -> float:
    r"""Excess AURC: how much worse than the best possible order, :math:`\mathrm{AURC} -
    \mathrm{AURC}^*`.

    Range [0, 1], 0 means that every right answer is trusted more than every wrong one. It ignores
    accuracy, so it must not rank different models by itself. `variant` is that of `aurc`; not for
    set losses. Geifman et al. 2019; Ding et al. 2020, section 2.

    >>> from howsure import tally
    >>> round(e_aurc(tally([0.9, 0.8, 0.7], correct=[1, 0, 1])), 4)
    0.1667
    """
    best = optimal_aurc(t, variant)
    return max(0.0, aurc(t, variant) - best)


@metric(
    better="lower",
    bounds=(0, 1),
    rank_only=True,
    of_blocks=_generalised,
    certify=partial(of_order, number=_generalised),
)
def augrc(t: Tally) -> float:
    r"""Area under the generalised risk–coverage curve: mean loss *per sample of the whole*, over
    all coverages.

    .. math:: \mathrm{AUGRC} = e (1 - e) (1 - \mathrm{AUROC}) + e^2 / 2

    for the 0/1 loss with error rate e. Range [0, 1/2] there, 0 is perfect. Traub et al. 2024.

    >>> from howsure import tally
    >>> round(augrc(tally([0.9, 0.8, 0.7], correct=[1, 1, 0])), 4)
    0.0556
    """
    needs_tally(t, "augrc")
    return float(_generalised(t.blocks(), np.array(t.n)))


@metric(better="higher", bounds=(0, 1), rank_only=True, certify=_certified_coverage)
def coverage_at_risk(t: Tally, risk: float) -> float:
    r"""The largest share that can be accepted at this risk or less; 0 where no threshold reaches
    it.

    Every threshold is tried, for the curve is not monotone. Range [0, 1].
    Geifman & El-Yaniv 2017. See also: `risk_at_coverage`, `policies.threshold_for_accuracy`.

    >>> from howsure import tally
    >>> round(coverage_at_risk(tally([0.9, 0.8, 0.7], correct=[1, 1, 0]), 0.1), 3)
    0.667
    """
    if not 0 <= risk < 1:
        raise InputError(f"risk is {risk:g}; a number from 0 to below 1 is needed.")
    needs_zero_one(t, "a target accuracy")
    kept, right = error_cuts(t)
    last = last_reaching(right, kept, 1.0 - risk)
    return 0.0 if last is None else float(kept[last] / t.n)


def error_cuts(t: Tally) -> tuple[Counts, Counts]:
    """The cut before each row with errors, and the last: samples kept there, and right ones among
    them.

    Right answers only raise the accuracy of what is kept, so the widest set of an accuracy ends at
    one of these.
    """
    b = t.blocks()
    kept = np.append(b.before, t.n)
    return kept, kept - np.concatenate((b.loss[:0], [0], np.cumsum(b.loss)))


def widest_row(t: Tally, accuracy: float) -> int | None:
    """The last row down to which the kept reach this accuracy, in counts and with room for
    rounding.
    """
    needs_zero_one(t, "a target accuracy")
    kept = np.cumsum(t.count)
    return last_reaching(kept - np.cumsum(t.loss), kept, accuracy)


def last_reaching(right: Counts, kept: Counts, share: float, after: int = -1) -> int | None:
    """The last row beyond row `after` up to which, from there, at least this share is right.

    Both columns ascend, so stretches that end with too few right answers are skipped unseen.

    >>> last_reaching(np.array([1, 1, 2, 3]), np.array([1, 2, 3, 5]), 0.6)
    3
    """
    before, of = (0, 0) if after < 0 else (right[after], kept[after])
    start = np.arange(after + 1, len(kept), STRETCH)
    end = np.minimum(start + STRETCH, len(kept))
    for i in np.flatnonzero(right[end - 1] - before >= share * (kept[start] - of) - 1e-9)[
        ::-1
    ].tolist():
        rows = slice(int(start[i]), int(end[i]))
        good = np.flatnonzero(right[rows] - before >= share * (kept[rows] - of) - 1e-9)
        if len(good):
            return rows.start + int(good[-1])
    return None


@metric(better="lower", bounds=(0, 1), rank_only=True, certify=_certified_risk)
def risk_at_coverage(t: Tally | SetTally, coverage: float) -> float:
    r"""The risk at the first threshold that accepts at least this share. Range [0, 1] for the 0/1
    loss.

    Geifman & El-Yaniv 2017. See also: `coverage_at_risk`.

    >>> from howsure import tally
    >>> risk_at_coverage(tally([0.9, 0.8, 0.7], correct=[1, 0, 1]), 0.5)
    0.5
    """
    check.fraction(coverage, "coverage")
    curve = risk_coverage(t)
    return float(curve.y[np.searchsorted(curve.x, coverage - 1e-12)])


def dominates(a: Tally, b: Tally) -> bool:
    """Whether `a` makes no more errors than `b` at every coverage.

    Counts are interpolated inside tie blocks, not risks. Needs equal numbers of samples and of
    errors, and is then the same as dominance in ROC and precision–recall space. Ding et al. 2019,
    theorem 2.

    >>> from howsure import tally
    >>> dominates(tally([0.9, 0.1], correct=[1, 0]), tally([0.5, 0.5], correct=[1, 0]))
    True
    """
    for t in (a, b):
        needs_zero_one(t, "dominates")
    if a.n != b.n or a.total != b.total:
        raise InputError(
            f"dominance compares equal numbers of samples and errors; got n={a.n:g}, {a.total:g} wrong "
            f"and n={b.n:g}, {b.total:g} wrong. Compare aurc instead."
        )
    ends = np.union1d(np.cumsum(a.count), np.cumsum(b.count))
    return bool((_wrong_among(a, ends) <= _wrong_among(b, ends) + 1e-9).all())


def _wrong_among(t: Tally, kept: Floats) -> Floats:
    ends, wrong = np.cumsum(t.count), np.cumsum(t.loss)
    return np.interp(kept, np.concatenate(([0], ends)), np.concatenate(([0], wrong)))


__all__ = [
    "aac",
    "augrc",
    "aurc",
    "coverage_at_risk",
    "dominates",
    "e_aurc",
    "optimal_aurc",
    "optimal_aurc_asymptotic",
    "risk_at_coverage",
]
