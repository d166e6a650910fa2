"""evaluate_files(): plan the parts of all files, map them to summaries, merge, report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from howsure import workers
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.formats import arrow
from howsure.formats.assembly import SameRows, find_same_rows
from howsure.formats.column_names import TOP_ANSWER_VALUES, Plan, choose_values
from howsure.formats.column_names import plan_parts as plan
from howsure.formats.contents import Damaged, group_files, list_matching_files
from howsure.formats.files import load_reader, read_receipt, scan_piece
from howsure.predictions import Predictions
from howsure.predictions.read_options import Names, ReadOptions, choose_options
from howsure.report import catalogue
from howsure.report.catalogue import BOUNDED_SCORES
from howsure.report.evaluation import ReportRequest, build_report
from howsure.report.focus import Focus
from howsure.report.measurement import Sureness
from howsure.report.report import Report, build_receipt_data, list_versions
from howsure.report.report_types import THRESHOLDS, Input, Provenance, Streamed
from howsure.report.samples import Details
from howsure.report.verdict import Finding
from howsure.scale.parts import (
    Partition,
    PartResult,
    Settings,
    answer_question,
    find_source,
    find_stored,
    find_unstreamed,
    load_or_summarise,
    merge_results,
    read_file_state,
)
from howsure.workers import Map

COMPARED_FILES = 50  # of so many the first rows are compared
COMPARED_ROWS = 1024
PART_ROWS = 1 << 20  # of a part, where the file can be read in pieces
MAX_PARTS = 1000  # a larger job has larger parts instead of many more
WAITING_ROWS = 1 << 25  # rows of waiting summaries, before they are merged into the large one
MAX_THREADS = 8  # more do not help: the driver merges


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
    names: Names | None = None,
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
    options: ReadOptions | None = None,
) -> Report:
    """`evaluate` over files that need not fit into memory, read as one data set.

    `paths` may be patterns and addresses that fsspec knows (`s3://bucket/*.parquet`). Each part of
    a file becomes a small summary, summaries add up in any order to the same bits, and the sum
    gives the same numbers as the whole. `options=ReadOptions(...)` says how files are read in one
    value, in place of the keywords. `positive`, `thresholds`, `by` and `threshold` are those of
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
    <Report: n=6, k=None, 23 metrics>
    """
    sure = Sureness(level, seed).check()
    for name in scores or ():
        catalogue.find_score(name)
        if compact and name not in BOUNDED_SCORES:
            raise InputError(
                f"{name} is not in [0, 1], so compact tallies of it do not add up; leave out this score."
            )
    keywords = ReadOptions(
        split=split,
        mc=mc,
        names=names or {},
        renormalise=renormalise,
        multilabel=multilabel,
        sums_to_one=sums_to_one,
    )
    columns = (by,) if isinstance(by, str) else by
    focus = Focus.of(positive, columns, loss, image_score).streamed()
    options = replace(choose_options(options, keywords), attributes=tuple(focus.columns))
    unstreamed = find_unstreamed(options)
    if unstreamed is not None:
        got = f"has {unstreamed}, which needs all predictions at once"
        raise InputError("options", got=got, hint="use howsure.read and howsure.evaluate")
    settings = Settings(
        scores=tuple(scores) if scores else None,
        options=options,
        compact=compact,
        skip_corrupt=skip_corrupt,
        focus=focus,
    )
    job = plan_parts(expand_paths(paths), settings)
    if options.several is None:
        _compare_beginnings(job.files, options)
    folder, resumed = None, 0
    if resume is not None:
        place = Path(resume)
        if place.exists() and not place.is_dir():
            raise InputError(f"{place} is a file; a folder is needed for the summaries of parts.")
        place.mkdir(exist_ok=True)
        folder = str(place.absolute())
        resumed = sum(find_stored(part, settings, folder).exists() for part in job.parts)
    mapped = map or workers.threads(min(MAX_THREADS, os.cpu_count() or 1))
    task = partial(load_or_summarise, folder=folder)
    result = gather(job, partial(task, settings=settings), mapped, progress)
    if result.has_equal_weights and len(result.parts) == len(job.parts):
        # They weigh nothing, and what is weighted has no guarantee: all is read without them.
        settings = replace(settings, options=options.leave_out("weight"))
        result = gather(job, partial(task, settings=settings), mapped, progress)
    if result.summary is None:
        of_split = "" if options.split is None else f" of the split {options.split!r}"
        files = f"{len(job.files):,} file{'s' * (len(job.files) > 1)}"
        raise InputError(f"there are no rows{of_split} in {files}.")
    # What only single samples tell is asked once the first reading says what to look for.
    again = partial(answer_question, settings=settings)
    summary = replace(result.summary, details=_read_again(result, job, again, mapped, progress))
    asked = _describe_run(
        result, job, sure, left_out=summary.left_out(), resumed=resumed, command=command
    )
    classes = summary.shape.k
    if summary.labels is not None:
        classes = len(summary.labels.names)
    receipt = read_receipt(find_source(job.parts[0].path), options)
    receipt = replace(receipt, rows=summary.n, classes=classes)
    asked.origin["receipt"] = build_receipt_data(receipt)
    return build_report(summary, replace(asked, thresholds=thresholds, threshold=threshold))


def _compare_beginnings(files: Sequence[str], options: ReadOptions) -> None:
    """Refuse files that begin with the same rows, as `read` refuses those that have the same: they
    may be models, and nothing says what they are.
    """
    first: Predictions | None = None
    first_path = ""
    if len(files) == 1:
        return
    for path in files[:COMPARED_FILES]:
        try:
            rows = scan_piece(find_source(path), options, COMPARED_ROWS, None)
            part = next(rows, None)
        except InputError:  # the job says so, or leaves it out
            continue
        if part is None:
            continue
        if first is None:
            first, first_path = part, path
            continue
        same = find_same_rows(first, part)
        if same:
            name, other = PurePosixPath(first_path).name, PurePosixPath(path).name
            raise SameRows.of(name, other, f"begin with the same {part.n:,} rows ({same})")


# Planning.


@frozen
class Job:
    """All parts, the files in the order in which they were given, and the files that could not be
    opened.
    """

    files: tuple[str, ...]
    parts: tuple[Partition, ...]
    skipped: tuple[str, ...]


@frozen
class SourceFile:
    """A file that was opened: its state, and where it can be read in pieces, the rows of each and
    the columns of the parts.
    """

    path: str
    size: int
    stamp: str
    pieces: tuple[int, ...] | None = None
    plan: Plan | None = None


def expand_paths(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Every file once, patterns filled in."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise InputError("no file is given; name at least one.")
    files: list[str] = []
    for path in given:
        files += list_matching_files(os.fspath(path))
    return list(group_files(files))


def plan_parts(files: Sequence[str], settings: Settings) -> Job:
    """The parts of all files; what can be known without reading rows is checked here."""
    opened: dict[int, SourceFile] = {}
    skipped: list[str] = []
    for number, path in enumerate(files):
        try:
            opened[number] = _open_source(path, settings)
        except Damaged as e:
            if not settings.skip_corrupt:
                raise
            skipped.append(str(e))
    _check_alike(list(opened.values()))
    total = sum(sum(file.pieces or ()) for file in opened.values())
    # Rounded up: MAX_PARTS parts of this size hold all rows.
    rows = max(PART_ROWS, -(-total // MAX_PARTS))
    parts: list[Partition] = []
    for number, file in opened.items():
        parts += _cut_file(file, number, first_index=len(parts), rows=rows)
    if not parts:
        raise InputError(
            "none of the files has rows that can be read; at least one sample is needed."
        )
    return Job(files=tuple(files), parts=tuple(parts), skipped=tuple(skipped))


def _open_source(path: str, settings: Settings) -> SourceFile:
    place = find_source(path)
    size, stamp = read_file_state(path)
    if load_reader(place) is not arrow:
        return SourceFile(path=path, size=size, stamp=stamp)
    outline = arrow.read_outline(place)
    parts = plan(outline.contents, settings.options)
    if "split" in parts and settings.options.split is None:
        raise InputError(
            f"{place.name} has a column split; say which one is wanted with split= or --split."
        )
    # The kind of the values stands under "", so that files of two kinds are not alike.
    used: Plan = {"": (choose_values(parts, settings.options),)}
    used |= {part: names for part, names in parts.items() if part != "class_names"}
    return SourceFile(path=path, size=size, stamp=stamp, pieces=outline.pieces, plan=used)


def _check_alike(files: Sequence[SourceFile]) -> None:
    """Tables must have the same columns for the same parts; arrays are compared when they are read."""
    tables = [file for file in files if file.plan is not None]
    for file in tables[1:]:
        first, here = tables[0].plan or {}, file.plan or {}
        for part in [*first, *here]:
            if first.get(part) != here.get(part):
                ours, theirs = _describe_columns(first.get(part)), _describe_columns(here.get(part))
                raise InputError(
                    f"{file.path} has {theirs} for {part or 'the values'}, {tables[0].path} has {ours}; "
                    "evaluate files with the same columns together."
                )


def _describe_columns(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "nothing"
    if len(names) == 1:
        return names[0]
    return f"{names[0]} … {names[-1]} ({len(names)} columns)"


def _cut_file(file: SourceFile, number: int, *, first_index: int, rows: int) -> list[Partition]:
    """Runs of pieces with about so many rows each."""
    whole = Partition(
        index=first_index,
        file=number,
        path=file.path,
        size=file.size,
        stamp=file.stamp,
        bytes=file.size,
    )
    if file.pieces is None:
        return [whole]
    parts: list[Partition] = []
    start, first, total = 0, 0, max(1, sum(file.pieces))
    narrow = file.plan is not None and file.plan[""][0] in TOP_ANSWER_VALUES
    for stop in range(1, len(file.pieces) + 1):
        here = sum(file.pieces[start:stop])
        if here and (here >= rows or stop == len(file.pieces)):
            part = replace(
                whole,
                index=first_index + len(parts),
                bytes=file.size * here // total,
                start=start,
                stop=stop,
                first=first,
                rows=here,
                narrow=narrow,
            )
            parts.append(part)
            start, first = stop, first + here
    return parts


# Running.


def gather(
    job: Job,
    task: Callable[[Partition], PartResult],
    mapped: Map,
    progress: Callable[[Progress], None] | None = None,
) -> PartResult:
    """Every part once, merged; what there is of them where the user interrupts."""
    results: list[PartResult] = []
    done: set[int] = set()
    start = time.monotonic()

    def note(part: Partition) -> None:
        done.add(part.index)
        if progress is None:
            return
        parts = [job.parts[i] for i in done]
        # A file that does not say how many rows it has is counted when its summary arrives.
        counted = sum(result.summary.n for result in results if result.summary is not None)
        so_far = Progress(
            parts=len(parts),
            of_parts=len(job.parts),
            bytes=sum(part.bytes for part in parts),
            of_bytes=sum(part.bytes for part in job.parts),
            rows=max(counted, sum(part.rows for part in parts)),
            seconds=time.monotonic() - start,
        )
        progress(so_far)

    try:
        for result in workers.sums(mapped, task, job.parts, note):
            if not result.parts <= list_parts(results):  # one that arrives twice counts once
                results = merge_if_large([*results, result])
    except KeyboardInterrupt:
        if not results:
            raise
    else:
        # A map that loses parts would give a wrong result that looks right.
        returned = len(list_parts(results))
        if returned < len(job.parts):
            raise InputError(
                f"{returned:,} of {len(job.parts):,} parts came back; the map= lost the others."
            )
    return merge_results(results)


def list_parts(results: Sequence[PartResult]) -> frozenset[int]:
    """The parts that are there."""
    return frozenset[int]().union(*(result.parts for result in results))


def merge_if_large(results: list[PartResult]) -> list[PartResult]:
    """One large result and some that wait; those are merged into it when together they are half as
    large, so that each row is merged a few times and not once for every part.
    """
    waiting = sum(result.size for result in results[1:])
    if waiting < max(WAITING_ROWS, results[0].size // 2):
        return results
    return [merge_results(results)]


def _read_again(
    result: PartResult,
    job: Job,
    again: Callable[..., PartResult],
    mapped: Map,
    progress: Callable[[Progress], None] | None,
) -> Details | None:
    """What a second reading of the parts says; None where there is nothing to ask, or where the
    user interrupts.
    """
    if result.summary is None or len(result.parts) < len(job.parts):
        return None
    question = result.summary.question()
    if not question.asks:
        return None
    try:
        second = gather(job, partial(again, question=question), mapped, progress)
    except KeyboardInterrupt:
        return None
    return second.details if len(second.parts) == len(job.parts) else None


def _describe_run(
    result: PartResult,
    job: Job,
    sure: Sureness,
    *,
    left_out: dict[str, str],
    resumed: int,
    command: str | None,
) -> ReportRequest:
    """Which files the report is about, how it was made, and what keeps it from being about all
    rows.
    """
    parts = {part.path: part for part in job.parts}
    inputs: list[Input] = []
    for path in job.files:
        part = parts.get(path)
        if part is not None:
            name = PurePosixPath(path).name
            inputs.append({"file": name, "bytes": part.size, "modified": part.stamp})
    origin: Provenance = {
        "inputs": inputs,
        "command": command,
        "seed": sure.seed,
        "level": sure.level,
        "versions": list_versions(),
    }
    read, of = len(result.parts), len(job.parts)
    skipped = [*job.skipped, *result.skipped]
    streamed: Streamed = {
        "files": len(job.files),
        "parts": read,
        "of": of,
        "resumed": resumed,
        "partial": read < of,
        "skipped": skipped,
        "left_out": left_out,
    }
    findings: list[Finding] = []
    if read < of:
        text = f"Partial: {read:,} of {of:,} parts of the data were read before it was interrupted."
        findings.append(Finding("partial", text, {"parts": read, "of": of}, ""))
    if skipped:
        text = f"Left out because it cannot be read: {'; '.join(skipped)}"
        findings.append(Finding("skipped", text, {"skipped": len(skipped)}, ""))
    notices = [finding.json() for finding in findings]
    return ReportRequest(sure, origin, notices=notices, streamed=streamed)


__all__ = ["Progress", "evaluate_files", "gather"]
