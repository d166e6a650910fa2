"""How many bytes a file may unpack to: in proportion to its size, and never more than a limit that can be raised.

Every reader counts what it is about to make, before it makes it. Text counts what it holds, numbers at least four
bytes each: a truth value of a file becomes a number too.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from howsure._core.check import InputError

FREE = 1 << 26  # whatever the size of the file
RATIO = 200  # times the size of the file: constant columns pack well, but not without end
LIMIT = 1 << 34  # of one file that is loaded as a whole
VARIABLE = "HOWSURE_MAX_BYTES"
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
        raise InputError(VARIABLE, got=f"is {text!r}", need="a number of bytes such as 8G is needed")
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
        """Count so many bytes more; raise where they are too many. The limit is for what is `held` at once."""
        self.spent += amount
        allowed = stated()
        if allowed is None:
            allowed = max(FREE, RATIO * self.size)
            allowed = min(LIMIT, allowed) if held else allowed
        if self.spent > allowed:
            times = self.spent // max(1, self.size)
            more = f", {times:,} times its size" if times > 1 else ""
            raise InputError(
                where or self.where,
                got=f"would unpack to {self.spent:,} bytes{more}",
                hint=f"if this is meant, allow it with {VARIABLE}={_rounded(self.spent)}",
            )


def fits(amount: int, what: str) -> None:
    """Raise where so many bytes are asked for at once."""
    allowed = stated() or LIMIT
    if amount > allowed:
        hint = f"if this is meant, allow it with {VARIABLE}={_rounded(amount)}"
        raise InputError(what, got=f"would need {amount:,} bytes", hint=hint)


def number_bytes(values: int, itemsize: int) -> int:
    """What so many numbers count."""
    return values * max(4, itemsize)


def _rounded(amount: int) -> str:
    for unit in "tgm":
        if amount >> UNITS[unit]:
            return f"{-(-amount >> UNITS[unit]) + 1}{unit.upper()}"
    return "1M"
