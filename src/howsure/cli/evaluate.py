"""howsure evaluate: predictions in memory or as a stream, and logs that have no confidence."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.file_access import check_readable
from howsure._core.frozen import frozen
from howsure._core.text import make_printable
from howsure.cli.common import (
    ReadingCommand,
    add_interval_options,
    add_label_options,
    add_options,
    add_output_options,
    add_reading_options,
    format_reading_call,
    get_command_line,
    get_fitted_reading,
    get_label_file,
    has_figures,
    is_quiet,
    list_targets,
    note,
    read_counts,
    read_files,
    remember_receipt,
    reuse_memory,
    say,
    show_report,
    show_spinner,
)
from howsure.cli.input_output import InputPath, OutputPath
from howsure.cli.main import INTERRUPTED
from howsure.cli.questions import (
    collect_reports,
    evaluate_grades,
    list_questions,
    show_questions,
)

if TYPE_CHECKING:
    from howsure._core.checks import Bools
    from howsure.formats.count_tables import CountTable
    from howsure.formats.logs import Log
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import ReadOptions
    from howsure.predictions.segments import Cut
    from howsure.report.question_reports import QuestionReports
    from howsure.report.report import Report
    from howsure.scale import Progress
    from howsure.workers import Map

# Of logs without a confidence.
ACCURACY_NAMES = {"accuracy": "when answering", "accuracy_of_all": "no answer counted as wrong"}
LISTED_VALUES = 20  # of a category


@frozen
class StreamOptions:
    """What was asked of a stream: whether to (None: not said), where its parts are worked on, and
    what becomes of them.
    """

    stream: bool | None
    workers: int | None
    scheduler: str | None
    resume: str | None
    skip_corrupt: bool
    compact: bool

    @property
    def first_given(self) -> str | None:
        """The first option that is only for streams."""
        for name in ("workers", "scheduler", "resume", "skip_corrupt", "compact"):
            if getattr(self, name):
                return f"--{name.replace('_', '-')}"
        return None


def add_stream_options(f: Callable[..., Any]) -> Callable[..., Any]:
    """Options of an evaluation in bounded memory, which the command receives as one value,
    `streaming: StreamOptions`.
    """

    @wraps(f)
    def run(
        *args: Any,
        stream: bool | None,
        workers: int | None,
        scheduler: str | None,
        resume: str | None,
        skip_corrupt: bool,
        compact: bool,
        **others: Any,
    ) -> Any:
        streaming = StreamOptions(
            stream=stream,
            workers=workers,
            scheduler=scheduler,
            resume=resume,
            skip_corrupt=skip_corrupt,
            compact=compact,
        )
        return f(*args, streaming=streaming, **others)

    options = [
        click.option(
            "--stream/--no-stream",
            "stream",
            default=None,
            help="Read part by part in bounded memory, or load everything; large files are streamed by default.",
        ),
        click.option(
            "--workers", type=click.IntRange(1), metavar="N", help="Stream over N worker processes."
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Stream on a Dask cluster, e.g. tcp://10.0.0.1:8786.",
        ),
        click.option(
            "--resume",
            type=OutputPath(),
            metavar="FOLDER",
            help="Keep what is done here, and go on from it.",
        ),
        click.option(
            "--skip-corrupt",
            is_flag=True,
            help="Leave out row groups and files that cannot be read.",
        ),
        click.option(
            "--compact",
            is_flag=True,
            help="Tallies of fixed size: bounds instead of exact numbers.",
        ),
    ]
    return add_options(run, options)


@click.command(cls=ReadingCommand)
@click.argument("files", nargs=-1, type=InputPath(), metavar="FILE...")
@click.option(
    "--sql",
    metavar="QUERY",
    help="Instead of files: counts from a query, as howsure sql prints it.",
)
@click.option("--db", type=InputPath(), help="The DuckDB file that --sql reads; none: in memory.")
@click.option(
    "--score",
    "scores",
    multiple=True,
    help="Scores to look at; the first is the one the report is about.",
)
@click.option(
    "--positive",
    metavar="NAME",
    help="The class that counts as positive; class 1 of two unless given.",
)
@click.option(
    "--at",
    "at",
    multiple=True,
    type=float,
    metavar="P",
    help="Call cases positive from this probability on; repeatable.",
)
@click.option(
    "--by",
    "by",
    multiple=True,
    metavar="COLUMN",
    help="Compare slices: hospital, age:4 (bins), age:40,60; repeatable.",
)
@click.option(
    "--threshold", type=float, help="The score from which on samples of a slice are accepted."
)
@click.option(
    "--loss",
    type=click.Choice(["top-5", "dice", "dice-pixels"]),
    help="What counts as wrong: label not in the top 5; 1 - Dice of images, or of all pixels kept.",
)
@click.option(
    "--image-score",
    metavar="NAME",
    help="With --loss dice: a column or array by which images are ordered.",
)
@click.option("--calibrator", type=InputPath(), help="Apply a saved calibrator first.")
@click.option(
    "--full", is_flag=True, help="Print all numbers and tables, not only those that matter most."
)
@click.option(
    "--images",
    type=InputPath(),
    help="One picture per sample (.npy), for thumbnails in the HTML report.",
)
@add_reading_options
@add_label_options
@add_stream_options
@add_interval_options
@add_output_options
@click.pass_context
def command(
    ctx: click.Context,
    files: Sequence[str],
    sql: str | None,
    db: str | None,
    scores: Sequence[str],
    positive: str | None,
    at: Sequence[float],
    by: Sequence[str],
    threshold: float | None,
    loss: str | None,
    image_score: str | None,
    calibrator: str | None,
    images: str | None,
    full: bool,
    level: float,
    seed: int,
    as_json: bool,
    out: Sequence[str],
    html: str | None,
    quiet: bool,
    options: ReadOptions,
    streaming: StreamOptions,
) -> None:
    """How sure is this classifier, and should you believe it?

    Reads logits, probabilities, Monte-Carlo samples or a confidence with right/wrong. Prints a verdict, what stands
    out, the numbers that matter with their intervals, and what to do next. Several FILEs are read as one data set.

    \b
    Examples:
      howsure evaluate test.npz
      howsure evaluate predictions.csv --html report.html
      howsure evaluate all.npz --split test --json > report.json
      howsure evaluate test.parquet --score entropy --score max_prob
      howsure evaluate biopsies.csv --positive malignant --at 0.1 --by hospital --by age:40,60
      howsure evaluate scans.npz --loss dice --images scans.npy --html report.html
      howsure evaluate 's3://bucket/logs/*.parquet' --scheduler tcp://10.0.0.1:8786 --resume done
      howsure evaluate --sql "$(cat counts.sql)" --db logs.duckdb
    """
    from howsure.formats.logs.log import NoConfidence
    from howsure.report.evaluation import GradedAnswers

    targets = list_targets(out, html)
    # Options that need all predictions in memory keep a file from being streamed.
    memory_options: list[str] = []
    if calibrator:
        memory_options.append("--calibrator")
    if images:
        memory_options.append("--images")
    if get_label_file() is not None:
        memory_options.append("--labels")
    if loss in ("top-5", "dice-pixels"):
        memory_options.append(f"--loss {loss}")
    asked: dict[str, Any] = {
        "level": level,
        "seed": seed,
        "positive": positive,
        "by": by,
        "threshold": threshold,
        "loss": loss,
        "image_score": image_score,
    }
    if at:
        asked["thresholds"] = at
    needs_rows = bool(scores or memory_options or loss or image_score or positive)
    from_database = sql is not None or db is not None or not files
    if from_database and needs_rows:
        raise InputError(
            "--sql returns counts; --score, --positive, --loss, --image-score, --calibrator, --images "
            "and --labels need rows."
        )
    questions: Sequence[str] = []
    if not from_database:
        questions = list_questions(files, options) or []
    graded = evaluate_grades(files, questions, options, level=level, seed=seed)
    if graded is not None:
        show_questions(graded, as_json=as_json, targets=targets, quiet=quiet)
        return
    load = partial(
        evaluate_loaded,
        files,
        scores,
        calibrator=calibrator,
        images=images,
        page=bool(as_json or targets or has_figures()),
        **asked,
    )
    if len(questions) > 1:
        reports = evaluate_questions(files, questions, options, load)
        show_questions(reports, as_json=as_json, targets=targets, quiet=quiet)
        return
    try:
        report = None
        if from_database:
            report = evaluate_query(files, sql, db, **asked)
        elif not needs_rows:
            report = evaluate_counts(files, options, streaming, **asked)
        if report is None and decide_streaming(files, streaming, memory_options, quiet):
            report = evaluate_stream(files, scores, streaming, options, **asked)
        elif report is None:
            report = load(options)
    except (GradedAnswers, NoConfidence) as e:
        # Grades allow numbers and a log without a confidence accuracies, but neither a report.
        if targets or calibrator:
            raise
        if isinstance(e, GradedAnswers):
            show_graded(e.answers, level=level, seed=seed, as_json=as_json, quiet=quiet)
        else:
            show_accuracies(e.log, level=level, seed=seed, as_json=as_json, quiet=quiet)
        return
    if files and loss != "top-5":  # no other command knows that loss
        record_calls(report, files, options)
    show_report(report, as_json=as_json, targets=targets, quiet=quiet, full=full)
    if report.data.get("streamed", {}).get("partial"):
        note("howsure: interrupted; this is the result of what was read by then.", quiet)
        ctx.exit(INTERRUPTED)


def evaluate_questions(
    files: Sequence[str],
    questions: Sequence[str],
    options: ReadOptions,
    load: Callable[[ReadOptions], Report],
) -> QuestionReports:
    """A report of each question of a decision model's log."""
    reports: dict[str, Report] = {}
    for name in questions:
        own = replace(options, question=name)
        reports[name] = load(own)
        reports[name].data["provenance"]["reading"] = format_reading_call(files, own)
    return collect_reports(files, reports)


