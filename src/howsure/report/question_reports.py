"""Reports on every question of a decision model's log: one table over all, and each in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from howsure._core import strict_json
from howsure._core.frozen import frozen
from howsure._core.version import __version__
from howsure.report.graded import GradedData
from howsure.report.render.sentences import (
    NONE,
    format_number,
    format_percent,
    format_percent_range,
)
from howsure.report.render.text_tables import Sheet, TextTable
from howsure.report.report import save_text
from howsure.report.report_types import (
    CalibrationData,
    ComparisonData,
    Difference,
    MonitorData,
    Number,
    ReportData,
)

SHOWN_RISK = 0.05
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: CanvasText; background: Canvas; color-scheme: light dark; }}
table {{ border-collapse: collapse; }} th, td {{ padding: .25rem .75rem; text-align: left;
  border-bottom: 1px solid #8885; }}
summary {{ cursor: pointer; font-weight: 600; padding: .5rem 0; }} iframe {{ border: 0; }}
.wide {{ overflow-x: auto; }}
</style></head><body><main>
<h1>{title}</h1>
<div class="wide">{table}</div>
{questions}
</main></body></html>
"""


@frozen(eq=False)
class QuestionReports:
    """What a command found out about each question: `data` as its own JSON would have it, a row of a
    table over all, what to say about it, and its page where there is one.
    """

    title: str
    data: Mapping[str, object]
    head: Sequence[str]
    rows: Mapping[str, Sequence[str]]
    sentences: Mapping[str, Sequence[str]]
    pages: Mapping[str, Callable[[], str]]

    def sheet(self) -> Sheet:
        """What is printed: the table, then the sentences about each question."""
        lines: list[str] = []
        for name, said in self.sentences.items():
            lines += ["", f"{name}: {said[0] if said else NONE}", *said[1:]]
        rows = [[name, *cells] for name, cells in self.rows.items()]
        table = TextTable(title="", head=["question", *self.head], rows=rows)
        return Sheet(headline=self.title, sentences=lines, tables=[table])

    def to_text(self, path: str | Path | None = None) -> str:
        """The sheet as plain text."""
        return save_text(self.sheet().text(), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The sheet as Markdown."""
        return save_text(self.sheet().markdown(), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """The full result of each question, by its name."""
        text = strict_json.dump_pretty({"howsure": __version__, "questions": dict(self.data)})
        return save_text(text, path)

    def to_html(self, path: str | Path | None = None) -> str:
        """One offline page: the table, and the page of each question in a frame of its own."""
        from markupsafe import escape

        from howsure.report.render.page import wrap_in_iframe

        cells = [[f"<th>{escape(title)}</th>" for title in ("question", *self.head)]]
        for name, row in self.rows.items():
            cells.append([f"<td>{escape(cell)}</td>" for cell in (name, *row)])
        table = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
        parts: list[str] = []
        for name in self.data:
            said = " ".join(self.sentences.get(name, ()))
            part = f"<h2>{escape(name)}</h2><p>{escape(said)}</p>"
            if name in self.pages:
                frame = wrap_in_iframe(self.pages[name]())
                part += (
                    f"<details><summary>Full report on {escape(name)}</summary>{frame}</details>"
                )
            parts.append(part)
        page = PAGE.format(
            title=escape(self.title), table=f"<table>{table}</table>", questions="".join(parts)
        )
        return save_text(page, path)


# One row for each command

EVALUATE_HEAD = ("answers", "right", "ECE", "AURC", "automatic at 5 % risk")
GRADED_HEAD = ("answers", "mean grade", "ECE", "AURC", "confidence − grade")
COMPARE_HEAD = ("records", "lowest AURC", "AURC", "accuracy", "gap of the next")
CALIBRATE_HEAD = ("calibrator", "ECE before", "ECE after", "NLL before", "NLL after")
MONITOR_HEAD = ("month", "answers", "accuracy, estimated", "of the reference", "drift")


def build_report_row(data: ReportData) -> list[str]:
    """A question's row in the table of `evaluate`."""
    metrics = data["metrics"]
    automatic = NONE
    for guarantee in data.get("guarantees", ()):
        if guarantee["risk"] == SHOWN_RISK and guarantee["feasible"]:
            automatic = format_percent(guarantee["coverage"])
    return [
        f"{data['n']:,}",
        show_number(metrics.get("accuracy"), percent=True),
        show_number(metrics.get("ece")),
        show_number(metrics.get("aurc")),
        automatic,
    ]


def build_graded_row(data: GradedData) -> list[str]:
    """A question's row in the table of `evaluate`."""
    metrics = data["metrics"]
    return [
        f"{data['n']:,}",
        show_number(metrics.get("accuracy"), percent=True),
        show_number(metrics.get("ece")),
        show_number(metrics.get("aurc")),
        show_number(metrics.get("signed_calibration_error")),
    ]


def show_number(entry: Number | Difference | None, *, percent: bool = False) -> str:
    """A number with its limits."""
    if entry is None or entry["value"] is None:
        return NONE
    low, high = entry.get("low"), entry.get("high")
    if percent:
        shown = format_percent(entry["value"])
        return shown if low is None else f"{shown} ({format_percent_range(low, high)})"
    shown = format_number(entry["value"], 3)
    return shown if low is None else f"{shown} ({format_number(low, 2)} … {format_number(high, 2)})"


def build_comparison_row(data: ComparisonData) -> list[str]:
    """A question's row in the table of `compare`."""
    best = data["models"][0]
    gap = NONE
    if len(data["models"]) > 1:
        gap = show_number(data["models"][1]["behind"])
    metrics = best["metrics"]
    accuracy = show_number(metrics.get("accuracy"), percent=True)
    return [f"{data['n']:,}", best["name"], show_number(metrics.get("aurc")), accuracy, gap]


def build_calibration_row(data: CalibrationData) -> list[str]:
    """A question's row in the table of `calibrate`."""
    cells = [data["method"]]
    for name in ("ece", "nll"):
        change = data["metrics"].get(name)
        if change is None:
            cells += [NONE, NONE]
        else:
            cells += [show_number(change["before"]), show_number(change["after"])]
    return cells


def build_monitor_row(data: MonitorData) -> list[str]:
    """A question's row in the table of `monitor`: its last month."""
    month = data["months"][-1]
    drifted = [one["column"] for one in month["drift"] if one["drifted"]]
    return [
        month["name"],
        f"{month['n']:,}",
        show_number(month["estimate"]["accuracy"], percent=True),
        show_number(data["reference"]["accuracy"], percent=True),
        ", ".join(drifted) or "not found",
    ]
