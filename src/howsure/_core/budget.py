"""How many bytes a file may unpack to: in proportion to its size, and never more than a limit that
can be raised.

Every reader counts what it is about to make, before it makes it. Text counts what it holds, numbers
at least four bytes each: a truth value of a file becomes a number too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from howsure._core.check import InputError

if TYPE_CHECKING:
    from pathlib import Path

FREE = 1 << 24  # whatever the size of the file
RATIO = 200  # times the size of the file: constant columns pack well, but not without end
LIMIT = 1 << 34  # of one file that is loaded as a whole
VARIABLE = "HOWSURE_MAX_BYTES"
SIZES = {"[": 88, "{": 184, ",": 32, '"': 25}  # bytes for each of these in JSON text
PLACE, OBJECT = 8, 49  # bytes of a text in a list, and its own beside its characters
UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def stated() -> int | None:
    """The number of bytes that the environment allows; None where it says nothing.

    >>> os.environ[VARIABLE] = "8G"
    >>> stated()
    8589934592
    >>> del os.environ[VARIABLE]
    """
    text = os.environ.get(VARIABLE, "").strip().lower()
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,18})([kmgt]?)(i?b)?", text, re.ASCII)
    if found is None:
        raise InputError(
            VARIABLE, got=f"is {text!r}", need="a number of bytes such as 8G is needed"
        )
    return int(found[1]) << UNITS[found[2]]


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
        allowed = stated()
        if allowed is None:
            allowed = max(FREE, RATIO * self.size)
            allowed = min(LIMIT, allowed) if held else allowed
        if amount > allowed:
            times = amount // max(1, self.size)
            more = f", {times:,} times its size" if times > 1 else ""
            raise InputError(
                where or self.where,
                got=f"would unpack to {amount:,} bytes{more}",
                hint=f"if this is meant, allow it with {VARIABLE}={_rounded(amount)}",
            )


def of_file(path: Path) -> Budget | None:
    """The budget of a file, near or far; none for a pipe, which is as long as what came through it."""
    try:
        size = path.stat().st_size
    except OSError:
        return None
    return Budget(path.name, size) if size else None


def fits(amount: int, what: str) -> None:
    """Raise where so many bytes are asked for at once."""
    allowed = stated() or LIMIT
    if amount > allowed:
        hint = f"if this is meant, allow it with {VARIABLE}={_rounded(amount)}"
        raise InputError(what, got=f"would need {amount:,} bytes", hint=hint)


def json_bytes(text: str) -> int:
    """About what JSON text becomes: an empty list of two characters is 56 bytes, and has a place in
    another list.

    >>> json_bytes("[[],[]]"), json_bytes('{"a": 0.5}')
    (303, 244)
    """
    return len(text) + sum(size * text.count(sign) for sign, size in SIZES.items())


def text_bytes(cells: Sequence[str]) -> int:
    """What a column of texts holds: a place for each, and an object for those that Python does not
    have already.

    >>> text_bytes(("0", "1")), text_bytes(("0.5", "1"))
    (16, 118)
    """
    length = sum(map(len, cells))
    return PLACE * len(cells) + (length + OBJECT * len(cells) if length > len(cells) else 0)


def number_bytes(values: int, itemsize: int) -> int:
    """What so many numbers count."""
    return values * max(4, itemsize)


def _rounded(amount: int) -> str:
    for unit in "tgm":
        if amount >> UNITS[unit]:
            return f"{-(-amount >> UNITS[unit]) + 1}{unit.upper()}"
    return "1M"
