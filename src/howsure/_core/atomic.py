"""Files appear whole or not at all, and only files are read: pipes and devices may wait or go on
for ever.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from howsure._core.checks import InputError


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Generator[Path, None, None]:
    """A temporary path in the same folder, renamed to `path` when the block ends well and deleted
    when it fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_file(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     print([(p.name, p.read_text()) for p in Path(folder).iterdir()])
    [('a.txt', 'whole')]
    """
    named = Path(path)
    check_target(named)
    # A link stays a link: what it leads to is replaced.
    target = Path(os.path.realpath(named))
    check_target(target)
    # At random, because threads, and containers in which every process is number 1, may write one
    # file at once. 40 letters are at most 160 bytes: the longest names still have room.
    temporary = target.with_name(f".{target.name[:40]}.{os.urandom(8).hex()}.tmp")
    try:
        mode = _create_like(target, temporary)
    except OSError as e:
        raise InputError(f"{named} cannot be written: {e.strerror or e}.") from None
    try:
        yield temporary
        # The rename must not reach the disk before the bytes it stands for.
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(mode)
        os.replace(temporary, target)
    except OSError as e:
        raise InputError(f"{named} cannot be written: {e.strerror or e}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def _create_like(target: Path, temporary: Path) -> int:
    """Make an empty file that nobody may read who may not read the old one; the mode it will
    have.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    if not target.exists():
        descriptor = os.open(temporary, flags, 0o666)  # the system takes the umask away
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    else:
        mode = stat.S_IMODE(target.stat().st_mode)
        # Open to its owner until it is written, also where the old file is read-only.
        descriptor = os.open(temporary, flags, 0o600)
        os.fchmod(descriptor, mode | 0o600)
    os.close(descriptor)
    return mode


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """`text` as a UTF-8 file at `path`, whole or not at all."""
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def check_target(target: Path) -> None:
    """Refuse a path that no file can be written to, before the work for it is done."""
    if target.is_dir():
        raise InputError(f"{target} is a folder; a file name is needed.")
    # realpath has followed every other link.
    if os.path.islink(os.path.realpath(target)):
        raise InputError(f"{target} is a link that leads to itself; a file name is needed.")
    # A rename would put a file in the place of the device.
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is a pipe or a device; a file name is needed.")
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} does not exist; make it first.")


def check_readable(path: str | os.PathLike[str]) -> Path:
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
        raise InputError(str(p), got="does not exist", hint=_suggest_neighbour(p)) from None
    except InputError:
        raise
    except (OSError, ValueError) as e:
        why = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise InputError(repr(str(p)), got=f"cannot be read: {why}") from None


def _suggest_neighbour(path: Path) -> str:
    from difflib import get_close_matches  # only errors need it

    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return f"The folder {path.parent} does not exist either"
    close = get_close_matches(path.name, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else ""
