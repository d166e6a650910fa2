"""Histograms of correctness, one bin at a time."""

from fractions import Fraction
from math import fsum, inf, log2, nan
from typing import Any

from reference.selective import blocks

Bins = list[tuple[int, int]]  # samples and right answers of each bin


def odds_ratio(p: Fraction, a: Fraction) -> float:
    if p == a:
        return 1.0
    if {p, a} & {0, 1}:
        return inf
    ratio = p / (1 - p) / (a / (1 - a))
    return float(max(ratio, 1 / ratio))


def counts(bin_of: list[Any], correct: Any) -> Bins:
    return [
        (bin_of.count(b), sum(bool(c) for c, own in zip(correct, bin_of, strict=True) if own == b))
        for b in sorted(set(bin_of))
    ]


def base(bins: Bins) -> Fraction:
    return Fraction(sum(k for _, k in bins), sum(n for n, _ in bins))


def eor(bins: Bins, treatment: str = "inf", cap: float = inf) -> float:
    if treatment == "drop":
        bins = [(n, k) for n, k in bins if 0 < k < n]
        if not bins:
            return nan
    if treatment == "merge":
        bins = merged(bins)
    total = sum(n for n, _ in bins)
    if treatment == "smooth":
        p = [Fraction(2 * k + 1, 2 * (n + 1)) for n, k in bins]
        a = sum(Fraction(n, total) * x for (n, _), x in zip(bins, p, strict=True))
    else:
        p, a = [Fraction(k, n) for n, k in bins], base(bins)
    limit = cap if treatment == "cap" else inf
    return fsum(
        n / total * min(odds_ratio(x, Fraction(a)), limit)
        for (n, _), x in zip(bins, p, strict=True)
    )


def merged(bins: Bins) -> Bins:
    """The first bin without errors or successes joins its smaller neighbour, again and again."""
    bins = list(bins)
    while len(bins) > 1 and any(k in (0, n) for n, k in bins):
        i = next(i for i, (n, k) in enumerate(bins) if k in (0, n))
        left = bins[i - 1][0] if i > 0 else inf
        right = bins[i + 1][0] if i + 1 < len(bins) else inf
        j = i - 1 if left <= right else i + 1
        low, high = min(i, j), max(i, j)
        bins[low : high + 1] = [(bins[i][0] + bins[j][0], bins[i][1] + bins[j][1])]
    return bins


def conditional_entropy(bins: Bins) -> float:
    total = sum(n for n, _ in bins)
    return fsum(-n / total * q * log2(q) for n, k in bins for q in (k / n, 1 - k / n) if q > 0)


def brier(bins: Bins) -> float:
    total = sum(n for n, _ in bins)
    return fsum(n / total * (k / n) * (1 - k / n) for n, k in bins)


def auroc(bins: Bins) -> float:
    """Bins in the given order, later ones claiming more."""
    wrong, right = [n - k for n, k in bins], [k for _, k in bins]
    if not sum(wrong) or not sum(right):
        return nan
    pairs = sum(w * (sum(right[i + 1 :]) + right[i] / 2) for i, w in enumerate(wrong))
    return pairs / sum(wrong) / sum(right)


def bands(score: Any, correct: Any, levels: Any) -> tuple[list[float], list[float], list[float]]:
    """Weights, accuracies and lowest scores of bands: each the widest that keeps its level, then
    the rest.
    """
    rows = [(s, len(hits), sum(map(bool, hits))) for s, hits in blocks(score, correct)]
    start, cuts = 0, []
    for level in levels:
        end = start
        for stop in range(start + 1, len(rows) + 1):
            n, k = sum(r[1] for r in rows[start:stop]), sum(r[2] for r in rows[start:stop])
            if k >= level * n - 1e-9:
                end = stop
        cuts.append((start, end))
        start = end
    parts = [rows[a:b] for a, b in [*cuts, (start, len(rows))]]
    size = [sum(r[1] for r in part) for part in parts]
    accuracy = [
        sum(r[2] for r in part) / n if n else nan for part, n in zip(parts, size, strict=True)
    ]
    threshold = [rows[b - 1][0] if b else inf for _, b in cuts]
    return [n / len(score) for n in size], accuracy, threshold
