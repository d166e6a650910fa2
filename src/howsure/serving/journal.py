"""The journal of a run: one line for each decision, and the states that change on the way.

Decisions are written here and read back here, so that a run can be resumed and a state can catch up
with an output. A `StateFile` is the one way in which an online policy, a drift monitor and a
guarantee monitor are kept on disk: saved whole, at most once a second.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from json.encoder import encode_basestring_ascii
from math import inf, isfinite
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import IO, Any, Generic, NotRequired, Protocol, TypedDict, TypeVar, cast

import numpy as np

from howsure._core import strict_json
from howsure._core.checks import Array, InputError
from howsure._core.frozen import frozen
from howsure._core.text import escape_json
from howsure.formats.json_lines import READ_BLOCK_BYTES
from howsure.policies.policy import Decisions

SAVE_SECONDS = 1.0  # between two saves of a state
DECISION_WORDS = {True: '"accept"', False: '"defer"'}

S = TypeVar("S")


class ServingError(InputError):
    """Something is wrong that has nothing to do with the predictions at hand."""


class StateFile(Generic[S]):
    """A state, and how it is saved; `save` must write whole or not at all, as `howsure.save` does."""

    def __init__(self, state: S, save: Callable[[S], None]):
        self.state, self._save, self._saved = state, save, monotonic()

    @property
    def due(self) -> bool:
        """Whether the last save is long enough ago."""
        return monotonic() - self._saved >= SAVE_SECONDS

    def save(self) -> None:
        """Write the state."""
        self._save(self.state)
        self._saved = monotonic()


# Writing decisions.


def decision_lines(
    decisions: Decisions,
    numbers: Iterable[int],
    ids: Sequence[Any] | None,
    stamp: str = "",
    bursts: Sequence[str] | None = None,
) -> bytes:
    """One JSON line for each decision."""
    tail = _format_stamp(stamp)
    # Formatted by column, not as one dictionary per line: this is the hot path of a stream.
    names = _format_ids(ids, len(decisions))
    columns = zip(numbers, names, *_format_columns(decisions, bursts), strict=True)
    lines = [
        f'{{"line":{n},{name}"decision":{a},"prediction":{p},"confidence":{c},"score":{s}{x}{tail}\n'
        for n, name, a, p, c, s, x in columns
    ]
    return "".join(lines).encode()


def case_lines(
    decisions: Decisions,
    names: Sequence[str],
    numbers: Sequence[int],
    ids: Sequence[Any] | None,
    stamp: str = "",
) -> bytes:
    """One JSON line for each case, with the decision about each of its labels."""
    tail = _format_stamp(stamp)
    labels = [strict_json.dump_line(name) for name in names]
    columns = zip(labels * len(numbers), *_format_columns(decisions), strict=True)
    inner = (
        f'{label}:{{"decision":{a},"prediction":{p},"confidence":{c},"score":{s}{x}}}'
        for label, a, p, c, s, x in columns
    )
    lines: list[str] = []
    for number, name in zip(numbers, _format_ids(ids, len(numbers)), strict=True):
        parts = islice(inner, len(labels))
        lines.append(f'{{"line":{number},{name}"labels":{{{",".join(parts)}}}{tail}\n')
    return "".join(lines).encode()


def _format_stamp(stamp: str) -> str:
    return f',"policy":{strict_json.dump_line(stamp)}}}' if stamp else "}"


def _format_ids(ids: Sequence[Any] | None, n: int) -> list[str]:
    if ids is None:
        return [""] * n
    if all(type(name) is str for name in ids):  # nearly always; a name has no line of its own
        names = escape_json("\n".join(map(encode_basestring_ascii, ids))).split("\n")
        return [f'"id":{name},' for name in names]
    return ["" if name is None else f'"id":{_format_value(name)},' for name in ids]


def _format_columns(
    decisions: Decisions, bursts: Sequence[str] | None = None
) -> tuple[Iterable[str], ...]:
    """Of each row as JSON: the decision, the answer, its confidence, its score, and what else is
    known of it.
    """
    n = len(decisions)
    extra = [""] * n
    if decisions.audit is not None:
        extra = [
            ',"audit":true' if asked else ',"audit":false' for asked in decisions.audit.tolist()
        ]
        tickets = decisions.ticket
        if tickets is not None:
            extra = [f'{x},"ticket":"{t}"' for x, t in zip(extra, tickets, strict=True)]
    if decisions.segment is not None and decisions.known is not None:
        for i, (name, known) in enumerate(zip(decisions.segment, decisions.known, strict=True)):
            extra[i] += f',"segment":{strict_json.dump_line(str(name))}'
            if not known:
                extra[i] += ',"known":false'
    if decisions.next is not None:
        for i, name in enumerate(decisions.next.tolist()):
            if name:
                extra[i] += f',"next":{strict_json.dump_line(name)}'
    if decisions.suggested is not None:
        for i, (row, accepted) in enumerate(
            zip(decisions.suggestions(), decisions.accept.tolist(), strict=True)
        ):
            if not accepted:
                extra[i] += f',"suggestions":{strict_json.dump_line(row)}'
    if bursts is not None:
        extra = [
            f'{x},"burst":{strict_json.dump_line(name)}'
            for x, name in zip(extra, bursts, strict=True)
        ]
    # A class number below 0 stands for one that is not known.
    answers = cast("list[Any]", decisions.prediction.tolist())
    words: list[str]
    if decisions.prediction.dtype.kind not in "iu":
        words = [_format_value(answer) for answer in answers]
    elif decisions.class_names is None:
        words = ["null" if answer == -1 else str(answer) for answer in answers]
    else:
        names = [strict_json.dump_line(name) for name in decisions.class_names]
        words = [names[answer] if answer >= 0 else "null" for answer in answers]
    confidence = score = _format_numbers(decisions.confidence)
    # Often the score is the confidence, to the last bit.
    same = decisions.score.dtype == decisions.confidence.dtype
    if not same or decisions.score.tobytes() != decisions.confidence.tobytes():
        score = _format_numbers(decisions.score)
    decided = [DECISION_WORDS[accepted] for accepted in decisions.accept.tolist()]
    return decided, words, confidence, score, extra


def _format_value(value: Any) -> str:
    return str(value) if type(value) is int else strict_json.dump_line(value)


def _format_numbers(x: Array) -> list[str]:
    """Numbers as JSON writes them; infinite scores become null."""
    if np.isfinite(x).all():  # nearly always
        return list(map(repr, x.tolist()))
    return [repr(value) if isfinite(value) else "null" for value in x.tolist()]


# Reading them back.


class DecisionLine(TypedDict):
    """What resuming needs of a line of decisions."""

    line: int
    id: NotRequired[object]
    policy: NotRequired[str]
    decision: NotRequired[str]
    score: NotRequired[float | None]
    burst: NotRequired[str]


@frozen
class DecisionRecord:
    """One line of an earlier output."""

    line: int
    id: Any
    policy: str
    accept: bool
    score: float
    burst: str | None
    start: int  # its first byte in the file


def read_decisions(path: Path) -> Iterator[DecisionRecord]:
    """The decisions in a file."""
    start = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = strict_json.check_typed(strict_json.loads(line), DecisionLine)
            except ValueError:
                raise InputError(
                    f"{path}, line {number}",
                    got="is not a decision of howsure",
                    need="resume needs its own output",
                ) from None
            accept, score = row.get("decision") == "accept", row.get("score")
            if score is None:  # infinite: accepted where it is above every threshold
                score = inf if accept else -inf
            yield DecisionRecord(
                line=row["line"],
                id=row.get("id"),
                policy=row.get("policy", ""),
                accept=accept,
                score=score,
                burst=row.get("burst"),
                start=start,
            )
            start += len(line)


def count_lines(path: Path | None) -> int:
    """How many complete lines a file has; none where there is no file."""
    if path is None or not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(READ_BLOCK_BYTES), b""))


class ByteSink(Protocol):
    """Where bytes go: a file, a pipe, a buffer."""

    def write(self, data: Any, /) -> int | None: ...
    def flush(self) -> None: ...


class StopRequested(Exception):
    """The end was asked for while something waited for input; a line that had not arrived whole is
    dropped.
    """


class StopSignal:
    """Whether the end was asked for; `fd` becomes readable then, so that a waiting read wakes up."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.fd, self._wake = os.pipe()
        for end in (self.fd, self._wake):
            os.set_blocking(end, False)

    def ask(self, number: int, frame: FrameType | None = None) -> None:  # noqa: ARG002 - a signal handler
        """Remember the signal and wake up."""
        self.signal = number
        with suppress(BlockingIOError):  # a full pipe is awake already
            os.write(self._wake, b"x")

    def check(self) -> None:
        """Raise `StopRequested` where the end was asked for."""
        if self.signal is not None:
            raise StopRequested

    def close(self) -> None:
        """Close both ends of the pipe."""
        os.close(self.fd)
        os.close(self._wake)


