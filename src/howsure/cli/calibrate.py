"""howsure calibrate"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core import json
from howsure._core.check import InputError
from howsure.cli.common import (
    command_line,
    measuring,
    note,
    read_again,
    read_files,
    reading,
    say,
    working,
)

if TYPE_CHECKING:
    from howsure.predictions import Predictions
    from howsure.report.calibration import CalibrationReport

METHODS = [
    "all",
    "temperature",
    "vector",
    "matrix",
    "dirichlet",
    "histogram",
    "isotonic",
    "platt",
    "beta",
    "none",
]
CRITERIA = ["nll", "ece", "aece", "aurc"]


@click.command()
@click.option(
    "--fit",
    "fit",
    multiple=True,
    required=True,
    type=click.Path(),
    help="Validation data; repeatable.",
)
@click.option(
    "--on",
    "on",
    multiple=True,
    type=click.Path(),
    help="Test data; without it --on-split of the same file.",
)
@click.option("--on-split", help="Which split to judge on, where the file holds several.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="all",
    show_default=True,
    help="all: chosen by cross-fitting.",
)
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA),
    help="What --method all minimises; nll unless told otherwise.",
)
@click.option(
    "--folds",
    type=int,
    default=5,
    show_default=True,
    help="Folds of the validation data for --method all.",
)
@click.option("-o", "--out", type=click.Path(), help="Write the fitted calibrator (JSON).")
@click.option(
    "--html", type=click.Path(), help="Write the interactive report of the corrected test data."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@reading
@measuring
def command(
    fit: Sequence[str],
    on: Sequence[str],
    on_split: str | None,
    method: str,
    criterion: str | None,
    folds: int,
    out: str | None,
    html: str | None,
    as_json: bool,
    quiet: bool,
    level: float,
    seed: int,
    **how: Any,
) -> None:
    """Correct the confidence: fit on validation data, judge on test data.

    All calibrators are tried on folds of the validation data, and doing nothing wins unless a gain is real. The test
    data are only used to show before and after.

    \b
    Examples:
      howsure calibrate --fit val.npz --on test.npz -o calibrator.json
      howsure calibrate --fit both.npz --split val --on-split test --method temperature --html after.html
      howsure evaluate test.npz --calibrator calibrator.json
    """
    from howsure.cli.evaluate import writer
    from howsure.report.calibration import calibration_report

    if html:
        writer(html)
    val, test = _both(fit, on, on_split, **how)
    settings: dict[str, Any] = {"level": level, "seed": seed}
    with working("fitting"):
        report = calibration_report(
            val, test, method, criterion=_metric(criterion), folds=folds, **settings
        )
    judged = {**how, "split": on_split}
    again = {
        "on": read_again(on or fit, judged),
        "fit name": read_again([Path(f).name for f in fit], how),
        "on name": read_again([Path(f).name for f in on or fit], judged),
    }
    for target in _write(report, test, out, html, settings, again):
        note(f"wrote {target}", quiet)
    if as_json:
        click.echo(json.line(report.to_dict()))
    elif not quiet:
        from howsure.render.sections import calibrated

        say(calibrated(report.to_dict()))


def _both(
    fit: Sequence[str], on: Sequence[str], on_split: str | None, split: str | None, **how: Any
) -> tuple[Predictions, Predictions]:
    """Validation and test data."""
    if not on and on_split is None:
        raise InputError(
            "say what to judge on: --on TEST, or --on-split test for another split of the same file."
        )
    return read_files(fit, split, **how), _judged(on or fit, on_split, how)


def _judged(files: Sequence[str], on_split: str | None, how: dict[str, Any]) -> Predictions:
    """The test data; their split has an option of its own, which a complaint must name."""
    try:
        return read_files(files, on_split, **how)
    except InputError as e:
        raise InputError(str(e).replace("(--split)", "(--on-split)")) from None


def _write(
    report: CalibrationReport,
    test: Predictions,
    out: str | None,
    html: str | None,
    settings: dict[str, Any],
    again: dict[str, str],
) -> list[str]:
    """The calibrator, and the page of the corrected test data with what changed; returns what was
    written.
    """
    if out:
        from howsure._core.saving import save

        save(report.calibrator, out)
    if html:
        from howsure.report.evaluation import evaluate

        page = evaluate(report.calibrator(test), before=test, command=command_line(), **settings)
        page.data["calibration"] = report.to_dict()
        page.data["provenance"]["reading"] = again["on"]
        page.data["provenance"]["inputs"] = [
            {"file": f"fitted on {again['fit name']}"},
            {
                "file": f"judged on {again['on name']}",
                "sha256": page.data["provenance"]["inputs"][0].get("sha256", ""),
            },
        ]
        page.to_html(html)
    return [target for target in (out, html) if target]


def _metric(name: str | None) -> Any:
    from howsure import metrics

    return None if name is None else getattr(metrics, name)
