"""Which class and which columns a report looks at: the positive class, and slices of a column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from howsure._core.checks import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count
from howsure.predictions import Predictions
from howsure.predictions.images import IMAGE_SCORES

COLUMN_WITH_BINS = re.compile(r"(.+):([-+.\deE]+(?:,[-+.\deE]*)*)")


MAX_DISTINCT_NUMBERS = 30  # of a column that are still values of their own


MAX_SLICES_PER_COLUMN = 1_000


MISSING = "missing"


By = str | Sequence[str] | Mapping[str, ArrayLike]


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

    def _name_bins(self, numbers: Floats) -> Array:
        """The bin of each number: between given edges, or of equal size."""
        edges = self.edges
        if self.bins is not None:
            known = numbers[~np.isnan(numbers)]
            if not len(known):
                raise InputError(f"{self.column} has no numbers; nothing can be binned.")
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
