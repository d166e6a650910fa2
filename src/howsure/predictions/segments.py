"""Columns that cut samples into slices: by their values, by bins of numbers, or by several columns
at once.

A report compares slices, and a policy has a threshold for each: here both find the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from howsure._core.checks import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count, make_text_array
from howsure.predictions.predictions import Predictions

COLUMN_WITH_BINS = re.compile(r"(.+):([-+.\deE]+(?:,[-+.\deE]*)*)")
MAX_DISTINCT_NUMBERS = 30  # of a column that are still values of their own
MAX_SLICES_PER_COLUMN = 1_000
MISSING = "missing"
CROSSING = " × "  # between the values of a crossed segment
PREDICTED = "predicted"  # stands for the predicted class among columns
NUMBER = re.compile(r"[-+.\deE]*")


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
        if self.edges or self.bins is not None:
            return self._name_bins(_read_numbers(values, self.column))
        column = self.column
        if values.dtype.kind == "f" and len(np.unique(values)) > MAX_DISTINCT_NUMBERS:
            raise InputError(
                f"{column} holds more than {MAX_DISTINCT_NUMBERS} different numbers; bin them: "
                f"{column}:4 makes four bins of equal size, {column}:40,60 cuts at 40 and 60."
            )
        if values.dtype.kind in "iub":
            names = values.astype(np.str_)
        else:
            words: list[str] = []
            for value in values.tolist():
                if _is_missing(value):
                    words.append(MISSING)
                elif isinstance(value, float):
                    words.append(f"{value:g}")
                else:
                    words.append(str(value))
            names = np.array(words)
        many = len(np.unique(names))
        if many > MAX_SLICES_PER_COLUMN:
            raise InputError(
                f"{column} has {many:,} different values; slices need at most "
                f"{MAX_SLICES_PER_COLUMN:,}."
            )
        return names

    def find_edges(self, values: Array) -> tuple[float, ...]:
        """The edges of the bins: those given, or those of bins of equal size."""
        return self._find_edges(_read_numbers(values, self.column))

    def _find_edges(self, numbers: Floats) -> tuple[float, ...]:
        if self.bins is None:
            return self.edges
        known = numbers[~np.isnan(numbers)]
        if not len(known):
            raise InputError(f"{self.column} has no numbers; nothing can be binned.")
        shares = np.arange(1, self.bins) / self.bins
        equal = np.unique(np.quantile(known, shares, method="higher"))
        return tuple(float(edge) for edge in equal if edge > known.min())

    def _name_bins(self, numbers: Floats) -> Array:
        """The bin of each number: between given edges, or of equal size."""
        edges = self._find_edges(numbers)
        ends = [f"{edge:.6g}" for edge in edges]
        bin_names = ["all"]
        if ends:
            middle = [f"{a} to {b}" for a, b in pairwise(ends)]
            bin_names = [f"below {ends[0]}", *middle, f"{ends[-1]} and above"]
        bins = np.searchsorted(edges, numbers, side="right")
        bins[np.isnan(numbers)] = len(bin_names)
        return np.array([*bin_names, MISSING])[bins]


def parse_segments(text: str) -> tuple[Cut, ...]:
    """The columns of a segmentation: "hospital", "age:40,60", or crossed "hospital,age:40,60".

    >>> [cut.column for cut in parse_segments("hospital,age:40,60,ward")]
    ['hospital', 'age', 'ward']
    """
    parts: list[str] = []
    for word in text.split(","):
        # A number after a column with bins is one of its edges.
        if parts and ":" in parts[-1] and NUMBER.fullmatch(word):
            parts[-1] += f",{word}"
        else:
            parts.append(word)
    if not all(parts):
        raise InputError(f"by={text!r}; the names of columns are needed, as in hospital,age:40,60.")
    return tuple(Cut.of(part) for part in parts)


def fix_edges(text: str, preds: Predictions) -> str:
    """The segmentation with the edges that bins of equal size have in these samples, so that they
    stay what they are.

    >>> preds = Predictions.from_confidence([0.9] * 4).with_attributes({"age": [20, 30, 40, 50]})
    >>> fix_edges("age:2", preds)
    'age:40,'
    """
    parts: list[str] = []
    for cut in parse_segments(text):
        part = cut.column
        if cut.bins is not None:
            cut = replace(cut, bins=None, edges=cut.find_edges(find_column(preds, cut.column)))
            if not cut.edges:
                raise InputError(f"{cut.column} holds one value; nothing can be binned.")
        if cut.edges:
            part += ":" + ",".join(repr(edge).removesuffix(".0") for edge in cut.edges)
            if len(cut.edges) == 1:  # a number alone is a number of bins
                part += ","
        parts.append(part)
    return ",".join(parts)


def name_segments(text: str, preds: Predictions, answer: Array) -> Array:
    """The segment of each sample; `answer` is the predicted class.

    >>> preds = Predictions.from_confidence([0.9, 0.8]).with_attributes({"ward": ["a", "b"], "age": [30, 70]})
    >>> name_segments("ward,age:40,60", preds, np.array([0, 0])).tolist()
    ['a × below 40', 'b × 60 and above']
    """
    columns: list[Sequence[str]] = []
    cuts = parse_segments(text)
    for cut in cuts:
        if cut.column == PREDICTED and not cut.edges:
            names = answer.astype(str)
        else:
            names = cut.names(find_column(preds, cut.column))
        column: list[str] = names.tolist()
        if len(cuts) > 1 and any(CROSSING in name for name in column):
            raise InputError(
                cut.column, got=f"holds values with {CROSSING!r}, which separates crossed columns"
            )
        columns.append(column)
    return make_text_array([CROSSING.join(values) for values in zip(*columns, strict=True)])


def name_predicted(text: str, segment: str, class_names: Sequence[str]) -> str:
    """A segment with the name of its predicted class in place of the number.

    >>> name_predicted("ward,predicted", "a × 1", ("cat", "dog")), name_predicted("predicted", "0", ("cat", "dog"))
    ('a × dog', 'cat')
    """
    cuts = parse_segments(text)
    words = [segment]
    if len(cuts) > 1:
        words = segment.split(CROSSING)
    for i, (cut, word) in enumerate(zip(cuts, words, strict=False)):
        is_class = cut.column == PREDICTED and not cut.edges and is_count(word)
        if is_class and int(word) < len(class_names):
            words[i] = class_names[int(word)]
    return CROSSING.join(words)


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
