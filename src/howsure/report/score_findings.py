"""Findings about one score, one function each: what it claims, what bins hide, classes and groups,
its order.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from scipy.special import betaincc

from howsure import metrics
from howsure._core.checks import Array, Bools, Floats
from howsure._core.frozen import frozen
from howsure._core.indices import sort_distinct
from howsure.binning import equal_range, equal_size
from howsure.curves import bin_table
from howsure.curves.curve import histogram
from howsure.report.drift import compute_fisher_p
from howsure.report.report_types import FindingData
from howsure.report.verdict import (
    FALSE_FINDING_RATE,
    LEAST_SAMPLES,
    Finding,
    FindingCase,
    compute_lower_tail,
    compute_overall_gap,
    compute_upper_tail,
    find_sure_cut,
    format_expected,
    format_percent,
    sum_above,
)
from howsure.tallies.row_tally import as_rows, find_score_ends
from howsure.tallies.tally import Counts, Tally
from howsure.uncertainty.means import student_quantile

HIGH_CONFIDENCE = 0.9
NEAR_CERTAINTY = 0.999
HARMLESS_GAP = 0.06  # of a bin: a reader of the diagram would let it pass
BIN_PIECES = 8  # into which a bin is cut, to look at them one by one
FEW_GROUPS = 5  # fewer groups do not tell how much groups differ
MOST_GROUPS = 100  # more are clusters, not groups that somebody named
USEFUL_AUROC = 0.6  # a score that orders fewer pairs rightly is of no use
TOP_SHARES = (0.02, 0.01, 0.05, 0.1)  # the most confident, looked at in this order
THIN_SHARE = 0.95  # of the bins; those at the top, without errors, are thin in every good model
DING = "Ding et al. 2020"


def find_all(case: FindingCase) -> list[FindingData]:
    """All findings about one score, as report JSON.

    >>> from howsure import Predictions
    >>> from howsure.report.verdict import build_case
    >>> from howsure.report.summary import Summary
    >>> p = Predictions.from_confidence([0.99] * 200, [1, 0] * 100)
    >>> [f["name"] for f in find_all(build_case(Summary.of(p)))]
    ['over_confident_above_0.9', 'does_not_rank']
    """
    finders = ANY_SCORE_FINDERS
    if case.claims:
        finders = CLAIM_FINDERS + ANY_SCORE_FINDERS
    findings = [find(case) for find in finders]
    return [finding.json() for finding in findings if finding is not None]


def find_overconfident_top(case: FindingCase) -> Finding | None:
    """Answers with a confidence of 0.9 and more are wrong more often than they claim."""
    cut = find_sure_cut(case.tally, HIGH_CONFIDENCE)
    if case.tally.score_range()[1] < cut:
        return None
    top = sum_above(case.tally, cut)
    n, claim, wrong = top.count[0], top.claim[0], top.loss[0]
    p = float(compute_upper_tail(wrong / case.effect, n / case.effect, 1 - claim / n))
    # An excess of less than a fifth is no news, however certain.
    if p > FALSE_FINDING_RATE or wrong < 1.2 * (n - claim):
        return None
    verb, they = "are" if wrong > 1 else "is", "such answers"
    counted = ""
    if not case.tally.weighted:  # sums of weights are no counts of answers
        counted = f"{wrong:,.0f} of {n:,.0f} such answers {verb} wrong where the confidences imply "
        counted += f"{format_expected(n - claim)}. "
        they = "They"
    return Finding(
        name="over_confident_above_0.9",
        text=(
            f"Overconfident above {cut:.4g}: {counted}{they} are right {format_percent(1 - wrong / n)} of the time "
            f"and claim {format_percent(claim / n)}."
        ),
        evidence={
            "n": n.item(),
            "wrong": wrong.item(),
            "promised": float(n - claim),
            "p_value": p,
        },
        paper=f"{DING}, section 4.2",
    )


def find_overconfidence(case: FindingCase) -> Finding | None:
    """All in all the confidence is above the accuracy; said where the top is not to blame."""
    t = case.tally
    gap, mean = compute_overall_gap(case)
    p = float(compute_upper_tail(t.total / case.effect, t.n / case.effect, 1 - mean))
    # A gap below one point is no news, however certain.
    if p > FALSE_FINDING_RATE or gap < 0.01 or find_overconfident_top(case):
        return None
    return Finding(
        name="over_confident",
        text=(
            f"Overconfident: it claims to be right {format_percent(mean)} of the time and is right "
            f"{format_percent(mean - gap)}."
        ),
        evidence={"gap": gap, "p_value": p},
        paper=f"{DING}, figure 2",
    )


def find_underconfidence(case: FindingCase) -> Finding | None:
    """All in all the confidence is below the accuracy."""
    t = case.tally
    gap, mean = compute_overall_gap(case)
    p = float(compute_lower_tail(t.total / case.effect, t.n / case.effect, 1 - mean))
    if p > FALSE_FINDING_RATE or gap > -0.01:
        return None
    return Finding(
        name="under_confident",
        text=(
            f"Underconfident: it claims to be right {format_percent(mean)} of the time and is right "
            f"{format_percent(mean - gap)}."
        ),
        evidence={"gap": gap, "p_value": p},
        paper=f"{DING}, figure 2",
    )


def find_mce_from_few(case: FindingCase) -> Finding | None:
    """The largest gap stems from a handful of samples, more than chance gives so few, and is far
    from all others.
    """
    table = bin_table(case.tally)
    gap = np.abs(table.gap)
    i = int(np.argmax(gap))
    full = table.count >= LEAST_SAMPLES
    if full[i] or not full.any():
        return None
    solid = gap[full].max()
    n, claim, right = table.count[i], table.confidence[i], table.accuracy[i]
    # How often honest claims would be this far off, in the direction that is seen.
    compute_tail = compute_upper_tail if claim > right else compute_lower_tail
    p = float(compute_tail(n * (1 - right) / case.effect, n / case.effect, 1 - claim))
    # The level is shared out over the bins, for the worst of them is looked at.
    if gap[i] < 2 * solid + 0.05 or p > FALSE_FINDING_RATE / len(gap):
        return None
    few = "1 sample" if n == 1 else f"{n:,.0f} samples"
    if case.tally.weighted:
        few = "few samples"
    return Finding(
        name="mce_from_few",
        text=(
            f"The MCE of {gap[i]:.3g} comes from {few} around {claim:.3g}; among bins of {LEAST_SAMPLES} "
            f"samples and more the largest gap is {solid:.3g}. Look at these few, and judge the model by the others."
        ),
        evidence={
            "mce": float(gap[i]),
            "samples": float(n),
            "largest_solid_gap": float(solid),
            "p_value": p,
        },
        paper=f"{DING}, section 4.2, inaccurate accuracy estimation",
    )


def find_label_errors(case: FindingCase) -> Finding | None:
    """More answers are wrong although the model is very sure than its confidence allows."""
    cut = find_sure_cut(case.tally, NEAR_CERTAINTY)
    if case.tally.score_range()[1] < cut:
        return None
    top = sum_above(case.tally, cut)
    n, wrong = top.count[0], top.loss[0]
    promised = n - top.claim[0]
    p = float(compute_upper_tail(wrong / case.effect, n / case.effect, promised / n))
    # One or two may be slips in any set of labels.
    if p > FALSE_FINDING_RATE or wrong < 3:
        return None
    many, expected = f"{wrong:,.0f} answers", format_expected(promised)
    if case.tally.weighted:
        many, expected = f"{wrong / n * 100:.2g} % of answers", f"{promised / n * 100:.2g} %"
    return Finding(
        name="label_errors",
        text=(
            f"Sure and wrong: {many} are wrong although the model is at least "
            f"{format_percent(cut)} sure, where {expected} would be expected. Their labels may be wrong, "
            "or the confidence is: look at these first."
        ),
        evidence={
            "n": n.item(),
            "wrong": wrong.item(),
            "promised": float(promised),
            "p_value": p,
        },
        paper="Finlay & Oberman, section 7.2",
    )


def find_saturation(case: FindingCase) -> Finding | None:
    """Many confidences are exactly 1, wrong answers among them, so these cannot be told apart."""
    t = case.tally
    share = float(t.count[0] / t.n)
    # A tally begins with the highest score.
    if t.score[0] != 1 or share < 0.05 or t.loss[0] == 0:
        return None
    verb, wrong = "are" if t.loss[0] > 1 else "is", f"{t.loss[0]:,.0f}"
    if t.weighted:
        verb, wrong = "are", f"{t.loss[0] / t.count[0] * 100:.2g} %"
    return Finding(
        name="saturated",
        text=(
            f"{format_percent(share)} of the confidences are exactly 1, {wrong} of these answers {verb} wrong. "
            "Rounding has erased their order; keep logits, or rank by log_max_prob."
        ),
        evidence={"share": share, "wrong": t.loss[0].item()},
        paper=f"{DING}, figure 2",
    )


@frozen(eq=False)
class BinPieces:
    """The pieces of one equal-range bin, most trusted first, with which of them are off beyond
    chance.
    """

    gap: float  # of the whole bin
    low: float
    high: float
    gaps: Floats
    ends: list[tuple[float, float]]
    p: Floats
    off: Bools

    @property
    def over(self) -> Bools:
        """Pieces that claim too much."""
        return self.off & (self.gaps > 0)

    @property
    def under(self) -> Bools:
        """Pieces that claim too little."""
        return self.off & (self.gaps < 0)

    def describe_piece(self, i: int) -> str:
        """The gap and the range of a piece."""
        low, high = self.ends[i]
        where = f"at {low:.4g}" if low == high else f"from {low:.4g} to {high:.4g}"
        return f"{self.gaps[i]:+.3f} {where}"


def cut_bins(case: FindingCase) -> list[BinPieces]:
    """The bins of the ECE, each cut into pieces of equally many samples; ties stay together."""
    t = case.tally
    cuts: list[int] = equal_range(15).cuts(t).tolist()
    wide: list[Counts] = []
    for start, end in zip(cuts[:-1], cuts[1:], strict=True):
        many = int(min(BIN_PIECES, (end - start) // LEAST_SAMPLES))
        if many >= 2:
            inner = sort_distinct(np.clip(t.cut_at(np.linspace(start, end, many + 1)), start, end))
            if len(inner) > 2:
                wide.append(inner)
    # One pass over the tally sums the pieces of all bins, which are neighbours in it.
    every_cut = sort_distinct(np.concatenate(([0], *wide, [t.n])))
    sums = t.between(every_cut)
    lowest, highest = sums.low, sums.high
    if t.approximate is not None:  # where the outer buckets of a piece end, not their means
        ends = find_score_ends(as_rows(t))
        first = t.first_rows(every_cut)
        lowest = ends[0][np.append(first[1:], t.distinct) - 1]
        highest = ends[1][first]
    # Each piece is tested in both directions.
    tests = 2 * sum(len(inner) - 1 for inner in wide)
    level = FALSE_FINDING_RATE / max(tests, 1)
    pieces: list[BinPieces] = []
    for inner in wide:
        rows = slice(*np.searchsorted(every_cut, inner[[0, -1]]))
        n, claim, wrong = sums.count[rows], sums.claim[rows], sums.loss[rows]
        low, high = lowest[rows], highest[rows]
        # Counts are divided by the design effect, as if so many samples were independent.
        k, m, q = wrong / case.effect, n / case.effect, 1 - claim / n
        gaps = claim / n - (1 - wrong / n)
        p = np.where(gaps > 0, compute_upper_tail(k, m, q), compute_lower_tail(k, m, q))
        of_bin = BinPieces(
            gap=float(claim.sum() / n.sum() - (1 - wrong.sum() / n.sum())),
            low=float(low[-1]),
            high=float(high[0]),
            gaps=gaps,
            ends=list(zip(low, high, strict=True)),
            p=p,
            off=(p < level) & (np.abs(gaps) >= 0.03),
        )
        pieces.append(of_bin)
    return pieces


def find_internal_compensation(case: FindingCase) -> Finding | None:
    """One bin claims too much in one place and too little in another, and the two cancel."""
    for pieces in cut_bins(case):
        if not (pieces.over.any() and pieces.under.any()):
            continue
        most = pieces.describe_piece(int(np.argmax(pieces.gaps)))
        least = pieces.describe_piece(int(np.argmin(pieces.gaps)))
        return Finding(
            name="internal_compensation",
            text=(
                f"Errors cancel inside a bin: between {pieces.low:.3g} and {pieces.high:.3g} the gap is only "
                f"{pieces.gap:+.3f}, but {most} and {least}. The ECE does not see this."
            ),
            evidence={
                "bin": [pieces.low, pieces.high],
                "gap": pieces.gap,
                "gaps": [float(gap) for gap in pieces.gaps],
            },
            paper=f"{DING}, section 4.2 and proposition 1",
        )
    return None


def find_hidden_error(case: FindingCase) -> Finding | None:
    """A wide bin looks well while a piece of it is far off."""
    worst: tuple[BinPieces, int] | None = None
    largest = 0.0
    for pieces in cut_bins(case):
        # Where both directions occur, `internal_compensation` says so.
        is_mixed = pieces.over.any() and pieces.under.any()
        if is_mixed or abs(pieces.gap) > HARMLESS_GAP:
            continue
        size = np.abs(pieces.gaps)
        hidden = pieces.off & (size >= max(2 * abs(pieces.gap), abs(pieces.gap) + 0.05))
        i = int(np.argmax(np.where(hidden, size, 0)))
        if hidden[i] and size[i] > largest:
            worst, largest = (pieces, i), float(size[i])
    if worst is None:
        return None
    pieces, i = worst
    return Finding(
        name="hidden_error",
        text=(
            f"An error hides in a wide bin: between {pieces.low:.3g} and {pieces.high:.3g} confidence and accuracy "
            f"differ by {pieces.gap:+.3f} on the whole, but by {pieces.describe_piece(i)}. Adaptive bins show it."
        ),
        evidence={
            "bin": [pieces.low, pieces.high],
            "gap": pieces.gap,
            "piece": list(pieces.ends[i]),
            "p_value": float(pieces.p[i]),
        },
        paper=f"{DING}, section 4.2, undetectable error",
    )


def find_worse_class(case: FindingCase) -> Finding | None:
    """Answers of one class are wrong more often than they claim, beyond what holds for all."""
    if case.answers is None:
        return None
    n, wrong, claim = case.answers
    seen = n >= LEAST_SAMPLES
    # Every class that was answered often enough is tested.
    level = FALSE_FINDING_RATE / max(int(seen.sum()), 1)
    q = np.where(seen, 1 - claim / np.maximum(n, 1), 0.0)
    p = np.where(seen, compute_upper_tail(wrong / case.effect, n / case.effect, q), 1.0)
    gap = np.where(seen, wrong / np.maximum(n, 1) - q, -1.0)
    c = int(np.argmax(np.where(p < level, gap, -1.0)))
    if not p[c] < level or gap[c] < compute_overall_gap(case)[0] + 0.05:
        return None
    return Finding(
        name="worse_class",
        text=(
            f"Answers of class {case.names[c]} are right {format_percent(1 - wrong[c] / n[c])} of the time and claim "
            f"{format_percent(claim[c] / n[c])}: overconfident beyond the rest ({n[c]:,.0f} answers)."
        ),
        evidence={
            "class": case.names[c],
            "n": int(n[c]),
            "gap": float(gap[c]),
            "p_value": float(p[c]),
        },
        paper="Kull et al. 2019, class-wise calibration",
    )


def find_worse_group(case: FindingCase) -> Finding | None:
    """One group is answered wrongly far more often than the others; at most 100 groups, or they are
    clusters.

    Of five groups and more it must also stand out from how much the other groups differ among
    themselves: clusters differ by chance. Fewer are taken as parts that somebody named.
    """
    if case.groups is None or not 2 <= len(case.groups.names) <= MOST_GROUPS:
        return None
    names, n, wrong = case.groups
    rest = np.maximum(n.sum() - n, 1)
    others = (wrong.sum() - wrong) / rest
    margin = np.sqrt(others * (1 - others) / rest)  # the others are a sample too
    p = np.where(n >= LEAST_SAMPLES, compute_upper_tail(wrong, n, others + margin), 1.0)
    if len(names) >= FEW_GROUPS:
        p = np.maximum(p, [compute_outlier_p(n, wrong, g) for g in range(len(names))])
    g = int(np.argmin(p))
    error = wrong[g] / n[g]
    if p[g] > FALSE_FINDING_RATE / len(names) or error < others[g] + 0.05:
        return None
    return Finding(
        name="worse_group",
        text=(
            f"Group {names[g]} is answered wrongly {format_percent(error)} of the time, the others "
            f"{format_percent(others[g])}."
        ),
        evidence={
            "group": str(names[g]),
            "n": int(n[g]),
            "error": float(error),
            "p_value": float(p[g]),
        },
        paper="binomial test and the spread of groups, for so many groups",
    )


def compute_outlier_p(n: Array, k: Array, g: int) -> float:
    """P-value of a group's errors among groups that differ as much as the others do (beta-binomial
    moments).

    Error rates of groups are skewed, and their spread is known from few groups: the tail is that of
    the beta distribution with the spread widened by Student's t of so many groups.
    """
    rest, wrong = np.delete(n, g).astype(np.float64), np.delete(k, g).astype(np.float64)
    total, groups, size = float(rest.sum()), len(rest), float(n[g])
    mean = float(wrong.sum()) / total
    if not 0 < mean < 1:
        return 1.0
    unit = mean * (1 - mean)
    square = float(((wrong - rest * mean) ** 2).sum()) / unit * groups / (groups - 1)
    # The correlation of samples within a group, by moments.
    alike = max(0.0, (square - total) / max(float((rest * (rest - 1)).sum()), 1.0))
    own_variance = unit * (1 + (size - 1) * alike) / size
    mean_variance = unit * float((rest * (1 + (rest - 1) * alike)).sum()) / total**2
    level = FALSE_FINDING_RATE / len(n)
    wider = student_quantile(groups - 1, level) / student_quantile(inf, level)
    # The beta distribution of this mean and variance is that of so many samples.
    samples = unit / ((own_variance + mean_variance) * wider**2) - 1
    if samples <= 0:
        return 1.0
    error = max(0.0, (float(k[g]) - 0.5) / size)
    return float(betaincc(mean * samples, (1 - mean) * samples, error))


def find_thin_bins(case: FindingCase) -> Finding | None:
    """Hardly one of the 100 bins of the expected odds ratio can be read; coarser ones are proposed."""
    t = case.tally
    share = compute_thin_share(t, 100)
    if share < THIN_SHARE or t.weighted:
        return None
    for bins in (50, 20, 10, 5, 3):
        if compute_thin_share(t, bins) <= 0.2:
            text = (
                f"{format_percent(share, 0)} of the bins behind the expected odds ratio are too thin to be read; "
                f"read {bins} bins instead."
            )
            break
    else:
        bins = None
        which = "errors" if 2 * t.total <= t.n else "right answers"
        how_many = "too few" if 0 < t.total < t.n else "no"
        text = f"The expected odds ratio cannot be read, in any number of bins: there are {how_many} {which}."
    return Finding(
        name="thin_bins",
        text=text,
        evidence={"share": share, "bins": bins},
        paper="Finlay & Oberman, section 2.1",
    )


def compute_thin_share(t: Tally, bins: int) -> float:
    """The share of bins whose accuracy is not known to within half of it."""
    return float((histogram(t, equal_size(bins)).relative_variance > 0.5).mean())


def find_no_ranking(case: FindingCase) -> Finding | None:
    """Right answers do not score higher than wrong ones."""
    t = case.tally
    right = t.n - t.total
    # A constant needs no samples to tell, only two kinds of answers to tell apart.
    constant = t.distinct == 1 and right > 0 and t.total > 0
    if not constant and not min(right, t.total) >= LEAST_SAMPLES:
        return None
    auroc = metrics.auroc(t)
    if constant:
        low = high = 0.5
        text = "The score is the same for every answer, so it cannot rank them."
    else:
        if case.auroc_limits is None:
            return None
        low, high = case.auroc_limits
        if low > 0.5:
            return None
        if high < 0.5:
            what = "The score ranks the wrong way round"
        elif high < USEFUL_AUROC:
            what = "The score does not tell right answers from wrong ones"
        else:
            what = "Too few answers to tell whether the score separates right from wrong"
        text = f"{what}: a right answer outranks a wrong one in {format_percent(auroc)} of pairs."
    return Finding(
        name="does_not_rank",
        text=text,
        # Enough answers to know: the score is of no use, however many more there were.
        evidence={
            "auroc": auroc,
            "low": low,
            "high": high,
            "enough": high < USEFUL_AUROC,
            "constant": constant,
        },
        paper="Ding et al. 2020, section 3",
    )


def find_unsafe_top(case: FindingCase, level: float = FALSE_FINDING_RATE) -> Finding | None:
    """The most confident answers are wrong more often than the next ones: the risk curve rises at
    its sure end.

    Fisher's exact test of the top share against the next four times as many, the level shared out
    over the shares that are looked at.
    """
    t = case.tally
    if case.effect != 1 or t.weighted or not float(t.total).is_integer():
        return None
    ends, wrong = t.ends, np.cumsum(t.loss)
    for share in TOP_SHARES:
        top, last = np.searchsorted(ends, np.array([share, 5 * share]) * float(t.n) * (1 - 1e-12))
        n, k = int(ends[top]), int(wrong[top])
        next_n, next_k = int(ends[last]) - n, int(wrong[last]) - k
        # An excess of less than a fifth is no news, however certain.
        if min(n, next_n) < LEAST_SAMPLES or k / n < 1.2 * next_k / next_n:
            continue
        p = compute_fisher_p(k, n, k + next_k, next_n)
        if k and p <= level / len(TOP_SHARES):
            return Finding(
                name="unsafe_top",
                text=(
                    f"The most confident {format_percent(n / float(t.n))} are wrong more often ({k:,} of {n:,}) than "
                    f"the next {format_percent(next_n / float(t.n))} ({next_k:,} of {next_n:,}): the risk curve rises "
                    "at its sure end."
                ),
                evidence={"n": n, "wrong": k, "next": next_n, "next_wrong": next_k, "p_value": p},
                paper="Ding et al. 2020, section 3",
            )
    return None


Finder = Callable[[FindingCase], Finding | None]
CLAIM_FINDERS: tuple[Finder, ...] = (
    find_overconfident_top,
    find_overconfidence,
    find_underconfidence,
    find_hidden_error,
    find_internal_compensation,
    find_label_errors,
    find_worse_class,
    find_mce_from_few,
    find_saturation,
)
ANY_SCORE_FINDERS: tuple[Finder, ...] = (
    find_worse_group,
    find_unsafe_top,
    find_no_ranking,
    find_thin_bins,
)
