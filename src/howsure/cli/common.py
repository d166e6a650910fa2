"""What several commands share: their options, how files are read, how results are printed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from howsure._core.errors import InputError
from howsure._core.text import listener, make_printable, make_printable_lines, shorten
from howsure.cli.input_output import FigurePath, InputPath, OutputPath, PathCommand

if TYPE_CHECKING:
    from howsure.calibrators import Calibrator
    from howsure.formats.count_tables import CountTable
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import Answers, NoAnswer, ReadOptions, Receipt, Several
    from howsure.report.render.pictures import Picture
    from howsure.report.report import Report
    from howsure.report.summary import Summary

F = TypeVar("F", bound=Callable[..., Any])
# The fields of `ReadOptions` that a command line can give.
READING_OPTIONS = (
    "split",
    "mc",
    "renormalise",
    "names",
    "format",
    "percent",
    "no_answer",
    "drop_outside",
    "multilabel",
    "sums_to_one",
    "answers",
    "several",
    "where",
    "question",
    "tolerance",
)
# Of mallopt(3): two parameters, and the largest threshold that it takes.
TRIM_THRESHOLD, MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD = -1, -3, 1 << 25
MISSING_LABEL_COLUMNS, COLUMN_NAME_LETTERS = 12, 60  # listed where labels are missing
REPORT_WRITERS = {".json": "to_json", ".md": "to_markdown", ".html": "to_html", ".txt": "to_text"}
TABLE_WRITERS = {".tex": "to_latex", ".csv": "to_csv"}
FIGURE_FORMATS = (".svg", ".pdf", ".png")
PIPE_WIDTH = 110  # columns of what is printed into a file or a pipe
FILES = click.argument("files", nargs=-1, required=True, type=InputPath(), metavar="FILE...")


RECEIPTS = "howsure.receipts"  # in the context of a command: what files were taken for
TOLD = "howsure.told"  # ... what was said of them
LABELS = "howsure.labels"  # ... and the file of labels with the column to join by
FIGURES = "howsure.figures"  # ... and the pictures to write


class ReadingOption(click.Option):
    """An option that says how a file is read."""


class ReadingCommand(PathCommand):
    """A command whose `--help` lists the reading options last, under a heading of their own, and
    that says what files were taken for when all went well: a mistake is told in one sentence.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, then tell its receipts."""
        code = None
        try:
            result = super().invoke(ctx)
        except click.exceptions.Exit as e:
            code, result = e, None
        for line in ctx.meta.pop(RECEIPTS, ()):
            note(f"howsure: {line}", is_quiet())
        if code is not None:
            raise code
        return result

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        reading: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if isinstance(param, ReadingOption):
                reading.append(record)
            elif isinstance(param, click.Option):
                own.append(record)
        with formatter.section("Options"):
            formatter.write_dl(own)
        if reading:
            with formatter.section("Reading the file"):
                formatter.write_dl(reading)


def add_options(f: F, options: Sequence[Callable[[F], F]]) -> F:
    """`f` with these click options."""
    # Decorators are applied from the last to the first, and `--help` lists them in the other order.
    for option in reversed(options):
        f = option(f)
    return f


READING_PARAMETERS = [
    click.option(
        "--split",
        cls=ReadingOption,
        help="Which split of the file (val, test, ...).",
    ),
    click.option(
        "--mc",
        cls=ReadingOption,
        is_flag=True,
        help="Use Monte-Carlo or ensemble samples.",
    ),
    click.option(
        "--renormalise",
        cls=ReadingOption,
        is_flag=True,
        help="Divide rows of probabilities by their sum.",
    ),
    click.option(
        "--name",
        "names",
        cls=ReadingOption,
        multiple=True,
        metavar="WHAT=NAME",
        help="What the file calls differently: labels=target, probs=cat,dog, 'probs=p_*'.",
    ),
    click.option(
        "--format",
        "format",
        cls=ReadingOption,
        metavar="TOOL",
        help="The tool that wrote a log.",
    ),
    click.option(
        "--percent", cls=ReadingOption, is_flag=True, help="The confidence is in percent."
    ),
    click.option(
        "--no-answer",
        "no_answer",
        cls=ReadingOption,
        type=click.Choice(["apart", "wrong"]),
        default="apart",
        show_default=True,
        help="Questions without an answer.",
    ),
    click.option(
        "--drop-outside",
        cls=ReadingOption,
        is_flag=True,
        help="A confidence outside [0, 1] counts as missing.",
    ),
    click.option(
        "--multilabel",
        cls=ReadingOption,
        is_flag=True,
        help="Many labels per case, each 0 or 1.",
    ),
    click.option(
        "--sums-to-one",
        cls=ReadingOption,
        is_flag=True,
        help="With --multilabel: rows that sum to 1 are meant.",
    ),
    click.option(
        "--answers",
        cls=ReadingOption,
        type=click.Choice(["file", "argmax"]),
        help="Which count, where both differ.",
    ),
    click.option(
        "--ensemble",
        "several",
        cls=ReadingOption,
        flag_value="ensemble",
        help="Several FILEs: members of an ensemble.",
    ),
    click.option(
        "--parts",
        "several",
        cls=ReadingOption,
        flag_value="parts",
        help="Several FILEs: parts of one data set.",
    ),
    click.option(
        "--where",
        cls=ReadingOption,
        multiple=True,
        metavar="COLUMN=VALUE",
        help="Only rows with this value, as in arm=A.",
    ),
    click.option(
        "--question",
        cls=ReadingOption,
        metavar="NAME",
        help="One question of a decision log.",
    ),
    click.option(
        "--tolerance",
        cls=ReadingOption,
        type=click.IntRange(min=0),
        help="Levels that a score may be off.",
    ),
]


def add_reading_options(f: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say how a file is read, which a `ReadingCommand` receives as one value,
    `options: ReadOptions`.
    """

    @wraps(f)
    def run(
        *args: Any,
        split: str | None,
        mc: bool,
        renormalise: bool,
        names: Sequence[str],
        format: str | None,
        percent: bool,
        no_answer: NoAnswer,
        drop_outside: bool,
        multilabel: bool,
        sums_to_one: bool,
        answers: Answers | None,
        several: Several | None,
        where: Sequence[str],
        question: str | None,
        tolerance: int | None,
        **others: Any,
    ) -> Any:
        from howsure.predictions.read_options import ReadOptions

        options = ReadOptions(
            split=split,
            mc=mc,
            names=parse_names(names),
            renormalise=renormalise,
            format=format,
            percent=percent,
            no_answer=no_answer,
            drop_outside=drop_outside,
            multilabel=multilabel,
            sums_to_one=sums_to_one,
            answers=answers,
            several=several,
            where=parse_names(where, "--where"),
            question=question,
            tolerance=tolerance,
        )

        def call(chosen: ReadOptions) -> Any:
            return f(*args, options=chosen, **others)

        try:
            return call(options)
        except InputError as e:
            if not (sys.stdin.isatty() and sys.stderr.isatty()) or is_quiet():
                raise
            from howsure.cli.asking import run_again

            files: Sequence[str] = others.get("files") or others.get("fit") or ()
            return run_again(e, call, files, options)

    return add_options(run, READING_PARAMETERS)


