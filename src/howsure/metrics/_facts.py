"""What a metric says about itself; laws, intervals, reports and the command line read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from howsure._check import Floats
from howsure._tally import Blocks, Counts, Sums, Tally
from howsure.outcomes import Outcomes

F = TypeVar("F", bound=Callable[..., Any])


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
) -> Callable[[F], F]:
    """Attach facts to a metric and return the metric itself.

    `bounds` hold for the 0/1 loss; `rank_only`: unchanged by increasing maps of the score; `smooth`: a
    bootstrap interval of it makes sense; `through` turns predictions and the metric's options into the outcomes
    and the metric of their tally that give the same number. `of_blocks` (with the default options) and `of_bins`
    are the metric as a function of tie blocks and n, or of the sums in its `bins`, for many tables at once.
    """
    facts: dict[str, Any] = {"better": better, "bounds": bounds, "takes": takes, "rank_only": rank_only}
    facts |= {"smooth": smooth, "through": through, "of_blocks": of_blocks, "of_bins": of_bins}

    def attach(f: F) -> F:
        for name, value in facts.items():
            setattr(f, name, value)
        return f

    return attach
