"""Small files that ask for much memory or time, each made by one small function."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.attack.logs import CHOICE, JUDGED, LOGS, SAMPLE, archive


@dataclass(frozen=True)
class Bomb:
    """A file that is small against what it unpacks to, and the package that is needed to make it."""

    name: str
    make: Callable[[Path], Path]
    package: str = "numpy"
    streamed: bool = False  # it goes through standard input of `decide` too


def parquet_long_string(folder: Path) -> Path:
    """One string of 1 MB in 2,000 rows: the dictionary holds it once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "long_string.parquet"
    ids = pa.DictionaryArray.from_arrays(
        pa.array([0] * 2000, pa.int32()), pa.array(["a" * (1 << 20)])
    )
    columns = {"confidence": [0.5] * 2000, "correct": [1] * 2000, "id": ids, "group": ids}
    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


def parquet_long_lists(folder: Path) -> Path:
    """Twenty lists of 4·10⁶ zeros."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "long_lists.parquet"
    zeros = pa.ListArray.from_arrays(
        np.arange(21, dtype=np.int32) * 4_000_000, pa.array(np.zeros(80_000_000, np.int8))
    )
    table = pa.table({"logits": zeros, "label": [0] * 20})
    pq.write_table(table, path, compression="zstd", data_page_size=1 << 30)
    return path


def parquet_many_rows(folder: Path) -> Path:
    """Twenty constant columns of 10⁷ rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "many_rows.parquet"
    zeros = pa.array(np.zeros(10_000_000, np.int8))
    pq.write_table(
        pa.table({f"logit_{i}": zeros for i in range(20)} | {"label": zeros}),
        path,
        compression="zstd",
    )
    return path


def parquet_plain_zeros(folder: Path) -> Path:
    """Text of 1 MB a row, written plainly and packed well."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "plain_zeros.parquet"
    rows = pa.array(["a" * (1 << 20)] * 1000, pa.large_string())
    table = pa.table({"confidence": [0.5] * 1000, "correct": [1] * 1000, "id": rows})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    return path


def parquet_nested_lists(folder: Path) -> Path:
    """Lists of lists of text, all the same."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "nested_lists.parquet"
    words = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(3_000_000, np.int32)), pa.array(["word"])
    )
    offsets = np.arange(0, 3_000_001, 1000, dtype=np.int32)
    table = pa.table(
        {
            "samples": pa.ListArray.from_arrays(offsets, words.dictionary_decode()),
            "correct": [1] * 3000,
        }
    )
    pq.write_table(table, path, compression="zstd")
    return path


def parquet_lying_footer(folder: Path) -> Path:
    """The same, where the footer says that the column is small: the pages know better."""
    path = parquet_plain_zeros(folder)
    raw = path.read_bytes()
    import pyarrow.parquet as pq

    real = pq.ParquetFile(path).metadata.row_group(0).column(2).total_uncompressed_size
    found, small = _varint(2 * real), _varint(2 * 4000)
    assert raw.count(found) >= 1
    cut = raw.rfind(found)
    wide = (
        small[:-1] + bytes([small[-1] | 0x80]) + b"\x80" * (len(found) - len(small) - 1) + b"\x00"
    )
    lying = folder / "lying_footer.parquet"
    lying.write_bytes(raw[:cut] + wide + raw[cut + len(found) :])
    return lying


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def arrow_packed(folder: Path) -> Path:
    """Zeros in packed buffers."""
    import pyarrow as pa

    path = folder / "packed.arrow"
    zeros = pa.array(np.zeros(50_000_000))
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, pa.schema([("confidence", "f8")]), options=options) as out,
    ):
        out.write_batch(pa.record_batch({"confidence": zeros}))
    return path


def arrow_packed_stream(folder: Path) -> Path:
    """The same in the streaming layout."""
    import pyarrow as pa

    path = folder / "packed_stream.arrow"
    zeros = pa.array(np.zeros(50_000_000))
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    schema = pa.schema([("confidence", "f8")])
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, schema, options=options) as out,
    ):
        out.write_batch(pa.record_batch({"confidence": zeros}))
    return path


