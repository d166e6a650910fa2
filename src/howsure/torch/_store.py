"""Rows that arrive in batches: kept in memory up to a limit, then in a file that is mapped."""

from __future__ import annotations

import mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np

from howsure._core.check import Array, InputError


class Store:
    """Collects arrays of equal rows. The file has no name: it is gone when the last array made of it is.

    >>> with Store(memory=20) as store:
    ...     store.add(np.zeros((2, 3)))
    ...     store.array().shape
    (2, 3)
    """

    def __init__(self, memory: int, folder: Path | None = None) -> None:
        self.memory, self.folder = memory, folder
        self.kept: list[Array] = []
        self.bytes = 0
        self.file: IO[bytes] | None = None
        self.like: Array | None = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()  # what is mapped stays

    def add(self, rows: Array) -> None:
        """The next rows, (n, ...)."""
        if self.like is None:
            self.like = rows[:0]
        elif rows.shape[1:] != self.like.shape[1:] or rows.dtype != self.like.dtype:
            raise InputError(
                f"a batch gives {rows.shape[-1]} classes of {rows.dtype}, those before gave {self.like.shape[-1]} of "
                f"{self.like.dtype}; all batches must agree."
            )
        self.kept.append(rows)
        self.bytes += rows.nbytes
        if self.bytes > self.memory:
            self._spill()

    def array(self) -> Array:
        """All rows; read-only where they are in the file."""
        if self.like is None:
            raise InputError("the loader gave no batch; at least one sample is needed.")
        if self.file is None:
            return np.concatenate(self.kept)
        self.file.flush()
        mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, dtype=self.like.dtype).reshape(-1, *self.like.shape[1:])

    def _spill(self) -> None:
        if self.file is None:
            self.file = TemporaryFile(dir=self.folder)  # noqa: SIM115 - closed on exit
        for rows in self.kept:
            self.file.write(np.ascontiguousarray(rows).tobytes())
        self.kept.clear()
