"""Report: what was found about one set of predictions; its only stored form is JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from howsure._core import json
from howsure._core.atomic import write_text
from howsure._core.frames import frame
from howsure._core.frozen import frozen
from howsure.render.model import Entry, ReportData, report_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    def to_json(self, path: str | Path | None = None) -> str:
        """The report as JSON text, strict (no NaN); written to `path` where given."""
        return written(json.pretty(self.data), path)

    def to_text(
        self, path: str | Path | None = None, *, width: int = 110, full: bool = False
    ) -> str:
        """What the command line prints: verdict, findings, the numbers that matter or, with `full`,
        all of them.
        """
        from howsure.render.sections import sheet

        return written(sheet(self.data, full=full).text(width), path)

    def to_markdown(self, path: str | Path | None = None, *, full: bool = False) -> str:
        """The same as Markdown."""
        from howsure.render.sections import sheet

        return written(sheet(self.data, full=full).markdown(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The interactive page: one offline file."""
        from howsure.render.html import page

        return written(page(self.data), path)

    def _repr_html_(self) -> str:
        """The page inside a notebook, in a frame of its own so that styles do not mix."""
        from howsure.render.html import frame

        return frame(self.to_html())

    def frame(self, library: str = "pandas") -> Any:
        """All metrics of all scores as a data frame of pandas or polars, one row each."""
        found = {
            self.data["score"]: self.data["metrics"],
            **{n: s["metrics"] for n, s in self.data["scores"].items()},
        }
        return frame(
            [
                metric_row(m, e) | {"score": name}
                for name, ms in found.items()
                for m, e in ms.items()
            ],
            library,
        )

    def figure(self) -> Figure:
        """The main curves as a matplotlib figure (extra `plot`)."""
        from howsure.render.figure import figure

        return figure(self.data)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """A report from its JSON text."""
        return cls(report_data(text))

    def __repr__(self) -> str:
        return f"<Report: n={self.data['n']:,}, k={self.data['k']}, {len(self.data['metrics'])} metrics>"


def metric_row(name: str, e: Entry) -> dict[str, object]:
    """A metric as a row of a table."""
    return {
        "metric": name,
        "value": e["value"],
        "low": e.get("low"),
        "high": e.get("high"),
        "why": e.get("why"),
    }


def written(text: str, path: str | Path | None) -> str:
    """The text, written to `path` where that is given."""
    if path is not None:
        write_text(path, text)
    return text
