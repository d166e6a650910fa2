"""howsure monitor"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from howsure._core.checks import Array, Bools, InputError
from howsure._core.frozen import frozen
from howsure.cli.common import (
    LABELS,
    ReadingCommand,
    add_output_options,
    add_reading_options,
    get_command_line,
    is_quiet,
    list_targets,
    read_counts,
    read_files,
    say,
    show_spinner,
    tell_once,
    write_targets,
)
from howsure.cli.input_output import InputPath
from howsure.cli.questions import (
    collect_questions,
    list_questions,
    load_fixed_policy,
    read_right_or_wrong,
    show_questions,
)

if TYPE_CHECKING:
    from howsure.policies.policy import Policy
    from howsure.predictions import Predictions, Unanswered
    from howsure.predictions.read_options import ReadOptions
    from howsure.report.monitoring import Monitor
    from howsure.report.question_reports import QuestionReports

NO_ANSWER_WORDS = ("unparseable", "refused", "missing")


@click.command(cls=ReadingCommand)
@click.argument("reference", type=InputPath())
@click.argument("files", nargs=-1, required=True, type=InputPath(), metavar="NEW...")
@click.option(
    "--policy", type=InputPath(exists=True, dir_okay=False), help="What would this policy accept?"
)
@click.option(
    "--labels",
    type=InputPath(),
    help="Labels that have come since: a file with ids and labels; of a decision log those of REFERENCE.",
)
@click.option(
    "--join",
    default="id",
    show_default=True,
    metavar="COLUMN",
    help="The column of ids by which --labels are joined, or OURS=THEIRS.",
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
@add_reading_options
@add_output_options
def command(
    reference: str,
    files: Sequence[str],
    policy: str | None,
    labels: str | None,
    join: str,
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
    options: ReadOptions,
) -> int:
    """Is it still as good? New data beside a labelled reference.

    REFERENCE is labelled data of the same model, NEW one file per month (labels in it are not looked at). Estimates the
    accuracy without labels, says what a policy would accept and what drifted. Exit code 1 where --max-drop is not met.

    \b
    Examples:
      howsure monitor val.npz march.npz
      howsure monitor val.csv march.csv april.csv --policy policy.json --max-drop 0.02
      howsure monitor val.csv march.csv --labels came.csv --join id --by hospital --html march.html
      howsure monitor val.parquet year.parquet --month month --json
    """
    from howsure.report.monitoring import monitor

    targets = list_targets(out, html, tables=False)
    questions = list_questions([reference], options)
    if questions is not None:
        if by or month or chunk:
            raise InputError("--by, --month and --chunk are not for decision logs; use --where.")
        results: dict[str, Monitor] = {}
        for name in questions:
            past, months = read_question(
                reference, files, replace(options, question=name), labels=labels, join=join
            )
            with show_spinner(f"comparing {name}"):
                results[name] = monitor(
                    past,
                    months,
                    policy=choose_question(policy, name),
                    max_drop=max_drop,
                    level=level,
                    drift_level=drift_level / len(questions),
                    seed=seed,
                    files={"reference": [reference]},
                    command=get_command_line(),
                )
        reports = collect_monitors([reference, *files], results)
        show_questions(reports, as_json=as_json, targets=targets, quiet=quiet)
        return 0 if all(one.passed for one in results.values()) else 1
    alone = labels is None and by is None and month is None and chunk is None
    past, past_count = read_answers(reference, options, alone)
    ids, new_options = join.partition("=")[0].strip(), options
    if labels is not None and ids != "id" and "ids" not in options.names:
        new_options = options.with_names(ids=ids)
    months = _read_months(files, new_options, by=by, month=month, chunk=chunk, alone=alone)
    known: dict[str, Mapping[str, object]] = {}
    if labels is not None:
        from howsure.formats.label_files import read_label_file

        came = read_label_file(labels, join, options.get_column("labels"))
        known = {"labels": came.by_id}
        if came.part != "labels":
            known = {"correct": came.parse_right()}
    past_slices = None
    if by is not None:
        past_slices = FileRows.of(reference, past, options).answered(by)
    with show_spinner("comparing"):
        result = monitor(
            past,
            months.predictions,
            policy=None if policy is None else load_fixed_policy(policy),
            **known,
            by=months.slices,
            reference_by=past_slices,
            count=months.counts or None,
            reference_count=past_count,
            max_drop=max_drop,
            level=level,
            drift_level=drift_level,
            seed=seed,
            files={"reference": [reference], **months.files},
            command=get_command_line(),
        )
    write_targets(result, targets, quiet)
    if as_json:
        click.echo(result.to_json(), nl=False)
    elif not quiet:
        from howsure.report.render.monitor_page import build_monitor_sheet

        say(build_monitor_sheet(result.data))
    return 0 if result.passed else 1


def read_answers(
    path: str, options: ReadOptions, as_counts: bool
) -> tuple[Predictions, Array | None]:
    """The answers of a file; of a count table its cells, with how often each is there, where
    nothing needs the rows that it stands for.
    """
    table = read_counts([path], options) if as_counts else None
    if table is None or table.merged or table.graded:
        return read_files([path], options, labelled=False), None
    return replace(table.list_cells(), receipt=table.receipt), table.count


def read_question(
    reference: str, files: Sequence[str], options: ReadOptions, *, labels: str | None, join: str
) -> tuple[Predictions, dict[str, Predictions]]:
    """The answers to one question: of the reference with its labels, of new logs without. What is
    not as it was is said.
    """
    from howsure.predictions.read_options import UNLABELLED_PARTS

    meta = click.get_current_context().meta
    # The field that a gateway compares is in every log; probabilities may be left out.
    options = replace(options, kind="confidence", attributes=("question",))
    if labels is not None:
        meta[LABELS] = (labels, join)
    past = read_right_or_wrong([reference], options, "monitor")
    meta.pop(LABELS, None)
    months: dict[str, Predictions] = {}
    for path in files:
        new = read_files([path], replace(options, beside=UNLABELLED_PARTS), labelled=False)
        months[Path(path).stem] = new
        before = None if past.receipt is None else past.receipt.asked
        now = None if new.receipt is None else new.receipt.asked
        if before is not None and now is not None:
            for change in before.list_changes(now, "the reference is of"):
                tell_once(f"howsure: {Path(path).name}: {change}", is_quiet())
    return past, months


def choose_question(path: str | None, name: str) -> Policy | None:
    """The threshold that a saved policy has for one question."""
    if path is None:
        return None
    policy = load_fixed_policy(path)
    if policy.score == "case":
        raise InputError(f"{path} decides whole cases; a question has no threshold in it.")
    own = dict(zip(policy.keys, policy.thresholds, strict=True))
    if policy.by not in (None, "question"):
        raise InputError(f"{path} has thresholds by {policy.by}; those by question are monitored.")
    threshold = own.get(name, policy.threshold)
    return replace(policy, threshold=threshold, by=None, keys=(), thresholds=(), guarantees=())


def collect_monitors(files: Sequence[str], results: Mapping[str, Monitor]) -> QuestionReports:
    """What was found out about each question of a decision model's log."""
    from howsure.report.question_reports import MONITOR_HEAD, build_monitor_row
    from howsure.report.render.monitor_page import build_monitor_sheet

    return collect_questions(
        files,
        {name: one.data for name, one in results.items()},
        head=MONITOR_HEAD,
        build_row=build_monitor_row,
        say_of=lambda data: build_monitor_sheet(data).sentences,
        pages={name: one.to_html for name, one in results.items()},
    )


