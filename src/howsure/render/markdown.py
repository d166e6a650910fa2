"""Report JSON → Markdown tables."""

from __future__ import annotations

from typing import Any

from howsure.render.words import ARROWS, by_question, headline, interval, meaning, note, number


def markdown(report: dict[str, Any]) -> str:
    """The tables as Markdown; text from files is escaped."""
    lines = [headline(report), ""]
    for question, metrics in by_question(report["metrics"]):
        lines += [f"### {question}", "", "| metric | | value | interval | what it says |", "|---|---|---:|---:|---|"]
        lines += [_row(name, entry) for name, entry in metrics.items()]
        lines.append("")
    lines += [f"- {escape(finding['text'])}" for finding in report["findings"]]
    return "\n".join(lines).rstrip() + "\n"


def _row(name: str, entry: dict[str, Any]) -> str:
    cells = (meaning(name).title, ARROWS[entry["better"]], number(entry["value"]), interval(entry), note(name, entry))
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


def escape(text: str) -> str:
    """Text that Markdown shows as it is, in one cell and on one line."""
    for mark in "\\`*_{}[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())
