"""howsure check"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast
from xml.sax.saxutils import quoteattr

import click

from howsure._core import json
from howsure._core.atomic import write_text
from howsure._core.check import InputError
from howsure._core.paths import existing
from howsure._core.text import printable
from howsure.cli.common import FILES, measuring, note, of_logs, read_files, reading, say, working
from howsure.render.catalogue import CATALOGUE

if TYPE_CHECKING:
    from howsure.render.model import ReportData
    from howsure.report.gate import Limit, Verdict


def _limit_options(f: Callable[..., Any]) -> Callable[..., Any]:
    """--max-NAME for what should be low, --min-NAME for what should be high."""
    for item in reversed(CATALOGUE):
        if item.option is not None:
            f = click.option(item.option, type=float, metavar="X")(f)
    f = click.option(
        "--max-risk-at-coverage", multiple=True, metavar="COVERAGE:X", help="e.g. 0.8:0.02"
    )(f)
    return click.option(
        "--min-coverage-at-risk", multiple=True, metavar="RISK:X", help="e.g. 0.01:0.8"
    )(f)


@click.command()
@FILES
@_limit_options
@click.option(
    "--baseline",
    type=click.Path(),
    help="A report (JSON) on other samples: must not be worse beyond chance.",
)
@click.option(
    "--against",
    type=click.Path(),
    help="Predictions of the same samples: must not be worse beyond chance.",
)
@click.option("--point", is_flag=True, help="Compare values instead of limits; promises nothing.")
@click.option("--junit", type=click.Path(), help="Write the verdicts as JUnit XML.")
@click.option(
    "--github",
    is_flag=True,
    help="Print GitHub annotations; fill the step summary where there is one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@reading
@measuring
@click.pass_context
def command(
    ctx: click.Context,
    files: Sequence[str],
    baseline: str | None,
    against: str | None,
    point: bool,
    junit: str | None,
    github: bool,
    as_json: bool,
    quiet: bool,
    level: float,
    seed: int,
    split: str | None,
    mc: bool,
    renormalise: bool,
    names: Sequence[str],
    **limits: Any,
) -> None:
    """A gate for CI: exit 1 where a limit is not met.

    A limit is compared with the unfavourable end of the interval (upper for --max, lower for --min), so a model
    passes only where the data say that it is good enough, not where it may be by luck. A number without an interval
    does not pass; --point compares the values themselves.

    --baseline compares accuracy, AURC and ECE with a report on other samples, --against with another model on the
    same ones (joined by ids). An equally good model fails either in 5 % of cases at most (1 - level).

    \b
    Examples:
      howsure check test.npz --max-ece 0.05 --min-coverage-at-risk 0.01:0.8
      howsure check test.npz --baseline main.json --junit verdicts.xml
      howsure check new.npz --against old.npz
    """
    from howsure.report.gate import check

    log = of_logs(limits)
    wanted = parse_limits(limits)
    old = None if baseline is None else read_baseline(baseline)
    preds = read_files(files, split, mc, renormalise, names, **log)
    other = None if against is None else read_files([against], split, mc, renormalise, names, **log)
    with working("measuring"):
        verdicts = check(
            preds, wanted, baseline=old, against=other, point=point, level=level, seed=seed
        )
    passed = all(v.passed for v in verdicts)
    if junit:
        write_text(junit, junit_xml(verdicts))
        note(f"wrote {junit}", quiet)
    if github:
        github_output(verdicts)
    if as_json:
        click.echo(json.line(json.plain({"passed": passed, "verdicts": verdicts})))
    elif not quiet:
        say(table(verdicts))
    ctx.exit(0 if passed else 1)


def parse_limits(options: dict[str, Any]) -> list[Limit]:
    """The limits that were given, in the order of the options."""
    from howsure.report.gate import Limit

    found: list[Limit] = []
    for option, value in options.items():
        side, name = ("max" if option.startswith("max_") else "min"), option[4:]
        if isinstance(value, tuple):
            texts = cast("tuple[str, ...]", value)
            pairs = [_pair(option, text) for text in texts]
            found += [Limit(name, side, limit, argument) for limit, argument in pairs]
        elif value is not None:
            found.append(Limit(name, side, value))
    return found


def _pair(option: str, text: str) -> tuple[float, float]:
    argument, _, limit = text.partition(":")
    try:
        return float(limit), float(argument)
    except ValueError:
        flag = "--" + option.replace("_", "-")
        raise InputError(f"{flag} {text!r} is not NUMBER:NUMBER, as in {flag} 0.01:0.8.") from None


def read_baseline(path: str) -> ReportData:
    """The JSON of an earlier report."""
    from howsure.report.report import Report

    try:
        return Report.from_json(existing(path).read_text(encoding="utf-8")).data
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file; the JSON of a report is needed.") from None
    except InputError as e:
        raise e.at(str(path)) from None


def table(verdicts: Sequence[Verdict]) -> Any:
    """The verdicts for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    out = Table(box=None, pad_edge=False)
    others = any(v.other is not None for v in verdicts)
    for column in ("", "limit", "value", *(["other side"] if others else []), "compared", ""):
        out.add_column(column)
    for v in verdicts:
        mark = Text("pass", style="green") if v.passed else Text("FAIL", style="bold red")
        other = [number(v.other)] if others else []
        said, why = Text(printable(v.what)), Text(printable(v.note))
        out.add_row(mark, said, number(v.value), *other, number(v.compared), why)
    unsafe = dict.fromkeys(v.unsafe for v in verdicts if v.unsafe)
    return Group(out, *(Text(printable(why), style="dim") for why in unsafe))


def number(value: float | None) -> str:
    """Four significant digits."""
    return "–" if value is None else f"{value:.4g}"


def sentence(v: Verdict) -> str:
    """A verdict in one line."""
    other = "" if v.other is None else f", other side {number(v.other)}"
    unsafe = f"; {v.unsafe}" if v.unsafe else ""
    return printable(
        f"{v.what}: {number(v.compared)} ({v.note}{unsafe}; value {number(v.value)}{other})"
    )


def junit_xml(verdicts: Sequence[Verdict]) -> str:
    """One test case per limit."""
    failed = sum(not v.passed for v in verdicts)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuite name="howsure" tests="{len(verdicts)}" failures="{failed}">',
    ]
    for v in verdicts:
        failure = "" if v.passed else f"<failure message={quoteattr(sentence(v))}/>"
        lines.append(
            f'  <testcase classname="howsure" name={quoteattr(printable(v.what))}>{failure}</testcase>'
        )
    return "\n".join([*lines, "</testsuite>", ""])


def github_output(verdicts: Sequence[Verdict]) -> None:
    """Annotations on standard output; a table in the step summary."""
    for v in verdicts:
        if not v.passed:
            click.echo(f"::error title=howsure check::{sentence(v).replace('%', '%25')}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        from howsure.render.tables import escape

        rows = [
            f"| {'pass' if v.passed else '**FAIL**'} | {escape(v.what)} | {number(v.compared)} |"
            for v in verdicts
        ]
        with open(summary, "a", encoding="utf-8") as f:
            f.write("\n".join(["| | limit | compared |", "|---|---|---:|", *rows, ""]))