def add_label_options(f: Callable[..., Any]) -> Callable[..., Any]:
    """Options of commands that need labels, which may stand in a file of their own; `read_files`
    joins them.
    """

    @wraps(f)
    def run(*args: Any, labels: str | None, join: str, **others: Any) -> Any:
        if labels is not None:
            click.get_current_context().meta[LABELS] = (labels, join)
        return f(*args, **others)

    options = [
        click.option(
            "--labels",
            cls=ReadingOption,
            type=InputPath(),
            help="A file of labels, joined by ids.",
        ),
        click.option(
            "--join",
            cls=ReadingOption,
            default="id",
            show_default=True,
            metavar="COLUMN",
            help="The column of ids, or OURS=THEIRS.",
        ),
    ]
    return add_options(run, options)


def get_label_file() -> tuple[str, str] | None:
    """The file of --labels and the column to join by, where the command was given one."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(LABELS)


def add_figure_option(f: Callable[..., Any]) -> Callable[..., Any]:
    """--figure, which `write_figures` obeys."""

    @wraps(f)
    def run(*args: Any, figures: Sequence[str], **others: Any) -> Any:
        chosen: list[tuple[list[str], str]] = []
        for entry in figures:
            name, sign, path = entry.partition("=")
            names, path = ([name], path) if sign else ([], entry)
            check_ending(path, FIGURE_FORMATS, "figures")
            chosen.append((names, path))
        click.get_current_context().meta[FIGURES] = chosen
        return f(*args, **others)

    figure = click.option(
        "--figure",
        "figures",
        multiple=True,
        type=FigurePath(),
        metavar="[NAME=]FILE",
        help="Write the main pictures, or the one of this name, as .svg, .pdf or .png; repeatable.",
    )
    return figure(run)


def add_output_options(f: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say how a result is shown."""
    options = [
        click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables."),
        click.option(
            "-o",
            "--out",
            "out",
            multiple=True,
            type=OutputPath(),
            help="Also write .json, .md, .html, .txt, or a table as .tex or .csv; repeatable.",
        ),
        click.option(
            "--html",
            "html",
            type=OutputPath(),
            help="Write the interactive report, one offline file.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    ]
    return add_options(add_figure_option(f), options)


def add_interval_options(f: F) -> F:
    """Options of everything that has intervals."""
    options = [
        click.option(
            "--level", type=float, default=0.95, show_default=True, help="Level of the intervals."
        ),
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of the bootstrap.",
        ),
    ]
    return add_options(f, options)


def parse_names(names: Sequence[str], option: str = "--name") -> dict[str, str]:
    """`labels=target` → {"labels": "target"}."""
    table: dict[str, str] = {}
    for entry in names:
        what, sign, name = entry.partition("=")
        if not sign or not what or not name:
            shown = "WHAT=NAME, as in --name labels=target"
            if option != "--name":
                shown = f"COLUMN=VALUE, as in {option} arm=A"
            raise InputError(f"{option} {entry!r} is not {shown}.")
        table[what.strip()] = name.strip()
    return table


def read_files(
    files: Sequence[str], options: ReadOptions, *, announce: bool = True, labelled: bool = True
) -> Predictions:
    """The files as one set of predictions; standard error says what kind of log a file is, unless
    `announce` is false. Files without labels are refused where they must be `labelled`.
    """
    from howsure.formats import read

    reuse_memory()
    quiet = not announce or is_quiet()
    with show_spinner(f"reading {', '.join(Path(f).name for f in files)}"):
        labels, join = get_label_file() or (None, "id")
        preds = read(
            list(files),
            options=options,
            labels=labels,
            join=join,
            tell=lambda line: tell_once(f"howsure: {line}", quiet),
        )
    if preds.receipt is not None:
        remember_receipt(str(preds.receipt))
        truth = (preds.known_labels, preds.known_correct, preds.known_loss)
        if labelled and preds.receipt.asked is not None and all(one is None for one in truth):
            raise InputError(
                Path(files[0]).name,
                got="holds answers of a decision model and no labels",
                need="it can be described (howsure doctor), not judged",
                hint="give the labels with --labels FILE --join COLUMN",
            )
        judged = preds.known_correct is not None or preds.known_loss is not None
        if labelled and not preds.vectors and not judged:
            raise _explain_no_truth(preds.receipt, Path(files[0]))
    if not labelled or not preds.vectors or preds.known_labels is not None:
        return preds
    # Name the columns that may hold the labels, or say what can be done without.
    from howsure.formats.files import list_likely_labels

    path, n = Path(files[0]), preds.n
    if preds.layout is not None:
        n //= preds.layout.size
    named = set(options.names.values())
    free = [name for name in list_likely_labels(path, preds.k or 2, n) if name not in named]
    need = "add an array or a column of labels"
    if free:
        quoted = [repr(shorten(name, COLUMN_NAME_LETTERS)) for name in free[:MISSING_LABEL_COLUMNS]]
        listed = quoted[-1]
        if len(quoted) > 1:
            listed = f"{', '.join(quoted[:-1])} or {listed}"
        need = f"if {listed} holds them, say --name labels=…"
    raise InputError(
        path.name,
        got="has no labels",
        need=need,
        hint="Without labels howsure monitor REFERENCE NEW estimates the accuracy",
    )


def _explain_no_truth(receipt: Receipt, path: Path) -> InputError:
    """What to say where a confidence stands alone, or beside labels of unknown answers."""
    ways: list[str] = []
    for way in receipt.unused.values():
        if way.removeprefix("--name ").partition("=")[0] in ("correct", "labels", "loss"):
            ways.append(way)
    column = receipt.columns[receipt.kind][0]
    hint = ""
    if ways:
        hint = f"Try {' '.join(ways)}"
    elif "labels" in receipt.columns:
        from howsure.formats.files import list_columns
        from howsure.formats.proposals import list_label_columns

        label = receipt.columns["labels"][0]
        others = [name for name in list_label_columns(list_columns(path)) if name != label]
        if others:
            words = [shlex.quote(f"prediction={label}"), shlex.quote(f"labels={others[0]}")]
            hint = f"If {label!r} is the answer, say --name {words[0]} --name {words[1]}"
    if not hint and "labels" in receipt.columns:
        hint = f"If {column!r} is the probability of class 1, say --name {shlex.quote(f'probs={column}')}"
    return InputError(
        path.name,
        got="does not say which answers are right",
        need="add correct (0 or 1), or label and prediction",
        hint=hint,
    )


def read_counts(
    files: Sequence[str], options: ReadOptions, by: Sequence[str] = ()
) -> CountTable | None:
    """The cells of count tables with the columns to slice by; None where a file is none."""
    from howsure.formats.count_tables import read_count_tables

    if get_label_file() is not None:
        return None
    table = read_count_tables(files, options, by)
    if table is not None:
        told = str(table.receipt)
        if table.repeated == 1:
            told += "; 1 cell is there twice, its count is added"
        elif table.repeated:
            told += f"; {table.repeated:,} cells are there twice, their counts are added"
        remember_receipt(told)
    return table


def read_sums(files: Sequence[str], options: ReadOptions) -> Summary | None:
    """The summary of count tables; None where a file is none."""
    table = read_counts(files, options)
    if table is None:
        return None
    if table.graded:
        got, need = "counts graded answers, which have a loss", "right and wrong are needed here"
        hint = "howsure evaluate and howsure threshold take them"
        raise InputError(Path(files[0]).name, got=got, need=need, hint=hint)
    from howsure.report.summary import Summary

    return Summary.of_counts(table)


def record_reading(options: ReadOptions, preds: Predictions) -> ReadOptions:
    """How these predictions were read, as far as others have to be read alike."""
    if preds.receipt is None:
        return options
    kind = preds.receipt.kind
    options = replace(options, kind=kind)
    if preds.receipt.of_class_1 and preds.class_names is not None:
        # Without labels nothing would say which class the one column is of.
        own = {kind: preds.receipt.columns[kind][0], "classes": ",".join(preds.class_names)}
        options = replace(options, names={**own, **options.names})
    return options


def get_fitted_reading(calibrator: Calibrator | None) -> ReadOptions | None:
    """How the file was read that a calibrator was fitted on."""
    fitted = getattr(calibrator, "fitted", None)
    return None if fitted is None else fitted.read


def tell_once(line: str, quiet: bool) -> None:
    """Say what kind of log a file is; a command that reads it for each question says it once."""
    context = click.get_current_context(silent=True)
    told: dict[str, None] = {} if context is None else context.meta.setdefault(TOLD, {})
    if line not in told:
        note(line, quiet)
    told[line] = None


def remember_receipt(line: str) -> None:
    """Keep what a file was taken for until the command is done; the same line is told once."""
    context = click.get_current_context(silent=True)
    if context is not None:
        lines: dict[str, None] = context.meta.setdefault(RECEIPTS, {})
        lines[line] = None


def reuse_memory() -> None:
    """Let the columns that one number leaves behind hold those of the next.

    The C library of Linux gives large blocks back to the system at once, and new pages cost as much
    as the sums that are made in them. Only a command does this: a library leaves its host's memory
    alone.
    """
    if sys.platform != "linux":
        return
    from ctypes import CDLL  # NumPy imports it too

    set_option = getattr(CDLL(None), "mallopt", None)
    if set_option is not None:  # musl has none
        set_option(TRIM_THRESHOLD, 2**31 - 1)
        set_option(MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)


def is_quiet() -> bool:
    """Whether the command that runs was given --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))


@contextmanager
def show_spinner(what: str) -> Generator[None]:
    """A spinner on the terminal while something takes its time; elsewhere only `listener` hears of
    it.
    """
    listener.get()(what)
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False).status(make_printable(f"{what} …")):
        yield


def say(renderable: Any) -> None:
    """Print to standard output: in colour on a terminal, else as plain text of a fixed width."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console(highlight=False).print(renderable, crop=False)
        return
    out = StringIO()
    console = Console(file=out, width=PIPE_WIDTH, no_color=True, highlight=False)
    console.print(renderable, crop=False)
    lines = out.getvalue().rstrip("\n").splitlines()
    click.echo("\n".join(line.rstrip() for line in lines))


def note(message: str, quiet: bool = False) -> None:
    """Print a remark for people to standard error."""
    if not quiet:
        click.echo(make_printable_lines(message), err=True)


def show_report(
    report: Report, *, as_json: bool, targets: Sequence[str], quiet: bool, full: bool = False
) -> None:
    """Print a report and write it wherever it was asked for."""
    write_targets(report, targets, quiet)
    if as_json:
        click.echo(report.to_json(), nl=False)
    elif not quiet:
        from howsure.report.render.report_sheet import build_report_sheet

        has_page = any(target.endswith(".html") for target in targets)
        say(build_report_sheet(report.data, full=full, page=has_page))


class Writable(Protocol):
    """A result that draws pictures; it also has the writers of its files."""

    def pictures(self) -> Sequence[Picture]:
        """Every picture of its page."""
        ...


def write_targets(result: Writable, targets: Sequence[str], quiet: bool) -> None:
    """Write a result into every file that was asked for, and its pictures."""
    for target in targets:
        with show_spinner(f"writing {Path(target).name}"):
            writer = (REPORT_WRITERS | TABLE_WRITERS)[Path(target).suffix.lower()]
            getattr(result, writer)(target)
        note(f"wrote {target}", quiet)
    figures: Sequence[tuple[list[str], str]] = click.get_current_context().meta[FIGURES]
    if figures:
        from howsure.report.render.paper_figure import choose_pictures, save_figure

        every = result.pictures()
        for names, path in figures:
            save_figure(choose_pictures(every, names), path)
            note(f"wrote {path}", quiet)


def has_figures() -> bool:
    """Whether the command that runs was given --figure."""
    return bool(click.get_current_context().meta[FIGURES])


def list_targets(out: Sequence[str], html: str | None, *, tables: bool = True) -> list[str]:
    """The files to write; what cannot be written is refused before anything is computed."""
    targets = list(out)
    if html:
        targets.append(html)
    for target in targets:
        check_ending(target, [*REPORT_WRITERS, *(TABLE_WRITERS if tables else ())], "reports")
    return targets


def check_ending(path: str, endings: Sequence[str], what: str) -> None:
    """Raise where a file of this name cannot be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in endings:
        raise InputError(
            f"{path}: {what} are written as {', '.join(endings)}; '{suffix}' is none of them."
        )
    parent = Path(path).absolute().parent
    if not parent.is_dir():
        raise InputError(f"{path}: the folder {parent} does not exist.")


def get_command_line() -> str:
    """The call, for the record, without the folder that howsure lives in."""
    return shlex.join(["howsure", *sys.argv[1:]])


def format_reading_call(files: Sequence[str], options: ReadOptions) -> str:
    """The files and reading options of a call, as another command takes them.

    >>> from howsure.predictions.read_options import ReadOptions
    >>> options = ReadOptions(split="test", names={"labels": "y"}, percent=True)
    >>> format_reading_call(["my test.npz"], options)
    "'my test.npz' --split test --name labels=y --percent"
    """
    return shlex.join(list_reading_words(files, options, get_label_file()))


def list_reading_words(
    files: Sequence[str], options: ReadOptions, labels: tuple[str, str] | None
) -> list[str]:
    """The same, word by word; `labels` is a file of labels and what it is joined by.

    >>> from howsure.predictions.read_options import ReadOptions
    >>> list_reading_words(["a.csv", "b.csv"], ReadOptions(several="ensemble"), ("y.csv", "item"))
    ['a.csv', 'b.csv', '--ensemble', '--labels', 'y.csv', '--join', 'item']
    """
    words = list(files)
    for field in READING_OPTIONS:
        value = getattr(options, field)
        option = f"--{field.replace('_', '-')}"
        if field == "names":
            for part, columns in options.names.items():
                listed = columns if isinstance(columns, str) else ",".join(columns)
                words += ["--name", f"{part}={listed}"]
        elif field == "where":
            for column, cell in options.where.items():
                words += ["--where", f"{column}={cell}"]
        elif field == "several" and value is not None:
            words.append(f"--{value}")
        elif value is True:
            words.append(option)
        elif value != getattr(type(options), field):  # a field keeps its default on the class
            words += [option, str(value)]
    if labels is not None:
        words += ["--labels", labels[0]]
        if labels[1] != "id":
            words += ["--join", labels[1]]
    return words
