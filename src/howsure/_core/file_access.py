"""Files, with care: they appear whole or not at all; only files are read, for pipes and devices may
wait or go on for ever; and none unpacks to more bytes than its budget.

The budget is in proportion to the size of the file, and never more than a limit that can be raised.
Every reader counts what it is about to make, before it makes it. Text counts what it holds, numbers
at least four bytes each: a truth value of a file becomes a number too.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from howsure._core.checks import InputError

FREE_BYTES = 1 << 24  # whatever the size of the file
UNPACK_RATIO = 200  # times the size of the file: constant columns pack well, but not without end
WHOLE_FILE_BYTES = 1 << 34  # of one file that is loaded as a whole
VARIABLE = "HOWSURE_MAX_BYTES"
JSON_SIGN_BYTES = {"[": 88, "{": 184, ",": 32, '"': 25}  # bytes for each of these in JSON text
LIST_PLACE_BYTES = 8  # of a text in a list
TEXT_OBJECT_BYTES = 49  # of a text beside its characters
UNIT_BITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


# ---- writing and opening


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
        from difflib import get_close_matches  # only errors need it

        hint = f"The folder {p.parent} does not exist either"
        if os.access(p.parent, os.R_OK):
            names = os.listdir(p.parent)
            close = get_close_matches(p.name, names, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else ""
        raise InputError(str(p), got="does not exist", hint=hint) from None
    except InputError:
        raise
    except (OSError, ValueError) as e:
        why = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise InputError(repr(str(p)), got=f"cannot be read: {why}") from None


# ---- bytes that a file may unpack to


def read_allowed_bytes() -> int | None:
    """The number of bytes that the environment allows; None where it says nothing.

    >>> os.environ[VARIABLE] = "8G"
    >>> read_allowed_bytes()
    8589934592
    >>> del os.environ[VARIABLE]
    """
    text = os.environ.get(VARIABLE, "").strip().lower()
    if not text:
        return None
    match = re.fullmatch(r"(\d{1,18})([kmgt]?)(i?b)?", text, re.ASCII)
    if match is None:
        raise InputError(
            VARIABLE, got=f"is {text!r}", need="a number of bytes such as 8G is needed"
        )
    return int(match[1]) << UNIT_BITS[match[2]]


@dataclass
class Budget:
    """The bytes that one file of `size` bytes may still unpack to; `where` names it in a refusal.

    >>> Budget("a.npz", 1000).spend(10**9)
    Traceback (most recent call last):
    howsure.InputError: a.npz would unpack to 1,000,000,000 bytes, 1,000,000 times its size; if this is meant, ...
    """

    where: str
    size: int
    spent: int = 0

    def spend(self, amount: int, where: str = "", *, held: bool = True) -> None:
        """Count so many bytes more; raise where they are too many. The limit is for what is `held`
        at once.
        """
        self.spent += amount
        self._check(self.spent, where, held)

    def pass_by(self, amount: int, where: str = "") -> None:
        """Raise where so many bytes at once are too many; they are gone again before the next ones
        come.
        """
        self._check(amount, where, held=True)

    def _check(self, amount: int, where: str, held: bool) -> None:
        allowed = read_allowed_bytes()
        if allowed is None:
            allowed = max(FREE_BYTES, UNPACK_RATIO * self.size)
            if held:
                allowed = min(WHOLE_FILE_BYTES, allowed)
        if amount <= allowed:
            return
        got = f"would unpack to {amount:,} bytes"
        times = amount // max(1, self.size)
        if times > 1:
            got += f", {times:,} times its size"
        raise InputError(where or self.where, got=got, hint=_suggest_limit(amount))


def open_budget(path: Path) -> Budget | None:
    """The budget of a file, near or far; none for a pipe, which is as long as what came through it."""
    try:
        size = path.stat().st_size
    except OSError:
        return None
    return Budget(where=path.name, size=size) if size else None


def check_allocation(amount: int, what: str) -> None:
    """Raise where so many bytes are asked for at once."""
    if amount > (read_allowed_bytes() or WHOLE_FILE_BYTES):
        raise InputError(what, got=f"would need {amount:,} bytes", hint=_suggest_limit(amount))


def _suggest_limit(amount: int) -> str:
    rounded = "1M"
    for unit in "tgm":
        if amount >> UNIT_BITS[unit]:
            units = -(-amount >> UNIT_BITS[unit]) + 1
            rounded = f"{units}{unit.upper()}"
            break
    return f"if this is meant, allow it with {VARIABLE}={rounded}"


def estimate_json_bytes(text: str) -> int:
    """About what JSON text becomes: an empty list of two characters is 56 bytes, and has a place in
    another list.

    >>> estimate_json_bytes("[[],[]]"), estimate_json_bytes('{"a": 0.5}')
    (303, 244)
    """
    return len(text) + sum(size * text.count(sign) for sign, size in JSON_SIGN_BYTES.items())


def count_text_bytes(cells: Sequence[str]) -> int:
    """What a column of texts holds: a place for each, and an object for those that Python does not
    have already.

    >>> count_text_bytes(("0", "1")), count_text_bytes(("0.5", "1"))
    (16, 118)
    """
    length = sum(map(len, cells))
    size = LIST_PLACE_BYTES * len(cells)
    if length > len(cells):  # Python keeps all texts of one letter
        size += length + TEXT_OBJECT_BYTES * len(cells)
    return size


def count_number_bytes(values: int, itemsize: int) -> int:
    """What so many numbers count."""
    return values * max(4, itemsize)
