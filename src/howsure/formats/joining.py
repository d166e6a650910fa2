"""Predictions of several files as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from howsure._core.check import Array, InputError
from howsure.predictions import Predictions

BESIDE = ("known_labels", "known_correct", "known_prediction", "known_loss", "ids", "group", "weight")


def joined(parts: Sequence[Predictions], names: Sequence[str]) -> Predictions:
    """All rows, in the order of the files, which must hold the same kind of thing."""
    first = parts[0]
    if len(parts) == 1:
        return first
    for part, name in zip(parts[1:], names[1:], strict=True):
        _check_alike(first, part, names[0], name)
    axis = 1 if first.values.ndim == 3 else 0
    beside = {column: _column(parts, column, names) for column in BESIDE}
    counted = [p.unanswered for p in parts if p.unanswered is not None]
    total = sum(counted[1:], counted[0]) if counted else None
    return replace(first, values=np.concatenate([p.values for p in parts], axis=axis), unanswered=total, **beside)


def _check_alike(a: Predictions, b: Predictions, name_a: str, name_b: str) -> None:
    facts = {
        "kind": (a.kind, b.kind),
        "number of classes": (a.k, b.k),
        "number of samples (mc)": (a.samples, b.samples),
        "class names": (a.class_names, b.class_names),
    }
    for what, (x, y) in facts.items():
        if x != y:
            raise InputError(f"{name_a} and {name_b} differ in {what} ({x} and {y}); read them separately.")


def _column(parts: Sequence[Predictions], column: str, names: Sequence[str]) -> Any:
    found: list[Array | None] = [getattr(p, column) for p in parts]
    there = [a for a in found if a is not None]
    if not there:
        return None
    if len(there) < len(found):
        lacking = names[[a is None for a in found].index(True)]
        raise InputError(
            f"{lacking} has no {column.removeprefix('known_')}, others do; give it to all files or to none."
        )
    if len({a.dtype.kind in "UO" for a in there}) > 1:
        there = [a.astype(np.str_) if a.dtype.kind != "O" else a for a in there]
    return np.concatenate(there)
