"""Hostile names in queries that count, run in real databases; hostile count tables and slices."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import howsure as hs
from benchmarks.attack.programs import NAMES
from howsure.cli import main
from howsure.formats.count_queries import write_count_query

HEAD = "confidence,correct,count"
CELLS = (
    "0", "1", "-1", "0.5", "2.5", "nan", "inf", "-inf", "1e400", "9" * 30, "-0", "5e-324", "", " ",
    "NULL", "true", "=1+1", "'", "1_000", "１", "0x10", "1e13", "1e300", "9007199254740993",
)  # fmt: skip
COMMANDS = ("evaluate", "doctor", "threshold", "calibrate", "count", "check", "compare")
Attack = tuple[str, Callable[[], str]]


def list_attacks(folder: Path) -> Iterator[Attack]:
    """Every attack with its name; it says what went wrong."""
    for name in NAMES:
        shown = repr(name)[:40]
        yield f"sqlite {shown}", partial(query_names, sqlite3.connect, "sqlite", name)
        if find_spec("duckdb") is not None:
            import duckdb

            yield f"duckdb {shown}", partial(query_names, duckdb.connect, "duckdb", name)
        yield f"slice {shown}", partial(count_slices, name, folder)
    for place, cell in ((place, cell) for place in range(3) for cell in CELLS):
        row = ["0.8", "1", "40"]
        row[place] = cell
        path = folder / f"cell{place}.csv"
        for command in COMMANDS:
            yield f"{command} {row}", partial(run_on_table, path, row, command)


def query_names(connect: Callable[[str], Any], dialect: str, name: str) -> str:
    """A table and a column of this name: counted right or refused, and not changed."""
    try:
        query = write_count_query(dialect, table=name, confidence=name, correct="ok", by=["site"])
    except hs.InputError as e:
        return "" if "\n" not in str(e) else "a refusal of several lines"
    parts = ['"' + part.replace('"', '""') + '"' for part in name.split(".")]
    table, column = parts[-1], '"' + name.replace('"', '""') + '"'
    base = connect(":memory:")
    try:
        base.execute(f"CREATE TABLE {table} ({column} DOUBLE, ok INTEGER, site VARCHAR)")
        base.execute(f"INSERT INTO {table} VALUES (0.5, 1, 'a'), (0.5, 1, 'a'), (0.5, 0, 'b')")
    except Exception:  # a name that the database cannot have
        return ""
    try:
        cells = sorted(base.execute(query).fetchall())
        rows = base.execute(f"SELECT count(*) FROM {table}").fetchone()
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:150]}"
    finally:
        base.close()
    counted = sorted((int(cell[1]), int(cell[2])) for cell in cells)
    if (counted, rows[0]) == ([(0, 1), (1, 2)], 3):
        return ""
    return f"{cells}, {rows} rows"


def count_slices(name: str, folder: Path) -> str:
    """Answers of a place of this name are counted, and the table is evaluated."""
    source, table = folder / "rows.csv", folder / "counts.csv"
    with source.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        write = csv.writer(file)
        write.writerow(["confidence", "correct", "site"])
        write.writerows([[0.5 + i % 50 / 100, int(i % 3 > 0), (name, "b")[i % 2]] for i in range(200)])  # fmt: skip
    table.unlink(missing_ok=True)
    fault = run_command(["count", source, "--by", "site", "-o", table, "-q"])
    if fault or not table.exists():
        return fault
    return run_command(["evaluate", table, "--by", "site", "-q"])


def run_on_table(path: Path, row: list[str], command: str) -> str:
    """A command on a count table with one odd cell."""
    path.write_text("\n".join([HEAD, "0.9,1,300", "0.7,0,20", ",".join(row)]) + "\n")
    more = {
        "threshold": ["--risk", "0.2"],
        "count": ["-o", path.with_name("again.csv")],
        "check": ["--require", "accuracy>=0.1"],
        "compare": [path],
    }
    path.with_name("again.csv").unlink(missing_ok=True)
    return run_command([command, path, *more.get(command, [])])


def run_command(args: list[str | Path]) -> str:
    """What went wrong; nothing where it ended well, or refused in one line."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main([str(arg) for arg in args])
    except SystemExit as e:
        code = e.code or 0
    except BaseException as e:
        return f"{type(e).__name__}: {str(e)[:150]}"
    said = err.getvalue() or out.getvalue()  # doctor finds faults on standard output
    if code not in (0, 1, 2) or "Traceback" in said or "Warning" in said:
        return f"exit {code}: {said[-200:]}"
    if code == 2 and (not said.strip() or max(map(len, said.splitlines())) > 2000):
        return f"exit 2 with {len(said):,} characters"
    return ""
