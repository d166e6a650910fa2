"""Rows that are parts of a larger unit: the labels of a case, or the pixels of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Literal

import numpy as np

from howsure._core.check import Array, Bools, Ints
from howsure._core.frozen import frozen

Parts = Literal["labels", "pixels"]


@frozen(eq=False)
class Layout:
    """Which unit and which place in it each row stands for.

    `unit` numbers the cases or images, `place` the labels, or the pixels row by row; `shape` is
    (labels,) or that of an image. `names` are those of the labels. `alone` says that units are
    independent: their group is the unit itself.

    >>> both = regular("labels", 2, (3,), names=("a", "b", "c"))
    >>> both.unit, both.place
    (array([0, 0, 0, 1, 1, 1]), array([0, 1, 2, 0, 1, 2]))
    >>> both.size, both[both.place == 1].unit
    (3, array([0, 1]))
    """

    parts: Parts
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

    def __getitem__(self, rows: slice | Sequence[int] | Ints | Bools) -> Layout:
        return replace(self, unit=self.unit[rows], place=self.place[rows])


def regular(
    parts: Parts,
    units: int,
    shape: tuple[int, ...],
    *,
    first: int = 0,
    names: tuple[str, ...] = (),
    alone: bool = True,
) -> Layout:
    """The layout of whole units, one after the other, numbered from `first` on.

    >>> regular("pixels", 2, (1, 2), first=5).unit
    array([5, 5, 6, 6])
    """
    size = prod(shape)
    unit = np.repeat(np.arange(first, first + units, dtype=np.int64), size)
    return Layout(parts, unit, np.tile(np.arange(size, dtype=np.int64), units), shape, names, alone)


def case_ids(ids: Array, layout: Layout) -> Array:
    """The id of each whole case, whose labels are called by it and by their name.

    >>> case_ids(np.array(["x1 cat", "x1 dog"]), regular("labels", 1, (2,), names=("cat", "dog")))
    array(['x1'], dtype='<U2')
    """
    return np.array(
        [str(i).removesuffix(f" {layout.names[0]}") for i in ids[:: layout.size].tolist()]
    )


def together(layouts: Sequence[Layout | None]) -> Layout | None:
    """Layouts behind each other; None where one of them is missing or of another kind. Units keep
    their numbers.
    """
    known = [x for x in layouts if x is not None]
    first = known[0] if known else None
    if first is None or len(known) < len(layouts):
        return None
    if any(
        (x.parts, x.shape, x.names, x.alone) != (first.parts, first.shape, first.names, first.alone)
        for x in known
    ):
        return None
    columns: list[Array] = [
        np.concatenate([getattr(x, name) for x in known]) for name in ("unit", "place")
    ]
    return replace(first, unit=columns[0], place=columns[1])
