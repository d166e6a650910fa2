"""Two sets of predictions of the same images: the difference of a metric with its paired interval."""

from collections.abc import Callable

import howsure as hs

from ..tables.table import percent, signed
from .claim import Evidence, sided, within

Data = hs.Predictions | hs.Outcomes
Metric = Callable[..., float]


def paired(case: str, metric: Metric, first: Data, second: Data, sign: str) -> Evidence:
    """The claim is that first - second has this sign. The interval covers other images, not another training."""
    difference, low, high = hs.paired_difference(metric, first, second)
    return Evidence(case, text(metric, first, second, difference), low, high, sided(low, high, sign))


def alike(case: str, metric: Metric, first: Data, second: Data, margin: float) -> Evidence:
    """The claim is that there is no difference beyond the margin."""
    difference, low, high = hs.paired_difference(metric, first, second)
    found = f"{text(metric, first, second, difference)}, nearly zero means ± {percent(margin)}"
    return Evidence(case, found, low, high, within(low, high, margin))


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
