"""A corpus of files that must be refused, each made by one small function."""

import csv
import io
import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(6, 3))
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
LABELS = np.array([0, 1, 2, 0, 1, 2])
CONFIDENCE = np.array([0.9, 0.8, 0.7, 0.6, 0.55, 0.5])
CORRECT = np.array([1, 1, 0, 1, 0, 0])
NEEDS = {".parquet": "pyarrow", ".arrow": "pyarrow", ".pt": "torch"}


@dataclass(frozen=True)
class Bad:
    """A file that must be refused, the options to read it with, and a word that the message must
    hold.
    """

    name: str
    make: Callable[[Path], Path]
    says: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    package: str | None = None


def changed(array: np.ndarray, where: Any, value: Any) -> np.ndarray:
    """A copy with one value replaced."""
    out = np.array(array, dtype=np.float64 if isinstance(value, float) else array.dtype)
    out[where] = value
    return out


# ---- the same mistakes in every format
# -------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "nan_logits": ({"logits": changed(LOGITS, (2, 1), float("nan")), "labels": LABELS}, ""),
    "infinite_logits": ({"logits": changed(LOGITS, (2, 1), float("inf")), "labels": LABELS}, ""),
    "nan_probs": ({"probs": changed(PROBS, (2, 1), float("nan")), "labels": LABELS}, ""),
    "label_too_large": ({"logits": LOGITS, "labels": changed(LABELS, 4, 3)}, "labels[4]"),
    "label_negative": ({"logits": LOGITS, "labels": changed(LABELS, 4, -1)}, "labels[4]"),
    "label_float": ({"logits": LOGITS, "labels": LABELS + 0.5}, ""),
    "rows_not_one": ({"probs": changed(PROBS, (3, 0), 0.9999), "labels": LABELS}, "probs[3]"),
    "logits_as_probs": ({"probs": LOGITS * 5, "labels": LABELS}, "logits"),
    "negative_prob": ({"probs": PROBS + np.array([0.9, -0.9, 0.0]), "labels": LABELS}, "outside"),
    "confidence_above_one": (
        {"confidence": changed(CONFIDENCE, 5, 1.2), "correct": CORRECT},
        "confidence[5]",
    ),
    "confidence_below_zero": (
        {"confidence": changed(CONFIDENCE, 5, -0.2), "correct": CORRECT},
        "confidence[5]",
    ),
    "correct_two": ({"confidence": CONFIDENCE, "correct": changed(CORRECT, 1, 2)}, ""),
    "weight_negative": (
        {"probs": PROBS, "labels": LABELS, "weight": changed(CONFIDENCE, 0, -1.0)},
        "weight[0]",
    ),
    "weight_zero": ({"probs": PROBS, "labels": LABELS, "weight": CONFIDENCE * 0}, "weight"),
    "weight_infinite": (
        {"probs": PROBS, "labels": LABELS, "weight": changed(CONFIDENCE, 3, float("inf"))},
        "weight",
    ),
    "ids_repeat": ({"probs": PROBS, "labels": LABELS, "ids": changed(LABELS + 10, 5, 10)}, "ids"),
    "no_values": ({"labels": LABELS, "logit": LOGITS[:, 0]}, "no log"),
}
ARRAY_MISTAKES: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "labels_short": ({"logits": LOGITS, "labels": LABELS[:5]}, "labels"),
    "ids_short": ({"logits": LOGITS, "labels": LABELS, "ids": LABELS[:2]}, "ids"),
    "labels_matrix": ({"logits": LOGITS, "labels": LOGITS.astype(int)}, "labels"),
    "samples_not_named": ({"logits": np.stack([LOGITS, LOGITS]), "labels": LABELS}, "mc_logits"),
    "samples_flat": ({"mc_logits": LOGITS, "labels": LABELS}, "samples"),
    "pixels_differ": (
        {"logits": np.zeros((2, 3, 4, 4)), "labels": np.zeros((2, 4, 5), dtype=int)},
        "labels",
    ),
    "scalar": ({"logits": np.array(1.5), "labels": LABELS}, "logits"),
    "confidence_matrix_scalar_truth": ({"confidence": PROBS, "correct": CORRECT}, "correct"),
}


