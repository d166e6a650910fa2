"""What is in a file, and everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from howsure._core.check import InputError
from howsure.formats import checks, logs
from howsure.formats.answers import NoAnswer
from howsure.formats.assembly import assembled, by_pixel
from howsure.formats.catalogue import found
from howsure.formats.contents import Contents, Problem
from howsure.formats.fields import Fields
from howsure.formats.logs import columns
from howsure.formats.names import Wanted, parts_of, splits
from howsure.formats.reading import log_of, whole


@dataclass(frozen=True)
class Item:
    """One array or column: its name, shape and type, and the part it plays ("" if none)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    part: str


@dataclass(frozen=True)
class Description:
    """What a file holds: its format, its arrays or columns, and its splits ("" for arrays without a prefix)."""

    path: str
    format: str
    items: tuple[Item, ...]
    splits: tuple[str, ...]


def describe(path: str | os.PathLike[str], *, format: str | None = None) -> Description:
    """What a file holds, without reading more of it than needed; `format` names the tool that wrote a log.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("confidence,correct,note\\n0.9,1,good\\n")
    >>> [(item.name, item.part) for item in describe(path).items]
    [('confidence', 'confidence'), ('correct', 'correct'), ('note', '')]
    """
    title, runs = _held(Path(path), Wanted(format=format))
    parts = parts_of(runs[0])
    items = [
        Item(name, _shape(runs, name), entry.dtype, parts.get(name, "")) for name, entry in runs[0].entries.items()
    ]
    return Description(str(path), title, tuple(items), tuple(_splits(runs)))


def _held(path: Path, wanted: Wanted) -> tuple[str, list[Contents]]:
    """What a file is, and what it holds."""
    if logs.is_log(path, wanted.format):
        log = log_of(path, wanted)
        return log.title, [columns.contents(log, path)]
    module, file = found(path)
    return module.title, list(module.scan(file, None))


def _splits(runs: Sequence[Contents]) -> list[str]:
    """The splits by prefix, or those of a table's column `split`."""
    column = next((name for name, part in parts_of(runs[0]).items() if part == "split"), None)
    if column is None or not runs[0].table:
        return splits(runs[0])
    return sorted({str(cell) for run in runs if column in run.entries for cell in run.entries[column].load()})


def _shape(runs: Sequence[Contents], name: str) -> tuple[int, ...]:
    """The shape over all runs of rows."""
    shapes = [run.entries[name].shape for run in runs if name in run.entries]
    return (sum(s[0] for s in shapes), *shapes[0][1:]) if len(shapes) > 1 and shapes[0] else shapes[0]


def problems(
    path: str | os.PathLike[str],
    *,
    split: str | None = None,
    mc: bool = False,
    names: Mapping[str, str | Sequence[str]] | None = None,
    renormalise: bool = False,
    format: str | None = None,
    percent: bool = False,
    no_answer: NoAnswer = "apart",
    drop_outside: bool = False,
) -> list[Problem]:
    """Everything that is wrong with a file, not only the first thing; empty where all is well.

    Every split is looked at where none is named. A problem says where it is, what it is, how to repair it, and what
    can be evaluated anyway; `stops` tells those that `read` refuses.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("prob_0,prob_1,label\\n0.9,0.2,0\\n0.4,0.6,2\\n")
    >>> for problem in problems(path):
    ...     print(problem)
    a.csv, line 2: probs sum to 1.1, expected 1; read with renormalise=True (--renormalise), or write more digits.
    a.csv, line 3: labels are 2, with 2 classes they run from 0 to 1; number them from 0.
    """
    wanted = Wanted(split, mc, names or {}, renormalise, format, percent, no_answer, drop_outside)
    try:
        runs, wanted, doubts = _examined(Path(path), wanted)
        chosen = _splits(runs) if split is None else [split]
    except InputError as e:
        return [_stopped(Path(path), e)]
    if len(chosen) < 2:
        return [*doubts, *_of_split(runs, wanted)]
    return doubts + [
        replace(problem, where=f"split {name!r}, {problem.where}")
        for name in chosen
        for problem in _of_split(runs, replace(wanted, split=name))
    ]


def _examined(path: Path, wanted: Wanted) -> tuple[list[Contents], Wanted, list[Problem]]:
    """What a file holds, what is wanted of it, and what is doubtful about a log."""
    if not logs.is_log(path, wanted.format):
        return _held(path, wanted)[1], wanted, []
    log = log_of(path, wanted)
    doubts = [
        Problem(path.name, doubt, "read the numbers with care", "everything", stops=False) for doubt in log.doubts
    ]
    return [columns.contents(log, path)], columns.wanted_of(log, wanted, path), doubts


def _stopped(path: Path, error: InputError) -> Problem:
    """A refusal as a problem; its last clause is the way out."""
    place, colon, rest = str(error).rstrip(".").partition(": ")
    where, message = (
        (place, rest) if colon and place.startswith(path.name) and ";" not in place else (path.name, str(error))
    )
    what, _, fix = message.rstrip(".").removeprefix(f"{path.name} ").rpartition("; ")
    return Problem(where, what or message.rstrip("."), fix if what else "repair the file", "nothing")


def _of_split(runs: Sequence[Contents], wanted: Wanted) -> list[Problem]:
    out: list[Problem] = []
    path = runs[0].path
    try:
        data = whole(runs, wanted, out.append)
        out += _of_parts(data, wanted)
        if not any(problem.stops for problem in out):
            assembled(data, renormalise=wanted.renormalise)
    except InputError as e:
        out.append(_stopped(path, e))
    return out


def _of_parts(data: Fields, wanted: Wanted) -> list[Problem]:
    flat = by_pixel(data, 0)
    sums = "expected 1"
    return [p for p in checks.problems(flat) if not (wanted.renormalise and p.what.endswith(sums))]
