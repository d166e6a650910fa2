"""Scores and losses of one row of probabilities or logits at a time."""

from math import exp, fsum, inf, log
from typing import Any


def softmax(z: Any) -> list[float]:
    top = max(map(float, z))
    e = [exp(float(x) - top) for x in z]
    return [x / fsum(e) for x in e]


def log_sum_exp(z: Any) -> float:
    top = max(map(float, z))
    return top + log(fsum(exp(float(x) - top) for x in z))


def entropy(p: Any) -> float:
    return max(0.0, -fsum(x * log(x) for x in map(float, p) if x > 0))


def normalised_entropy(p: Any) -> float:
    return 0.0 if len(p) == 1 else min(1.0, entropy(p) / log(len(p)))


def margin(p: Any) -> float:
    first, second = sorted(map(float, p), reverse=True)[:2]
    return first - second


def top_mass(p: Any, k: int) -> float:
    return min(1.0, fsum(sorted(map(float, p), reverse=True)[:k]))


def brier(p: Any, y: int) -> float:
    return fsum((float(x) - (j == y)) ** 2 for j, x in enumerate(p))


def nll(p: Any, y: int) -> float:
    return inf if p[y] == 0 else -log(float(p[y]))


def label_rank(v: Any, y: int) -> int:
    """Classes with a higher value, and lower numbers among equals."""
    return sum(1 for x in v if x > v[y]) + sum(1 for j in range(y) if v[j] == v[y])


def argmax(v: Any) -> int:
    return next(j for j in range(len(v)) if all(v[j] >= x for x in v))


def mean(members: Any) -> list[float]:
    """Mean over members, class by class."""
    return [fsum(float(q[c]) for q in members) / len(members) for c in range(len(members[0]))]


def variances(members: Any) -> list[float]:
    """Population variance over members, class by class."""
    centre = mean(members)
    return [
        fsum((float(q[c]) - centre[c]) ** 2 for q in members) / len(members)
        for c in range(len(centre))
    ]
