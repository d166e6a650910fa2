"""All numbers of all real sets, by an older source tree and by this one: `python -m benchmarks.unchanged OLD/src`.

Each set is evaluated by both in processes of their own. Numbers at the same place of both reports are compared; those
that are further apart than 1e-12 are listed by name with the worst of them, limits apart from values.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared"))
SOURCE = Path(__file__).parents[1] / "src"
CLOSE = 1e-12
APART = ("provenance", "howsure", "schema", "findings", "verdict")  # words, and what says who computed it
LIMITS = ("low", "high", "p_value")
PROGRAM = """
import sys, warnings
import howsure as hs
warnings.simplefilter("ignore")
def read(path):
    try:
        return hs.read(path)
    except hs.InputError:
        return hs.read(path, split="test")
print(hs.evaluate(read(sys.argv[1])).to_json())
"""


def report(source: Path, file: Path) -> Any:
    """The report that a source tree makes of a file."""
    environment = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{file.name} by {source}: {done.stderr[-800:]}")
    return json.loads(done.stdout)


def numbers(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float | None]]:
    """Every number of a report by its place; None where it says that there is none."""
    if isinstance(node, dict):
        for key, value in node.items():
            if path or key not in APART:
                yield from numbers(value, (*path, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from numbers(value, (*path, str(i)))
    elif node is None or (isinstance(node, int | float) and not isinstance(node, bool)):
        yield path, node


def same(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)


def name_of(path: tuple[str, ...]) -> str:
    """The place without rows of curves."""
    return ".".join("*" if part.isdigit() else part for part in path)


def main(argv: list[str]) -> int:
    if not argv:
        print("usage: python -m benchmarks.unchanged OLD/src [SET…]", file=sys.stderr)
        return 2
    old, files = Path(argv[0]).resolve(), sorted((SHARED / "data").glob("*.npz"))
    counts, changed = {"values": [0, 0], "limits": [0, 0]}, dict[str, tuple[int, float, str]]()
    for file in [f for f in files if f.stem != "membrane_images" and (not argv[1:] or f.stem in argv[1:])]:
        before, after = (dict(numbers(report(source, file))) for source in (old, SOURCE))
        shared = before.keys() & after.keys()
        for path in shared:
            kind = counts["limits" if any(part in LIMITS for part in path) else "values"]
            kind[0] += 1
            if not same(before[path], after[path]):
                kind[1] += 1
                a, b = before[path], after[path]
                apart = float("inf") if a is None or b is None else abs(a - b)
                many, worst, where = changed.get(name_of(path), (0, -1.0, ""))
                worst, where = (apart, f"{file.stem}: {a} → {b}") if apart > worst else (worst, where)
                changed[name_of(path)] = many + 1, worst, where
        print(
            f"{file.stem}: {len(shared):,} numbers in both, {len(before) - len(shared):,} only before, "
            f"{len(after) - len(shared):,} only now",
            flush=True,
        )
    for kind, (all_, other) in counts.items():
        print(f"{kind}: {all_:,} compared, {other:,} differ by more than {CLOSE:g}")
    for name, (many, worst, where) in sorted(changed.items()):
        print(f"  {name}: {many:,}, at most {worst:.3g} ({where})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
