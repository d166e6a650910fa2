"""How a file is read, as one value: the same as keywords, exclusive with them, and JSON."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.formats import ReadOptions, problems
from howsure.formats.logs import TOOLS

OPTIONS = ReadOptions(
    split="test",
    names={"probs": ["no", "yes"], "labels": "truth"},
    renormalise=True,
    attributes=("ward",),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "a.csv"
    file.write_text(
        "no,yes,truth,ward,split\n0.9,0.3,0,a,test\n0.5,0.5,1,b,val\n0.2,0.6,1,b,test\n"
    )
    return file


def test_options_read_as_keywords_do(path: Path) -> None:
    keywords = {"split": "test", "names": OPTIONS.names, "renormalise": True}
    by_keywords = hs.read(path, **keywords, attributes=["ward"])
    by_options = hs.read(path, options=OPTIONS)
    assert np.array_equal(by_options.values, by_keywords.values)
    assert by_options.attributes is not None
    assert by_options.attributes["ward"].tolist() == ["a", "b"]
    assert [part.n for part in hs.scan(path, options=OPTIONS, rows=1)] == [1, 1]
    assert problems(path, options=OPTIONS) == problems(path, **keywords) == []


@pytest.mark.parametrize("read", [hs.read, hs.scan, problems])
def test_options_exclude_keywords(path: Path, read: object) -> None:
    with pytest.raises(hs.InputError, match="options is given together with keywords"):
        read(path, options=OPTIONS, mc=True)  # type: ignore[operator]


def test_options_survive_json() -> None:
    stored = json.dumps(asdict(OPTIONS))
    assert ReadOptions(**json.loads(stored)) == OPTIONS


@pytest.mark.parametrize(
    ("name", "readers"),
    [
        # A table of text is made of lines too, and may be the log of a tool.
        ("a.csv", {"delimited", "json_lines", "logs.table_log"}),
        ("a.jsonl", {"json_lines"}),
        ("a.npz", {"npy"}),
    ],
)
def test_only_the_reader_of_the_file_is_imported(
    tmp_path: Path, name: str, readers: set[str]
) -> None:
    hs.write(hs.Predictions.from_confidence([0.9, 0.2], [1, 0]), tmp_path / name)
    code = (
        "import sys, howsure as hs\n"
        "hs.read(sys.argv[1])\n"
        "names = {name.removeprefix('howsure.formats.') for name in sys.modules}\n"
        "print(*names)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / name], capture_output=True, text=True, check=True
    )
    tools = {f"logs.{tool.module}" for tool in TOOLS.values()} | {"logs.helm", "logs.table_log"}
    others = {"arrow", "delimited", "json_lines", "npy", "tensors", "diagnosis", "streams"}
    assert set(done.stdout.split()) & (tools | others) == readers
