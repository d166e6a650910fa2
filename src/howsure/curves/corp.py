"""CORP: the reliability curve without bins, and what it says about a proper score."""

from __future__ import annotations

import numpy as np

from howsure._core.check import Floats, Ints
from howsure._core.frozen import frozen
from howsure.curves.curve import Curve
from howsure.tallies.pooling import pooled, steps
from howsure.tallies.tally import Tally, needs_claims

__all__ = ["Corp", "corp"]

GROUPS = 200  # neighbours that the band draws together
DRAWS = 120


@frozen(eq=False)
class Corp:
    """The curve, and the parts of the Brier score of the confidence:

    score = miscalibration − discrimination + uncertainty. Miscalibration is what the isotonic map
    would save, discrimination what the map then gains over saying the accuracy every time.

    >>> from howsure import tally
    >>> found = corp(tally([0.9, 0.8, 0.6, 0.6], correct=[1, 1, 0, 1]))
    >>> round(found.score, 4), round(found.miscalibration - found.discrimination + found.uncertainty, 4)
    (0.1425, 0.1425)
    """

    curve: Curve
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def corp(t: Tally, *, band: bool = True, seed: int = 0) -> Corp:
    r"""The isotonic reliability curve: accuracy as the best map of the confidence that never falls,
    without bins.

    .. math:: S = \underbrace{S - S_{\mathrm{iso}}}_{\mathrm{MCB}}
        - \underbrace{(S_{\bar y} - S_{\mathrm{iso}})}_{\mathrm{DSC}} + \underbrace{S_{\bar y}}_{\mathrm{UNC}},
        \quad S \text{ the Brier score of the confidence}

    The curve has both ends of every step, lowest confidence first; `.weight` counts the samples of
    the step. The band holds 5 % and 95 % quantiles, point by point, of the same curve were every
    claim true: outcomes drawn as claimed, neighbours in 200 groups, 120 times; none for samples
    with different weights. Dimitriadis, Gneiting & Jordan 2021, equations 2 to 4.

    >>> from howsure import tally
    >>> c = corp(tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 0]), band=False).curve
    >>> c.x, c.y
    (array([0.6, 0.7, 0.8, 0.9]), array([0. , 0.5, 0.5, 1. ]))
    """
    needs_claims(t, "corp")
    found = pooled(t)
    count, low, high = found.count[::-1].astype(np.float64), found.low[::-1], found.high[::-1]
    value = ((found.count - found.loss) / found.count)[::-1]
    ends = low < high
    keep = np.stack((np.ones(len(value), dtype=bool), ends), axis=1)
    x, y, weight = (
        np.stack(pair, axis=1)[keep] for pair in ((low, high), (value, value), (count, count))
    )
    below, above = _band(t, x, seed) if band and t.equal_weights else (None, None)
    accuracy, n = float((t.n - t.total) / t.n), float(t.n)
    score = _brier(t)
    best, flat = float((count * value * (1 - value)).sum() / n), accuracy * (1 - accuracy)
    curve = Curve(x, y, weight, x, below, above, ("confidence", "accuracy"))
    return Corp(curve, score, score - best, flat - best, flat)


def _brier(t: Tally) -> float:
    total = 0.0
    for r, count, wrong in t.pieces():
        total += float(((count - wrong) * (1 - r) ** 2 + wrong * r**2).sum())
    return total / float(t.n)


def _band(t: Tally, x: Floats, seed: int) -> tuple[Floats, Floats]:
    """Quantiles of the curve at x were every claim true."""
    n = float(t.n)
    ranks = np.unique(
        t.cut_at(
            np.unique(np.ceil(np.linspace(0, n, min(GROUPS, int(n)) + 1)[1:]).astype(np.int64))
        )
    )
    sums = t.between(np.concatenate(([0], ranks)))
    size, claim = np.round(sums.count).astype(np.int64), np.clip(sums.claim / sums.count, 0.0, 1.0)
    wrong = np.random.default_rng(seed).binomial(size, 1 - claim, (DRAWS, len(size)))
    drawn = np.stack([_mapped(size, row) for row in wrong])
    ends: Floats = np.quantile(drawn, np.array([0.05, 0.95]), axis=0)
    low, high = ends[0, ::-1], ends[1, ::-1]
    return np.interp(x, claim[::-1], low), np.interp(x, claim[::-1], high)


def _mapped(count: Ints, wrong: Ints) -> Floats:
    """The isotonic accuracy of every group, most trusted first."""
    first = steps(count, wrong)
    rate = np.add.reduceat(wrong, first) / np.add.reduceat(count, first)
    return 1 - np.repeat(rate, np.diff(np.append(first, len(count))))
