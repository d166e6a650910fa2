"""The column `split` of a table: which rows are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core.check import Array, Bools, InputError
from howsure.formats.fields import Fields, joined
from howsure.formats.names import choose, no_split


def of_file(runs: Sequence[Fields], split: str | None) -> Fields:
    """All rows of the split, of a file given in runs of rows."""
    return joined(list(of_runs(runs, split)))


def of_runs(runs: Iterable[Fields], split: str | None, *, whole: bool = True) -> Iterator[Fields]:
    """The rows of the split, run by run; a file with several splits is refused where none is named.

    A `whole` file must have the split; a piece of a file need not.
    """
    seen: dict[str, Path] = {}
    for run in runs:
        column = run.arrays.get("split")
        if column is None:
            yield run
            continue
        if column.ndim != 1:
            raise InputError(f"{run.path.name} has lists in the column split; one word per row is needed.")
        texts = column.astype(np.str_)
        seen |= dict.fromkeys(texts.tolist(), run.path)
        if split is None and len(seen) > 1:
            raise InputError(choose(run.path, sorted(seen)))
        wanted = np.ones(len(texts), dtype=np.bool_) if split is None else texts == split
        if wanted.any():
            yield _rows(run, wanted)
    if whole and split is not None and seen and split not in seen:
        raise InputError(no_split(split, sorted(seen), next(iter(seen.values()))))


def _rows(run: Fields, wanted: Bools) -> Fields:
    """The wanted rows of every array of the same length; others are left for the checks to complain about."""
    n = len(wanted)
    arrays = {part: a for part, a in run.arrays.items() if part != "split"}
    if wanted.all():
        return replace(run, arrays=arrays)
    kept = {part: _taken(a, part, wanted, n) for part, a in arrays.items()}
    return replace(run, arrays=kept, lines=None if run.lines is None else run.lines[wanted])


def _taken(a: Array, part: str, wanted: Bools, n: int) -> Array:
    if part.startswith("mc_") and a.ndim > 1 and a.shape[1] == n:
        return a[:, wanted]
    return a[wanted] if len(a) == n else a
