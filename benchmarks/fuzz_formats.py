"""Mutation fuzz of every file format: damaged files must be read or refused, never anything else.

    python benchmarks/fuzz_formats.py --reads 100000            in this process's children,
    resumable with --state python benchmarks/fuzz_formats.py --reads 1000 --command doctor

A read is good when it gives Predictions or raises InputError. Everything else counts as unforeseen:
another exception, a crash of the interpreter, a read of more than ten seconds; for a command, a
traceback or an exit code other than 0, 1 and 2. Reads are numbered and seeded by their number, so
that any of them can be repeated: --first I --reads 1.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import howsure as hs
from benchmarks.attack import logs
from howsure.formats import problems, suffixes

BLOCK = 10_000  # reads of one child: torch and pyarrow take seconds to import
SLOW = 10.0


def seeds(folder: Path) -> list[Path]:
    """Small good files: every format, each with vectors, samples, and a confidence with text; logs
    of every tool.
    """
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(12, 3)).astype(np.float32), rng.integers(0, 3, 12)
    p = np.exp(z.astype(np.float64))
    p /= p.sum(axis=1, keepdims=True)
    words = [f"answer {i % 4}" for i in range(12)]
    sets = {
        "logits": hs.Predictions.from_logits(
            z, y, ids=[f"row{i}" for i in range(12)], class_names=["cat", "dog", "owl"]
        ),
        "probs": hs.Predictions.from_probs(p, y, weight=rng.random(12), group=np.arange(12) // 3),
        "samples": hs.Predictions.from_samples(np.stack([z, z + 1, z * 2]), y),
        "top": hs.Predictions.from_confidence(
            p.max(axis=1), y == 0, prediction=words, labels=words[::-1]
        ),
    }
    out: list[Path] = []
    for suffix in suffixes():
        for name, preds in sets.items():
            hs.write(preds, folder / f"{name}{suffix}")
            out.append(
                folder / (f"{name}{suffix}" if suffix != ".npy" else f"{name}_{values(preds)}.npy")
            )
    return out + logs.write(folder)


def values(preds: hs.Predictions) -> str:
    return f"mc_{preds.kind}" if preds.samples > 1 else preds.kind


def flip(raw: bytes, rng: np.random.Generator, _: bytes) -> bytes:
    """A few bytes replaced."""
    out = bytearray(raw)
    for _flip in range(int(rng.integers(1, 9))):
        out[int(rng.integers(len(out)))] = int(rng.integers(256))
    return bytes(out)


def bit(raw: bytes, rng: np.random.Generator, _: bytes) -> bytes:
    """One bit turned."""
    out = bytearray(raw)
    out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def truncate(raw: bytes, rng: np.random.Generator, _: bytes) -> bytes:
    """The end lost."""
    return raw[: int(rng.integers(len(raw)))]


def splice(raw: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """The beginning of one file, the end of another."""
    return raw[: int(rng.integers(len(raw)))] + other[int(rng.integers(len(other))) :]


def remove(raw: bytes, rng: np.random.Generator, _: bytes) -> bytes:
    """A piece cut out."""
    a = int(rng.integers(len(raw)))
    return raw[:a] + raw[a + int(rng.integers(1, 40)) :]


def repeat(raw: bytes, rng: np.random.Generator, _: bytes) -> bytes:
    """A piece written twice."""
    a = int(rng.integers(len(raw)))
    b = a + int(rng.integers(1, 200))
    return raw[:b] + raw[a:b] + raw[b:]


def header(raw: bytes, rng: np.random.Generator, _: bytes) -> bytes:
    """The first or last bytes replaced, where sizes and offsets stand."""
    out = bytearray(raw)
    reach = min(len(out), 160)
    for _edit in range(int(rng.integers(1, 5))):
        i = int(rng.integers(reach))
        out[i if rng.random() < 0.5 else -1 - i] = int(
            rng.choice([0, 1, 127, 128, 255, rng.integers(256)])
        )
    return bytes(out)


def number(raw: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """Digits replaced by digits, signs or words that a number might be."""
    digits = [i for i, byte in enumerate(raw) if 48 <= byte <= 57]
    if not digits:
        return flip(raw, rng, other)
    i = int(rng.choice(digits))
    word = [
        b"9",
        b"-",
        b"1e999",
        b"nan",
        b"99999999999999999999",
        b"0",
        b"",
        b'"x"',
        b"null",
        b"[]",
        b"1_0",
        b"%",
    ]
    return raw[:i] + word[int(rng.integers(len(word)))] + raw[i + 1 :]


MUTATIONS: list[Callable[[bytes, np.random.Generator, bytes], bytes]] = [
    flip,
    bit,
    truncate,
    splice,
    remove,
    repeat,
    header,
    number,
]


def mutated(raw: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """One to three mutations; half of those of an archive go inside it, under a right checksum."""
    if raw[:2] == b"PK" and rng.random() < 0.5:
        return repacked(raw, rng, other)
    for _ in range(int(rng.integers(1, 4))):
        raw = MUTATIONS[int(rng.integers(len(MUTATIONS)))](raw or b"\0", rng, other)
    return raw


def repacked(raw: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """The archive with one member mutated."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = list(members)[int(rng.integers(len(members)))]
    members[name] = MUTATIONS[int(rng.integers(len(MUTATIONS)))](members[name] or b"\0", rng, other)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return buffer.getvalue()


