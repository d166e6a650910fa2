"""howsure monitor"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from howsure._core.check import InputError
from howsure.cli.common import command_line, name_table, note, read_files, reading, say, showing, working

if TYPE_CHECKING:
    from howsure.policies.policy import Policy
    from howsure.predictions import Predictions

LABELS = ("label", "labels", "y", "target", "targets")


@click.command()
@click.argument("reference", type=click.Path())
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="NEW...")
@click.option("--policy", type=click.Path(exists=True, dir_okay=False), help="What would this policy accept?")
@click.option("--labels", type=click.Path(), help="Labels that have come since: a file with ids and labels.")
@click.option("--on", "on", default="id", show_default=True, help="The column of ids by which --labels are joined.")
@click.option("--by", help="Also estimate by this column (hospital, device, …).")
@click.option("--month", help="NEW is one file: months are the values of this column.")
@click.option("--chunk", type=int, help="NEW is one file: months are runs of so many rows.")
@click.option("--max-drop", type=float, help="Exit 1 unless accuracy is at most this far below the reference's.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the limits.")
@click.option(
    "--drift-level", type=float, default=0.01, show_default=True, help="False-alarm rate of all drift tests together."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the folds.")
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
    from howsure.formats import read_column
    from howsure.report.unlabelled.monitoring import monitor

    targets = [*out, *([html] if html else [])]
    for target in targets:
        writer(target)
    past = read_files([reference], **how)
    months, slices, sources = _months(files, by, month, chunk, how)
    known = None if labels is None else _came(labels, on, name_table(how["names"]).get("labels"))
    with working("comparing"):
        found = monitor(
            past,
            months,
            policy=None if policy is None else _policy(policy),
            labels=known,
            by=slices,
            reference_by=None if by is None else read_column(reference, by),
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
        raise InputError(path, got=f"holds a {type(found).__name__}, not a policy", hint="howsure threshold makes one")
    return found


def _months(
    files: Sequence[str], by: str | None, month: str | None, chunk: int | None, how: Mapping[str, Any]
) -> tuple[dict[str, Predictions], dict[str, Any] | None, dict[str, list[str]]]:
    """The new data by month, the column to slice by, and the files, all by the month's name."""
    from howsure.formats import read_column

    if (month is not None or chunk is not None) and len(files) > 1:
        raise InputError("--month and --chunk cut one file into months; several files are months already.")
    read = {_name(f, files): _unlabelled(f, how) for f in files}
    columns = {} if by is None else {_name(f, files): np.array(read_column(f, by)) for f in files}
    sources = {_name(f, files): [f] for f in files}
    if month is None and chunk is None:
        return read, columns or None, sources
    (name, whole), rows = next(iter(read.items())), {}
    if month is not None:
        value = np.array(read_column(files[0], month))
        rows = {str(v): np.flatnonzero(value == v) for v in np.unique(value).tolist()}
    elif chunk is not None:
        if chunk < 1:
            raise InputError(f"--chunk {chunk}; at least one row is needed.")
        rows = {f"rows {i + 1:,}": np.arange(i, min(i + chunk, whole.n)) for i in range(0, whole.n, chunk)}
    parts = {key: columns[name][mine] for key, mine in rows.items()} if columns else None
    return {key: whole[mine] for key, mine in rows.items()}, parts, dict.fromkeys(rows, sources[name])


def _name(path: str, files: Sequence[str]) -> str:
    stem = Path(path).name.split(".")[0]
    return stem if [Path(f).name.split(".")[0] for f in files].count(stem) == 1 else str(path)


def _unlabelled(path: str, how: Mapping[str, Any]) -> Predictions:
    """New data; names that say where the reference keeps its truth are left out where this file has none."""
    from howsure.formats.files import column_names

    there = column_names(path) if how["names"] else []
    names = [
        n for n in how["names"] if n.partition("=")[0] not in ("labels", "correct") or n.partition("=")[2] in there
    ]
    rest = {key: value for key, value in how.items() if key != "names"}
    return read_files([path], names=names, **rest)


def _came(path: str, on: str, label: str | None) -> dict[str, str]:
    """Labels by id."""
    from howsure.formats import read_column
    from howsure.formats.files import column_names

    there = column_names(path)
    rest = [name for name in there if name != on]
    column = label if label in rest else next((n for n in rest if n in LABELS), rest[0] if len(rest) == 1 else None)
    if column is None:
        hint = "name it with --name labels=COLUMN"
        raise InputError(Path(path).name, got=f"has the columns {', '.join(there)}", need="one of labels", hint=hint)
    ids, labels = read_column(path, on), read_column(path, column)
    found = dict(zip(ids, labels, strict=True))
    if len(found) < len(ids):
        raise InputError(
            Path(path).name, got=f"has {len(ids) - len(found):,} ids more than once", need="one label each"
        )
    return found
