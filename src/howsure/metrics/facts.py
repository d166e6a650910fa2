"""What a metric says about itself; laws, intervals, reports and the command line read it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, cast

from howsure._core.check import Floats
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Blocks, Counts, Sums, Tally

F = TypeVar("F", bound=Callable[..., object])
Metric: TypeAlias = Callable[..., float]  # of a tally or of predictions, and options


def metric(
    *,
    better: Literal["lower", "higher", "zero"],
    bounds: tuple[float, float],
    takes: Literal["tally", "predictions", "multilabel", "pixels"] = "tally",
    rank_only: bool = False,
    smooth: bool = True,
    through: Callable[..., tuple[Outcomes, Callable[[Tally], float]]] | None = None,
    of_blocks: Callable[[Blocks, Counts], Floats] | None = None,
    of_bins: Callable[[Sums], Floats] | None = None,
    certify: Callable[..., tuple[float, float]] | str | None = None,
) -> Callable[[F], F]:
    """Attach facts to a metric and return the metric itself.

    `bounds` hold for the 0/1 loss; `rank_only`: unchanged by increasing maps of the score;
    `smooth`: a bootstrap interval of it makes sense; `through` turns predictions and the metric's
    options into the outcomes and the metric of their tally that give the same number. `of_blocks`
    (with the default options) and `of_bins` are the metric as a function of tie blocks and n, or of
    the sums in its `bins`, for many tables at once. `certify` takes a compact tally and the
    metric's options and gives the least and the greatest value that the exact data can have had; a
    text says why there is no such pair. Without it the metric reads nothing but sums that a compact
    tally keeps.
    """
    facts: dict[str, object] = {
        "better": better,
        "bounds": bounds,
        "takes": takes,
        "rank_only": rank_only,
    }
    facts |= {"smooth": smooth, "through": through, "of_blocks": of_blocks, "of_bins": of_bins}
    facts |= {"certify": certify}

    def attach(f: F) -> F:
        for name, value in facts.items():
            setattr(f, name, value)
        return f

    return attach


def plain(asked: Metric) -> Metric:
    """The function itself, where a metric is given as a partial with options.

    >>> from howsure.metrics import risk_at_coverage
    >>> plain(partial(risk_at_coverage, coverage=0.5)) is risk_at_coverage
    True
    """
    return cast("partial[float]", asked).func if isinstance(asked, partial) else asked


def options(asked: Metric) -> dict[str, Any]:
    """The options of a metric that is given as a partial."""
    return cast("partial[float]", asked).keywords if isinstance(asked, partial) else {}


def positional(asked: Metric) -> tuple[Any, ...]:
    """The arguments without a name of a metric that is given as a partial."""
    return cast("partial[float]", asked).args if isinstance(asked, partial) else ()
