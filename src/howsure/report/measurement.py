"""Numbers with their limits: the one place where items of the catalogue meet data."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan, nan
from typing import NamedTuple, Protocol, cast

from howsure._core.check import InputError
from howsure.metrics.certified import bounds_of
from howsure.metrics.vectors import Cells
from howsure.predictions.outcomes import Outcomes
from howsure.render.catalogue import Item, On
from howsure.render.model import Entry, Metrics, Number
from howsure.report.catalogue import why_undefined
from howsure.tallies.tally import Tally, is_tally
from howsure.uncertainty.intervals import Interval, each_interval, limits_around


class Measurable(Protocol):
    """A data set: a summary, or samples in memory."""

    def data(self, on: On, score: str) -> Tally | Cells:
        """What the numbers `on` it read."""
        ...

    def source(self, on: On, score: str) -> Tally | Outcomes | str:
        """What limits are made from, or why there is nothing to make them from."""
        ...


class Alone(NamedTuple):
    """A tally that is all there is of a data set."""

    tally: Tally

    def data(self, on: On, score: str) -> Tally:  # noqa: ARG002
        """The tally."""
        return self.tally

    source = data


class Sureness(NamedTuple):
    """How sure the limits are to be, and the seed of what is drawn for them."""

    level: float = 0.95
    seed: int = 0

    def check(self) -> Sureness:
        """Return self; raise where the level is none."""
        if not 0 < self.level < 1:
            raise InputError(f"level is {self.level:g}; a number between 0 and 1 is needed.")
        return self


def measured(items: Sequence[Item], data: Measurable, score: str, sure: Sureness) -> Metrics:
    """The entry of each item; items on the same data share what their limits are made from.

    >>> from howsure import Predictions
    >>> from howsure.report import catalogue
    >>> from howsure.report.samples import Samples
    >>> samples = Samples.of(Predictions.from_confidence([0.9, 0.8, 0.7], [1, 1, 0]))
    >>> round(measured(catalogue.ranking()[:1], samples, "max_prob", Sureness())["aurc"]["value"], 3)
    0.111
    """
    t = data.data("score", score)
    assert is_tally(t)
    found: Metrics = {}
    groups: dict[On, None] = dict.fromkeys(item.on for item in items)
    for on in groups:
        here = [item for item in items if item.on == on]
        values = {item.name: _value(item, data.data(on, score)) for item in here}
        known = [item for item in here if isinstance(values[item.name], float)]
        limits = _limits(
            known, [v for v in values.values() if isinstance(v, float)], on, data, score, sure
        )
        pairs = dict(zip((item.name for item in known), limits, strict=True))
        found |= {
            item.name: _entry(item, values[item.name], pairs.get(item.name), t) for item in here
        }
    return {item.name: found[item.name] for item in items}


def _value(item: Item, data: Tally | Cells) -> float | str:
    """The number, or why these data do not allow it: adaptive bins of fractional weights, say."""
    try:
        return float(item.measure(data))
    except InputError as e:
        return str(e)


def _limits(
    items: Sequence[Item],
    values: Sequence[float],
    on: On,
    data: Measurable,
    score: str,
    sure: Sureness,
) -> list[Interval]:
    source = data.source("score" if on == "classes" else on, score)
    if isinstance(source, str):
        return [Interval(nan, nan, source)] * len(items)
    if on != "classes" and is_tally(source) and source is data.data(on, score):
        return limits_around(values, [item.limited for item in items], source, sure.level)
    return each_interval([item.limited for item in items], source, sure.level, sure.seed)


def _entry(item: Item, value: float | str, limits: Interval | None, t: Tally) -> Entry:
    if isinstance(value, str) or limits is None:
        return {"value": None, "why": str(value), "better": item.better}
    return entry(item, value, limits, t)


def with_limits(value: float, limits: Interval) -> Number:
    """A number of a section, such as the AUC of one label.

    >>> with_limits(0.5, Interval(0.4, 0.6))
    {'value': 0.5, 'low': 0.4, 'high': 0.6}
    """
    if isnan(value):
        return {"value": None, "why": "undefined for these data"}
    if limits.why:
        return {"value": value, "low": None, "high": None, "why": limits.why}
    found: Number = {"value": value, "low": limits.low, "high": limits.high}
    return found if limits.note is None else {**found, "note": limits.note}


def entry(item: Item, value: float, limits: Interval, t: Tally) -> Entry:
    """A number as it stands in a report on a score with this tally."""
    if not isfinite(value):
        found: Entry = {
            "value": None,
            "why": why_undefined(item.name, value, t),
            "better": item.better,
        }
    elif limits.why:
        found = {
            "value": value,
            "low": None,
            "high": None,
            "better": item.better,
            "why": limits.why,
        }
    else:
        found = {"value": value, "low": limits.low, "high": limits.high, "better": item.better}
        if limits.note is not None:
            found["note"] = limits.note
    if limits.floor is not None:
        found["floor"] = limits.floor
    if getattr(item.metric, "takes", "tally") == "tally":
        bounds = bounds_of([item], t)[item.name]
        return cast(Entry, {**found, **bounds})
    return found
