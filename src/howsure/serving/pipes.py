"""Bytes in as they arrive, whole lines out, and a clean end on SIGTERM, Ctrl-C or a closed pipe."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, Any, Protocol

from howsure._core.check import InputError

BLOCK = 1 << 18
LONGEST = 1 << 26  # a line beyond this is no line


class Sink(Protocol):
    """Where bytes go: a file, a pipe, a buffer."""

    def write(self, data: Any, /) -> int | None: ...
    def flush(self) -> None: ...


class Stop:
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

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self.fd)
        os.close(self._wake)


@contextmanager
def stopping() -> Generator[Stop, None, None]:
    """A `Stop` that SIGTERM and Ctrl-C set, instead of ending the program in the middle of a line."""
    stop = Stop()
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {s: signal.signal(s, stop.ask) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()


def blocks(source: IO[bytes], stop: Stop) -> Iterator[bytes]:
    """What is there, as soon as it is there."""
    fd = _descriptor(source)
    while stop.signal is None:
        if fd is None:
            block = source.read(BLOCK)
        else:
            select.select([fd, stop.fd], [], [])
            if stop.signal is not None:
                return
            block = os.read(fd, BLOCK)
        if not block:
            return
        yield block


def _descriptor(source: IO[bytes]) -> int | None:
    try:
        return source.fileno()
    except (OSError, AttributeError):
        return None


def line_batches(source: IO[bytes], stop: Stop) -> Iterator[list[tuple[int, bytes]]]:
    """Complete lines with their numbers, as many as each block brought; a last line needs no newline."""
    number, rest = 0, b""
    for block in blocks(source, stop):
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > LONGEST:
            raise InputError(f"line {number + len(lines) + 1} is longer than {LONGEST >> 20} MB; is this text?")
        if lines:
            yield list(enumerate(lines, start=number + 1))
            number += len(lines)
    if rest.strip() and stop.signal is None:
        yield [(number + 1, rest)]


def write_all(out: Sink, data: bytes) -> None:
    """Write everything, also where the system takes it in pieces."""
    view = memoryview(data)
    while len(view):
        written = out.write(view)
        view = view[written or 0 :]
    out.flush()
