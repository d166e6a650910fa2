"""How `evaluate` runs over files that need not fit into memory: its options, where it runs, its
progress bar.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.cli.common import add_options, get_command_line, note, reuse_memory
from howsure.cli.paths import OutputPath

if TYPE_CHECKING:
    from howsure.predictions.read_options import ReadOptions
    from howsure.report.report import Report
    from howsure.scale import Progress
    from howsure.workers import Map


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
        return evaluate_files(
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
