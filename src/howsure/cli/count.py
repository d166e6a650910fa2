"""howsure count"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howsure._core.checks import InputError
from howsure.cli.common import (
    FILES,
    ReadingCommand,
    add_reading_options,
    check_ending,
    note,
    read_counts,
    show_spinner,
)
from howsure.cli.input_output import OutputPath

if TYPE_CHECKING:
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import ReadOptions

COUNT_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".feather")
READ_ROWS = 1 << 18


@click.command(cls=ReadingCommand)
@FILES
@click.option("-o", "--out", required=True, type=OutputPath(), help="Write .csv, .parquet, ...")
@click.option(
    "--by",
    "by",
    multiple=True,
    metavar="COLUMN",
    help="Count slices apart: hospital, age:40,60; repeatable.",
)
@click.option(
    "--grid",
    type=click.IntRange(1),
    metavar="N",
    help="Count in N buckets of equal width; 300 keeps the usual bins.",
)
@click.option(
    "--min-count",
    type=click.IntRange(1),
    default=1,
    metavar="K",
    help="Merge neighbouring scores until no count is from 1 to K - 1.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@add_reading_options
def command(
    files: Sequence[str],
    out: str,
    by: Sequence[str],
    grid: int | None,
    min_count: int,
    quiet: bool,
    options: ReadOptions,
) -> None:
    """How many answers of each confidence are right and wrong: a small table instead of the rows.

    Every command reads such a table like the rows it stands for, and several as one data set. --grid and
    --min-count put neighbouring scores together; a report then says between which values each number lies.

    \b
    Examples:
      howsure count 'logs/*.parquet' -o counts.csv
      howsure count test.csv --by hospital -o counts.parquet
      howsure count test.csv --grid 300 --min-count 5 -o to_share.csv
    """
    from howsure.formats.contents import list_matching_files
    from howsure.formats.count_tables import (
        count_answers,
        merge_equal_cells,
        merge_small_cells,
        put_on_grid,
        write_count_table,
    )
    from howsure.report.focus import Focus

    check_ending(out, COUNT_SUFFIXES, "counts")
    paths: list[str] = []
    for path in files:
        paths += list_matching_files(path)
    focus = Focus.of(None, by).streamed()
    table = read_counts(paths, options, focus.columns)
    with show_spinner(f"counting {', '.join(Path(path).name for path in paths)}"):
        if table is None:
            parts = scan_answers(paths, replace(options, attributes=tuple(focus.columns)), quiet)
            table = count_answers(parts, focus.by)
        else:
            if len(paths) > 1 and not by:
                # Whose cells they are is lost in the sum, unless the files are kept.
                table = replace(table, columns={})
            table = merge_equal_cells(table)
        if grid is not None:
            table = put_on_grid(table, grid)
        if min_count > 1:
            table = merge_small_cells(table, min_count)
    write_count_table(table, out)
    note(f"wrote {out}: {table.n:,} answers in {len(table.score):,} cells", quiet)


def scan_answers(paths: Sequence[str], options: ReadOptions, quiet: bool) -> Iterator[Predictions]:
    """The answers of all files in parts; what counts cannot tell is said once."""
    from howsure.formats import scan

    told = False
    for preds in scan(paths, options=options, rows=READ_ROWS):
        if preds.known_labels is None and preds.known_correct is None and not preds.graded:
            raise InputError(f"{Path(paths[0]).name} has no labels; counts are of right and wrong.")
        if preds.group is not None and not told:
            told = True
            line = "counts know no groups: limits made from them take rows as independent"
            note(f"howsure: {line}.", quiet)
        yield preds