@contextmanager
def catch_signals() -> Generator[StopSignal, None, None]:
    """A `StopSignal` that SIGTERM and Ctrl-C set, instead of ending the program in the middle of a
    line.

    The block ends where `StopRequested` is raised inside it.
    """
    stop = StopSignal()
    handlers: dict[int, Any] = {}
    # Python takes signal handlers from the main thread alone.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            handlers[number] = signal.signal(number, stop.ask)
    try:
        with suppress(StopRequested):
            yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        stop.close()


def read_blocks(source: IO[bytes], stop: StopSignal) -> Iterator[bytes]:
    """What is there, as soon as it is there."""
    try:
        fd = source.fileno()
    except (OSError, AttributeError):  # a buffer in memory
        fd = None
    while True:
        stop.check()
        if fd is None:
            block = source.read(READ_BLOCK_BYTES)
        else:
            # Wait for input or for a signal, whichever comes first.
            select.select([fd, stop.fd], [], [])
            stop.check()
            block = os.read(fd, READ_BLOCK_BYTES)
        if not block:
            return
        yield block


class ClosedPipe(Exception):
    """The reader went away after it was handed `delivered` bytes."""

    def __init__(self, delivered: int):
        super().__init__(delivered)
        self.delivered = delivered


def write_all(out: ByteSink, data: bytes) -> None:
    """Write everything, also where the system takes it in pieces; raise `ClosedPipe` where nobody
    takes it any more.
    """
    view = memoryview(data)
    try:
        while len(view):
            written = out.write(view)
            view = view[written or 0 :]
        out.flush()
    except BrokenPipeError:
        raise ClosedPipe(len(data) - len(view)) from None


