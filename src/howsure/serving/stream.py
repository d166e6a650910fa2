"""Deciding streams and files: one line in, one decision out, in order, in constant memory.

The output holds one complete line per decision, in the order of the input, each with the number of
its input line. So whatever a kill, a full disk or a power cut left behind is a prefix of the whole
plus at most one torn line, and going on means: cut the torn line off, check that the input still
starts the same way, continue.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from signal import SIGTERM
from typing import IO, Any, Literal, TypeAlias

from howsure._core.checks import InputError
from howsure._core.file_access import check_target
from howsure._core.frozen import frozen
from howsure.formats.files import locate_file as find_format
from howsure.formats.json_lines import BadLine
from howsure.formats.json_lines import read_blocks as file_blocks
from howsure.formats.streams import StreamBatch, count_case_rows, is_line_format, read_batches
from howsure.policies.policy import Decisions
from howsure.predictions import Predictions
from howsure.predictions.input_shapes import strip_label_names
from howsure.predictions.read_options import UNLABELLED_PARTS, ReadOptions
from howsure.serving.journal import (
    ByteSink,
    ClosedPipe,
    ServingError,
    StopRequested,
    StopSignal,
    case_lines,
    catch_signals,
    cut_torn_line,
    decision_lines,
    hold_lock,
    open_to_append,
    read_blocks,
    read_decisions,
    refuse_existing,
    write_all,
)

Decide: TypeAlias = Callable[[Predictions], Decisions]
Skip: TypeAlias = Callable[[int, Any], bool]  # line number and id → decided before
STDIN = Path("standard input")  # its name in messages
WITHOUT_LABELS = ReadOptions(beside=UNLABELLED_PARTS)
HALT_CHECK_LINES = 100  # between two looks at whether to go on
FILE_BATCH_ROWS = 1 << 14


@frozen
class Served:
    """What happened to a stream: decisions made, of which accepted, lines refused, and why it
    ended.
    """

    decided: int = 0
    accepted: int = 0
    bad: int = 0
    skipped: int = 0
    ended: Literal["end of input", "SIGTERM", "interrupt", "closed pipe", "alarm"] = "end of input"


@frozen
class Serving:
    """How to serve: what to do about a bad line and whom to tell, the name of the policy in each
    line, who is shown all decisions (a drift monitor, say), how the input is read, what ends the run
    after the decisions so far, and whether each line names the burst of its row."""

    on_bad: Literal["stop", "skip"] = "stop"
    report: Callable[[str], None] | None = None
    stamp: str = ""
    see: Callable[[Decisions, StreamBatch], None] | None = None
    wanted: ReadOptions = WITHOUT_LABELS
    halt: Callable[[], bool] | None = None
    bursts: bool = False

    def tell(self, message: str) -> None:
        """Report a problem, where somebody asked."""
        if self.report is not None:
            self.report(message)


PLAIN = Serving()


def decide_stream(
    decide: Decide, source: IO[bytes], out: ByteSink, *, how: Serving = PLAIN
) -> Served:
    """Decide each line of JSON or CSV as it arrives and write one JSON line for it at once.

    `decide` is `policy.decide`. A line is read by the rules of files (docs/formats.md); only what
    tells the truth (label, correct, weight) is not looked at. A first line that is no JSON object
    is a CSV header. A bad line is reported with its number and skipped, or ends the stream with an
    `InputError` after the lines before it were written. SIGTERM, Ctrl-C and a reader that goes away
    end it cleanly.

    >>> from io import BytesIO
    >>> from howsure.policies import Policy
    >>> out = BytesIO()
    >>> decide_stream(Policy("max_prob", 0.8).decide, BytesIO(b'{"id": "a", "probs": [0.9, 0.1]}'), out).accepted
    1
    >>> print(out.getvalue().decode(), end="")
    {"line":1,"id":"a","decision":"accept","prediction":0,"confidence":0.9,"score":0.9}
    """
    with catch_signals() as stop:
        lines = read_batches(read_blocks(source, stop), STDIN, how.wanted)
        total = decide_batches(decide, lines, out, how)
    return add_signal(total, stop)


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
    with hold_lock(target):
        decided_before: Skip | None = None
        if not resume:
            refuse_existing(target)
        elif target.exists():
            decided_before = _find_decided(source, target, how)
        with open_to_append(target) as sink:
            return decide_path(decide, source, sink, how, decided_before)


def decide_path(
    decide: Decide,
    path: str | os.PathLike[str],
    out: ByteSink,
    how: Serving = PLAIN,
    decided_before: Skip | None = None,
) -> Served:
    """Decide every row of a file into a stream."""
    with catch_signals() as stop:
        rows = _read_until_stopped(read_rows(Path(path), how.wanted), stop)
        total = decide_batches(decide, rows, out, how, decided_before)
    return add_signal(total, stop)


def add_signal(total: Served, stop: StopSignal) -> Served:
    """The summary with the signal that ended it, if one did."""
    if stop.signal is None:
        return total
    return replace(total, ended="SIGTERM" if stop.signal == SIGTERM else "interrupt")


# Deciding batches.


class UndeliveredError(Exception):
    """The reader went away; `total` counts what it was handed."""

    def __init__(self, total: Served):
        super().__init__()
        self.total = total


def decide_batches(
    decide: Decide,
    rows: Iterable[StreamBatch | BadLine],
    out: ByteSink,
    how: Serving,
    decided_before: Skip | None = None,
) -> Served:
    """Decide what is read, in order; `decided_before` says which lines to leave out. Ends at
    `StopRequested` and at a closed pipe.
    """
    total = Served()
    if how.halt is not None:
        rows = _cut_small(rows)  # so that little is decided after what ends the run
    try:
        for batch in rows:
            if how.halt is not None and how.halt():
                return replace(total, ended="alarm")
            if isinstance(batch, BadLine):
                total = _refuse_line(batch, total, how)
                continue
            if decided_before is not None:
                ids = batch.ids or [None] * len(batch)
                pairs = enumerate(zip(batch.lines, ids, strict=True))
                left = [i for i, (line, name) in pairs if not decided_before(line, name)]
                total = replace(total, skipped=total.skipped + len(batch) - len(left))
                if not left:
                    continue
                batch = batch.rows(left)
            total = _decide_batch(batch, total, decide, out, how)
    except UndeliveredError as e:
        return replace(e.total, ended="closed pipe")
    except StopRequested:
        pass
    return total


def _cut_small(rows: Iterable[StreamBatch | BadLine]) -> Iterator[StreamBatch | BadLine]:
    for batch in rows:
        if isinstance(batch, BadLine):
            yield batch
            continue
        for start in range(0, len(batch), HALT_CHECK_LINES):
            yield batch.rows(range(start, min(start + HALT_CHECK_LINES, len(batch))))


def _refuse_line(bad: BadLine, total: Served, how: Serving) -> Served:
    if how.on_bad == "stop":
        raise bad.error
    how.tell(str(bad.error))
    return replace(total, bad=total.bad + 1)


def _decide_batch(
    batch: StreamBatch, total: Served, decide: Decide, out: ByteSink, how: Serving
) -> Served:
    """Decide and write. Where the policy refuses the batch, halves of it are tried, down to the
    line at fault.
    """
    try:
        decisions = decide(batch.preds)
    except ServingError:  # the predictions are not at fault
        raise
    except InputError as e:
        n = len(batch)
        if n == 1:
            bad = BadLine(batch.lines[0], e.at(f"line {batch.lines[0]}"))
            return _refuse_line(bad, total, how)
        for half in (range(n // 2), range(n // 2, n)):
            total = _decide_batch(batch.rows(half), total, decide, out, how)
        return total
    if batch.names:
        lines = case_lines(decisions, batch.names, batch.lines, batch.ids, how.stamp)
    else:
        bursts = find_bursts(batch.preds) if how.bursts else None
        lines = decision_lines(decisions, batch.lines, batch.ids, how.stamp, bursts)
    try:
        write_all(out, lines)
    except ClosedPipe as e:
        # A line that was handed over in part was not delivered.
        delivered = lines[: e.delivered].count(b"\n") * batch.each
        raise UndeliveredError(_add_decisions(total, decisions[:delivered])) from None
    if how.see is not None:
        how.see(decisions, batch)
    return _add_decisions(total, decisions)


def _add_decisions(total: Served, decisions: Decisions) -> Served:
    accepted = total.accepted + int(decisions.accept.sum())
    return replace(total, decided=total.decided + len(decisions), accepted=accepted)


def find_bursts(preds: Predictions) -> list[str]:
    """The burst of each row."""
    if preds.group is None:
        raise InputError(
            "the rows do not say which burst they belong to", hint="check the name in --burst"
        )
    return [str(name) for name in preds.group.tolist()]


# Reading files.


def _read_until_stopped(
    rows: Iterable[StreamBatch | BadLine], stop: StopSignal
) -> Iterator[StreamBatch | BadLine]:
    for batch in rows:
        stop.check()
        yield batch


def read_rows(source: Path, wanted: ReadOptions) -> Iterator[StreamBatch | BadLine]:
    """The rows of a file, which are lines where it is a text file, and images where a score of
    images is wanted.
    """
    from howsure.formats.logs import is_log

    score = wanted.image_score
    if score is not None or not is_log(source, wanted.format):
        there = find_format(source)[1]
        if is_line_format(there):
            if score is None:
                yield from read_batches(file_blocks(there), there, wanted)
                return
            raise InputError(
                str(source),
                got="has a pixel on every line",
                need="images are decided from arrays (image, class, height, width)",
            )
    from howsure.formats.files import scan_files

    row = 1
    for part in scan_files([source], wanted, FILE_BATCH_ROWS):
        if score is not None:
            from howsure.predictions.images import image_confidences

            part = image_confidences(part, score)  # a part holds whole images
        cases = part.n // count_case_rows(part)
        ids: list[Any] | None = None
        if part.ids is not None:
            ids = part.ids.tolist()
            # A case with many labels has one id.
            if part.layout is not None and part.layout.parts == "labels":
                ids = strip_label_names(part.ids, part.layout).tolist()
        yield StreamBatch(part, range(row, row + cases), ids)
        row += cases


# Resuming.


def _find_decided(source: Path, target: Path, how: Serving) -> Skip:
    """Which input rows an earlier output holds already."""
    cut_torn_line(target)
    # By position, as long as the input still begins with the decided rows.
    rows = _read_ids(source, how.wanted)
    last = 0
    for record in read_decisions(target):
        if record.policy != how.stamp:
            before, now = record.policy or "none named", how.stamp or "none"
            raise InputError(
                str(target), got=f"was decided by another policy ({before}, now {now})"
            )
        # Lines that were bad have no decision, so the input may be ahead of the output.
        row = next((row for row in rows if row[0] >= record.line), None)
        if row != (record.line, record.id):
            break
        last = record.line
    else:
        return lambda number, _: number <= last
    # The input was changed: rows are known again by their ids.
    known = {record.id for record in read_decisions(target)}
    if None in known:
        got = (
            f"no longer begins with the rows of {target}, and rows without ids cannot be told apart"
        )
        raise InputError(str(source), got=got)
    return lambda _, name: name in known


def _read_ids(source: Path, wanted: ReadOptions) -> Iterator[tuple[int, Any]]:
    """Every row of the input that can be read: its number and its id."""
    for batch in read_rows(source, wanted):
        if isinstance(batch, StreamBatch):
            yield from zip(batch.lines, batch.ids or [None] * len(batch), strict=True)