def as_npz(arrays: dict[str, np.ndarray], path: Path) -> None:
    np.savez(path, **arrays)


def as_pair(arrays: dict[str, np.ndarray], path: Path) -> None:
    for name, array in arrays.items():
        np.save(path.with_name(f"{path.stem}_{name}.npy"), array)


def as_safetensors(arrays: dict[str, np.ndarray], path: Path) -> None:
    header, end = {}, 0
    for name, a in arrays.items():
        kind = {"f": "F64", "i": "I64"}[a.dtype.kind]
        header[name] = {
            "dtype": kind,
            "shape": list(a.shape),
            "data_offsets": [end, end + a.nbytes],
        }
        end += a.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(
        len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in arrays.values())
    )


def as_torch(arrays: dict[str, np.ndarray], path: Path) -> None:
    import torch

    torch.save({name: torch.from_numpy(a.copy()) for name, a in arrays.items()}, path)


def table(arrays: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for name, a in arrays.items():
        one = {"labels": "label", "ids": "id"}.get(name, name)
        columns |= (
            {one: a.tolist()}
            if a.ndim == 1
            else {f"{name[:-1]}_{j}": a[:, j].tolist() for j in range(a.shape[1])}
        )
    return columns


def as_delimited(arrays: dict[str, np.ndarray], path: Path) -> None:
    columns = table(arrays)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def as_jsonl(arrays: dict[str, np.ndarray], path: Path) -> None:
    columns = table(arrays)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_parquet(arrays: dict[str, np.ndarray], path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(table(arrays)), path)


def as_arrow(arrays: dict[str, np.ndarray], path: Path) -> None:
    import pyarrow as pa
    from pyarrow import feather

    feather.write_feather(pa.table(table(arrays)), str(path))


TABLES = {
    ".csv": as_delimited,
    ".tsv": as_delimited,
    ".jsonl": as_jsonl,
    ".parquet": as_parquet,
    ".arrow": as_arrow,
}
ARRAYS = {".npz": as_npz, ".npy": as_pair, ".safetensors": as_safetensors, ".pt": as_torch}


def mistaken(name: str, arrays: dict[str, np.ndarray], suffix: str, says: str) -> Bad:
    def make(folder: Path) -> Path:
        path = folder / f"{name}{suffix}"
        {**TABLES, **ARRAYS}[suffix](arrays, path)
        return path

    return Bad(f"{name}{suffix}", make, says, package=NEEDS.get(suffix))


def in_every_format() -> list[Bad]:
    out = [mistaken(n, a, s, says) for n, (a, says) in MISTAKES.items() for s in (*TABLES, *ARRAYS)]
    return out + [
        mistaken(n, a, s, says) for n, (a, says) in ARRAY_MISTAKES.items() for s in ARRAYS
    ]


# ---- text
# ------------------------------------------------------------------------------------------------------------

DELIMITED = {
    "empty": ("", "empty"),
    "blank": ("\n\n", "empty"),
    "header_only": ("confidence,correct\n", "no rows"),
    "short_row": ("confidence,correct\n0.9,1\n0.8\n", "line 3"),
    "long_row": ("confidence,correct\n0.9,1\n0.8,1,1\n", "line 3"),
    "text_number": ("confidence,correct\n0.9,1\nhigh,1\n", "line 3"),
    "empty_cell": ("confidence,correct\n0.9,1\n,1\n", "line 3"),
    "nan_cell": ("confidence,correct\n0.9,1\nnan,1\n", "line 3"),
    "text_correct": ("confidence,correct\n0.9,1\n0.8,maybe\n", "line 3"),
    "unsigned_percent": ("confidence,correct\n0.9,1\n85,1\n", "line 3"),
    "too_many_percent": ("confidence,correct\n90%,1\n850%,1\n", "line 3"),
    "underscore": ("confidence,correct\n0.9,1\n0_0,1\n", "line 3"),
    "decimal_comma": ('confidence,correct\n0.9,1\n"0,8",1\n', "line 3"),
    "text_logit": ("logit_0,logit_1,label\n1,2,0\n1,x,1\n", "'logit_1'"),
    "text_label": ("logit_0,logit_1,label\n1,2,0\n1,2,cat\n", "line 3"),
    "label_not_a_class": ("prob_cat,prob_dog,label\n0.5,0.5,cat\n0.5,0.5,cow\n", "line 3"),
    "empty_label": ("logit_0,logit_1,label\n1,2,0\n1,2,\n", "line 3"),
    "float_label": ("logit_0,logit_1,label\n1,2,0\n1,2,1.0\n", "line 3"),
    "gap": ("prob_0,prob_2,label\n0.5,0.5,0\n", "prob_1"),
    "class_0_alone": ("prob_0,label\n0.5,0\n", "prob_1"),
    "several_splits": ("confidence,correct,split\n0.9,1,val\n0.8,1,test\n", "2 splits"),
    "from_one": ("prob_1,prob_2,label\n0.5,0.5,0\n", "none of the classes '1', '2'"),
    "from_two": ("prob_2,prob_3,label\n0.5,0.5,2\n", "prob_0"),
    "twice": ("confidence,confidence\n0.9,1\n", "twice"),
    "unclosed_quote": ('confidence,correct\n0.9,"1\n0.8,1\n', "line"),
    "nothing_known": ("certainty,right\n0.9,1\n", "certainty"),
    "ragged_list": ('probs,label\n"[0.5, 0.5]",0\n"[0.5, 0.25, 0.25]",1\n', "line 3"),
    "broken_list": ('probs,label\n"[0.5, 0.5]",0\n"[0.5, 0.5",1\n', "line 3"),
    "samples_not_lists": ("samples,label\nyes,yes\n", "line 2"),
    "samples_empty": ('samples,label\n"[""yes""]",yes\n[],yes\n', "line 3"),
    "positive_logprob": ("logprob,correct\n-0.1,1\n0.1,1\n", "line 3"),
    "huge_cell": (f'confidence,correct,note\n0.9,1,"{"x" * 140_000}"\n', "line"),
    "bad_weight": ("confidence,correct,weight\n0.9,1,heavy\n", "'weight'"),
    "sum_late": ("prob_0,prob_1,label\n" + "0.5,0.5,0\n" * 20 + "0.5,0.4,0\n", "line 22"),
    "label_late": ("prob_0,prob_1,label\n" + "0.5,0.5,0\n" * 20 + "0.5,0.5,7\n", "line 22"),
}
LINES = {
    "empty": ("", "empty"),
    "blank": ("\n\n", "empty"),
    "not_json": ('{"confidence": 0.9, "correct": 1}\nhello\n', "line 2"),
    "truncated": ('{"confidence": 0.9, "correct": 1}\n{"confidence": 0.8, "corr', "line 2"),
    "array": ("[0.9, 1]\n", "line 1"),
    "number": ("0.9\n", "line 1"),
    "null": ("null\n", "line 1"),
    "nan": ('{"confidence": NaN, "correct": 1}\n', "NaN"),
    "infinity": ('{"logits": [1.0, -Infinity], "label": 1}\n', "Infinity"),
    "missing_key": ('{"confidence": 0.9, "correct": 1}\n{"confidence": 0.8}\n', "line 2"),
    "null_value": (
        '{"confidence": 0.9, "correct": 1}\n{"confidence": null, "correct": 1}\n',
        "line 2",
    ),
    "list_confidence": ('{"confidence": [0.9], "correct": 1}\n', "line 1"),
    "word_confidence": ('{"confidence": "very high", "correct": 1}\n', "line 1"),
    "percent_word": ('{"confidence": "about 90%", "correct": 1}\n', "line 1"),
    "ragged": ('{"probs": [0.5, 0.5], "label": 0}\n{"probs": [1.0], "label": 0}\n', "line 2"),
    "text_in_list": (
        '{"probs": [0.5, 0.5], "label": 0}\n{"probs": [0.5, "x"], "label": 0}\n',
        "line 2",
    ),
    "null_in_list": (
        '{"probs": [0.5, 0.5], "label": 0}\n{"probs": [0.5, null], "label": 0}\n',
        "line 2",
    ),
    "empty_list": ('{"probs": [], "label": 0}\n', "line 1"),
    "other_classes": (
        '{"probs": {"a": 0.5, "b": 0.5}, "label": "a"}\n{"probs": {"a": 1}, "label": "a"}\n',
        "line 2",
    ),
    "label_not_a_class": ('{"probs": {"a": 0.5, "b": 0.5}, "label": "c"}\n', "line 1"),
    "float_label": (
        '{"probs": [0.5, 0.5], "label": 0}\n{"probs": [0.5, 0.5], "label": 1.0}\n',
        "line 2",
    ),
    "object_label": ('{"probs": [0.5, 0.5], "label": {}}\n', "line 1"),
    "deep": ('{"confidence": ' + "[" * 200_000 + "}\n", "line 1"),
    "huge_integer": ('{"confidence": ' + "9" * 6000 + "}\n", "line 1"),
    "samples_text": ('{"samples": "yes", "label": "yes"}\n', "line 1"),
    "samples_none": ('{"samples": [], "label": "yes"}\n', "line 1"),
    "samples_objects": ('{"samples": [{}], "label": "yes"}\n', "line 1"),
    "logprobs_ragged": (
        '{"logprobs": [-1, -2], "label": 0}\n{"logprobs": [-1], "label": 0}\n',
        "line 2",
    ),
    "split_list": ('{"confidence": 0.5, "correct": 1, "split": [1, [2]]}\n', "line 1"),
    "mc_ragged": ('{"mc_logits": [[1, 2], [1]], "label": 0}\n', "line 1"),
}


def text_file(name: str, suffix: str, content: str | bytes, says: str) -> Bad:
    raw = content if isinstance(content, bytes) else content.encode()

    def make(folder: Path) -> Path:
        path = folder / f"{name}{suffix}"
        path.write_bytes(raw)
        return path

    return Bad(f"text_{name}{suffix}", make, says, package=NEEDS.get(suffix))


def in_text() -> list[Bad]:
    out = [text_file(n, ".csv", text, says) for n, (text, says) in DELIMITED.items()]
    out += [text_file(n, ".jsonl", text, says) for n, (text, says) in LINES.items()]
    latin = "confidence,correct,note\n0.9,1,caf\xe9\n".encode("latin-1")
    out.append(text_file("latin1", ".csv", latin, "UTF-8"))
    out.append(text_file("latin1", ".jsonl", b'{"confidence": 0.9, "note": "caf\xe9"}\n', "UTF-8"))
    out.append(
        text_file("bars", ".csv", "confidence|correct\n0.9|1\n", "commas, semicolons or tabs")
    )
    out.append(
        text_file(
            "decimals", ".csv", "confidence;correct\n0,9;1\n0.8;1\n", "line 3, column 'confidence'"
        )
    )
    out.append(text_file("utf16", ".csv", "confidence,correct\n0.9,1\n".encode("utf-16"), "UTF-8"))
    return out


# ---- bytes
# -----------------------------------------------------------------------------------------------------------


def npy(
    descr: str = "'<f8'", shape: str = "(6, 3)", order: str = "False", body: bytes | None = None
) -> bytes:
    """An npy file with the header as given."""
    return npy_text(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}", body)


def npy_text(text: str, body: bytes | None = None) -> bytes:
    header = text.encode("latin1") + b"\n"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header
        + (LOGITS.tobytes() if body is None else body)
    )


