"""What a metric says about itself; laws, intervals, reports and the command line read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from howsure._core.check import Floats
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Blocks, Counts, Sums, Tally

F = TypeVar("F", bound=Callable[..., object])


def metric(
    *,
    better: Literal["lower", "higher", "zero"],
    bounds: tuple[float, float],
    takes: Literal["tally", "predictions"] = "tally",
    rank_only: bool = False,
    smooth: bool = True,
    through: Callable[..., tuple[Outcomes, Callable[[Tally], float]]] | None = None,
    of_blocks: Callable[[Blocks, Counts], Floats] | None = None,
    of_bins: Callable[[Sums], Floats] | None = None,
    certify: Callable[..., tuple[float, float]] | str | None = None,
) -> Callable[[F], F]:
    """Attach facts to a metric and return the metric itself.

    `bounds` hold for the 0/1 loss; `rank_only`: unchanged by increasing maps of the score; `smooth`: a
    bootstrap interval of it makes sense; `through` turns predictions and the metric's options into the outcomes
    and the metric of their tally that give the same number. `of_blocks` (with the default options) and `of_bins`
    are the metric as a function of tie blocks and n, or of the sums in its `bins`, for many tables at once.
    `certify` takes a compact tally and the metric's options and gives the least and the greatest value that the
    exact data can have had; a text says why there is no such pair. Without it the metric reads nothing but sums
    that a compact tally keeps.
    """
    facts: dict[str, object] = {"better": better, "bounds": bounds, "takes": takes, "rank_only": rank_only}
    facts |= {"smooth": smooth, "through": through, "of_blocks": of_blocks, "of_bins": of_bins}
    facts |= {"certify": certify}

    def attach(f: F) -> F:
        for name, value in facts.items():
            setattr(f, name, value)
        return f

    return attach
