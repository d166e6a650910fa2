"""Report: what was found about one set of predictions, and where it comes from; its only stored
form is JSON.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.checks import build_frame as frame
from howsure._core.file_access import write_text
from howsure._core.frozen import frozen
from howsure.report.report_types import (
    Entry,
    Input,
    Provenance,
    ReceiptData,
    ReportData,
    parse_report,
)
from howsure.tallies.tally import Tally, is_tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from howsure.predictions import Predictions
    from howsure.predictions.read_options import Receipt
    from howsure.report.render.pictures import Picture
    from howsure.report.result_table import ResultTable

HASH_BLOCK_BYTES = 1 << 20


@frozen(eq=False)
class Report:
    """Everything that was found about one set of predictions; `.data` is its JSON.

    >>> from howsure import Predictions, evaluate
    >>> report = evaluate(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1]))
    >>> round(report["accuracy"], 3)
    0.667
    """

    data: ReportData

    def __getitem__(self, metric: str) -> float | None:
        """The value of a metric of the first score."""
        if metric not in self.data["metrics"]:
            raise KeyError(
                f"{metric} is not in this report; it has {', '.join(self.data['metrics'])}"
            )
        return self.data["metrics"][metric]["value"]

    # The renderers are imported where they are used: a command that writes JSON needs none of them.

    def to_json(self, path: str | Path | None = None) -> str:
        """The report as JSON text, strict (no NaN); written to `path` where given."""
        return save_text(strict_json.dump_pretty(self.data), path)

    def to_text(
        self, path: str | Path | None = None, *, width: int = 110, full: bool = False
    ) -> str:
        """What the command line prints: verdict, findings, the numbers that matter or, with `full`,
        all of them.
        """
        from howsure.report.render.report_sheet import build_report_sheet

        return save_text(build_report_sheet(self.data, full=full).text(width), path)

    def to_markdown(self, path: str | Path | None = None, *, full: bool = False) -> str:
        """The same as Markdown."""
        from howsure.report.render.report_sheet import build_report_sheet

        return save_text(build_report_sheet(self.data, full=full).markdown(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The interactive page: one offline file."""
        from howsure.report.render.page import render_page

        return save_text(render_page(self.data), path)

    def _repr_html_(self) -> str:
        """The page inside a notebook, in a frame of its own so that styles do not mix."""
        from howsure.report.render.page import wrap_in_iframe as frame

        return frame(self.to_html())

    def frame(self, library: str = "pandas") -> Any:
        """All metrics of all scores as a data frame of pandas or polars, one row each."""
        by_score = {self.data["score"]: self.data["metrics"]}
        for score, section in self.data["scores"].items():
            by_score[score] = section["metrics"]
        rows: list[dict[str, object]] = []
        for score, metrics in by_score.items():
            for name, entry in metrics.items():
                rows.append(build_metric_row(name, entry) | {"score": score})
        return frame(rows, library)

    def table(self, metrics: Sequence[str] | None = None) -> ResultTable:
        """A wide table: a row for each score, a column for each of `metrics`, all unless given."""
        from howsure.report.result_table import build_report_table

        return build_report_table(self.data, metrics)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The numbers of a paper's table as LaTeX; `table(metrics)` takes others."""
        from howsure.report.result_table import keep_paper_numbers

        return self.table(keep_paper_numbers(self.table().columns)).to_latex(path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """All numbers with their limits, a row for each score."""
        return self.table().to_csv(path)

    def pictures(self) -> list[Picture]:
        """Every picture of the page."""
        from howsure.report.render.page import draw_pictures

        return draw_pictures(self.data).every

    def figure(self, *names: str) -> Figure:
        """The main pictures of the page, or those of these names, as a matplotlib figure (extra
        `plot`).
        """
        from howsure.report.render.paper_figure import build_figure

        return build_figure(self.pictures(), names)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """A report from its JSON text."""
        return cls(parse_report(text))

    def __repr__(self) -> str:
        n, k = self.data["n"], self.data["k"]
        return f"<Report: n={n:,}, k={k}, {len(self.data['metrics'])} metrics>"


def build_metric_row(name: str, entry: Entry) -> dict[str, object]:
    """A metric as a row of a table."""
    return {
        "metric": name,
        "value": entry["value"],
        "low": entry.get("low"),
        "high": entry.get("high"),
        "why": entry.get("why"),
    }


def save_text(text: str, path: str | Path | None) -> str:
    """Return the text; write it to `path` where that is given."""
    if path is not None:
        write_text(path, text)
    return text


def scalars(report: Report) -> dict[str, float]:
    """Each metric of the first score under a flat name, for loggers, with `_low` and `_high` where
    it has an interval; undefined ones are left out.

    >>> from howsure import Predictions, evaluate
    >>> report = evaluate(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1]))
    >>> [name for name in scalars(report) if name.startswith("accuracy")]
    ['accuracy', 'accuracy_low', 'accuracy_high']
    """
    if not isinstance(report, Report):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"this is a {type(report).__name__}; a Report is needed. Make one with evaluate(preds)."
        )
    flat: dict[str, float] = {}
    for name, entry in report.data["metrics"].items():
        for key, end in (("value", ""), ("low", "_low"), ("high", "_high")):
            value = entry.get(key)
            if value is not None:
                flat[name + end] = value
    return flat


def build_provenance(
    preds: Predictions | Tally,
    files: Sequence[str | Path] = (),
    command: str | None = None,
    *,
    seed: int,
    level: float,
) -> Provenance:
    """What must be known to make the same report again: inputs by hash, versions, seed."""
    inputs: list[Input] = [{"file": Path(file).name, "sha256": hash_file(file)} for file in files]
    if not inputs:
        kind = "tally" if is_tally(preds) else preds.kind
        inputs.append({"arrays": kind, "sha256": hash_arrays(preds)})
    provenance: Provenance = {
        "inputs": inputs,
        "command": command,
        "seed": seed,
        "level": level,
        "versions": list_versions(),
    }
    receipt: Receipt | None = getattr(preds, "receipt", None)
    if receipt is not None:
        provenance["receipt"] = build_receipt_data(receipt)
    return provenance


def build_receipt_data(receipt: Receipt) -> ReceiptData:
    """What a file was taken for, as JSON and in words."""
    return {
        "rows": receipt.rows,
        "kind": receipt.kind,
        "columns": {part: list(names) for part, names in receipt.columns.items()},
        "classes": receipt.classes,
        "right": receipt.right,
        "unused": dict(receipt.unused),
        "notes": list(receipt.notes),
        "text": str(receipt),
    }


def hash_file(path: str | Path) -> str:
    """SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def hash_arrays(preds: Predictions | Tally) -> str:
    """SHA-256 of the values and outcomes as they were given, or of the rows of a tally."""
    digest = hashlib.sha256()
    if is_tally(preds):
        arrays = [preds.score, preds.count, preds.loss]
    else:
        arrays = [preds.values, preds.known_labels, preds.known_correct]
    for array in arrays:
        if array is not None:
            digest.update(f"{array.dtype}{array.shape}".encode())
            if array.dtype.kind == "O":  # texts as Python objects, as pandas has them
                digest.update(repr(array.tolist()).encode("utf-8", "surrogatepass"))
            else:
                digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def list_versions() -> dict[str, str]:
    """What the numbers were computed with."""
    return {"python": platform.python_version(), "numpy": np.__version__}
