"""What the rows of predictions stand for, and what they may hold.

A row may be a label of a case or a pixel of an image (`InputLayout`), and questions may have no row
at all (`Unanswered`). The numbers of a row are a distribution, or those of independent labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import repeat_values

RowKind = Literal["labels", "pixels"]

ROW_SUM_TOLERANCE = {2: 1e-2, 4: 1e-3, 8: 1e-6}  # by width of the given floats
# Where the sums of most rows are wrong and differ by more than this, no rounding did it.
FREE_SUM_SPREAD = 0.5
CLASS_NUMBERS = 10  # whole numbers below this are classes rather than percentages
ROUNDING_SLACK = 1e-9  # of a sum of decimals in binary


# ---- rows of a unit


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
        unit=repeat_values(np.arange(first, first + units, dtype=np.int64), size),
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


def pick_rows(a: Array | None, rows: slice | Sequence[int] | Ints | Bools) -> Array | None:
    """Some rows of a column, where there is one."""
    if a is None:
        return None
    return a[rows]


# ---- questions without a row


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


# ---- rows of numbers: a distribution, or independent labels


def check_matrix(a: Array, name: str) -> Array:
    """Return `a`; raise unless it has samples as rows and classes as columns."""
    if a.ndim != 2:
        raise InputError(
            name,
            got=f"has shape {a.shape}",
            need="one row per sample and one column per class, (n, k), is needed",
        )
    if a.shape[0] == 0:
        raise InputError(name, got="is empty", need="at least one sample is needed")
    if a.shape[1] == 0:
        raise InputError(name, got=f"has shape {a.shape}", need="at least one class is needed")
    return a


def find_rounding(k: int, digits: int | None) -> float:
    """How far rows of k probabilities with so many digits may miss 1; 0 where the digits are not
    known.

    >>> find_rounding(3, 2), find_rounding(1000, 2)
    (0.015, 0.1)
    """
    if digits is None:
        return 0.0
    return min(k * 0.5 * 10.0**-digits, 0.02 * max(1.0, k / 10), 0.1)


def check_distributions(
    p: Array, given: object, renormalise: bool, digits: int | None = None
) -> Array:
    """Rows that are distributions; the dtype of `given`, or the digits that they were written with,
    set the tolerance.
    """
    check_matrix(p, "probs")
    total = _sum_rows(p)
    if renormalise:
        bad = (p.min(axis=1) < 0) | ~(total > 0) | ~np.isfinite(total)
        if bad.any():
            i = checks.find_first(bad)
            got = f"cannot be renormalised: it sums to {total[i]:g} or has negative values"
            raise InputError("probs", row=i, got=got)
        return p / total[:, None]
    tolerance = find_tolerance(given)
    outside = np.maximum(-p.min(axis=1), p.max(axis=1) - 1)
    wrong = outside > tolerance
    if not wrong.any():
        allowed = max(tolerance, find_rounding(p.shape[1], digits) + ROUNDING_SLACK)
        wrong = np.abs(total - 1) > allowed
    if not wrong.any():
        return p
    i = checks.find_first(wrong)
    if outside[i] > tolerance:
        fault = "lies outside [0, 1]"
        hint = "Are these logits? Use Predictions.from_logits, or call them logits in the file."
        # The complement of a single column was added.
        single = p.shape[1] == 2 and bool((p[:, 0] == 1 - p[:, 1]).all())
        if single and p[:, 1].min() >= 0 and p.max() < CLASS_NUMBERS and (p == np.floor(p)).all():
            hint = "Are these class numbers? Give the probabilities of the classes."
        elif _are_percentages(p, total):
            hint = "Are these percentages? Divide them by 100."
    else:
        fault = f"sums to {total[i]:.9g}, expected 1"
        hint = (
            "Pass renormalise=True (--renormalise) to divide each row by its sum, "
            "or Predictions.from_logits for logits."
        )
        # A comparison, not a difference: sums may be infinite.
        if 2 * wrong.sum() > len(wrong) and total.min() < total.max() - FREE_SUM_SPREAD:
            many = "Are these many labels per case? Use Predictions.from_multilabel (--multilabel)."
            hint = f"{many} {hint}"
    got = f"{fault} ({int(wrong.sum()):,} such rows)"
    raise InputError("probs", row=i, got=got, hint=hint)


def _are_percentages(p: Array, total: Floats) -> bool:
    """Whether rows sum to 100, or a single column, whose complement was added, lies between 0 and
    100.
    """
    if p.max() > 100:
        return False
    sums_to_one = bool((np.abs(total - 1) < 1e-3).all())
    if sums_to_one and p.shape[1] == 2 and p[:, 1].min() >= 0:
        return True
    sums_to_hundred = bool((np.abs(total - 100) < 1).all())
    return sums_to_hundred and bool(p.min() >= 0)


def check_label_values(given: ArrayLike | None, kind: str, sums_to_one: bool) -> Array:
    """Numbers (n, labels) of independent labels, in float64 so that p and 1 - p are complements to
    the last bit.
    """
    v = check_matrix(checks.finite(checks.floats(given, kind), kind), kind)
    if kind == "logits":
        return v
    tolerance = find_tolerance(given)
    outside = (v < -tolerance) | (v > 1 + tolerance)
    if outside.any():
        got = f"has {int(outside.sum()):,} values outside [0, 1]"
        hint = "Are these logits? Use from_multilabel(logits=...), or call them logits in the file"
        raise InputError("probs", got=got, first=checks.find_first(outside), hint=hint)
    are_distributions = (np.abs(_sum_rows(v) - 1) <= tolerance).all()
    if are_distributions and v.shape[1] > 1 and len(v) > 1 and not sums_to_one:
        got = f"has {len(v):,} rows that all sum to 1, as the classes of one answer do"
        hint = "leave out multilabel, or say that they are meant: sums_to_one=True (--sums-to-one)"
        raise InputError("probs", got=got, need="labels of many are independent", hint=hint)
    return np.clip(v.astype(np.float64), 0.0, 1.0)


def check_present(labels: ArrayLike, shape: tuple[int, ...], kind: str) -> Ints:
    """Labels 0 or 1 of every pair of a case and a label."""
    y = checks.no_nan(checks.array(labels, "labels"), "labels")
    if y.shape != shape:
        need = f"with many labels there is a 0 or 1 for each number of {kind}, {shape}"
        raise InputError("labels", got=f"has shape {y.shape}", need=need)
    bad = (y != 0) & (y != 1)
    if bad.any():
        i = checks.find_first(bad)
        need = "with many labels each is 0 (absent) or 1 (present)"
        raise InputError("labels", row=i, got=f"holds {y[i][bad[i]][0]:g}", need=need)
    return y.astype(np.int64)


def check_label_names(given: Iterable[object] | None, labels: int) -> tuple[str, ...]:
    """Different names of so many labels; numbers where none are given."""
    if given is None:
        given = range(labels)
    names = tuple(str(name) for name in given)
    if len(names) != labels:
        raise InputError("label_names", got=f"has {len(names)} names for {labels} labels")
    for i, name in enumerate(names):
        if name in names[:i]:
            need = "each label needs a name of its own"
            raise InputError("label_names", got=f"has {name!r} twice", need=need)
    return names


def find_tolerance(given: object) -> float:
    """How far sums of rows may miss 1, by the precision in which they were given."""
    width = getattr(getattr(given, "dtype", None), "itemsize", 8)
    return ROW_SUM_TOLERANCE.get(width, 1e-6)


def _sum_rows(p: Array) -> Floats:
    return p.sum(axis=1, dtype=np.float64)