def arrow_dictionary_of_lists(folder: Path) -> Path:
    """Rows that all point to one long list."""
    import pyarrow as pa

    path = folder / "dictionary_of_lists.arrow"
    lists = pa.ListArray.from_arrays(np.array([0, 100_000], np.int32), pa.array(np.zeros(100_000)))
    logits = pa.DictionaryArray.from_arrays(pa.array(np.zeros(5000, np.int16)), lists)
    table = pa.record_batch({"logits": logits, "label": pa.array(np.zeros(5000, np.int64))})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, table.schema, options=options) as out,
    ):
        out.write_batch(table)
    return path


def arrow_run_ends(folder: Path) -> Path:
    """Three numbers that stand for 10⁸ rows."""
    import pyarrow as pa

    path = folder / "run_ends.arrow"
    n = 100_000_000
    column = pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array([0.5]))
    batch = pa.RecordBatch.from_arrays([column, column], ["confidence", "correct"])
    padding = pa.schema(batch.schema, metadata={"note": "x" * 200_000})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, padding) as out:
        out.write_batch(batch)
    return path


def arrow_nulls(folder: Path) -> Path:
    """A column of nothing needs no bytes at all."""
    import pyarrow as pa

    path = folder / "nulls.arrow"
    n = 100_000_000
    batch = pa.RecordBatch.from_arrays(
        [pa.nulls(n), pa.FixedSizeListArray.from_arrays(pa.nulls(10 * n), 10)], ["id", "logits"]
    )
    padding = pa.schema(batch.schema, metadata={"note": "x" * 200_000})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, padding) as out:
        out.write_batch(batch)
    return path


