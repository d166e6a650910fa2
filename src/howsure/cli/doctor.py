"""howsure doctor"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.text import make_printable, shorten
from howsure.cli.common import (
    FILES,
    ReadingCommand,
    add_label_options,
    add_reading_options,
    format_reading_call,
    get_label_file,
    say,
    show_spinner,
)
from howsure.cli.questions import list_questions

if TYPE_CHECKING:
    from howsure.formats import Description, FileProblem, ReadOptions
    from howsure.formats.contents import Contents
    from howsure.formats.diagnosis import EntryDescription
    from howsure.formats.logs.decision_survey import LogSurvey


LISTED_ITEMS = 200  # arrays or columns in the table
NAME_LETTERS = 200
PROBLEM_LETTERS = 2000


@click.command(cls=ReadingCommand)
@FILES
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only the exit code tells.")
@add_reading_options
@add_label_options
@click.pass_context
def command(
    ctx: click.Context,
    files: Sequence[str],
    as_json: bool,
    quiet: bool,
    options: ReadOptions,
) -> None:
    """What is in this file, and what is wrong with it?

    Lists every array or column with the part it plays, then every problem with its place, its repair, and what can
    be evaluated anyway. Exit 0 where `howsure evaluate` would read the file, else 2.

    \b
    Examples:
      howsure doctor test.npz
      howsure doctor predictions.csv --name labels=gold
    """
    if list_questions(files, options) is not None:
        ctx.exit(examine_logs(files, options, as_json=as_json, quiet=quiet))
    examined = [(path, *examine_file(path, options, get_label_file())) for path in files]
    if as_json:
        rows: list[dict[str, Any]] = []
        for path, description, problems in examined:
            holds = None if description is None else asdict(description)
            told = [asdict(p) for p in problems]
            proposal = propose_command(path, problems, options)
            unused = find_unused_columns(path, problems, options)
            rows.append(
                {
                    "file": path,
                    "holds": holds,
                    "problems": told,
                    "proposal": proposal,
                    "unused": unused,
                }
            )
        click.echo(strict_json.dump_line(rows))
    elif not quiet:
        for path, description, problems in examined:
            proposal = propose_command(path, problems, options)
            unused = find_unused_columns(path, problems, options)
            say(build_examination(path, description, problems, proposal, unused))
    # The exit code says whether `howsure evaluate` would read the files.
    for _, _, problems in examined:
        if any(problem.stops for problem in problems):
            ctx.exit(2)


def examine_logs(files: Sequence[str], options: ReadOptions, *, as_json: bool, quiet: bool) -> int:
    """Print what logs of decision models hold; the exit code."""
    from howsure.formats.logs.decision_survey import survey_log

    surveys = [survey_log(Path(path), options, get_label_file()) for path in files]
    if as_json:
        rows = [{"file": f, **asdict(one)} for f, one in zip(files, surveys, strict=True)]
        click.echo(strict_json.dump_line(rows))
    elif not quiet:
        for path, survey in zip(files, surveys, strict=True):
            say(build_survey(path, survey, options))
    stops = any(problem.stops for survey in surveys for problem in survey.problems)
    return 2 if stops else 0


def build_survey(path: str, survey: LogSurvey, options: ReadOptions) -> Any:
    """A log of a decision model, for a terminal."""
    from rich.console import Group
    from rich.text import Text

    from howsure.report.render.text_tables import TextTable

    rows: list[list[str]] = []
    for one in survey.questions:
        silent = [f"{one.refused:,} refused", f"{one.missing:,} missing"]
        silent = [text for text in silent if not text.startswith("0 ")]
        top = "none"
        if one.top is not None:
            top = f"{one.highest * 100:.0f} % at {one.top:g}, {one.tied * 100:.0f} % tied"
        if one.no_confidence:
            top = f"none for {one.no_confidence:,} of {one.answers:,}"
        labels = "none" if one.labels is None else f"{one.labels:,}"
        said = ", ".join([f"{one.answers:,}", *silent])
        rows.append([shorten(one.name, NAME_LETTERS), one.type, said, labels, top])
    head = ["question", "type", "answers", "labels", "confidence"]
    lines: list[Any] = [
        Text(make_printable(f"{path}  {survey.title}"), style="bold"),
        TextTable(title="", head=head, rows=rows),
    ]
    for name, values in survey.found.items():
        listed = ", ".join(shorten(value, NAME_LETTERS) for value in values[:12])
        lines.append(Text(make_printable(f"{name}: {listed}")))
    lines += [Text(make_printable(note)) for note in survey.notes]
    lines.append(Text(""))
    if not survey.problems:
        step = f"No problems. Next: howsure evaluate {format_reading_call([path], options)}"
        lines.append(Text(make_printable(step), style="green"))
    for problem in survey.problems:
        mark = "stops   " if problem.stops else "doubtful"
        lines.append(Text(make_printable(f"{mark}  {shorten(str(problem), PROBLEM_LETTERS)}")))
    return Group(*lines, Text(""))


def examine_file(
    path: str, options: ReadOptions, labels: tuple[str, str] | None
) -> tuple[Description | None, list[FileProblem]]:
    """What the file holds (None where it cannot be opened) and what is wrong; `labels` is a file of
    labels and what it is joined by.
    """
    from howsure.formats import FileProblem, describe, problems, read
    from howsure.formats.diagnosis import DECISIONS_ONLY

    with show_spinner(f"reading {path}"):
        try:
            description = describe(path, format=options.format)
        except InputError:
            description = None
        found = problems(path, options=options)
        if labels is None or any(problem.stops for problem in found):
            return description, found
        # With the labels of another file nothing is missing, if they fit.
        found = [problem for problem in found if problem.anyway != DECISIONS_ONLY]
        try:
            read(path, options=options, labels=labels[0], join=labels[1])
        except InputError as e:
            found.append(FileProblem.of(e, Path(path)))
        return description, found


def find_unused_columns(
    path: str, problems: Sequence[FileProblem], options: ReadOptions
) -> dict[str, str]:
    """Columns that play no part although their names tell something, with the option that uses them;
    none of a file that cannot be read.
    """
    from howsure.formats.receipts import build_receipt

    if any(problem.stops for problem in problems):
        return {}
    try:
        return build_receipt(*read_first_rows(path, options)).unused
    except InputError:
        return {}


def read_first_rows(path: str, options: ReadOptions) -> tuple[Contents, ReadOptions]:
    """The beginning of a file as it is read, and how; of a log what its reader makes of it."""
    from howsure.formats.column_names import SUGGESTION_ROWS
    from howsure.formats.files import open_runs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is doubtful about a log is among the problems
        runs, resolved = open_runs(Path(path), options, SUGGESTION_ROWS)
    return next(iter(runs)), resolved


def propose_command(path: str, problems: Sequence[FileProblem], options: ReadOptions) -> str | None:
    """The command that judges a file which cannot be read as it is, or that does not say what is
    right, if a guess does.
    """
    from howsure.formats.diagnosis import DECISIONS_ONLY
    from howsure.formats.proposals import propose_options

    if not any(problem.stops or problem.anyway == DECISIONS_ONLY for problem in problems):
        return None
    with show_spinner(f"guessing what {path} means"):
        proposal = propose_options(Path(path), options)
    if proposal is None:
        return None
    return f"howsure evaluate {format_reading_call([path], proposal)}"


def group_items(items: Sequence[EntryDescription]) -> list[list[EntryDescription]]:
    """Columns that belong together, as proba_0 to proba_9 do: neighbours of one type that play the
    same part for each class, or that differ in their last number alone.
    """
    from howsure.predictions.read_options import VECTOR_PARTS

    groups: list[list[EntryDescription]] = []
    kind_before = None
    for item in items:
        stem = item.name.rstrip("0123456789")
        if item.part in VECTOR_PARTS:
            stem = item.part
        kind = (item.shape, item.dtype, item.part, stem)
        # An array is a matrix already; a name without a number has no stem but itself.
        alone = len(item.shape) > 1 or stem == item.name
        if kind == kind_before and not alone:
            groups[-1].append(item)
        else:
            groups.append([item])
        kind_before = kind
    return groups


def name_group(group: Sequence[EntryDescription]) -> str:
    """What columns that belong together are called in one line."""
    if len(group) == 1:
        return group[0].name
    return f"{group[0].name} … {group[-1].name} ({len(group):,})"


def build_examination(
    path: str,
    description: Description | None,
    problems: Sequence[FileProblem],
    proposal: str | None = None,
    unused: Mapping[str, str] | None = None,
) -> Any:
    """Contents and problems of a file, for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = Text(make_printable(path), style="bold")
    lines: list[Any] = [title]
    if description is not None:
        table = Table("name", "shape", "type", "read as", box=None, pad_edge=False, padding=(0, 2))
        groups = group_items(description.items)
        for group in groups[:LISTED_ITEMS]:
            item = group[0]
            cells = (
                shorten(name_group(group), NAME_LETTERS),
                " × ".join(f"{n:,}" for n in item.shape),
                shorten(item.dtype, NAME_LETTERS),
                item.part or "–",
            )
            table.add_row(*(Text(make_printable(cell)) for cell in cells))
        if len(groups) > LISTED_ITEMS:
            table.add_row(f"{len(groups) - LISTED_ITEMS:,} more in --json")
        lines = [title + Text(f"  {description.format}"), table]
    lines.append(Text(""))
    if not problems:
        # Of several splits the one to evaluate is named: test where there is one.
        chosen = ""
        splits = [s for s in (description.splits if description else ()) if s]
        if len(splits) > 1:
            chosen = f" --split {'test' if 'test' in splits else splits[0]}"
        next_step = f"No problems. Next: howsure evaluate {path}{chosen}"
        lines.append(Text(make_printable(next_step), style="green"))
    for problem in problems:
        mark = Text("doubtful", style="yellow")
        if problem.stops:
            mark = Text("stops   ", style="bold red")
        text = make_printable(shorten(str(problem), PROBLEM_LETTERS))
        lines.append(mark + Text(f"  {text}", style="default"))
        if problem.anyway:
            anyway = f"          can be evaluated anyway: {make_printable(problem.anyway)}"
            lines.append(Text(anyway, style="dim"))
    for name, option in (unused or {}).items():
        text = f"not used: {shorten(name, NAME_LETTERS)!r}; {option} uses it"
        lines.append(Text(make_printable(text), style="yellow"))
    if proposal is not None:
        lines.append(Text("Best guess, which can be read; check that it is what you mean:"))
        lines.append(Text(f"  {make_printable(proposal)}", style="green"))
    return Group(*lines, Text(""))