HEADERS: dict[str, tuple[bytes, str]] = {
    "shape_too_large": (npy(shape="(6000000000, 3)"), "claims"),
    "shape_too_small": (npy(shape="(5, 3)"), "claims"),
    "shape_huge": (npy(shape="(2**9, 3)"), ""),
    "shape_overflow": (npy(shape="(4294967296, 4294967296, 4)"), "claims"),
    "shape_negative": (npy(shape="(-6, -3)"), "shape"),
    "shape_bool": (npy(shape="(True, 18)"), "shape"),
    "shape_float": (npy(shape="(6.0, 3)"), "shape"),
    "shape_list": (npy(shape="[6, 3]"), "shape"),
    "shape_text": (npy(shape="'6'"), "shape"),
    "shape_empty": (npy(shape="(0, 3)", body=b""), "empty"),
    "shape_deep": (npy(shape="(" + "1, " * 40 + ")", body=b"\0" * 8), "shape"),
    "objects": (npy(descr="'|O'", body=pickle.dumps([1] * 18)), "objects"),
    "structured": (npy(descr="[('a', '<f8')]"), "dtype"),
    "dates": (npy(descr="'<M8[s]'"), "dtype"),
    "void": (npy(descr="'|V8'"), "dtype"),
    "complex": (npy(descr="'<c8'"), "dtype"),
    "long_double": (npy(descr="'<f16'"), "dtype"),
    "no_width": (npy(descr="'<U0'", shape="(10**9,)", body=b""), ""),
    "odd_dtype": (npy(descr="'<f3'"), "dtype"),
    "number_dtype": (npy(descr="8"), "dtype"),
    "call": (npy_text("__import__('os').system('touch payload')"), "header"),
    "call_inside": (npy(shape="(open('payload', 'w'), 3)"), "header"),
    "not_a_dict": (npy_text("[1, 2, 3]"), "header"),
    "missing_key": (npy_text("{'descr': '<f8', 'shape': (6, 3)}"), "header"),
    "nested": (npy_text("(" * 5000), "header"),
    "garbage": (npy_text("\x00\x01\x02"), "header"),
    "long_header": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30) + b" " * 64, "header"),
    "version_nine": (b"\x93NUMPY\x09\x00" + b" " * 64, "NumPy"),
    "no_magic": (b"not numpy at all", "NumPy"),
    "cut_magic": (b"\x93NUM", "NumPy"),
    "empty": (b"", "NumPy"),
    "extra_bytes": (npy(body=LOGITS.tobytes() + b"more"), "claims"),
    "truncated": (npy(body=LOGITS.tobytes()[:-1]), "claims"),
    "pickle": (pickle.dumps([1, 2, 3]), "NumPy"),
}


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return buffer.getvalue()


