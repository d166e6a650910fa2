"""Numbers with their limits: where items of the catalogue meet data, and how numbers are written
into a report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import isfinite, nan
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from howsure._core.checks import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count
from howsure.metrics.calibration_error import ClassBinSums
from howsure.metrics.compact_bounds import report_bounds
from howsure.predictions import Predictions
from howsure.predictions.images import IMAGE_SCORES
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import CatalogueItem, On, explain_undefined
from howsure.report.report_types import Entry, Metrics, Number
from howsure.tallies.tally import Counts, Tally, is_tally
from howsure.uncertainty.intervals import Interval, compute_intervals_around, each_interval

SIGNIFICANT_DIGITS = 6

# What limits are made from, or the reason why there is nothing to make them from.
LimitSource = Tally | Outcomes | str

COLUMN_WITH_BINS = re.compile(r"(.+):([-+.\deE]+(?:,[-+.\deE]*)*)")
MAX_DISTINCT_NUMBERS = 30  # of a column that are still values of their own
MAX_SLICES_PER_COLUMN = 1_000
MISSING = "missing"

By = str | Sequence[str] | Mapping[str, ArrayLike]


class Measurable(Protocol):
    """A data set: a summary, or samples in memory."""

    def data(self, on: On, score: str) -> Tally | ClassBinSums:
        """What the numbers `on` it read."""
        ...

    def source(self, on: On, score: str) -> LimitSource:
        """What limits are made from, or why there is nothing to make them from."""
        ...


class TallyData(NamedTuple):
    """A data set of which only one tally is known."""

    tally: Tally

    def data(self, on: On, score: str) -> Tally:  # noqa: ARG002
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


@frozen
class Cut:
    """A column whose values are slices; numbers fall into bins between `edges`, or into `bins` of
    equal size.
    """

    column: str
    edges: tuple[float, ...] = ()
    bins: int | None = None

    @classmethod
    def of(cls, text: str) -> Cut:
        """From "hospital", "age:40,60" (edges, "age:40," for one) or "age:4" (bins of equal size).

        >>> Cut.of("age:40,60").edges, Cut.of("age:4").bins, Cut.of("hospital")
        ((40.0, 60.0), 4, Cut(column='hospital', edges=(), bins=None))
        """
        match = COLUMN_WITH_BINS.fullmatch(text)
        if match is None:
            return cls(text)
        column, numbers = match[1], match[2]
        if "," not in numbers:
            if not is_count(numbers) or int(numbers) < 2:
                raise InputError(
                    f"{text!r}: a number of bins of at least 2 is needed, or edges as in age:40,60."
                )
            return cls(column, bins=int(numbers))
        try:
            edges = tuple(float(part) for part in numbers.split(",") if part)
        except ValueError:
            raise InputError(
                f"{text!r}: {numbers} are no numbers; write age:4 for bins or age:40,60 for edges."
            ) from None
        rising = all(a < b for a, b in pairwise(edges))
        if not edges or not rising or not np.isfinite(edges).all():
            raise InputError(f"{text!r}: the edges of bins must rise, as in age:40,60.")
        return cls(column, edges)

    def names(self, values: Array) -> Array:
        """The slice of each sample; what is missing is a slice of its own.

        >>> Cut.of("age:40,60").names(np.array([30.0, 60.0, np.nan]))
        array(['below 40', '60 and above', 'missing'], dtype='<U12')
        """
        column = self.column
        if self.edges or self.bins is not None:
            numbers = _read_numbers(values, column)
            edges = self.edges
            if self.bins is not None:
                known = numbers[~np.isnan(numbers)]
                if not len(known):
                    raise InputError(f"{column} has no numbers; nothing can be binned.")
                shares = np.arange(1, self.bins) / self.bins
                equal = np.unique(np.quantile(known, shares, method="higher"))
                edges = tuple(float(edge) for edge in equal if edge > known.min())
            ends = [f"{edge:.6g}" for edge in edges]
            bin_names = ["all"]
            if ends:
                middle = [f"{a} to {b}" for a, b in pairwise(ends)]
                bin_names = [f"below {ends[0]}", *middle, f"{ends[-1]} and above"]
            bins = np.searchsorted(edges, numbers, side="right")
            bins[np.isnan(numbers)] = len(bin_names)
            return np.array([*bin_names, MISSING])[bins]
        if values.dtype.kind == "f" and len(np.unique(values)) > MAX_DISTINCT_NUMBERS:
            raise InputError(
                f"{column} holds more than {MAX_DISTINCT_NUMBERS} different numbers; bin them: "
                f"{column}:4 makes four bins of equal size, {column}:40,60 cuts at 40 and 60."
            )
        names = _name_values(values)
        many = len(np.unique(names))
        if many > MAX_SLICES_PER_COLUMN:
            raise InputError(
                f"{column} has {many:,} different values; slices need at most "
                f"{MAX_SLICES_PER_COLUMN:,}."
            )
        return names


@frozen
class Focus:
    """The class that counts as positive (None: class 1 of two), the columns that are cut into
    slices, and with `loss="dice"` images beside their pixels."""

    positive: str | int | None = None
    by: tuple[Cut, ...] = ()
    loss: str | None = None
    image_score: str | None = None  # a column, or the name of a score of images, that comes first

    def __post_init__(self) -> None:
        if self.loss not in (None, "dice"):
            raise InputError(
                f"loss is {self.loss!r}; 'dice' (images with masks) or nothing is needed."
            )
        if self.image_score is not None and self.loss is None:
            raise InputError(
                "a score of images is given without images; say loss='dice' (--loss dice) too."
            )

    @classmethod
    def of(
        cls,
        positive: str | int | None,
        by: Iterable[str],
        loss: str | None = None,
        image_score: str | None = None,
    ) -> Focus:
        """From what a caller wrote."""
        cuts = tuple(Cut.of(text) for text in dict.fromkeys(by))
        return cls(positive=positive, by=cuts, loss=loss, image_score=image_score)

    @property
    def columns(self) -> list[str]:
        """Columns beside the predictions that are needed."""
        needed = [cut.column for cut in self.by]
        if self.image_score is not None and self.image_score not in IMAGE_SCORES:
            needed.append(self.image_score)
        return list(dict.fromkeys(needed))

    def streamed(self) -> Focus:
        """Return self; raise if bins need all samples before any of them is counted."""
        for cut in self.by:
            if cut.bins is not None:
                raise InputError(
                    "bins of equal size need all samples at once; for a stream give the edges, "
                    f"as in {cut.column}:40,60."
                )
        return self


WHOLE = Focus()


def attach_slices(preds: Predictions, by: By | None) -> tuple[Predictions, tuple[Cut, ...]]:
    """Predictions that hold the columns of `by`, and how these are cut."""
    if by is None:
        return preds, ()
    if isinstance(by, Mapping):
        preds = preds.with_attributes(by)
    texts = [by] if isinstance(by, str) else [str(text) for text in by]
    known = preds.attributes or {}
    # The name of a column that is there is taken as it is, even if it looks like "age:4".
    cuts = [Cut(text) if text in known else Cut.of(text) for text in dict.fromkeys(texts)]
    return preds, tuple(cuts)


def find_column(preds: Predictions, column: str) -> Array:
    """A column beside the predictions, by name."""
    known: dict[str, Array] = dict(preds.attributes or {})
    if preds.group is not None:
        known.setdefault("group", preds.group)
    if column in known:
        return known[column]
    there = "there are none beside the predictions"
    if known:
        there = f"there are {', '.join(map(repr, known))}"
    raise InputError(
        f"there is no column {column!r}; {there}. Give it by name, as by={{{column!r}: values}}."
    )


def _read_numbers(values: Array, column: str) -> Floats:
    numbers: list[float] = []
    for value in values.tolist():
        if _is_missing(value):
            numbers.append(np.nan)
            continue
        try:
            numbers.append(float(value))
        except (TypeError, ValueError):
            raise InputError(
                f"{column} holds {str(value)[:60]!r}; only numbers fall into bins. "
                "Leave out the bins."
            ) from None
    return np.array(numbers, dtype=np.float64)


def _is_missing(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and value != value)


def _name_values(values: Array) -> Array:
    if values.dtype.kind in "iub":
        return values.astype(np.str_)
    names: list[str] = []
    for value in values.tolist():
        if _is_missing(value):
            names.append(MISSING)
        elif isinstance(value, float):
            names.append(f"{value:g}")
        else:
            names.append(str(value))
    return np.array(names)
