"""howsure cascade"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure.cli.common import ReadingCommand

from howsure._core import json
from howsure._core.check import InputError
from howsure._core.text import printable
from howsure.cli.common import FILES, note, read_files, reading, say, working

if TYPE_CHECKING:
    from howsure.policies.cascade import Cascade, CascadeResult
    from howsure.predictions import Outcomes


@click.command(cls=ReadingCommand)
@FILES
@click.option(
    "--costs",
    required=True,
    metavar="A,B,...",
    help="What one answer of each model costs, in order.",
)
@click.option(
    "--person", required=True, type=float, metavar="X", help="What asking a person costs."
)
@click.option(
    "--person-error",
    type=float,
    default=0.0,
    show_default=True,
    help="How often the person is wrong.",
)
@click.option(
    "--error", type=float, default=0.0, show_default=True, help="What a wrong answer costs."
)
@click.option(
    "--accuracy", type=float, help="Only thresholds whose own answers are right that often."
)
@click.option(
    "--on",
    "on",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Judge on these; one per model.",
)
@click.option("-o", "--out", type=click.Path(), help="Write the cascade (JSON).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@reading
def command(
    files: Sequence[str], costs: str, person: float, person_error: float, error: float, accuracy: float | None,
    on: Sequence[str], out: str | None, as_json: bool, quiet: bool, **how: Any,
) -> int:  # fmt: skip
    """A small model first, then a large one, then a person: which thresholds cost least?

    Each FILE holds one model's answers to the same questions, the cheapest first; they are joined by ids. A question
    that a model did not answer goes to the next one. Nothing is promised: judge the thresholds on new data with --on.
    Exit code 1 where everything goes to the person.

    \b
    Examples:
      howsure cascade small.jsonl large.jsonl --costs 1,10 --person 50 --error 200
      howsure cascade small.npz large.npz --split val --costs 1,20 --person 100 --accuracy 0.98
    """
    from howsure.policies.cascade import Cascade

    prices = _prices(costs, files)
    if on and len(on) != len(files):
        raise InputError(
            f"--on is given {len(on)} times for {len(files)} models; name one file for each, in order."
        )
    stages = _stages(files, how)
    rest: dict[str, Any] = {"human_cost": person, "human_error": person_error, "error_cost": error}
    with working("choosing"):
        found = Cascade.fit(stages, costs=prices, accuracy=accuracy, **rest)
    judged = found.evaluate(_stages(on, how)) if on else None
    if out is not None:
        from howsure._core.saving import save

        save(found, out)
        note(f"wrote {out}", quiet)
    if as_json:
        click.echo(json.line(json.plain({**asdict(found), "on": judged})))
    elif not quiet:
        say(_table(found, judged, files))
    return int(found.expected is not None and found.expected.shares[-1] == 1)


def _prices(costs: str, files: Sequence[str]) -> list[float]:
    try:
        prices = [float(cost) for cost in costs.split(",")]
    except ValueError:
        raise InputError(
            f"--costs {costs!r} is not a list of numbers, as in --costs 1,10."
        ) from None
    if len(prices) != len(files):
        raise InputError(
            f"--costs has {len(prices)} numbers for {len(files)} models; give one for each, in order."
        )
    return prices


def _stages(files: Sequence[str], how: dict[str, Any]) -> list[Outcomes]:
    from howsure.policies.cascade import stages_of

    return stages_of([read_files([path], **how) for path in files])


def _table(found: Cascade, judged: CascadeResult | None, files: Sequence[str]) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("answers", "from confidence", "share", *(["share on new data"] if judged else [])):
        table.add_column(name, justify="left" if name == "answers" else "right")
    results = [r for r in (found.expected, judged) if r is not None]
    for i, name in enumerate([*(Path(f).stem for f in files), "a person"]):
        own = found.thresholds[i] if i < len(files) else None
        threshold = "" if own is None else "never" if own == inf else f"{own:.4g}"
        table.add_row(Text(printable(name)), threshold, *(f"{r.shares[i]:.4g}" for r in results))
    lines = [
        Text(printable(_sentence(r, where)))
        for r, where in zip(results, ("On these data", "On new data"), strict=False)
    ]
    return Group(table, Text(""), *lines)


def _sentence(r: CascadeResult, where: str) -> str:
    own = (
        f"{r.accuracy:.4g} of the models' own answers are right"
        if r.accuracy == r.accuracy
        else "no model answers"
    )
    return f"{where}: mean cost {r.cost:.4g}; {own}; {r.system_accuracy:.4g} with the person's."
