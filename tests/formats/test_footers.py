"""Footers of Parquet: counted as pyarrow counts them, and a damaged one never ends the process."""

import io
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.formats import arrow
from howsure.formats.unpacked_sizes import read_row_groups

# Every byte of the footer is changed twice; a signal of the process would be its exit code.
EVERY_BYTE = """
import struct, sys
from pathlib import Path
import howsure as hs
good, bad = map(Path, sys.argv[1:])
raw = good.read_bytes()
(length,) = struct.unpack("<I", raw[-8:-4])
for at in range(len(raw) - 8 - length, len(raw) - 8):
    for bit in (1, 16):
        bad.write_bytes(raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1 :])
        try:
            print("read" if hs.read(bad).n else "empty")
        except hs.InputError as e:
            print("refused" if "\\n" not in str(e) else e)
"""


def test_a_damaged_footer_never_ends_the_process(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    hs.write(hs.Predictions.from_confidence([0.9, 0.2], [1, 0]), good)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", EVERY_BYTE, good, bad], capture_output=True, text=True, env=env
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) == {"read", "refused"}


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_row_groups_are_those_of_pyarrow(compression: str) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    table = pa.table({"confidence": rng.random(1000), "id": [f"row {i % 7}" for i in range(1000)]})
    file = io.BytesIO()
    parquet.write_table(table, file, row_group_size=300, compression=compression)
    stated = parquet.ParquetFile(file).metadata
    found = read_row_groups(file)
    assert [group.rows for group in found] == [300, 300, 300, 100]
    for i, group in enumerate(found):
        theirs = [stated.row_group(i).column(j) for j in range(2)]
        starts = [
            min(at for at in (c.dictionary_page_offset, c.data_page_offset) if at) for c in theirs
        ]
        assert [c.start for c in group.chunks] == starts
        assert [c.length for c in group.chunks] == [c.total_compressed_size for c in theirs]
        assert [c.values for c in group.chunks] == [c.num_values for c in theirs]
        assert [c.bytes for c in group.chunks] == [c.total_uncompressed_size for c in theirs]
        assert group.bytes == max(
            sum(max(c.bytes, 8 * c.values) for c in group.chunks), 8 * group.rows
        )


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"PAR1PAR1", "it ends too early"),
        (b"PAR1" + struct.pack("<I", 5) + b"PAR1", "its footer has no size"),
        (b"PAR1" + b"\x49" + struct.pack("<I", 1) + b"PAR1", "its footer is not complete"),
        (b"PAR1" + b"\x49\x15\x00" + struct.pack("<I", 3) + b"PAR1", "a list of something else"),
        (
            b"PAR1" + b"\x49\x1c\x36\x01\x00\x00" + struct.pack("<I", 6) + b"PAR1",
            "a negative count",
        ),
        (
            b"PAR1" + b"\x49\x1c\x19\x1c\x00\x00\x00" + struct.pack("<I", 7) + b"PAR1",
            "a column that is elsewhere",
        ),
    ],
)
def test_footers_that_make_no_sense(raw: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_row_groups(io.BytesIO(raw))


def test_a_mistake_of_ours_is_no_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had been reported as one."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"confidence": [0.9], "correct": [1]}), tmp_path / "a.parquet")
    monkeypatch.setattr(arrow, "_measure_group", lambda *_: undefined_name)  # type: ignore[name-defined]  # noqa: F821
    with pytest.raises(NameError):
        arrow.read_outline(tmp_path / "a.parquet")
