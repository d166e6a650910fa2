"""What a metric says about itself; laws, intervals, reports and the command line read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def metric(
    *,
    better: Literal["lower", "higher", "zero"],
    bounds: tuple[float, float],
    takes: Literal["tally", "predictions"] = "tally",
    rank_only: bool = False,
    smooth: bool = True,
) -> Callable[[F], F]:
    """Attach facts to a metric and return the metric itself.

    `bounds` hold for the 0/1 loss; `rank_only`: unchanged by increasing maps of the score; `smooth`: a
    bootstrap interval of it makes sense.
    """
    facts = {"better": better, "bounds": bounds, "takes": takes, "rank_only": rank_only, "smooth": smooth}

    def attach(f: F) -> F:
        for name, value in facts.items():
            setattr(f, name, value)
        return f

    return attach