GOOD = zipped({"logits.npy": npy(), "labels.npy": npy("'<i8'", "(6,)", body=LABELS.tobytes())})


def patched(raw: bytes, find: bytes, offset: int, new: bytes) -> bytes:
    """`raw` with bytes replaced at `offset` after every record that starts with `find`."""
    out = bytearray(raw)
    at = raw.find(find)
    while at >= 0:
        out[at + offset : at + offset + len(new)] = new
        at = raw.find(find, at + 1)
    return bytes(out)


def bomb() -> bytes:
    """280 MB of zeros in 280 kB, with an honest header."""
    rows = 35_000_000
    head = npy("'<f8'", f"({rows},)", body=b"")
    squeeze = zlib.compressobj(1, zlib.DEFLATED, -15)
    zeros = bytes(8_000_000)
    packed, crc = squeeze.compress(head), zlib.crc32(head)
    for _ in range(rows * 8 // len(zeros)):
        packed, crc = packed + squeeze.compress(zeros), zlib.crc32(zeros, crc)
    packed += squeeze.flush()
    size, name = len(head) + rows * 8, b"confidence.npy"
    facts = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0, crc, len(packed), size, len(name), 0)
    local = b"PK\x03\x04" + facts + name + packed
    central = (
        b"PK\x01\x02" + struct.pack("<H", 20) + facts + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    )
    return (
        local
        + central
        + b"PK\x05\x06"
        + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    )


