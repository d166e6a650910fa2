"""How fast is the log of a decision model read, beside parsing its lines, and in how much memory?

    python -m benchmarks.decision_logs --records 200000

A log of records with five questions each (yes/no, three choices, a score), their labels beside
them, two decimals. CPU seconds of `json.loads` on every line, and of reading the log with its labels
as `howsure threshold` does, in a process of its own whose peak of memory is printed; for a tenth of
the records and for all of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

READ = """
import resource, sys, time
import howsure as hs
from howsure.predictions.read_options import ReadOptions
start = time.process_time()
preds = hs.read(sys.argv[1], options=ReadOptions(kind="confidence"))
took = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(preds.n, took, peak)
"""


def write_log(path: Path, records: int, seed: int = 0) -> None:
    """Records with five answers each."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for i in range(records):
            p = np.round(rng.dirichlet([0.3] * 3, size=4), 2)
            answers: dict[str, object] = {"late": {"type": "noul", "noul": float(p[0, 0])}}
            for j, name in enumerate(("team", "kind", "place")):
                row = p[j].tolist()
                answers[name] = {
                    "type": "choice",
                    "choice": "abc"[int(np.argmax(row))],
                    "confidence": max(0.0, round((3 * max(row) - 1) / 2, 2)),
                    "probabilities": dict(zip("abc", row, strict=True)),
                }
            answers["severity"] = {
                "type": "score",
                "score": round(float(p[3] @ np.arange(3)), 2),
                "confidence": round(float(p[3].max()), 2),
                "probabilities": dict(zip("012", p[3].tolist(), strict=True)),
            }
            labels = {"late": "yes", "team": "a", "kind": "b", "place": "c", "severity": 1}
            record = {"item_id": f"r{i}", "label": labels, "model": "m-1", "answers": answers}
            file.write(json.dumps(record) + "\n")


def measure_parsing(path: Path) -> float:
    """CPU seconds of parsing each line."""
    start = time.process_time()
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return time.process_time() - start


def measure_reading(path: Path) -> tuple[int, float, float]:
    """Answers, CPU seconds and the peak in megabytes of reading in a process of its own."""
    command = [sys.executable, "-c", READ, str(path)]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(words[0]), float(words[1]), float(words[2])


def main() -> None:
    """Print ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=200_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for records in (args.records // 10, args.records):
            path = Path(folder) / f"{records}.jsonl"
            write_log(path, records)
            parsing = measure_parsing(path)
            answers, reading, peak = measure_reading(path)
            print(
                f"{records:,} records, {answers:,} answers, {path.stat().st_size / 2**20:,.0f} MB: "
                f"json.loads {parsing:.2f} s, reading {reading:.2f} s = {reading / parsing:.2f} x, "
                f"peak {peak:,.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
