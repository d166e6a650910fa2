"""All numbers of all real sets, by an older source tree and by this one: `python -m
benchmarks.unchanged OLD/src`.

Each set is evaluated by both in processes of their own, and numbers at the same place of both
reports are compared: values to 1e-12, limits to 1e-9, relative where they are above 1. What differs
or is missing is listed by its place, and then the exit code is 1. An older tree:
`git archive COMMIT src | tar x -C OLD`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SHARED = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared"))
SOURCE = Path(__file__).parents[1] / "src"
CLOSE_VALUE = 1e-12
CLOSE_LIMIT = 1e-9
LIMIT_KEYS = ("low", "high", "p_value")
WORDS_AND_ORIGIN = ("provenance", "howsure", "schema", "findings", "verdict")
RENAMED_KEYS = {"promise": "guarantee"}  # in schema 2
PROGRAM = """
import sys, warnings
import howsure as hs
warnings.simplefilter("ignore")
try:
    preds = hs.read(sys.argv[1])
except hs.InputError:
    preds = hs.read(sys.argv[1], split="test")
print(hs.evaluate(preds).to_json())
"""
Place = tuple[str, ...]


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print("usage: python -m benchmarks.unchanged OLD/src", file=sys.stderr)
        return 2
    compared = 0
    differences: Counter[str] = Counter()
    for file in sorted((SHARED / "data").glob("*.npz")):
        if file.name == "membrane_images.npz":  # images without predictions
            continue
        before = dict(list_numbers(evaluate_by(Path(argv[0]), file)))
        now = dict(list_numbers(evaluate_by(SOURCE, file)))
        for place in before.keys() | now.keys():
            compared += 1
            if not are_close(before.get(place, "absent"), now.get(place, "absent"), place[-1]):
                differences["/".join(part for part in place if not part.isdigit())] += 1
    print(f"{compared:,} numbers compared, {sum(differences.values()):,} differ")
    for place, count in differences.most_common():
        print(f"{count:8,}  {place}")
    return 1 if differences else 0


def evaluate_by(source: Path, file: Path) -> object:
    """The report that a source tree makes of a file."""
    environment = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{file.name} by {source}: {done.stderr[-800:]}")
    return json.loads(done.stdout)


def list_numbers(node: object, place: Place = ()) -> Iterator[tuple[Place, object]]:
    """Every number of a report by its place; None where it says that there is none."""
    if isinstance(node, dict):
        for key, value in node.items():
            if place or key not in WORDS_AND_ORIGIN:
                yield from list_numbers(value, (*place, RENAMED_KEYS.get(key, key)))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from list_numbers(value, (*place, str(i)))
    elif node is None or isinstance(node, (int, float)):
        yield place, node


def are_close(before: object, now: object, key: str) -> bool:
    if not isinstance(before, (int, float)) or not isinstance(now, (int, float)):
        return before == now
    tolerance = CLOSE_LIMIT if key in LIMIT_KEYS else CLOSE_VALUE
    return abs(before - now) <= tolerance * max(1.0, abs(before))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
