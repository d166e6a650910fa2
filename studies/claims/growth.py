"""What becomes of a metric as networks grow: slopes, flatness, and which of two metrics is
steadier.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..runs import Run
from ..tables.complexity import size
from ..tables.table import percent, rank_correlation, signed
from . import estimates
from .claim import Evidence, sided, within


@dataclass(frozen=True)
class Grown:
    """Per network: its family, the binary logarithm of its parameters, and each metric of each
    repeat.
    """

    family: list[str]
    doublings: list[float]
    values: dict[str, list[list[float]]]

    @classmethod
    def of(
        cls, groups: dict[str, list[Run]], measure: Callable[[Run], dict[str, float]]
    ) -> "Grown":
        found = [[measure(run) for run in runs] for runs in groups.values()]
        names = found[0][0] if found else ()
        return cls(
            family=[network.split("-")[0] for network in groups],
            doublings=[float(np.log2(size(runs[0]))) for runs in groups.values()],
            values={
                name: [[repeat[name] for repeat in repeats] for repeats in found] for name in names
            },
        )

    def means(self, metric: str) -> list[float]:
        return [float(np.mean(repeats)) for repeats in self.values.get(metric, [])]

    def every(self, metric: str) -> list[float]:
        """Of all trainings, network by network."""
        return [value for repeats in self.values.get(metric, []) for value in repeats]

    @property
    def single(self) -> "Grown":
        """Each training as a network of its own. For networks of one family that differ in nothing
        but their width, which is what is asked about: there is nothing else that repeats could
        share."""
        counts = [len(repeats) for repeats in next(iter(self.values.values()), [])]
        spread = lambda values: [
            v for v, count in zip(values, counts, strict=True) for _ in range(count)
        ]
        values = {name: [[v] for v in self.every(name)] for name in self.values}
        return Grown(spread(self.family), spread(self.doublings), values)

    @property
    def text(self) -> str:
        families, count = len(set(self.family)), len(self.family)
        networks = len(set(zip(self.family, self.doublings, strict=True)))
        many = (
            f"{count} trainings of {networks} networks" if networks < count else f"{count} networks"
        )
        return f"{many} in {families} {'family' if families == 1 else 'families'}"


def trend(grown: Grown, metric: str, sign: str) -> Evidence:
    """The claim is that the metric rises ("+") or falls ("-") with size."""
    b, low, high = estimates.slope(grown.family, grown.doublings, grown.means(metric))
    found = f"{signed(b)} points per doubling of the parameters"
    return Evidence(
        f"{metric}, {grown.text}", found, low, high, sided(low, high, sign), edges=(0.0,)
    )


def ordered(grown: Grown, metric: str, sign: str) -> Evidence:
    """The same, by rank correlation over all trainings, which are drawn again: one that failed has
    no more weight than another."""
    one = grown.single
    x, y = np.array(one.doublings), np.array(one.means(metric))
    value, low, high = estimates.resampled(len(x), lambda rows: rank_correlation(x[rows], y[rows]))
    found = f"rank correlation with the parameters {value:+.2f}"
    return Evidence(
        f"{metric}, {one.text}", found, low, high, sided(low, high, sign), scale=1, edges=(0.0,)
    )


def flat(grown: Grown, metric: str, margin: float) -> Evidence:
    """The claim is that the metric does not change; the change is that over the whole range of
    sizes.
    """
    limits = estimates.slope(grown.family, grown.doublings, grown.means(metric))
    reach = float(np.ptp(grown.doublings)) if grown.doublings else 0.0
    change, low, high = (reach * v for v in limits)
    found = f"{signed(change)} points over {reach:.1f} doublings, nearly zero means ± {percent(margin, 0)}"
    return Evidence(
        f"{metric}, {grown.text}",
        found,
        low,
        high,
        within(low, high, margin),
        edges=(-margin, margin),
    )


def above(grown: Grown, first: str, second: str, margin: float = 0.0) -> Evidence:
    """The claim is that the first metric is larger than the second on the same network."""
    differences = [a - b for a, b in zip(grown.means(first), grown.means(second), strict=True)]
    middle, low, high = estimates.mean(differences)
    return Evidence(
        f"{first} - {second}",
        f"{signed(middle)} points",
        low,
        high,
        sided(low, high, "+", margin),
        edges=(margin,),
    )


def unsteady(grown: Grown, first: str, second: str, case: str) -> Evidence:
    """The claim is that repeats of a network differ more in the first metric than in the second."""
    one, two = grown.values.get(first, []), grown.values.get(second, [])
    ratio, low, high = estimates.spread_ratio(one, two)
    spreads = [percent(estimates.pooled_spread(v)) for v in (one, two)]
    found = f"between repeats {first} varies by {spreads[0]}, {second} by {spreads[1]} points: {ratio:.1f} times"
    return Evidence(case, found, low, high, sided(low - 1, high - 1, "+"), scale=1, edges=(1.0,))