def arrow_repeated_blocks(folder: Path) -> Path:
    """A footer that names the same batch again and again."""
    import pyarrow as pa

    path = folder / "repeated_blocks.arrow"
    batch = pa.record_batch({"confidence": np.full(100_000, 0.5), "correct": np.ones(100_000)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as out:
        for _ in range(300):
            out.write_batch(batch.slice(0, 1))
        out.write_batch(batch)
    raw = bytearray(path.read_bytes())
    size = int.from_bytes(raw[-10:-6], "little")
    footer = len(raw) - 10 - size
    blocks = [i for i in range(footer, len(raw) - 24, 4) if _is_block(raw, i)]
    last = raw[blocks[-1] : blocks[-1] + 24]
    for i in blocks:
        raw[i : i + 24] = last
    path.write_bytes(raw)
    return path


def _is_block(raw: bytearray, i: int) -> bool:
    """Whether the offset that stands here is that of a message."""
    at = int.from_bytes(raw[i : i + 8], "little")
    return (
        8 < at < len(raw) - 8
        and raw[at : at + 4] == b"\xff\xff\xff\xff"
        and raw[i + 12 : i + 16] == b"\0\0\0\0"
    )


def npz_many_members(folder: Path) -> Path:
    """Twenty arrays of 200 MB, packed."""
    path = folder / "many_members.npz"
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f2", "fortran_order": False, "shape": (10_000_000, 10)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for split in ("train", "val", "test"):
            with archive.open(f"{split}_logits.npy", "w", force_zip64=True) as out:
                out.write(head.getvalue())
                for _ in range(200):
                    out.write(bytes(1_000_000))
            labels = io.BytesIO()
            np.save(labels, np.zeros(10_000_000, np.int8))
            archive.writestr(f"{split}_labels.npy", labels.getvalue())
    return path


def npz_one_member(folder: Path) -> Path:
    """One array of 250 MB, packed."""
    path = folder / "one_member.npz"
    np.savez_compressed(
        path, confidence=np.zeros(31_000_000), correct=np.zeros(31_000_000, np.bool_)
    )
    return path


def npz_one_weight(folder: Path) -> Path:
    """One weight of 10⁹ among ones."""
    path = folder / "one_weight.npz"
    weight = np.ones(1000)
    weight[3] = 1e9
    rng = np.random.default_rng(0)
    np.savez(path, confidence=rng.random(1000), correct=rng.random(1000) < 0.7, weight=weight)
    return path


def npz_many_groups(folder: Path) -> Path:
    """200,000 rows, each a group of its own."""
    path = folder / "many_groups.npz"
    rng, n = np.random.default_rng(0), 200_000
    np.savez_compressed(
        path, confidence=rng.random(n), correct=rng.random(n) < 0.7, group=np.arange(n)
    )
    return path


def npz_one_count(folder: Path) -> Path:
    """A whole number of repetitions of 10⁹."""
    path = folder / "one_count.npz"
    count = np.ones(1000, np.int64)
    count[3] = 10**9
    rng = np.random.default_rng(0)
    np.savez(
        path, confidence=rng.random(1000), correct=rng.random(1000) < 0.7, count=count, weight=count
    )
    return path


def csv_equal_names(folder: Path) -> Path:
    """10⁵ equal column names."""
    path = folder / "equal_names.csv"
    path.write_text(",".join(["prob_0"] * 100_000) + "\n" + ",".join(["0"] * 100_000) + "\n")
    return path


def csv_many_columns(folder: Path) -> Path:
    """10⁵ columns, none of which says what it holds."""
    path = folder / "many_columns.csv"
    path.write_text(
        ",".join(f"c{i}" for i in range(100_000)) + "\n" + ",".join(["0"] * 100_000) + "\n"
    )
    return path


def csv_many_classes(folder: Path) -> Path:
    """10⁵ classes in columns."""
    path = folder / "many_classes.csv"
    head = ",".join(f"prob_{i}" for i in range(100_000))
    rows = [",".join(["1e-05"] * 100_000)] * 3
    path.write_text("\n".join([f"{head},label", *(f"{row},0" for row in rows)]) + "\n")
    return path


def csv_open_quotes(folder: Path) -> Path:
    """A quote that is opened on every line and never closed."""
    path = folder / "open_quotes.csv"
    path.write_text("confidence,correct\n" + '0.5,"1\n0.5,1\n' * 50_000)
    return path


def csv_packed(folder: Path) -> Path:
    """Lines that pack a thousand times."""
    path = folder / "packed.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("confidence,correct\n")
        for _ in range(300):
            file.write("0.5,1\n" * 100_000)
    return path


def jsonl_new_keys(folder: Path) -> Path:
    """A new key on every line."""
    path = folder / "new_keys.jsonl"
    path.write_text(
        "".join(f'{{"confidence": 0.5, "correct": 1, "key{i}": {i}}}\n' for i in range(100_000))
    )
    return path


def jsonl_new_value_keys(folder: Path) -> Path:
    """A new class on every line."""
    path = folder / "new_value_keys.jsonl"
    path.write_text(
        "".join(f'{{"prob_{i}": 0.5, "prob_a": 0.5, "label": "a"}}\n' for i in range(50_000))
    )
    return path


def jsonl_long_line(folder: Path) -> Path:
    """One line of 70 MB."""
    path = folder / "long_line.jsonl"
    path.write_text('{"confidence": 0.5, "correct": 1, "note": "' + "a" * 70_000_000 + '"}\n')
    return path


def jsonl_empty_lists(folder: Path) -> Path:
    """Millions of empty lists on one line: a list needs 56 bytes, here three."""
    path = folder / "empty_lists.jsonl"
    path.write_text(
        '{"confidence": 0.5, "correct": 1, "note": [' + ",".join(["[]"] * 4_000_000) + "]}\n"
    )
    return path


def jsonl_packed_vectors(folder: Path) -> Path:
    """Long vectors that pack well."""
    path = folder / "packed_vectors.jsonl.gz"
    line = '{"logits": [' + ",".join(["0"] * 1_000_000) + '], "label": 0}\n'
    with gzip.open(path, "wt") as file:
        for _ in range(100):
            file.write(line)
    return path


def jsonl_deep(folder: Path) -> Path:
    """Lists in lists in lists."""
    path = folder / "deep.jsonl"
    path.write_text(
        '{"confidence": 0.5, "correct": 1, "note": ' + "[" * 200_000 + "]" * 200_000 + "}\n"
    )
    return path


def jsonl_large_numbers(folder: Path) -> Path:
    """Numbers of a million digits."""
    path = folder / "large_numbers.jsonl"
    path.write_text('{"confidence": ' + "9" * 1_000_000 + ', "correct": 1}\n')
    return path


def safetensors_header(folder: Path) -> Path:
    """A header that is one long list of empty lists."""
    path = folder / "header.safetensors"
    header = b'{"__metadata__":[' + b",".join([b"[]"] * 8_000_000) + b"]}"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    return path


def safetensors_many(folder: Path) -> Path:
    """A million tensors in a few bytes."""
    path = folder / "many.safetensors"
    fact = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    header = json.dumps({f"t{i}": fact for i in range(500_000)}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    return path


def npy_wide_text(folder: Path) -> Path:
    """Ids of 4 MB each, all but empty, in a packed archive."""
    path = folder / "wide_text.npz"
    ids = np.array(["a"] * 60, dtype="U1000000")
    np.savez_compressed(path, confidence=np.full(60, 0.5), correct=np.ones(60), ids=ids)
    return path


def torch_views(folder: Path) -> Path:
    """A tensor that repeats its bytes."""
    import torch

    path = folder / "views.pt"
    torch.save(
        {
            "logits": torch.zeros(1).expand(50_000_000, 10),
            "labels": torch.zeros(1, dtype=torch.int8).expand(50_000_000),
        },
        path,
    )
    return path


def eval_empty_lists(folder: Path) -> Path:
    """A log of Inspect whose one sample holds millions of empty lists, packed."""
    log = {**LOGS["inspect"], "samples": [SAMPLE | {"note": [[]]}]}
    path = archive(folder / "empty_lists.eval", log)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as out:
        out.writestr(
            "samples/2_epoch_1.json", '{"id": 2, "note": [' + ",".join(["[]"] * 20_000_000) + "]}"
        )
    return path


def jsonl_packed_lists(folder: Path) -> Path:
    """The same on a line of a packed file, which is allowed to be 64 MB long."""
    path = folder / "packed_lists.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write(
            '{"confidence": 0.5, "correct": 1, "note": [' + ",".join(["[]"] * 20_000_000) + "]}\n"
        )
    return path


def jsonl_packed_runs(folder: Path) -> Path:
    """Vectors of zeros, each short, just below the limit of what a small file may unpack to."""
    path = folder / "packed_runs.jsonl.gz"
    line = '{"logits": [' + ",".join(["0"] * 100) + '], "label": 0}\n'
    with gzip.open(path, "wt") as file:
        for _ in range(280):
            file.write(line * 1000)
    return path


def csv_packed_lists(folder: Path) -> Path:
    """Cells that hold JSON, packed."""
    path = folder / "packed_lists.csv.gz"
    cell = '"[' + ",".join(["[]"] * 40_000) + ']"'
    with gzip.open(path, "wt") as file:
        file.write("logits,label\n")
        for _ in range(500):
            file.write(f"{cell},0\n")
    return path


def csv_packed_cells(folder: Path) -> Path:
    """Short cells of a packed table: each is an object of its own."""
    path = folder / "packed_cells.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write(",".join(f"logit_{i}" for i in range(100)) + ",label\n")
        for _ in range(210):
            file.write((",".join(["10"] * 100) + ",0\n") * 1000)
    return path


def csv_blanks(folder: Path) -> Path:
    """A number, as many blanks as a cell may have, and a letter."""
    path = folder / "blanks.csv"
    path.write_text("confidence;correct\n0,5;1\n" + ("1,5" + " " * 120_000 + "x;1\n") * 20)
    return path


def csv_many_splits(folder: Path) -> Path:
    """A split for every row."""
    path = folder / "many_splits.csv"
    path.write_text("confidence,correct,split\n" + "".join(f"0.5,1,s{i}\n" for i in range(20_000)))
    return path


def npz_many_splits(folder: Path) -> Path:
    """Thousands of arrays of one number."""
    path = folder / "many_splits.npz"
    parts = {"confidence": np.array([0.5]), "correct": np.array([1])}
    np.savez(path, **{f"s{i}_{part}": array for i in range(3000) for part, array in parts.items()})
    return path


def parquet_lists_in_text(folder: Path) -> Path:
    """One text that is a list of 10⁵ numbers, in 20,000 rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "lists_in_text.parquet"
    cell = pa.array(["[" + ",".join(["0"] * 100_000) + "]"])
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), cell)
    pq.write_table(pa.table({"logits": column, "label": [0] * 20_000}), path, compression="zstd")
    return path


def parquet_long_answers(folder: Path) -> Path:
    """Answers of 1 MB, held once, which are compared in every row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "long_answers.parquet"
    text = pa.DictionaryArray.from_arrays(
        pa.array([0] * 50_000, pa.int32()), pa.array(["A" * (1 << 20)])
    )
    table = pa.table({"confidence": [0.5] * 50_000, "prediction": text, "label": text})
    pq.write_table(table, path, compression="zstd")
    return path


def arrow_long_samples(folder: Path) -> Path:
    """The same in lists of samples."""
    import pyarrow as pa

    path = folder / "long_samples.arrow"
    words = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(100_000, np.int8)), pa.array(["a" * (1 << 20)])
    )
    lists = pa.ListArray.from_arrays(np.arange(0, 100_001, 10, dtype=np.int32), words)
    batch = pa.record_batch({"samples": lists, "correct": pa.array(np.ones(10_000))})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as out:
        out.write_batch(batch)
    return path