def archives() -> dict[str, tuple[bytes, str]]:
    claimed = struct.pack("<I", 0x7FFFFFF0)
    out: dict[str, tuple[bytes, str]] = {
        "empty": (b"", "damaged"),
        "text": (b"confidence,correct\n0.9,1\n", "damaged"),
        "pickle": (pickle.dumps({"logits": [1, 2]}), "damaged"),
        "no_members": (zipped({}), "no logits"),
        "other_members": (zipped({"readme.txt": b"hello"}), "no logits"),
        "claims_two_gigabytes": (patched(GOOD, b"PK\x01\x02", 24, claimed), "claims"),
        "stored_claims": (
            patched(zipped({"logits.npy": npy()}, 0), b"PK\x01\x02", 24, claimed),
            "claims",
        ),
        "encrypted": (patched(GOOD, b"PK\x01\x02", 8, b"\x01\x00"), "encrypted"),
        "bzip2": (zipped({"logits.npy": npy()}, zipfile.ZIP_BZIP2), "method"),
        "lzma": (zipped({"logits.npy": npy()}, zipfile.ZIP_LZMA), "method"),
        "wrong_checksum": (patched(GOOD, b"PK\x01\x02", 16, b"\0\0\0\0"), "damaged"),
        "overlap": (patched(GOOD, b"PK\x01\x02", 42, b"\0\0\0\0"), ""),
        "far_offset": (patched(GOOD, b"PK\x01\x02", 42, b"\xff\xff\xff\x7f"), ""),
        "bomb": (bomb(), "times"),
        "damaged_data": (GOOD[:60] + b"\xff" * 20 + GOOD[80:], ""),
    }
    cuts = (1, 10, 30, len(GOOD) // 2, len(GOOD) - 30, len(GOOD) - 1)
    return out | {f"cut_at_{cut}": (GOOD[:cut], "damaged") for cut in cuts}


def duplicate_members(folder: Path) -> Path:
    path = folder / "duplicate.npz"
    raw = zipped({"logits.npy": npy(), "labelz.npy": npy()}).replace(b"labelz.npy", b"logits.npy")
    path.write_bytes(raw)
    return path


def safetensors_raw(header: Any, body: bytes = LOGITS.tobytes()) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def tensor(dtype: Any = "F64", shape: Any = (6, 3), offsets: Any = (0, 144)) -> dict[str, Any]:
    return {"logits": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


SAFETENSORS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "safetensors"),
    "short": (b"\x01\x00", "safetensors"),
    "huge_header": ((1 << 62).to_bytes(8, "little") + b"{}", "safetensors"),
    "not_json": (safetensors_raw(b"not json"), "header"),
    "not_utf8": (safetensors_raw(b'{"a\xff": 1}'), "header"),
    "list": (safetensors_raw([1, 2]), "header"),
    "deep": (safetensors_raw(b"[" * 100_000), "header"),
    "no_facts": (safetensors_raw({"logits": {}}), "header"),
    "text_facts": (safetensors_raw({"logits": "x"}), "header"),
    "null_shape": (safetensors_raw(tensor(shape=None)), "header"),
    "negative_shape": (safetensors_raw(tensor(shape=(-6, -3))), "sense"),
    "float_shape": (safetensors_raw(tensor(shape=(6.0, 3))), "sense"),
    "large_shape": (safetensors_raw(tensor(shape=(6, 1 << 60))), "claims"),
    "backwards": (safetensors_raw(tensor(offsets=(144, 0))), "sense"),
    "beyond": (safetensors_raw(tensor(offsets=(10_000, 10_144))), "claims"),
    "three_offsets": (safetensors_raw(tensor(offsets=(0, 1, 2))), "header"),
    "fp8": (safetensors_raw(tensor("F8_E4M3", (12, 12))), "dtype"),
    "number_dtype": (safetensors_raw(tensor(7)), "sense"),
    "nothing_inside": (safetensors_raw({}), "no logits"),
    "empty_tensor": (safetensors_raw(tensor(shape=(0, 3), offsets=(0, 0))), "empty"),
    "truncated": (safetensors_raw(tensor())[:-1], "claims"),
    "payload": (pickle.dumps([1]), "safetensors"),
}