class AppendOnlyFile:
    """A file that grows by whole lines: what a failing write has torn is cut off."""

    def __init__(self, raw: IO[bytes], path: Path):
        self.raw, self.path = raw, path

    def write(self, data: Any) -> int:
        try:
            write_all(self.raw, bytes(data))
        except OSError as e:
            cut_torn_line(self.path)
            raise InputError(
                str(self.path),
                got=f"cannot be written: {(e.strerror or str(e)).lower()}",
                hint="What was decided so far is kept; make room and go on with --resume",
            ) from None
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""


@contextmanager
def open_to_append(path: Path) -> Generator[AppendOnlyFile]:
    """The file, on disk when the block ends."""
    with path.open("ab", buffering=0) as raw:
        yield AppendOnlyFile(raw, path)
        os.fsync(raw.fileno())


@contextmanager
def open_new(path: Path) -> Generator[AppendOnlyFile]:
    """A file that is not there yet, or is empty."""
    with hold_lock(path):
        refuse_existing(path)
        with open_to_append(path) as out:
            yield out


def refuse_existing(path: Path) -> None:
    """Refuse an output that holds something."""
    if path.exists() and path.stat().st_size:
        raise InputError(
            str(path), got="exists", hint="resume it (--resume), remove it or give another name"
        )


@contextmanager
def hold_lock(path: Path | None) -> Generator[None]:
    """A lock on `path` that ends with the process, however it ends; where another has it, it is
    named.

    Where the system has no such locks (Windows, a browser), or without a path, nothing is locked.
    """
    if path is None or find_spec("fcntl") is None:
        yield
        return
    import fcntl

    # One lock for all names of one file.
    file = Path(os.path.realpath(path))
    lock = file.with_name(f".{file.name}.lock")
    while True:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.read(fd, 200).decode("utf-8", "replace") or "another process"
            os.close(fd)
            hint = "wait until it ends, or give another name"
            raise InputError(str(path), got=f"is being written by {who}", hint=hint) from None
        # Whoever held it may have removed the file since we opened it; then it locks nothing.
        if lock.exists() and lock.stat().st_ino == os.fstat(fd).st_ino:
            break
        os.close(fd)
    try:
        with suppress(OSError):  # on a full disk it locks without a name
            name = f"process {os.getpid()} on {socket.gethostname()}"
            os.ftruncate(fd, os.write(fd, name.encode()))
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(fd)


def cut_torn_line(path: Path) -> None:
    """Cut off what follows the last newline: the line that a crash tore."""
    with path.open("r+b") as file:
        end = path.stat().st_size
        while end > 0:
            start = max(0, end - READ_BLOCK_BYTES)
            file.seek(start)
            newline = file.read(READ_BLOCK_BYTES).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        file.truncate(end)
