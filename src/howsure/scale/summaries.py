"""One part of the data → its summary: a pure function that can run anywhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Generic, TypeVar

from howsure._core.check import InputError
from howsure._core.version import __version__
from howsure.formats import arrow
from howsure.formats.catalogue import format_of
from howsure.formats.contents import Damaged
from howsure.formats.files import scan_piece
from howsure.formats.remote import Remote, is_remote
from howsure.predictions import Predictions
from howsure.report.details import Details, Question, part_details
from howsure.report.samples import Samples
from howsure.report.summary import Place, Summary, default_scores, total
from howsure.scale.gathered import Gathered, moved
from howsure.scale.parts import Partition, Settings, identity, source
from howsure.scale.store import load, save

T = TypeVar("T")
FEW = 8  # summaries of runs that are kept before they are added up
ROWS = {True: 1 << 20, False: 1 << 14}  # rows looked at together: of a confidence, of vectors


def summarised(part: Partition, settings: Settings, folder: str | None = None) -> Gathered:
    """The summary of a part, taken from `folder` where it is there already and stored there where
    it is not.
    """
    if settings.version != __version__:
        raise InputError(
            f"a worker runs howsure {__version__}, the driver {settings.version}; install the same."
        )
    if folder is None:
        return summarise(part, settings)
    file = stored(part, settings, folder)
    known = load(file)
    if known is None:
        known = summarise(part, settings)
        save(known, file)
    return moved(known, part.index, part.file)


def stored(part: Partition, settings: Settings, folder: str) -> Path:
    """Where the summary of a part is kept."""
    return Path(folder) / f"{part.key(settings)}.npz"


def summarise(part: Partition, settings: Settings) -> Gathered:
    """Read a part and summarise it."""
    make: Callable[[Predictions, Place], Summary] = lambda preds, place: Summary.of_part(
        preds, place, settings.scores, settings.focus, compact=settings.compact
    )
    found, skipped = _made(part, settings, make, total)
    return Gathered(frozenset((part.index,)), found, skipped)


def answered(part: Partition, settings: Settings, question: Question) -> Gathered:
    """Read a part again, and answer what only single samples tell."""

    def make(preds: Predictions, place: Place) -> Details:
        samples = Samples.of(
            preds, settings.scores or default_scores(preds, settings.compact), settings.focus
        )
        return part_details(samples, question, *place)

    found, skipped = _made(part, settings, make, lambda every: reduce(Details.__add__, every))
    return Gathered(frozenset((part.index,)), None, skipped, found)


class _Pile(Generic[T]):
    """Values that add up, a few of each size at a time, so that a long file does not pile up the
    sums of its runs.
    """

    def __init__(self, add: Callable[[Sequence[T]], T]):
        self.add = add
        self.levels: list[list[T]] = []

    def put(self, value: T, level: int = 0) -> None:
        """Keep one more; as many as `FEW` of a level become one of the next."""
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(value)
        if len(self.levels[level]) == FEW:
            whole, self.levels[level] = self.add(self.levels[level]), []
            self.put(whole, level + 1)

    def sum(self) -> T | None:
        """All of them, or nothing."""
        every = [value for level in reversed(self.levels) for value in level]
        return self.add(every) if every else None


def _made(
    part: Partition,
    settings: Settings,
    make: Callable[[Predictions, Place], T],
    add: Callable[[Sequence[T]], T],
) -> tuple[T | None, tuple[str, ...]]:
    """The sum of what is made of each run of rows of a part, and what could not be read."""
    if identity(part.path) != (part.size, part.stamp):
        raise InputError(
            f"{part.path} changed while it was being evaluated; start again when it is complete."
        )
    pieces = [None] if part.start is None or part.stop is None else range(part.start, part.stop)
    found = _Pile(add)
    skipped: list[str] = []
    row = part.first
    with _local(part.path) as path:
        for piece in pieces:
            try:
                made, row = _piece(part, path, piece, row, settings, make, add)
                if made is not None:
                    found.put(made)
            except Damaged as e:
                if not settings.skip_corrupt:
                    raise
                skipped.append(str(e))
    return found.sum(), tuple(skipped)


def _piece(
    part: Partition,
    path: Path,
    piece: int | None,
    row: int,
    settings: Settings,
    make: Callable[[Predictions, Place], T],
    add: Callable[[Sequence[T]], T],
) -> tuple[T | None, int]:
    """The sum of what is made of all runs of rows of one piece, or nothing, and the row after them."""
    found = _Pile(add)
    try:
        for preds in scan_piece(path, settings.wanted, ROWS[part.narrow], piece):
            found.put(make(preds, Place(part.file, row)))
            row += preds.n
    except InputError as e:
        where = part.path if piece is None else f"{part.path}, {_called(path)} {piece}"
        raise e.at(f"{where}, from row {row} on") from None
    return found.sum(), row


def _called(path: Path) -> str:
    return "row group" if path.suffix.lower() in arrow.PARQUET else "record batch"


@contextmanager
def _local(path: str) -> Generator[Path]:
    """A path that can be read: tables are opened where they are, other remote files are copied
    first.
    """
    place = source(path)
    if not is_remote(path) or format_of(place) is arrow:
        yield place
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / place.name
        Remote(path).fetch(copy)
        yield copy
