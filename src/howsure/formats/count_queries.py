"""Count tables from a database: the query that makes one, and the table that a query returned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure._core.checks import Array, InputError, need
from howsure._core.frozen import frozen
from howsure.formats.count_tables import CountTable, make_count_table


@frozen
class Dialect:
    """How a database writes what differs: the quote around names, types, and the whole number above."""

    quote: str
    double: str
    text: str
    run: bool  # whether our tests run its queries; the others are parsed only
    quote_plain: bool = True
    ceiling: str = "CEIL({0})"


DIALECTS = {
    "duckdb": Dialect(quote='"', double="DOUBLE", text="VARCHAR", run=True),
    "postgres": Dialect(quote='"', double="DOUBLE PRECISION", text="TEXT", run=False),
    "sqlite": Dialect(
        quote='"',
        double="REAL",
        text="TEXT",
        run=True,
        # Not every build knows CEIL.
        ceiling="CAST({0} AS INTEGER) + ({0} > CAST({0} AS INTEGER))",
    ),
    "spark": Dialect(quote="`", double="DOUBLE", text="STRING", run=False),
    "bigquery": Dialect(quote="`", double="FLOAT64", text="STRING", run=False),
    # Quoted names are case-sensitive there, and plain ones are stored in capitals.
    "snowflake": Dialect(quote='"', double="DOUBLE", text="VARCHAR", run=False, quote_plain=False),
}
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
EXACT_QUERY = """\
SELECT c AS {confidence}, r AS {correct}, COUNT(*) AS {count}{slices}
FROM ({answers}) AS answers
GROUP BY c, r{keys}"""
# A bucket ends with its upper edge and begins just above the lower one. The product may round to
# the wrong side of an edge, so that the edges themselves decide.
GRID_QUERY = """\
SELECT AVG(c) AS {confidence}, r AS {correct}, COUNT(*) AS {count},
  CASE WHEN b = 0 THEN 0 WHEN b = 1 THEN 1e-300 ELSE (b - 1) / {n} * 1.0000000000000002 END AS {low},
  b / {n} AS {high}{slices}
FROM (
  SELECT c, r{keys},
    CASE WHEN c <= (k - 1) / {n} THEN k - 1 WHEN c > k / {n} THEN k + 1 ELSE k END AS b
  FROM (SELECT c, r{keys}, CAST({ceiling} AS {double}) AS k FROM ({answers}) AS answers) AS products
) AS buckets
GROUP BY b, r{keys}"""
ANSWERS = """\
SELECT CAST({confidence} AS {double}) AS c,
  CASE LOWER(CAST({correct} AS {text}))
    WHEN '1' THEN 1 WHEN '1.0' THEN 1 WHEN 'true' THEN 1
    WHEN '0' THEN 0 WHEN '0.0' THEN 0 WHEN 'false' THEN 0 END AS r{columns} FROM {table}"""


def write_count_query(
    dialect: str,
    *,
    table: str,
    confidence: str,
    correct: str,
    by: Sequence[str] = (),
    grid: int | None = None,
) -> str:
    """One query whose result is a count table: of each confidence, or of `grid` buckets.

    >>> print(write_count_query("duckdb", table="logs", confidence="p", correct="ok"))
    SELECT c AS "confidence", r AS "correct", COUNT(*) AS "count"
    FROM (SELECT CAST("p" AS DOUBLE) AS c,
      CASE LOWER(CAST("ok" AS VARCHAR))
        WHEN '1' THEN 1 WHEN '1.0' THEN 1 WHEN 'true' THEN 1
        WHEN '0' THEN 0 WHEN '0.0' THEN 0 WHEN 'false' THEN 0 END AS r FROM "logs") AS answers
    GROUP BY c, r
    """
    d = DIALECTS[dialect]

    def mark(name: str) -> str:
        return d.quote + name.replace(d.quote, 2 * d.quote) + d.quote

    def refer(name: str) -> str:
        return mark(name) if d.quote_plain or not PLAIN_NAME.fullmatch(name) else name

    for name in (table, confidence, correct, *by):
        if not name or not name.isprintable() or "\\" in name:
            raise InputError(f"{name!r} is no name of a table or column.")
    keys = [f"s{i}" for i in range(len(by))]
    answers = ANSWERS.format(
        confidence=refer(confidence),
        correct=refer(correct),
        double=d.double,
        text=d.text,
        columns="".join(f", {refer(name)} AS {key}" for name, key in zip(by, keys, strict=True)),
        table=".".join(refer(part) for part in table.split(".")),
    )
    n = f"CAST({grid} AS {d.double})"
    return (EXACT_QUERY if grid is None else GRID_QUERY).format(
        answers=answers,
        confidence=mark("confidence"),
        correct=mark("correct"),
        count=mark("count"),
        low=mark("score_low"),
        high=mark("score_high"),
        double=d.double,
        ceiling=d.ceiling.format(f"(c * {n})"),
        n=n,
        keys="".join(f", {key}" for key in keys),
        slices="".join(f", {key} AS {mark(name)}" for name, key in zip(by, keys, strict=True)),
    )


def query_counts(query: str, database: str | Path) -> CountTable:
    """The count table that a query returns, run in a DuckDB file, which is only read; ':memory:' is an
    empty one, for queries that read files by themselves.
    """
    duckdb = need("duckdb", for_="evaluate --sql", extra="duckdb")
    name = str(database)
    try:
        with duckdb.connect(name, read_only=name != ":memory:") as connection:
            # Where Python seems to be interactive, a bar would stand in the report's JSON.
            connection.execute("SET enable_progress_bar = false")
            columns = connection.execute(query).fetchnumpy()
    except duckdb.Error as e:
        raise InputError(f"DuckDB refuses --sql: {str(e).splitlines()[0]}") from None
    arrays: dict[str, Array] = {}
    for column, values in columns.items():
        empty = int(np.sum(getattr(values, "mask", False)))
        if empty:
            got = f"returns {empty:,} rows without {column!r}"
            need_ = (
                "a confidence and right or wrong (1 or 0, true or false) are needed in every row"
            )
            raise InputError("--sql", got=got, need=need_)
        array = np.asarray(values)
        arrays[column] = array.astype(np.str_) if array.dtype.kind == "O" else array
    if not arrays or not len(next(iter(arrays.values()))):
        raise InputError("--sql returns no rows.")
    return make_count_table(arrays, "--sql")
