"""Two networks on the same test images: a claimed direction, the paired difference, and what it says."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

import howsure as hs

from .table import percent

HEADER = ["claim", "first", "second", "difference", "95 % interval", "verdict"]


@dataclass(frozen=True)
class Contrast:
    """`claim` says that the metric of `first` minus that of `second` has this sign: "+", "-", or "0" for no change."""

    claim: str
    metric: Callable[..., float]
    first: hs.Predictions
    second: hs.Predictions
    sign: str

    def row(self) -> list[str]:
        """The interval covers the test images only, not another training of the same network."""
        difference, low, high = hs.paired_difference(self.metric, self.first, self.second)
        values = [percent(value(self.metric, p)) for p in (self.first, self.second)]
        return [self.claim, *values, signed(difference), f"{signed(low)} to {signed(high)}", self.verdict(low, high)]

    def verdict(self, low: float, high: float) -> str:
        """Agrees or disagrees only where the interval excludes zero; not finding a difference is not proof of none."""
        found = "+" if low > 0 else "-" if high < 0 else "0" if low <= 0 <= high else ""
        if not found:
            return "no interval"
        if found == "0":
            return "no difference found" if self.sign == "0" else "open"
        return "agrees" if found == self.sign else "disagrees"


def signed(value: float) -> str:
    return "" if isnan(value) else f"{100 * value:+.2f}"


def value(metric: Callable[..., float], preds: hs.Predictions) -> float:
    """Metrics of a tally take the top probability as their score."""
    if getattr(metric, "takes", "tally") == "predictions":
        return metric(preds)
    return metric(hs.tally(hs.scores.max_prob(preds), correct=preds.correct))
