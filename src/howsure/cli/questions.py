"""Logs of decision models on the command line: which questions a file asks, and how a command goes
through them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from howsure._core.checks import InputError
from howsure.cli.common import REPORT_WRITERS, note, read_files, say, show_spinner

if TYPE_CHECKING:
    from howsure.policies.policy import Policy
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import ReadOptions
    from howsure.report.graded import GradedData
    from howsure.report.question_reports import QuestionReports
    from howsure.report.report import Report

T = TypeVar("T")
LOG_SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")


def list_questions(files: Sequence[str], options: ReadOptions) -> list[str] | None:
    """The questions of a decision model's log; None where the files are none."""
    path = Path(files[0])
    if options.format != "decisions" and path.suffix.lower() not in LOG_SUFFIXES:
        return None
    from howsure.formats.logs import is_decision_log

    if not is_decision_log(path, options.format):
        return None
    from howsure.formats.logs.decisions import choose_records
    from howsure.formats.logs.question_labels import load_log

    if options.question is not None:
        return [options.question]
    log = choose_records(load_log(path, options), options.where)
    return [question.name for question in log.questions if question.kind != "refusal"]


def prepare_questions(
    options: ReadOptions, asked: Sequence[str], by: str | None, case: str | None
) -> tuple[ReadOptions, str | None]:
    """How a threshold reads a log: the field that a gateway compares, what has no answer as deferred,
    and a segment for each question unless whole cases are meant.
    """
    options = replace(options, kind="confidence", format="decisions", no_answer="wrong", case=case)
    if len(asked) > 1 and case is None:
        by = "question" if by is None else f"question,{by}"
    return options, by


def choose_case_rule(
    rule: dict[str, Any], choose: Callable[..., Any], by_answer: bool, digits: int | None
) -> tuple[Callable[..., Any], str]:
    """The rule and the score for cases, whole or answer by answer."""
    if rule["risk"] is None:
        raise InputError("--case guarantees a risk; say --risk.")
    if not by_answer:
        if digits is not None:
            raise InputError(
                "--digits rounds what a gateway compares, and no gateway compares a whole case; "
                "leave it out, or say --partial."
            )
        return choose, "case"
    from howsure.policies.cases import guaranteed_answers

    return partial(guaranteed_answers, risk=rule["risk"], delta=rule["delta"]), "max_prob"


def round_down(preds: Predictions, digits: int) -> Predictions:
    """Confidences with so many decimals, none of them higher than it was: a threshold that is chosen
    on these accepts the same answers as they were given.
    """
    import numpy as np

    if preds.kind != "confidence":
        raise InputError("--digits rounds a confidence; this file has the numbers of all classes.")
    values = preds.values.astype(np.float64)
    scale = 10.0**digits
    steps = np.rint(values * scale)
    # Division gives the number that the decimals mean; the product may be off in its last bit.
    steps -= steps / scale > values
    return replace(preds, values=steps / scale)


def show_questions(
    reports: QuestionReports, *, as_json: bool, targets: Sequence[str], quiet: bool
) -> None:
    """Print what was found out about each question, and write it wherever it was asked for."""
    for target in targets:
        suffix = Path(target).suffix.lower()
        if suffix not in REPORT_WRITERS:
            known = ", ".join(REPORT_WRITERS)
            raise InputError(f"{target}: reports on several questions are written as {known}.")
        with show_spinner(f"writing {Path(target).name}"):
            getattr(reports, REPORT_WRITERS[suffix])(target)
        note(f"wrote {target}", quiet)
    if as_json:
        click.echo(reports.to_json(), nl=False)
    elif not quiet:
        say(reports.sheet())


def collect_questions(
    files: Sequence[str],
    data: Mapping[str, T],
    head: Sequence[str],
    build_row: Callable[[T], list[str]],
    say_of: Callable[[T], Sequence[str]],
    pages: Mapping[str, Callable[[], str]] | None = None,
) -> QuestionReports:
    """What a command found out about each question: a row of the table, and what to say of it."""
    from howsure.report.question_reports import QuestionReports

    many = "1 question" if len(data) == 1 else f"{len(data)} questions"
    sentences: dict[str, list[str]] = {}
    for name, found in data.items():
        sentences[name] = [sentence for sentence in say_of(found) if sentence]
    return QuestionReports(
        title=f"{', '.join(Path(f).name for f in files)}: {many}",
        data=data,
        head=head,
        rows={name: build_row(found) for name, found in data.items()},
        sentences=sentences,
        pages=pages or {},
    )


def collect_reports(files: Sequence[str], results: dict[str, Report]) -> QuestionReports:
    """The reports of `evaluate` on each question."""
    from howsure.report.question_reports import EVALUATE_HEAD, build_report_row

    return collect_questions(
        files,
        {name: report.data for name, report in results.items()},
        head=EVALUATE_HEAD,
        build_row=build_report_row,
        say_of=lambda data: data["verdict"],
        pages={name: report.to_html for name, report in results.items()},
    )


def read_right_or_wrong(files: Sequence[str], options: ReadOptions, what: str) -> Predictions:
    """Labelled predictions; refused where answers are graded."""
    preds = read_files(files, options)
    if preds.graded:
        got = "has graded answers, as by shares of people"
        need = f"{what} counts right and wrong"
        raise InputError(Path(files[0]).name, got=got, need=need, hint="give one label for each")
    return preds


def evaluate_grades(
    files: Sequence[str], questions: Sequence[str], options: ReadOptions, *, level: float, seed: int
) -> QuestionReports | None:
    """What is known of graded answers, such as by shares of people; None where answers are right or
    wrong.
    """
    data: dict[str, GradedData] = {}
    for name in questions:
        preds = read_files(files, replace(options, question=name))
        if not preds.graded:
            return None
        from howsure.report.graded import measure_graded

        data[name] = measure_graded(preds, level, seed)
    if not data:
        return None
    from howsure.report.question_reports import GRADED_HEAD, build_graded_row

    return collect_questions(
        files,
        data,
        head=GRADED_HEAD,
        build_row=build_graded_row,
        say_of=lambda found: found["verdict"],
    )


def load_fixed_policy(path: str) -> Policy:
    """A saved policy whose threshold stays as it is."""
    from howsure._core.saving import load
    from howsure.policies.policy import Policy

    value = load(path)
    if not isinstance(value, Policy):
        raise InputError(
            path,
            got=f"holds a saved {type(value).__name__}, not a policy",
            hint="howsure threshold makes one",
        )
    return value


def read_for_policy(files: Sequence[str], policy: Policy, given: ReadOptions) -> Predictions:
    """Labelled predictions, read as those that the policy was made from."""
    from howsure.predictions.segments import PREDICTED, parse_segments

    options = given
    if policy.read is not None:
        names = {**policy.read.names, **given.names}
        where = given.where or policy.read.where
        options = replace(policy.read, names=names, where=where, split=given.split)
    columns = [] if policy.calibrator is None else [*getattr(policy.calibrator, "columns", ())]
    if policy.segmented:
        columns += [cut.column for cut in parse_segments(policy.by or "")]
    known = [name for name in columns if name not in (PREDICTED, "group")]
    return read_files(files, replace(options, attributes=tuple(known)))
