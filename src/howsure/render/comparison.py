"""Comparison JSON → terminal, Markdown, page."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from textwrap import wrap
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from howsure.render import svg
from howsure.render.comparison_tables import Table, headline, tables, verdict
from howsure.render.html import render
from howsure.render.markdown import escape
from howsure.render.pictures import LINES, UNIT
from howsure.render.sections import origin
from howsure.render.tables import Columns
from howsure.render.words import meaning

HEAD = 16  # letters of a heading before it goes on in the next line


def text(data: dict[str, Any], width: int = 110) -> str:
    """The tables as plain text of a fixed width."""
    out = StringIO()
    Console(file=out, width=width, no_color=True, highlight=False).print(printed(data))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def printed(data: dict[str, Any]) -> RenderableType:
    """What a terminal shows; the long tables by class and group are cut."""
    parts: list[RenderableType] = [Text(headline(data), style="bold"), Text(verdict(data)), Text("")]
    for t in tables(data):
        parts += [_columns(t), Text("")]
    return Group(*parts)


def _columns(t: Table, most: int = 20) -> Columns:
    more = len(t.rows) - most
    return Columns(
        [_heading(column) if i else column for i, column in enumerate(t.columns)],
        t.rows[:most],
        [_is_number(t, i) for i in range(len(t.columns))],
        t.title,
        f"{more:,} more rows in --json and --html" if more > 0 else "",
    )


def _heading(column: str) -> str:
    """On several lines, between words where that is possible."""
    lines = wrap(column, HEAD, break_long_words=False)
    return "\n".join(part for line in lines for part in wrap(line, 2 * HEAD))


def _is_number(t: Table, column: int) -> bool:
    return column > 0 and all(not row[column] or row[column][0] in "0123456789+-–−" for row in t.rows)


def markdown(data: dict[str, Any]) -> str:
    """The tables as Markdown; text from files is escaped."""
    lines = [headline(data), "", escape(verdict(data)), ""]
    for t in tables(data):
        lines += [f"### {escape(t.title)}", "", _line(t.columns), _line(["---"] * len(t.columns))]
        lines += [_line([escape(cell) for cell in row]) for row in t.rows] + [""]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def page(data: dict[str, Any]) -> str:
    """One offline file: overlaid curves, cost, and all tables."""
    names = [row["name"] for row in data["models"]]
    legend = [{"name": name, "colour": f"c{i % LINES}"} for i, name in enumerate(names)]
    shown = [{**t._asdict(), "numeric": [_is_number(t, i) for i in range(len(t.columns))]} for t in tables(data)]
    return render(
        "compare.html.j2",
        data=data,
        title="Which one is better?",
        headline=headline(data),
        verdict=verdict(data),
        legend=legend,
        tables=shown,
        origin=origin({**data, "provenance": {**data["provenance"][names[0]], "inputs": []}}),
        pictures=[_overlaid(data), *_claimed(data), *_priced(data)],
    )


def _overlaid(data: dict[str, Any]) -> dict[str, Any]:
    curves = [data["curves"][row["name"]] for row in data["models"]]
    high = max(v for c in curves for v in c["y"] if v is not None) * 1.05 or 1.0
    f = svg.frame((0, 1), (0, high), ("share accepted", "wrong among the accepted"))
    lines = [svg.line(f, c["x"], c["y"], f"c{i % LINES}") for i, c in enumerate(curves)]
    return {
        "title": "Risk and coverage",
        "read": "A lower curve is better. Curves that cross: better for one coverage, worse for another.",
        "svg": svg.svg(f, lines[::-1], title="Risk against coverage of every model"),
    }


def _claimed(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Reliability of the models whose score is a probability."""
    found = [(i, data["reliability"].get(row["name"])) for i, row in enumerate(data["models"])]
    f = svg.frame(UNIT, UNIT, ("confidence", "accuracy"))
    lines = [svg.line(f, c["x"], c["y"], f"c{i % LINES}") for i, c in found if c is not None]
    if not lines:
        return []
    marks = [svg.line(f, UNIT, UNIT, "ideal"), *lines[::-1]]
    read = "Fifteen bins of equally many answers. On the dashed line confidence is accuracy; below it claims too much."
    drawn = svg.svg(f, marks, title="Accuracy against confidence of every model")
    return [{"title": "Reliability", "read": read, "svg": drawn}]


def _priced(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Cost against AURC and, where known, ECE; one dot per model."""
    found = [_dots(data, m) for m in ("aurc", "ece")] if data["cost"] else []
    return [p for p in found if p is not None]


def _dots(data: dict[str, Any], metric: str) -> dict[str, Any] | None:
    colour = {row["name"]: f"c{i % LINES}" for i, row in enumerate(data["models"])}
    known = [c for c in data["cost"] if c[metric] is not None]
    if not known:
        return None
    right, top = (max(c[m] for c in known) * 1.1 or 1.0 for m in ("cost", metric))
    what, title = data["cost_name"], meaning(metric).title
    f = svg.frame((0, right), (0, top), (what, title), (svg.short, svg.plain))
    dots = [svg.dots(f, [c["cost"]], [c[metric]], colour[c["name"]]) for c in known]
    read = "Lower and further left is better."
    return {"title": f"Cost and {title}", "read": read, "svg": svg.svg(f, dots, title=f"{title} against {what}")}
