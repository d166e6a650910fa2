"""What several commands share: how files are read, how results are shown and written."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from howsure._core.check import InputError
from howsure._core.progress import listener
from howsure._core.text import printable, printable_lines, shortened

if TYPE_CHECKING:
    from howsure.predictions import Predictions

F = TypeVar("F", bound=Callable[..., Any])
LOG_OPTIONS = ("format", "percent", "no_answer", "drop_outside")
MANY_OPTIONS = ("multilabel", "sums_to_one")
DEFAULTS = {"no_answer": "apart"}  # options that are not given have this value
TRIM_THRESHOLD, MMAP_THRESHOLD, LARGEST = (
    -1,
    -3,
    1 << 25,
)  # of mallopt(3); the largest threshold it takes
COLUMNS, NAME = 12, 60  # columns of a sentence, letters of each
WIDTH = 110  # of what is printed into a file or a pipe
FILES = click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")


def reading(f: F) -> F:
    """Options that say how a file is read."""
    options = [
        click.option("--split", help="Which split, where a file holds several (val, test, ...)."),
        click.option(
            "--mc", is_flag=True, help="Use the Monte-Carlo or ensemble samples (mc_logits)."
        ),
        click.option(
            "--renormalise", is_flag=True, help="Divide rows of probabilities by their sum."
        ),
        click.option(
            "--name",
            "names",
            multiple=True,
            metavar="WHAT=NAME",
            help="What the file calls differently: --name labels=target --name probs=cat,dog (or 'probs=p_*').",
        ),
        click.option(
            "--format",
            "format",
            metavar="TOOL",
            help="The tool that wrote a log (lm-eval, inspect, ...).",
        ),
        click.option("--percent", is_flag=True, help="The confidence is in percent."),
        click.option(
            "--no-answer",
            "no_answer",
            type=click.Choice(["apart", "wrong"]),
            default="apart",
            show_default=True,
            help="Questions without an answer: counted apart, or kept as wrong where they have a confidence.",
        ),
        click.option(
            "--drop-outside", is_flag=True, help="A confidence outside [0, 1] counts as missing."
        ),
        click.option("--multilabel", is_flag=True, help="Many labels per case, each 0 or 1."),
        click.option(
            "--sums-to-one", is_flag=True, help="With --multilabel: rows that sum to 1 are meant."
        ),
    ]
    for option in reversed(options):
        f = option(f)
    return f


def showing(f: F) -> F:
    """Options that say how a result is shown."""
    options = [
        click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables."),
        click.option(
            "-o",
            "--out",
            "out",
            multiple=True,
            type=click.Path(),
            help="Also write .json, .md, .html or .txt; repeatable.",
        ),
        click.option(
            "--html",
            "html",
            type=click.Path(),
            help="Write the interactive report, one offline file.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    ]
    for option in reversed(options):
        f = option(f)
    return f


def measuring(f: F) -> F:
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
    for option in reversed(options):
        f = option(f)
    return f


def read_files(
    files: Sequence[str],
    split: str | None,
    mc: bool,
    renormalise: bool,
    names: Sequence[str],
    *,
    told: bool = True,
    labelled: bool = True,
    **log: Any,
) -> Predictions:
    """The files as one set of predictions; what kind of log a file is, is said on standard error."""
    from howsure.formats import read

    reuse_memory()
    context = click.get_current_context(silent=True)
    quiet = not told or (context is not None and bool(context.params.get("quiet")))
    tell: Callable[[str], None] = lambda line: note(f"howsure: {line}", quiet)
    with working(f"reading {', '.join(Path(f).name for f in files)}"):
        table = name_table(names)
        preds = read(
            list(files), split=split, mc=mc, renormalise=renormalise, names=table, tell=tell, **log
        )
    if labelled and preds.kind != "confidence" and preds.known_labels is None:
        raise _no_labels(preds, Path(files[0]), set(table.values()))
    return preds


def _no_labels(preds: Predictions, path: Path, named: set[str]) -> InputError:
    """What to do with a file that does not say what is right: name the column that does, or do
    without.
    """
    from howsure.formats.files import label_columns

    n = preds.n if preds.layout is None else preds.n // preds.layout.size
    free = [name for name in label_columns(path, preds.k or 2, n) if name not in named]
    shown = [repr(shortened(name, NAME)) for name in free[:COLUMNS]]
    listed = " or ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
    return InputError(
        path.name,
        got="has no labels",
        need=f"if {listed} holds them, say --name labels=…"
        if free
        else "add an array or a column of labels",
        hint="Without labels howsure monitor REFERENCE NEW estimates the accuracy",
    )


def reuse_memory() -> None:
    """Let the columns that one number leaves behind hold those of the next.

    The C library of Linux gives large blocks back to the system at once, and new pages cost as much
    as the sums that are made in them. Only a command does this: a library leaves its host's memory
    alone.
    """
    if sys.platform != "linux":
        return
    from ctypes import CDLL  # NumPy imports it too

    if (option := getattr(CDLL(None), "mallopt", None)) is not None:  # musl has none
        option(TRIM_THRESHOLD, 2**31 - 1)
        option(MMAP_THRESHOLD, LARGEST)


def of_logs(options: dict[str, Any]) -> dict[str, Any]:
    """The options that say how a log or many labels are read, taken out of all options."""
    return {name: options.pop(name) for name in (*LOG_OPTIONS, *MANY_OPTIONS)}


def name_table(names: Sequence[str]) -> dict[str, str]:
    """`labels=target` → {"labels": "target"}."""
    table: dict[str, str] = {}
    for entry in names:
        what, sign, name = entry.partition("=")
        if not sign or not what or not name:
            raise InputError(f"--name {entry!r} is not WHAT=NAME, as in --name labels=target.")
        table[what.strip()] = name.strip()
    return table


@contextmanager
def working(what: str) -> Generator[None]:
    """A spinner on the terminal while something takes its time; where there is none only `listener`
    is told.
    """
    listener.get()(what)
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True, markup=False).status(printable(f"{what} …")):
        yield


def say(renderable: Any) -> None:
    """Print to standard output: in colour on a terminal, else as plain text of a fixed width."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console(highlight=False).print(renderable, crop=False)
        return
    from io import StringIO

    out = StringIO()
    Console(file=out, width=WIDTH, no_color=True, highlight=False).print(renderable, crop=False)
    click.echo("\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").splitlines()))


def note(message: str, quiet: bool = False) -> None:
    """A remark for people, on standard error."""
    if not quiet:
        click.echo(printable_lines(message), err=True)


def command_line() -> str:
    """The call, for the record, without the folder that howsure lives in."""
    return shlex.join(["howsure", *sys.argv[1:]])


def read_again(files: Sequence[str], options: Mapping[str, Any]) -> str:
    """The files and reading options of a call, as another command takes them.

    >>> read_again(["my test.npz"], {"split": "test", "mc": False, "names": ("labels=y",), "no_answer": "apart"})
    "'my test.npz' --split test --name labels=y"
    """
    words = list(files)
    for name, value in options.items():
        option = "--name" if name == "names" else f"--{name.replace('_', '-')}"
        given = (
            list(cast("Sequence[object]", value)) if isinstance(value, (tuple, list)) else [value]
        )
        for one in given:
            if one is True:
                words.append(option)
            elif isinstance(one, str) and one != DEFAULTS.get(name):
                words += [option, one]
    return shlex.join(words)
