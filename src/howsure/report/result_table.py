"""The table of a paper: models or scores in rows, numbers in columns, as LaTeX, CSV or a frame."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from math import floor, log10
from pathlib import Path
from typing import Any

from howsure._core.checks import InputError
from howsure._core.checks import build_frame as frame
from howsure._core.frozen import frozen
from howsure._core.text import make_printable
from howsure.report.catalogue import BY_NAME, PERCENT_NUMBERS
from howsure.report.report import save_text
from howsure.report.report_types import ComparisonData, Entry, Metrics, ReportData

PAPER_NUMBERS = (
    "dice_loss",
    "image_aurc",
    "dice_pixels_aurc",
    "hamming_loss",
    "macro_auroc",
    "accuracy",
    "nll",
    "aurc",
    "coverage_at_risk_0.05",
    "ece",
)  # columns of a LaTeX table that names none; a page has room for about six
MAX_DECIMALS = 6
LATEX_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "±": r"$\pm$",
    "→": r"$\to$",
    "\N{NO-BREAK SPACE}": "~",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
LATEX_ARROWS = {"lower": r"$\downarrow$", "higher": r"$\uparrow$", "zero": r"$\to 0$"}
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would compute such a text


@frozen(eq=False)
class ResultTable:
    """Numbers with their limits, one row per model or score; `best` has the columns in which a row
    is best or not told from it.

    >>> entry = {"value": 0.912, "low": 0.9, "high": 0.924, "better": "higher"}
    >>> rows = {"small": {"accuracy": entry}}
    >>> t = ResultTable(first="model", rows=rows, columns=("accuracy",), best={}, caption="Ten samples.")
    >>> print(t.to_csv(), end="")
    model,accuracy,accuracy_low,accuracy_high
    small,0.912,0.9,0.924
    """

    first: str  # heading of the names
    rows: Mapping[str, Metrics]
    columns: Sequence[str]
    best: Mapping[str, frozenset[str]]
    caption: str

    def to_csv(self, path: str | Path | None = None) -> str:
        """Value and limits of every number, in full."""
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        head = [self.first]
        for name in self.columns:
            head += [name, f"{name}_low", f"{name}_high"]
        writer.writerow(head)
        for row, metrics in self.rows.items():
            cells: list[object] = [f"'{row}" if row.startswith(FORMULA_STARTS) else row]
            for name in self.columns:
                entry = metrics.get(name)
                for key in ("value", "low", "high"):
                    cells.append(None if entry is None else entry.get(key))
            writer.writerow(cells)
        return save_text(out.getvalue(), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """A `table` for LaTeX with the package booktabs: ± half the width of the limits, bold what
        is best.
        """
        head = [escape_latex(self.first)]
        for name in self.columns:
            item = BY_NAME[name]
            unit = r" (\%)" if name in PERCENT_NUMBERS else ""
            head.append(f"{escape_latex(item.title)}{unit} {LATEX_ARROWS[item.better]}")
        lines = [
            r"\begin{table}",
            r"\centering",
            f"\\caption{{{escape_latex(self.caption)}}}",
            f"\\begin{{tabular}}{{l{'r' * len(self.columns)}}}",
            r"\toprule",
            f"{' & '.join(head)} \\\\",
            r"\midrule",
        ]
        decimals = {name: self._find_decimals(name) for name in self.columns}
        for row, metrics in self.rows.items():
            cells = [escape_latex(row)]
            for name in self.columns:
                text = _format_cell(name, metrics.get(name), decimals[name])
                if name in self.best.get(row, ()):
                    text = f"\\boldmath\\textbf{{{text}}}"
                cells.append(text)
            lines.append(f"{' & '.join(cells)} \\\\")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
        return save_text("\n".join(lines), path)

    def frame(self, library: str = "pandas") -> Any:
        """The values as a data frame of pandas or polars, one row per model or score."""
        rows: list[dict[str, object]] = []
        for row, metrics in self.rows.items():
            cells: dict[str, object] = {self.first: row}
            for name in self.columns:
                cells[name] = metrics[name]["value"] if name in metrics else None
            rows.append(cells)
        return frame(rows, library)

    def _find_decimals(self, name: str) -> int:
        """As many as give the narrowest limits of a column two digits: all its rows have them."""
        halves: list[float] = []
        for metrics in self.rows.values():
            half = _compute_half_width(name, metrics.get(name))
            if half:
                halves.append(half)
        if not halves:
            return 2 if name in PERCENT_NUMBERS or name.startswith("eor") else 4
        return min(max(1 - floor(log10(min(halves))), 0), MAX_DECIMALS)


def build_report_table(data: ReportData, metrics: Sequence[str] | None) -> ResultTable:
    """The scores of a report and their numbers."""
    rows = {data["score"]: data["metrics"]}
    for score, section in data["scores"].items():
        rows[score] = section["metrics"]
    sources = [source["file"] for source in data["provenance"]["inputs"] if "file" in source]
    what = f"{', '.join(sources)}: {data['n']:,} samples" if sources else f"{data['n']:,} samples"
    caption = _write_caption(what, data, data["provenance"]["level"])
    columns = _choose_columns(rows, metrics)
    return ResultTable(first="score", rows=rows, columns=columns, best={}, caption=caption)


def build_comparison_table(data: ComparisonData, metrics: Sequence[str] | None) -> ResultTable:
    """The models of a comparison and their numbers; what would be unfair is left out."""
    rows = {model["name"]: model["metrics"] for model in data["models"]}
    columns = _choose_columns(rows, metrics)
    # Best, and those that a paired test does not tell from it where there is one.
    best: dict[str, set[str]] = {name: set() for name in rows}
    tested: list[str] = []
    for column in columns:
        values = {name: m[column]["value"] for name, m in rows.items() if column in m}
        known = {name: value for name, value in values.items() if value is not None}
        if not known:
            continue
        better = BY_NAME[column].better
        ranks = {name: -v if better == "higher" else abs(v) for name, v in known.items()}
        first = min(ranks, key=lambda name: ranks[name])
        alike = {name for name in ranks if ranks[name] == ranks[first]}
        pairs = [
            pair for pair in data["pairs"] if column in pair and first in (pair["a"], pair["b"])
        ]
        for pair in pairs:
            if not pair[column]["clear"]:
                alike |= {pair["a"], pair["b"]}
        if pairs:
            tested.append(BY_NAME[column].title)
        for name in alike:
            best[name].add(column)
    caption = _write_caption(
        f"{len(rows)} models on the same {data['n']:,} samples", data, data["level"]
    )
    caption += " Bold: the best"
    if tested:
        caption += f"; for {', '.join(tested)} also what is not significantly worse (paired, all pairs corrected)"
    marked = {name: frozenset(marks) for name, marks in best.items()}
    return ResultTable(
        first="model", rows=rows, columns=columns, best=marked, caption=f"{caption}."
    )


def _write_caption(what: str, data: ReportData | ComparisonData, level: float) -> str:
    groups = f" in {data['groups']:,} groups" if "groups" in data else ""
    return (
        f"{what}{groups}. ± half the width of the {level * 100:g} % interval "
        f"(howsure {data['howsure']})."
    )


def _choose_columns(rows: Mapping[str, Metrics], metrics: Sequence[str] | None) -> tuple[str, ...]:
    """The columns asked for, or all numbers that some row has."""
    there: dict[str, None] = {}
    for numbers in rows.values():
        for name, entry in numbers.items():
            if entry["value"] is not None:
                there[name] = None
    for name in metrics or ():
        if name not in there:
            raise InputError(f"there is no number {name!r} here; there are {', '.join(there)}.")
    return tuple(metrics or there)


def keep_paper_numbers(columns: Sequence[str]) -> list[str]:
    """The columns of a table that was not told which: those that a paper has room for."""
    return [name for name in PAPER_NUMBERS if name in columns]


def escape_latex(text: str) -> str:
    r"""A text in which LaTeX finds no command.

    >>> print(escape_latex("a_b & 5 %"))
    a\_b \& 5 \%
    """
    return "".join(LATEX_SIGNS.get(sign, sign) for sign in make_printable(text))


def _compute_half_width(name: str, entry: Entry | None) -> float | None:
    """Half the width of the limits in the unit of the table."""
    if entry is None or entry["value"] is None:
        return None
    low, high = entry.get("low"), entry.get("high")
    if low is None or high is None:
        return None
    return (high - low) / 2 * (100 if name in PERCENT_NUMBERS else 1)


def _format_cell(name: str, entry: Entry | None, decimals: int) -> str:
    if entry is None or entry["value"] is None:
        return "--"
    value = entry["value"] * (100 if name in PERCENT_NUMBERS else 1)
    half = _compute_half_width(name, entry)
    spread = "" if half is None else f" \\pm {half:.{decimals}f}"
    return f"${value:.{decimals}f}{spread}$"
