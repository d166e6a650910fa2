"""`python -m benchmarks.growth [--draw]`: how time grows with samples and classes, in nanoseconds
per number.

Writes benchmarks/growth.json and draws docs/growth.svg; `--draw` only draws what was measured
before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import howsure as hs
from howsure.predictions.columns import RawValues, compute_columns

from .machine import facts
from .panel import panel
from .timing import seconds
from .workloads import Outcome, large, logits

SAMPLES = (10**4, 10**5, 10**6, 10**7, 10**8)
CLASSES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
NUMBERS = 10**7  # logits of each measurement, whatever the number of classes
RESULT = Path(__file__).with_name("growth.json")
PICTURE = Path(__file__).parents[1] / "docs" / "growth.svg"


def main(argv: list[str]) -> int:
    if argv not in ([], ["--draw"]):
        print("usage: python -m benchmarks.growth [--draw]", file=sys.stderr)
        return 2
    if not argv:
        found = {"machine": facts(), "samples": with_samples(), "classes": with_classes()}
        RESULT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    draw(json.loads(RESULT.read_text("utf-8")))
    return 0


def with_samples() -> dict[str, list[float]]:
    """Nanoseconds per sample of the panel and of the compact tally, beside np.sort."""
    lines: dict[str, list[float]] = {}
    for n in SAMPLES:
        print(f"measuring: {n:,} samples", file=sys.stderr, flush=True)
        for name, value in of_samples(large(n)).items():
            lines.setdefault(name, []).append(1e9 * value / n)
    return {"n": list(map(float, SAMPLES)), **lines}


def of_samples(data: Outcome) -> dict[str, float]:
    n = len(data.score)
    jobs: dict[str, Callable[[], Any]] = {
        "np.sort": lambda: np.sort(data.score),
        "panel": lambda: panel(data),
        "compact tally": lambda: hs.tally(data.score, correct=data.correct, compact=25_000),
    }
    return each(jobs, repeats=2 if n >= 10**8 else 5)


def with_classes() -> dict[str, list[float]]:
    """Nanoseconds per logit of all score and loss columns, beside np.exp."""
    lines: dict[str, list[float]] = {}
    for k in CLASSES:
        print(f"measuring: {k} classes", file=sys.stderr, flush=True)
        z, labels = logits(NUMBERS // k, k)
        wide = z.astype(np.float64)
        out = np.empty_like(wide)
        jobs: dict[str, Callable[[], Any]] = {
            "np.exp": lambda wide=wide, out=out: np.exp(wide, out=out),
            "columns": lambda z=z, labels=labels: compute_columns(RawValues(z, True), labels),
        }
        for name, value in each(jobs, repeats=3).items():
            lines.setdefault(name, []).append(1e9 * value / z.size)
    return {"k": list(map(float, CLASSES)), **lines}


def each(jobs: dict[str, Callable[[], Any]], *, repeats: int) -> dict[str, float]:
    """Best CPU seconds of each job."""
    return dict(zip(jobs, seconds(*jobs.values(), repeats=repeats), strict=True))


def draw(found: dict[str, Any]) -> None:
    """Two panels: nanoseconds per sample against n, nanoseconds per logit against k."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "howsure"  # the same picture for the same numbers
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for ax, part, x, unit in (
        (axes[0], "samples", "n", "sample"),
        (axes[1], "classes", "k", "logit"),
    ):
        for name, values in found[part].items():
            if name != x:
                style = "--" if name.startswith("np.") else "-"
                ax.plot(found[part][x], values, style, marker="o", markersize=3, label=name)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel={"n": "samples", "k": "classes"}[x],
            ylabel=f"ns per {unit}",
        )
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
