"""What is wrong with files is said in one sentence that names them; nothing is guessed, nothing is
half-written.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.cli import main
from howsure.scale import many_files, parts
from howsure.scale.many_files import gather
from howsure.scale.parts import PartResult

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Prepared = Callable[..., Any]


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """The command: its exit code, what it prints, and what it says on standard error."""

    def call(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["howsure", "evaluate", *args])
        with pytest.raises(SystemExit) as stop:
            main(["evaluate", *args])
        return int(stop.value.code or 0), *capsys.readouterr()

    return call


def damaged(path: Path, group: int, byte: int) -> None:
    """Overwrite the pages of one row group."""
    column = pq.ParquetFile(path).metadata.row_group(group).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + column.total_compressed_size] = (
        bytes([byte]) * column.total_compressed_size
    )
    path.write_bytes(bytes(data))


BYTES = [0x00, 0x15, 0x4C, 0x80, 0xFF]  # some look like the header of a page, some do not


@pytest.mark.parametrize("byte", BYTES)
def test_a_damaged_row_group_is_named(tables: list[Path], prepared: Prepared, byte: int) -> None:
    damaged(tables[1], 2, byte)
    with pytest.raises(
        InputError, match=r"part-1\.parquet, row group 2, from row 500 on: .*not a readable table"
    ):
        gather(*prepared(tables), map)


@pytest.mark.parametrize("byte", BYTES)
def test_a_damaged_row_group_is_skipped_if_asked(
    tables: list[Path], prepared: Prepared, whole: PartResult, byte: int
) -> None:
    damaged(tables[1], 2, byte)
    found = gather(*prepared(tables, skip_corrupt=True), map)
    assert found.summary is not None
    assert found.summary.files == {0: 1_000, 1: 750, 2: 1_000}
    assert len(found.parts) == len(whole.parts)
    assert [("part-1.parquet" in note, "row group 2" in note) for note in found.skipped] == [
        (True, True)
    ]


def test_a_file_without_a_footer_is_skipped_if_asked(
    tables: list[Path], run: Callable[..., Any]
) -> None:
    tables[0].write_bytes(tables[0].read_bytes()[:-20])
    code, _, err = run(*map(str, tables), "--stream")
    assert (code, err.count("\n")) == (2, 1)
    assert "part-0.parquet is not a readable table" in err
    code, out, _ = run(*map(str, tables), "--skip-corrupt", "--json")
    report = json.loads(out)
    assert (code, report["n"], len(report["streamed"]["skipped"])) == (0, 2_000, 1)
    assert report["findings"][0]["name"] == "skipped"
    assert "part-0.parquet" in report["findings"][0]["text"]


def test_bad_values_are_never_skipped(tables: list[Path], prepared: Prepared) -> None:
    table = pa.table({"confidence": [0.5, 2.0], "correct": [True, False]})
    pq.write_table(table, tables[2])
    with pytest.raises(InputError, match=r"part-2\.parquet, row group 0.*confidence\[1\] is 2"):
        gather(*prepared(tables, skip_corrupt=True), map)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"conf": [0.5], "correct": [True]},
            "has conf for confidence, .*part-0.parquet has confidence",
        ),
        (
            {"confidence": [0.5], "correct": [True], "label": [1]},
            "has label for labels, .* has nothing",
        ),
        ({"probs": [[0.5, 0.5]], "label": [1]}, "has probs for the values, .* has confidence"),
    ],
)
def test_tables_of_other_columns_are_named_before_anything_is_read(
    tables: list[Path], prepared: Prepared, columns: dict[str, Any], said: str
) -> None:
    pq.write_table(pa.table(columns), tables[2])
    with pytest.raises(InputError, match=f"part-2.parquet {said}"):
        prepared(tables)


def test_arrays_of_another_kind_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=np.eye(3), labels=np.arange(3))
    np.savez(tmp_path / "b.npz", logits=np.eye(2), labels=np.arange(2))
    with pytest.raises(InputError, match=r"differ in the number of classes \(3 and 2\)"):
        hs.evaluate_files([tmp_path / "a.npz", tmp_path / "b.npz"], map=map)


def test_the_same_file_twice_is_refused(tables: list[Path], prepared: Prepared) -> None:
    with pytest.raises(InputError, match=r"part-0\.parquet is given twice"):
        prepared([tables[0], tables[0].parent / "*.parquet"])


def test_a_file_that_changes_under_way_is_refused(tables: list[Path], prepared: Prepared) -> None:
    job, task = prepared(tables)
    os.utime(tables[1], ns=(0, 0))
    with pytest.raises(InputError, match=r"part-1\.parquet changed while it was being evaluated"):
        gather(job, task, map)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("none-*.parquet",), "no file matches 'none-*.parquet'."),
        (("none.parquet", "--stream"), "none.parquet does not exist."),
        (
            ("part-0.parquet", "--scheduler", "tcp://127.0.0.1:9"),
            "no scheduler answers at tcp://127.0.0.1:9",
        ),
        (("part-0.parquet", "--scheduler", "here"), "'here' is not the address of a scheduler"),
        (
            ("part-0.parquet", "--workers", "2", "--scheduler", "tcp://127.0.0.1:9"),
            "give one of them",
        ),
        (
            ("part-0.parquet", "--resume", "part-1.parquet"),
            "part-1.parquet is a file; a folder is needed",
        ),
        (("part-0.parquet", "--resume", "no/where"), "no/where: no such file or directory"),
        (("part-0.parquet", "--no-stream", "--compact"), "--compact is for streams"),
        (
            ("part-0.parquet", "--stream", "--images", "x.npy"),
            "--images needs all predictions at once",
        ),
        (
            ("part-0.parquet", "--compact", "--score", "log_max_prob"),
            "log_max_prob is not in [0, 1]",
        ),
        (("part-0.parquet", "--stream", "--score", "max_pob"), "Did you mean max_prob?"),
    ],
)
def test_mistakes_are_one_sentence(
    tables: list[Path],
    run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
    said: str,
) -> None:
    if "--scheduler" in args:
        pytest.importorskip("distributed")
    monkeypatch.chdir(tables[0].parent)
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err


def test_a_full_disk_leaves_nothing_half_written(
    tables: list[Path], run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("howsure._core.file_access.os.fsync", full)
    code, out, err = run(
        *map(str, tables), "--resume", str(tmp_path / "done"), "-o", str(tmp_path / "report.json")
    )
    assert (code, out) == (2, "")
    assert "cannot be written: No space left on device" in err
    assert list((tmp_path / "done").iterdir()) == []
    assert not (tmp_path / "report.json").exists()


def test_large_files_are_streamed_and_this_is_announced(
    tables: list[Path], run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howsure.formats.contents.LARGE_ROWS", 2_500)
    code, out, err = run(*map(str, tables), "--json")
    assert (code, "3,000 rows, read as a stream; --no-stream" in err) == (0, True)
    assert json.loads(out)["streamed"]["of"] == 12
    code, out, err = run(str(tables[0]), "--json")
    assert (code, "stream" in err, "streamed" in json.loads(out)) == (0, False, False)
    assert json.loads(out)["provenance"]["receipt"]["text"] in err


def test_patterns_are_filled_in_without_a_stream_too(
    tables: list[Path], run: Callable[..., Any]
) -> None:
    code, out, _ = run(str(tables[0].parent / "part-*.parquet"), "--no-stream", "--json")
    streamed = json.loads(run(str(tables[0].parent / "part-*.parquet"), "--json")[1])
    assert (code, json.loads(out)["metrics"]) == (0, streamed["metrics"])


def test_an_address_needs_a_stream(run: Callable[..., Any]) -> None:
    code, _, err = run("memory://a.parquet", "--no-stream")
    assert code == 2
    assert (
        "memory://a.parquet is an address, which can only be streamed; leave out --no-stream" in err
    )


def test_an_interrupt_prints_what_there_is_and_exits_130(
    tables: list[Path], run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = iter(range(100))

    def interrupted(*args: Any, **how: Any) -> PartResult:
        if next(count) == 5:
            raise KeyboardInterrupt
        return parts.load_or_summarise(*args, **how)

    monkeypatch.setattr(many_files, "load_or_summarise", interrupted)
    code, out, err = run(*map(str, tables), "--stream", "--json")
    report = json.loads(out)
    assert (code, report["streamed"]["partial"]) == (130, True)
    assert 0 < report["streamed"]["parts"] < report["streamed"]["of"]
    assert "interrupted; this is the result of what was read by then" in err


def test_addresses_go_through_fsspec(
    tables: list[Path], prepared: Prepared, whole: PartResult, equal: Any
) -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    for path in tables:
        fs.pipe_file(f"/rows/{path.name}", path.read_bytes())
    np.savez(tables[0].parent / "x.npz", confidence=np.array([0.9, 0.8]), correct=np.array([1, 0]))
    fs.pipe_file("/other/x.npz", (tables[0].parent / "x.npz").read_bytes())
    try:
        assert equal(gather(*prepared("memory://rows/*.parquet"), map), whole)
        found = gather(*prepared("memory://other/x.npz"), map)
        assert found.summary is not None
        assert found.summary.n == 2
        with pytest.raises(InputError, match=r"no file matches 'memory://rows/\*\.npz'"):
            prepared("memory://rows/*.npz")
        with pytest.raises(InputError, match=r"memory://rows/none\.parquet does not exist"):
            prepared("memory://rows/none.parquet")
    finally:
        fs.rm("/rows", recursive=True)
        fs.rm("/other", recursive=True)
