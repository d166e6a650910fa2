"""Tables for terminals of any width: no number is ever cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

GAP = 2  # between two columns
FOLDED = 24  # letters that a column of words keeps before it wraps
BELONGS = ("", "interval")  # headings of columns that say more about the one to their left


@dataclass(frozen=True)
class Columns:
    """Rows of text under their headings. Numbers stand to the right and are not wrapped; words may be.

    Columns for which the terminal is too narrow go on below, beside the first column once more.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[bool]
    title: str = ""
    caption: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        shown = parts(self.head, self._widths(), options.max_width)
        for i, columns in enumerate(shown):
            if i:
                yield Text("")
            yield self._table(columns, "" if i else self.title, self.caption if i == len(shown) - 1 else "")

    def _widths(self) -> list[int]:
        """The least that each column needs."""
        found: list[int] = []
        for i, head in enumerate(self.head):
            longest = max(
                cell_len(line) for text in (head, *(row[i] for row in self.rows)) for line in text.split("\n")
            )
            found.append(longest if self.numeric[i] else min(longest, FOLDED))
        return found

    def _table(self, columns: Sequence[int], title: str, caption: str) -> Table:
        table = Table(
            title=Text(title, style="bold") if title else None,
            caption=Text(caption) if caption else None,
            title_justify="left", box=None, pad_edge=False, padding=(0, 1),
        )  # fmt: skip
        for i in columns:
            if self.numeric[i]:
                table.add_column(self.head[i], justify="right", no_wrap=True)
            else:
                table.add_column(self.head[i], overflow="fold")
        for row in self.rows:
            table.add_row(*(Text(row[i]) for i in columns))
        return table


def parts(head: Sequence[str], widths: Sequence[int], room: int) -> list[list[int]]:
    """Which columns stand side by side: the first one always, the others in order, as many as there is room for.

    >>> parts(["model", "AURC", "interval", "ECE"], [5, 6, 12, 6], 40)
    [[0, 1, 2, 3]]
    >>> parts(["model", "AURC", "interval", "ECE"], [5, 6, 12, 6], 30)
    [[0, 1, 2], [0, 3]]
    """
    wholes: list[list[int]] = []
    for i in range(1, len(head)):
        if wholes and head[i] in BELONGS:
            wholes[-1].append(i)
        else:
            wholes.append([i])
    found: list[list[int]] = [[0]]
    for whole in wholes:
        taken = found[-1] + whole
        if len(found[-1]) > 1 and sum(widths[i] for i in taken) + GAP * (len(taken) - 1) > room:
            found.append([0, *whole])
        else:
            found[-1] = taken
    return found
