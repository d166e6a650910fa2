"""Small files that unpack to much are refused or read in little memory, by every command that reads
files.
"""

import gzip
from pathlib import Path

import pytest
from benchmarks.attack.bombs import BOMBS, Bomb
from benchmarks.attack.child import run
from benchmarks.attack.logs import LOGS, SAMPLE, archive

import howsure as hs
from howsure import InputError, Predictions
from howsure._core.file_access import FREE_BYTES, Budget, read_allowed_bytes
from howsure.policies import Policy

MEGABYTES = 600  # torch and pyarrow take up to 300 when they are only imported


@pytest.mark.long
@pytest.mark.parametrize("command", ["doctor", "evaluate"])
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_a_small_file_takes_little_memory(bomb: Bomb, command: str, tmp_path: Path) -> None:
    pytest.importorskip(bomb.package)
    found = run([command, bomb.make(tmp_path)])
    assert found.fault(MEGABYTES) == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "bomb", [bomb for bomb in BOMBS if bomb.streamed], ids=lambda bomb: bomb.name
)
def test_a_pipe_takes_little_memory(bomb: Bomb, tmp_path: Path) -> None:
    hs.save(Policy("max_prob", 0.8), tmp_path / "policy.json")
    found = run(
        ["decide", tmp_path / "policy.json", "-", "--on-bad", "skip"], stdin=bomb.make(tmp_path)
    )
    assert found.fault(MEGABYTES) == ""


def test_the_budget_grows_with_the_file_and_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    Budget("a.npz", 1000).spend(FREE_BYTES)
    with pytest.raises(InputError, match="HOWSURE_MAX_BYTES=18M"):
        Budget("a.npz", 1000).spend(FREE_BYTES + 1)
    Budget("a.npz", FREE_BYTES).spend(100 * FREE_BYTES)
    monkeypatch.setenv("HOWSURE_MAX_BYTES", "1G")
    Budget("a.npz", 1000).spend(1 << 30)
    with pytest.raises(InputError, match="would unpack to"):
        Budget("a.npz", 1000).spend((1 << 30) + 1)
    for wrong in ("much", "-1", "1e9"):
        monkeypatch.setenv("HOWSURE_MAX_BYTES", wrong)
        with pytest.raises(InputError, match="a number of bytes such as 8G"):
            read_allowed_bytes()


def packed(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_what_json_becomes_counts(tmp_path: Path) -> None:
    """The text of these files is well within the budget; the lists that it becomes are not."""
    lists = "[" + ",".join(["[]"] * 400_000) + "]"
    cells = '"[' + ",".join(["[]"] * 40_000) + ']",0\n'
    log = {**LOGS["inspect"], "samples": [{**SAMPLE, "note": [[]] * 400_000}]}
    files = [
        packed(
            tmp_path / "line.jsonl.gz", f'{{"confidence": 0.5, "correct": 1, "note": {lists}}}\n'
        ),
        packed(tmp_path / "cells.csv.gz", "logits,label\n" + cells * 10),
        archive(tmp_path / "log.eval", log),
    ]
    for path in files:
        assert path.stat().st_size < 20_000
        with pytest.raises(InputError, match="would unpack to"):
            hs.read(path)


def test_all_runs_that_the_doctor_holds_count(tmp_path: Path) -> None:
    row = ",".join(["10"] * 20) + ",0\n"
    path = packed(
        tmp_path / "a.csv.gz", ",".join(f"logit_{i}" for i in range(20)) + ",label\n" + row * 20_000
    )
    assert hs.read(path).n == 20_000
    assert "would unpack to" in str(hs.formats.problems(path)[0])
    line = '{"logits": [' + "10, " * 19 + '0], "label": 0}\n'
    path = packed(tmp_path / "a.jsonl.gz", line * 40_000)
    assert hs.read(path).n == 40_000
    assert "would unpack to" in str(hs.formats.problems(path)[0])


def test_a_count_beyond_memory_is_refused() -> None:
    with pytest.raises(InputError, match="would need"):
        Predictions.from_confidence([0.5, 0.6], [1, 0], count=[10**12, 1])
