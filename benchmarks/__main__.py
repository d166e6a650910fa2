"""`python -m benchmarks [NAME…]`: the speed contract, measured in one run; written to benchmarks/results.json."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import against_peers, bootstrap, columns, compact, importing, panel, temperature
from .machine import facts
from .rows import Row

JOBS = {
    "panel": panel.rows,
    "peers": against_peers.rows,
    "columns": columns.rows,
    "temperature": temperature.rows,
    "bootstrap": bootstrap.rows,
    "compact": compact.rows,
    "import": importing.rows,
}
RESULTS = Path(__file__).with_name("results.json")


def main(argv: list[str]) -> int:
    unknown = [name for name in argv if name not in JOBS]
    if unknown:
        print(f"benchmarks: {unknown[0]!r} is unknown; there are {', '.join(JOBS)}", file=sys.stderr)
        return 2
    machine, rows = facts(), list(measured(argv or list(JOBS)))
    show(rows, machine)
    if not argv:
        save(rows, machine)
    return 0


def measured(names: list[str]) -> Iterator[Row]:
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        yield from JOBS[name]()


def show(rows: list[Row], machine: dict[str, str]) -> None:
    table = Table("job", "measured", "must", "moonshot", "", "in detail")
    for row in rows:
        value = "" if row.value is None else f"{row.value:.3g} {row.unit}"
        table.add_row(row.job, value, limit(row, row.must), limit(row, row.moonshot), row.verdict, row.detail)
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), highlight=False)


def limit(row: Row, bound: float | None) -> str:
    return "" if bound is None else f"{'≥' if row.more_is_better else '≤'} {bound:g}"


def save(rows: list[Row], machine: dict[str, str]) -> None:
    result = {"machine": machine, "rows": [asdict(row) | {"verdict": row.verdict} for row in rows]}
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    temporary.replace(RESULTS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
