"""Make Parquet files of many predictions: a float32 confidence with right or wrong, as of a network
of ten classes.

    python -m benchmarks.rows_1e8 FOLDER [--rows 100000000] [--files 10] [--group 1048576]

Row group i is drawn with seed i, so the data are the same on every machine and for every number of
files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def chunk(number: int, rows: int) -> pa.Table:
    """Confidences in [0.1, 1], most of them near 1, of a network that claims a little too much."""
    rng = np.random.default_rng(number)
    logit = rng.normal(4.0, 2.5, rows).clip(min=0.0)
    confidence = (1 / (1 + 9 * np.exp(-logit))).astype(np.float32)
    correct = rng.random(rows) < confidence**1.3
    return pa.table({"confidence": confidence, "correct": correct})


def make(folder: Path, rows: int, files: int, group: int) -> None:
    """Write the files, one row group after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [min(group, rows - start) for start in range(0, rows, group)]
    for file, numbers in enumerate(np.array_split(np.arange(len(sizes)), files)):
        tables = (chunk(int(i), sizes[i]) for i in numbers)
        with pq.ParquetWriter(folder / f"part-{file:03d}.parquet", chunk(0, 1).schema) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=group)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--group", type=int, default=1 << 20)
    given = parser.parse_args()
    make(given.folder, given.rows, given.files, given.group)
