"""A user's mistake: its fields, and the sentence that is made of them. Imports no NumPy, for
`howsure --help` needs none.
"""

from __future__ import annotations

from copy import copy
from typing import Self

from howsure._core.text import make_printable, shorten

ERROR_PART_LETTERS = 600  # letters of a part of an error


class InputError(ValueError):
    """A user's mistake as fields: what is at fault, where it stands, what it is, what is needed,
    what to do.

    `str` makes one sentence of them, here and nowhere else; code reads the fields. `row` is the
    position of `what` in its array (`labels[3]`), `first` the first of several such rows; `line` is
    where a file holds that row. With `what` alone it is the whole sentence.

    >>> from howsure import tally
    >>> tally([0.9], correct=[2])
    Traceback (most recent call last):
    howsure.InputError: correct[0] is 2; each value must be 0 (wrong) or 1 (right). ...
    >>> error = InputError("labels", row=3, got="is 12", need="with 10 classes labels run from 0 to 9")
    >>> str(error.at("a.csv", line=5)), error.got
    ('a.csv: labels[3] (line 5) is 12; with 10 classes labels run from 0 to 9.', 'is 12')
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        got: str = "",
        need: str = "",
        hint: str = "",
        row: int | None = None,
        first: int | None = None,
    ):
        self.what, self.where, self.got, self.need, self.hint = what, where, got, need, hint
        self.row = row if first is None else first
        self.several = first is not None
        self.line: int | None = None
        super().__init__(_write_sentence(self))

    def __str__(self) -> str:
        return _write_sentence(self)

    def at(self, where: str, line: int | None = None, *, first: int = 0) -> Self:
        """The same mistake, of something that stands in a larger whole: a batch, a file from row
        `first` on.
        """
        error = copy(self)
        if self.row is not None:
            error.row = self.row + first
        if line is not None:
            error.line = line
        error.where = f"{where}: {self.where}" if self.where else where
        error.args = (_write_sentence(error),)
        return error


InputError.__module__ = "howsure"  # what users import and see in a traceback
__test__ = {"InputError": InputError.__doc__}  # doctest looks for it where it says it lives


def _write_sentence(e: InputError) -> str:
    """One line in which nothing acts and no part is longer than a line, whatever was quoted."""
    parts = (e.what, e.where, e.got, e.need, e.hint)
    what, where, got, need, hint = (
        shorten(make_printable(part), ERROR_PART_LETTERS) for part in parts
    )
    place = "" if e.line is None else f" (line {e.line})"
    text = what
    if e.row is not None and not e.several:
        text += f"[{e.row}]{place}"
    if e.several:
        got += f" (first: row {e.row}{place})"
    if got:
        text += f" {got}"
    for part in (need, hint):
        if part:
            # What begins with a capital is a sentence of its own.
            text += f". {part}" if part[0].isupper() and text[-1] not in "?!" else f"; {part}"
    if (e.got or e.need or e.hint) and text[-1:] not in (".", "?", "!", "…"):
        text += "."
    return f"{where}: {text}" if where else text
