"""Tables of text, on terminals of any width and in Markdown, where no number is ever cut; and those
of images and labels.
"""

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
from howsure._core.text import format_rounded_up, make_printable, make_printable_lines
from howsure.report.render.sentences import (
    NONE,
    find_decimals,
    format_estimate,
    format_level,
    format_number,
    format_percent,
    format_percent_range,
)
from howsure.report.report_types import Number, ReportData

COLUMN_GAP = 2  # letters between two columns
WORDS_WIDTH = 22  # letters that a column of words keeps before it wraps
HEADING_WIDTH = 16  # letters of a heading before it goes on in the next line
TERMINAL_ROWS = 20  # rows of a table on a terminal
NUMBER_WORDS = ("infinite", "undefined", "none")  # that stand in for a number
TableRows = list[list[str]]
DEPENDENT_HEADINGS = ("", "interval")  # of columns that say more about the one to their left

IMAGE_SCORES = {
    "mean_confidence": "mean confidence of pixels",
    "mean_certainty": "1 − mean scaled entropy",
    "sure_pixels": "share of pixels above 0.9",
}
GUARANTEES_NOTE = (
    "Guarantees for the mean 1 − Dice of accepted images, all rows at once; the others go to a reader. For one limit "
    "that is chosen beforehand, threshold --loss dice --bound betting accepts more."
)
EMPTY_MASKS_NOTE = "Both masks empty: Dice 1. One of them empty: Dice 0."
MISSED_NOTE = (
    "Positives missed: positive cases that are then called absent and that nobody looks at."
)
PAIRS_NOTE = "Pairs that are wrong in the same case more often than each by itself, beyond chance."


@frozen
class TextTable:
    """Rows of text under their headings; the first cell of a row is its name. `note` explains the
    table.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def __post_init__(self) -> None:
        # Names come from files: what could steer a terminal is made visible here, once for all.
        object.__setattr__(self, "title", make_printable(self.title))
        object.__setattr__(self, "head", list(map(make_printable, self.head)))
        object.__setattr__(self, "rows", [list(map(make_printable, row)) for row in self.rows])

    def numeric(self, column: int) -> bool:
        """Whether all cells of a column are numbers: aligned right and never wrapped."""
        if column == 0:
            return False
        for row in self.rows:
            # A difference and a range of limits begin like a number too.
            cell = row[column]
            if cell and cell[0] not in "0123456789+-–−" and cell not in NUMBER_WORDS:
                return False
        return True

    def markdown(self) -> str:
        """The table under its title; text from files is escaped."""
        aligned = ["---:" if self.numeric(i) else "---" for i in range(len(self.head))]
        lines = [list(map(escape_markdown, cells)) for cells in (self.head, *self.rows)]
        lines.insert(1, aligned)
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        blocks = (f"### {escape_markdown(self.title)}", table, escape_markdown(self.note))
        return "\n\n".join(filter(None, blocks))

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Columns that the terminal is too narrow for go on below, after the first column again."""
        heads = [self.head[0], *map(_wrap_heading, self.head[1:])] if self.head else []
        shown = split_columns(self.head, self._measure_widths(heads), options.max_width)
        more = len(self.rows) - TERMINAL_ROWS
        for i, columns in enumerate(shown):
            if i:
                yield Text("")
            grid = Grid(box=None, pad_edge=False, padding=(0, 1), title_justify="left")
            if i == 0 and self.title:
                grid.title = Text(self.title, style="bold")
            if more > 0 and columns is shown[-1]:
                grid.caption = Text(f"{more:,} more rows in --json and --html")
            for column in columns:
                if self.numeric(column):
                    grid.add_column(heads[column], justify="right", no_wrap=True)
                else:
                    grid.add_column(heads[column], overflow="fold")
            for row in self.rows[:TERMINAL_ROWS]:
                grid.add_row(*(Text(row[column]) for column in columns))
            yield grid
        if self.note:
            yield Text(self.note, style="dim")

    def _measure_widths(self, heads: Sequence[str]) -> list[int]:
        """The least that each column needs."""
        widths: list[int] = []
        for i, head in enumerate(heads):
            lines = head.split("\n")
            for row in self.rows[:TERMINAL_ROWS]:
                lines += row[i].split("\n")
            longest = max(map(cell_len, lines))
            if not self.numeric(i):
                longest = min(longest, WORDS_WIDTH)
            widths.append(longest)
        return widths