@frozen(eq=False)
class FileRows:
    """The rows of a file: why each has no answer, "" where it has one and so stands among the
    predictions.
    """

    path: str
    why: Array

    @classmethod
    def of(cls, path: str, preds: Predictions, options: ReadOptions) -> FileRows:
        """The rows of the file that `preds` were read from."""
        from howsure.formats import read_column

        if preds.unanswered is None or not preds.unanswered.total:
            return cls(path=path, why=np.full(preds.n, ""))
        name = options.get_column("no_answer") or "no_answer"
        cells = read_column(path, name)  # a missing one is read as "None"
        why = np.array(["" if cell == "None" else cell.strip().lower() for cell in cells])
        if (why == "").sum() != preds.n:
            raise InputError(
                Path(path).name,
                got=f"has rows without a confidence that column {name!r} does not explain",
                need="--by, --month and --chunk need to know which rows they are",
            )
        return cls(path=path, why=why)

    def column(self, name: str) -> Array:
        """A column, of all rows."""
        from howsure.formats import read_column

        return np.array(read_column(self.path, name))

    def answered(self, name: str) -> Array:
        """A column, of the rows with an answer."""
        return self.column(name)[self.why == ""]

    def count_unanswered(self, rows: Bools) -> Unanswered:
        """How many of some rows have no answer."""
        from howsure.predictions import Unanswered

        counts = {word: int((self.why[rows] == word).sum()) for word in NO_ANSWER_WORDS}
        return Unanswered(**counts)


