"""A part of a job: how it is named, read and summarised; its result merges with those of other
parts, whichever worker made them, and is kept on disk.

On disk it is arrays and JSON in one npz file that appears whole or not at all. Nothing in it is
code.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import reduce
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np

from howsure._core import strict_json
from howsure._core.checks import Array, InputError
from howsure._core.file_access import check_readable, replace_file
from howsure._core.frozen import frozen
from howsure._core.version import __version__
from howsure.formats import arrow
from howsure.formats.contents import Damaged, Remote, is_remote
from howsure.formats.files import load_reader, scan_piece
from howsure.predictions import Predictions
from howsure.predictions.read_options import ReadOptions
from howsure.report.focus import WHOLE, Focus
from howsure.report.masks import move_to_file
from howsure.report.samples import Details, Question, Samples, build_part_details
from howsure.report.summary import Place, Summary, choose_scores, merge_summaries
from howsure.report.summary_files import (
    DAMAGE_ERRORS,
    decode_json,
    encode_json,
    join_summary,
    split_summary,
)

LOG_OPTIONS = ("format", "percent", "no_answer", "drop_outside")  # of `ReadOptions`
MERGE_FANOUT = 8  # summaries of runs that are kept before they are merged
# Rows that are looked at together: of vectors, and of one number per row.
VECTOR_ROWS, NARROW_ROWS = 1 << 14, 1 << 20
# Distinct scores of all tallies together; about 400 MB of float32 scores.
MAX_DISTINCT_SCORES = 32_000_000
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
    """The first option that needs all predictions at once: those for logs of language models do, and
    an ensemble does.
    """
    if options.several == "ensemble":
        return "ensemble"
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
        return hashlib.sha256(strict_json.dump_canonical(who).encode()).hexdigest()[:32]


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

    summary, skipped = _read_part(part, settings, make, merge_summaries)
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


# Results of parts.


@frozen(eq=False)
class PartResult:
    """Which parts, their summary or, of a second reading, their details, and what of them could not
    be read.
    """

    parts: frozenset[int]
    summary: Summary | None
    skipped: tuple[str, ...] = ()
    details: Details | None = None

    @property
    def size(self) -> int:
        """Numbers that take memory and become fewer by merging."""
        size = 0
        if self.summary is not None:
            size += self.summary.size
        if self.details is not None:
            size += self.details.size
        return size

    @property
    def has_equal_weights(self) -> bool:
        """Whether samples have weights, all of them the same."""
        if self.summary is None:
            return False
        t = self.summary.tally
        return t.weighted and t.equal_weights

    def __add__(self, other: PartResult) -> PartResult:
        return merge_results([self, other])


def merge_results(results: Sequence[PartResult]) -> PartResult:
    """All parts of all of them; a part that is in two of them is refused, for it would count twice."""
    # Clusters repeat tasks whose worker died; a result must not be counted a second time.
    parts = frozenset[int]().union(*(result.parts for result in results))
    if len(parts) < sum(len(result.parts) for result in results):
        raise InputError(
            "some part of the data is in two overlapping sums; run the evaluation again."
        )
    summaries = [result.summary for result in results if result.summary is not None]
    details = [result.details for result in results if result.details is not None]
    skipped: list[str] = []
    for result in results:
        skipped += result.skipped
    return PartResult(
        parts=parts,
        summary=check_size(merge_summaries(summaries)) if summaries else None,
        skipped=tuple(skipped),
        details=reduce(Details.__add__, details) if details else None,
    )


def check_size(s: Summary) -> Summary:
    """Return `s`; raise if it has grown beyond what is kept exactly."""
    if s.size <= MAX_DISTINCT_SCORES:
        return s
    raise InputError(
        f"these data have more than {MAX_DISTINCT_SCORES:,} distinct scores, too many to keep exactly "
        "in bounded memory; ask for the compact tally, which gives certified bounds (compact=True, "
        "--compact), or for fewer scores."
    )


def renumber(result: PartResult, part: int, file: int) -> PartResult:
    """One part under another number, as when files were added since it was stored."""
    parts = frozenset((part,))
    summary = result.summary
    if summary is None:
        return replace(result, parts=parts)
    images = None if summary.images is None else move_to_file(summary.images, file)
    suspects = tuple(suspect._replace(file=file) for suspect in summary.suspects)
    files = {file: summary.n}
    moved = replace(summary, files=files, suspects=suspects, images=images)
    return replace(result, parts=parts, summary=moved)


# On disk.


def save_result(result: PartResult, path: Path) -> None:
    """Write one part."""
    arrays: dict[str, Array] = {}
    plain: dict[str, object] = {"skipped": result.skipped, "summary": None}
    if result.summary is not None:
        plain["summary"] = split_summary(result.summary, arrays)
    arrays["json"] = encode_json(plain)
    with replace_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_result(path: Path) -> PartResult | None:
    """What was written; None where there is nothing or where it is not whole, so that the part is
    done again.
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            plain: Any = decode_json(file["json"])
            summary = None
            if plain["summary"] is not None:
                summary = join_summary(plain["summary"], file)
            return PartResult(parts=frozenset(), summary=summary, skipped=tuple(plain["skipped"]))
    except DAMAGE_ERRORS:
        return None