class Payload:
    """A pickle that would make a file if anything ever loaded it."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return Path.touch, (self.target,)


def payload(suffix: str) -> Bad:
    def make(folder: Path) -> Path:
        path = folder / f"payload{suffix}"
        evil = Payload(folder / "executed")
        if suffix == ".npz":
            np.savez(path, logits=np.array([evil], dtype=object), labels=LABELS)
        elif suffix == ".npy":
            path = folder / "payload_logits.npy"
            np.save(path, np.array([evil], dtype=object), allow_pickle=True)
        elif suffix == ".pt":
            import torch

            torch.save({"logits": evil}, path)
        else:
            path.write_bytes(pickle.dumps(evil))
        return path

    return Bad(f"payload{suffix}", make, package=NEEDS.get(suffix))


def raw_pickles() -> list[Bad]:
    """The same pickle under every name."""
    out: list[Bad] = []
    for suffix in (".npz", ".npy", ".csv", ".jsonl", ".parquet", ".arrow", ".safetensors", ".pt"):

        def make(folder: Path, suffix: str = suffix) -> Path:
            path = folder / f"raw_logits{suffix}"
            path.write_bytes(pickle.dumps(Payload(folder / "executed")))
            return path

        out.append(Bad(f"raw_pickle{suffix}", make, package=NEEDS.get(suffix)))
    return out


def in_bytes() -> list[Bad]:
    out = [text_file(f"npy_{n}_logits", ".npy", raw, says) for n, (raw, says) in HEADERS.items()]
    out += [
        text_file(f"npz_{n}", ".npz", zipped({"logits.npy": raw}), says)
        for n, (raw, says) in HEADERS.items()
    ]
    out += [text_file(f"zip_{n}", ".npz", raw, says) for n, (raw, says) in archives().items()]
    out += [
        text_file(f"st_{n}", ".safetensors", raw, says) for n, (raw, says) in SAFETENSORS.items()
    ]
    out += [Bad("duplicate_members", duplicate_members, "same name")]
    out += [payload(suffix) for suffix in (".npz", ".npy", ".pt", ".pkl")]
    return out + raw_pickles()


# ---- packages
# --------------------------------------------------------------------------------------------------------


def torch_file(name: str, build: Callable[[Any], Any], says: str = "") -> Bad:
    def make(folder: Path) -> Path:
        import torch

        path = folder / f"{name}.pt"
        torch.save(build(torch), path)
        return path

    return Bad(f"torch_{name}", make, says, package="torch")


def cut(suffix: str, write: Callable[[dict[str, np.ndarray], Path], None], share: float) -> Bad:
    def make(folder: Path) -> Path:
        path = folder / f"cut{suffix}"
        write({"logits": LOGITS, "labels": LABELS}, path)
        raw = path.read_bytes()
        path.write_bytes(raw[: int(len(raw) * share)])
        return path

    return Bad(f"cut_{share}{suffix}", make, package=NEEDS.get(suffix))


def arrow_table(name: str, build: Callable[[Any], Any], says: str = "") -> list[Bad]:
    def maker(suffix: str) -> Callable[[Path], Path]:
        def make(folder: Path) -> Path:
            import pyarrow as pa
            from pyarrow import feather, parquet

            path = folder / f"{name}{suffix}"
            made = build(pa)
            parquet.write_table(made, path) if suffix == ".parquet" else feather.write_feather(
                made, str(path)
            )
            return path

        return make

    return [
        Bad(f"table_{name}{suffix}", maker(suffix), says, package="pyarrow")
        for suffix in (".parquet", ".arrow")
    ]


def in_packages() -> list[Bad]:
    plain = {"logits": LOGITS.tolist(), "label": LABELS.tolist()}
    out = [
        cut(s, w, share)
        for s, w in ((".parquet", as_parquet), (".arrow", as_arrow), (".pt", as_torch))
        for share in (0.0, 0.2, 0.6, 0.95)
    ]
    out += arrow_table(
        "null", lambda pa: pa.table({"confidence": [0.9, None], "correct": [1, 0]}), "row 1"
    )
    out += arrow_table(
        "null_inside", lambda pa: pa.table({"probs": [[0.5, 0.5], [0.5, None]]}), "row 1"
    )
    out += arrow_table("ragged", lambda pa: pa.table({"probs": [[0.5, 0.5], [1.0]]}), "row 1")
    out += arrow_table(
        "empty_lists",
        lambda pa: pa.table({"probs": pa.array([[], []], pa.list_(pa.float64()))}),
        "numbers",
    )
    out += arrow_table(
        "text", lambda pa: pa.table({"confidence": ["0.9", "high"], "correct": [1, 0]}), "row 1"
    )
    out += arrow_table(
        "no_rows", lambda pa: pa.table({"confidence": pa.array([], pa.float64())}), "no rows"
    )
    out += arrow_table("unknown", lambda pa: pa.table({"certainty": [0.9]}), "certainty")
    out += arrow_table(
        "text_labels", lambda pa: pa.table({**plain, "label": list("aabbcc")}), "labels[0]"
    )
    out += arrow_table(
        "mixed_column", lambda pa: pa.table({"prob_0": [0.5], "prob_1": ["x"]}), "prob"
    )
    out += arrow_table(
        "dates", lambda pa: pa.table({"confidence": pa.array([1], pa.timestamp("s"))}), "row 0"
    )
    out += [
        torch_file("list", lambda torch: [1, 2, 3], "no logits"),
        torch_file("number", lambda torch: {"logits": 3}, "int"),
        torch_file("nested", lambda torch: {"logits": {"a": torch.zeros(2)}}, "dict"),
        torch_file("sparse", lambda torch: {"logits": torch.eye(3).to_sparse()}, "dense"),
        torch_file(
            "expanded",
            lambda torch: {"logits": torch.zeros(1, 1).expand(100_000, 1000)},
            "contiguous",
        ),
        torch_file(
            "complex", lambda torch: {"logits": torch.zeros(3, 2, dtype=torch.complex64)}, "complex"
        ),
        torch_file("module", lambda torch: torch.nn.Linear(2, 2), "tensors"),
        torch_file("no_rows", lambda torch: {"logits": torch.zeros(0, 2)}, "empty"),
    ]
    return out


# ---- places and options
# ----------------------------------------------------------------------------------------------


def at(name: str, make: Callable[[Path], Path], says: str, **options: Any) -> Bad:
    return Bad(f"at_{name}", make, says, options)


def folder_like_a_file(folder: Path) -> Path:
    (folder / "a.npz").mkdir()
    return folder / "a.npz"


def loop(folder: Path) -> Path:
    (folder / "loop.npz").symlink_to(folder / "loop.npz")
    return folder / "loop.npz"


def good(folder: Path) -> Path:
    (folder / "good.npz").write_bytes(GOOD)
    return folder / "good.npz"


def two_splits(folder: Path) -> Path:
    np.savez(
        folder / "two.npz",
        val_logits=LOGITS,
        val_labels=LABELS,
        test_logits=LOGITS,
        test_labels=LABELS,
    )
    return folder / "two.npz"


def table_of_splits(folder: Path) -> Path:
    (folder / "a.csv").write_text("confidence,correct,split\n0.9,1,val\n0.8,1,test\n")
    return folder / "a.csv"


def neighbour(folder: Path) -> Path:
    good(folder)
    return folder / "godo.npz"


def unknown(folder: Path) -> Path:
    (folder / "a.xlsx").write_bytes(b"PK")
    return folder / "a.xlsx"


def misnamed(folder: Path) -> Path:
    np.save(folder / "mystery.npy", LOGITS)
    return folder / "mystery.npy"


def in_places() -> list[Bad]:
    return [
        at("nowhere", lambda folder: folder / "none.npz", "does not exist"),
        at("no_folder", lambda folder: folder / "none" / "a.npz", "does not exist"),
        at("neighbour", neighbour, "good.npz"),
        at("folder", lambda folder: folder, "folder"),
        at("folder_like_a_file", folder_like_a_file, "folder"),
        at("loop", loop, "cannot be read"),
        at("long_name", lambda folder: folder / ("x" * 5000 + ".npz"), "cannot be read"),
        at("nul", lambda folder: folder / "a\0.npz", "cannot be read"),
        at("unknown", unknown, "suffix"),
        at("no_suffix", lambda folder: folder / "a", "does not exist"),
        at("misnamed", misnamed, "x_logits.npy"),
        at("two_splits", two_splits, "split="),
        at("split_typo", two_splits, "Did you mean 'test'", split="tset"),
        at("split_of_a_table", table_of_splits, "'val'", split="vla"),
        at("split_of_none", good, "split", split="test"),
        at("no_samples", good, "mc", mc=True),
        at("name_missing", good, "'labels'", names={"labels": "label"}),
        at("name_of_nothing", good, "parts", names={"lables": "labels"}),
        at("name_empty", good, "labels", names={"labels": []}),
    ]


CORPUS = [*in_every_format(), *in_text(), *in_bytes(), *in_packages(), *in_places()]
