"""howsure doctor"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from howsure._core import json
from howsure._core.check import InputError
from howsure._core.text import printable, shortened
from howsure.cli.common import FILES, name_table, reading, say, working

if TYPE_CHECKING:
    from howsure.formats import Description, Problem


MOST = 200  # arrays or columns that are listed
WIDE = 200  # letters of a name
LONGEST = 2000  # letters of a problem


@click.command()
@FILES
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only the exit code tells.")
@reading
@click.pass_context
def command(
    ctx: click.Context,
    files: Sequence[str],
    as_json: bool,
    quiet: bool,
    names: Sequence[str],
    **how: Any,
) -> None:
    """What is in this file, and what is wrong with it?

    Lists every array or column with the part it plays, then every problem with its place, its repair, and what can
    be evaluated anyway. Exit 0 where `howsure evaluate` would read the file, else 2.

    \b
    Examples:
      howsure doctor test.npz
      howsure doctor predictions.csv --name labels=gold
    """
    found = [examine(path, names=name_table(names), **how) for path in files]
    if as_json:
        click.echo(json.line([_as_dict(path, *f) for path, f in zip(files, found, strict=True)]))
    elif not quiet:
        for path, (description, problems) in zip(files, found, strict=True):
            say(picture(path, description, problems))
    ctx.exit(2 if any(p.stops for _, problems in found for p in problems) else 0)


def examine(path: str, **how: Any) -> tuple[Description | None, list[Problem]]:
    """What the file holds (None where it cannot be opened) and what is wrong."""
    from howsure.formats import describe, problems

    with working(f"reading {path}"):
        try:
            description = describe(path, format=how["format"])
        except InputError:
            description = None
        return description, problems(path, **how)


def _as_dict(
    path: str, description: Description | None, problems: Sequence[Problem]
) -> dict[str, Any]:
    known = None if description is None else asdict(description)
    return {"file": path, "holds": known, "problems": [asdict(p) for p in problems]}


def picture(path: str, description: Description | None, problems: Sequence[Problem]) -> Any:
    """The findings for a terminal."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [
        Text(printable(path), style="bold")
        + Text("" if description is None else f"  {description.format}")
    ]
    if description is not None:
        parts.append(_items(description))
    parts.append(Text(""))
    if not problems:
        parts.append(
            Text(printable("No problems. Next: " + _next(path, description)), style="green")
        )
    for p in problems:
        mark = Text("stops   ", style="bold red") if p.stops else Text("doubtful", style="yellow")
        parts.append(mark + Text(f"  {printable(shortened(str(p), LONGEST))}", style="default"))
        if p.anyway:
            parts.append(
                Text(f"          can be evaluated anyway: {printable(p.anyway)}", style="dim")
            )
    return Group(*parts, Text(""))


def _items(description: Description) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for column in ("name", "shape", "type", "read as"):
        table.add_column(column)
    for item in description.items[:MOST]:
        shape = " × ".join(f"{n:,}" for n in item.shape)
        cells = (shortened(item.name, WIDE), shape, shortened(item.dtype, WIDE), item.part or "–")
        table.add_row(*(Text(printable(cell)) for cell in cells))
    if len(description.items) > MOST:
        table.add_row(f"{len(description.items) - MOST:,} more in --json")
    return table


def _next(path: str, description: Description | None) -> str:
    splits = [s for s in (description.splits if description else ()) if s]
    chosen = f" --split {'test' if 'test' in splits else splits[0]}" if len(splits) > 1 else ""
    return f"howsure evaluate {path}{chosen}"
