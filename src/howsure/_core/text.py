"""Text that comes from strangers: shown so that it cannot act, and held in bounded memory.

Class names, ids, names of columns and files reach terminals, text files, Markdown, the logs of CI
and spreadsheets. Each of these obeys some characters. `make_printable` is the one function that
every sink of text goes through.

And the words of our own that a long job says of its progress.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from math import floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Categories of Unicode: controls, marks of direction, halves of characters, ends of lines.
HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"  # without which some scripts and pictures are written wrong
LINE_ENDS_AND_TABS = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
# What the log of a CI run takes for a command at the beginning of a line; a line may be broken
# anywhere. Compiled where it is met, which is rare.
COMMAND = r"(?:add-|remove-|save-|set-|stop-|internal-|debug|echo|end|error|group|notice|warning)"
INSIDE_COMMAND_MARK = rf"(?i)(?<=:)(?=:{COMMAND})|(?<=#)(?=#\[)"
COMMAND_SIGN = rf"(?i)(?<=:):(?={COMMAND})|(?<=#)#(?=\[)"
PLAIN_LINE = re.compile(r"[ -~]*")
BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")
BEYOND_PLAIN = re.compile(r"[^\n -~]")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # of a cell that a spreadsheet would run
# Longer texts are kept as objects: a fixed width would cost its length in every row, and so would
# one long text among many short ones.
FIXED_WIDTH_LETTERS = 256
SHORT_LETTERS = 32
UNEVEN_RATIO = 8


def make_printable(text: str) -> str:
    r"""`text` on one line, with every character that could act written as its escape.

    >>> print(make_printable("a\x1b[31mb\u202ec\nd ::error::e"))
    a\x1b[31mb\u202ec\nd :\:error::e
    """
    if not PLAIN_LINE.fullmatch(text):
        text = "".join(map(_escape, text))
    if "::" in text or "##[" in text:
        text = re.sub(INSIDE_COMMAND_MARK, r"\\", text)
    return text


def make_printable_lines(text: str) -> str:
    """The same for text of several lines of our own."""
    return "\n".join(map(make_printable, text.split("\n")))


def escape_json(text: str) -> str:
    r"""JSON text with every character that could act as its escape; it means the same.

    >>> print(escape_json('{"a\x9b": "\u202e ##[error]"}'))
    {"a\u009b": "\u202e #\u0023[error]"}
    """
    if not text.isascii() or "\x7f" in text:
        text = BEYOND_ASCII.sub(_escape_for_json, text)
    if "::" in text or "##[" in text:  # only inside strings: outside them a colon stands alone
        text = re.sub(COMMAND_SIGN, lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return text


def escape_page(html: str) -> str:
    r"""A page with every character that could act as its escape; what marks mean in HTML is escaped
    before.

    >>> print(escape_page("<b>a\x1b[31m\u202eb</b>"))
    <b>a\x1b[31m\u202eb</b>
    """
    return BEYOND_PLAIN.sub(lambda match: _escape(match[0]), html)


@lru_cache(maxsize=1 << 12)
def _can_act(c: str) -> bool:
    from unicodedata import category  # a large table, which plain text does without

    return category(c) in HIDDEN_CATEGORIES and c not in JOINERS


def _escape(c: str) -> str:
    if not _can_act(c):
        return c
    if c in LINE_ENDS_AND_TABS:
        return LINE_ENDS_AND_TABS[c]
    code = ord(c)
    if code < 1 << 8:
        return f"\\x{code:02x}"
    if code < 1 << 16:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def _escape_for_json(match: re.Match[str]) -> str:
    c = match[0]
    if not _can_act(c):
        return c
    # JSON writes characters beyond 16 bits as two halves.
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def format_spreadsheet_cell(value: object) -> object:
    """A cell of a table for people: text that a spreadsheet would run is led by an apostrophe,
    numbers stay.

    >>> format_spreadsheet_cell("=1+2"), format_spreadsheet_cell(-0.5)
    ("'=1+2", -0.5)
    """
    if not isinstance(value, str):
        return value
    text = make_printable(value)
    return f"'{text}" if value.lstrip(" ").startswith(FORMULA_STARTS) else text


def shorten(text: str, letters: int) -> str:
    """At most so many characters, the middle left out.

    >>> shorten("abcdefghij", 7)
    'abc…hij'
    """
    if len(text) <= letters:
        return text
    return f"{text[: letters // 2]}…{text[len(text) - (letters - 1) // 2 :]}"


def is_count(text: str) -> bool:
    """Whether `int` reads the text, and 64 bits hold it: at most 18 digits. `str.isdigit` says so
    of ² too.

    >>> is_count("12"), is_count("²"), is_count("-1"), is_count("9" * 19)
    (True, False, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) < 19


def make_text_array(texts: Sequence[str]) -> NDArray[np.str_] | NDArray[np.object_]:
    """A text array, of fixed width where that is not wasteful."""
    import numpy as np

    longest = max(map(len, texts), default=0)
    if longest <= SHORT_LETTERS:
        return np.array(texts, dtype=np.str_)
    even = longest * len(texts) <= UNEVEN_RATIO * sum(map(len, texts))
    if longest <= FIXED_WIDTH_LETTERS and even:
        return np.array(texts, dtype=np.str_)
    return np.array(texts, dtype=np.object_)


def name_class(name: str) -> str:
    """A class in a sentence: a name speaks for itself, a number does not.

    >>> name_class("malignant"), name_class("1")
    ('malignant', 'class 1')
    """
    return f"class {name}" if name.isdigit() else name


def format_rounded_up(count: int) -> str:
    """A number of labels that would usually be enough: two digits, rounded up.

    >>> format_rounded_up(64), format_rounded_up(1449)
    ('64', '1,500')
    """
    unit = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // unit) * unit:,}"


def count_decimals(low: float, high: float, *, digits: int = 2, percent: bool = False) -> int:
    """Decimals by which a number between its limits is written: so many digits of half their width.

    >>> count_decimals(0.00733, 0.0132), count_decimals(0.912, 0.928, percent=True)
    (4, 2)
    """
    half = (high - low) / 2
    decimals = digits - 1 - floor(log10(half) + 1e-9)
    return max(0, decimals - 2 if percent else decimals)


# ---- progress of long jobs: each stage is announced to a listener, such as the page in the browser

# A context variable, so that two jobs in two threads do not hear each other. By default nobody
# listens: `len` accepts any message and does nothing with it.
listener: ContextVar[Callable[[str], object]] = ContextVar("listener", default=len)


class StagedJob:
    """A long job with named stages, which are announced as "measuring 2 of 5: findings".

    >>> token = listener.set(print)
    >>> job = StagedJob("measuring", ["numbers", "findings"])
    >>> job.stage("numbers")
    measuring 1 of 2: numbers
    >>> job.stage("findings")
    measuring 2 of 2: findings
    >>> listener.reset(token)
    """

    def __init__(self, name: str, stages: Iterable[str]):
        self.name = name
        self.stages = list(stages)
        self.begun = 0

    def stage(self, name: str) -> None:
        """Announce that this stage begins; stages begin in their order."""
        # The search starts after the last stage: a user's score may be called "numbers" too.
        self.begun = self.stages.index(name, self.begun) + 1
        listener.get()(f"{self.name} {self.begun} of {len(self.stages)}: {name}")
