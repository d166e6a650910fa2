"""Numbers with their limits: where items of the catalogue meet data, and how numbers are written
into a report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, nan
from typing import NamedTuple, Protocol, cast

import numpy as np

from howsure._core.checks import Array, InputError
from howsure.metrics.calibration_error import ClassBinSums
from howsure.metrics.compact_bounds import report_bounds
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import CatalogueItem, On, explain_undefined
from howsure.report.report_types import ClaimsTest, Entry, Metrics, Number
from howsure.tallies.building import SetTally
from howsure.tallies.tally import Counts, Tally, is_tally
from howsure.uncertainty.calibration_testing import calibration_test
from howsure.uncertainty.intervals import Interval, compute_intervals_around, each_interval

SIGNIFICANT_DIGITS = 6


# What limits are made from, or the reason why there is nothing to make them from.
LimitSource = Tally | Outcomes | str


class Measurable(Protocol):
    """A data set: a summary, or samples in memory."""

    def data(self, on: On, score: str, /) -> Tally | ClassBinSums | SetTally:
        """What the numbers `on` it read."""
        ...

    def source(self, on: On, score: str, /) -> LimitSource:
        """What limits are made from, or why there is nothing to make them from."""
        ...


class TallyData(NamedTuple):
    """A data set of which only one tally is known."""

    tally: Tally

    def data(self, *_: str) -> Tally:
        """The tally."""
        return self.tally

    source = data


class Sureness(NamedTuple):
    """The level at which limits hold, and the seed of what is drawn for them."""

    level: float = 0.95
    seed: int = 0

    def check(self) -> Sureness:
        """Return self; raise if the level is not between 0 and 1."""
        if not 0 < self.level < 1:
            raise InputError(f"level is {self.level:g}; a number between 0 and 1 is needed.")
        return self


def measure_items(
    items: Sequence[CatalogueItem], data: Measurable, score: str, sure: Sureness
) -> Metrics:
    """The entry of each item; items on the same data share what their limits are made from.

    >>> from howsure import Predictions
    >>> from howsure.report.catalogue import list_ranking_items
    >>> from howsure.report.samples import Samples
    >>> samples = Samples.of(Predictions.from_confidence([0.9, 0.8, 0.7], [1, 1, 0]))
    >>> numbers = measure_items(list_ranking_items()[:1], samples, "max_prob", Sureness())
    >>> round(numbers["aurc"]["value"], 3)
    0.111
    """
    t = data.data("score", score)
    assert is_tally(t)
    by_data: dict[On, list[CatalogueItem]] = {}
    for item in items:
        by_data.setdefault(item.on, []).append(item)
    entries: Metrics = {}
    for on, here in by_data.items():
        measured_on = data.data(on, score)
        values: dict[str, float] = {}
        for item in here:
            try:
                values[item.name] = float(item.measure(measured_on))
            except InputError as e:
                # Some data do not allow some numbers: adaptive bins of fractional weights, say.
                entries[item.name] = {"value": None, "why": str(e), "better": item.better}
        defined = [item for item in here if item.name in values]
        functions = [item.limit_function for item in defined]
        # Sums per class have no limits of their own: they get those of the samples.
        source = data.source("score" if on == "classes" else on, score)
        if on != "classes" and is_tally(source) and source is measured_on:
            limits = compute_intervals_around(list(values.values()), functions, source, sure.level)
        else:
            limits = find_limits(functions, source, sure)
        for item, limit in zip(defined, limits, strict=True):
            entries[item.name] = build_entry(item, values[item.name], limit, t)
    return {item.name: entries[item.name] for item in items}


def find_limits(
    metrics: Sequence[Callable[..., float]], source: LimitSource, sure: Sureness
) -> list[Interval]:
    """Limits of each metric; where the source is a reason, none of them, with this reason."""
    if isinstance(source, str):
        return [Interval(nan, nan, why=source)] * len(metrics)
    return each_interval(metrics, source, sure.level, sure.seed)


def build_claims_test(
    source: LimitSource, seed: int, positive: int | None = None
) -> ClaimsTest | None:
    """The test of calibration, of the class `positive` where it is given.

    None where the score is no claim, or where the test has no null distribution.
    """
    if isinstance(source, str):
        return None
    try:
        return ClaimsTest(**calibration_test(source, seed, positive=positive)._asdict())
    except InputError:  # a score outside [0, 1], unequal weights, graded answers
        return None


def build_entry(item: CatalogueItem, value: float, limits: Interval, t: Tally) -> Entry:
    """A number of the catalogue as report JSON; `t` is the tally of the score."""
    better = item.better
    if not isfinite(value):
        why = explain_undefined(item.name, value, t)
        entry: Entry = {"value": None, "why": why, "better": better}
    elif limits.why:
        entry = {"value": value, "low": None, "high": None, "better": better, "why": limits.why}
    else:
        entry = {"value": value, "low": limits.low, "high": limits.high, "better": better}
        if limits.note is not None:
            entry["note"] = limits.note
    if limits.floor is not None:
        entry["floor"] = limits.floor
    if getattr(item.metric, "takes", "tally") == "tally":
        bounds = report_bounds([item], t)[item.name]
        return cast(Entry, {**entry, **bounds})
    return entry


def build_number(value: float, limits: Interval, *, with_note: bool = False) -> Number:
    """A number of a section as report JSON, such as the AUC of one label; `with_note` adds what
    makes its limits unsafe.

    >>> build_number(0.5, Interval(0.4, 0.6))
    {'value': 0.5, 'low': 0.4, 'high': 0.6}
    """
    if not isfinite(value):
        return {"value": None, "why": limits.why or "undefined for these data"}
    if limits.why:
        return {"value": value, "low": None, "high": None, "why": limits.why}
    number: Number = {"value": value, "low": limits.low, "high": limits.high}
    if with_note and limits.note is not None:
        number["note"] = limits.note
    return number


def round_numbers(
    values: Array | Sequence[float], digits: int = SIGNIFICANT_DIGITS
) -> list[float | None]:
    """Plain numbers of so many significant digits; null where not finite; whole numbers stay whole.

    >>> round_numbers([2.0, 0.123456789, nan])
    [2, 0.123457, None]
    """
    return [
        _shorten(value, digits) if isfinite(value) else None
        for value in np.asarray(values).tolist()
    ]


def round_finite(values: Array, digits: int = SIGNIFICANT_DIGITS) -> list[float]:
    """`round_numbers` of numbers that are all finite."""
    return [_shorten(value, digits) for value in values.tolist()]


def _shorten(value: float, digits: int) -> float:
    # Beyond 1e15 a float need not be the whole number that it seems to be.
    if value == int(value) and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.{digits}g}")


def list_counts(counts: Counts) -> list[float]:
    """Counts as plain numbers, whole ones as such."""
    counts = clean_counts(counts)
    return [int(count) if count == int(count) else count for count in counts.tolist()]


def clean_counts(counts: Counts) -> Counts:
    """Sums of weights without what rounding left: none is below 0, and those that are whole but for
    the last digits are whole.

    >>> clean_counts(np.array([400.0000000000006, -7.3e-12, 0.25]))
    array([4.0e+02, 0.0e+00, 2.5e-01])
    """
    if counts.dtype.kind in "iu":
        return counts
    whole = np.rint(counts)
    rounding = 1e-12 * max(1.0, float(np.abs(counts).max(initial=0.0)))
    return np.maximum(np.where(np.abs(counts - whole) <= rounding, whole, counts), 0.0)