@frozen(eq=False)
class MonthlyData:
    """The new data by month, the column to slice by, the files, and how often each row is there
    where they are counts, all by the month's name.
    """

    predictions: dict[str, Predictions]
    slices: dict[str, Array] | None
    files: dict[str, list[str]]
    counts: dict[str, Array] = field(default_factory=dict[str, "Array"])


def _read_months(
    files: Sequence[str],
    options: ReadOptions,
    *,
    by: str | None,
    month: str | None,
    chunk: int | None,
    alone: bool,
) -> MonthlyData:
    """One file per month, or one file that is cut into months."""
    from howsure.formats.contents import group_files
    from howsure.formats.files import list_columns

    files = list(group_files(files))
    cut = month is not None or chunk is not None
    if cut and len(files) > 1:
        raise InputError(
            "--month and --chunk cut one file into months; several files are months already."
        )
    # A month is called by its file without folder and suffix, unless two are called the same.
    stems = [Path(f).name.split(".")[0] for f in files]
    names = [s if stems.count(s) == 1 else str(f) for s, f in zip(stems, files, strict=True)]
    sources = dict(zip(names, files, strict=True))
    predictions: dict[str, Predictions] = {}
    counts: dict[str, Array] = {}
    for name, f in sources.items():
        # Names that say where the reference keeps its truth are left out where a file has none.
        columns = list_columns(f) if options.names else []
        known: dict[str, str | Sequence[str]] = {}
        for part, column in options.names.items():
            if part not in ("labels", "correct") or column in columns:
                known[part] = column
        predictions[name], times = read_answers(f, replace(options, names=known), alone)
        if times is not None:
            counts[name] = times
    rows: dict[str, FileRows] = {}
    slices: dict[str, Array] = {}
    if cut or by is not None:
        rows = {name: FileRows.of(f, predictions[name], options) for name, f in sources.items()}
    if by is not None:
        slices = {name: mine.answered(by) for name, mine in rows.items()}
    if not cut:
        lists = {name: [f] for name, f in sources.items()}
        return MonthlyData(
            predictions=predictions, slices=slices or None, files=lists, counts=counts
        )
    name = names[0]
    months = _find_months(rows[name], month, chunk)
    return _cut_file(files[0], predictions[name], rows[name], months, slices.get(name))


def _cut_file(
    file: str,
    whole: Predictions,
    rows: FileRows,
    months: Mapping[str, Bools],
    by: Array | None,
) -> MonthlyData:
    """The months of one file; `months` are about all of its rows, `whole` and `by` about those with
    an answer.
    """
    answered = rows.why == ""
    predictions: dict[str, Predictions] = {}
    slices: dict[str, Array] = {}
    for name, mine in months.items():
        at = np.flatnonzero(mine[answered])
        if not len(at):
            raise InputError(
                f"month {name!r}", got="has no row with an answer", need="at least one is needed"
            )
        predictions[name] = replace(whole[at], unanswered=rows.count_unanswered(mine))
        if by is not None:
            slices[name] = by[at]
    return MonthlyData(
        predictions=predictions, slices=slices or None, files={name: [file] for name in months}
    )


def _find_months(rows: FileRows, month: str | None, chunk: int | None) -> dict[str, Bools]:
    """The rows of each month: numbers by size, dates by their digits, names in the order of the
    file; without a column, runs of `chunk` rows.
    """
    if month is None:
        n, size = len(rows.why), chunk or 0
        if size < 1:
            raise InputError(f"--chunk {chunk}; at least one row is needed.")
        months: dict[str, Bools] = {}
        for start in range(0, n, size):
            end = min(start + size, n)
            months[f"rows {start + 1:,} to {end:,}"] = np.arange(n) // size == start // size
        return months
    value = rows.column(month)
    empty = int(np.isin(value, ("", "None", "nan")).sum())
    if empty:
        raise InputError(
            Path(rows.path).name, got=f"has {empty:,} rows without a {month}", need="each needs one"
        )

    def order(name: str) -> tuple[float, str]:
        try:
            return float(name), name
        except ValueError:
            return 0.0, name

    names: list[str] = list(dict.fromkeys(value.tolist()))
    if all(name[:1].isdigit() for name in names):
        names.sort(key=order)
    return {name: value == name for name in names}
