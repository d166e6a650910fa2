"""howsure compare"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core.check import InputError
from howsure.cli.common import (
    FILES,
    command_line,
    measuring,
    name_table,
    note,
    read_files,
    reading,
    say,
    showing,
    working,
)

if TYPE_CHECKING:
    from howsure.predictions import Predictions
    from howsure.report.comparison import Comparison

    Reader = Callable[[str], Predictions]


@click.command()
@FILES
@click.option(
    "--score",
    "scores",
    multiple=True,
    help="The score to look at; several with one FILE compare scores.",
)
@click.option("--by", metavar="COLUMN", help="Slice by this column: worst group first.")
@click.option(
    "--cost",
    "costs",
    multiple=True,
    metavar="MODEL=NUMBER",
    help="Parameters or latency of a model; repeatable.",
)
@click.option("--cost-name", default="cost", show_default=True, help="What that number is.")
@click.option(
    "--shift",
    "shifts",
    multiple=True,
    metavar="MODEL=FILE",
    help="A model's answers to a shifted, labelled set.",
)
@click.option(
    "--outside",
    "outsides",
    multiple=True,
    metavar="MODEL=FILE",
    help="A model's answers to samples from outside.",
)
@click.option("--common", is_flag=True, help="Compare on the ids that all files share.")
@reading
@measuring
@showing
def command(
    files: Sequence[str],
    scores: Sequence[str],
    by: str | None,
    common: bool,
    level: float,
    seed: int,
    as_json: bool,
    out: Sequence[str],
    html: str | None,
    quiet: bool,
    **more: Any,
) -> None:
    """Which model, score or calibrator is better on the same samples?

    Each FILE holds one model's answers; models are named by their files. They are ranked by AURC with paired
    differences. AUROC and AUPR of finding errors and E-AURC are withheld where the answers differ, for there they
    mislead.

    \b
    Examples:
      howsure compare small.npz large.npz --split test
      howsure compare test.npz --score max_prob --score entropy --score energy
      howsure compare a.csv b.csv --by hospital --html comparison.html
      howsure compare a.npz b.npz --cost a=1.2e6 --cost b=25e6 --cost-name parameters
      howsure compare answers.csv            every confidence of a log of language-model answers
    """
    from howsure.cli.evaluate import writer
    from howsure.formats.location import together
    from howsure.report.comparison import compare

    files = list(together(files))
    targets = [*out, *([html] if html else [])]
    for target in targets:
        writer(target)
    extra = {name: more.pop(name) for name in ("costs", "cost_name", "shifts", "outsides")}
    read: Reader = lambda path: read_files([path], **more)
    confidences = _confidences(files, scores, more)
    if confidences:
        note(
            f"howsure: {', '.join(f'{name} is {kind}' for name, kind in confidences.items())}",
            quiet,
        )
        given, scores, common = _each(files[0], list(confidences), **more), (), True
    else:
        given = (
            _scores(files, scores, read)
            if len(files) == 1
            else {_name(f, files): read(f) for f in files}
        )
    settings: dict[str, Any] = {
        **_further(read, more, **extra),
        "common": common,
        "level": level,
        "seed": seed,
    }
    score = scores[0] if scores else "max_prob"
    with working("comparing"):
        found = compare(
            given, score=score, by=_column(files[0], by, **more), command=command_line(), **settings
        )
    for target in targets:
        getattr(found, writer(target))(target)
        note(f"wrote {target}", quiet)
    show(found, as_json=as_json, quiet=quiet)


def show(found: Comparison, *, as_json: bool, quiet: bool) -> None:
    """Print a comparison."""
    from howsure.render.comparison import sheet

    if as_json:
        click.echo(found.to_json(), nl=False)
    elif not quiet:
        say(sheet(found.data))


def _column(path: str, by: str | None, names: Sequence[str], **how: Any) -> Any:
    """The column to slice by: a table from id to value where there are ids, else a value per row.

    It is read as the group, but only to slice: samples are not drawn together because of it.
    """
    if by is None:
        return None
    preds = read_files([path], names=[*names, *([f"group={by}"] if by != "group" else [])], **how)
    if preds.group is None:
        raise InputError(f"{path} has no column {by!r} to slice by.")
    return (
        preds.group
        if preds.ids is None
        else dict(zip(preds.ids.tolist(), preds.group.tolist(), strict=True))
    )


def _further(
    read: Reader, how: dict[str, Any], costs: Any, cost_name: str, shifts: Any, outsides: Any
) -> dict[str, Any]:
    """What else is known of the models: cost, shifted sets, sets from outside."""
    return {
        "cost": {who: _number(text) for who, text in _table(costs, "--cost")} or None,
        "cost_name": cost_name,
        "shifted": _sets(shifts, "--shift", read),
        "outside": _sets(
            outsides, "--outside", lambda path: read_files([path], labelled=False, **how)
        ),
    }


def _scores(files: Sequence[str], scores: Sequence[str], read: Reader) -> dict[str, Any]:
    """One file: its scores are compared."""
    if len(scores) < 2:
        raise InputError(
            "one FILE is given; give a second one, or several --score to compare scores of this one."
        )
    preds = read(files[0])
    return {score: (preds, score) for score in scores}


def _confidences(
    files: Sequence[str], scores: Sequence[str], how: dict[str, Any]
) -> dict[str, str]:
    """The confidences of a log to compare with what they are: those asked for, or all; none where
    there is one.
    """
    from howsure.formats.logs import is_log, read_log

    path = Path(files[0])
    if len(files) > 1 or not is_log(path, how["format"]):
        return {}
    metric = name_table(how["names"]).get("correct")
    there = {
        c.name: str(c.kind) for c in read_log(path, tool=how["format"], metric=metric).confidences
    }
    asked = {name: kind for name, kind in there.items() if name in (scores or there)}
    return asked if len(asked) > 1 and len(asked) == len(scores or there) else {}


def _each(
    path: str, confidences: Sequence[str], names: Sequence[str], **how: Any
) -> dict[str, Predictions]:
    """The same answers with each of the confidences."""
    first = confidences[0]
    return {
        c: read_files([path], names=[*names, f"confidence={c}"], told=c == first, **how)
        for c in confidences
    }


def _name(path: str, files: Sequence[str]) -> str:
    """The file's name without its ending; with its folder where two files have the same name."""
    stems = [Path(f).stem for f in files]
    unique = (
        stems.count(Path(path).stem) == 1 or not Path(path).name
    )  # a path without a name is refused later
    return Path(path).stem if unique else str(Path(path).with_suffix(""))


def _table(entries: Sequence[str], option: str) -> list[tuple[str, str]]:
    """MODEL=... → (MODEL, ...)."""
    found: list[tuple[str, str]] = []
    for entry in entries:
        who, _, what = entry.partition("=")
        if not who or not what:
            raise InputError(
                f"{option} {entry!r} is not MODEL=VALUE; a model is named by its file, without the ending."
            )
        found.append((who, what))
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--cost {text!r} is not a number.") from None


def _sets(entries: Sequence[str], option: str, read: Reader) -> dict[str, dict[str, Any]] | None:
    """MODEL=FILE → {name of the set: {model: predictions}}."""
    found: dict[str, dict[str, Any]] = {}
    for who, path in _table(entries, option):
        found.setdefault(Path(path).stem, {})[who] = read(path)
    return found or None
