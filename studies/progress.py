"""One line on a terminal that is overwritten, whole lines in a log."""

import sys
from datetime import datetime


def say(text: str) -> None:
    """A line that stays."""
    print(f"{datetime.now():%H:%M:%S}  {text}", file=sys.stderr, flush=True)


def bar(label: str, done: int, total: int, note: str = "") -> None:
    """Progress of one run; on a terminal only, a log would fill up."""
    if not sys.stderr.isatty():
        return
    filled = round(30 * done / total)
    end = "\n" if done == total else ""
    print(
        f"\r{label:40} {'█' * filled}{'·' * (30 - filled)} {done}/{total} {note}",
        end=end,
        file=sys.stderr,
        flush=True,
    )
