"""What a metric says about itself; laws, intervals, reports and the command line read it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Blocks, Counts, RangeSums, Tally

if TYPE_CHECKING:
    pass

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
    """Attach facts to a metric and let it take (score, correct) as well.

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
        # One door for all metrics: what is no tally and no predictions becomes what `f` takes.
        @wraps(f)
        def measure(*arguments: Any, **options: Any) -> object:
            if arguments and isinstance(arguments[0], Tally) and not options:
                return f(*arguments)  # the way inside, where metrics are called often
            arguments, options = to_metric_arguments(
                f.__name__, takes, arguments, options, ranks=rank_only
            )
            return f(*arguments, **options)

        for name, value in facts.items():
            setattr(measure, name, value)
        return cast("F", measure)

    return attach


def to_metric_arguments(
    name: str,
    takes: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    *,
    ranks: bool,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a metric is called with: a tally or predictions first, bins as a binning.

    A metric of tallies takes (score, correct) and predictions too; one of predictions takes
    `probs=` or `logits=` with `labels=`. A bare matrix is refused: nothing says what it holds.
    """
    options = dict(options)
    if takes == "tally" and isinstance(options.get("bins"), int):
        from howsure.binning import equal_range

        options["bins"] = equal_range(options["bins"])
    matrices = [kind for kind in ("probs", "logits") if kind in options]
    if matrices and not arguments:
        arguments = (_make_predictions(name, matrices, options),)
    if not arguments:
        return arguments, options
    first, *rest = arguments
    if isinstance(first, Outcomes):
        return (first.tally(), *rest), options
    if takes == "tally":
        from howsure.predictions import Predictions  # a metric of a tally does without

        if isinstance(first, Predictions):
            score = first.score if ranks else first.confidence
            return (Outcomes.of(first, score).tally(), *rest), options
    dimensions = _count_dimensions(first)
    if dimensions is not None and dimensions > 1:
        needs = "a tally" if takes == "tally" else "predictions"
        raise InputError(
            f"{name} needs {needs}, this is a {type(first).__name__}; are these logits or "
            "probabilities? Say hs.Predictions.from_logits(x, labels) or "
            "hs.Predictions.from_probs(x, labels)."
        )
    if dimensions != 1 or not (takes == "tally" or name == "accuracy"):
        return arguments, options
    from howsure.tallies.building import tally

    weight = options.pop("weight", None)
    if "correct" in options:
        return (tally(first, correct=options.pop("correct"), weight=weight), *rest), options
    if rest and _count_dimensions(rest[0]) == 1:
        return (tally(first, correct=rest[0], weight=weight), *rest[1:]), options
    return arguments, options  # the metric itself says what it needs


def _make_predictions(name: str, kinds: list[str], options: dict[str, Any]) -> object:
    """Predictions of `probs=` or `logits=` and `labels=`, which leave the options."""
    from howsure.predictions import Predictions

    if len(kinds) > 1:
        raise InputError(f"{name} got both probs and logits; give one of them.")
    if "labels" not in options:
        raise InputError(f"{name} got {kinds[0]} without labels; give labels= as well.")
    values = options.pop(kinds[0])
    labels = options.pop("labels")
    if kinds[0] == "probs":
        return Predictions.from_probs(values, labels)
    return Predictions.from_logits(values, labels)


def _count_dimensions(value: object) -> int | None:
    """1 for a column, 2 for a matrix, None for what is no array."""
    if isinstance(value, (list, tuple)):
        return np.ndim(cast("Any", value))
    dimensions = getattr(value, "ndim", None)
    return dimensions if isinstance(dimensions, int) else None


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
