"""Numbers over networks and their repeats, with intervals that know about the trainings, not only
the images.
"""

from collections.abc import Callable, Sequence
from math import hypot, inf

import numpy as np
from scipy import stats

LEVEL = 0.95
DRAWS = 1_000
SEED = 0
Limits = tuple[float, float, float]
NONE: Limits = (float("nan"),) * 3


def mean(values: Sequence[float], images: float = 0.0) -> Limits:
    """Mean and Student's interval; the values must not share their training.

    `images` is the standard deviation of that mean over draws of other images, which all values may
    share: Student's interval knows nothing of it. Both variances are added, with Satterthwaite's
    degrees of freedom; where that is narrower than Student's, which happens for few values,
    Student's is taken.
    """
    v = np.asarray(values, np.float64)
    if len(v) < 2:
        return NONE
    trainings = v.std(ddof=1) / np.sqrt(len(v))
    both = hypot(trainings, images)
    freedom = (len(v) - 1) * (both / trainings) ** 4 if trainings else inf
    half = max(quantile(len(v) - 1) * trainings, quantile(freedom) * both)
    return float(v.mean()), float(v.mean() - half), float(v.mean() + half)


def slope(family: Sequence[str], x: Sequence[float], y: Sequence[float]) -> Limits:
    """Common slope of y against x with a level of its own for each family, and Student's interval.

    One point per network (the mean of its repeats), because repeats of one network share what is
    special about it.
    """
    dx, dy = centred(family, x), centred(family, y)
    freedom, square = len(dx) - len(set(family)) - 1, float(dx @ dx)
    if freedom < 1 or square == 0:
        return NONE
    b = float(dx @ dy) / square
    half = quantile(freedom) * np.sqrt(float((dy - b * dx) @ (dy - b * dx)) / freedom / square)
    return b, b - float(half), b + float(half)


def centred(family: Sequence[str], values: Sequence[float]) -> np.ndarray:
    names, v = np.asarray(family), np.asarray(values, np.float64)
    return v - np.array([v[names == name].mean() for name in names])


def quantile(freedom: float) -> float:
    return float(stats.t.ppf((1 + LEVEL) / 2, freedom))


def resampled(count: int, number: Callable[[np.ndarray], float], draws: int = DRAWS) -> Limits:
    """A number of rows (images or networks) and the middle 95 % of it over bootstrap draws of the
    rows.
    """
    if count < 2:
        return NONE
    rng = np.random.default_rng(SEED)
    found = np.array([number(rng.integers(count, size=count)) for _ in range(draws)])
    if np.isnan(found).all():
        return NONE
    low, high = np.nanquantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return number(np.arange(count)), float(low), float(high)


def pooled_spread(groups: Sequence[Sequence[float]]) -> float:
    """Standard deviation between the repeats of a network, pooled over networks."""
    square = sum(float(np.var(g, ddof=1)) * (len(g) - 1) for g in groups if len(g) > 1)
    freedom = sum(len(g) - 1 for g in groups if len(g) > 1)
    return float(np.sqrt(square / freedom)) if freedom else float("nan")


def spread_ratio(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Limits:
    """How many times more the repeats differ in the first metric than in the second; networks are
    drawn again.
    """
    several = [i for i, group in enumerate(first) if len(group) > 1]

    def ratio(rows: np.ndarray) -> float:
        chosen = [several[i] for i in rows]
        below = pooled_spread([second[i] for i in chosen])
        return pooled_spread([first[i] for i in chosen]) / below if below else float("nan")

    return resampled(len(several), ratio)


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's; nan where one side does not vary."""
    return (
        float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 and np.ptp(x) and np.ptp(y) else float("nan")
    )
