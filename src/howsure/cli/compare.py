"""howsure compare"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.cli.common import (
    FILES,
    ReadingCommand,
    add_interval_options,
    add_label_options,
    add_output_options,
    add_reading_options,
    get_command_line,
    list_targets,
    note,
    read_files,
    read_sums,
    say,
    show_spinner,
    write_targets,
)
from howsure.cli.input_output import InputPath
from howsure.cli.questions import (
    collect_questions,
    list_questions,
    read_right_or_wrong,
    show_questions,
)

if TYPE_CHECKING:
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import ReadOptions
    from howsure.report.comparing import Comparison
    from howsure.report.question_reports import QuestionReports
    from howsure.report.summary import Summary


@click.command(cls=ReadingCommand)
@FILES
@click.option(
    "--score",
    "scores",
    multiple=True,
    help="The score to look at; several with one FILE compare scores.",
)
@click.option("--by", metavar="COLUMN", help="Slice by this column: worst group first.")
@click.option(
    "--cost",
    "costs",
    multiple=True,
    metavar="MODEL=NUMBER",
    help="Parameters or latency of a model; repeatable.",
)
@click.option("--cost-name", default="cost", show_default=True, help="What that number is.")
@click.option(
    "--shift",
    "shifts",
    multiple=True,
    type=InputPath(),
    metavar="MODEL=FILE",
    help="A model's answers to a shifted, labelled set.",
)
@click.option(
    "--outside",
    "outsides",
    multiple=True,
    type=InputPath(),
    metavar="MODEL=FILE",
    help="A model's answers to samples from outside.",
)
@click.option("--common", is_flag=True, help="Compare on the ids that all files share.")
@add_reading_options
@add_label_options
@add_interval_options
@add_output_options
def command(
    files: Sequence[str],
    scores: Sequence[str],
    by: str | None,
    costs: Sequence[str],
    cost_name: str,
    shifts: Sequence[str],
    outsides: Sequence[str],
    common: bool,
    level: float,
    seed: int,
    as_json: bool,
    out: Sequence[str],
    html: str | None,
    quiet: bool,
    options: ReadOptions,
) -> None:
    """Which model, score or calibrator is better on the same samples?

    Each FILE holds one model's answers; models are named by their files. They are ranked by AURC with paired
    differences. AUROC and AUPR of finding errors and E-AURC are withheld where the answers differ, for there they
    mislead.

    \b
    Examples:
      howsure compare small.npz large.npz --split test
      howsure compare test.npz --score max_prob --score entropy --score energy
      howsure compare a.csv b.csv --by hospital --html comparison.html
      howsure compare a.npz b.npz --cost a=1.2e6 --cost b=25e6 --cost-name parameters
      howsure compare answers.csv            every confidence of a log of language-model answers
      howsure compare log.jsonl --labels truth.csv     models, runs or variants in one file
    """
    from howsure.formats.contents import group_files
    from howsure.report.comparing import compare, compare_counts

    files = list(group_files(files))
    targets = list_targets(out, html)
    counts = {} if len(files) == 1 else read_models_of_counts(files, options)
    if counts:
        if scores or by or costs or shifts or outsides:
            raise InputError("these are counts; --score, --by, --cost and further sets need rows.")
        with show_spinner("comparing"):
            comparison = compare_counts(counts, level=level, seed=seed, command=get_command_line())
        show_comparison(comparison, targets, as_json=as_json, quiet=quiet)
        return
    cost = {model: parse_cost(text) for model, text in split_pairs(costs, "--cost")}
    shifted = read_sets(shifts, "--shift", options)
    outside = read_sets(outsides, "--outside", options, labelled=False)

    def compare_models(chosen: ReadOptions) -> Comparison | None:
        """What is read with these options; None where there is only one model."""
        found = read_models(files, scores, chosen, quiet)
        if found is None:
            return None
        with show_spinner("comparing"):
            return compare(
                found.models,
                score=found.score,
                by=read_slice_column(files[0], by, chosen),
                cost=cost or None,
                cost_name=cost_name,
                shifted=shifted or None,
                outside=outside or None,
                common=common or found.common,
                level=level,
                seed=seed,
                command=get_command_line(),
            )

    questions = list_questions(files, options) or []
    if len(questions) > 1:
        found = {name: compare_models(replace(options, question=name)) for name in questions}
        results = {name: one for name, one in found.items() if one is not None}
        if results:
            reports = collect_comparisons(files, results)
            show_questions(reports, as_json=as_json, targets=targets, quiet=quiet)
            return
    comparison = compare_models(options)
    if comparison is None:
        raise InputError(
            "one FILE is given; give a second one, or several --score to compare scores of this one."
        )
    show_comparison(comparison, targets, as_json=as_json, quiet=quiet)


def show_comparison(
    comparison: Comparison, targets: Sequence[str], *, as_json: bool, quiet: bool
) -> None:
    """Print a comparison and write it wherever it was asked for."""
    write_targets(comparison, targets, quiet)
    if as_json:
        click.echo(comparison.to_json(), nl=False)
    elif not quiet:
        from howsure.report.render.comparison_page import build_comparison_sheet

        say(build_comparison_sheet(comparison.data))


@frozen(eq=False)
class ComparedInputs:
    """The models by name, the score to look at, and whether only ids that all share count."""

    models: dict[str, Any]
    score: str | None
    common: bool = False


def read_models(
    files: Sequence[str], scores: Sequence[str], options: ReadOptions, quiet: bool
) -> ComparedInputs | None:
    """One model of each file; of one file its arms, its confidences or its scores. None where there
    is nothing to compare with.
    """
    from howsure.formats.contents import SeveralArms

    score = scores[0] if scores else None
    if len(files) > 1:
        models = {
            name_model(path, files): read_right_or_wrong([path], options, "compare")
            for path in files
        }
        return ComparedInputs(models, score)
    try:
        confidences = find_log_confidences(files, scores, options)
        if confidences:
            kinds = [f"{name} is {kind}" for name, kind in confidences.items()]
            note(f"howsure: {', '.join(kinds)}", quiet)
            models = read_each_confidence(files[0], list(confidences), options)
            # Answers without one of the confidences are left out of the comparison.
            return ComparedInputs(models, None, common=True)
        preds = read_right_or_wrong(files, options, "compare")
    except SeveralArms as several:
        # Several models, runs or variants that answered the same questions.
        models = {
            arm: read_right_or_wrong(files, several.choose(options, arm), "compare")
            for arm in several.values
        }
        return ComparedInputs(models, score)
    if len(scores) < 2:
        return None
    # One model under several names, each with a score of its own.
    return ComparedInputs({name: (preds, name) for name in scores}, score)


def collect_comparisons(files: Sequence[str], results: Mapping[str, Comparison]) -> QuestionReports:
    """The comparison of each question of a decision model's log."""
    from howsure.report.question_reports import COMPARE_HEAD, build_comparison_row
    from howsure.report.render.comparison_page import build_comparison_sheet

    return collect_questions(
        files,
        {name: one.data for name, one in results.items()},
        head=COMPARE_HEAD,
        build_row=build_comparison_row,
        say_of=lambda data: [(sheet := build_comparison_sheet(data)).headline, *sheet.sentences],
        pages={name: one.to_html for name, one in results.items()},
    )