def record_calls(report: Report, files: Sequence[str], options: ReadOptions) -> None:
    """How the next commands read these files: all of them, and calibrate, which takes both splits."""
    provenance = report.data["provenance"]
    provenance["reading"] = format_reading_call(files, options)
    if len(files) != 1 or options.split != "test" or not Path(files[0]).is_file():
        return
    from howsure.formats.diagnosis import describe

    if set(describe(files[0], format=options.format).splits) == {"val", "test"}:
        provenance["fitting"] = format_reading_call(files, replace(options, split=None))


def decide_streaming(
    files: Sequence[str], streaming: StreamOptions, held: Sequence[str], quiet: bool
) -> bool:
    """Whether to stream: because it was asked for, or because the data are large, which is
    announced. `held` are options that need all predictions in memory.
    """
    given = streaming.first_given
    if given and streaming.stream is False:
        raise InputError(f"{given} is for streams; leave out --no-stream.")
    if held and (given or streaming.stream):
        raise InputError(
            f"{held[0]} needs all predictions at once; leave it out, or the options of a stream."
        )
    if given or streaming.stream:
        return True
    if held or streaming.stream is False:
        return False
    from howsure.formats.contents import explain_streaming
    from howsure.formats.logs import is_log

    if any(is_log(Path(f)) for f in files):
        return False
    why = explain_streaming(files)
    if why is not None:
        note(f"howsure: {why}, read as a stream; --no-stream loads all of it.", quiet)
    return why is not None


