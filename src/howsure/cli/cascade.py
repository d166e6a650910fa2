"""howsure cascade"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.text import make_printable
from howsure.cli.common import (
    FILES,
    ReadingCommand,
    add_reading_options,
    note,
    read_files,
    say,
    show_spinner,
)
from howsure.cli.input_output import InputPath, OutputPath

if TYPE_CHECKING:
    from howsure.policies.cascades import Cascade, CascadeResult
    from howsure.predictions import Outcomes
    from howsure.predictions.read_options import ReadOptions


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
    type=InputPath(),
    metavar="FILE",
    help="Judge on these; one per model.",
)
@click.option("-o", "--out", type=OutputPath(), help="Write the cascade (JSON).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@add_reading_options
def command(
    files: Sequence[str], costs: str, person: float, person_error: float, error: float, accuracy: float | None,
    on: Sequence[str], out: str | None, as_json: bool, quiet: bool, options: ReadOptions,
) -> int:  # fmt: skip
    """A small model first, then a large one, then a person: which thresholds cost least?

    Each FILE holds one model's answers to the same questions, the cheapest first; they are joined by ids. A question
    that a model did not answer goes to the next one. Nothing is guaranteed by the data that choose the thresholds: --on
    judges them on other data, and bounds the errors. howsure decide and howsure export apply what -o writes. Exit code 1
    where everything goes to the person.

    \b
    Examples:
      howsure cascade small.jsonl large.jsonl --costs 1,10 --person 50 --error 200
      howsure cascade small.npz large.npz --split val --costs 1,20 --person 100 --accuracy 0.98
    """
    from howsure.policies.cascades import Cascade

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
    if on and len(on) != len(files):
        raise InputError(
            f"--on is given {len(on)} times for {len(files)} models; name one file for each, in order."
        )
    stages = _read_stages(files, options)
    with show_spinner("choosing"):
        chosen = Cascade.fit(
            stages,
            costs=prices,
            human_cost=person,
            human_error=person_error,
            error_cost=error,
            accuracy=accuracy,
        )
    names = tuple(Path(path).name.partition(".")[0] for path in files)
    if all(names) and len(set(names)) == len(names):
        chosen = replace(chosen, names=names)
    if on:
        chosen = replace(chosen, judged=chosen.evaluate(_read_stages(on, options)))
    if out is not None:
        from howsure._core.saving import save

        save(chosen, out)
        note(f"wrote {out}", quiet)
    if as_json:
        facts = asdict(chosen)
        judged = facts.pop("judged")
        click.echo(strict_json.dump_line(strict_json.to_plain({**facts, "on": judged})))
    elif not quiet:
        say(_draw_table(chosen, files))
    return int(chosen.expected is not None and chosen.expected.shares[-1] == 1)


def _read_stages(files: Sequence[str], options: ReadOptions) -> list[Outcomes]:
    from howsure.policies.cascades import join_stages

    return join_stages([read_files([path], options) for path in files])


def _draw_table(cascade: Cascade, files: Sequence[str]) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("answers", justify="left")
    for name in ("from confidence", "share"):
        table.add_column(name, justify="right")
    results = {"On these data": cascade.expected, "On new data": cascade.judged}
    if cascade.judged is not None:
        table.add_column("share on new data", justify="right")
    thresholds = ["never" if at == inf else f"{at:.4g}" for at in cascade.thresholds]
    names = [Path(f).stem for f in files]
    for i, (name, threshold) in enumerate(
        zip([*names, "a person"], [*thresholds, ""], strict=True)
    ):
        shares = [f"{r.shares[i]:.4g}" for r in results.values() if r is not None]
        table.add_row(Text(make_printable(name)), threshold, *shares)
    sentences: list[Text] = []
    for where, result in results.items():
        if result is not None:
            sentences.append(Text(make_printable(f"{where}: {_describe(result)}")))
    return Group(table, Text(""), *sentences)


def _describe(result: CascadeResult) -> str:
    own = f"{result.accuracy:.4g} of the models' own answers are right"
    if isnan(result.accuracy):
        own = "no model answers"
    elif result.bound is not None:
        sure = 1 - result.delta
        own += f", of such answers at most {result.bound * 100:.3g} % are wrong ({sure:.0%} confidence)"
    return f"mean cost {result.cost:.4g}; {own}; {result.system_accuracy:.4g} with the person's."
