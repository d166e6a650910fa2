"""`python -m benchmarks.receipt`: what the receipt costs, as a share of the command that tells it.

Counted in one process: CPU time inside `build_receipt` and `add_receipt` and in writing the
sentence, over CPU time of `howsure evaluate FILE --json` from its arguments to its output.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from howsure.cli.main import run
from howsure.formats import files
from howsure.predictions.read_options import Receipt

RUNS = 15
ROWS = 10_000


def measure(path: Path) -> tuple[float, float]:
    """The median share and the median CPU milliseconds of the receipt."""
    spent = [0.0]

    def count(step: Callable[..., Any]) -> Callable[..., Any]:
        def step_and_count(*args: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return step(*args, **named)
            finally:
                spent[0] += time.process_time() - start

        return step_and_count

    kept = files.build_receipt, files.add_receipt, Receipt.__str__
    files.build_receipt, files.add_receipt = count(kept[0]), count(kept[1])
    Receipt.__str__ = count(kept[2])  # type: ignore[method-assign]
    shares: list[float] = []
    costs: list[float] = []
    try:
        for _ in range(RUNS):
            spent[0] = 0.0
            start = time.process_time()
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                run(["evaluate", str(path), "--json"])
            shares.append(spent[0] / (time.process_time() - start))
            costs.append(1e3 * spent[0])
    finally:
        files.build_receipt, files.add_receipt = kept[0], kept[1]
        Receipt.__str__ = kept[2]  # type: ignore[method-assign]
    return median(shares), median(costs)


def main() -> None:
    """Print the share for arrays, for a table of ten classes, and for one of few columns."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, ROWS)
    logits = 3 * np.eye(10)[labels] + rng.normal(size=(ROWS, 10))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "logits.npz", logits=logits, labels=labels)
        head = ",".join([*(f"prob_{i}" for i in range(10)), "label"])
        table = np.column_stack([probs, labels])
        np.savetxt(folder / "probs.csv", table, delimiter=",", header=head, comments="")
        sure = np.column_stack([probs.max(axis=1), probs.argmax(axis=1) == labels])
        np.savetxt(
            folder / "sure.csv", sure, delimiter=",", header="confidence,correct", comments=""
        )
        for path in sorted(folder.iterdir()):
            share, cost = measure(path)
            print(f"{path.name}: {100 * share:.3f} % of the command, {cost:.2f} ms CPU")


if __name__ == "__main__":
    main()
