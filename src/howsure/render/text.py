"""Report JSON → terminal tables (rich)."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from howsure.render.sections import calibration
from howsure.render.tables import Columns
from howsure.render.words import ARROWS, by_question, headline, interval, meaning, note, number


def text(report: dict[str, Any], width: int = 110) -> str:
    """The tables as plain text of a fixed width."""
    out = StringIO()
    Console(file=out, width=width, no_color=True, highlight=False).print(tables(report))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def tables(report: dict[str, Any]) -> RenderableType:
    """Everything that is printed of a report."""
    parts: list[RenderableType] = [Text(headline(report), style="bold"), Text("")]
    for question, metrics in by_question(report["metrics"]):
        parts += [_metrics(question, metrics), Text("")]
    if report["scores"]:
        parts += [_scores(report), Text("")]
    if report["binary"]:
        parts += [_binary(report["binary"]), Text("")]
    if changed := calibration(report.get("calibration")):
        parts += [_changed(changed), Text("")]
    if report["findings"]:
        parts += [Text("What stands out", style="bold"), *(Text(f"• {f['text']}") for f in report["findings"])]
    return Group(*parts)


def _metrics(question: str, metrics: dict[str, Any]) -> Table:
    table = _table(question)
    table.add_column("", width=2)
    for column in ("value", "interval"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("what it says", style="dim")
    for name, entry in metrics.items():
        row = (meaning(name).title, ARROWS[entry["better"]], number(entry["value"]), interval(entry), note(name, entry))
        table.add_row(*(Text(cell) for cell in row))
    return table


def _scores(report: dict[str, Any]) -> Table:
    """Ranking metrics of all scores side by side: the same predictions, so all of them compare."""
    shown = ("aurc", "auroc", "aupr_error", "coverage_at_risk_0.01", "eor_smooth")
    table = _table("Which score ranks best?")
    for name in shown:
        table.add_column(f"{meaning(name).title} {ARROWS[report['metrics'][name]['better']]}", justify="right")
    rows = {report["score"]: report["metrics"], **{name: s["metrics"] for name, s in report["scores"].items()}}
    for name, metrics in rows.items():
        table.add_row(Text(name), *(number(metrics[m]["value"]) for m in shown))
    return table


def _binary(binary: dict[str, Any]) -> Table:
    table = _table(f"The probability of class {binary['positive_class']}")
    for column in ("value", "interval"):
        table.add_column(column, justify="right", no_wrap=True)
    parts = binary["brier_decomposition"]
    rows: list[tuple[str, dict[str, Any]]] = [
        ("prevalence", {"value": binary["prevalence"]}),
        ("ECE of the positive class", {"value": binary["ece"]}),
        ("calibration slope (1 is perfect)", binary["calibration_slope"]),
        ("calibration intercept (0 is perfect)", binary["calibration_intercept"]),
        *((f"Brier, {name}", {"value": value}) for name, value in parts.items()),
    ]
    for title, entry in rows:
        table.add_row(Text(title), number(entry["value"]), interval(entry))
    return table


def _changed(found: dict[str, Any]) -> Columns:
    head = ["", "before", "after", "difference", "interval", ""]
    rows = [[row["name"], *row["cells"]] for row in found["rows"]]
    return Columns(head, rows, [False, True, True, True, True, False], "What calibration changed")


def _table(title: str) -> Table:
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 1))
    table.add_column("", no_wrap=True)
    return table
