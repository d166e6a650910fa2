"""Reading a harness log, against reading its JSON: a real log where the shared folder is there,
else one like it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import howsure as hs

from .rows import Row
from .timing import seconds

N = 100_000
SHARED = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
REAL = "data2/llm_lmeval_samples_mc/samples_bias_classification_2024-06-17T15-44-37.867068.json"


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.jsonl"
        samples = sources()
        with path.open("w", encoding="utf-8") as file:
            for i in range(N):
                file.write(json.dumps({**samples[i % len(samples)], "doc_id": i}) + "\n")
        ours, plain = seconds(lambda: hs.read(path), lambda: parsed(path), repeats=2)
        size = path.stat().st_size / 1e6
    detail = f"{ours:.1f} s; json alone {plain:.1f} s; {size:.0f} MB"
    yield Row(
        f"reading a harness log, {N:,} questions", ours / plain, "× json", 10, 3, detail=detail
    )


def sources() -> list[dict[str, Any]]:
    path = SHARED / REAL
    if path.is_file():
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [written(i) for i in range(100)]


def written(i: int) -> dict[str, Any]:
    """One sample as the harness writes it."""
    pairs = [[str(-0.5 - 0.01 * i), "True"], [str(-1.0), "False"]]
    arguments = {
        f"gen_args_{j}": {"arg_0": "A question. " * 50, "arg_1": f" {o}"}
        for j, o in enumerate("AB")
    }
    right = float((i <= 50) == (i % 2 == 0))
    sample = {
        "doc": {"gold": "AB"[i % 2]},
        "target": "AB"[i % 2],
        "arguments": arguments,
        "filtered_resps": pairs,
    }
    return {**sample, "resps": [[pair] for pair in pairs], "acc": right}


def parsed(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return [json.loads(line) for line in file]
