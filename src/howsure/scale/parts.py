"""Which parts the files fall into, and who each part is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure._core.json import canonical
from howsure._core.paths import existing
from howsure._core.version import __version__
from howsure.formats import arrow
from howsure.formats.catalogue import format_of
from howsure.formats.contents import Damaged
from howsure.formats.location import matching, together
from howsure.formats.names import Plan, Wanted, kind, plan
from howsure.formats.remote import Remote, is_remote
from howsure.report.focus import Focus

ROWS = 1 << 20  # of a part, where the file can be read in pieces
NARROW = ("confidence", "logprob")
PARTS = 1000  # a larger job has larger parts instead of many more


@frozen
class Settings:
    """How every part is read and summarised; the same for all parts of a job."""

    scores: tuple[str, ...] | None = None
    split: str | None = None
    mc: bool = False
    renormalise: bool = False
    names: tuple[tuple[str, str | tuple[str, ...]], ...] = ()
    compact: bool = False
    skip_corrupt: bool = False
    positive: str | int | None = None
    by: tuple[str, ...] = ()
    multilabel: bool = False
    sums_to_one: bool = False
    loss: str | None = None
    image_score: str | None = None
    version: str = __version__  # of the driver; workers must run the same

    @property
    def wanted(self) -> Wanted:
        """The same for the readers."""
        columns = tuple(self.focus.columns)
        return Wanted(
            *(self.split, self.mc, dict(self.names), self.renormalise),
            multilabel=self.multilabel,
            sums_to_one=self.sums_to_one,
            attributes=columns,
        )

    @property
    def focus(self) -> Focus:
        """What a report looks at beside the whole."""
        return Focus.of(self.positive, self.by, self.loss, self.image_score)


@frozen
class Partition:
    """One part: a whole file, or the pieces `start` to `stop` (row groups, stored batches) of one."""

    index: int
    file: int
    path: str
    size: int
    stamp: str
    bytes: int  # its share of the file
    start: int | None = None
    stop: int | None = None
    first: int = 0  # row of the file that it begins with
    rows: int = 0  # 0 where the file does not say
    narrow: bool = False  # a confidence per row, not a vector

    def key(self, settings: Settings) -> str:
        """A name that changes with the file, with the rows, and with what is asked of them."""
        who = [self.path, self.size, self.stamp, self.start, self.stop, asdict(settings)]
        return hashlib.sha256(canonical(who).encode()).hexdigest()[:32]


@frozen
class Job:
    """All parts, the files in the order in which they were given, and the files that could not be
    opened.
    """

    files: tuple[str, ...]
    parts: tuple[Partition, ...]
    skipped: tuple[str, ...]


@frozen
class _File:
    path: str
    size: int
    stamp: str
    pieces: tuple[int, ...] | None
    plan: Plan | None


def source(path: str) -> Path:
    """A local path, or what plays its part for a remote file."""
    return cast(Path, Remote(path)) if is_remote(path) else existing(path)


def identity(path: str) -> tuple[int, str]:
    """Size and time or tag of a file: what tells that it has changed."""
    if is_remote(path):
        remote = Remote(path)
        return remote.stat().st_size, remote.stamp()
    state = existing(path).stat()
    return state.st_size, str(state.st_mtime_ns)


def expanded(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Every file once, patterns filled in."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise InputError("no file is given; name at least one.")
    return list(together([file for path in given for file in matching(os.fspath(path))]))


def planned(files: Sequence[str], settings: Settings) -> Job:
    """The parts of all files; what can be known without reading rows is checked here."""
    opened: list[_File | None] = []
    skipped: list[str] = []
    for path in files:
        try:
            opened.append(_opened(path, settings))
        except Damaged as e:
            if not settings.skip_corrupt:
                raise
            opened.append(None)
            skipped.append(str(e))
    _check_alike([file for file in opened if file is not None])
    total = sum(sum(file.pieces or ()) for file in opened if file is not None)
    rows = max(ROWS, -(-total // PARTS))
    parts: list[Partition] = []
    for i, file in enumerate(opened):
        if file is not None:
            parts += _parts(file, i, len(parts), rows)
    if not parts:
        raise InputError(
            "none of the files has rows that can be read; at least one sample is needed."
        )
    return Job(tuple(files), tuple(parts), tuple(skipped))


def _opened(path: str, settings: Settings) -> _File:
    place = source(path)
    size, stamp = identity(path)
    if format_of(place) is not arrow:
        return _File(path, size, stamp, None, None)
    found = arrow.outline(place)
    parts = plan(found.contents, settings.wanted)
    if "split" in parts and settings.split is None:
        raise InputError(
            f"{place.name} has a column split; say which one is wanted with split= or --split."
        )
    used = {part: names for part, names in parts.items() if part != "class_names"}
    return _File(path, size, stamp, found.pieces, {"": (kind(parts, settings.wanted),), **used})


def _check_alike(files: Sequence[_File]) -> None:
    """Tables must have the same columns for the same parts; arrays are compared when they are read."""
    tables = [file for file in files if file.plan is not None]
    for file in tables[1:]:
        first, here = tables[0].plan or {}, file.plan or {}
        for part in [*first, *here]:
            if first.get(part) != here.get(part):
                one, two = (_columns(p.get(part)) for p in (first, here))
                raise InputError(
                    f"{file.path} has {two} for {part or 'the values'}, {tables[0].path} has {one}; "
                    "evaluate files with the same columns together."
                )


def _columns(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "nothing"
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)} columns)"


def _parts(file: _File, number: int, index: int, rows: int) -> list[Partition]:
    """Runs of pieces with about so many rows each."""
    if file.pieces is None:
        return [Partition(index, number, file.path, file.size, file.stamp, file.size)]
    out: list[Partition] = []
    start, first, total = 0, 0, max(1, sum(file.pieces))
    narrow = file.plan is not None and file.plan[""][0] in NARROW
    for stop in range(1, len(file.pieces) + 1):
        here = sum(file.pieces[start:stop])
        if here and (here >= rows or stop == len(file.pieces)):
            share = file.size * here // total
            who = (index + len(out), number, file.path, file.size, file.stamp)
            out.append(Partition(*who, share, start, stop, first, here, narrow))
            start, first = stop, first + here
    return out
