"""The parts of a file as typed arrays: runs of rows joined, the rows of a split chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core.check import Array, Bools, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.text import array_of
from howsure.formats import cells, llm
from howsure.formats.cells import Column
from howsure.formats.contents import Cells, Contents, Report, refuse
from howsure.formats.names import (
    ATTRIBUTE,
    NUMBERS,
    VECTORS,
    Plan,
    Wanted,
    attributes,
    choose,
    class_names,
    given_classes,
    kind,
    no_split,
    plan,
)
from howsure.predictions.unanswered import Unanswered

GAPS = 20  # columns with empty values until a table is given up
TYPED: dict[str, Callable[[Column], Array]] = {
    "confidence": cells.confidences,
    "logprob": cells.numbers,
    "weight": cells.numbers,
    "correct": cells.truths,
    "grade": cells.numbers,
    "loss": cells.numbers,
    "no_answer": cells.reasons,
}


@frozen
class Fields:
    """Arrays by part, of one file or of a run of its rows from `first` on. `kind` says which part
    holds the values.
    """

    path: Path
    kind: str
    arrays: dict[str, Array]
    class_names: tuple[str, ...] | None = None
    lines: Ints | None = None
    first: int = 0
    unanswered: Unanswered | None = None

    @property
    def rows(self) -> int:
        """Rows of the values."""
        values = self.arrays[self.kind]
        return values.shape[1] if self.kind.startswith("mc_") and values.ndim > 1 else len(values)


@frozen
class _Loaded:
    """An array and the class names that its cells carry."""

    array: Array
    names: tuple[str, ...] | None = None


def fields(contents: Contents, wanted: Wanted, report: Report = refuse) -> Fields:
    """Find the parts by name and load them."""
    found = plan(contents, wanted)
    value = kind(found, wanted)
    beside = [
        part for part in wanted.beside if part != "split" or contents.table
    ]  # arrays have splits by name
    parts = {part: found[part] for part in (value, *beside, "class_names") if part in found}
    parts |= attributes(contents, wanted)
    vectors = (*VECTORS, "labels") if wanted.multilabel else VECTORS
    how = _Load(contents, report, wanted.narrow, vectors, _silent(parts, contents))
    loaded = {p: _load(p, names, how) for p, names in parts.items() if p != "samples"}
    if value == "samples":
        loaded |= _sampled(
            Column(cells_of(contents, parts[value][0]), parts[value][0], contents, report), loaded
        )
    arrays = {part: one.array for part, one in loaded.items() if part != "class_names"}
    value = "confidence" if value == "samples" else value
    names = given_classes(wanted) or _classes(loaded, parts, contents)
    return Fields(contents.path, value, arrays, names, contents.lines, contents.first)


def _as_cells(values: Array | Cells) -> Cells:
    return values.tolist() if isinstance(values, np.ndarray) else values


def cells_of(contents: Contents, name: str) -> Cells:
    """The values of a column as Python values."""
    return _as_cells(contents.entries[name].load())


@frozen
class _Load:
    """How entries are loaded: whose they are, who hears of problems, and which parts are vectors."""

    contents: Contents
    report: Report
    narrow: bool
    vectors: tuple[str, ...]
    silent: frozenset[int] = frozenset()  # rows without a confidence that say why


def _silent(parts: Plan, contents: Contents) -> frozenset[int]:
    """Rows whose confidence is empty and whose `no_answer` is not."""
    if "no_answer" not in parts or "confidence" not in parts:
        return frozenset()
    why, stated = (contents.entries[parts[part][0]].load() for part in ("no_answer", "confidence"))
    if isinstance(stated, np.ndarray):
        return frozenset()
    both = zip(_as_cells(why), stated, strict=True)
    return frozenset(
        row for row, (reason, cell) in enumerate(both) if reason and cell in ("", None)
    )


def _filled(part: str, column: Column, silent: frozenset[int]) -> Column:
    """The column with something in the empty cells of rows that are not answered: they are left out
    later.
    """
    if not silent or part == "no_answer":
        return column
    given = next((cell for row, cell in enumerate(column.cells) if row not in silent), "0")
    cells = [
        given if row in silent and cell in ("", None) else cell
        for row, cell in enumerate(column.cells)
    ]
    return replace(column, cells=cells)


def _load(part: str, names: tuple[str, ...], how: _Load) -> _Loaded:
    values = list(_columns(names, how.contents))
    arrays = [v for _, v in values if isinstance(v, np.ndarray)]
    if len(arrays) == len(values):
        return _Loaded(_stacked(arrays, part, names, how.contents))
    columns = [
        Column(_pointed(part, _as_cells(v), how), name, how.contents, how.report)
        for name, v in values
    ]
    if part.startswith(ATTRIBUTE):
        return _Loaded(cells.anything(columns[0]))
    if part in how.vectors:
        return _vectors(part, columns, how.narrow)
    made = TYPED.get(part, cells.names)(_filled(part, columns[0], how.silent))
    if part == "confidence":
        made[list(how.silent)] = np.nan
    return _Loaded(made)


def _pointed(part: str, values: Cells, how: _Load) -> Cells:
    """Cells whose numbers have points. Ids and names are no numbers, whatever they look like."""
    if not how.contents.commas:
        return values
    if part.startswith(ATTRIBUTE):
        return cells.all_with_points(values)
    return cells.with_points(values) if part in NUMBERS or part in how.vectors else values


def _columns(names: tuple[str, ...], contents: Contents) -> Iterator[tuple[str, Array | Cells]]:
    """The columns one after the other; where one after the other has gaps, the rows do not have the
    same classes.
    """
    gaps = 0
    for name in names:
        cells = contents.entries[name].load()
        gaps += not isinstance(cells, np.ndarray) and len(names) > GAPS and None in cells
        if gaps > GAPS:
            got = f"lacks values in more than {GAPS} of the columns {names[0]!r} to {names[-1]!r}"
            raise InputError(
                contents.path.name, got=got, need="every row needs a value for every class"
            )
        yield name, cells


def _stacked(arrays: list[Array], part: str, names: tuple[str, ...], contents: Contents) -> Array:
    """One array as it is; the columns of a table side by side; the samples of a table's rows as (s,
    n, k).
    """
    if len(arrays) == 1:
        turned = contents.table and part.startswith("mc_") and arrays[0].ndim == 3
        return arrays[0].swapaxes(0, 1) if turned else arrays[0]
    for a, name in zip(arrays, names, strict=True):
        if a.dtype.kind not in "biuf" or a.shape != arrays[0].shape or a.ndim != 1:
            what = f"{contents.path.name}, column {name!r}"
            raise InputError(what, got=f"is {a.dtype} {a.shape}", need="numbers are needed")
    return np.stack(arrays, axis=1)


def _vectors(part: str, columns: list[Column], narrow: bool) -> _Loaded:
    """Columns side by side, or one column of lists."""
    if len(columns) > 1:
        a, names = cells.side_by_side(columns), None
    elif cells.is_number(columns[0]):  # of a binary model
        a, names = cells.numbers(columns[0]), None
    else:
        a, names = cells.lists(columns[0])
        a = a.swapaxes(0, 1) if part.startswith("mc_") and a.ndim == 3 else a
    return _Loaded(cells.narrow(a, half=part.endswith("probs")) if narrow else a, names)


def _sampled(column: Column, loaded: dict[str, _Loaded]) -> dict[str, _Loaded]:
    """The share of samples that agree with the answer, which is the most frequent one where none is
    given.
    """
    samples = cells.texts(column)
    given = loaded.get("prediction")
    answers = (
        [llm.majority(row) for row in samples]
        if given is None
        else [str(a) for a in given.array.tolist()]
    )
    if len(answers) != len(samples):
        where = column.contents.path.name
        raise InputError("prediction and samples", where=where, got="have different lengths")
    shares = _Loaded(llm.agreement(samples, answers))
    return {"confidence": shares, "prediction": given or _Loaded(array_of(answers))}


def _classes(
    loaded: dict[str, _Loaded], parts: dict[str, tuple[str, ...]], contents: Contents
) -> tuple[str, ...] | None:
    if contents.class_names is not None:
        return contents.class_names
    if "class_names" in loaded and not contents.table:
        return tuple(str(c) for c in np.atleast_1d(loaded["class_names"].array).tolist())
    carried = next((one.names for one in loaded.values() if one.names is not None), None)
    vector = next((names for part, names in parts.items() if part in VECTORS), None)
    return carried or (class_names(vector) if vector else None)


def joined(runs: Sequence[Fields]) -> Fields:
    """Runs of rows of one file as one."""
    first = runs[0]
    if len(runs) == 1:
        return first
    for run in runs[1:]:
        if (
            run.kind != first.kind
            or set(run.arrays) != set(first.arrays)
            or run.class_names != first.class_names
        ):
            raise _changed(first, run)
    arrays = {
        part: _concatenated([run.arrays[part] for run in runs], part, first)
        for part in first.arrays
    }
    lines = (
        None
        if first.lines is None
        else np.concatenate([run.lines for run in runs if run.lines is not None])
    )
    return replace(first, arrays=arrays, lines=lines)


def _changed(first: Fields, run: Fields) -> InputError:
    start = "" if run.lines is None else f" from line {int(run.lines[0])} on"
    odd = ", ".join(sorted(set(run.arrays) ^ set(first.arrays))) or "the classes"
    got = f"changes{start}: {odd} is not the same in all rows"
    return InputError(run.path.name, got=got, hint="give every row the same columns")


def _concatenated(arrays: list[Array], part: str, first: Fields) -> Array:
    try:
        return together(arrays, axis=1 if part.startswith("mc_") else 0)
    except ValueError:
        shapes = ", ".join(sorted({str(a.shape[1:]) for a in arrays}))
        raise InputError(
            part, where=first.path.name, got=f"changes its shape between rows ({shapes})"
        ) from None


def together(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays behind each other; where some are text and others whole numbers, all become text."""
    if len({a.dtype.kind in "UO" for a in arrays}) > 1:
        arrays = [a if a.dtype.kind in "UO" else a.astype(np.str_) for a in arrays]
    return np.concatenate(arrays, axis=axis)


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
        texts = _words(column, run)
        seen |= dict.fromkeys(texts.tolist(), run.path)
        if split is None and len(seen) > 1:
            raise choose(run.path, sorted(seen))
        wanted = np.ones(len(texts), dtype=np.bool_) if split is None else texts == split
        if wanted.any():
            yield picked(run, wanted)
    if whole and split is not None and seen and split not in seen:
        raise no_split(split, sorted(seen), next(iter(seen.values())))


def _words(column: Array, run: Fields) -> Array:
    if column.ndim != 1:
        got = "has lists in the column split"
        raise InputError(run.path.name, got=got, need="one word per row is needed")
    return column if column.dtype == object else column.astype(np.str_)


def picked(run: Fields, wanted: Bools) -> Fields:
    """The wanted rows of every array of the same length; others are left for the checks to complain
    about.
    """
    arrays = {part: a for part, a in run.arrays.items() if part != "split"}
    if wanted.all():
        return replace(run, arrays=arrays)
    kept = {part: _taken(a, part, wanted) for part, a in arrays.items()}
    return replace(run, arrays=kept, lines=None if run.lines is None else run.lines[wanted])


def _taken(a: Array, part: str, wanted: Bools) -> Array:
    n = len(wanted)
    if part.startswith("mc_") and a.ndim > 1 and a.shape[1] == n:
        return a[:, wanted]
    return a[wanted] if len(a) == n else a
