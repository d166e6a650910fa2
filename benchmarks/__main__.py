"""`python -m benchmarks [NAME…]`: the speed contract, measured in one run; written to
benchmarks/results.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import (
    accuracy,
    against_peers,
    app,
    bootstrap,
    bounds,
    columns,
    commands,
    compact,
    fits,
    importing,
    limits,
    logs,
    page,
    panel,
    since,
    temperature,
)
from .machine import facts
from .rows import Row

JOBS = {
    "panel": panel.rows,
    "peers": against_peers.rows,
    "columns": columns.rows,
    "temperature": temperature.rows,
    "fits": fits.rows,
    "bootstrap": bootstrap.rows,
    "limits": limits.rows,
    "compact": compact.rows,
    "import": importing.rows,
    "bounds": bounds.rows,
    "page": page.rows,
    "logs": logs.rows,
    "commands": commands.rows,
    "since": since.rows,
    "app": app.rows,
    "accuracy": accuracy.rows,
}
RESULTS = Path(__file__).with_name("results.json")


def main(argv: list[str]) -> int:
    unknown = [name for name in argv if name not in JOBS]
    if unknown:
        print(
            f"benchmarks: {unknown[0]!r} is unknown; there are {', '.join(JOBS)}", file=sys.stderr
        )
        return 2
    before = committed()
    machine, rows = facts(), list(measured(argv or list(JOBS)))
    show(rows, machine, before)
    if not argv:
        save(rows, machine, before)
    return 0


def measured(names: list[str]) -> Iterator[Row]:
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        yield from JOBS[name]()


def committed() -> dict[str, float]:
    """The values of the last committed result by job; those on disk outside a repository."""
    found = subprocess.run(
        ["git", "show", f"HEAD:./{RESULTS.name}"],
        cwd=RESULTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    text = (
        found.stdout
        if found.returncode == 0
        else RESULTS.read_text("utf-8")
        if RESULTS.exists()
        else '{"rows": []}'
    )
    return {
        row["job"]: row["value"] for row in json.loads(text)["rows"] if row["value"] is not None
    }


def show(rows: list[Row], machine: dict[str, str], before: dict[str, float]) -> None:
    table = Table("job", "measured", "must", "moonshot", "", "before", "in detail")
    for row in rows:
        value = "" if row.value is None else f"{row.value:.3g} {row.unit}"
        ratio = against(row, before)
        change = "" if ratio is None else f"× {ratio:.2f}"
        table.add_row(
            row.job,
            value,
            limit(row, row.must),
            limit(row, row.moonshot),
            row.verdict,
            change,
            row.detail,
        )
    console = Console(width=None if sys.stdout.isatty() else 220)
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), highlight=False)


def against(row: Row, before: dict[str, float]) -> float | None:
    """The value as a multiple of the last committed one."""
    old = before.get(row.job)
    return None if row.value is None or not old else row.value / old


def limit(row: Row, bound: float | None) -> str:
    return "" if bound is None else f"{'≥' if row.more_is_better else '≤'} {bound:g}"


def save(rows: list[Row], machine: dict[str, str], before: dict[str, float]) -> None:
    found = [
        asdict(row) | {"verdict": row.verdict, "times_before": against(row, before)} for row in rows
    ]
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text(
        json.dumps({"machine": machine, "rows": found}, indent=1, ensure_ascii=False) + "\n",
        "utf-8",
    )
    temporary.replace(RESULTS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
