"""Bins and calibration errors, one sample at a time."""

from math import fsum, inf, nan, sqrt
from typing import Any

from reference.selective import blocks


def equal_range(score: Any, m: int) -> list[int]:
    """Bin of each sample: bin j (from 1) is ((j-1)/M, j/M], and 0 belongs to the first."""
    return [
        next(j for j in range(1, m + 1) if s <= j / m) if s > 0 else 1 for s in map(float, score)
    ]


def equal_size(score: Any, m: int) -> list[int]:
    """Bin of each sample: floor(M s / n), s being the first rank of its tie block, most trusted
    first.
    """
    ranks = [sum(1 for other in score if other > s) for s in score]
    return [m * s // len(ranks) for s in ranks]


def unique(score: Any) -> list[float]:
    return [float(s) for s in score]


def adaptive(score: Any, z: float, tail: int = 40, margin: float = 0.05) -> list[int]:
    """Bin of each sample by steps 1 to 3: grow, top up, move cuts to the ends of tie blocks."""
    v = sorted(map(float, score), reverse=True)
    ends, target = grow(v, z, tail, margin)
    cuts = close_ties(v, top_up(ends, target, len(v)))
    bin_of = {s: sum(1 for c in cuts if c <= v.index(s)) for s in set(v)}
    return [bin_of[float(s)] for s in score]


def grow(v: list[float], z: float, tail: int, margin: float) -> tuple[list[int], float]:
    n, start, target, ends = len(v), 0, inf, [0]
    for i in range(n):
        if i - start > target and n - i > tail and v[i - 1] - v[n - 1] > margin:
            ends.append(i)
            start = i
        target = inf if v[start] == v[i] else 0.25 * (z / (v[start] - v[i])) ** 2
    return [*ends, n], target


def top_up(ends: list[int], target: float, n: int) -> list[int]:
    count = [b - a for a, b in zip(ends[:-1], ends[1:], strict=True)]
    last = count[-1]
    if len(count) < 2 or not target > last or target == inf:
        return ends
    take = int((target - last) * last / n)
    moved = [c - take for c in count[:-1]] + [last + take * (len(count) - 1)]
    if any(c <= 0 for c in moved):
        return ends
    return [sum(moved[:j]) for j in range(len(moved) + 1)]


def close_ties(v: list[float], ends: list[int]) -> list[int]:
    """Inner cuts, each at the end of the tie block it fell into; none at n."""
    cuts = set()
    for cut in ends[1:-1]:
        while cut < len(v) and v[cut] == v[cut - 1]:
            cut += 1
        cuts.add(cut)
    return sorted(cuts - {len(v)})


def bins(bin_of: list[Any], score: Any, correct: Any) -> list[tuple[int, float, float]]:
    """Count, mean confidence and accuracy of each non-empty bin, by bin number."""
    out = []
    for b in sorted(set(bin_of)):
        inside = [
            (float(s), bool(c))
            for s, c, own in zip(score, correct, bin_of, strict=True)
            if own == b
        ]
        n = len(inside)
        out.append((n, fsum(s for s, _ in inside) / n, sum(c for _, c in inside) / n))
    return out


def ece(bin_of: list[Any], score: Any, correct: Any) -> float:
    return fsum(n * abs(conf - acc) for n, conf, acc in bins(bin_of, score, correct)) / len(bin_of)


def mce(bin_of: list[Any], score: Any, correct: Any) -> float:
    return max(abs(conf - acc) for _, conf, acc in bins(bin_of, score, correct))


def over(bin_of: list[Any], score: Any, correct: Any) -> float:
    return fsum(n * max(conf - acc, 0) for n, conf, acc in bins(bin_of, score, correct)) / len(
        bin_of
    )


def debiased(bin_of: list[Any], score: Any, correct: Any) -> float:
    many = [(n, conf, acc) for n, conf, acc in bins(bin_of, score, correct) if n >= 2]
    if not many:
        return nan
    total = len(bin_of)
    return sqrt(
        max(
            0.0,
            fsum(
                n / total * ((conf - acc) ** 2 - acc * (1 - acc) / (n - 1)) for n, conf, acc in many
            ),
        )
    )


def classwise(probs: Any, labels: Any, m: int) -> float:
    k = len(probs[0])
    each = []
    for c in range(k):
        p, hit = [row[c] for row in probs], [int(y) == c for y in labels]
        each.append(ece(equal_range(p, m), p, hit))
    return fsum(each) / k


def uncertainty(entropy: Any, correct: Any, m: int) -> list[tuple[int, float]]:
    """Count and |error rate − mean normalised entropy| of each bin."""
    wrong = [not c for c in correct]
    return [(n, abs(err - unc)) for n, unc, err in bins(equal_range(entropy, m), entropy, wrong)]


def distinct(score: Any) -> list[float]:
    return [s for s, _ in blocks(score, score)]