def evaluate_stream(
    files: Sequence[str],
    scores: Sequence[str],
    streaming: StreamOptions,
    options: ReadOptions,
    **asked: Any,
) -> Report:
    """The report of a stream."""
    from howsure import workers
    from howsure.scale import evaluate_files
    from howsure.scale.parts import find_unstreamed

    unstreamed = find_unstreamed(options)
    if unstreamed is not None:
        raise InputError(
            f"--{unstreamed.replace('_', '-')} needs all predictions at once; "
            "leave out the options of a stream."
        )
    if streaming.workers is not None and streaming.scheduler is not None:
        raise InputError(
            "--workers starts processes here and --scheduler uses a cluster; give one of them."
        )
    # Threads of this process, worker processes, or a cluster.
    place: AbstractContextManager[Map | None] = nullcontext()
    if streaming.workers is not None:
        place = workers.processes(streaming.workers)
    elif streaming.scheduler is not None:
        place = workers.connected(streaming.scheduler)
    reuse_memory()
    with place as mapped, _show_progress() as progress:
        report = evaluate_files(
            files,
            scores or None,
            options=options,
            map=mapped,
            resume=streaming.resume,
            skip_corrupt=streaming.skip_corrupt,
            compact=streaming.compact,
            progress=progress,
            command=get_command_line(),
            **asked,
        )
    receipt = report.data["provenance"].get("receipt")
    if receipt is not None:
        remember_receipt(receipt["text"])
    return report


