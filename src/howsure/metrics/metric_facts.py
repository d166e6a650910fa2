"""What a metric says about itself; laws, intervals, reports and the command line read it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, cast

from howsure._core.checks import Floats
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Blocks, Counts, RangeSums, Tally

F = TypeVar("F", bound=Callable[..., object])
Metric: TypeAlias = Callable[..., float]  # of a tally or of predictions, and options
# The outcomes of predictions, and the metric of their tally that gives the same number.
OutcomesWithMetric: TypeAlias = tuple[Outcomes, Callable[[Tally], float]]


def metric(
    *,
    better: Literal["lower", "higher", "zero"],
    bounds: tuple[float, float],
    takes: Literal["tally", "predictions", "multilabel", "pixels"] = "tally",
    rank_only: bool = False,
    smooth: bool = True,
    through: Callable[..., OutcomesWithMetric] | None = None,
    of_blocks: Callable[[Blocks, Counts], Floats] | None = None,
    of_bins: Callable[[RangeSums], Floats] | None = None,
) -> Callable[[F], F]:
    """Attach facts to a metric and return the metric itself.

    `bounds` hold for the 0/1 loss; `rank_only`: unchanged by increasing maps of the score;
    `smooth`: a bootstrap interval of it makes sense; `through` turns predictions and the metric's
    options into the outcomes and the metric of their tally that give the same number. `of_blocks`
    (with the default options) and `of_bins` are the metric as a function of tie blocks and n, or of
    the sums in its `bins`, for many tables at once.
    """
    facts: dict[str, object] = {
        "better": better,
        "bounds": bounds,
        "takes": takes,
        "rank_only": rank_only,
        "smooth": smooth,
        "through": through,
        "of_blocks": of_blocks,
        "of_bins": of_bins,
    }

    def attach(f: F) -> F:
        for name, value in facts.items():
            setattr(f, name, value)
        return f

    return attach


def unwrap_metric(given: Metric) -> Metric:
    """The function itself, where a metric is given as a partial with options.

    >>> from howsure.metrics import risk_at_coverage
    >>> unwrap_metric(partial(risk_at_coverage, coverage=0.5)) is risk_at_coverage
    True
    """
    if isinstance(given, partial):
        return cast("partial[float]", given).func
    return given


def get_options(given: Metric) -> dict[str, Any]:
    """The options of a metric that is given as a partial."""
    if isinstance(given, partial):
        return cast("partial[float]", given).keywords
    return {}


def get_arguments(given: Metric) -> tuple[Any, ...]:
    """The arguments without a name of a metric that is given as a partial."""
    if isinstance(given, partial):
        return cast("partial[float]", given).args
    return ()
