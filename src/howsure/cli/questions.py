"""Logs of decision models on the command line: which questions a file asks, and how a command goes
through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core.checks import InputError
from howsure.cli.common import REPORT_WRITERS, note, read_files, say, show_spinner

if TYPE_CHECKING:
    from howsure.policies.policy import Policy
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import ReadOptions
    from howsure.report.question_reports import QuestionReports
    from howsure.report.report import Report

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


def collect_reports(files: Sequence[str], results: dict[str, Report]) -> QuestionReports:
    """The reports of `evaluate` on each question."""
    from howsure.report.question_reports import EVALUATE_HEAD, QuestionReports, build_report_row

    sentences: dict[str, list[str]] = {}
    for name, report in results.items():
        sentences[name] = [*report.data["verdict"]]
    return QuestionReports(
        title=f"{', '.join(Path(f).name for f in files)}: {len(results)} questions",
        data={name: report.data for name, report in results.items()},
        head=EVALUATE_HEAD,
        rows={name: build_report_row(report.data) for name, report in results.items()},
        sentences=sentences,
        pages={name: report.to_html for name, report in results.items()},
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
