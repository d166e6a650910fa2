"""`python -m benchmarks.growth_of_commands [--draw | --most NUMBERS]`: CPU seconds and peak memory
of whole commands as data grow.

Each point is written to benchmarks/growth_of_commands.json when it is measured, so a run that was
stopped goes on where it was; points of another version of howsure are measured anew. A job that
takes more than LIMIT CPU seconds is recorded as such, and larger ones of its kind are left out.
`--most` leaves out sizes above this number, `--draw` measures nothing.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from .commands import HOWSURE, UNIT, best, saved
from .machine import facts
from .masks_stream import written
from .workloads import logits

LIMIT = 200  # CPU seconds of a job
MOST_NUMBERS = 10**7  # logits of a file of which there are two
RESULT = Path(__file__).with_name("growth_of_commands.json")
PICTURE = Path(__file__).parents[1] / "docs" / "growth_of_commands.svg"
Point: TypeAlias = "list[float] | None"  # seconds, megabytes, unit; None where it takes too long
Found: TypeAlias = dict[str, dict[str, dict[str, Point]]]  # by what grows, command and size
Commands: TypeAlias = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Growth:
    """What grows, what stays, and a function that writes files of a size and names the commands."""

    grows: str
    stays: str
    sizes: tuple[int, ...]
    write: Callable[[Path, int], Commands]


def write_logits(folder: Path, n: int, k: int) -> Commands:
    first = saved(folder, "0.npz", n, k)
    if n * k > MOST_NUMBERS:
        return {"evaluate": ("evaluate", first)}
    second = saved(folder, "1.npz", n, k, 1)
    return {
        "evaluate": ("evaluate", first),
        "compare": ("compare", first, second),
        "calibrate": ("calibrate", "--fit", first, "--on", second),
    }


def write_models(folder: Path, models: int) -> Commands:
    return {
        "compare": ("compare", *(saved(folder, f"{i}.npz", 10**4, 10, i) for i in range(models)))
    }


def write_groups(folder: Path, groups: int) -> Commands:
    z, labels = logits(10**4, 10)
    np.savez(folder / "groups.npz", logits=z, labels=labels, group=np.arange(10**4) % groups)
    return {"evaluate": ("evaluate", "groups.npz")}


def write_labels(folder: Path, labels: int) -> Commands:
    rng = np.random.default_rng(0)
    probs = rng.beta(1, 4, (10**4, labels))
    np.savez(folder / "labels.npz", probs=probs, labels=rng.random(probs.shape) < probs)
    return {"evaluate --multilabel": ("evaluate", "labels.npz", "--multilabel")}


def write_images(folder: Path, images: int) -> Commands:
    written(folder / "masks.npz", images, classes=4, side=96)
    return {"evaluate --loss dice": ("evaluate", "masks.npz", "--loss", "dice")}


def write_months(folder: Path, months: int) -> Commands:
    old, new = saved(folder, "old.npz", 10**4, 10), saved(folder, "new.npz", 1000 * months, 10, 1)
    return {"monitor": ("monitor", old, new, "--chunk", "1000")}


GROWTHS = (
    Growth(
        "samples",
        "10 classes",
        (10**3, 10**4, 10**5, 10**6, 10**7),
        lambda folder, n: write_logits(folder, n, 10),
    ),
    Growth(
        "classes",
        "10,000 samples",
        (2, 10, 100, 10**3, 10**4),
        lambda folder, k: write_logits(folder, 10**4, k),
    ),
    Growth("models", "10,000 samples, 10 classes", (2, 8, 32, 100, 200), write_models),
    Growth("groups", "10,000 samples, 10 classes", (10, 100, 10**3, 5000), write_groups),
    Growth("labels", "10,000 cases", (2, 10, 100, 500), write_labels),
    Growth("images", "96 × 96 pixels, 4 classes", (10, 100, 10**3), write_images),
    Growth("months", "1,000 samples a month, 10 classes", (1, 12, 36, 120), write_months),
)


def main(argv: list[str]) -> int:
    usage = "usage: python -m benchmarks.growth_of_commands [--draw | --most NUMBERS]"
    if argv not in ([], ["--draw"]) and not (len(argv) == 2 and argv[0] == "--most"):
        print(usage, file=sys.stderr)
        return 2
    found = load()
    if argv != ["--draw"]:
        measure(found, int(argv[1]) if argv else sys.maxsize)
    print(table(found))
    draw(found)
    return 0


def load() -> dict[str, Any]:
    """What was measured before."""
    return json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}


def measure(found: dict[str, Any], most: int) -> None:
    """Every point that is missing, of sizes up to `most`."""
    machine = facts()
    if found.get("machine", {}).get("howsure") != machine["howsure"]:
        found.clear()
    limited = partial(resource.setrlimit, resource.RLIMIT_CPU, (LIMIT, LIMIT))
    for growth in GROWTHS:
        known: dict[str, dict[str, Point]] = found.setdefault(growth.grows, {})
        for size in growth.sizes:
            if size > most or any(str(size) in points for points in known.values()):
                continue
            with tempfile.TemporaryDirectory() as folder:
                for name, arguments in growth.write(Path(folder), size).items():
                    points = known.setdefault(name, {})
                    if None in points.values():  # a smaller one took too long
                        continue
                    print(
                        f"measuring: {name}, {size:,} {growth.grows}", file=sys.stderr, flush=True
                    )
                    jobs = {"unit": UNIT, "job": (*HOWSURE, *arguments)}
                    try:
                        cost = best(jobs, folder, 1, limited)
                        if cost["job"].seconds < 2:  # short ones vary
                            cost = best(jobs, folder, 3, limited)
                        unit, job = cost["unit"], cost["job"]
                        points[str(size)] = [job.seconds, job.megabytes, unit.seconds]
                    except RuntimeError as e:
                        print(e, file=sys.stderr)
                        points[str(size)] = None
            text = json.dumps({**found, "machine": machine}, indent=1)
            RESULT.write_text(text + "\n", "utf-8")


def table(found: Found) -> str:
    """CPU seconds and megabytes, as the page in docs has them."""
    lines: list[str] = []
    for growth in GROWTHS:
        sizes = " | ".join(f"{size:,}" for size in growth.sizes)
        lines += [f"| {growth.grows} ({growth.stays}) | {sizes} |"]
        lines += ["|---|" + "---:|" * len(growth.sizes)]
        for name, points in found.get(growth.grows, {}).items():
            cells = [cell(points.get(str(size), [])) for size in growth.sizes]
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def cell(point: Point) -> str:
    if point is None:
        return f"over {LIMIT} s"
    return f"{point[0]:.2f} s, {point[1]:,.0f} MB" if point else "–"


def draw(found: Found) -> None:
    """CPU seconds and megabytes against what grows."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "howsure"  # the same picture for the same numbers
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(15, 7))
    axes.flat[-1].axis("off")
    for ax, growth in zip(axes.flat, GROWTHS, strict=False):
        beside = ax.twinx()
        for color, (name, by_size) in enumerate(found.get(growth.grows, {}).items()):
            points = {int(size): point for size, point in by_size.items() if point is not None}
            x = sorted(points)
            ax.plot(x, [points[s][0] for s in x], "-o", markersize=3, color=f"C{color}", label=name)
            beside.plot(x, [points[s][1] for s in x], ":", color=f"C{color}")
        under = f"{growth.grows}; {growth.stays}"
        ax.set(xscale="log", yscale="log", xlabel=under, ylabel="CPU s")
        beside.set(yscale="log", ylabel="peak MB (dotted)")
        ax.grid(alpha=0.3)
        if ax.has_data():
            ax.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
