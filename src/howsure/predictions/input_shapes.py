"""What rows stand for: labels of a case, pixels of an image, and questions without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from math import prod
from typing import Literal

import numpy as np

from howsure._core.check import Array, Bools, Ints
from howsure._core.frozen import frozen

RowKind = Literal["labels", "pixels"]


@frozen(eq=False)
class InputLayout:
    """Which unit and which place in it each row stands for.

    `unit` numbers the cases or images, `place` the labels, or the pixels row by row; `shape` is
    (labels,) or that of an image. `names` are those of the labels. `alone` says that units are
    independent: their group is the unit itself.

    >>> both = lay_out_units("labels", 2, (3,), names=("a", "b", "c"))
    >>> both.unit, both.place
    (array([0, 0, 0, 1, 1, 1]), array([0, 1, 2, 0, 1, 2]))
    >>> both.size, both[both.place == 1].unit
    (3, array([0, 1]))
    """

    parts: RowKind
    unit: Ints
    place: Ints
    shape: tuple[int, ...]
    names: tuple[str, ...] = ()
    alone: bool = True

    @property
    def size(self) -> int:
        """Rows of a whole unit."""
        return prod(self.shape)

    @property
    def whole(self) -> bool:
        """Whether every unit is there with all its rows, one after the other."""
        n, size = len(self.unit), self.size
        if n % size or not np.array_equal(self.place, np.tile(np.arange(size), n // size)):
            return False
        units = self.unit.reshape(-1, size)
        return bool((units == units[:, :1]).all())

    def __getitem__(self, rows: slice | Sequence[int] | Ints | Bools) -> InputLayout:
        return replace(self, unit=self.unit[rows], place=self.place[rows])


def lay_out_units(
    parts: RowKind,
    units: int,
    shape: tuple[int, ...],
    *,
    first: int = 0,
    names: tuple[str, ...] = (),
    alone: bool = True,
) -> InputLayout:
    """The layout of whole units, one after the other, numbered from `first` on.

    >>> lay_out_units("pixels", 2, (1, 2), first=5).unit
    array([5, 5, 6, 6])
    """
    size = prod(shape)
    return InputLayout(
        parts=parts,
        unit=np.repeat(np.arange(first, first + units, dtype=np.int64), size),
        place=np.tile(np.arange(size, dtype=np.int64), units),
        shape=shape,
        names=names,
        alone=alone,
    )


def strip_label_names(ids: Array, layout: InputLayout) -> Array:
    """The id of each whole case, whose labels are called by it and by their name.

    >>> pair = lay_out_units("labels", 1, (2,), names=("cat", "dog"))
    >>> strip_label_names(np.array(["x1 cat", "x1 dog"]), pair)
    array(['x1'], dtype='<U2')
    """
    suffix = f" {layout.names[0]}"
    return np.array([str(i).removesuffix(suffix) for i in ids[:: layout.size].tolist()])


def concat_layouts(layouts: Sequence[InputLayout | None]) -> InputLayout | None:
    """Layouts behind each other; None where one of them is missing or of another kind. Units keep
    their numbers.
    """
    if not layouts or layouts[0] is None:
        return None
    first = layouts[0]
    units: list[Ints] = []
    places: list[Ints] = []
    for layout in layouts:
        if layout is None or (layout.parts, layout.shape) != (first.parts, first.shape):
            return None
        if (layout.names, layout.alone) != (first.names, first.alone):
            return None
        units.append(layout.unit)
        places.append(layout.place)
    return replace(first, unit=np.concatenate(units), place=np.concatenate(places))


@frozen
class Unanswered:
    """How many questions have no answer, and why; `+` merges two data sets.

    `unparseable`: text that is none of the possible answers. `refused`: the model declined.
    `missing`: nothing came back. `unstated`: answered, but without the confidence that is looked
    at; `unstated_right` of these are right (the sum of their grades). Metrics and curves are over
    the answered; coverage counts all questions.

    >>> both = Unanswered(refused=2) + Unanswered(refused=1, missing=4)
    >>> both.total, str(both)
    (7, '3 refused, 4 missing')
    """

    unparseable: int = 0
    refused: int = 0
    missing: int = 0
    unstated: int = 0
    unstated_right: float = 0.0

    @property
    def total(self) -> int:
        """All of them."""
        return self.unparseable + self.refused + self.missing + self.unstated

    def __add__(self, other: Unanswered) -> Unanswered:
        names = [f.name for f in fields(self)]
        return Unanswered(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def __str__(self) -> str:
        counts = {
            "unparseable": self.unparseable,
            "refused": self.refused,
            "missing": self.missing,
            "without confidence": self.unstated,
        }
        return ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)


def pick_rows(a: Array | None, rows: slice | Sequence[int] | Ints | Bools) -> Array | None:
    """Some rows of a column, where there is one."""
    if a is None:
        return None
    return a[rows]