def arrow_views(folder: Path) -> Path:
    """3,000 rows that look at the same megabyte."""
    import pyarrow as pa

    path = folder / "views.arrow"
    one = pa.array(["a" * (1 << 20)], pa.string_view())
    views = pa.py_buffer(one.buffers()[1].to_pybytes() * 3000)
    ids = pa.Array.from_buffers(pa.string_view(), 3000, [None, views, one.buffers()[2]])
    batch = pa.record_batch(
        {"confidence": np.full(3000, 0.5), "correct": np.ones(3000), "id": ids, "group": ids}
    )
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as out:
        out.write_batch(batch)
    return path


def harness_one_question(folder: Path) -> Path:
    """One question of 10⁵ options among 20,000 of two."""
    path = folder / "one_question.json"
    pairs = [100_000, *[2] * 19_999]
    rows = [
        {**CHOICE, "doc_id": i, "arguments": {}, "filtered_resps": [["0", "F"]] * k}
        for i, k in enumerate(pairs)
    ]
    path.write_text(json.dumps(rows))
    return path


def write_out_one_question(folder: Path) -> Path:
    """The same as an older harness wrote it."""
    path = folder / "one_question_written_out.json"
    many = {f"logit_{i}": -i for i in range(100_000)}
    rows = [{**LOGS["write_out"][0], "doc_id": i} for i in range(20_000)]
    path.write_text(json.dumps([rows[0] | many, *rows[1:]]))
    return path


