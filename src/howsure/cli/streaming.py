"""How `evaluate` runs over files that need not fit into memory: its options, where it runs, its
progress bar.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core.checks import InputError
from howsure.cli.common import (
    MULTILABEL_OPTIONS,
    F,
    get_command_line,
    note,
    parse_names,
    reuse_memory,
    take_log_options,
)
from howsure.cli.paths import OutputPath

if TYPE_CHECKING:
    from howsure.report.report import Report
    from howsure.scale import Progress
    from howsure.workers import Map

STREAM_OPTIONS = ("workers", "scheduler", "resume", "skip_corrupt", "compact")


def add_stream_options(f: F) -> F:
    """Options of an evaluation in bounded memory."""
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
    for option in reversed(options):
        f = option(f)
    return f


def decide_streaming(
    files: Sequence[str], given: dict[str, Any], held: Sequence[str], quiet: bool
) -> bool:
    """Whether to stream: because it was asked for, or because the data are large, which is
    announced.
    """
    asked = [name for name in STREAM_OPTIONS if given[name]]
    stream: bool | None = given["stream"]
    if asked and stream is False:
        raise InputError(f"--{asked[0].replace('_', '-')} is for streams; leave out --no-stream.")
    if held and (asked or stream):
        raise InputError(
            f"{held[0]} needs all predictions at once; leave it out, or the options of a stream."
        )
    if asked or stream is not None:
        return bool(asked or stream)
    if held:
        return False
    from howsure.formats.location import explain_streaming
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
    given: dict[str, Any],
    how: dict[str, Any],
    **asked: Any,
) -> Report:
    """The report of a stream."""
    from howsure.scale import evaluate_files

    names = parse_names(how.pop("names"))
    special = take_log_options(how)
    multilabel = {name: special.pop(name) for name in MULTILABEL_OPTIONS}
    for name, value in special.items():
        if value not in (None, False, "apart"):
            raise InputError(
                f"--{name.replace('_', '-')} needs all predictions at once; "
                "leave out the options of a stream."
            )
    reuse_memory()
    with _choose_map(given["workers"], given["scheduler"]) as mapped, _show_progress() as progress:
        return evaluate_files(
            files,
            scores or None,
            map=mapped,
            resume=given["resume"],
            skip_corrupt=given["skip_corrupt"],
            compact=given["compact"],
            progress=progress,
            command=get_command_line(),
            names=names,
            **multilabel,
            **how,
            **asked,
        )


@contextmanager
def _choose_map(number: int | None, scheduler: str | None) -> Generator[Map | None]:
    """Threads of this process, worker processes, or a cluster."""
    if number is not None and scheduler is not None:
        raise InputError(
            "--workers starts processes here and --scheduler uses a cluster; give one of them."
        )
    if number is None and scheduler is None:
        yield None
        return
    from howsure import workers

    with workers.connected(scheduler) if scheduler else workers.processes(number or 1) as mapped:
        yield mapped


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