@contextmanager
def _show_progress() -> Generator[Callable[[Progress], None] | None]:
    """Rows, rows per second and the time left, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.fields[rows]}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[speed]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rows="reading", speed="")

        def update(p: Progress) -> None:
            bar.update(
                task,
                completed=p.bytes,
                total=p.of_bytes,
                rows=f"{p.rows:,} rows, part {p.parts:,} of {p.of_parts:,}",
                speed=f"{p.rows / max(p.seconds, 1e-9):,.0f} rows/s",
            )

        yield update


def evaluate_loaded(
    files: Sequence[str],
    scores: Sequence[str],
    options: ReadOptions,
    *,
    calibrator: str | None,
    images: str | None,
    **asked: Any,
) -> Report:
    """The report of predictions that are in memory as a whole."""
    from howsure.formats.logs import helm
    from howsure.report.evaluation import evaluate
    from howsure.report.focus import Focus

    files = list_local_files(files)
    focus = Focus.of(None, asked["by"], asked["loss"], asked["image_score"])
    fitted = None
    if calibrator:
        from howsure._core.saving import load

        fitted = load(calibrator)
        options = options.read_values_like(get_fitted_reading(fitted))
    # A calibrator may need columns of its own, such as a second opinion.
    columns = (*focus.columns, *getattr(fitted, "columns", ()))
    preds = read_files(files, replace(options, attributes=columns))
    missing = preds.unanswered
    if missing is not None and missing.total and preds.known_correct is not None:
        # How many questions were answered, and both accuracies.
        questions = preds.n + missing.total
        right = float(preds.correct.sum())
        note(
            f"howsure: {preds.n:,} of {questions:,} questions are answered ({missing}): "
            f"accuracy {right / preds.n:.4g} when answering, "
            f"{(right + missing.unstated_right) / questions:.4g} with no answer counted as wrong.",
            is_quiet(),
        )
    before = None
    if fitted is not None:
        before, preds = preds, fitted(preds)
    sources: list[str] = []
    for path in files:
        # A run folder is known by the file in it that is hashed.
        is_folder = Path(path).is_dir()
        sources.append(str(Path(path) / helm.STATE) if is_folder else path)
    with show_spinner("measuring"):
        report = evaluate(
            preds,
            scores or None,
            images=None if images is None else open_pictures(images),
            before=before,
            files=sources,
            command=get_command_line(),
            **asked,
        )
    if calibrator:
        report.data["provenance"]["calibrator"] = calibrator
    return report


def evaluate_counts(
    files: Sequence[str],
    options: ReadOptions,
    streaming: StreamOptions,
    *,
    by: Sequence[str],
    **asked: Any,
) -> Report | None:
    """The report of count tables; several files are slices. None where a file is no such table."""
    from howsure.formats.contents import is_remote
    from howsure.formats.count_tables import OWNER
    from howsure.report.focus import Focus

    if any(map(is_remote, files)):
        return None
    files = list_local_files(files)
    cuts = Focus.of(None, by).by
    table = read_counts(files, options, [cut.column for cut in cuts])
    if table is None:
        return None
    if streaming.first_given:
        raise InputError(
            f"{streaming.first_given} is for streams of rows, and these are counts; leave it out."
        )
    if len(files) > 1 and not cuts:
        cuts = Focus.of(None, [OWNER]).by
    return measure_counts(table, cuts, files, **asked)


def evaluate_query(
    files: Sequence[str], sql: str | None, db: str | None, *, by: Sequence[str], **asked: Any
) -> Report:
    """The report of the counts that a query returns."""
    from howsure.formats.count_queries import query_counts
    from howsure.report.focus import Focus

    if sql is None and not files and db is None:
        raise click.UsageError("Missing argument 'FILE...'.")
    if sql is None or files:
        raise InputError("--db is read by --sql QUERY, which stands in the place of files.")
    with show_spinner("querying"):
        table = query_counts(sql, db or ":memory:")
    cuts = Focus.of(None, by).by
    missing = [cut.column for cut in cuts if cut.column not in table.columns]
    if missing:
        raise InputError("--sql", got=f"returns no column {missing[0]!r}", hint="select it too")
    note(f"howsure: {table.n:,} answers in {len(table.score):,} cells of a query", is_quiet())
    return measure_counts(table, cuts, [db] if db else [], **asked)


def measure_counts(
    table: CountTable, cuts: Sequence[Cut], files: Sequence[str], **asked: Any
) -> Report:
    """The report of a count table."""
    from howsure.report.evaluation import GradedAnswers, evaluate
    from howsure.report.report import build_receipt_data
    from howsure.report.summary import Summary

    if table.graded:
        raise GradedAnswers.of(table)
    for unused in ("positive", "loss", "image_score"):
        del asked[unused]
    with show_spinner("measuring"):
        summary = Summary.of_counts(table, cuts)
        report = evaluate(summary, files=files, command=get_command_line(), **asked)
    if table.receipt is not None:
        report.data["provenance"]["receipt"] = build_receipt_data(table.receipt)
    return report


def list_local_files(paths: Sequence[str]) -> list[str]:
    """The files of this machine, patterns filled in."""
    from howsure.formats.contents import is_remote, list_matching_files

    files: list[str] = []
    for path in paths:
        if is_remote(path):
            raise InputError(
                f"{path} is an address, which can only be streamed; leave out --no-stream, --calibrator and --images, "
                "or copy the file."
            )
        files += list_matching_files(path)
    return files


def open_pictures(path: str) -> Any:
    """Pictures of shape (n, height, width) or (n, height, width, channels), opened without loading
    them all.
    """
    import numpy as np

    try:
        # A memory map reads .npy alone, and never Python objects.
        pictures = np.lib.format.open_memmap(check_readable(path), mode="r")
    except (ValueError, EOFError) as e:
        raise InputError(
            f"{path} cannot be read as pictures: {str(e).splitlines()[0]}; save an array as .npy."
        ) from None
    if pictures.ndim not in (3, 4):
        raise InputError(
            f"{path} holds no pictures; an array (n, height, width[, channels]) saved as .npy is needed."
        )
    return pictures


def show_graded(
    answers: Predictions | CountTable, *, level: float, seed: int, as_json: bool, quiet: bool
) -> None:
    """Print the numbers of graded answers."""
    from howsure.report.graded import build_graded_sheet, measure_graded

    data = measure_graded(answers, level, seed)
    if as_json:
        click.echo(strict_json.dump_line(data))
    elif not quiet:
        say(build_graded_sheet(data))


class MeanGrade(TypedDict):
    """A mean grade with its limits, null where there are none, and the number of answers behind it."""

    value: float
    low: float | None
    high: float | None
    n: int


def show_accuracies(log: Log, *, level: float, seed: int, as_json: bool, quiet: bool) -> None:
    """Print the accuracies with their intervals, and say why there is no more."""
    import numpy as np

    why = "there is no number that says how sure the model was"
    if log.notes:
        why = log.notes[-1]
    note(f"howsure: no confidence, so only accuracies are given: {why}.", quiet)
    metrics: dict[str, MeanGrade] = {}
    for name, rows in (("accuracy", log.answered), ("accuracy_of_all", log.outcome >= 0)):
        if rows.any():
            metrics[name] = _measure_grade(log, rows, level, seed)
    slices: dict[str, dict[str, MeanGrade]] = {}
    for name, column in log.slices.items():
        values: list[object] = column.tolist()
        slices[name] = {}
        for value, _ in Counter(values).most_common(LISTED_VALUES):
            rows = np.array([v == value for v in values])
            slices[name][str(value)] = _measure_grade(log, rows, level, seed)
    if as_json:
        counts = {"n": log.n, "questions": log.questions, "outcomes": log.counts}
        click.echo(
            strict_json.dump_line({**counts, "metrics": metrics, "slices": slices, "why": why})
        )
    elif not quiet:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2))
        table.add_column("accuracy")
        for column in ("value", f"{level:.0%} interval", "answers"):
            table.add_column(column, justify="right")
        lines = {ACCURACY_NAMES[name]: grade for name, grade in metrics.items()}
        for name, grades in slices.items():
            lines |= {f"{name} {value}": grade for value, grade in grades.items()}
        for name, grade in lines.items():
            limits = "–"
            if grade["low"] is not None:
                limits = f"{grade['low']:.4g} … {grade['high']:.4g}"
            value, n = f"{grade['value']:.4g}", f"{grade['n']:,}"
            table.add_row(Text(make_printable(name)), value, limits, n)
        say(table)


def _measure_grade(log: Log, rows: Bools, level: float, seed: int) -> MeanGrade:
    """The mean grade; answers to the same question are drawn together."""
    import numpy as np

    from howsure.metrics import accuracy
    from howsure.metrics.proper_scores import mean_loss
    from howsure.predictions import Outcomes
    from howsure.uncertainty import interval

    grade, score = log.grade[rows], np.zeros(int(rows.sum()))
    group = None if log.group is None else log.group[rows]
    if np.isin(grade, (0, 1)).all():
        low, high = interval(
            accuracy, Outcomes(score, correct=grade == 1, group=group), level, seed
        )
    else:
        best, worst = interval(mean_loss, Outcomes(score, loss=1 - grade, group=group), level, seed)
        low, high = 1 - worst, 1 - best
    return {
        "value": float(grade.mean()),
        "low": float(low) if np.isfinite(low) else None,
        "high": float(high) if np.isfinite(high) else None,
        "n": len(grade),
    }
