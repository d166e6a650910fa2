"""howsure check"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.file_access import check_readable, write_text
from howsure._core.text import make_printable
from howsure.cli.common import (
    FILES,
    ReadingCommand,
    add_interval_options,
    add_label_options,
    add_reading_options,
    note,
    read_files,
    read_sums,
    say,
    show_spinner,
)
from howsure.cli.input_output import InputPath, OutputPath
from howsure.cli.questions import list_questions

if TYPE_CHECKING:
    from howsure.predictions.read_options import ReadOptions
    from howsure.report.gate import Verdict
    from howsure.report.report_types import ReportData


CHANGED_EXIT_CODE = 3  # a policy is about another model or other questions


class CheckCommand(ReadingCommand):
    """Says where an option of version 0.2, such as --max-ece, has gone."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as e:
            if not e.option_name.startswith(("--max-", "--min-")):
                raise
            hint = "Limits are given as --require 'ece<=0.05'."
            raise click.UsageError(f"No such option: {e.option_name}. {hint}", ctx) from None


@click.command(cls=CheckCommand)
@FILES
@click.option(
    "--require",
    "requirements",
    multiple=True,
    metavar="LIMIT",
    help="A limit, as in 'ece<=0.05' or 'coverage_at_risk(0.01)>=0.8'; repeatable.",
)
@click.option(
    "--baseline",
    type=InputPath(),
    help="A report (JSON) on other samples: must not be worse beyond chance.",
)
@click.option(
    "--against",
    type=InputPath(),
    help="Predictions of the same samples: must not be worse beyond chance.",
)
@click.option(
    "--policy",
    type=InputPath(exists=True, dir_okay=False),
    help="Is the guarantee of this policy still supported by these labels?",
)
@click.option("--point", is_flag=True, help="Compare values instead of limits; guarantees nothing.")
@click.option("--junit", type=OutputPath(), help="Write the verdicts as JUnit XML.")
@click.option(
    "--github",
    is_flag=True,
    help="Print GitHub annotations; fill the step summary where there is one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@add_reading_options
@add_label_options
@add_interval_options
@click.pass_context
def command(
    ctx: click.Context,
    files: Sequence[str],
    requirements: Sequence[str],
    baseline: str | None,
    against: str | None,
    policy: str | None,
    point: bool,
    junit: str | None,
    github: bool,
    as_json: bool,
    quiet: bool,
    level: float,
    seed: int,
    options: ReadOptions,
) -> None:
    """A gate for CI: exit 1 where a limit is not met.

    A limit is compared with the unfavourable end of the interval (upper for <=, lower for >=), so a model passes only
    where the data say that it is good enough, not where it may be by luck. A number without an interval does not
    pass; --point compares the values themselves. Limits are named as in the JSON of a report: accuracy, aurc, ece,
    nll, ...; coverage_at_risk and risk_at_coverage take their argument in parentheses.

    --baseline compares accuracy, AURC and ECE with a report on other samples, --against with another model on the
    same ones (joined by ids). An equally good model fails either in 5 % of cases at most (1 - level).

    --policy fails where these labels contradict a guarantee; an intact one fails in at most 5 % of cases (delta).
    Exit 3 where a decision model or its questions are not those of the policy.

    \b
    Examples:
      howsure check test.npz --require 'ece<=0.05' --require 'coverage_at_risk(0.01)>=0.8'
      howsure check test.npz --baseline main.json --junit verdicts.xml
      howsure check new.npz --against old.npz
      howsure check log2.jsonl --policy policy.json --labels truth2.csv
    """
    from howsure.report.gate import check, parse_requirement

    # A mistake in a limit is told before a large file is read.
    limits = [parse_requirement(text) for text in requirements]
    old = None if baseline is None else read_baseline(baseline)
    changes: list[str] = []
    verdicts: list[Verdict] = []
    if policy is not None:
        verdicts, changes = check_policy(files, policy, options)
    if limits or old is not None or against is not None or policy is None:
        for name in list_questions(files, options) or [None]:
            own = replace(options, question=name)
            preds = read_sums(files, own) or read_files(files, own)
            other = None
            if against is not None:
                other = read_sums([against], own) or read_files([against], own)
            with show_spinner("measuring"):
                found = check(
                    preds, limits, baseline=old, against=other, point=point, level=level, seed=seed
                )
            if name is not None:
                found = [replace(one, what=f"{name}: {one.what}") for one in found]
            verdicts += found
    passed = all(v.passed for v in verdicts)
    if junit:
        write_text(junit, format_junit(verdicts))
        note(f"wrote {junit}", quiet)
    if github:
        write_github_output(verdicts)
    if as_json:
        click.echo(
            strict_json.dump_line(strict_json.to_plain({"passed": passed, "verdicts": verdicts}))
        )
    elif not quiet:
        say(build_table(verdicts))
    for change in changes:
        note(f"howsure: {change}; its guarantee is not about these answers.", quiet)
    if changes:
        ctx.exit(CHANGED_EXIT_CODE)
    ctx.exit(0 if passed else 1)


def check_policy(
    files: Sequence[str], path: str, options: ReadOptions
) -> tuple[list[Verdict], list[str]]:
    """A verdict on each guarantee of a policy, and what is not as it was made for."""
    from howsure.cli.questions import load_fixed_policy, read_for_policy
    from howsure.policies.policy_check import check_guarantees
    from howsure.report.gate import Verdict

    policy = load_fixed_policy(path)
    preds = read_for_policy(files, policy, options)
    changes: list[str] = []
    now = None if preds.receipt is None else preds.receipt.asked
    if policy.asked is not None and now is not None:
        changes = policy.asked.list_changes(now)
    verdicts: list[Verdict] = []
    for one in check_guarantees(policy, preds):
        verdict = Verdict(
            what=f"{one.name}: risk of {one.n:,} accepted {one.unit} ≤ {one.risk:g}",
            value=one.wrong / one.n if one.n else None,
            compared=one.low if one.n else None,
            limit=one.risk,
            passed=one.supported,
            note=one.note,
        )
        verdicts.append(verdict)
    return verdicts, changes


def read_baseline(path: str) -> ReportData:
    """The JSON of an earlier report."""
    from howsure.report.report import Report

    try:
        return Report.from_json(check_readable(path).read_text(encoding="utf-8")).data
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file; the JSON of a report is needed.") from None
    except InputError as e:
        raise e.at(str(path)) from None


def build_table(verdicts: Sequence[Verdict]) -> Any:
    """The verdicts for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    has_other_side = any(v.other is not None for v in verdicts)
    columns = ["", "limit", "value", "compared", ""]
    if has_other_side:
        columns.insert(3, "other side")
    table = Table(*columns, box=None, pad_edge=False)
    for v in verdicts:
        mark = Text("FAIL", style="bold red")
        if v.passed:
            mark = Text("pass", style="green")
        cells = [
            mark,
            Text(make_printable(v.what)),
            format_number(v.value),
            format_number(v.compared),
            Text(make_printable(v.note)),
        ]
        if has_other_side:
            cells.insert(3, format_number(v.other))
        table.add_row(*cells)
    # The same warning holds for many verdicts and is printed once, below the table.
    warnings = dict.fromkeys(v.unsafe for v in verdicts if v.unsafe)
    return Group(table, *(Text(make_printable(warning), style="dim") for warning in warnings))


def format_number(value: float | None) -> str:
    """Four significant digits."""
    return "–" if value is None else f"{value:.4g}"


def format_verdict(v: Verdict) -> str:
    """A verdict in one line."""
    why = f"{v.note}; {v.unsafe}" if v.unsafe else v.note
    numbers = f"value {format_number(v.value)}"
    if v.other is not None:
        numbers = f"{numbers}, other side {format_number(v.other)}"
    return make_printable(f"{v.what}: {format_number(v.compared)} ({why}; {numbers})")


def format_junit(verdicts: Sequence[Verdict]) -> str:
    """One test case per limit."""
    failed = sum(not v.passed for v in verdicts)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuite name="howsure" tests="{len(verdicts)}" failures="{failed}">',
    ]
    for v in verdicts:
        name = quoteattr(make_printable(v.what))
        failure = ""
        if not v.passed:
            failure = f"<failure message={quoteattr(format_verdict(v))}/>"
        lines.append(f'  <testcase classname="howsure" name={name}>{failure}</testcase>')
    return "\n".join([*lines, "</testsuite>", ""])


def write_github_output(verdicts: Sequence[Verdict]) -> None:
    """Annotations on standard output; a table in the step summary."""
    for v in verdicts:
        if not v.passed:
            # A percent sign begins an escape in a workflow command.
            text = format_verdict(v).replace("%", "%25")
            click.echo(f"::error title=howsure check::{text}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    from howsure.report.render.text_tables import escape_markdown

    lines = ["| | limit | compared |", "|---|---|---:|"]
    for v in verdicts:
        mark = "pass" if v.passed else "**FAIL**"
        lines.append(f"| {mark} | {escape_markdown(v.what)} | {format_number(v.compared)} |")
    with open(summary, "a", encoding="utf-8") as f:
        f.write("\n".join([*lines, ""]))
