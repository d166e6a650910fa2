"""Which paths may be opened for reading: files, and no pipes or devices, which may wait or go on
for ever.
"""

from __future__ import annotations

import difflib
import os
import stat
from pathlib import Path

from howsure._core.check import InputError


def existing(path: str | os.PathLike[str]) -> Path:
    """`path`, if it is a file that can be opened."""
    p = Path(path)
    try:
        mode = p.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(str(p), got="is a folder", hint="name the files in it")
        if not stat.S_ISREG(mode):  # opening a pipe would wait for a writer, a device may never end
            raise InputError(
                str(p), got="is a pipe or a device", need="a file is needed", hint="save it first"
            )
        with p.open("rb"):
            return p
    except FileNotFoundError:
        raise InputError(str(p), got="does not exist", hint=_neighbour(p)) from None
    except InputError:
        raise
    except (OSError, ValueError) as e:
        why = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise InputError(repr(str(p)), got=f"cannot be read: {why}") from None


def _neighbour(path: Path) -> str:
    try:
        close = difflib.get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    except OSError:
        return f"The folder {path.parent} does not exist either"
    return f"Did you mean {close[0]!r}?" if close else ""
