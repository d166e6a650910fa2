"""Comparison JSON → terminal, Markdown, page."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from howsure.render import _svg
from howsure.render._rows import percent
from howsure.render.html import render
from howsure.render.markdown import escape
from howsure.render.words import ARROWS, interval, level, meaning, number

LINES = 6  # colours of curves; they repeat after that


class Table(NamedTuple):
    """A heading, column names, and rows of text whose first cell is a name."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""


def tables(data: dict[str, Any]) -> list[Table]:
    """Everything that is told of a comparison, as tables."""
    found = [
        _models(data),
        _pairs(data),
        _fair(data),
        _cost(data),
        _shifted(data),
        _outside(data),
        _slices(data),
        _classes(data),
    ]
    return [t for t in found if t.rows]


def headline(data: dict[str, Any]) -> str:
    """One line about what is compared."""
    return f"{len(data['models'])} models on the same {data['n']:,} samples · {level(data['level'])} intervals"


def verdict(data: dict[str, Any]) -> str:
    """Who is best, and whether that is more than chance."""
    best, *others = data["models"]
    tied = [row["name"] for row in others if not row["behind"]["clear"]]
    if not tied:
        return f"{best['name']} ranks best by AURC, clearly ahead of the others."
    return (
        f"{best['name']} has the lowest AURC; {', '.join(tied)} may be as good: the interval of the difference holds 0."
    )


def _models(data: dict[str, Any]) -> Table:
    shown = [name for name, fact in data["comparable"].items() if fact["fair"]]
    columns = [f"{meaning(m).title} {ARROWS[_better(data, m)]}" for m in shown]
    rows = [
        [
            row["name"],
            *_behind(row["behind"]),
            *(number(row["metrics"].get(m, {"value": None})["value"]) for m in shown),
        ]
        for row in data["models"]
    ]
    return Table("Ranking by AURC", ["model", "behind", "interval", *columns], rows)


def _behind(d: dict[str, Any]) -> list[str]:
    """How far a model's AURC is above the best, and the limits of that."""
    if d["low"] is None:
        return ["–", "–"]
    return [f"{d['value']:+.3g}", f"{d['low']:+.2g} … {d['high']:+.2g}"]


def _better(data: dict[str, Any], metric: str) -> str:
    return next(row["metrics"][metric]["better"] for row in data["models"] if metric in row["metrics"])


def _signed(d: dict[str, Any]) -> str:
    if d["low"] is None:
        return f"{d['value']:+.3g}"
    return f"{d['value']:+.3g} ({d['low']:+.2g} … {d['high']:+.2g})" + ("" if d["clear"] else " unclear")


def _pairs(data: dict[str, Any]) -> Table:
    names = [m for m in ("accuracy", "aurc", "ece") if any(m in p for p in data["pairs"])]
    rows = [[f"{p['a']} − {p['b']}", *(_signed(p[m]) if m in p else "–" for m in names)] for p in data["pairs"]]
    return Table(
        "Paired differences", ["models", *(meaning(m).title for m in names)], rows, "Unclear: the interval holds 0."
    )


def _fair(data: dict[str, Any]) -> Table:
    """Numbers with the same answer and reason share a row."""
    reasons: dict[tuple[bool, str], list[str]] = {}
    for metric, fact in data["comparable"].items():
        reasons.setdefault((fact["fair"], fact["why"]), []).append(meaning(metric).title)
    rows = [[", ".join(titles), "yes" if fair else "no", why] for (fair, why), titles in reasons.items()]
    return Table("May these models be compared by it?", ["number", "fair", "why"], rows)


def _cost(data: dict[str, Any]) -> Table:
    what = data["cost_name"]
    rows = [
        [c["name"], _svg.short(c[what]), number(c["aurc"]), number(c["ece"]), c["beaten_by"] or "nobody"]
        for c in data["cost"]
    ]
    return Table(f"What does it cost ({what})?", ["model", what, "AURC ↓", "ECE ↓", "beaten by"], rows)


def _shifted(data: dict[str, Any]) -> Table:
    rows = [
        [s["set"], s["model"], f"{s['n']:,}", number(s["accuracy"]), number(s["aurc"]), number(s["ece"])]
        for s in data["shifted"]
    ]
    return Table("Shifted data beside the home set", ["set", "model", "samples", "accuracy ↑", "AURC ↓", "ECE ↓"], rows)


