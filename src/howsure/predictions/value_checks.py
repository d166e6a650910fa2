"""Are these numbers what the caller says they are? Checks of what a classifier said."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Floats, InputError, Ints

ROW_SUM_TOLERANCE = {2: 1e-2, 4: 1e-3, 8: 1e-6}  # by width of the given floats
# Where the sums of most rows are wrong and differ by more than this, no rounding did it.
FREE_SUM_SPREAD = 0.5


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


def find_tolerance(given: object) -> float:
    """How far sums of rows may miss 1, by the precision in which they were given."""
    width = getattr(getattr(given, "dtype", None), "itemsize", 8)
    return ROW_SUM_TOLERANCE.get(width, 1e-6)


def _sum_rows(p: Array) -> Floats:
    return p.sum(axis=1, dtype=np.float64)


def check_distributions(p: Array, given: object, renormalise: bool) -> Array:
    """Rows that are distributions; the dtype of `given` sets the tolerance."""
    check_matrix(p, "probs")
    total = _sum_rows(p)
    if renormalise:
        return _renormalise(p, total)
    tolerance = find_tolerance(given)
    outside = np.maximum(-p.min(axis=1), p.max(axis=1) - 1)
    wrong = outside > tolerance
    if not wrong.any():
        wrong = np.abs(total - 1) > tolerance
    if not wrong.any():
        return p
    i = check.find_first(wrong)
    if outside[i] > tolerance:
        fault = "lies outside [0, 1]"
        hint = "Are these logits? Use Predictions.from_logits, or call them logits in the file."
        if _are_percentages(p, total):
            hint = "Are these percentages? Divide them by 100."
    else:
        fault = f"sums to {total[i]:.6g}, expected 1"
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
    if p.shape[1] == 2 and p[:, 1].min() >= 0 and (np.abs(total - 1) < 1e-3).all():
        return True
    return bool(p.min() >= 0 and (np.abs(total - 100) < 1).all())


def _renormalise(p: Array, total: Floats) -> Floats:
    bad = (p.min(axis=1) < 0) | ~(total > 0) | ~np.isfinite(total)
    if bad.any():
        i = check.find_first(bad)
        got = f"cannot be renormalised: it sums to {total[i]:g} or has negative values"
        raise InputError("probs", row=i, got=got)
    return p / total[:, None]


def check_label_values(given: ArrayLike | None, kind: str, sums_to_one: bool) -> Array:
    """Numbers (n, labels) of independent labels, in float64 so that p and 1 - p are complements to
    the last bit.
    """
    v = check_matrix(check.finite(check.floats(given, kind), kind), kind)
    if kind == "logits":
        return v
    tolerance = find_tolerance(given)
    outside = (v < -tolerance) | (v > 1 + tolerance)
    if outside.any():
        got = f"has {int(outside.sum()):,} values outside [0, 1]"
        hint = "Are these logits? Use from_multilabel(logits=...), or call them logits in the file"
        raise InputError("probs", got=got, first=check.find_first(outside), hint=hint)
    are_distributions = (np.abs(_sum_rows(v) - 1) <= tolerance).all()
    if are_distributions and v.shape[1] > 1 and len(v) > 1 and not sums_to_one:
        got = f"has {len(v):,} rows that all sum to 1, as the classes of one answer do"
        hint = "leave out multilabel, or say that they are meant: sums_to_one=True (--sums-to-one)"
        raise InputError("probs", got=got, need="labels of many are independent", hint=hint)
    return np.clip(v.astype(np.float64), 0.0, 1.0)


def check_present(labels: ArrayLike, shape: tuple[int, ...], kind: str) -> Ints:
    """Labels 0 or 1 of every pair of a case and a label."""
    y = check.no_nan(check.array(labels, "labels"), "labels")
    if y.shape != shape:
        need = f"with many labels there is a 0 or 1 for each number of {kind}, {shape}"
        raise InputError("labels", got=f"has shape {y.shape}", need=need)
    bad = (y != 0) & (y != 1)
    if bad.any():
        i = check.find_first(bad)
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
