"""Where decisions go: a file that only one process writes and that only ever grows by whole lines."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from howsure._core.check import InputError
from howsure.formats.lines import BLOCK
from howsure.serving.pipes import write_all


class Whole:
    """What a write that fails has torn is cut off."""

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
def appending(path: Path) -> Generator[Whole]:
    """The file, on disk when the block ends."""
    with path.open("ab", buffering=0) as raw:
        yield Whole(raw, path)
        os.fsync(raw.fileno())


@contextmanager
def new(path: Path) -> Generator[Whole]:
    """A file that is not there yet, or is empty."""
    with held(path):
        refuse_if_there(path)
        with appending(path) as out:
            yield out


def refuse_if_there(path: Path) -> None:
    """Refuse an output that holds something."""
    if path.exists() and path.stat().st_size:
        raise InputError(
            str(path), got="exists", hint="resume it (--resume), remove it or give another name"
        )


@contextmanager
def held(path: Path) -> Generator[None]:
    """A lock on `path` that ends with the process, however it ends; where another has it, it is
    named.

    Where the system has no such locks (Windows, a browser) nothing is locked.
    """
    if find_spec("fcntl") is None:
        yield
        return
    lock = path.with_name(f".{path.name}.lock")
    fd = _locked(lock, path)
    os.ftruncate(fd, os.write(fd, f"process {os.getpid()} on {socket.gethostname()}".encode()))
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(fd)


def _locked(lock: Path, path: Path) -> int:
    import fcntl

    while True:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.exists() and lock.stat().st_ino == os.fstat(fd).st_ino:
                return fd
        except BlockingIOError:
            who = os.read(fd, 200).decode("utf-8", "replace") or "another process"
            os.close(fd)
            hint = "wait until it ends, or give another name"
            raise InputError(str(path), got=f"is being written by {who}", hint=hint) from None
        os.close(fd)  # the other process removed the lock just now


def cut_torn_line(path: Path) -> None:
    """Cut off what follows the last newline: the line that a crash tore."""
    with path.open("r+b") as file:
        end = path.stat().st_size
        while end > 0:
            start = max(0, end - BLOCK)
            file.seek(start)
            found = file.read(BLOCK).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        file.truncate(end)
