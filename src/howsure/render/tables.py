"""Tables of text, on terminals of any width and in Markdown: no number is ever cut."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from io import StringIO
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from howsure._core.frozen import frozen
from howsure._core.text import printable, printable_lines

GAP = 2  # between two columns
FOLDED = 22  # letters that a column of words keeps before it wraps
HEAD = 16  # letters of a heading before it goes on in the next line
MOST = 20  # rows on a terminal
WORDS = ("infinite", "undefined", "none")  # that stand in for a number
BELONGS = ("", "interval")  # headings of columns that say more about the one to their left


@frozen
class Table:
    """Rows of text under their headings; the first cell of a row is its name. `note` explains the
    table.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", printable(self.title))
        object.__setattr__(self, "head", [printable(cell) for cell in self.head])
        object.__setattr__(self, "rows", [[printable(cell) for cell in row] for row in self.rows])

    def numeric(self, column: int) -> bool:
        """Whether all cells of a column are numbers, which stand to the right and are not wrapped."""
        return column > 0 and all(
            not row[column] or row[column][0] in "0123456789+-–−" or row[column] in WORDS
            for row in self.rows
        )

    def markdown(self) -> str:
        """The table under its title; text from files is escaped."""
        aligned = ["---:" if self.numeric(i) else "---" for i in range(len(self.head))]
        lines = [[escape(cell) for cell in cells] for cells in (self.head, *self.rows)]
        lines.insert(1, aligned)
        table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
        return "\n\n".join(filter(None, (f"### {escape(self.title)}", table, escape(self.note))))

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Columns for which the terminal is too narrow go on below, beside the first column once
        more.
        """
        heads = [head if i == 0 else _heading(head) for i, head in enumerate(self.head)]
        shown = parts(self.head, self._widths(heads), options.max_width)
        more = len(self.rows) - MOST
        caption = f"{more:,} more rows in --json and --html" if more > 0 else ""
        for i, columns in enumerate(shown):
            if i:
                yield Text("")
            yield self._grid(
                heads, columns, "" if i else self.title, caption if columns is shown[-1] else ""
            )
        if self.note:
            yield Text(self.note, style="dim")

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


@frozen
class Sheet:
    """A headline, sentences, remarks, tables and what to do next: what a terminal and a Markdown
    file show.
    """

    headline: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()
    steps: Sequence[tuple[str, str]] = ()  # a line to copy, and what it is good for

    def __post_init__(self) -> None:
        object.__setattr__(self, "headline", printable_lines(self.headline))
        object.__setattr__(
            self, "sentences", [printable_lines(sentence) for sentence in self.sentences]
        )
        object.__setattr__(self, "remarks", [printable(remark) for remark in self.remarks])
        object.__setattr__(
            self, "steps", [(printable(run), printable(why)) for run, why in self.steps]
        )

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        yield Text(self.headline, style="bold")
        yield from map(Text, self.sentences)
        if self.remarks:
            yield Text("\nWhat stands out", style="bold")
            yield from (_item(remark) for remark in self.remarks)
        for table in self.tables:
            yield Text("")
            yield table
        if self.steps:
            yield Text("\nWhat to do next", style="bold")
            yield from self._steps(options.max_width)

    def _steps(self, room: int) -> Iterator[RenderableType]:
        """Command and purpose side by side where there is room for all, else the purpose below; no
        word is broken.
        """
        longest = max(cell_len(run) for run, _ in self.steps)
        beside = longest + GAP + 2 + max(cell_len(why) for _, why in self.steps) <= room
        for run, why in self.steps:
            if beside:
                yield Text(f"  {run:{longest}}  {why}")
            else:
                lines = [f"  {line}" for line in broken(run, room, indent=2)]
                yield Text(
                    "\n".join(lines), no_wrap=True, overflow="ignore"
                )  # a long path goes past the edge
                yield Padding(Text(why), (0, 0, 0, 6))

    def text(self, width: int = 110) -> str:
        """Plain text of a fixed width."""
        out = StringIO()
        Console(file=out, width=width, no_color=True, highlight=False).print(self, crop=False)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

    def markdown(self) -> str:
        """Markdown; text from files is escaped."""
        blocks = [self.headline, *map(escape, filter(None, self.sentences))]
        if self.remarks:
            blocks.append("\n".join(f"- {escape(remark)}" for remark in self.remarks))
        blocks += [table.markdown() for table in self.tables]
        if self.steps:
            blocks += [
                "### What to do next",
                *(f"{escape(why)}:\n\n{_code(run)}" for run, why in self.steps),
            ]
        return "\n\n".join(blocks) + "\n"


def _item(remark: str) -> Grid:
    """One remark of a list, its lines below each other."""
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_row(Text("•"), Text(remark))
    return grid


def broken(run: str, room: int, indent: int = 0) -> list[str]:
    """A command on lines of this width, which a shell reads as one; a word that is longer keeps a
    line of its own.

    `indent` letters of each line are taken already.

    >>> broken("howsure evaluate 'my test.npz' --html report.html", 34)
    ["howsure evaluate 'my test.npz' \\\\", '    --html report.html']
    """
    if cell_len(run) + indent <= room:
        return [run]
    lines: list[str] = []
    for word in map(shlex.quote, shlex.split(run)):
        if lines and indent + cell_len(lines[-1]) + cell_len(word) + 3 <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(f"    {word}" if lines else word)
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def _code(run: str) -> str:
    """A line as an indented block of Markdown, where nothing needs escaping."""
    return "    " + " ".join(run.splitlines())


def _heading(head: str) -> str:
    """On several lines, between words where that is possible."""
    lines = wrap(head, HEAD, break_long_words=False)
    return "\n".join(part for line in lines for part in wrap(line, 2 * HEAD))


def parts(head: Sequence[str], widths: Sequence[int], room: int) -> list[list[int]]:
    """Which columns stand side by side: the first one always, the others in order, as many as there
    is room for.

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
    text = printable(" ".join(text.split()))
    for mark in "\\`*_{}[]<>|#&~":
        text = text.replace(mark, "\\" + mark)
    return text
