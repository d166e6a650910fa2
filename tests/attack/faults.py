"""Writes, flushes and renames inside a folder, each of which can be made to fail once.

`watching` counts them; with `at` the k-th one fails, as on a full disk or as where the process is
killed. A write that fails has written half of what it was given; a flush, a close and a rename have
not happened.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Faults:
    """The points that were passed; number `at` (from 1) fails, with an error of a full disk or with
    the end.
    """

    folder: Path
    at: int | None = None
    kill: bool = False
    passed: list[str] = field(default_factory=list)

    def mine(self, path: object) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and Path(
            os.fsdecode(path)
        ).is_relative_to(self.folder)

    def point(self, kind: str, path: object, half: Callable[[], object] = lambda: None) -> None:
        """Pass a point; where it is the one that fails, do half of it first."""
        self.passed.append(
            f"{kind} {Path(os.fsdecode(path)).name if isinstance(path, str | os.PathLike) else ''}"
        )
        if len(self.passed) != self.at:
            return
        half()
        if self.kill:
            os._exit(9)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


class File:
    """A file open for writing, whose writes, flushes and close are points."""

    def __init__(self, raw: Any, path: str, faults: Faults):
        self.__dict__.update(_raw=raw, _path=path, _faults=faults)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def write(self, data: Any) -> Any:
        self._faults.point("write", self._path, lambda: self._halved(data))
        return self._raw.write(data)

    def _halved(self, data: Any) -> None:
        self._raw.write(data[: len(data) // 2])
        self._raw.flush()

    def flush(self) -> None:
        self._faults.point("flush", self._path)
        self._raw.flush()

    def close(self) -> None:
        if not self._raw.closed:
            try:
                self._faults.point("flush", self._path)
            finally:
                self._raw.close()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._raw)


@contextmanager
def watching(faults: Faults, *savers: tuple[Any, str]) -> Iterator[Faults]:
    """Points are counted inside the block; `savers` are functions (value, path) that write by other
    means.
    """
    opened, replaced, renamed, synced = io.open, os.replace, os.rename, os.fsync
    known = [(module, name, getattr(module, name)) for module, name in savers]

    def open_(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        made = opened(file, mode, *args, **options)
        return (
            File(made, os.fspath(file), faults)
            if faults.mine(file) and set(mode) & set("wax+")
            else made
        )

    def moved(move: Callable[..., None]) -> Callable[..., None]:
        def now(source: Any, target: Any, **options: Any) -> None:
            if faults.mine(target):
                faults.point("rename", target)
            move(source, target, **options)

        return now

    def sync(fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if faults.mine(path):
            faults.point("flush", path)
        synced(fd)

    def saved(save: Callable[..., None]) -> Callable[..., None]:
        def now(value: object, path: Any) -> None:
            if faults.mine(path):
                faults.point("write", path, lambda: Path(path).write_bytes(b"PK half of a file"))
            save(value, path)

        return now

    try:
        io.open = builtins.open = open_  # type: ignore[assignment]
        os.replace, os.rename, os.fsync = moved(replaced), moved(renamed), sync  # type: ignore[assignment]
        for module, name, save in known:
            setattr(module, name, saved(save))
        yield faults
    finally:
        io.open = builtins.open = opened
        os.replace, os.rename, os.fsync = replaced, renamed, synced
        for module, name, save in known:
            setattr(module, name, save)


def run(job: Callable[[], object], faults: Faults, *savers: tuple[Any, str]) -> int:
    """Do the job in a process of its own: 0 where it ended well, 9 where it was killed, 2 where it
    failed in words.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with watching(faults, *savers):
                job()
            code = 0
        except (ValueError, OSError):
            code = 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
