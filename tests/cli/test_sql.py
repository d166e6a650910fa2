"""Queries that make count tables: run in real databases, parsed where there is none."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.real_sets import SETS

import howsure as hs
from howsure import InputError
from howsure.formats.count_queries import DIALECTS, query_counts, write_count_query
from howsure.formats.count_tables import CountTable, count_answers, make_count_table, put_on_grid
from howsure.metrics.compact_bounds import report_bounds
from howsure.report.catalogue import list_claim_items, list_ranking_items

RNG = np.random.default_rng(5)
# Scores on edges of buckets, next to them, at both ends, tied and spread.
EDGES = np.arange(301) / 300
SCORE = np.concatenate(
    [EDGES, np.nextafter(EDGES, 2)[:-1], np.nextafter(EDGES, -1)[1:], np.round(RNG.random(2000), 2)]
)
RIGHT = RNG.random(len(SCORE)) < SCORE
PLACE = np.where(RNG.random(len(SCORE)) < 0.3, "north", "south")
PREDS = hs.Predictions.from_confidence(SCORE, RIGHT, attributes={"place": PLACE})
COLUMNS = {"table": "logs", "confidence": "p", "correct": "ok"}


def run_sqlite(query: str, kind: Callable[[bool], object] = int) -> CountTable:
    with sqlite3.connect(":memory:") as base:
        base.execute('CREATE TABLE logs (p REAL, ok, "place" TEXT)')
        rows = zip(SCORE.tolist(), map(kind, RIGHT.tolist()), PLACE.tolist(), strict=True)
        base.executemany("INSERT INTO logs VALUES (?, ?, ?)", rows)
        made = base.execute(query)
        names = [column[0] for column in made.description]
        cells = list(zip(*made.fetchall(), strict=True))
    return make_count_table({n: np.array(c) for n, c in zip(names, cells, strict=True)})


def list_cells(table: CountTable) -> list[tuple[Any, ...]]:
    """All cells in one order; means of a database may differ in the last digits."""
    columns = [table.columns[name].tolist() for name in sorted(table.columns)]
    rows = zip(
        table.high.tolist(), table.loss.tolist(), table.count.tolist(),
        np.round(table.score, 12).tolist(), *columns, strict=True,
    )  # fmt: skip
    return sorted(rows)


@pytest.mark.parametrize("by", [(), ("place",)])
@pytest.mark.parametrize("grid", [None, 10, 300])
def test_sqlite_counts_as_we_do(grid: int | None, by: tuple[str, ...]) -> None:
    from howsure.report.focus import Focus

    query = write_count_query("sqlite", **COLUMNS, by=by, grid=grid)
    ours = count_answers([PREDS], Focus.of(None, by).by)
    if grid is not None:
        ours = put_on_grid(ours, grid)
    assert list_cells(run_sqlite(query)) == list_cells(ours)


@pytest.mark.parametrize("kind", [int, float, lambda right: "true" if right else "False"])
def test_right_and_wrong_may_be_numbers_or_words(kind: Callable[[bool], object]) -> None:
    query = write_count_query("sqlite", **COLUMNS)
    assert list_cells(run_sqlite(query, kind)) == list_cells(count_answers([PREDS]))


@pytest.mark.parametrize("grid", [None, 300])
def test_duckdb_counts_as_we_do(grid: int | None, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "logs.duckdb")) as base:
        base.execute("CREATE TABLE logs (p DOUBLE, ok BOOLEAN)")
        rows = zip(SCORE.tolist(), RIGHT.tolist(), strict=True)
        base.executemany("INSERT INTO logs VALUES (?, ?)", list(rows))
    query = write_count_query("duckdb", **COLUMNS, grid=grid)
    ours = count_answers([PREDS])
    if grid is not None:
        ours = put_on_grid(ours, grid)
    table = query_counts(query, tmp_path / "logs.duckdb")
    assert list_cells(table) == list_cells(ours)
    exact = hs.tally(SCORE, correct=RIGHT)
    low, high = hs.aurc(exact), hs.aurc(exact)
    if grid is not None:
        low, high = hs.certified(hs.aurc, table.tally())
    assert low <= hs.aurc(exact) <= high


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("grid", [None, 100])
def test_every_dialect_is_parsed(dialect: str, grid: int | None) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    query = write_count_query(
        dialect, table="a.logs", confidence="p", correct="group", by=("ci ty",), grid=grid
    )
    tree = sqlglot.parse_one(query, dialect=dialect)
    assert [one.alias for one in tree.selects][:3] == ["confidence", "correct", "count"]
    assert tree.find(sqlglot.exp.Group) is not None


def test_names_are_quoted() -> None:
    name = 'x" FROM logs; DROP TABLE logs; --'
    query = write_count_query("sqlite", table=name, confidence=name, correct=name)
    with sqlite3.connect(":memory:") as base:
        quoted = '"' + name.replace('"', '""') + '"'
        base.execute(f"CREATE TABLE {quoted} ({quoted})")
        base.execute(f"INSERT INTO {quoted} VALUES (1)")
        assert base.execute(query).fetchall() == [(1.0, 1, 1)]
    with pytest.raises(InputError, match="no name"):
        write_count_query("sqlite", table="a\nb", confidence="p", correct="ok")


def test_the_command(howsure: Callable[..., Any], tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "logs.duckdb")) as base:
        base.execute("CREATE TABLE logs (p DOUBLE, ok INTEGER, place VARCHAR)")
        rows = zip(SCORE.tolist(), map(int, RIGHT.tolist()), PLACE.tolist(), strict=True)
        base.executemany("INSERT INTO logs VALUES (?, ?, ?)", list(rows))
    names = ["--table", "logs", "--confidence", "p", "--correct", "ok", "--by", "place"]
    query = howsure("sql", "--dialect", "duckdb", *names).out
    ran = howsure("evaluate", "--sql", query, "--db", "logs.duckdb", "--by", "place", "--json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    own = hs.evaluate(PREDS, by="place").data
    for metric in ("aurc", "auroc", "accuracy", "ece", "coverage_at_risk_0.05"):
        assert report["metrics"][metric]["value"] == pytest.approx(
            own["metrics"][metric]["value"], abs=1e-12
        )
    assert [row["n"] for row in report["slices"]["rows"]] == [
        row["n"] for row in own["slices"]["rows"]
    ]
    # What is empty or unknown is refused, not dropped.
    with duckdb.connect(str(tmp_path / "logs.duckdb")) as base:
        base.execute("INSERT INTO logs VALUES (0.5, 7, 'north')")
    refused = howsure("evaluate", "--sql", query, "--db", "logs.duckdb")
    assert (refused.code, "1 rows without 'correct'" in refused.err) == (2, True)
    wrong = howsure("evaluate", "--sql", "SELECT nothing", "--db", "logs.duckdb")
    assert (wrong.code, wrong.err.startswith("howsure: DuckDB refuses --sql")) == (2, True)
    assert howsure("evaluate", "--db", "logs.duckdb").code == 2
    assert howsure("evaluate").code == 2


def test_a_query_that_was_not_run_says_so(howsure: Callable[..., Any]) -> None:
    names = ["--table", "logs", "--confidence", "p", "--correct", "ok"]
    assert "not run there" in howsure("sql", "--dialect", "snowflake", *names).out
    assert "not run there" not in howsure("sql", "--dialect", "sqlite", *names).out
    assert howsure("sql", "--dialect", "sqlite", *names, "--grid", "0").code == 2


def count_in_database(
    dialect: str, preds: hs.Predictions, folder: Path, grid: int | None
) -> CountTable:
    """What the query of this dialect returns of these rows."""
    query = write_count_query(dialect, **COLUMNS, grid=grid)
    if dialect == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        file = folder / "logs.duckdb"
        file.unlink(missing_ok=True)
        with duckdb.connect(str(file)) as base:
            base.register("given", {"p": preds.confidence, "ok": preds.correct})
            base.execute("CREATE TABLE logs AS SELECT * FROM given")
        return query_counts(query, file)
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE logs (p REAL, ok INTEGER)")
        rows = zip(preds.confidence.tolist(), preds.correct.tolist(), strict=True)
        base.executemany("INSERT INTO logs VALUES (?, ?)", rows)
        made = base.execute(query)
        names = [column[0] for column in made.description]
        cells = zip(*made.fetchall(), strict=True)
    return make_count_table({n: np.array(c) for n, c in zip(names, cells, strict=True)})


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", SETS)
def test_real_sets_by_rows_by_counts_and_by_sql(
    name: str, dialect: str, shared: Path, tmp_path: Path
) -> None:
    """The tallies are the same to the last bit, and so is whatever is made of them."""
    preds = hs.read(shared / "data" / f"{name}.npz", split="test")
    if preds.n > 30_000:
        preds = preds[:30_000]
    exact = hs.tally(preds.confidence, correct=preds.correct)
    for table in (count_answers([preds]), count_in_database(dialect, preds, tmp_path, None)):
        made = table.tally()
        for part in ("score", "count", "loss"):
            assert np.array_equal(getattr(made, part), getattr(exact, part)), part
        assert (hs.aurc(made), hs.auroc(made)) == (hs.aurc(exact), hs.auroc(exact))
        assert hs.ece(made) == pytest.approx(hs.ece(exact), abs=1e-12)
    small = count_in_database(dialect, preds, tmp_path, 300).tally()
    items = [*list_ranking_items(), *list_claim_items()]
    bounds = report_bounds(items, small)
    known = {name for name, one in bounds.items() if one["bounds"] is not None}
    assert {"aurc", "augrc", "auroc", "coverage_at_risk_0.05", "ece", "mce"} <= known
    for item in items:
        if item.name in known:
            low, high = bounds[item.name]["bounds"]
            value = item.measure(exact)
            assert low is None or low <= value, item.name
            assert high is None or value <= high, item.name
