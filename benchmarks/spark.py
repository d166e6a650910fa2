"""Spark: each batch of rows becomes a summary, and summaries are added. `python -m benchmarks.spark`, in an
environment with pyspark, pandas and pyarrow and with Java (`make spark`), compares with one process, then kills a
Python worker: the result must be right where Spark tries a task again, and a named error where it does not.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import howsure as hs

ROWS = 200_000
METRICS = ("accuracy", "aurc", "auroc", "ece", "coverage_at_risk_0.05")


def summarise(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        out = io.BytesIO()
        hs.Summary.of(hs.Predictions.from_frame(frame)).save(out)
        yield pd.DataFrame({"summary": [out.getvalue()]})


def evaluate_table(table: Any, map_rows: Any = summarise) -> Any:
    rows = table.mapInPandas(map_rows, "summary binary").collect()
    parts = [hs.Summary.load(io.BytesIO(row.summary)) for row in rows]
    return hs.evaluate(sum(parts[1:], start=parts[0]))


def die_once(marker: Path) -> Any:
    """The same, but the first worker that comes here is killed."""

    def map_rows(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        try:
            marker.touch(exist_ok=False)
        except FileExistsError:
            yield from summarise(frames)
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return map_rows


def start(master: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master(master).appName("howsure")
    session = session.config("spark.ui.enabled", "false")
    session = session.config("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    spark = session.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main() -> int:
    rng = np.random.default_rng(0)
    confidence = rng.beta(4, 1, ROWS)
    correct = rng.random(ROWS) < confidence
    frame = pd.DataFrame({"confidence": confidence, "correct": correct})
    own = hs.evaluate(hs.Predictions.from_confidence(confidence, correct))
    failed = 0
    for master, dies in (("local[2]", False), ("local[2,4]", True), ("local[2]", True)):
        spark = start(master)
        table = spark.createDataFrame(frame).repartition(8)
        with tempfile.TemporaryDirectory() as folder:
            map_rows = die_once(Path(folder) / "killed") if dies else summarise
            try:
                report = evaluate_table(table, map_rows)
            except (PySparkException, Py4JJavaError) as e:
                crashed = "Python worker exited unexpectedly" in str(e)
                print(f"{master}, worker killed {dies}: {type(e).__name__}, crash named {crashed}")
                failed += not (dies and crashed)
            else:
                gap = max(abs(report[name] - own[name]) for name in METRICS)
                print(f"{master}, worker killed {dies}: largest difference {gap:.1e}")
                failed += gap > 1e-12
        spark.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main())
