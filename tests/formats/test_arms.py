"""Tables that hold the answers of several models to the same records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import howsure as hs
from howsure.predictions.read_options import ReadOptions

ROWS = [(arm, i, 0.5 + i / 10, i % 2) for arm in ("x", "y") for i in range(4)]


@pytest.mark.parametrize("confidence", ["confidence", "top1_confidence"])
@pytest.mark.parametrize("key", ["id", "item_id"])
def test_arms_of_a_csv_file_are_asked_for(tmp_path: Path, key: str, confidence: str) -> None:
    path = tmp_path / "a.csv"
    lines = [f"{arm},{i},{p},{right}" for arm, i, p, right in ROWS]
    path.write_text("\n".join([f"arm,{key},{confidence},correct", *lines]) + "\n")
    with pytest.raises(hs.InputError, match=r"2 values of 'arm' \(x, y\).*--where arm=x"):
        hs.read(path)
    assert hs.read(path, options=ReadOptions(where={"arm": "y"})).n == 4
    with pytest.raises(hs.InputError, match="has no row with arm=z"):
        hs.read(path, options=ReadOptions(where={"arm": "z"}))


def test_arms_of_json_lines_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    names = ("model", "item_id", "confidence", "correct")
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in ROWS))
    with pytest.raises(hs.InputError, match="--where model=x"):
        hs.read(path)
    assert hs.read(path, options=ReadOptions(where={"model": "x"})).n == 4


def test_one_arm_per_id_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("arm,item_id,confidence,correct\nx,1,0.9,1\nx,1,0.8,0\ny,2,0.7,1\n")
    assert hs.read(path).n == 3