def _outside(data: dict[str, Any]) -> Table:
    names = ("auroc", "fpr_at_95", "mix_aurc", "mix_auroc")
    rows = [[o["set"], o["model"], f"{o['n']:,}", *(number(o[m]) for m in names)] for o in data["outside"]]
    columns = ["set", "model", "samples", "AUROC in/out ↑", "FPR at 95 % ↓", "AURC of the mix ↓", "AUROC of the mix ↑"]
    return Table("Samples from outside", columns, rows, "In the mix every answer to an outside sample counts as wrong.")


def _slices(data: dict[str, Any]) -> Table:
    rows = [
        [
            s["group"],
            s["model"],
            f"{s['n']:,}",
            percent(s["accuracy"]),
            interval(s),
            number(s["aurc"]),
            number(s["gap"]),
            "worse" if s["worse"] else "",
        ]
        for s in data["slices"]
    ]
    columns = ["group", "model", "samples", "accuracy ↑", "limits", "AURC ↓", "confidence − accuracy", ""]
    return Table("Groups, worst first", columns, rows, "The limits of all groups hold together.")


def _classes(data: dict[str, Any]) -> Table:
    if not data["classes"]:
        return Table("", [], [])
    names = [row["name"] for row in data["models"]]
    rows = [[c["name"], f"{c['count']:,}", *(percent(c["recall"][m]) for m in names)] for c in data["classes"]]
    return Table("Recall by class, worst first", ["class", "samples", *names], rows)


def text(data: dict[str, Any], width: int = 100) -> str:
    """The tables as plain text of a fixed width."""
    out = StringIO()
    Console(file=out, width=width, no_color=True, highlight=False).print(printed(data))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def printed(data: dict[str, Any]) -> RenderableType:
    """What a terminal shows; the long tables by class and group are cut."""
    parts: list[RenderableType] = [Text(headline(data), style="bold"), Text(verdict(data)), Text("")]
    for t in tables(data):
        parts += [_rich(t), Text("")]
    return Group(*parts)


def _rich(t: Table, most: int = 20) -> RichTable:
    table = RichTable(title=Text(t.title, style="bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 1))
    for i, column in enumerate(t.columns):
        justify = "right" if _is_number(t, i) else "left"
        table.add_column(column, justify=justify, overflow="fold")  # a long name wraps, it is never cut
    for row in t.rows[:most]:
        table.add_row(*(Text(cell) for cell in row))
    if len(t.rows) > most:
        table.caption = Text(f"{len(t.rows) - most:,} more rows in --json and --html")
    return table


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
        pictures=[_overlaid(data), *_priced(data)],
    )


def _overlaid(data: dict[str, Any]) -> dict[str, Any]:
    curves = [data["curves"][row["name"]] for row in data["models"]]
    high = max(v for c in curves for v in c["y"] if v is not None) * 1.05 or 1.0
    f = _svg.frame((0, 1), (0, high), ("share accepted", "wrong among the accepted"))
    lines = [_svg.line(f, c["x"], c["y"], f"c{i % LINES}") for i, c in enumerate(curves)]
    return {
        "title": "Risk and coverage",
        "read": "A lower curve is better. Curves that cross: better for one coverage, worse for another.",
        "svg": _svg.svg(f, lines[::-1], title="Risk against coverage of every model"),
    }


def _priced(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Cost against AURC and, where known, ECE; one dot per model."""
    found = [_dots(data, m) for m in ("aurc", "ece")] if data["cost"] else []
    return [p for p in found if p is not None]


def _dots(data: dict[str, Any], metric: str) -> dict[str, Any] | None:
    what = data["cost_name"]
    colour = {row["name"]: f"c{i % LINES}" for i, row in enumerate(data["models"])}
    known = [c for c in data["cost"] if c[metric] is not None]
    if not known:
        return None
    right, top = (max(c[m] for c in known) * 1.1 or 1.0 for m in (what, metric))
    title = meaning(metric).title
    f = _svg.frame((0, right), (0, top), (what, title), (_svg.short, _svg.plain))
    dots = [_svg.dots(f, [c[what]], [c[metric]], colour[c["name"]]) for c in known]
    read = "Lower and further left is better."
    return {"title": f"Cost and {title}", "read": read, "svg": _svg.svg(f, dots, title=f"{title} against {what}")}
