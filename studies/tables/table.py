"""A table of results and its Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Table:
    """Cells are text already; `note` says how to read them and what is missing."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def to_markdown(self) -> str:
        lines = [f"## {self.title}", "", *([self.note, ""] if self.note else []), line(self.header)]
        lines.append(line([self.alignment(column) for column in range(len(self.header))]))
        return "\n".join([*lines, *map(line, self.rows)]) + "\n"

    def alignment(self, column: int) -> str:
        """Numbers to the right, words to the left."""
        cells = [row[column] for row in self.rows if row[column]]
        return "--:" if column and all(cell[0] in "+-0123456789" for cell in cells) else "---"


def line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}"


def signed(value: float, digits: int = 2) -> str:
    """A difference in per cent."""
    return "nothing" if np.isnan(value) else f"{100 * value:+.{digits}f}"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean of the repeats in per cent, and half their range where there are several."""
    mean = percent(float(np.mean(values)), digits)
    return mean if len(values) < 2 else f"{mean} ± {percent(float(np.ptp(values)) / 2, digits)}"


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's, with ties at their mean rank; nan where one side does not vary."""
    if len(set(x)) < 2 or len(set(y)) < 2:
        return float("nan")
    return float(np.corrcoef(mean_ranks(x), mean_ranks(y))[0, 1])


def mean_ranks(values: Sequence[float]) -> np.ndarray:
    v = np.asarray(values, np.float64)
    return (v[:, None] > v).sum(1) + ((v[:, None] == v).sum(1) - 1) / 2
