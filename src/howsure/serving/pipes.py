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

from howsure.formats.lines import BLOCK


class Sink(Protocol):
    """Where bytes go: a file, a pipe, a buffer."""

    def write(self, data: Any, /) -> int | None: ...
    def flush(self) -> None: ...


class Stopped(Exception):
    """The end was asked for while something waited for input; a line that had not arrived whole is
    none.
    """


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

    def check(self) -> None:
        """Raise `Stopped` where the end was asked for."""
        if self.signal is not None:
            raise Stopped

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self.fd)
        os.close(self._wake)


@contextmanager
def stopping() -> Generator[Stop, None, None]:
    """A `Stop` that SIGTERM and Ctrl-C set, instead of ending the program in the middle of a line.

    The block ends where `Stopped` is raised inside it.
    """
    stop = Stop()
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {s: signal.signal(s, stop.ask) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        with suppress(Stopped):
            yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()


def blocks(source: IO[bytes], stop: Stop) -> Iterator[bytes]:
    """What is there, as soon as it is there."""
    fd = _descriptor(source)
    while True:
        stop.check()
        if fd is None:
            block = source.read(BLOCK)
        else:
            select.select([fd, stop.fd], [], [])
            stop.check()
            block = os.read(fd, BLOCK)
        if not block:
            return
        yield block


def _descriptor(source: IO[bytes]) -> int | None:
    try:
        return source.fileno()
    except (OSError, AttributeError):
        return None


class ClosedPipe(Exception):
    """The reader went away after it was handed `delivered` bytes."""

    def __init__(self, delivered: int):
        super().__init__(delivered)
        self.delivered = delivered


def write_all(out: Sink, data: bytes) -> None:
    """Write everything, also where the system takes it in pieces; `ClosedPipe` where nobody takes
    it any more.
    """
    view = memoryview(data)
    try:
        while len(view):
            written = out.write(view)
            view = view[written or 0 :]
        out.flush()
    except BrokenPipeError:
        raise ClosedPipe(len(data) - len(view)) from None
