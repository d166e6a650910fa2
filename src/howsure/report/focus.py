"""What a report looks at beside the whole: the positive class, and slices by the values of columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from howsure._core.check import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count
from howsure.predictions import Predictions
from howsure.predictions.images import SCORES

BINNED = re.compile(r"(.+):([-+.\deE]+(?:,[-+.\deE]*)*)")
DISTINCT = 30  # numbers of a column that are still values of their own
MOST = 1_000  # slices of a column
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
        if (found := BINNED.fullmatch(text)) is None:
            return cls(text)
        column, numbers = found[1], found[2]
        if "," not in numbers:
            return cls(column, bins=_whole(numbers, text))
        try:
            edges = tuple(float(part) for part in numbers.split(",") if part)
        except ValueError:
            raise InputError(
                f"{text!r}: {numbers} are no numbers; write age:4 for bins or age:40,60 for edges."
            ) from None
        if not edges or not all(a < b for a, b in pairwise(edges)) or not np.isfinite(edges).all():
            raise InputError(f"{text!r}: the edges of bins must rise, as in age:40,60.")
        return cls(column, edges)

    def names(self, values: Array) -> Array:
        """The slice of each sample; what is missing is a slice of its own.

        >>> Cut.of("age:40,60").names(np.array([30.0, 60.0, np.nan]))
        array(['below 40', '60 and above', 'missing'], dtype='<U12')
        """
        if self.edges or self.bins is not None:
            number = _numbers(values, self.column)
            return _binned(number, self.edges or _equal(number, self.bins or 1, self.column))
        if values.dtype.kind == "f" and len(np.unique(values)) > DISTINCT:
            raise InputError(
                f"{self.column} holds more than {DISTINCT} different numbers; bin them: {self.column}:4 makes four "
                f"bins of equal size, {self.column}:40,60 cuts at 40 and 60."
            )
        found = _texts(values)
        if (many := len(np.unique(found))) > MOST:
            raise InputError(
                f"{self.column} has {many:,} different values; slices need at most {MOST:,}."
            )
        return found


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
        return cls(positive, tuple(Cut.of(text) for text in dict.fromkeys(by)), loss, image_score)

    @property
    def columns(self) -> list[str]:
        """Columns beside the predictions that are needed."""
        own = self.image_score is not None and self.image_score not in SCORES
        return [
            *dict.fromkeys(
                [
                    *(cut.column for cut in self.by),
                    *([self.image_score] if own and self.image_score else []),
                ]
            )
        ]

    def streamed(self) -> Focus:
        """Return self; raise where bins need all samples before any of them is counted."""
        for cut in self.by:
            if cut.bins is not None:
                raise InputError(
                    "bins of equal size need all samples at once; for a stream give the edges, "
                    f"as in {cut.column}:40,60."
                )
        return self


WHOLE = Focus()


def sliced(preds: Predictions, by: By | None) -> tuple[Predictions, list[str]]:
    """Predictions that hold the columns of `by`, and how these are cut."""
    if by is None:
        return preds, []
    if isinstance(by, Mapping):
        return preds.with_attributes(by), [str(name) for name in by]
    return preds, [by] if isinstance(by, str) else [str(text) for text in by]


def column_of(preds: Predictions, column: str) -> Array:
    """A column beside the predictions, by name."""
    known: dict[str, Array] = dict(preds.attributes or {})
    if preds.group is not None:
        known.setdefault("group", preds.group)
    if column not in known:
        there = (
            f"there are {', '.join(map(repr, known))}"
            if known
            else "there are none beside the predictions"
        )
        raise InputError(
            f"there is no column {column!r}; {there}. Give it by name, as by={{{column!r}: values}}."
        )
    return known[column]


def cuts_known(preds: Predictions, by: Sequence[str]) -> list[Cut]:
    """How columns are cut; the name of a column that is there is taken as it is, whatever it looks
    like.
    """
    known = preds.attributes or {}
    return [Cut(text) if text in known else Cut.of(text) for text in dict.fromkeys(by)]


def focused(focus: Focus, cuts: Sequence[Cut]) -> Focus:
    """The same with these cuts."""
    return replace(focus, by=tuple(cuts))


def _whole(text: str, given: str) -> int:
    if not is_count(text) or int(text) < 2:
        raise InputError(
            f"{given!r}: a number of bins of at least 2 is needed, or edges as in age:40,60."
        )
    return int(text)


def _numbers(values: Array, column: str) -> Floats:
    try:
        return np.array(
            [np.nan if _absent(v) else float(v) for v in values.tolist()], dtype=np.float64
        )
    except (TypeError, ValueError):
        bad = next(v for v in values.tolist() if not _absent(v) and not _is_number(v))
        raise InputError(
            f"{column} holds {str(bad)[:60]!r}; only numbers fall into bins. Leave out the bins."
        ) from None


def _is_number(v: object) -> bool:
    try:
        float(str(v))
    except ValueError:
        return False
    return True


def _equal(number: Floats, bins: int, column: str) -> tuple[float, ...]:
    known = number[~np.isnan(number)]
    if not len(known):
        raise InputError(f"{column} has no numbers; nothing can be binned.")
    cuts = np.unique(np.quantile(known, np.arange(1, bins) / bins, method="higher"))
    return tuple(float(c) for c in cuts if c > known.min())


def _binned(number: Floats, edges: tuple[float, ...]) -> Array:
    ends = [f"{e:.6g}" for e in edges]
    middle = [f"{a} to {b}" for a, b in pairwise(ends)]
    names = np.array(
        [f"below {ends[0]}", *middle, f"{ends[-1]} and above", MISSING]
        if ends
        else ["all", MISSING]
    )
    at = np.where(np.isnan(number), len(names) - 1, np.searchsorted(edges, number, side="right"))
    return names[at]


def _absent(v: object) -> bool:
    return v is None or v == "" or (isinstance(v, float) and v != v)


def _texts(values: Array) -> Array:
    if values.dtype.kind in "iub":
        return values.astype(np.str_)
    return np.array(
        [
            MISSING if _absent(v) else f"{v:g}" if isinstance(v, float) else str(v)
            for v in values.tolist()
        ]
    )
