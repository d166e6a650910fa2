"""What the page of `howsure app` calls in its worker: the command line itself, with what it
printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np


def run_command(
    arguments: Sequence[str], tell: Callable[[str], object], stage: Callable[[str], object] = len
) -> tuple[int, str, str]:
    """Run `howsure` with these arguments: its exit code, standard output and standard error.

    `tell` gets the lines of standard error while they are written, `stage` what is being worked on.

    >>> run_command(["--version"], tell=str)[1].split(",")[0]
    'howsure'
    """
    from howsure._core.text import listener
    from howsure.cli.main import main

    widen_numpy()
    # A report records the command that made it, which it reads from sys.argv.
    before, sys.argv = sys.argv, ["howsure", *arguments]
    out, err = StringIO(), _ForwardedText(tell)
    previous = listener.set(stage)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(list(arguments))
    except SystemExit as e:
        return int(e.code or 0), out.getvalue(), err.getvalue()
    finally:
        listener.reset(previous)
        sys.argv = before


def run_example(source: str) -> str:
    """Run an example of the gallery: what it printed.

    >>> run_example("print(1 + 1)")
    '2\\n'
    """
    widen_numpy()
    with redirect_stdout(StringIO()) as out:
        exec(compile(source, "example", "exec"), {"__name__": "__main__"})
    return out.getvalue()


class _ForwardedText(StringIO):
    """Text that is also handed on line by line while it is written."""

    def __init__(self, tell: Callable[[str], object]):
        super().__init__()
        self._tell = tell

    def write(self, s: str, /) -> int:
        if s.strip():
            self._tell(s.strip())
        return super().write(s)


def widen_numpy() -> None:
    """Let NumPy take indices of 64 bits where a pointer has 32, as in the browser.

    There `bincount`, `repeat` and `add.reduceat` refuse them, although they fit; and counts come
    back with 32 bits. Nothing is replaced on a machine of 64 bits.
    """
    if np.intp().itemsize == 8:
        return
    narrow_bincount, narrow_repeat = np.bincount, np.repeat

    def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
        counts = narrow_bincount(np.asarray(x).astype(np.intp), weights, minlength)
        return counts.astype(np.int64) if weights is None else counts

    def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
        return narrow_repeat(a, np.asarray(repeats).astype(np.intp), axis)

    np.__dict__.update(bincount=bincount, repeat=repeat, add=WideAdd(np.add))


class WideAdd:
    """`np.add` whose `reduceat` takes indices of any width."""

    def __init__(self, real: Any):
        self._real = real

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._real(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def reduceat(self, array: Any, indices: Any, **options: Any) -> Any:
        return self._real.reduceat(array, np.asarray(indices, dtype=np.intp), **options)
