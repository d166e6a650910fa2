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

from howsure._core.checks import InputError

if TYPE_CHECKING:
    from pathlib import Path

FREE_BYTES = 1 << 24  # whatever the size of the file
UNPACK_RATIO = 200  # times the size of the file: constant columns pack well, but not without end
WHOLE_FILE_BYTES = 1 << 34  # of one file that is loaded as a whole
VARIABLE = "HOWSURE_MAX_BYTES"
JSON_SIGN_BYTES = {"[": 88, "{": 184, ",": 32, '"': 25}  # bytes for each of these in JSON text
LIST_PLACE_BYTES = 8  # of a text in a list
TEXT_OBJECT_BYTES = 49  # of a text beside its characters
UNIT_BITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


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
