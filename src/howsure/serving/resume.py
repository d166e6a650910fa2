"""Deciding a file into a file, and going on after a crash: nothing lost, nothing twice, order kept.

The output holds one complete line per decision, in the order of the input, each with the number of its input
line. So whatever a kill, a full disk or a power cut left behind is a prefix of the whole plus at most one torn
line, and going on means: cut the torn line off, check that the input still starts the same way, continue.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from howsure._core.check import InputError
from howsure.formats import scan
from howsure.formats.logs import is_log
from howsure.predictions import Predictions
from howsure.serving.lines import Line, Parse, csv_parser, format_of_first, json_row, parsed
from howsure.serving.pipes import Sink, stopping, write_all
from howsure.serving.stream import (
    PLAIN,
    Decide,
    Served,
    Serving,
    Skip,
    decide_stream,
    ended,
    numbered_ids,
    written,
)

TEXT = {".jsonl", ".ndjson", ".json", ".csv"}
ROWS = 1 << 14


def decide_file(
    decide: Decide,
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    resume: bool = False,
    how: Serving = PLAIN,
    **reading: Any,
) -> Served:
    """Decide every row of a file into a file of JSON lines; `resume=True` goes on where an earlier run ended.

    JSON lines and CSV are decided line by line, other formats (`howsure.scan`; `reading` goes there) row by row.
    With `resume` rows that the output holds are not decided again: as long as the input still begins with them
    they are passed over by position, else by their ids. Without it an output that exists is refused.

    >>> import tempfile
    >>> from howsure.policies import Policy
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.csv").write_text("id,confidence\\na,0.9\\nb,0.4\\n")
    >>> decide_file(Policy("max_prob", 0.5).decide, folder / "in.csv", folder / "out.jsonl")
    Served(decided=2, accepted=1, bad=0, skipped=0, ended='end of input')
    """
    source, target = Path(path), Path(out)
    done = None
    parts: Callable[[], Iterator[Predictions]] = lambda: scan(source, rows=ROWS, renormalise=how.renormalise, **reading)
    if resume and target.exists():
        done = _done(source, target, how.stamp, parts)
    elif target.exists() and target.stat().st_size:
        raise InputError(f"{target} exists; resume it (--resume), remove it or give another name.")
    with target.open("ab", buffering=0) as raw:
        if is_text(source):
            with source.open("rb") as lines:
                total = decide_stream(decide, lines, _Whole(raw, target), how=how, done=done)
        else:
            total = _decide_rows(decide, parts(), _Whole(raw, target), how, done)
        os.fsync(raw.fileno())
    return total


def is_text(path: str | os.PathLike[str]) -> bool:
    """Whether a file is decided line by line."""
    return Path(path).suffix.lower() in TEXT and not is_log(Path(path))


def decide_rows(
    decide: Decide, path: str | os.PathLike[str], out: Sink, how: Serving = PLAIN, **reading: Any
) -> Served:
    """Decide the rows of a file that is no text (`howsure.scan`; `reading` goes there) into a stream."""
    parts = scan(path, rows=ROWS, renormalise=how.renormalise, **reading)
    try:
        return _decide_rows(decide, parts, out, how, None)
    except BrokenPipeError:
        return Served(ended="closed pipe")


class _Whole:
    """A file that only ever grows by whole lines: what a write that fails has torn is cut off."""

    def __init__(self, raw: IO[bytes], path: Path):
        self.raw, self.path = raw, path

    def write(self, data: Any) -> int:
        try:
            write_all(self.raw, bytes(data))
        except OSError as e:
            cut_torn_line(self.path)
            raise InputError(
                f"{self.path} cannot be written: {(e.strerror or str(e)).lower()}. "
                "What was decided so far is kept; make room and go on with --resume."
            ) from None
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""


def _decide_rows(decide: Decide, parts: Iterable[Predictions], out: Sink, how: Serving, done: Skip | None) -> Served:
    total, row = Served(), 0
    with stopping() as stop:
        for part in parts:
            if stop.signal is not None:
                break
            numbers = range(row + 1, row + part.n + 1)
            row += part.n
            keep = _left(part, numbers, done)
            total = replace(total, skipped=total.skipped + part.n - len(keep))
            if keep:
                left = part if len(keep) == part.n else part[keep]
                ids = None if left.ids is None else left.ids.tolist()
                total = written(decide(left), [numbers[i] for i in keep], ids, total, out, how)
    return ended(total, stop)


def _left(part: Predictions, numbers: range, done: Skip | None) -> list[int]:
    """Positions in the part that are not decided yet."""
    if done is None:
        return list(range(part.n))
    ids = [None] * part.n if part.ids is None else part.ids.tolist()
    return [i for i, (number, name) in enumerate(zip(numbers, ids, strict=True)) if not done(number, name)]


@dataclass(frozen=True)
class Decided:
    """One line of an earlier output."""

    line: int
    id: Any
    policy: str


def _done(source: Path, target: Path, stamp: str, parts: Callable[[], Iterator[Predictions]]) -> Skip:
    """Which input rows an earlier output holds already."""
    cut_torn_line(target)
    last = _prefix(decided(target), _input_ids(source, parts), stamp, target)
    if last is not None:
        return lambda number, _: number <= last
    known = {d.id for d in decided(target)}
    if None in known:
        raise InputError(
            f"{source} no longer begins with the rows of {target}, and rows without ids cannot be told apart."
        )
    return lambda _, name: name in known


def cut_torn_line(path: Path) -> None:
    """Cut off what follows the last newline: the line that a crash tore."""
    with path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - (1 << 16))
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            file.truncate(end)


def decided(path: Path) -> Iterator[Decided]:
    """The decisions in a file."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
                yield Decided(int(row["line"]), row.get("id"), row.get("policy", ""))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise InputError(
                    f"{path}, line {number} is not a decision of howsure; resume needs its own output."
                ) from None


def _prefix(done: Iterator[Decided], rows: Iterator[tuple[int, Any]], stamp: str, target: Path) -> int | None:
    """The last decided input line if the input still begins with the decided rows, else None."""
    last = 0
    for d in done:
        if d.policy != stamp:
            raise InputError(
                f"{target} was decided by another policy ({d.policy or 'none named'}, now {stamp or 'none'})."
            )
        found = next(islice(rows, d.line - last - 1, None), None) if d.line > last else None
        if found != (d.line, d.id):
            return None
        last = d.line
    return last


def _input_ids(source: Path, parts: Callable[[], Iterator[Predictions]]) -> Iterator[tuple[int, Any]]:
    """Every row number of the input with its id, None for lines that cannot be read."""
    if not is_text(source):
        yield from numbered_ids(parts())
        return
    parse: Parse | None = None
    with source.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if parse is None and line.strip():
                parse = json_row if format_of_first(line) == "jsonl" else csv_parser(line)
            item = next(parsed([(number, line.removeprefix(b"\xef\xbb\xbf"))], parse or json_row))
            yield number, item.id if isinstance(item, Line) else None
