"""howsure monitor"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure.cli.common import ReadingCommand
import numpy as np

from howsure._core.check import Array, Bools, InputError
from howsure._core.frozen import frozen
from howsure.cli.common import (
    command_line,
    name_table,
    note,
    read_files,
    reading,
    say,
    showing,
    working,
)

if TYPE_CHECKING:
    from howsure.policies.policy import Policy
    from howsure.predictions import Predictions, Unanswered

LABELS = ("label", "labels", "y", "target", "targets")


@click.command(cls=ReadingCommand)
@click.argument("reference", type=click.Path())
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="NEW...")
@click.option(
    "--policy", type=click.Path(exists=True, dir_okay=False), help="What would this policy accept?"
)
@click.option(
    "--labels", type=click.Path(), help="Labels that have come since: a file with ids and labels."
)
@click.option(
    "--on",
    "on",
    default="id",
    show_default=True,
    help="The column of ids by which --labels are joined.",
)
@click.option("--by", help="Also estimate by this column (hospital, device, …).")
@click.option("--month", help="NEW is one file: months are the values of this column.")
@click.option("--chunk", type=int, help="NEW is one file: months are runs of so many rows.")
@click.option(
    "--max-drop",
    type=float,
    help="Exit 1 unless accuracy is at most this far below the reference's.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the limits.")
@click.option(
    "--drift-level",
    type=float,
    default=0.01,
    show_default=True,
    help="False-alarm rate of all drift tests together.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the folds."
)
@reading
@showing
def command(
    reference: str,
    files: Sequence[str],
    policy: str | None,
    labels: str | None,
    on: str,
    by: str | None,
    month: str | None,
    chunk: int | None,
    max_drop: float | None,
    level: float,
    drift_level: float,
    seed: int,
    as_json: bool,
    out: Sequence[str],
    html: str | None,
    quiet: bool,
    **how: Any,
) -> int:
    """Is it still as good? New data beside a labelled reference.

    REFERENCE is labelled data of the same model, NEW one file per month (labels in it are not looked at). Estimates the
    accuracy without labels, says what a policy would accept and what drifted. Exit code 1 where --max-drop is not met.

    \b
    Examples:
      howsure monitor val.npz march.npz
      howsure monitor val.csv march.csv april.csv --policy policy.json --max-drop 0.02
      howsure monitor val.csv march.csv --labels came.csv --on id --by hospital --html march.html
      howsure monitor val.parquet year.parquet --month month --json
    """
    from howsure.cli.evaluate import writer
    from howsure.report.unlabelled.monitoring import monitor

    targets = [*out, *([html] if html else [])]
    for target in targets:
        writer(target)
    past = read_files([reference], labelled=False, **how)
    months, slices, sources = _months(files, by, month, chunk, how)
    known = None if labels is None else _came(labels, on, name_table(how["names"]).get("labels"))
    with working("comparing"):
        found = monitor(
            past,
            months,
            policy=None if policy is None else _policy(policy),
            labels=known,
            by=slices,
            reference_by=None if by is None else _Rows.of(reference, past, how).column(by),
            max_drop=max_drop,
            level=level,
            drift_level=drift_level,
            seed=seed,
            files={"reference": [reference], **sources},
            command=command_line(),
        )
    for target in targets:
        getattr(found, writer(target))(target)
        note(f"wrote {target}", quiet)
    if as_json:
        click.echo(found.to_json(), nl=False)
    elif not quiet:
        from howsure.render.monitor import sheet

        say(sheet(found.data))
    return 0 if found.passed else 1


def _policy(path: str) -> Policy:
    from howsure._core.saving import load
    from howsure.policies.policy import Policy

    found = load(path)
    if not isinstance(found, Policy):
        raise InputError(
            path,
            got=f"holds a saved {type(found).__name__}, not a policy",
            hint="howsure threshold makes one",
        )
    return found


@frozen
class _Rows:
    """The rows of a file: why each has no answer, "" where it has one and so stands among the
    predictions.
    """

    path: str
    why: Array

    @classmethod
    def of(cls, path: str, preds: Predictions, how: Mapping[str, Any]) -> _Rows:
        from howsure.formats import read_column

        if preds.unanswered is None or not preds.unanswered.total:
            return cls(path, np.full(preds.n, ""))
        name = name_table(how["names"]).get("no_answer", "no_answer")
        why = np.array(
            ["" if cell == "None" else cell.strip().lower() for cell in read_column(path, name)]
        )
        if (why == "").sum() != preds.n:
            got = f"has rows without a confidence that column {name!r} does not explain"
            raise InputError(
                Path(path).name,
                got=got,
                need="--by, --month and --chunk need to know which rows they are",
            )
        return cls(path, why)

    def every(self, name: str) -> Array:
        """A column, of all rows."""
        from howsure.formats import read_column

        return np.array(read_column(self.path, name))

    def column(self, name: str) -> Array:
        """A column, of the rows with an answer."""
        return self.every(name)[self.why == ""]

    def unanswered(self, mine: Bools) -> Unanswered:
        """How many of some rows have no answer."""
        from howsure.predictions import Unanswered

        return Unanswered(
            **{
                word: int((self.why[mine] == word).sum())
                for word in ("unparseable", "refused", "missing")
            }
        )


def _months(
    files: Sequence[str],
    by: str | None,
    month: str | None,
    chunk: int | None,
    how: Mapping[str, Any],
) -> tuple[dict[str, Predictions], dict[str, Any] | None, dict[str, list[str]]]:
    """The new data by month, the column to slice by, and the files, all by the month's name."""
    from howsure.formats.location import together

    files = list(together(files))
    if (month is not None or chunk is not None) and len(files) > 1:
        raise InputError(
            "--month and --chunk cut one file into months; several files are months already."
        )
    read = {_name(f, files): _unlabelled(f, how) for f in files}
    cut = by is not None or month is not None or chunk is not None
    rows = {_name(f, files): _Rows.of(f, read[_name(f, files)], how) for f in files if cut}
    columns = {} if by is None else {name: found.column(by) for name, found in rows.items()}
    sources = {_name(f, files): [f] for f in files}
    if month is None and chunk is None:
        return read, columns or None, sources
    name, whole = next(iter(read.items()))
    of = (
        _by_column(rows[name], month)
        if month is not None
        else _by_rows(len(rows[name].why), chunk or 0)
    )
    answered = rows[name].why == ""
    mine = {key: np.flatnonzero(there[answered]) for key, there in of.items()}
    for key in of:
        if not len(mine[key]):
            raise InputError(
                f"month {key!r}", got="has no row with an answer", need="at least one is needed"
            )
    parts = {key: columns[name][at] for key, at in mine.items()} if columns else None
    months = {
        key: replace(whole[at], unanswered=rows[name].unanswered(of[key]))
        for key, at in mine.items()
    }
    return months, parts, dict.fromkeys(mine, sources[name])


