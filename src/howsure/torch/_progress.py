"""A bar on the terminal for what takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from time import monotonic
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 1.0  # seconds without a bar


def watched(batches: Iterable[T], what: str) -> Iterator[T]:
    """The batches; where somebody watches and it takes over a second, with a bar on standard error."""
    if not sys.stderr.isatty():
        yield from batches
        return
    rest, start, done = iter(batches), monotonic(), 0
    for batch in rest:
        yield batch
        done += 1
        if monotonic() - start > PATIENCE:
            break
    else:
        return
    yield from _barred(rest, what, done, _length(batches))


def _barred(rest: Iterator[T], what: str, done: int, total: int | None) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, completed=done)
        for batch in rest:
            yield batch
            bar.advance(task)


def _length(batches: Iterable[object]) -> int | None:
    with suppress(TypeError, AttributeError, NotImplementedError):
        return len(batches)  # pyright: ignore[reportArgumentType] - a loader may or may not have a length
    return None