def deepeval_new_names(folder: Path) -> Path:
    """A new metric in every test case."""
    path = folder / "new_names.json"
    cases = [{**JUDGED, "metricsData": [{"name": f"m{i}", "score": 0.5}]} for i in range(30_000)]
    path.write_text(json.dumps({"testCases": cases, "metricsScores": []}))
    return path


def uqlm_many_tables(folder: Path) -> Path:
    """A table with a score of its own for every answer."""
    path = folder / "many_tables.json"
    table = {"prompts": ["p"], "responses": ["a"], "correct": [1]}
    path.write_text(
        json.dumps({f"t{i}": {"data": {**table, f"s{i}": [0.5]}} for i in range(20_000)})
    )
    return path


def jsonl_one_long_list(folder: Path) -> Path:
    """One list of 10⁶ numbers among lists of two: none fits, and each is told."""
    path = folder / "one_long_list.jsonl"
    short = '{"probs": [0.5, 0.5], "label": 0}\n'
    path.write_text(
        '{"probs": [' + ",".join(["0.5"] * 1_000_000) + '], "label": 0}\n' + short * 8000
    )
    return path


def npz_pixels(folder: Path) -> Path:
    """Four images of a million pixels, packed."""
    path = folder / "pixels.npz"
    logits, labels = np.zeros((4, 3, 1000, 1000), np.float16), np.zeros((4, 1000, 1000), np.int8)
    np.savez_compressed(path, logits=logits, labels=labels)
    return path


def torch_asks(folder: Path) -> Path:
    """A file of tensors whose pickle asks for two gigabytes."""
    return _torch_with(
        folder / "asks.pt", b"\x80\x02c__builtin__\nbytearray\nJ\x00\x94\x35\x77\x85R."
    )


def torch_unfilled(folder: Path) -> Path:
    """Tensors that are asked for by their size and never filled."""
    tensor = b"ctorch\nFloatTensor\nJ\x00\x94\x35\x77\x85R"
    names = (b"X\x0a\x00\x00\x00confidence", b"X\x07\x00\x00\x00correct")
    return _torch_with(
        folder / "unfilled.pt", b"\x80\x02}(" + b"".join(name + tensor for name in names) + b"u."
    )


