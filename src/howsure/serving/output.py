"""Bytes in and out: input as it arrives, whole lines out, a clean end on SIGTERM, Ctrl-C or a
closed pipe, and files that only one process writes.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

from howsure._core.check import InputError
from howsure.formats.text_lines import READ_BLOCK_BYTES


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
    lock = path.with_name(f".{path.name}.lock")
    fd = _take_lock(lock, path)
    os.ftruncate(fd, os.write(fd, f"process {os.getpid()} on {socket.gethostname()}".encode()))
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(fd)


def _take_lock(lock: Path, path: Path) -> int:
    import fcntl

    while True:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it may have removed the file since we opened it; then it locks nothing.
            if lock.exists() and lock.stat().st_ino == os.fstat(fd).st_ino:
                return fd
        except BlockingIOError:
            who = os.read(fd, 200).decode("utf-8", "replace") or "another process"
            os.close(fd)
            hint = "wait until it ends, or give another name"
            raise InputError(str(path), got=f"is being written by {who}", hint=hint) from None
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
