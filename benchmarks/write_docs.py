"""`python -m benchmarks.write_docs`: the tables of docs/benchmarks.md, from what was measured.

Each stands between `<!-- table: NAME -->` and `<!-- end -->` and is written anew from
benchmarks/results.json, growth.json or growth_of_commands.json.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from . import growth, growth_of_commands

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
RESULTS = Path(__file__).with_name("results.json")
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    PAGE.write_text(write_page(PAGE.read_text("utf-8")), "utf-8")


def write_page(text: str) -> str:
    """The page with its tables as they are now."""
    results = json.loads(RESULTS.read_text("utf-8"))
    rows: list[dict[str, Any]] = results["rows"]
    beside = [row for row in rows if ", × of " in row["job"] or "in a pipe" in row["job"]]
    judged = [row for row in rows if row["must"] is not None and row not in beside]
    others = [row for row in rows if row["must"] is None and row["value"] is not None]
    found = growth_of_commands.load()
    kernels = json.loads(growth.RESULT.read_text("utf-8"))
    tables = {
        "machine": describe(results["machine"]),
        "beside": list_results(beside),
        "judged": list_results(judged),
        "others": list_results(others),
        "growth": describe(found["machine"]) + "\n" + growth_of_commands.table(found),
        "kernels": describe(kernels["machine"]) + "\n" + list_growth(kernels),
    }
    return BLOCK.sub(lambda block: f"{block[1]}\n{tables[block[2]].strip()}\n\n{block[3]}", text)


def describe(machine: dict[str, str]) -> str:
    return (
        f"howsure {machine['howsure']}, {machine['when']}: {machine['cores']} cores of "
        f"{machine['processor']}, Python {machine['python']}, NumPy {machine['numpy']}.\n"
    )


def list_results(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "Not measured since this table was added; `make bench` measures it.\n"
    lines = ["| job | measured | must | moonshot | | in detail |", "|---|---:|---:|---:|---|---|"]
    for row in rows:
        sign = "≥" if row["more_is_better"] else "≤"
        limits = [f"{sign} {row[name]:g}" if row[name] else "" for name in ("must", "moonshot")]
        verdict = f"**{row['verdict']}**" if row["verdict"] == "missed" else row["verdict"]
        value = f"{row['value']:.3g} {row['unit']}".replace("e+", "e")
        cells = (row["job"].strip(), value, *limits, verdict, row["detail"])
        lines.append("| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def list_growth(found: dict[str, Any]) -> str:
    """Nanoseconds per sample, and per logit."""
    lines: list[str] = []
    for part, x, unit in (("samples", "n", "sample"), ("classes", "k", "logit")):
        sizes = [f"{int(size):,}" for size in found[part][x]]
        lines += [
            f"| ns per {unit}, {part} | {' | '.join(sizes)} |",
            "|---|" + "---:|" * len(sizes),
        ]
        for name, values in found[part].items():
            if name != x:
                lines.append(f"| {name} | {' | '.join(f'{v:.3g}' for v in values)} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