@frozen
class Sheet:
    """A headline, sentences, remarks, tables and what to do next, for a terminal or a Markdown
    file.
    """

    headline: str
    sentences: Sequence[str] = ()
    tables: Sequence[TextTable] = ()
    remarks: Sequence[str] = ()
    steps: Sequence[tuple[str, str]] = ()  # a line to copy, and what it is good for

    def __post_init__(self) -> None:
        steps = [(make_printable(run), make_printable(why)) for run, why in self.steps]
        object.__setattr__(self, "headline", make_printable_lines(self.headline))
        object.__setattr__(self, "sentences", list(map(make_printable_lines, self.sentences)))
        object.__setattr__(self, "remarks", list(map(make_printable, self.remarks)))
        object.__setattr__(self, "steps", steps)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        yield Text(self.headline, style="bold")
        yield from map(Text, self.sentences)
        if self.remarks:
            yield Text("\nWhat stands out", style="bold")
        for remark in self.remarks:
            item = Grid.grid(padding=(0, 1, 0, 0))  # further lines stand below the first
            item.add_row(Text("•"), Text(remark))
            yield item
        for table in self.tables:
            yield Text("")
            yield table
        if self.steps:
            yield Text("\nWhat to do next", style="bold")
            yield from self._render_steps(options.max_width)

    def _render_steps(self, room: int) -> Iterator[RenderableType]:
        """Command and purpose side by side where there is room for all, else the purpose below; no
        word is broken.
        """
        longest = max(cell_len(run) for run, _ in self.steps)
        purpose = max(cell_len(why) for _, why in self.steps)
        beside = longest + COLUMN_GAP + 2 + purpose <= room
        for run, why in self.steps:
            if beside:
                yield Text(f"  {run:{longest}}  {why}")
            else:
                lines = [f"  {line}" for line in break_command(run, room, indent=2)]
                # A long path goes past the edge: broken in two, it could not be copied.
                yield Text("\n".join(lines), no_wrap=True, overflow="ignore")
                yield Padding(Text(why), (0, 0, 0, 6))

    def text(self, width: int = 110) -> str:
        """Plain text of a fixed width."""
        out = StringIO()
        Console(file=out, width=width, no_color=True, highlight=False).print(self, crop=False)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

    def markdown(self) -> str:
        """Markdown; text from files is escaped."""
        blocks = [self.headline, *map(escape_markdown, filter(None, self.sentences))]
        if self.remarks:
            blocks.append("\n".join(f"- {escape_markdown(remark)}" for remark in self.remarks))
        blocks += [table.markdown() for table in self.tables]
        if self.steps:
            blocks.append("### What to do next")
        for run, why in self.steps:
            # An indented block is code, where nothing needs escaping.
            code = "    " + " ".join(run.splitlines())
            blocks.append(f"{escape_markdown(why)}:\n\n{code}")
        return "\n\n".join(blocks) + "\n"


def break_command(run: str, room: int, indent: int = 0) -> list[str]:
    """A command on lines of this width, which a shell reads as one; a longer word has its own line.

    `indent` letters of each line are taken already.

    >>> break_command("howsure evaluate 'my test.npz' --html report.html", 34)
    ["howsure evaluate 'my test.npz' \\\\", '    --html report.html']
    """
    if cell_len(run) + indent <= room:
        return [run]
    lines: list[str] = []
    # Words are measured in columns of the terminal, of which some letters take two; a line that
    # goes on needs room for a blank and " \\".
    for word in map(shlex.quote, shlex.split(run)):
        if not lines:
            lines.append(word)
        elif indent + cell_len(lines[-1]) + cell_len(word) + 3 <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(f"    {word}")
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def _wrap_heading(head: str) -> str:
    """A heading on several lines, broken between words where that is possible."""
    lines: list[str] = []
    for line in wrap(head, HEADING_WIDTH, break_long_words=False):
        lines += wrap(line, 2 * HEADING_WIDTH)
    return "\n".join(lines)


