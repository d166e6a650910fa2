"""Selective prediction as one number: areas under the risk–coverage curve, points on it, and the
same of whole images.

An area sums the risks at every rank, so it is a sum of harmonic numbers over the blocks of tied
scores that hold a loss; these sums stand at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log1p
from typing import Literal

import numpy as np

from howsure._core import checks
from howsure._core.checks import Floats, InputError
from howsure.curves import risk_coverage
from howsure.metrics.metric_facts import OutcomesWithMetric, metric
from howsure.metrics.proper_scores import mean_loss
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import Predictions, needs_predictions
from howsure.tallies.building import SetTally
from howsure.tallies.tally import Blocks, Counts, Tally, needs_tally, needs_zero_one

Variant = Literal["expected", "trapezoid", "step"]
SEARCH_ROWS = 1 << 10  # rows that a search looks at together
COUNT_ROUNDING = 1e-9  # a share of counts may miss a whole number by this much

EULER_GAMMA = 0.57721566490153286
SERIES_START = 32  # from here on three terms of the asymptotic series are exact to 4e-15
NARROW_BLOCK = 500  # ranks, and ranks per block width, above which two moments are exact
CHUNK_BLOCKS = 1 << 15  # blocks at a time: their columns stay near the processor
SAFE_EXPONENT = 1000  # a product that loses fewer powers of two than this is not 0


# ---- areas
# Numbers of tie blocks first. Blocks stand along the last axis, so that many resampled tables are
# computed at once.


def _compute_aurc(block: Blocks, n: Counts) -> Floats:
    """Each loss counts in every risk from its own rank on: harmonic numbers of the error ranks."""
    return risk_sum(block, n) / n


def _compute_optimum(wrong: Counts, n: Counts) -> Floats:
    """The least AURC of the 0/1 loss: one block of wrong answers at the end."""
    return wrong / n * mean_rank_share(n - np.where(wrong > 0, wrong, 1), n)


def _compute_excess(block: Blocks, n: Counts) -> Floats:
    excess = _compute_aurc(block, n) - _compute_optimum(block.loss.sum(axis=-1), n)
    return np.maximum(0.0, excess)


def _compute_augrc(block: Blocks, n: Counts) -> Floats:
    # In float64, because the product of the total and n may leave int64.
    total = np.asarray(block.loss.sum(axis=-1), dtype=np.float64)
    return (n * total - block.middle_sum) / n / n


@metric(better="lower", bounds=(0, 1), rank_only=True, of_blocks=_compute_aurc)
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
    is_set = isinstance(t, SetTally)
    if variant is None:
        variant = "step" if is_set else "expected"
    if variant == "expected":
        if is_set:
            raise InputError(
                "variant='expected' is not defined for a set loss; use 'step' or 'trapezoid'."
            )
        needs_tally(t, "aurc")
        return float(_compute_aurc(t.blocks(), np.array(t.n)))
    if variant not in ("step", "trapezoid"):
        raise InputError(f"variant={variant!r}; aurc knows 'expected', 'trapezoid' and 'step'.")
    curve = risk_coverage(t)
    width = np.diff(curve.x, prepend=0.0)
    if variant == "step":
        return float((width * curve.y).sum())
    left = np.concatenate((curve.y[:1], curve.y[:-1]))
    return float((width * (curve.y + left)).sum() / 2)


@metric(better="lower", bounds=(0, 1), rank_only=True, of_blocks=_compute_aurc)
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
    if t.zero_one:
        least = float(t.total == t.n)
        area = _compute_optimum(np.array([t.total]), np.array([t.n])).item()
    else:
        ideal = t.ideal
        if ideal is None:
            raise InputError(
                "this tally no longer knows the single losses, so its optimum is unknown."
            )
        after = np.cumsum(ideal.count)
        block = Blocks(before=after - ideal.count, after=after, loss=ideal.count * ideal.loss)
        least = float(ideal.loss[0])
        area = float(_compute_aurc(block, after[-1]))
    if variant == "trapezoid":
        # Lines instead of steps: half of the first and of the last step are exchanged.
        return area + (least - float(t.total / t.n)) / (2 * float(t.n))
    return area


def optimal_aurc_asymptotic(error: float) -> float:
    r"""The limit of `optimal_aurc` for many samples at this error rate, :math:`e + (1-e) \ln(1-e)`.

    Never mixed into `e_aurc`. Range [0, 1]. Geifman et al. 2019.

    >>> round(optimal_aurc_asymptotic(0.1), 5)
    0.00518
    """
    if not 0 <= error <= 1:
        raise InputError(f"error is {error:g}; an error rate lies in [0, 1].")
    if error == 1:
        return 1.0
    return error + (1 - error) * log1p(-error)


@metric(better="lower", bounds=(0, 1), rank_only=True, of_blocks=_compute_excess)
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


@metric(better="lower", bounds=(0, 1), rank_only=True, of_blocks=_compute_augrc)
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
    return float(_compute_augrc(t.blocks(), np.array(t.n)))


# ---- points on the curve


@metric(better="higher", bounds=(0, 1), rank_only=True)
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
    kept, right = list_error_cuts(t)
    last = find_last_reaching(right, kept, 1.0 - risk)
    if last is None:
        return 0.0
    return float(kept[last] / t.n)


def list_error_cuts(t: Tally) -> tuple[Counts, Counts]:
    """The cut before each row with errors, and the last: samples kept there, and right ones among
    them.

    Right answers only raise the accuracy of what is kept, so the widest set of an accuracy ends at
    one of these.
    """
    block = t.blocks()
    kept = np.append(block.before, t.n)
    wrong = np.concatenate((block.loss[:0], [0], np.cumsum(block.loss)))  # in the dtype of the loss
    return kept, kept - wrong


def find_widest_row(t: Tally, accuracy: float) -> int | None:
    """The last row down to which the kept reach this accuracy, in counts and with room for
    rounding.
    """
    needs_zero_one(t, "a target accuracy")
    kept = np.cumsum(t.count)
    return find_last_reaching(kept - np.cumsum(t.loss), kept, accuracy)


def find_last_reaching(right: Counts, kept: Counts, share: float, after: int = -1) -> int | None:
    """The last row beyond row `after` up to which, from there, at least this share is right.

    >>> find_last_reaching(np.array([1, 1, 2, 3]), np.array([1, 2, 3, 5]), 0.6)
    3
    """
    right_before = kept_before = 0
    if after >= 0:
        right_before, kept_before = right[after], kept[after]
    start = np.arange(after + 1, len(kept), SEARCH_ROWS)
    end = np.minimum(start + SEARCH_ROWS, len(kept))
    # Both columns ascend. A stretch whose right answers at its end are too few for the samples at
    # its start holds no row that reaches the share, so it is skipped unseen.
    most_right = right[end - 1] - right_before
    least_kept = kept[start] - kept_before
    hopeful = np.flatnonzero(most_right >= share * least_kept - COUNT_ROUNDING)
    for i in hopeful[::-1].tolist():
        rows = slice(int(start[i]), int(end[i]))
        needed = share * (kept[rows] - kept_before) - COUNT_ROUNDING
        good = np.flatnonzero(right[rows] - right_before >= needed)
        if len(good):
            return rows.start + int(good[-1])
    return None


@metric(better="lower", bounds=(0, 1), rank_only=True)
def risk_at_coverage(t: Tally | SetTally, coverage: float) -> float:
    r"""The risk at the first threshold that accepts at least this share. Range [0, 1] for the 0/1
    loss.

    Geifman & El-Yaniv 2017. See also: `coverage_at_risk`.

    >>> from howsure import tally
    >>> risk_at_coverage(tally([0.9, 0.8, 0.7], correct=[1, 0, 1]), 0.5)
    0.5
    """
    checks.fraction(coverage, "coverage")
    curve = risk_coverage(t)
    return float(curve.y[np.searchsorted(curve.x, coverage - 1e-12)])


@metric(better="higher", bounds=(0, 1), rank_only=True)
def oracle_accuracy(t: Tally, budget: float = 0.1) -> float:
    r"""Accuracy where the least trusted share `budget` of the answers is replaced by the truth.

    .. math:: \frac1n \Bigl( n - \mathrm{wrong} + E[\mathrm{wrong\ of\ the\ } \lfloor bn \rfloor \mathrm{\ last}] \Bigr)

    Tied answers are taken in expectation. Range [0, 1], 1 is perfect; a budget of 0 gives the accuracy.
    Kivlichan et al. 2021 (oracle-model collaborative accuracy).

    >>> from howsure import tally
    >>> oracle_accuracy(tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0]), 0.25)
    0.75
    """
    needs_zero_one(t, "oracle_accuracy")
    if not 0 <= budget <= 1:
        raise InputError(f"budget is {budget:g}; a share between 0 and 1 is needed.")
    replaced = budget * t.n
    if np.array_equal(t.count, np.round(t.count)):  # weights have no whole samples
        replaced = np.floor(replaced + COUNT_ROUNDING)
    count = t.count[::-1].astype(np.float64)
    wrong = t.loss[::-1].astype(np.float64)
    before = np.cumsum(count) - count
    taken = np.clip(replaced - before, 0.0, count)
    return float((t.n - t.total + (wrong * taken / count).sum()) / t.n)


# ---- two curves


def dominates(a: Tally, b: Tally) -> bool:
    """Whether `a` makes no more errors than `b` at every coverage.

    Counts are interpolated inside tie blocks, not risks. Needs equal numbers of samples and of
    errors, and is then the same as dominance in ROC and precision–recall space. Ding et al. 2019,
    theorem 2.

    >>> from howsure import tally
    >>> dominates(tally([0.9, 0.1], correct=[1, 0]), tally([0.5, 0.5], correct=[1, 0]))
    True
    """
    needs_zero_one(a, "dominates")
    needs_zero_one(b, "dominates")
    if a.n != b.n or a.total != b.total:
        raise InputError(
            f"dominance compares equal numbers of samples and errors; got n={a.n:g}, {a.total:g} wrong "
            f"and n={b.n:g}, {b.total:g} wrong. Compare aurc instead."
        )
    kept = np.union1d(np.cumsum(a.count), np.cumsum(b.count))
    errors_a = _interpolate_errors(a, kept)
    errors_b = _interpolate_errors(b, kept)
    return bool((errors_a <= errors_b + COUNT_ROUNDING).all())


def _interpolate_errors(t: Tally, kept: Floats) -> Floats:
    """Wrong answers among so many kept samples, ties taken in proportion."""
    ends = np.concatenate(([0], np.cumsum(t.count)))
    wrong = np.concatenate(([0], np.cumsum(t.loss)))
    return np.interp(kept, ends, wrong)


# ---- whole images: numbers of predictions of pixels


def _pool_images(preds: Predictions, classes: Sequence[int] | None) -> Outcomes:
    """One row per image: its mean confidence and 1 − Dice."""
    from howsure.predictions.images import images_of  # masks, which most metrics do without

    return images_of(preds, classes).outcomes()


def _through_images(of_images: Callable[[Tally], float]) -> Callable[..., OutcomesWithMetric]:
    """The route of a number of images: the same number of a tally of them."""

    def through(preds: Predictions, classes: Sequence[int] | None = None) -> OutcomesWithMetric:
        return _pool_images(preds, classes), of_images

    return through


@metric(better="lower", bounds=(0, 1), takes="pixels", through=_through_images(mean_loss))
def dice_loss(preds: Predictions, classes: Sequence[int] | None = None) -> float:
    r"""The mean over images of 1 − Dice, :math:`1 - 2|P \cap T| / (|P| + |T|)`, averaged over
    foreground classes.

    Both masks empty: Dice 1; one of them empty: 0. Images count alike, whatever their foreground.
    Range [0, 1], 0 is perfect. Limits are over images. Ding et al. 2020, section 4.1.

    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]
    >>> dice_loss(Predictions.from_probs(p, [0, 1, 0, 1], group=["a", "a", "b", "b"]))
    0.5
    """
    needs_predictions(preds, "dice_loss")
    return mean_loss(_pool_images(preds, classes).tally())


@metric(better="lower", bounds=(0, 1), takes="pixels", through=_through_images(aurc))
def image_aurc(preds: Predictions, classes: Sequence[int] | None = None) -> float:
    """`aurc` of `image_tally`: the mean 1 − Dice of the images that are kept, over all shares of
    images.

    Images are accepted whole, by the mean confidence of their pixels. `aurc(dice_tally(...))` is
    another number: it accepts single pixels. Range [0, 1], 0 is perfect. Ding et al. 2020, section
    4.1.

    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]
    >>> image_aurc(Predictions.from_probs(p, [0, 1, 0, 1], group=["a", "a", "b", "b"]))
    0.25
    """
    needs_predictions(preds, "image_aurc")
    return aurc(_pool_images(preds, classes).tally())


# ---- sums of risks over blocks


def risk_sum(block: Blocks, n: Counts) -> Floats:
    """The risks at 1..n samples, summed: each loss counts in all of them from its own rank on.

    A loss in a block adds H(n) - H(after) and, inside the block, its `mean_rank_share`. Blocks
    stand along the last axis; other axes are other tables.

    >>> block = Blocks(before=np.array([1]), after=np.array([2]), loss=np.array([1]))
    >>> round(float(risk_sum(block, np.array(4))), 8)  # 1/2 + 1/3 + 1/4
    1.08333333
    """
    # aurc and e_aurc ask for the same sum, so the block keeps it.
    if "risk" in block.kept and np.array_equal(block.kept["risk"][0], n):
        return block.kept["risk"][1]
    last = np.asarray(n, dtype=np.float64)[..., None]
    total = np.zeros(np.shape(n))
    for i in range(0, block.loss.shape[-1], CHUNK_BLOCKS):
        chunk = slice(i, i + CHUNK_BLOCKS)
        before = np.asarray(block.before[..., chunk], dtype=np.float64)
        after = np.asarray(block.after[..., chunk], dtype=np.float64)
        loss = np.asarray(block.loss[..., chunk], dtype=np.float64)
        # H(n) - H(after) = rest_n - rest - log(z / z_n); the logarithms are summed apart.
        z, rest = _expand(after)
        z_n, rest_n = _expand(last)
        later = mean_rank_share(before, after) + (rest_n - rest)
        total = total + ((loss * later).sum(axis=-1) - sum_logs(z / z_n, loss))
    block.kept["risk"] = np.array(n), total
    return total


def sum_logs(x: Floats, weight: Floats) -> Floats:
    """The sum of weight log(x) along the last axis.

    Where most weights are 1, as in one table of single errors, many x are multiplied before a
    logarithm is taken, which costs far more than a product.
    """
    odd = np.flatnonzero(weight != 1)
    if x.ndim > 1 or 2 * len(odd) > len(x):
        return (weight * np.log(x)).sum(axis=-1)
    factors = max(1, int(SAFE_EXPONENT / (2 + abs(np.log2(x.min())))))
    products = len(x) // factors
    whole = factors * products
    product = x[:whole].reshape(factors, products).prod(axis=0)
    logs = np.log(product).sum() + np.log(x[whole:]).sum()
    return logs + ((weight[odd] - 1) * np.log(x[odd])).sum()


def mean_rank_share(before: Counts, after: Counts) -> Floats:
    r"""The mean of j / (before + j) over j = 1..m with m = after - before.

    It is what one loss, spread evenly over a tie block, adds to the risks inside the block:
    1 - (before / m) (H(after) - H(before)), written so that nothing cancels.

    >>> mean_rank_share(np.array([0.0, 9.0]), np.array([4.0, 10.0]))
    array([1. , 0.1])
    """
    # C order, so that ravel() below gives views and not copies.
    a = np.asarray(before, dtype=np.float64, order="C")
    b = np.asarray(after, dtype=np.float64, order="C")
    out = np.asarray(1.0 / b)  # right for blocks of one sample
    tied = np.flatnonzero(b - a != 1)
    if not len(tied):
        return out
    a, b = a.ravel()[tied], b.ravel()[tied]
    m = b - a
    middle = (a + b + 1) * 0.5
    # Narrow blocks: 1 - a E[1 / (middle + y)], y the ranks counted from the middle, by moments
    # of y. The difference of two harmonic numbers would cancel there.
    per = 1.0 / middle
    q = per * per
    square = m * m
    moments = q * (square - 1) * (1 / 12 + q * (3 * square - 7) * (1 / 240))
    share = per * ((m + 1) * 0.5 - a * moments)
    wide = np.flatnonzero((m * NARROW_BLOCK > middle) | (middle < NARROW_BLOCK))
    share[wide] = 1.0 - a[wide] / m[wide] * harmonic_rise(a[wide], b[wide])
    out.ravel()[tied] = share
    return out


def harmonic_rise(a: Floats, b: Floats) -> Floats:
    """H(b) - H(a) for a <= b, exact also where it is far smaller than either.

    >>> harmonic_rise(np.array([2.0, 1e9]), np.array([4.0, 1e9 + 1]))
    array([5.83333333e-01, 9.99999999e-10])
    """
    far = a >= SERIES_START
    rise = np.empty_like(a)
    z = a[far] + 0.5
    rise[far] = np.log1p((b[far] - a[far]) / z) + (_sum_series(b[far] + 0.5) - _sum_series(z))
    rise[~far] = harmonic(b[~far]) - harmonic(a[~far])
    return rise


def harmonic(x: Counts) -> Floats:
    r"""H(x) = 1 + 1/2 + ... + 1/x, continued to real x >= 0.

    >>> harmonic(np.array([1.0, 4.0])).round(12)
    array([1.        , 2.08333333])
    """
    z, rest = _expand(x)
    return EULER_GAMMA + np.log(z) + rest


def _expand(x: Counts) -> tuple[Floats, Floats]:
    """z and the rest of H(x) = gamma + log(z) + rest."""
    x = np.asarray(x, dtype=np.float64)
    small = x < SERIES_START
    z = x + 0.5
    if not small.any():
        return z, _sum_series(z)
    # H(x) = H(x + m) - 1/(x + 1) - ... - 1/(x + m) moves small x to where the series is exact.
    z = z + SERIES_START * small
    added = np.zeros_like(x)
    added[small] = (1.0 / (x[small][:, None] + np.arange(1, SERIES_START + 1))).sum(axis=1)
    return z, _sum_series(z) - added


def _sum_series(z: Floats) -> Floats:
    """H(x) - gamma - log(z) with z = x + 1/2, for x >= SERIES_START."""
    q = 1.0 / (z * z)
    return q * (1 / 24 - q * (7 / 960 - q * (31 / 8064)))


__all__ = [
    "aac",
    "augrc",
    "aurc",
    "coverage_at_risk",
    "dice_loss",
    "dominates",
    "e_aurc",
    "image_aurc",
    "optimal_aurc",
    "optimal_aurc_asymptotic",
    "oracle_accuracy",
    "risk_at_coverage",
]
