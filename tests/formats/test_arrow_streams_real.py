"""Arrow streams as real tools hand them out: a DuckDB relation, a RecordBatchReader."""

import numpy as np
import pytest

import howsure as hs

RNG = np.random.default_rng(2)
SURE = RNG.random(300)
RIGHT = RNG.random(300) < SURE


def test_a_duckdb_relation() -> None:
    duckdb = pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"confidence": SURE, "correct": RIGHT})
    with duckdb.connect() as connection:
        connection.register("answers", table)
        relation = connection.sql("select * from answers where confidence >= 0.2")
        preds = hs.Predictions.from_frame(relation)
    kept = SURE >= 0.2
    assert preds.n == kept.sum()
    assert hs.aurc(preds) == pytest.approx(hs.aurc(SURE[kept], RIGHT[kept]), abs=1e-12)


def test_a_record_batch_reader() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"confidence": SURE, "correct": RIGHT})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=64))
    report = hs.evaluate(reader)
    assert report.data["n"] == 300
    assert report.data["metrics"]["aurc"]["value"] == pytest.approx(hs.aurc(SURE, RIGHT))
