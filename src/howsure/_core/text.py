"""Text that comes from strangers: shown so that it cannot act, and held in bounded memory.

Class names, ids, names of columns and files reach terminals, text files, Markdown, the logs of CI
and spreadsheets. Each of these obeys some characters. `printable` is the one function that every
sink of text goes through.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import floor, log10

import numpy as np
from numpy.typing import NDArray

HIDDEN = {
    "Cc",
    "Cf",
    "Cs",
    "Zl",
    "Zp",
}  # controls, marks of direction, halves of characters, ends of lines
JOINERS = "\u200c\u200d"  # without which some scripts and pictures are written wrong
# What the log of a CI run takes for a command at the beginning of a line; a line may be broken
# anywhere.
BEGIN = r"(?:add-|remove-|save-|set-|stop-|internal-|debug|echo|end|error|group|notice|warning)"
WORKFLOW = rf"(?i)(?<=:)(?=:{BEGIN})|(?<=#)(?=#\[)"  # compiled where it is met, which is rare
WORKFLOW_SIGN = rf"(?i)(?<=:):(?={BEGIN})|(?<=#)#(?=\[)"
UNUSUAL = re.compile(r"[^\x00-\x7e]")
UNPRINTED = re.compile(r"[^\n -~]")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet would run
PLAIN = re.compile(r"[ -~]*")
WIDTH = 256  # longer texts are kept as objects: a fixed width would cost its length in every row
SHORT, UNEVEN = 32, 8  # so would one long text among many short ones


def printable(text: str) -> str:
    r"""`text` on one line, with every character that could act written as its escape.

    >>> print(printable("a\x1b[31mb\u202ec\nd ::error::e"))
    a\x1b[31mb\u202ec\nd :\:error::e
    """
    if not PLAIN.fullmatch(text):
        text = "".join(map(_escaped, text))
    return re.sub(WORKFLOW, r"\\", text) if "::" in text or "##[" in text else text


def is_count(text: str) -> bool:
    """Whether `int` reads the text, and 64 bits hold it: at most 18 digits. `str.isdigit` says so
    of ² too.

    >>> is_count("12"), is_count("²"), is_count("-1"), is_count("9" * 19)
    (True, False, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) < 19


def printable_lines(text: str) -> str:
    """The same for text of several lines of our own."""
    return "\n".join(map(printable, text.split("\n")))


def json_safe(text: str) -> str:
    r"""JSON text with every character that could act as its escape; it means the same.

    >>> print(json_safe('{"a\x9b": "\u202e ##[error]"}'))
    {"a\u009b": "\u202e #\u0023[error]"}
    """
    if not text.isascii() or "\x7f" in text:
        text = UNUSUAL.sub(_json_escape, text)
    if "::" in text or "##[" in text:  # only inside strings: outside them a colon stands alone
        text = re.sub(WORKFLOW_SIGN, lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return text


def page_safe(html: str) -> str:
    r"""A page with every character that could act as its escape; what marks mean in HTML is escaped
    before.

    >>> print(page_safe("<b>a\x1b[31m\u202eb</b>"))
    <b>a\x1b[31m\u202eb</b>
    """
    return UNPRINTED.sub(lambda found: _escaped(found[0]), html)


@lru_cache(maxsize=1 << 12)
def _kind(c: str) -> str:
    from unicodedata import category  # a large table, which plain text does without

    return category(c)


def _json_escape(found: re.Match[str]) -> str:
    c = found[0]
    if _kind(c) not in HIDDEN or c in JOINERS:
        return c
    units = c.encode(
        "utf-16-be", "surrogatepass"
    )  # JSON writes characters beyond 16 bits as two halves
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _escaped(c: str) -> str:
    if _kind(c) not in HIDDEN or c in JOINERS:
        return c
    code = ord(c)
    if c in "\n\r\t":
        return {"\n": r"\n", "\r": r"\r", "\t": r"\t"}[c]
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def shortened(text: str, most: int) -> str:
    """At most so many characters, the middle left out.

    >>> shortened("abcdefghij", 7)
    'abc…hij'
    """
    return (
        text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"
    )


def spreadsheet_cell(value: object) -> object:
    """A cell of a table for people: text that a spreadsheet would run is led by an apostrophe,
    numbers stay.

    >>> spreadsheet_cell("=1+2"), spreadsheet_cell(-0.5)
    ("'=1+2", -0.5)
    """
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.lstrip(" ").startswith(FORMULA) else printable(value)


def array_of(texts: Sequence[str]) -> NDArray[np.str_] | NDArray[np.object_]:
    """A text array, of fixed width where that is not wasteful."""
    longest = max(map(len, texts), default=0)
    even = longest <= SHORT or (
        longest <= WIDTH and longest * len(texts) <= UNEVEN * sum(map(len, texts))
    )
    return np.array(texts, dtype=np.str_) if even else np.array(texts, dtype=np.object_)


def no_finer(value: float, low: float, high: float) -> float:
    """The value to a thousandth of the width of its limits, as a power of ten.

    >>> no_finer(0.0320217, -0.1758, 0.2399), no_finer(-4e-8, -0.3, 0.3)
    (0.032, 0.0)
    """
    return round(value, 3 - floor(log10(high - low))) + 0.0
