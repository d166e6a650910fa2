"""What a compact tally still says for certain: bounds that contain the value of the exact data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite, isnan
from typing import Protocol, TypeAlias, TypedDict

from howsure._core.check import InputError
from howsure.metrics.facts import options, plain, positional
from howsure.tallies.tally import Tally, needs_tally

RELATIVE, ABSOLUTE = (
    1e-9,
    1e-13,
)  # room for the rounding of both computations, far more than either needs


Certify: TypeAlias = Callable[..., tuple[float, float]] | str | None


class Bounds(TypedDict, total=False):
    """What a compact tally adds to a number: bounds that contain the exact value, or why there are
    none.
    """

    bounds: list[float | None] | None
    bounds_why: str


class Measured(Protocol):
    """A number of a report: its name, and how it is measured."""

    @property
    def name(self) -> str:
        """The key in the JSON."""
        ...

    @property
    def measure(self) -> Callable[..., float]:
        """From a tally to the number."""
        ...


def certified(metric: Callable[..., float], t: Tally) -> tuple[float, float]:
    """The least and the greatest value that `metric` can have had before `t` was compacted: (low,
    high).

    An exact tally gives its value twice. Of a compact one the counts of right and wrong answers in
    every bucket are exact and the order inside a bucket is lost, so the bounds are the metric's
    values at the extreme orders and ties; `howsure.metrics.extremes` and `._loose_bins` hold the
    proofs. They contain the exact value whatever the data were, and are widened by a part in 10^9
    for rounding. Options go in with `functools.partial`. Raises for metrics without a proof
    (adaptive bins, `smooth_ece`) and for tallies made with `loss=`.

    >>> import numpy as np
    >>> from howsure import aurc, tally
    >>> score = np.linspace(0.2, 1, 50_000)
    >>> t = tally(score, correct=score > 0.5)
    >>> low, high = certified(aurc, t.compact(400))
    >>> low < aurc(t) < high, certified(aurc, t) == (aurc(t), aurc(t))
    (True, True)
    """
    needs_tally(t, "certified")
    value = float(metric(t))
    if t.approximate is None or isnan(value):
        return value, value
    low, high = _extremes(metric, t, value)
    least, most = getattr(plain(metric), "bounds")  # noqa: B009 - metrics are functions with facts attached
    low, high = max(low, least), min(high, most)
    return (_room(low, -1) if low else 0.0), _room(
        high, 1
    )  # nothing that is never negative is rounded below 0


def _extremes(metric: Callable[..., float], t: Tally, value: float) -> tuple[float, float]:
    function = plain(metric)
    name = getattr(function, "__name__", "this function")
    if not hasattr(function, "certify"):
        raise InputError(
            f"{name} has no certified bounds on a compact tally: it is not a metric of howsure."
        )
    if not t.zero_one:
        raise InputError(
            f"{name} has no certified bounds here: this tally no longer knows the losses inside a bucket."
        )
    certify: Certify = getattr(function, "certify", None)
    if isinstance(certify, str):
        raise InputError(f"{name} has no certified bounds on a compact tally: {certify}.")
    if certify is None:
        return value, value
    return certify(t, *positional(metric), **options(metric))


def _room(end: float, side: int) -> float:
    return end + side * (RELATIVE * abs(end) + ABSOLUTE) if isfinite(end) else end


def bounds_of(items: Iterable[Measured], t: Tally) -> dict[str, Bounds]:
    """What a report adds to the entry of each item measured on a compact tally; nothing where the
    tally is exact.

    `{"bounds": [low, high]}` with null for an end that is not finite, or `{"bounds": null,
    "bounds_why": text}`.

    >>> from howsure import tally

    >>> from howsure.report import catalogue
    >>> bounds_of(catalogue.ranking(), tally([0.9], correct=[1]))["aurc"]
    {}
    """
    return {item.name: _entry(item, t) if t.approximate else {} for item in items}


def _entry(item: Measured, t: Tally) -> Bounds:
    try:
        low, high = certified(item.measure, t)
    except InputError as e:
        return {"bounds": None, "bounds_why": str(e)}
    if isnan(low):
        return {"bounds": None, "bounds_why": "its value is undefined"}
    return {"bounds": [low if isfinite(low) else None, high if isfinite(high) else None]}