def read_models_of_counts(files: Sequence[str], options: ReadOptions) -> dict[str, Summary]:
    """The summary of each model; none where a file is no count table."""
    models: dict[str, Summary] = {}
    for path in files:
        summary = read_sums([path], options)
        if summary is None:
            return {}
        models[name_model(path, files)] = summary
    return models


def find_log_confidences(
    files: Sequence[str], scores: Sequence[str], options: ReadOptions
) -> dict[str, str]:
    """The confidences of a log to compare, by name with their kind: those asked for, or all; none
    where there is one. A decision model has one for each question.
    """
    from howsure.formats.logs import is_decision_log, is_log, read_log

    path, tool = Path(files[0]), options.format
    if is_decision_log(path, tool) or not is_log(path, tool):
        return {}
    log = read_log(path, tool=tool, metric=options.get_column("correct"))
    kinds = {confidence.name: str(confidence.kind) for confidence in log.confidences}
    if scores:
        if not set(scores) <= set(kinds):
            return {}
        kinds = {name: kind for name, kind in kinds.items() if name in scores}
    if len(kinds) < 2:
        return {}
    return kinds


def read_each_confidence(
    path: str, confidences: Sequence[str], options: ReadOptions
) -> dict[str, Predictions]:
    """The same answers with each of the confidences; what kind of log it is, is said once."""
    models: dict[str, Predictions] = {}
    for name in confidences:
        own = options.with_names(confidence=name)
        models[name] = read_files([path], own, announce=not models)
    return models


def read_slice_column(path: str, by: str | None, options: ReadOptions) -> Any:
    """The column to slice by: a table from id to value where there are ids, else a value per row.

    It is read as the group, but only to slice: samples are not drawn together because of it.
    """
    if by is None:
        return None
    if by != "group":
        options = options.with_names(group=by)
    preds = read_files([path], options)
    if preds.group is None:
        raise InputError(f"{path} has no column {by!r} to slice by.")
    if preds.ids is None:
        return preds.group
    return dict(zip(preds.ids.tolist(), preds.group.tolist(), strict=True))


def name_model(path: str, files: Sequence[str]) -> str:
    """The file's name without its ending; with its folder where two files have the same name."""
    stems = [Path(f).stem for f in files]
    # A path without a name, such as /, is refused when it is read.
    if stems.count(Path(path).stem) == 1 or not Path(path).name:
        return Path(path).stem
    return str(Path(path).with_suffix(""))


def split_pairs(entries: Sequence[str], option: str) -> list[tuple[str, str]]:
    """MODEL=... → (MODEL, ...)."""
    pairs: list[tuple[str, str]] = []
    for entry in entries:
        model, _, value = entry.partition("=")
        if not model or not value:
            raise InputError(
                f"{option} {entry!r} is not MODEL=VALUE; a model is named by its file, without the ending."
            )
        pairs.append((model, value))
    return pairs


def parse_cost(text: str) -> float:
    """The number of --cost."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--cost {text!r} is not a number.") from None


def read_sets(
    entries: Sequence[str], option: str, options: ReadOptions, *, labelled: bool = True
) -> dict[str, dict[str, Predictions]]:
    """MODEL=FILE → {name of the set: {model: predictions}}."""
    sets: dict[str, dict[str, Predictions]] = {}
    for model, path in split_pairs(entries, option):
        preds = read_files([path], options, labelled=labelled)
        sets.setdefault(Path(path).stem, {})[model] = preds
    return sets
