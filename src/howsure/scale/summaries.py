"""One part of the data → its summary: a pure function that can run anywhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Generic, TypeVar

from howsure._core.check import InputError
from howsure._core.version import __version__
from howsure.formats import arrow
from howsure.formats.contents import Damaged
from howsure.formats.files import load_reader, scan_piece
from howsure.formats.location import Remote, is_remote
from howsure.predictions import Predictions
from howsure.report.details import Details, Question, build_part_details
from howsure.report.samples import Samples
from howsure.report.summary import Place, Summary, choose_scores
from howsure.report.summary import merge_summaries as total
from howsure.scale.parts import Partition, Settings, find_source, read_file_state
from howsure.scale.store import PartResult, load_result, renumber, save_result

T = TypeVar("T")
MERGE_FANOUT = 8  # summaries of runs that are kept before they are merged
# Rows that are looked at together: of vectors, and of one number per row.
VECTOR_ROWS, NARROW_ROWS = 1 << 14, 1 << 20


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
                for preds in scan_piece(path, settings.wanted, run_rows, piece):
                    runs.put(make(preds, Place(part.file, next_row)))
                    next_row += preds.n
            except InputError as e:
                error = e.at(f"{_name_piece(part, path, piece)}, from row {next_row} on")
                if not (isinstance(e, Damaged) and settings.skip_corrupt):
                    raise error from None
                skipped.append(str(error))
                continue
            row = next_row
            merged = runs.total()
            if merged is not None:
                stack.put(merged)
    return stack.total(), tuple(skipped)


def _name_piece(part: Partition, path: Path, piece: int | None) -> str:
    if piece is None:
        return part.path
    what = "row group" if path.suffix.lower() in arrow.PARQUET_SUFFIXES else "record batch"
    return f"{part.path}, {what} {piece}"


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