def _torch_with(path: Path, pickle: bytes) -> Path:
    """A file of tensors with another pickle in it."""
    import torch

    buffer = io.BytesIO()
    torch.save({"logits": torch.zeros(3, 2)}, buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as out:
        for info in source.infolist():
            out.writestr(
                info.filename, pickle if info.filename.endswith("data.pkl") else source.read(info)
            )
    return path


BOMBS: tuple[Bomb, ...] = (
    Bomb("parquet_long_string", parquet_long_string, "pyarrow"),
    Bomb("parquet_long_lists", parquet_long_lists, "pyarrow"),
    Bomb("parquet_many_rows", parquet_many_rows, "pyarrow"),
    Bomb("parquet_plain_zeros", parquet_plain_zeros, "pyarrow"),
    Bomb("parquet_nested_lists", parquet_nested_lists, "pyarrow"),
    Bomb("parquet_lying_footer", parquet_lying_footer, "pyarrow"),
    Bomb("arrow_packed", arrow_packed, "pyarrow"),
    Bomb("arrow_packed_stream", arrow_packed_stream, "pyarrow"),
    Bomb("arrow_dictionary_of_lists", arrow_dictionary_of_lists, "pyarrow"),
    Bomb("arrow_run_ends", arrow_run_ends, "pyarrow"),
    Bomb("arrow_nulls", arrow_nulls, "pyarrow"),
    Bomb("arrow_repeated_blocks", arrow_repeated_blocks, "pyarrow"),
    Bomb("npz_many_members", npz_many_members),
    Bomb("npz_one_member", npz_one_member),
    Bomb("npz_one_weight", npz_one_weight),
    Bomb("npz_one_count", npz_one_count),
    Bomb("npz_many_groups", npz_many_groups),
    Bomb("npz_wide_text", npy_wide_text),
    Bomb("csv_equal_names", csv_equal_names, streamed=True),
    Bomb("csv_many_columns", csv_many_columns, streamed=True),
    Bomb("csv_many_classes", csv_many_classes, streamed=True),
    Bomb("csv_open_quotes", csv_open_quotes, streamed=True),
    Bomb("csv_packed", csv_packed),
    Bomb("jsonl_new_keys", jsonl_new_keys, streamed=True),
    Bomb("jsonl_new_value_keys", jsonl_new_value_keys, streamed=True),
    Bomb("jsonl_long_line", jsonl_long_line, streamed=True),
    Bomb("jsonl_empty_lists", jsonl_empty_lists, streamed=True),
    Bomb("jsonl_packed_vectors", jsonl_packed_vectors),
    Bomb("jsonl_deep", jsonl_deep, streamed=True),
    Bomb("jsonl_large_numbers", jsonl_large_numbers, streamed=True),
    Bomb("safetensors_header", safetensors_header),
    Bomb("safetensors_many", safetensors_many),
    Bomb("torch_views", torch_views, "torch"),
    Bomb("eval_empty_lists", eval_empty_lists),
    Bomb("jsonl_packed_lists", jsonl_packed_lists),
    Bomb("jsonl_packed_runs", jsonl_packed_runs),
    Bomb("csv_packed_lists", csv_packed_lists),
    Bomb("csv_packed_cells", csv_packed_cells),
    Bomb("csv_blanks", csv_blanks, streamed=True),
    Bomb("csv_many_splits", csv_many_splits, streamed=True),
    Bomb("npz_many_splits", npz_many_splits),
    Bomb("parquet_lists_in_text", parquet_lists_in_text, "pyarrow"),
    Bomb("parquet_long_answers", parquet_long_answers, "pyarrow"),
    Bomb("arrow_long_samples", arrow_long_samples, "pyarrow"),
    Bomb("arrow_views", arrow_views, "pyarrow"),
    Bomb("harness_one_question", harness_one_question),
    Bomb("write_out_one_question", write_out_one_question),
    Bomb("deepeval_new_names", deepeval_new_names),
    Bomb("uqlm_many_tables", uqlm_many_tables),
    Bomb("jsonl_one_long_list", jsonl_one_long_list, streamed=True),
    Bomb("npz_pixels", npz_pixels),
    Bomb("torch_asks", torch_asks, "torch"),
    Bomb("torch_unfilled", torch_unfilled, "torch"),
)
