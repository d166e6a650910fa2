"""evaluate_files(): plan, map, add up, report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from howsure import workers
from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.render.model import FindingData, Input, Provenance, Streamed
from howsure.report import catalogue
from howsure.report.details import Details
from howsure.report.evaluation import Asked, report
from howsure.report.findings import Finding
from howsure.report.measurement import Sureness
from howsure.report.positive import THRESHOLDS
from howsure.report.provenance import versions
from howsure.report.report import Report
from howsure.report.summary import BOUNDED
from howsure.scale.gathered import Gathered, gathered
from howsure.scale.parts import Job, Partition, Settings, expanded, planned
from howsure.scale.summaries import answered, stored, summarised
from howsure.workers import Map

HELD = 1 << 22  # rows of waiting summaries, before they are added to the large one
THREADS = 8  # more do not help: the driver adds up


@frozen
class Progress:
    """How far a job is: parts, bytes and rows that are done, and of how many; `seconds` since it
    began.
    """

    parts: int
    of_parts: int
    bytes: int
    of_bytes: int
    rows: int
    seconds: float


def evaluate_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    scores: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
    split: str | None = None,
    mc: bool = False,
    names: Mapping[str, str | Sequence[str]] | None = None,
    renormalise: bool = False,
    positive: str | int | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    by: str | Sequence[str] = (),
    threshold: float | None = None,
    multilabel: bool = False,
    sums_to_one: bool = False,
    loss: str | None = None,
    image_score: str | None = None,
    map: Map | None = None,
    resume: str | os.PathLike[str] | None = None,
    skip_corrupt: bool = False,
    compact: bool = False,
    progress: Callable[[Progress], None] | None = None,
    command: str | None = None,
) -> Report:
    """`evaluate` over files that need not fit into memory, read as one data set.

    `paths` may be patterns and addresses that fsspec knows (`s3://bucket/*.parquet`). Each part of
    a file becomes a small summary, summaries add up in any order to the same bits, and the sum
    gives the same numbers as the whole. `positive`, `thresholds`, `by` and `threshold` are those of
    `evaluate`; bins of a column need edges. `map` says where the parts are worked on: any function
    like the built-in `map`, `workers.threads(n)` unless told otherwise, or a cluster's
    (`workers.connected`, `workers.processes`). `resume` names a folder for the summaries of parts,
    so that a job that died goes on where it was. `skip_corrupt` leaves out what cannot be read and
    says so; `compact` keeps tallies of fixed size, with bounds instead of exact numbers. An
    interrupt (Ctrl-C) gives a report on what was read by then, marked partial. Details:
    docs/scale.md.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("a.csv", "b.csv"):
    ...     _ = (folder / name).write_text("confidence,correct\\n0.9,1\\n0.8,0\\n0.7,1\\n")
    >>> evaluate_files(folder / "*.csv")
    <Report: n=6, k=None, 22 metrics>
    """
    sure = Sureness(level, seed).check()
    columns = (by,) if isinstance(by, str) else tuple(by)
    settings = Settings(
        *(
            _scores(scores, compact),
            split,
            mc,
            renormalise,
            _names(names),
            compact,
            skip_corrupt,
            positive,
            columns,
        ),
        *(multilabel, sums_to_one, loss, image_score),
    )
    settings.focus.streamed()
    job = planned(expanded(paths), settings)
    folder = _folder(resume)
    resumed = (
        0 if folder is None else sum(stored(part, settings, folder).exists() for part in job.parts)
    )
    task = partial(summarised, settings=settings, folder=folder)
    mapped = map or workers.threads(min(THREADS, os.cpu_count() or 1))
    found = gather(job, task, mapped, progress)
    if found.summary is None:
        raise InputError(
            f"there are no rows{_of(split)} in {len(job.files):,} file{'s' * (len(job.files) > 1)}."
        )
    again = partial(answered, settings=settings)
    summary = replace(found.summary, details=_second(found, job, again, mapped, progress))
    streamed = _streamed(found, job, resumed, summary.left_out())
    asked = Asked(
        sure,
        _origin(job, sure, command),
        notices=_notices(found, job),
        streamed=streamed,
        thresholds=thresholds,
        threshold=threshold,
    )
    return report(summary, asked)


def _second(
    g: Gathered,
    job: Job,
    again: Callable[..., Gathered],
    mapped: Map,
    progress: Callable[[Progress], None] | None,
) -> Details | None:
    """What a second reading of the parts tells; nothing where there is nothing to ask, or where the
    user interrupts.
    """
    if (
        g.summary is None
        or len(g.parts) < len(job.parts)
        or not (question := g.summary.question()).asks
    ):
        return None
    try:
        found = gather(job, partial(again, question=question), mapped, progress)
    except KeyboardInterrupt:
        return None
    return found.details if len(found.parts) == len(job.parts) else None


def _notices(g: Gathered, job: Job) -> list[FindingData]:
    """What keeps the report from being about all rows."""
    out: list[Finding] = []
    if len(g.parts) < len(job.parts):
        text = f"Partial: {len(g.parts):,} of {len(job.parts):,} parts of the data were read before it was interrupted."
        out.append(Finding("partial", text, {"parts": len(g.parts), "of": len(job.parts)}, ""))
    skipped = [*job.skipped, *g.skipped]
    if skipped:
        text = f"Left out because it cannot be read: {'; '.join(skipped)}"
        out.append(Finding("skipped", text, {"skipped": len(skipped)}, ""))
    return [finding.json() for finding in out]


def _streamed(g: Gathered, job: Job, resumed: int, left_out: dict[str, str]) -> Streamed:
    return {
        "files": len(job.files),
        "parts": len(g.parts),
        "of": len(job.parts),
        "resumed": resumed,
        "partial": len(g.parts) < len(job.parts),
        "skipped": [*job.skipped, *g.skipped],
        "left_out": left_out,
    }


def _origin(job: Job, sure: Sureness, command: str | None) -> Provenance:
    state = {part.path: (part.size, part.stamp) for part in job.parts}
    inputs: list[Input] = [
        {"file": PurePosixPath(path).name, "bytes": state[path][0], "modified": state[path][1]}
        for path in job.files
        if path in state
    ]
    return {
        "inputs": inputs,
        "command": command,
        "seed": sure.seed,
        "level": sure.level,
        "versions": versions(),
    }


def _scores(scores: Sequence[str] | None, compact: bool) -> tuple[str, ...] | None:
    for name in scores or ():
        catalogue.score_named(name)
        if compact and name not in BOUNDED:
            raise InputError(
                f"{name} is not in [0, 1], so compact tallies of it do not add up; leave out this score."
            )
    return tuple(scores) if scores else None


def _names(
    names: Mapping[str, str | Sequence[str]] | None,
) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
    given = (names or {}).items()
    return tuple((part, name if isinstance(name, str) else tuple(name)) for part, name in given)


def _of(split: str | None) -> str:
    return "" if split is None else f" of the split {split!r}"


def _folder(resume: str | os.PathLike[str] | None) -> str | None:
    if resume is None:
        return None
    folder = Path(resume)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a folder is needed for the summaries of parts.")
    folder.mkdir(exist_ok=True)
    return str(folder.absolute())


def gather(
    job: Job,
    task: Callable[[Partition], Gathered],
    mapped: Map,
    progress: Callable[[Progress], None] | None = None,
) -> Gathered:
    """Every part once, added up; what there is of them where the user interrupts."""
    held: list[Gathered] = []
    done: set[int] = set()
    start = time.monotonic()

    def note(part: Partition) -> None:
        done.add(part.index)
        if progress is not None:
            progress(_progress(job, done, held, time.monotonic() - start))

    try:
        for found in workers.sums(mapped, task, job.parts, note):
            if not found.parts <= done_in(held):  # a result that arrives twice counts once
                held = settled([*held, found])
    except KeyboardInterrupt:
        if not held:
            raise
    else:
        _check_complete(job, done_in(held))
    return gathered(held)


def _check_complete(job: Job, done: frozenset[int]) -> None:
    """A map that loses parts would give a wrong result that looks right."""
    if len(done) < len(job.parts):
        raise InputError(
            f"{len(done):,} of {len(job.parts):,} parts came back; the map= lost the others."
        )


def done_in(held: Sequence[Gathered]) -> frozenset[int]:
    """The parts that are there."""
    return frozenset[int]().union(*(g.parts for g in held))


def settled(held: list[Gathered]) -> list[Gathered]:
    """One large sum and some that wait; those are added to it when together they are half as large."""
    waiting = sum(g.size for g in held[1:])
    if waiting < max(HELD, held[0].size // 2):
        return held
    return [gathered(held)]


def _progress(job: Job, done: set[int], held: Sequence[Gathered], seconds: float) -> Progress:
    here = [job.parts[i] for i in done]
    counted = sum(g.summary.n for g in held if g.summary is not None)
    size, of = sum(part.bytes for part in here), sum(part.bytes for part in job.parts)
    rows = max(counted, sum(part.rows for part in here))
    return Progress(len(here), len(job.parts), size, of, rows, seconds)


__all__ = ["Progress", "evaluate_files", "gather"]
