"""howsure sql"""

from __future__ import annotations

from collections.abc import Sequence

import click

from howsure._core.checks import InputError
from howsure._core.text import is_count
from howsure.cli.input_output import PathCommand

DIALECTS = ("duckdb", "postgres", "sqlite", "spark", "bigquery", "snowflake")


@click.command(cls=PathCommand)
@click.option("--dialect", required=True, type=click.Choice(DIALECTS), help="The database.")
@click.option("--table", required=True, metavar="T", help="The table; parts are joined by dots.")
@click.option("--confidence", required=True, metavar="COLUMN", help="How sure each answer was.")
@click.option("--correct", required=True, metavar="COLUMN", help="1 or true where it was right.")
@click.option("--by", multiple=True, metavar="COLUMN", help="Count slices apart; repeatable.")
@click.option(
    "--grid", default="exact", metavar="exact|N", help="N buckets of equal width on [0, 1]."
)
def command(
    dialect: str, table: str, confidence: str, correct: str, by: Sequence[str], grid: str
) -> None:
    """Print the query that counts the answers of a table, so that no row has to leave the database.

    Its result is a count table: save it as CSV or Parquet and give it to any command, or let DuckDB run it by
    howsure evaluate --sql. Without --grid every confidence is a cell; 300 buckets keep the usual bins.

    \b
    Examples:
      howsure sql --dialect postgres --table public.logs --confidence p --correct ok > counts.sql
      howsure sql --dialect bigquery --table logs --confidence p --correct ok --by country --grid 300
    """
    from howsure.formats.count_queries import DIALECTS as WRITTEN
    from howsure.formats.count_queries import write_count_query

    buckets = None
    if grid != "exact":
        if not is_count(grid) or not 1 <= int(grid) <= 10_000:
            raise InputError(f"--grid is {grid}; exact, or a number of buckets up to 10,000.")
        buckets = int(grid)
    query = write_count_query(
        dialect, table=table, confidence=confidence, correct=correct, by=by, grid=buckets
    )
    if not WRITTEN[dialect].run:
        click.echo(f"-- Written for {dialect} and checked by a parser, not run there.")
    click.echo(
        "-- A confidence or an outcome that is empty or unknown makes a row that howsure refuses."
    )
    click.echo(query + ";")
