"""`python -m benchmarks.growth_of_commands [--draw]`: CPU seconds and peak memory of whole commands
as data grow.

`evaluate`, `compare` (two models) and `calibrate` with samples (10 classes) and with classes (10⁴
samples). Each point is written to benchmarks/growth_of_commands.json when it is measured, so a run
that was stopped goes on where it was. A job that takes more than LIMIT CPU seconds is recorded as
such, and larger ones of its kind are left out.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from .commands import HOWSURE, UNIT, best, saved
from .machine import facts

SAMPLES = (10**3, 10**4, 10**5, 10**6, 10**7)
CLASSES = (2, 10, 100, 1000)
LIMIT = 200  # CPU seconds of a job
RESULT = Path(__file__).with_name("growth_of_commands.json")
PICTURE = Path(__file__).parents[1] / "docs" / "growth_of_commands.svg"
Found: TypeAlias = dict[
    str, dict[str, dict[str, list[float] | None]]
]  # by what grows, command and size
COMMANDS: dict[str, Callable[[str, str], tuple[str, ...]]] = {
    "evaluate": lambda a, b: ("evaluate", a),  # noqa: ARG005
    "compare": lambda a, b: ("compare", a, b),
    "calibrate": lambda a, b: ("calibrate", "--fit", a, "--on", b),
}
MOST = {"evaluate": 10**7, "compare": 10**6, "calibrate": 10**6}  # samples of 10 classes


def main(argv: list[str]) -> int:
    if argv not in ([], ["--draw"]):
        print("usage: python -m benchmarks.growth_of_commands [--draw]", file=sys.stderr)
        return 2
    found = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    if not argv:
        measure(found)
    print(table(found))
    draw(found)
    return 0


def measure(found: Found) -> None:
    """Every point that is missing."""
    limited = partial(resource.setrlimit, resource.RLIMIT_CPU, (LIMIT, LIMIT))
    for grows, sizes in (("samples", SAMPLES), ("classes", CLASSES)):
        for size in sizes:
            n, k = (size, 10) if grows == "samples" else (10**4, size)
            names = [
                name for name in COMMANDS if n <= MOST[name] and open_yet(found, grows, name, size)
            ]
            if not names:
                continue
            with tempfile.TemporaryDirectory() as folder:
                files = [
                    saved(Path(folder), f"{i}.npz", n, k, i) for i in range(2 if n < 10**7 else 1)
                ]
                for name in names:
                    print(f"measuring: {name}, {n:,} × {k}", file=sys.stderr, flush=True)
                    jobs = {"unit": UNIT, "job": (*HOWSURE, *COMMANDS[name](files[0], files[-1]))}
                    try:
                        cost = best(jobs, folder, 3 if n * k <= 10**6 else 1, limited)
                        point = [cost["job"].seconds, cost["job"].megabytes, cost["unit"].seconds]
                    except RuntimeError as e:
                        print(e, file=sys.stderr)
                        point = None
                    found.setdefault(grows, {}).setdefault(name, {})[str(size)] = point
                    RESULT.write_text(
                        json.dumps({**found, "machine": facts()}, indent=1) + "\n", "utf-8"
                    )


def open_yet(found: Found, grows: str, name: str, size: int) -> bool:
    """Whether a point is to be measured: it is not known, and no smaller one took too long."""
    known = found.get(grows, {}).get(name, {})
    return str(size) not in known and all(point is not None for point in known.values())


def table(found: Found) -> str:
    """CPU seconds and megabytes, as the page in docs has them."""
    lines: list[str] = []
    for grows, sizes in (("samples", SAMPLES), ("classes", CLASSES)):
        lines += [
            f"| {grows} | {' | '.join(f'{size:,}' for size in sizes)} |",
            "|---|" + "---:|" * len(sizes),
        ]
        for name in COMMANDS:
            points = [found.get(grows, {}).get(name, {}).get(str(size), []) for size in sizes]
            lines.append(f"| `{name}` | {' | '.join(map(cell, points))} |")
        lines.append("")
    return "\n".join(lines)


def cell(point: list[float] | None) -> str:
    if point is None:
        return f"over {LIMIT} s"
    return f"{point[0]:.2f} s, {point[1]:,.0f} MB" if point else "not measured"


def draw(found: Found) -> None:
    """CPU seconds and megabytes against samples and against classes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "howsure"  # the same picture for the same numbers
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for ax, grows, under in (
        (axes[0], "samples", "samples of 10 classes"),
        (axes[1], "classes", "classes, 10⁴ samples"),
    ):
        beside = ax.twinx()
        for color, name in enumerate(COMMANDS):
            points = {
                int(s): p for s, p in found.get(grows, {}).get(name, {}).items() if p is not None
            }
            x = sorted(points)
            ax.plot(x, [points[s][0] for s in x], "-o", markersize=3, color=f"C{color}", label=name)
            beside.plot(x, [points[s][1] for s in x], ":", color=f"C{color}")
        ax.set(xscale="log", yscale="log", xlabel=under, ylabel="CPU s")
        beside.set(yscale="log", ylabel="peak MB (dotted)")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
