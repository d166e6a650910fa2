"""Tables of text, on terminals of any width and in Markdown: no number is ever cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table as Grid
from rich.text import Text

GAP = 2  # between two columns
FOLDED = 24  # letters that a column of words keeps before it wraps
HEAD = 16  # letters of a heading before it goes on in the next line
MOST = 20  # rows on a terminal
BELONGS = ("", "interval")  # headings of columns that say more about the one to their left


@dataclass(frozen=True)
class Table:
    """Rows of text under their headings; the first cell of a row is its name. `note` explains the table."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def numeric(self, column: int) -> bool:
        """Whether all cells of a column are numbers, which stand to the right and are not wrapped."""
        return column > 0 and all(not row[column] or row[column][0] in "0123456789+-–−" for row in self.rows)

    def markdown(self) -> str:
        """The table under its title; text from files is escaped."""
        aligned = ["---:" if self.numeric(i) else "---" for i in range(len(self.head))]
        lines = [[escape(cell) for cell in cells] for cells in (self.head, *self.rows)]
        lines.insert(1, aligned)
        return "\n".join([f"### {escape(self.title)}", "", *("| " + " | ".join(cells) + " |" for cells in lines)])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Columns for which the terminal is too narrow go on below, beside the first column once more."""
        heads = [head if i == 0 else _heading(head) for i, head in enumerate(self.head)]
        shown = parts(self.head, self._widths(heads), options.max_width)
        more = len(self.rows) - MOST
        caption = f"{more:,} more rows in --json and --html" if more > 0 else ""
        for i, columns in enumerate(shown):
            if i:
                yield Text("")
            yield self._grid(heads, columns, "" if i else self.title, caption if columns is shown[-1] else "")

    def _widths(self, heads: Sequence[str]) -> list[int]:
        """The least that each column needs."""
        found: list[int] = []
        for i, head in enumerate(heads):
            cells = (head, *(row[i] for row in self.rows[:MOST]))
            longest = max(cell_len(line) for text in cells for line in text.split("\n"))
            found.append(longest if self.numeric(i) else min(longest, FOLDED))
        return found

    def _grid(self, heads: Sequence[str], columns: Sequence[int], title: str, caption: str) -> Grid:
        grid = Grid(
            title=Text(title, style="bold") if title else None,
            caption=Text(caption) if caption else None,
            title_justify="left", box=None, pad_edge=False, padding=(0, 1),
        )  # fmt: skip
        for i in columns:
            if self.numeric(i):
                grid.add_column(heads[i], justify="right", no_wrap=True)
            else:
                grid.add_column(heads[i], overflow="fold")
        for row in self.rows[:MOST]:
            grid.add_row(*(Text(row[i]) for i in columns))
        return grid


@dataclass(frozen=True)
class Sheet:
    """A headline, sentences, tables and remarks: what a terminal and a Markdown file show."""

    headline: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield Text(self.headline, style="bold")
        yield from map(Text, self.sentences)
        for table in self.tables:
            yield Text("")
            yield table
        if self.remarks:
            yield Text("\nWhat stands out", style="bold")
            yield from (Text(f"• {remark}") for remark in self.remarks)

    def text(self, width: int = 110) -> str:
        """Plain text of a fixed width."""
        out = StringIO()
        Console(file=out, width=width, no_color=True, highlight=False).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

    def markdown(self) -> str:
        """Markdown; text from files is escaped."""
        blocks = [self.headline, *map(escape, self.sentences), *(table.markdown() for table in self.tables)]
        if self.remarks:
            blocks.append("\n".join(f"- {escape(remark)}" for remark in self.remarks))
        return "\n\n".join(blocks) + "\n"


def _heading(head: str) -> str:
    """On several lines, between words where that is possible."""
    lines = wrap(head, HEAD, break_long_words=False)
    return "\n".join(part for line in lines for part in wrap(line, 2 * HEAD))


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


def escape(text: str) -> str:
    """Text that Markdown shows as it is, in one cell and on one line."""
    for mark in "\\`*_{}[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())
