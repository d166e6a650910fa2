"""Two sets of predictions of the same images: the difference of a metric with its paired interval."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

import numpy as np

import howsure as hs

from ..tables.table import percent, signed
from . import estimates
from .claim import Evidence, sided, within

Data = hs.Predictions | hs.Outcomes
Metric = Callable[..., float]
Pairs = Mapping[str, tuple[Data, Data]]  # by the name of the network
SEVERAL = 3  # networks from which a mean has a useful interval
DRAWS = 100  # of the images, which tell their standard deviation to seven per cent


def paired(
    case: str, metric: Metric, first: Data, second: Data, sign: str, margin: float = 0.0
) -> Evidence:
    """The claim is that first - second has this sign. The interval covers other images, not another
    training.
    """
    difference, low, high = hs.paired_difference(metric, first, second)
    found, word = text(metric, first, second, difference), sided(low, high, sign, margin)
    return Evidence(case, found, low, high, word, edges=(margin if sign == "+" else -margin,))


def alike(case: str, metric: Metric, first: Data, second: Data, margin: float) -> Evidence:
    """The claim is that there is no difference beyond the margin."""
    difference, low, high = hs.paired_difference(metric, first, second)
    found = f"{text(metric, first, second, difference)}, nearly zero means ± {percent(margin)}"
    return Evidence(case, found, low, high, within(low, high, margin), edges=(-margin, margin))


def on_average(
    case: str, metric: Metric, pairs: Pairs, sign: str, margin: float = 0.0, of: str = "networks"
) -> list[Evidence]:
    """The claim of `paired` for the mean over networks, called `of`; the networks are listed after
    it.
    """
    single = [
        paired(f"{name}: {case}", metric, *both, sign, margin) for name, both in pairs.items()
    ]
    average = means(
        f"{of}: {case}", metric, pairs, partial(sided, sign=sign, margin=margin), single
    )
    return [*average, *listed(single)]


def alike_on_average(
    case: str, metric: Metric, pairs: Pairs, margin: float, of: str = "networks"
) -> list[Evidence]:
    """The claim of `alike` for the mean over networks, called `of`; the networks are listed after
    it.
    """
    single = [alike(f"{name}: {case}", metric, *both, margin) for name, both in pairs.items()]
    name = f"{of}: {case}, nearly zero means ± {percent(margin)}"
    return [*means(name, metric, pairs, partial(within, margin=margin), single), *listed(single)]


def means(
    case: str,
    metric: Metric,
    pairs: Pairs,
    judge: Callable[[float, float], str],
    single: list[Evidence],
) -> list[Evidence]:
    """An interval that covers other trainings and other images. None for few networks."""
    if len(pairs) < SEVERAL:
        return []
    differences = [value(metric, a) - value(metric, b) for a, b in pairs.values()]
    middle, low, high = estimates.mean(differences, over_images(metric, pairs))
    found = f"{signed(middle)} points, one by one {signed(min(differences))} to {signed(max(differences))}"
    edges = single[0].edges
    return [
        Evidence(f"mean over {len(pairs)} {case}", found, low, high, judge(low, high), edges=edges)
    ]


def over_images(metric: Metric, pairs: Pairs) -> float:
    """Standard deviation of the mean difference over bootstrap draws of the images. Networks with
    as many images see the same draw: sets of one size here hold the same images in the same order,
    or another data set's."""
    drawn = [draws(metric, a) - draws(metric, b) for a, b in pairs.values()]
    return float(np.mean(drawn, axis=0).std(ddof=1))


@cache
def draws(metric: Metric, data: Data) -> np.ndarray:
    """The metric on each draw of the images; passes are averaged once, before the draws."""
    rng, n = np.random.default_rng(estimates.SEED), len(data.correct)
    images = light(metric, data)
    return np.array([value(metric, images[rng.integers(n, size=n)]) for _ in range(DRAWS)])


def light(metric: Metric, data: Data) -> Data:
    """All that the metric reads, and no more."""
    if isinstance(data, hs.Outcomes):
        return data
    if getattr(metric, "takes", "tally") == "predictions":
        return hs.Predictions.from_probs(data.probs, data.labels)
    return hs.Outcomes.of(data)


def listed(single: list[Evidence]) -> list[Evidence]:
    """Where there is no mean the single networks are the cases."""
    return single if len(single) < SEVERAL else [replace(e, counts=False) for e in single]


def text(metric: Metric, first: Data, second: Data, difference: float) -> str:
    values = [percent(value(metric, data)) for data in (first, second)]
    return f"{values[0]} against {values[1]}: {signed(difference)}"


def value(metric: Metric, data: Data) -> float:
    """Metrics of a tally take the top probability as their score."""
    if isinstance(data, hs.Outcomes):
        return metric(data.tally())
    if getattr(metric, "takes", "tally") == "predictions":
        return metric(data)
    return metric(hs.Outcomes.of(data).tally())
