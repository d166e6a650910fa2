"""howsure doctor"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.text import make_printable, shorten
from howsure.cli.common import (
    FILES,
    ReadingCommand,
    add_reading_options,
    format_reading_call,
    say,
    show_spinner,
)

if TYPE_CHECKING:
    from howsure.formats import Description, FileProblem, ReadOptions

LISTED_ITEMS = 200  # arrays or columns in the table
NAME_LETTERS = 200
PROBLEM_LETTERS = 2000


@click.command(cls=ReadingCommand)
@FILES
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only the exit code tells.")
@add_reading_options
@click.pass_context
def command(
    ctx: click.Context,
    files: Sequence[str],
    as_json: bool,
    quiet: bool,
    options: ReadOptions,
) -> None:
    """What is in this file, and what is wrong with it?

    Lists every array or column with the part it plays, then every problem with its place, its repair, and what can
    be evaluated anyway. Exit 0 where `howsure evaluate` would read the file, else 2.

    \b
    Examples:
      howsure doctor test.npz
      howsure doctor predictions.csv --name labels=gold
    """
    examined = [(path, *examine_file(path, options)) for path in files]
    if as_json:
        rows: list[dict[str, Any]] = []
        for path, description, problems in examined:
            holds = None if description is None else asdict(description)
            told = [asdict(p) for p in problems]
            proposal = propose_command(path, problems, options)
            rows.append({"file": path, "holds": holds, "problems": told, "proposal": proposal})
        click.echo(strict_json.dump_line(rows))
    elif not quiet:
        for path, description, problems in examined:
            proposal = propose_command(path, problems, options)
            say(build_examination(path, description, problems, proposal))
    # The exit code says whether `howsure evaluate` would read the files.
    for _, _, problems in examined:
        if any(problem.stops for problem in problems):
            ctx.exit(2)


def examine_file(path: str, options: ReadOptions) -> tuple[Description | None, list[FileProblem]]:
    """What the file holds (None where it cannot be opened) and what is wrong."""
    from howsure.formats import describe, problems

    with show_spinner(f"reading {path}"):
        try:
            description = describe(path, format=options.format)
        except InputError:
            description = None
        return description, problems(path, options=options)


def propose_command(path: str, problems: Sequence[FileProblem], options: ReadOptions) -> str | None:
    """The command that reads a file which cannot be read as it is, if a guess does."""
    from howsure.formats.proposals import propose_options

    if not any(problem.stops for problem in problems):
        return None
    with show_spinner(f"guessing what {path} means"):
        proposal = propose_options(Path(path), options)
    if proposal is None:
        return None
    return f"howsure evaluate {format_reading_call([path], proposal)}"


def build_examination(
    path: str,
    description: Description | None,
    problems: Sequence[FileProblem],
    proposal: str | None = None,
) -> Any:
    """Contents and problems of a file, for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = Text(make_printable(path), style="bold")
    lines: list[Any] = [title]
    if description is not None:
        table = Table("name", "shape", "type", "read as", box=None, pad_edge=False, padding=(0, 2))
        for item in description.items[:LISTED_ITEMS]:
            cells = (
                shorten(item.name, NAME_LETTERS),
                " × ".join(f"{n:,}" for n in item.shape),
                shorten(item.dtype, NAME_LETTERS),
                item.part or "–",
            )
            table.add_row(*(Text(make_printable(cell)) for cell in cells))
        if len(description.items) > LISTED_ITEMS:
            table.add_row(f"{len(description.items) - LISTED_ITEMS:,} more in --json")
        lines = [title + Text(f"  {description.format}"), table]
    lines.append(Text(""))
    if not problems:
        # Of several splits the one to evaluate is named: test where there is one.
        chosen = ""
        splits = [s for s in (description.splits if description else ()) if s]
        if len(splits) > 1:
            chosen = f" --split {'test' if 'test' in splits else splits[0]}"
        next_step = f"No problems. Next: howsure evaluate {path}{chosen}"
        lines.append(Text(make_printable(next_step), style="green"))
    for problem in problems:
        mark = Text("doubtful", style="yellow")
        if problem.stops:
            mark = Text("stops   ", style="bold red")
        text = make_printable(shorten(str(problem), PROBLEM_LETTERS))
        lines.append(mark + Text(f"  {text}", style="default"))
        if problem.anyway:
            anyway = f"          can be evaluated anyway: {make_printable(problem.anyway)}"
            lines.append(Text(anyway, style="dim"))
    if proposal is not None:
        lines.append(Text("Best guess, which can be read; check that it is what you mean:"))
        lines.append(Text(f"  {make_printable(proposal)}", style="green"))
    return Group(*lines, Text(""))
