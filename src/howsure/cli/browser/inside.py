"""What the page calls in its worker: the command line itself, with what it printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from howsure.cli.browser.narrow import widen


class _Lines(StringIO):
    """Text that is also handed on line by line while it is written."""

    def __init__(self, tell: Callable[[str], object]):
        super().__init__()
        self._tell = tell

    def write(self, s: str, /) -> int:
        if s.strip():
            self._tell(s.strip())
        return super().write(s)


def call(
    arguments: Sequence[str], tell: Callable[[str], object], stage: Callable[[str], object] = len
) -> tuple[int, str, str]:
    """Run `howsure` with these arguments: its exit code, standard output and standard error.

    `tell` gets the lines of standard error while they are written, `stage` what is being worked on.

    >>> call(["--version"], tell=str)[1].split(",")[0]
    'howsure'
    """
    from howsure._core.progress import listener
    from howsure.cli.main import main

    widen()
    before, sys.argv = sys.argv, ["howsure", *arguments]
    out, err = StringIO(), _Lines(tell)
    token = listener.set(stage)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(list(arguments))
    except SystemExit as e:
        return int(e.code or 0), out.getvalue(), err.getvalue()
    finally:
        listener.reset(token)
        sys.argv = before


def example(source: str) -> str:
    """Run an example of the gallery: what it printed.

    >>> example("print(1 + 1)")
    '2\\n'
    """
    widen()
    with redirect_stdout(StringIO()) as out:
        exec(compile(source, "example", "exec"), {"__name__": "__main__"})
    return out.getvalue()
