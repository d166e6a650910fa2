"""Risk and coverage, ROC and precision–recall, one sample at a time."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from math import fsum, nan
from typing import Any


def blocks(score: Any, *columns: Any) -> list[tuple[float, list[Any]]]:
    """Tie blocks, most trusted first: the score and the samples that share it."""
    table = sorted(zip(map(float, score), *columns, strict=True), key=lambda row: -row[0])
    return [
        (s, [row[1:] if len(row) > 2 else row[1] for row in group])
        for s, group in groupby(table, lambda x: x[0])
    ]


def rows(score: Any, loss: Any, weight: Any = None) -> list[tuple[float, float, float, float]]:
    """Threshold, kept, coverage and risk of the kept, for each distinct score."""
    weight = [1.0] * len(score) if weight is None else weight
    total, out = fsum(weight), []
    for threshold, _ in blocks(score, loss):
        kept = [(l, w) for s, l, w in zip(score, loss, weight, strict=True) if s >= threshold]
        size = fsum(w for _, w in kept)
        out.append((threshold, size, size / total, fsum(l * w for l, w in kept) / size))
    return out


def aurc_expected(score: Any, loss: Any) -> float:
    """Inside a block of m samples with summed loss L each further sample adds L / m on average."""
    risks, k0, before = [], 0, 0.0
    for _, losses in blocks(score, loss):
        m, inside = len(losses), fsum(losses)
        risks += [(before + inside * j / m) / (k0 + j) for j in range(1, m + 1)]
        k0, before = k0 + m, before + inside
    return fsum(risks) / k0


def aurc_step(score: Any, loss: Any, weight: Any = None) -> float:
    area, last = 0.0, 0.0
    for _, _, coverage, risk in rows(score, loss, weight):
        area, last = area + (coverage - last) * risk, coverage
    return area


def aurc_trapezoid(score: Any, loss: Any, weight: Any = None) -> float:
    area, last, left = 0.0, 0.0, None
    for _, _, coverage, risk in rows(score, loss, weight):
        left = risk if left is None else left
        area, last, left = area + (coverage - last) * (risk + left) / 2, coverage, risk
    return area


def optimal_aurc(loss: Any) -> float:
    """Losses in ascending order, equal losses in any."""
    ordered = sorted(map(float, loss))
    return fsum(fsum(ordered[:k]) / k for k in range(1, len(ordered) + 1)) / len(ordered)


def augrc(score: Any, loss: Any) -> float:
    n = len(score)
    points = [(0.0, 0.0), *((c, r * c) for _, _, c, r in rows(score, loss))]
    return (
        fsum(
            (b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(points[:-1], points[1:], strict=True)
        )
        if n
        else nan
    )


def auroc(score: Any, correct: Any) -> float:
    """Every pair of a right and a wrong answer."""
    right = [s for s, c in zip(score, correct, strict=True) if c]
    wrong = [s for s, c in zip(score, correct, strict=True) if not c]
    if not right or not wrong:
        return nan
    return fsum((a > b) + (a == b) / 2 for a in right for b in wrong) / len(right) / len(wrong)


def found(score: Any, correct: Any, positive: str) -> list[tuple[int, int]]:
    """Running true and false positives over distinct thresholds, most suspicious (or most trusted)
    first.
    """
    sign, hit = (-1, 0) if positive == "error" else (1, 1)
    table = blocks([sign * s for s in score], [int(bool(c) == bool(hit)) for c in correct])
    tp = fp = 0
    out = []
    for _, hits in table:
        tp, fp = tp + sum(hits), fp + len(hits) - sum(hits)
        out.append((tp, fp))
    return out


def aupr(score: Any, correct: Any, positive: str, method: str) -> float:
    """Average precision, the trapezoid from (0, 1), or Davis and Goadrich's interpolation."""
    points = found(score, correct, positive)
    total = points[-1][0]
    if total == 0:
        return nan
    area, last = 0.0, (0, 0)
    previous = 1.0
    for tp, fp in points:
        precision = tp / (tp + fp)
        if method == "davis_goadrich":
            area += interpolated(last, (tp, fp)) / total
        else:
            left = precision if method == "step" else previous
            area += (tp - last[0]) / total * (precision + left) / 2
        last, previous = (tp, fp), precision
    return area


def interpolated(a: tuple[int, int], b: tuple[int, int], steps: int = 2000) -> float:
    """The integral of x / (x + fp(x)) over true positives x, fp linear in x: Simpson's rule."""
    if b[0] == a[0]:
        return 0.0
    slope = (b[1] - a[1]) / (b[0] - a[0])
    if a == (0, 0):
        return (b[0] - a[0]) / (1 + slope)
    h = (b[0] - a[0]) / steps

    def precision(i: int) -> float:
        x = a[0] + i * h
        return x / (x + a[1] + slope * (x - a[0])) if x else 0.0

    weights = [1 if i in (0, steps) else 4 if i % 2 else 2 for i in range(steps + 1)]
    return h / 3 * fsum(w * precision(i) for i, w in enumerate(weights))


def errors_among(score: Any, correct: Any) -> list[Fraction]:
    """Expected errors among the k most trusted, k = 0..n, over random order inside tie blocks."""
    out, before = [Fraction(0)], Fraction(0)
    for _, hits in blocks(score, correct):
        m, wrong = len(hits), sum(1 for c in hits if not c)
        out += [before + Fraction(wrong * j, m) for j in range(1, m + 1)]
        before += wrong
    return out


def roc_polyline(score: Any, correct: Any) -> list[tuple[int, int]]:
    """False and true positives at each threshold, errors being positive."""
    return [(0, 0), *((fp, tp) for tp, fp in found(score, correct, "error"))]


def coverage_at_risk(score: Any, correct: Any, risk: float) -> float:
    """The widest threshold that reaches the accuracy, in counts."""
    best = 0.0
    for _, kept, coverage, r in rows(score, [1 - int(c) for c in correct]):
        if kept - r * kept >= (1 - risk) * kept - 1e-9:
            best = coverage
    return best


def risk_at_coverage(score: Any, loss: Sequence[float], coverage: float) -> float:
    return next(risk for _, _, c, risk in rows(score, loss) if c >= coverage - 1e-12)
