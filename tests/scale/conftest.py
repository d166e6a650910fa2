"""Small tables in many parts, and how two reports or two results are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.scale import many_files
from howsure.scale.many_files import Job, expand_paths, gather, plan_parts
from howsure.scale.parts import PartResult, Settings, load_or_summarise


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 250 rows, so that little data makes many of them."""
    monkeypatch.setattr(many_files, "PART_ROWS", 250)


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    """Three Parquet files of 1,000 confidences each, four row groups in each of them."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(3)
    paths = [tmp_path / f"part-{i}.parquet" for i in range(3)]
    for path in paths:
        score = rng.beta(4, 1, 1_000).astype(np.float32)
        table = pa.table({"confidence": score, "correct": rng.random(1_000) < score**1.4})
        pq.write_table(table, path, row_group_size=250)
    return paths


@pytest.fixture
def prepared() -> Callable[..., tuple[Job, Any]]:
    """The parts of some files, and what is done with each."""

    def prepare(paths: Any, folder: Path | None = None, **how: Any) -> tuple[Job, Any]:
        settings = Settings(**how)
        task = partial(
            load_or_summarise, settings=settings, folder=None if folder is None else str(folder)
        )
        return plan_parts(expand_paths(paths), settings), task

    return prepare


@pytest.fixture
def equal() -> Callable[[PartResult, PartResult], bool]:
    """Whether two results are the same: counts and ranks to the last bit, float sums to 1e-12."""

    def compare(a: PartResult, b: PartResult) -> bool:
        (counts, sums), (other_counts, other_sums) = plain(a), plain(b)
        if counts != other_counts or sums.keys() != other_sums.keys():
            return False
        return all(np.allclose(sums[x], other_sums[x], rtol=1e-12, atol=1e-12) for x in sums)

    return compare


@pytest.fixture
def whole(tables: list[Path], prepared: Callable[..., tuple[Job, Any]]) -> PartResult:
    """The result of the tables, part after part."""
    return gather(*prepared(tables), map)


def plain(g: PartResult) -> tuple[Any, dict[str, Any]]:
    """What of a result is the same to the last bit, in Python's own types, and its float sums."""
    s = g.summary
    assert s is not None
    tallies = {
        name: [c.tolist() for c in (t.score, t.count, t.loss)] for name, t in s.tallies.items()
    }
    sums: dict[str, Any] = {f"losses.{name}": list(m) for name, m in s.losses.items()}
    counts: list[Any] = []
    for kind, value in (("classes", s.classes), ("cells", s.cells)):
        for name, v in ({} if value is None else vars(value)).items():
            if isinstance(v, np.ndarray) and v.dtype.kind == "f":
                sums[f"{kind}.{name}"] = v
            else:
                counts.append((kind, name, _listed(v)))
    exact = (
        g.parts,
        g.skipped,
        s.shape,
        s.files,
        s.suspects,
        tallies,
        _listed(s.sample),
        counts,
    )
    return exact, sums


def _listed(v: Any) -> Any:
    return v.tolist() if isinstance(v, np.ndarray) else v