def _by_column(rows: _Rows, month: str) -> dict[str, Bools]:
    """The rows of each month: numbers by size, dates by their digits, names in the order of the
    file.
    """
    value = rows.every(month)
    empty = int(np.isin(value, ("", "None", "nan")).sum())
    if empty:
        raise InputError(
            Path(rows.path).name, got=f"has {empty:,} rows without a {month}", need="each needs one"
        )
    names: list[str] = list(dict.fromkeys(value.tolist()))
    if all(name[:1].isdigit() for name in names):
        names.sort(key=_when)
    return {name: value == name for name in names}


def _when(name: str) -> tuple[float, str]:
    try:
        return float(name), name
    except ValueError:
        return 0.0, name


def _by_rows(n: int, chunk: int) -> dict[str, Bools]:
    if chunk < 1:
        raise InputError(f"--chunk {chunk}; at least one row is needed.")
    ends = [(i, min(i + chunk, n)) for i in range(0, n, chunk)]
    return {f"rows {i + 1:,} to {end:,}": np.arange(n) // chunk == i // chunk for i, end in ends}


def _name(path: str, files: Sequence[str]) -> str:
    stem = Path(path).name.split(".")[0]
    return stem if [Path(f).name.split(".")[0] for f in files].count(stem) == 1 else str(path)


def _unlabelled(path: str, how: Mapping[str, Any]) -> Predictions:
    """New data; names that say where the reference keeps its truth are left out where this file has
    none.
    """
    from howsure.formats.files import column_names

    there = column_names(path) if how["names"] else []
    names = [
        n
        for n in how["names"]
        if n.partition("=")[0] not in ("labels", "correct") or n.partition("=")[2] in there
    ]
    rest = {key: value for key, value in how.items() if key != "names"}
    return read_files([path], names=names, labelled=False, **rest)


def _came(path: str, on: str, label: str | None) -> dict[str, str]:
    """Labels by id."""
    from howsure.formats import read_column
    from howsure.formats.files import column_names

    there = column_names(path)
    rest = [name for name in there if name != on]
    column = (
        label
        if label in rest
        else next((n for n in rest if n in LABELS), rest[0] if len(rest) == 1 else None)
    )
    if column is None:
        hint = "name it with --name labels=COLUMN"
        raise InputError(
            Path(path).name,
            got=f"has the columns {', '.join(there)}",
            need="a column of labels is needed",
            hint=hint,
        )
    ids, labels = read_column(path, on), read_column(path, column)
    found = dict(zip(ids, labels, strict=True))
    if len(found) < len(ids):
        raise InputError(
            Path(path).name,
            got=f"has {len(ids) - len(found):,} ids more than once",
            need="one label each",
        )
    return found
