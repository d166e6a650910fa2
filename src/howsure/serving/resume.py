"""Deciding a file into a file, and going on after a crash: nothing lost, nothing twice, order kept.

The output holds one complete line per decision, in the order of the input, each with the number of
its input line. So whatever a kill, a full disk or a power cut left behind is a prefix of the whole
plus at most one torn line, and going on means: cut the torn line off, check that the input still
starts the same way, continue.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from howsure._core import json
from howsure._core.atomic import check_target
from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.formats.catalogue import found
from howsure.formats.files import scan_wanted
from howsure.formats.lines import BLOCK, BadLine, file_blocks
from howsure.formats.logs import is_log
from howsure.formats.names import Wanted
from howsure.formats.streams import Batch, batches, is_lines, rows_of_a_case
from howsure.predictions import Predictions
from howsure.predictions.images import image_confidences
from howsure.predictions.layout import case_ids
from howsure.serving.output import appending, cut_torn_line, held, refuse_if_there
from howsure.serving.pipes import Sink, Stop, stopping
from howsure.serving.stream import PLAIN, Decide, Served, Serving, Skip, decide_batches, ended

ROWS = 1 << 14


def decide_file(
    decide: Decide,
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    resume: bool = False,
    how: Serving = PLAIN,
) -> Served:
    """Decide every row of a file into a file of JSON lines; `resume=True` goes on where an earlier
    run ended.

    JSON lines and CSV are decided line by line, other formats row by row. With `resume` rows that
    the output holds are not decided again: as long as the input still begins with them they are
    passed over by position, else by their ids. Without it an output that exists is refused.

    >>> import tempfile
    >>> from howsure.policies import Policy
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.csv").write_text("id,confidence\\na,0.9\\nb,0.4\\n")
    >>> decide_file(Policy("max_prob", 0.5).decide, folder / "in.csv", folder / "out.jsonl")
    Served(decided=2, accepted=1, bad=0, skipped=0, ended='end of input')
    """
    source, target = Path(path), Path(out)
    check_target(target)
    with held(target):
        done = _done(source, target, how) if resume and target.exists() else None
        if not resume:
            refuse_if_there(target)
        with appending(target) as sink:
            return _decide_path(decide, source, sink, how, done)


def decide_path(
    decide: Decide, path: str | os.PathLike[str], out: Sink, how: Serving = PLAIN
) -> Served:
    """Decide every row of a file into a stream."""
    return _decide_path(decide, Path(path), out, how, None)


def _decide_path(
    decide: Decide, source: Path, out: Sink, how: Serving, done: Skip | None
) -> Served:
    with stopping() as stop:
        found = _unless(stop, _rows(source, how.wanted))
        total = decide_batches(decide, found, out, how, done)
    return ended(total, stop)


def _unless(stop: Stop, found: Iterable[Batch | BadLine]) -> Iterator[Batch | BadLine]:
    for batch in found:
        stop.check()
        yield batch


def _rows(source: Path, wanted: Wanted) -> Iterator[Batch | BadLine]:
    """The rows of a file, which are lines where it is a text file."""
    if wanted.image_score is not None:
        yield from _images(source, wanted, wanted.image_score)
        return
    if not is_log(source, wanted.format) and is_lines(there := found(source)[1]):
        yield from batches(file_blocks(there), there, wanted)
        return
    row = 1
    for part in scan_wanted([source], wanted, ROWS):
        n = part.n // rows_of_a_case(part)
        yield Batch(part, range(row, row + n), _ids(part))
        row += n


def _images(source: Path, wanted: Wanted, score: str) -> Iterator[Batch | BadLine]:
    """The images of a file of arrays; a part holds whole ones."""
    if is_lines(found(source)[1]):
        got = "has a pixel on every line"
        raise InputError(
            str(source),
            got=got,
            need="images are decided from arrays (image, class, height, width)",
        )
    row = 1
    for part in scan_wanted([source], wanted, ROWS):
        images = image_confidences(part, score)
        yield Batch(
            images, range(row, row + images.n), None if images.ids is None else images.ids.tolist()
        )
        row += images.n


def _ids(part: Predictions) -> list[Any] | None:
    """The id of each row, or of each case where a case has many labels."""
    if part.ids is None:
        return None
    layout = part.layout
    if layout is None or layout.parts != "labels":
        return part.ids.tolist()
    return case_ids(part.ids, layout).tolist()


@frozen
class Decided:
    """One line of an earlier output."""

    line: int
    id: Any
    policy: str
    accept: bool
    score: (
        float  # infinite ones stand as null, and are accepted where they are above every threshold
    )
    burst: str | None


def _done(source: Path, target: Path, how: Serving) -> Skip:
    """Which input rows an earlier output holds already."""
    cut_torn_line(target)
    last = _prefix(decided(target), _input_ids(source, how.wanted), how.stamp, target)
    if last is not None:
        return lambda number, _: number <= last
    known = {d.id for d in decided(target)}
    if None in known:
        got = (
            f"no longer begins with the rows of {target}, and rows without ids cannot be told apart"
        )
        raise InputError(str(source), got=got)
    return lambda _, name: name in known


class DecisionLine(TypedDict):
    """What resuming needs of a line of decisions."""

    line: int
    id: NotRequired[object]
    policy: NotRequired[str]
    decision: NotRequired[str]
    score: NotRequired[float | None]
    burst: NotRequired[str]


def decided(path: Path) -> Iterator[Decided]:
    """The decisions in a file."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.typed(json.loads(line), DecisionLine)
                accept, score = row.get("decision") == "accept", row.get("score")
                score = (inf if accept else -inf) if score is None else score
                yield Decided(
                    row["line"],
                    row.get("id"),
                    row.get("policy", ""),
                    accept,
                    score,
                    row.get("burst"),
                )
            except ValueError:
                raise InputError(
                    f"{path}, line {number}",
                    got="is not a decision of howsure",
                    need="resume needs its own output",
                ) from None


def whole_lines(path: Path | None) -> int:
    """How many complete lines a file has; none where there is no file."""
    if path is None or not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(BLOCK), b""))


def _prefix(
    done: Iterator[Decided], rows: Iterator[tuple[int, Any]], stamp: str, target: Path
) -> int | None:
    """The last decided input line if the input still begins with the decided rows, else None."""
    last = 0
    for d in done:
        if d.policy != stamp:
            got = (
                f"was decided by another policy ({d.policy or 'none named'}, now {stamp or 'none'})"
            )
            raise InputError(str(target), got=got)
        if next((row for row in rows if row[0] >= d.line), None) != (d.line, d.id):
            return None
        last = d.line
    return last


def _input_ids(source: Path, wanted: Wanted) -> Iterator[tuple[int, Any]]:
    """Every row of the input that can be read: its number and its id."""
    for batch in _rows(source, wanted):
        if isinstance(batch, Batch):
            yield from zip(batch.lines, batch.ids or [None] * len(batch), strict=True)
