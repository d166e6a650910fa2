"""Arrow streams as real tools hand them out: a DuckDB relation, a RecordBatchReader."""

from pathlib import Path

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


def test_categories_that_polars_wrote(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    answer = np.where(RIGHT, "cat", "dog")
    table = pl.DataFrame({"confidence": SURE, "prediction": answer, "label": ["cat"] * 300})
    words = table.with_columns(pl.col("prediction", "label").cast(pl.Categorical))
    words.write_ipc(tmp_path / "words.arrow")
    preds = hs.read(tmp_path / "words.arrow")
    assert hs.accuracy(preds) == RIGHT.mean()
