"""howsure evaluate"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core.check import InputError
from howsure._core.paths import existing
from howsure.cli import accuracies
from howsure.cli.common import (
    FILES,
    command_line,
    measuring,
    note,
    read_again,
    read_files,
    reading,
    say,
    showing,
    working,
)
from howsure.cli.streaming import OPTIONS, streamed, streaming, streams

if TYPE_CHECKING:
    from howsure.predictions import Predictions
    from howsure.report.report import Report

INTERRUPTED = 130
WRITERS = {".json": "to_json", ".md": "to_markdown", ".html": "to_html", ".txt": "to_text"}


@click.command()
@FILES
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
    "--loss", type=click.Choice(["dice"]), help="Masks: the image as the unit, its loss 1 - Dice."
)
@click.option(
    "--image-score",
    metavar="NAME",
    help="With --loss dice: a column or array by which images are ordered.",
)
@click.option("--calibrator", type=click.Path(), help="Apply a saved calibrator first.")
@click.option(
    "--full", is_flag=True, help="Print all numbers and tables, not only those that matter most."
)
@click.option(
    "--images",
    type=click.Path(),
    help="One picture per sample (.npy), for thumbnails in the HTML report.",
)
@reading
@streaming
@measuring
@showing
@click.pass_context
def command(
    ctx: click.Context,
    files: Sequence[str],
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
    **how: Any,
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
    """
    from howsure.formats.logs.columns import NoConfidence

    targets = [*out, *([html] if html else [])]
    for target in targets:
        writer(target)
    given = {name: how.pop(name) for name in ("stream", *OPTIONS)}
    again = read_again(files, how)
    held = [
        option for option, value in (("--calibrator", calibrator), ("--images", images)) if value
    ]
    asked: dict[str, Any] = {
        "level": level,
        "seed": seed,
        "positive": positive,
        "by": by,
        "threshold": threshold,
        "loss": loss,
        "image_score": image_score,
    }
    asked |= {"thresholds": at} if at else {}
    if streams(files, given, held, quiet):
        report = streamed(files, scores, given, how, **asked)
    else:
        try:
            report = loaded(files, scores, calibrator, images, how, **asked)
        except NoConfidence as e:
            if targets or calibrator:
                raise
            accuracies.show(e.log, level=level, seed=seed, as_json=as_json, quiet=quiet)
            return
    report.data["provenance"]["reading"] = again
    show(report, as_json=as_json, targets=targets, quiet=quiet, full=full)
    if report.data.get("streamed", {}).get("partial"):
        note("howsure: interrupted; this is the result of what was read by then.", quiet)
        ctx.exit(INTERRUPTED)


def loaded(
    files: Sequence[str],
    scores: Sequence[str],
    calibrator: str | None,
    images: str | None,
    how: Any,
    **asked: Any,
) -> Report:
    """The report of predictions that are in memory as a whole."""
    from howsure.report.evaluation import evaluate

    files = local(files)
    preds = read_files(
        files, **how, attributes=columns(asked["by"], asked["loss"], asked["image_score"])
    )
    _tell_unanswered(preds)
    before = None
    if calibrator:
        from howsure._core.saving import load

        before, preds = preds, load(calibrator)(preds)
    with working("measuring"):
        return evaluate(
            preds,
            scores or None,
            images=None if images is None else pictures(images),
            before=before,
            files=[_file(path) for path in files],
            command=command_line(),
            **asked,
        )


def columns(
    by: Sequence[str], loss: str | None = None, image_score: str | None = None
) -> list[str]:
    """The columns that slices and a score of images are made of."""
    from howsure.report.focus import Focus

    return Focus.of(None, by, loss, image_score).columns


def _tell_unanswered(preds: Predictions) -> None:
    """Say on standard error how many questions were answered, and both accuracies."""
    missing = preds.unanswered
    if missing is None or not missing.total or preds.known_correct is None:
        return
    context = click.get_current_context(silent=True)
    asked, right = preds.n + missing.total, float(preds.correct.sum())
    note(
        f"howsure: {preds.n:,} of {asked:,} questions are answered ({missing}): accuracy {right / preds.n:.4g} when "
        f"answering, {(right + missing.unstated_right) / asked:.4g} with no answer counted as wrong.",
        context is not None and bool(context.params.get("quiet")),
    )


def _file(path: str) -> str:
    """The file that stands for a run folder in the record of where the numbers come from."""
    from howsure.formats.logs import helm

    return str(Path(path) / helm.STATE) if Path(path).is_dir() else path


def local(paths: Sequence[str]) -> list[str]:
    """The files of this machine, patterns filled in."""
    from howsure.formats.location import matching
    from howsure.formats.remote import is_remote

    for path in filter(is_remote, paths):
        raise InputError(
            f"{path} is an address, which can only be streamed; leave out --no-stream, --calibrator and --images, "
            "or copy the file."
        )
    return [file for path in paths for file in matching(path)]


def pictures(path: str) -> Any:
    """Pictures of shape (n, height, width) or (n, height, width, channels), opened without loading
    them all.
    """
    import numpy as np

    try:
        found = np.lib.format.open_memmap(
            existing(path), mode="r"
        )  # npy alone, and never Python objects
    except (ValueError, EOFError) as e:
        raise InputError(
            f"{path} cannot be read as pictures: {str(e).splitlines()[0]}; save an array as .npy."
        ) from None
    if found.ndim not in (3, 4):
        raise InputError(
            f"{path} holds no pictures; an array (n, height, width[, channels]) saved as .npy is needed."
        )
    return found


def show(
    report: Report, *, as_json: bool, targets: Sequence[str], quiet: bool, full: bool = False
) -> None:
    """Print a report and write it wherever it was asked for."""
    for target in targets:
        with working(f"writing {Path(target).name}"):
            getattr(report, writer(target))(target)
        note(f"wrote {target}", quiet)
    if as_json:
        click.echo(report.to_json(), nl=False)
    elif not quiet:
        from howsure.render.sections import sheet

        say(sheet(report.data, full=full, page=any(target.endswith(".html") for target in targets)))


def writer(path: str) -> str:
    """The method that writes this kind of file; refused before anything is computed where there is
    none.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        raise InputError(
            f"{path}: reports are written as {', '.join(WRITERS)}; '{suffix}' is none of them."
        )
    if not (parent := Path(path).absolute().parent).is_dir():
        raise InputError(f"{path}: the folder {parent} does not exist.")
    return WRITERS[suffix]