@cache
def content(path: Path) -> bytes:
    return path.read_bytes()


def one(index: int, files: list[Path], folder: Path) -> tuple[str, Path]:
    """Write the mutated file of a number; the format goes round, so that each gets the same share."""
    rng = np.random.default_rng([20, index])
    source = files[index % len(files)]
    other = files[int(rng.integers(len(files)))]
    target = folder / source.name
    target.write_bytes(mutated(content(source), rng, content(other)))
    return source.suffix, target


def in_process(path: Path) -> str:
    """Read and examine; what came of it."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problems(path)
            outcome = "read" if hs.read(path).n else "unforeseen"
    except hs.InputError as e:
        outcome = "refused" if "\n" not in str(e) else "unforeseen: more than one line"
    except Exception as e:
        outcome = f"unforeseen: {type(e).__name__}: {str(e)[:100]}"
    return outcome if time.process_time() - start < SLOW else "unforeseen: slow"


def by_command(path: Path, command: str) -> str:
    """The same through the command line."""
    call = [sys.executable, "-m", "howsure.cli", command, str(path)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode in (0, 1, 2) and "Traceback" not in done.stderr + done.stdout:
        return "read" if done.returncode == 0 else "refused"
    return f"unforeseen: exit {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"


def block(first: int, last: int, command: str | None, out: str) -> None:
    """Do the reads of a range and leave the counts; the number under way is noted, in case the
    interpreter dies.
    """
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        good, bad = Path(temporary) / "good", Path(temporary) / "bad"
        good.mkdir(), bad.mkdir()
        files = seeds(good)
        for index in range(first, last):
            Path(out).write_text(json.dumps({"at": index}))
            suffix, path = one(index, files, bad)
            outcome = in_process(path) if command is None else by_command(path, command)
            counts[f"{suffix} {outcome.split(':')[0]}"] += 1
            if outcome.startswith("unforeseen"):
                failures.append(f"{index} {path.name} {outcome}")
            path.unlink()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    Path(out).write_text(json.dumps({"counts": counts, "failures": failures, "memory": memory}))


def run(first: int, reads: int, command: str | None, state: Path) -> dict:
    """All reads in blocks, each in a child of its own, with the counts kept after every block."""
    total = (
        json.loads(state.read_text())
        if state.exists()
        else {"next": first, "counts": {}, "failures": [], "memory": 0}
    )
    context = multiprocessing.get_context("spawn")
    while total["next"] < first + reads:
        start = total["next"]
        stop = min(start + BLOCK, first + reads)
        with tempfile.TemporaryDirectory() as temporary:
            out = os.path.join(temporary, "result.json")
            child = context.Process(target=block, args=(start, stop, command, out))
            child.start()
            child.join()
            result = json.loads(Path(out).read_text())
        if "at" in result:  # the child died at this read: count it and go on after it
            stop = result["at"] + 1
            result = {
                "counts": {"crash unforeseen": 1},
                "failures": [f"{stop - 1} crash, exit {child.exitcode}"],
                "memory": 0,
            }
        counts = Counter(total["counts"])
        counts.update(result["counts"])
        memory = max(total["memory"], result["memory"])
        total = {
            "next": stop,
            "counts": counts,
            "failures": total["failures"] + result["failures"],
            "memory": memory,
        }
        state.write_text(json.dumps(total))
    return total


def show(total: dict) -> None:
    """A table with a row for each format."""
    counts = Counter(total["counts"])
    rows = sorted({key.split(" ")[0] for key in counts})
    print(f"{'format':<14}{'reads':>9}{'read':>9}{'refused':>9}{'unforeseen':>12}")
    for row in [*rows, "all"]:
        parts = [
            sum(
                n
                for k, n in counts.items()
                if row in (k.split(" ")[0], "all") and k.endswith(f" {what}")
            )
            for what in ("read", "refused", "unforeseen")
        ]
        print(f"{row:<14}{sum(parts):>9,}{parts[0]:>9,}{parts[1]:>9,}{parts[2]:>12,}")
    print(f"largest memory of a child: {total['memory']:,} MiB")
    for failure in total["failures"][:50]:
        print(failure)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reads", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first read")
    parser.add_argument(
        "--command", choices=("doctor", "evaluate"), help="go through the command line"
    )
    parser.add_argument(
        "--state", type=Path, help="file that keeps the counts, so that a run can be resumed"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        total = run(
            args.first, args.reads, args.command, args.state or Path(temporary) / "state.json"
        )
    show(total)
    return 1 if total["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
