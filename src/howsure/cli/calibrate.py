"""howsure calibrate"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure.cli.common import (
    ReadingCommand,
    add_figure_option,
    add_interval_options,
    add_label_options,
    add_reading_options,
    check_ending,
    format_reading_call,
    get_command_line,
    has_figures,
    note,
    read_files,
    record_reading,
    remember_receipt,
    say,
    show_spinner,
    write_targets,
)
from howsure.cli.input_output import InputPath, OutputPath
from howsure.cli.questions import (
    collect_questions,
    list_questions,
    read_right_or_wrong,
    show_questions,
)

if TYPE_CHECKING:
    from howsure.calibrators import Identity
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import ReadOptions
    from howsure.report.calibration_report import CalibrationReport
    from howsure.report.question_reports import QuestionReports
    from howsure.report.report import Report
    from howsure.report.report_types import CalibrationData

CALIBRATION_METHODS = [
    "all",
    "temperature",
    "diagonal",
    "full",
    "vector",
    "matrix",
    "dirichlet",
    "histogram",
    "isotonic",
    "platt",
    "beta",
    "none",
]
CHOICE_CRITERIA = ["nll", "ece", "aece", "aurc"]


@click.command(cls=ReadingCommand)
@click.argument("file", required=False, type=InputPath())
@click.option(
    "--fit",
    "fit",
    multiple=True,
    type=InputPath(),
    help="Validation data; repeatable.",
)
@click.option(
    "--on",
    "on",
    multiple=True,
    type=InputPath(),
    help="Test data; without it --on-split of the same file.",
)
@click.option("--on-split", help="Which split to judge on, where the file holds several.")
@click.option(
    "--method",
    type=click.Choice(CALIBRATION_METHODS),
    default="all",
    show_default=True,
    help="all: chosen by cross-fitting.",
)
@click.option(
    "--criterion",
    type=click.Choice(CHOICE_CRITERIA),
    help="What --method all minimises; nll unless told otherwise.",
)
@click.option(
    "--objective",
    type=click.Choice(["averaged", "per_pass"]),
    default="averaged",
    show_default=True,
    help="Of --method temperature with --mc: the loss of the mean over passes, or of each pass (Laves' code).",
)
@click.option(
    "--folds",
    type=int,
    default=5,
    show_default=True,
    help="Folds of the validation data for --method all.",
)
@click.option(
    "--with",
    "others",
    multiple=True,
    type=InputPath(),
    help="A second opinion: another model's answers to the same samples; with --on twice, for --fit and for --on.",
)
@click.option("-o", "--out", type=OutputPath(), help="Write the fitted calibrator (JSON).")
@click.option(
    "--html", type=OutputPath(), help="Write the interactive report of the corrected test data."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@add_figure_option
@add_reading_options
@add_label_options
@add_interval_options
def command(
    file: str | None,
    fit: Sequence[str],
    on: Sequence[str],
    on_split: str | None,
    method: str,
    criterion: str | None,
    objective: Literal["averaged", "per_pass"],
    folds: int,
    others: Sequence[str],
    out: str | None,
    html: str | None,
    as_json: bool,
    quiet: bool,
    level: float,
    seed: int,
    options: ReadOptions,
) -> None:
    """Correct the confidence: fit on validation data, judge on test data.

    All calibrators are tried on folds of the validation data, and doing nothing wins unless a gain is real. The test
    data are only used to show before and after. Of a FILE whose splits are exactly val and test, val is fitted on and
    test judged on.

    \b
    Examples:
      howsure calibrate both.npz --html after.html
      howsure calibrate --fit val.npz --on test.npz -o calibrator.json
      howsure calibrate --fit both.npz --split val --on-split test --method temperature --html after.html
      howsure calibrate --fit val.npz --on test.npz --with other_val.npz --with other_test.npz -o opinion.json
      howsure evaluate test.npz --calibrator calibrator.json
    """
    from howsure.predictions.read_options import BOUNDARY_DISTANCE
    from howsure.report.calibration_report import calibration_report, opinion_report

    # What cannot be written is refused before anything is fitted.
    if html:
        check_ending(html, [".html"], "pages")
    if file is not None:
        if fit:
            raise InputError("FILE and --fit both name data to fit on; give one of them.")
        fit = (file,)
        if options.split is None and on_split is None and not on:
            options, on_split = choose_splits(file, options)
    if not fit:
        raise InputError("say what to fit on: howsure calibrate FILE, or --fit VAL --on TEST.")
    if not on and on_split is None:
        raise InputError(
            "say what to judge on: --on TEST, or --on-split test for another split of the same file."
        )
    test_files = on or fit
    metric = None
    if criterion is not None:
        from howsure import metrics

        metric = getattr(metrics, criterion)
    fit_pair = partial(
        calibration_report,
        method=method,
        criterion=metric,
        objective=objective,
        folds=folds,
        level=level,
        seed=seed,
        page=bool(as_json or html or has_figures()),
    )
    questions = list_questions(fit, options) or []
    if len(questions) > 1 and not others:
        # Each question has classes of its own, so what is written is about one of them.
        if out or html or has_figures():
            raise InputError(
                f"{Path(fit[0]).name} asks {len(questions)} questions; a calibrator and its page are "
                "about one: say --question."
            )
        reports = calibrate_questions((fit, test_files), questions, options, on_split, fit_pair)
        show_questions(reports, as_json=as_json, targets=[], quiet=quiet)
        return
    test_options = replace(options, split=on_split, attributes=(BOUNDARY_DISTANCE,))
    for path in dict.fromkeys((*fit, *test_files)):
        refuse_many_counts(path, options)
    val = read_files(fit, options)
    try:
        test = read_files(test_files, test_options)
    except InputError as e:
        # The test data have an option of their own for the split.
        raise InputError(str(e).replace("(--split)", "(--on-split)")) from None
    if others:
        if method != "all" or metric is not None or html:
            raise InputError(
                "--with is a method of its own: leave out --method, --criterion, --html."
            )
        if len(others) != 1 + bool(on):
            raise InputError(
                f"{len(others)} given with --with, {1 + bool(on)} needed: one for --fit, and one for --on "
                "where that is another file."
            )
        # With one file for both it holds both splits, as that of the first model does.
        second = (
            read_files([others[0]], options),
            read_files([others[-1]], test_options),
        )
        with show_spinner("fitting"):
            report = opinion_report(
                (val, second[0]), (test, second[1]), folds=folds, level=level, seed=seed
            )
    else:
        with show_spinner("fitting"):
            report = fit_pair(val, test)
    if out:
        from howsure._core.saving import save

        # Every kind of calibrator is a frozen record with `fitted`.
        calibrator = cast("Identity", report.calibrator)
        if calibrator.fitted is not None:
            read = record_reading(options, val)
            calibrator = replace(calibrator, fitted=replace(calibrator.fitted, read=read))
        save(calibrator, out)
        note(f"wrote {out}", quiet)
    if html or has_figures():
        page = build_page(report, test, level=level, seed=seed)
        provenance = page.data["provenance"]
        provenance["reading"] = format_reading_call(test_files, test_options)
        provenance["calibrator"] = out or "calibrator.json"
        if not out:
            # The commands of the page need a calibrator, which nobody has written yet.
            words = [word for f in fit for word in ("--fit", f)]
            words += [word for f in on for word in ("--on", f)]
            if on_split is not None:
                words += ["--on-split", on_split]
            if method != "all":
                words += ["--method", method, "--objective", objective]
            if criterion is not None:
                words += ["--criterion", criterion]
            provenance["fitting"] = format_reading_call(words, options)
        fit_call = format_reading_call([Path(f).name for f in fit], options)
        test_call = format_reading_call([Path(f).name for f in test_files], test_options)
        provenance["inputs"] = [
            {"file": f"fitted on {fit_call}"},
            {
                "file": f"judged on {test_call}",
                "sha256": provenance["inputs"][0].get("sha256", ""),
            },
        ]
        write_targets(page, [html] if html else [], quiet)
    if as_json:
        click.echo(strict_json.dump_line(report.to_dict()))
    elif not quiet:
        from howsure.report.render.report_sheet import build_calibration_sheet

        say(build_calibration_sheet(report.to_dict()))


def refuse_many_counts(path: str, options: ReadOptions) -> None:
    """Raise where a count table stands for more answers than are taken one by one."""
    from howsure.formats.count_tables import MAX_REPEATED_ROWS, read_count_tables

    table = read_count_tables([path], options)
    if table is not None and table.n > MAX_REPEATED_ROWS:
        raise InputError(
            Path(path).name,
            got=f"counts {table.n:,} answers",
            need=f"calibrate takes answers one by one, up to {MAX_REPEATED_ROWS:,}",
            hint="Count a random part of the rows",
        )


def calibrate_questions(
    files: tuple[Sequence[str], Sequence[str]],
    questions: Sequence[str],
    options: ReadOptions,
    on_split: str | None,
    fit_pair: Callable[[Predictions, Predictions], CalibrationReport],
) -> QuestionReports:
    """Before and after of each question of a decision model's log; `files` are to fit and to judge
    on.
    """
    from howsure.report.question_reports import CALIBRATE_HEAD, build_calibration_row

    results: dict[str, CalibrationData] = {}
    for name in questions:
        own = replace(options, question=name)
        val = read_right_or_wrong(files[0], own, "calibrate")
        test = read_right_or_wrong(files[1], replace(own, split=on_split), "calibrate")
        with show_spinner(f"fitting {name}"):
            results[name] = fit_pair(val, test).to_dict()
    return collect_questions(
        files[0],
        results,
        head=CALIBRATE_HEAD,
        build_row=build_calibration_row,
        say_of=lambda data: data.get("lead", []),
    )


def choose_splits(file: str, options: ReadOptions) -> tuple[ReadOptions, str | None]:
    """`val` to fit on and `test` to judge on, where a file has exactly these."""
    from howsure.formats.diagnosis import describe

    if set(describe(file, format=options.format).splits) != {"val", "test"}:
        return options, None
    remember_receipt(f"{Path(file).name}: split val fitted on, split test judged on")
    return replace(options, split="val"), "test"


def build_page(report: CalibrationReport, test: Predictions, *, level: float, seed: int) -> Report:
    """The report of the corrected test data, with what the calibrator changed."""
    from howsure.report.evaluation import evaluate

    page = evaluate(
        report.calibrator(test), before=test, command=get_command_line(), level=level, seed=seed
    )
    page.data["calibration"] = report.to_dict()
    return page