def split_columns(head: Sequence[str], widths: Sequence[int], room: int) -> list[list[int]]:
    """Which columns stand side by side: the first one always, the others as there is room.

    A column with limits stays with its number.

    >>> split_columns(["model", "AURC", "interval", "ECE"], [5, 6, 12, 6], 40)
    [[0, 1, 2, 3]]
    >>> split_columns(["model", "AURC", "interval", "ECE"], [5, 6, 12, 6], 30)
    [[0, 1, 2], [0, 3]]
    """
    units: list[list[int]] = []  # a column and those that belong to it
    for i in range(1, len(head)):
        if units and head[i] in DEPENDENT_HEADINGS:
            units[-1].append(i)
        else:
            units.append([i])
    parts: list[list[int]] = [[0]]
    for unit in units:
        wider = parts[-1] + unit
        needed = sum(widths[i] for i in wider) + COLUMN_GAP * (len(wider) - 1)
        if len(parts[-1]) > 1 and needed > room:
            parts.append([0, *unit])
        else:
            parts[-1] = wider
    return parts


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, in one cell and on one line."""
    text = make_printable(" ".join(text.split()))
    for mark in "\\`*_{}[]<>|#&~":
        text = text.replace(mark, "\\" + mark)
    return text


def build_image_tables(report: ReportData) -> list[TextTable]:
    """Per-image results: which may be accepted, which score orders them, each class, the worst."""
    images = report.get("images")
    if images is None:
        return []
    first = images["scores"][0]["name"]
    trusted = IMAGE_SCORES.get(first, first)
    if first == "mean_confidence":
        trusted = "mean confidence"
    guarantees = TableRows()
    for g in images["guarantees"]:
        risk, needed = format_number(g["risk"]), g["images_needed"]
        if g["threshold"] is not None:
            threshold, coverage = format_number(g["threshold"], 6), format_percent(g["coverage"])
            dice = (format_number(g["observed"]), format_number(g["bound"]))
            guarantees.append([risk, threshold, coverage, *dice])
        else:
            why = "these images cannot tell"
            if needed is not None:
                why = f"about {format_rounded_up(needed)} images would usually be enough"
            guarantees.append([risk, why, NONE, "", ""])
    scores = [
        [IMAGE_SCORES.get(s["name"], s["name"]), *_format_with_limits(s["aurc"])]
        for s in images["scores"]
    ]
    classes = TableRows()
    for c in images["classes"]:
        dice = _format_with_limits(c["dice"])
        classes.append([c["name"], *dice, f"{c['missed']:,}", f"{c['perfect']:,}"])
    worst = TableRows()
    for row in images["rows"]:
        numbers = (format_number(row["dice"]), format_number(row["score"]))
        shares = (format_percent(row["predicted"]), format_percent(row["true"]))
        worst.append([row["name"], *numbers, *shares])
    dice_note = _join_unsafe_notes([c["dice"] for c in images["classes"]])
    tables = [
        TextTable(
            title="Which images may be automated?",
            head=[
                "mean 1 − Dice at most",
                f"{trusted} from",
                "images accepted",
                "their 1 − Dice",
                "at most",
            ],
            rows=guarantees,
            note=GUARANTEES_NOTE,
        ),
        TextTable(
            title="Which score orders images best?",
            head=["score of an image", "AURC\N{NO-BREAK SPACE}↓", "interval"],
            rows=scores,
            note=_join_unsafe_notes([s["aurc"] for s in images["scores"]]),
        ),
        TextTable(
            title="Dice of each class over images",
            head=["class", "Dice", "interval", "Dice 0", "Dice 1"],
            rows=classes,
            note=f"{EMPTY_MASKS_NOTE} {dice_note}".strip(),
        ),
        TextTable(
            title="The worst images",
            head=["image", "Dice", trusted, "predicted", "true"],
            rows=worst,
        ),
    ]
    return [table for table in tables if table.rows]


def build_label_tables(report: ReportData) -> list[TextTable]:
    """Each of many labels: what its probability is worth, what it may decide alone, and errors that
    come together.
    """
    labels = report.get("labels")
    if labels is None:
        return []
    rows, alone = TableRows(), TableRows()
    numbers: list[Number] = []
    decimals = {
        "auc": find_decimals(label["auc"] for label in labels["rows"]),
        "ece": find_decimals(label["ece"] for label in labels["rows"]),
    }
    for label in labels["rows"]:
        auc, ece = (_format_with_limits(label[key], decimals[key]) for key in ("auc", "ece"))
        missed = f"{label['missed']:,}" if "missed" in label else NONE
        rows.append([label["name"], f"{label['positives']:,}", missed, *auc, *ece])
        numbers += [label["auc"], label["ece"]]
        g = label["guarantee"]
        if g["threshold"] is None:
            alone.append([label["name"], NONE, g.get("why", NONE), "", "", ""])
        else:
            shares = (g["coverage"], g["wrong"], g["bound"], g["missed"])
            threshold = format_number(g["threshold"])
            alone.append([label["name"], threshold, *map(format_percent, shares)])
    pairs = TableRows()
    for p in labels["together"]:
        limits = format_percent_range(p["low"], p["high"])
        shares = (format_percent(p["share"]), limits, format_percent(p["otherwise"]))
        pairs.append([f"{p['a']}, {p['b']}", f"{p['cases']:,}", *shares])
    risk, sure = format_percent(labels["risk"], 0), format_level(labels["sure"])
    auc, ece = "AUC\N{NO-BREAK SPACE}↑", "ECE\N{NO-BREAK SPACE}↓"
    tables = [
        TextTable(
            title="Label by label",
            head=["label", "positive", "missed", auc, "interval", ece, "interval"],
            rows=rows,
            note=_join_unsafe_notes(numbers),
        ),
        TextTable(
            title=f"Which label may be automated, at most {risk} wrong? "
            f"(all {len(rows)} at once, {sure} sure)",
            head=["label", "alone above", "decided alone", "wrong", "at most", "positives missed"],
            rows=alone,
            note=MISSED_NOTE,
        ),
        TextTable(
            title="Wrong together",
            head=["labels", "cases", "wrong on the second then", "interval", "otherwise"],
            rows=pairs,
            note=PAIRS_NOTE,
        ),
    ]
    return [table for table in tables if table.rows]


def _format_with_limits(entry: Number, decimals: int | None = None) -> tuple[str, str]:
    """A number and its limits; without a number, the reason in place of the limits."""
    if entry["value"] is None:
        return NONE, entry.get("why", NONE)
    return format_estimate(entry, decimals)


def _join_unsafe_notes(numbers: Sequence[Number]) -> str:
    """What makes limits of a table unsafe, each reason once."""
    notes = dict.fromkeys(n["note"] for n in numbers if "note" in n)
    return " ".join(f"{note[:1].upper()}{note[1:]}." for note in notes)
