"""The parts that files fall into: how they are planned, named, read, and summarised."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import reduce
from pathlib import Path
from typing import Generic, TypeVar, cast

from howsure._core.atomic import check_readable
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure._core.strict_json import dump_canonical
from howsure._core.version import __version__
from howsure.formats import arrow
from howsure.formats.column_names import Plan, choose_values
from howsure.formats.column_names import plan_parts as plan
from howsure.formats.contents import Damaged
from howsure.formats.files import load_reader, scan_piece
from howsure.formats.location import Remote, group_files, is_remote, list_matching_files
from howsure.predictions import Predictions
from howsure.predictions.read_options import ReadOptions
from howsure.report.focus import WHOLE, Focus
from howsure.report.samples import Details, Question, Samples, build_part_details
from howsure.report.summary import Place, Summary, choose_scores
from howsure.report.summary import merge_summaries as total
from howsure.scale.store import PartResult, load_result, renumber, save_result

PART_ROWS = 1 << 20  # of a part, where the file can be read in pieces
MAX_PARTS = 1000  # a larger job has larger parts instead of many more
NARROW_KINDS = ("confidence", "logprob")  # one number per row
LOG_OPTIONS = ("format", "percent", "no_answer", "drop_outside")  # of `ReadOptions`
MERGE_FANOUT = 8  # summaries of runs that are kept before they are merged
# Rows that are looked at together: of vectors, and of one number per row.
VECTOR_ROWS, NARROW_ROWS = 1 << 14, 1 << 20
T = TypeVar("T")


@frozen
class Settings:
    """How every part is read and summarised; the same for all parts of a job."""

    scores: tuple[str, ...] | None = None
    options: ReadOptions = ReadOptions()
    compact: bool = False
    skip_corrupt: bool = False
    focus: Focus = WHOLE  # what a report looks at beside the whole
    version: str = __version__  # of the driver; workers must run the same


def find_unstreamed(options: ReadOptions) -> str | None:
    """The first option that needs all predictions at once: those for logs of language models do."""
    for name in LOG_OPTIONS:
        if getattr(options, name) != getattr(ReadOptions, name):
            return name
    return None


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
        # The version is among the settings, so another howsure finds nothing of ours.
        who = [self.path, self.size, self.stamp, self.start, self.stop, asdict(settings)]
        return hashlib.sha256(dump_canonical(who).encode()).hexdigest()[:32]


@frozen
class Job:
    """All parts, the files in the order in which they were given, and the files that could not be
    opened.
    """

    files: tuple[str, ...]
    parts: tuple[Partition, ...]
    skipped: tuple[str, ...]


# Planning.


@frozen
class SourceFile:
    """A file that was opened: its state, and where it can be read in pieces, the rows of each and
    the columns of the parts.
    """

    path: str
    size: int
    stamp: str
    pieces: tuple[int, ...] | None = None
    plan: Plan | None = None


def find_source(path: str) -> Path:
    """A local path, or what plays its part for a remote file."""
    return cast(Path, Remote(path)) if is_remote(path) else check_readable(path)


def read_file_state(path: str) -> tuple[int, str]:
    """Size and time or tag of a file: what shows that it has changed."""
    if is_remote(path):
        remote = Remote(path)
        return remote.stat().st_size, remote.stamp()
    state = check_readable(path).stat()
    return state.st_size, str(state.st_mtime_ns)


def expand_paths(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Every file once, patterns filled in."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise InputError("no file is given; name at least one.")
    files: list[str] = []
    for path in given:
        files += list_matching_files(os.fspath(path))
    return list(group_files(files))


def plan_parts(files: Sequence[str], settings: Settings) -> Job:
    """The parts of all files; what can be known without reading rows is checked here."""
    opened: dict[int, SourceFile] = {}
    skipped: list[str] = []
    for number, path in enumerate(files):
        try:
            opened[number] = _open_source(path, settings)
        except Damaged as e:
            if not settings.skip_corrupt:
                raise
            skipped.append(str(e))
    _check_alike(list(opened.values()))
    total = sum(sum(file.pieces or ()) for file in opened.values())
    # Rounded up: MAX_PARTS parts of this size hold all rows.
    rows = max(PART_ROWS, -(-total // MAX_PARTS))
    parts: list[Partition] = []
    for number, file in opened.items():
        parts += _cut_file(file, number, first_index=len(parts), rows=rows)
    if not parts:
        raise InputError(
            "none of the files has rows that can be read; at least one sample is needed."
        )
    return Job(files=tuple(files), parts=tuple(parts), skipped=tuple(skipped))


def _open_source(path: str, settings: Settings) -> SourceFile:
    place = find_source(path)
    size, stamp = read_file_state(path)
    if load_reader(place) is not arrow:
        return SourceFile(path=path, size=size, stamp=stamp)
    outline = arrow.read_outline(place)
    parts = plan(outline.contents, settings.options)
    if "split" in parts and settings.options.split is None:
        raise InputError(
            f"{place.name} has a column split; say which one is wanted with split= or --split."
        )
    # The kind of the values stands under "", so that files of two kinds are not alike.
    used: Plan = {"": (choose_values(parts, settings.options),)}
    used |= {part: names for part, names in parts.items() if part != "class_names"}
    return SourceFile(path=path, size=size, stamp=stamp, pieces=outline.pieces, plan=used)


def _check_alike(files: Sequence[SourceFile]) -> None:
    """Tables must have the same columns for the same parts; arrays are compared when they are read."""
    tables = [file for file in files if file.plan is not None]
    for file in tables[1:]:
        first, here = tables[0].plan or {}, file.plan or {}
        for part in [*first, *here]:
            if first.get(part) != here.get(part):
                ours, theirs = _describe_columns(first.get(part)), _describe_columns(here.get(part))
                raise InputError(
                    f"{file.path} has {theirs} for {part or 'the values'}, {tables[0].path} has {ours}; "
                    "evaluate files with the same columns together."
                )


def _describe_columns(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "nothing"
    if len(names) == 1:
        return names[0]
    return f"{names[0]} … {names[-1]} ({len(names)} columns)"


def _cut_file(file: SourceFile, number: int, *, first_index: int, rows: int) -> list[Partition]:
    """Runs of pieces with about so many rows each."""
    whole = Partition(
        index=first_index,
        file=number,
        path=file.path,
        size=file.size,
        stamp=file.stamp,
        bytes=file.size,
    )
    if file.pieces is None:
        return [whole]
    parts: list[Partition] = []
    start, first, total = 0, 0, max(1, sum(file.pieces))
    narrow = file.plan is not None and file.plan[""][0] in NARROW_KINDS
    for stop in range(1, len(file.pieces) + 1):
        here = sum(file.pieces[start:stop])
        if here and (here >= rows or stop == len(file.pieces)):
            part = replace(
                whole,
                index=first_index + len(parts),
                bytes=file.size * here // total,
                start=start,
                stop=stop,
                first=first,
                rows=here,
                narrow=narrow,
            )
            parts.append(part)
            start, first = stop, first + here
    return parts


# What is made of a part.


def load_or_summarise(part: Partition, settings: Settings, folder: str | None = None) -> PartResult:
    """The summary of a part, taken from `folder` where it is there already and stored there where
    it is not.
    """
    if settings.version != __version__:
        raise InputError(
            f"a worker runs howsure {__version__}, the driver {settings.version}; install the same."
        )
    if folder is None:
        return summarise(part, settings)
    file = find_stored(part, settings, folder)
    result = load_result(file)
    if result is None:
        result = summarise(part, settings)
        save_result(result, file)
    return renumber(result, part.index, part.file)


def find_stored(part: Partition, settings: Settings, folder: str) -> Path:
    """Where the summary of a part is kept."""
    return Path(folder) / f"{part.key(settings)}.npz"


def summarise(part: Partition, settings: Settings) -> PartResult:
    """Read a part and summarise it."""

    def make(preds: Predictions, place: Place) -> Summary:
        return Summary.of_part(
            preds, place, settings.scores, settings.focus, compact=settings.compact
        )

    summary, skipped = _read_part(part, settings, make, total)
    return PartResult(parts=frozenset((part.index,)), summary=summary, skipped=skipped)


def answer_question(part: Partition, settings: Settings, question: Question) -> PartResult:
    """Read a part again, and answer what only single samples tell."""

    def make(preds: Predictions, place: Place) -> Details:
        scores = settings.scores or choose_scores(preds, settings.compact)
        return build_part_details(Samples.of(preds, scores, settings.focus), question, *place)

    details, skipped = _read_part(part, settings, make, lambda all_: reduce(Details.__add__, all_))
    return PartResult(
        parts=frozenset((part.index,)), summary=None, skipped=skipped, details=details
    )


class MergeStack(Generic[T]):
    """Values that merge, a few of each size at a time, so that a long file does not pile up the
    summaries of its runs.
    """

    def __init__(self, merge: Callable[[Sequence[T]], T]):
        self.merge = merge
        self.levels: list[list[T]] = []

    def put(self, value: T, level: int = 0) -> None:
        """Keep one more; `MERGE_FANOUT` of a level become one of the next."""
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(value)
        if len(self.levels[level]) == MERGE_FANOUT:
            merged, self.levels[level] = self.merge(self.levels[level]), []
            self.put(merged, level + 1)

    def total(self) -> T | None:
        """All of them merged; None where there are none."""
        values: list[T] = []
        for level in reversed(self.levels):
            values += level
        return self.merge(values) if values else None


def _read_part(
    part: Partition,
    settings: Settings,
    make: Callable[[Predictions, Place], T],
    merge: Callable[[Sequence[T]], T],
) -> tuple[T | None, tuple[str, ...]]:
    """What is made of each run of rows of a part, merged, and what could not be read."""
    if read_file_state(part.path) != (part.size, part.stamp):
        raise InputError(
            f"{part.path} changed while it was being evaluated; start again when it is complete."
        )
    pieces: Iterable[int | None] = [None]
    if part.start is not None and part.stop is not None:
        pieces = range(part.start, part.stop)
    run_rows = NARROW_ROWS if part.narrow else VECTOR_ROWS
    stack = MergeStack(merge)
    skipped: list[str] = []
    row = part.first
    with _fetch(part.path) as path:
        for piece in pieces:
            runs = MergeStack(merge)  # of one piece: a damaged one is left out as a whole
            next_row = row
            try:
                for preds in scan_piece(path, settings.options, run_rows, piece):
                    runs.put(make(preds, Place(part.file, next_row)))
                    next_row += preds.n
            except InputError as e:
                where = part.path
                if piece is not None:
                    is_parquet = path.suffix.lower() in arrow.PARQUET_SUFFIXES
                    where += f", {'row group' if is_parquet else 'record batch'} {piece}"
                error = e.at(f"{where}, from row {next_row} on")
                if not (isinstance(e, Damaged) and settings.skip_corrupt):
                    raise error from None
                skipped.append(str(error))
                continue
            row = next_row
            merged = runs.total()
            if merged is not None:
                stack.put(merged)
    return stack.total(), tuple(skipped)


@contextmanager
def _fetch(path: str) -> Generator[Path]:
    """A path that can be read: tables are opened where they are, other remote files are copied
    first.
    """
    place = find_source(path)
    if not is_remote(path) or load_reader(place) is arrow:
        yield place
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / place.name
        Remote(path).fetch(copy)
        yield copy
