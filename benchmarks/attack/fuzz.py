"""Mutated files, states, lines and calls of the command, numbered and seeded by their number.

Everything is either good (it was read, or refused in one line by `InputError` and exit code 2) or
unforeseen. A block of numbers runs in a fork of a process that has imported everything, so that a
crash of the interpreter, a number that takes too much processor time or memory, or one that waits
for ever counts as one failure and the next number goes on.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import multiprocessing
import os
import resource
import signal
import tempfile
import time
import warnings
from collections import Counter
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import howsure as hs
from benchmarks import fuzz_formats
from benchmarks.attack import states
from howsure.cli import main
from howsure.formats.json_lines import BadLine
from howsure.formats.streams import read_batches
from howsure.predictions.read_options import ReadOptions

BLOCK = 20_000  # numbers of one child
ADDRESSES = 12 << 30
MEGABYTES = 800  # of a child, torch and pyarrow among them
SECONDS = 20  # of processor time for one number
WAIT = 600  # seconds until a number that does nothing is given up
MEMORY = Path("/dev/shm")  # files are written here where it exists
PACKAGES = (
    "torch",
    "safetensors.torch",
    "pyarrow.parquet",
    "pyarrow.feather",
    "pyarrow.dataset",
    "scipy.special",
)
TARGETS = ("format",) * 14 + ("state",) * 3 + ("lines",) * 2 + ("command",)
LINES = (
    b'{"id": 1, "probs": [0.2, 0.8], "label": 1}\n{"id": "b", "probs": [0.7, 0.3]}\n',
    b'{"confidence": 0.9, "correct": true}\n{"confidence": "85%"}\n{"confidence": 0.1, "x": []}\n',
    b'id,prob_cat,prob_dog,label\na,0.2,0.8,dog\n"b, c",0.5,0.5,cat\n',
    b"confidence\tcorrect\n0.9\t1\n0.1\t0\n",
    b'id;confidence;correct\na;0,9;1\n"b;c";"85,5 %";0\n',
)
WORDS = (
    "evaluate", "compare", "check", "calibrate", "threshold", "decide", "doctor", "demo", "--json", "--html", "-o",
    "-q", "--split", "--mc",
    "--renormalise", "--name", "labels=x", "=", "--level", "0.9", "-1", "nan", "1e999", "--seed",
    "--score", "margin", "--require", "ece<=0.5", "coverage_at_risk(0.01)>=0.8", "a<=b",
    "--risk", "--delta", "--fit", "--on",
    "--stream", "--compact",
    "--resume", "--workers", "0", "--format", "inspect", "\x1b[31m", "", "-", "--", "*", "[", "~",
)  # fmt: skip


def lines(index: int) -> str:
    """Mutated lines in blocks of any size."""
    rng = np.random.default_rng([7, index])
    raw = LINES[index % len(LINES)] * int(rng.integers(1, 6))
    data = fuzz_formats.mutated(raw, rng, LINES[int(rng.integers(len(LINES)))])
    size = int(rng.integers(1, 200))
    blocks = (data[i : i + size] for i in range(0, len(data), size))
    seen = 0
    for batch in read_batches(
        blocks, Path(("standard input", "a.jsonl", "a.csv")[index % 3]), ReadOptions()
    ):
        if isinstance(batch, BadLine):
            assert "\n" not in str(batch.error)
        else:
            assert list(batch.lines) == sorted(batch.lines)
            seen += len(batch)
    return "read"


def command(index: int, folder: Path) -> str:
    """A call with words in any order, on files that are good, bad or missing."""
    rng = np.random.default_rng([8, index])
    good, bad, policy = folder / "good.npz", folder / "bad.csv", folder / "policy.json"
    if not good.exists():
        hs.write(states.preds(), good)
        bad.write_text("confidence,correct\n0.5,x\n")
        hs.save(hs.policies.Policy("max_prob", 0.5), policy)
    files = [str(good), str(bad), str(policy), str(folder / "none.npz")]
    args = [
        str(rng.choice([w for w in WORDS if w not in ("demo", "--workers", "--html", "-o", "-")]))
    ]
    args = [str(rng.choice(WORDS[:7]))] if rng.random() < 0.9 else args
    for _ in range(int(rng.integers(0, 6))):
        args.append(str(rng.choice(files)) if rng.random() < 0.5 else str(rng.choice(WORDS[8:])))
    args = [a for a in args if a not in ("-", "-o", "--html", "--resume", "--workers")]
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    said = lambda file: file.buffer.getvalue().decode("utf-8", "replace")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(args)
    except SystemExit as e:
        if (
            e.code not in (0, 1, 2, 3)
            or "Traceback" in said(err)
            or "\x1b" in said(err) + said(out)
        ):
            return f"unforeseen: {args}: exit {e.code}: {said(err)[-150:]}"
        return "read" if e.code == 0 else "refused"
    return f"unforeseen: {args} did not end"


def one(index: int, files: list[Path], folder: Path) -> tuple[str, str]:
    """The target of a number, and what came of it."""
    target = TARGETS[index % len(TARGETS)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if target == "format":
                suffix, path = fuzz_formats.one(index, files, folder)
                found = fuzz_formats.in_process(path)
                path.unlink()
                return suffix, found
            if target == "state":
                return target, states.one(index, folder)
            return target, lines(index) if target == "lines" else command(index, folder)
    except hs.InputError as e:
        return target, "refused" if "\n" not in str(e) else "unforeseen: more than one line"
    except Exception as e:
        return target, f"unforeseen: {type(e).__name__}: {str(e)[:100]}"


def sow(folder: Path) -> None:
    """The files that are mutated, and their names in order."""
    (folder / "good").mkdir()
    (folder / "names").write_text(
        "\n".join(path.name for path in fuzz_formats.seeds(folder / "good"))
    )


def seeds(folder: Path) -> list[Path]:
    return [folder / "good" / name for name in (folder / "names").read_text().splitlines()]


def kind(index: int, files: list[Path]) -> str:
    """What a number attacks: the suffix of its file, or its target."""
    target = TARGETS[index % len(TARGETS)]
    return files[index % len(files)].suffix if target == "format" else target


def block(first: int, last: int, until: float, folder: Path) -> None:
    """A range of numbers, until the time is over.

    The number under way is noted in `at`, in case the interpreter dies, each failure in `failures`
    as it comes.
    """
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    files, index, longest, memory = seeds(folder), first, 0.0, 0
    with (
        (folder / "failures").open("a") as failures,
        tempfile.TemporaryDirectory(dir=folder) as temporary,
    ):
        at = os.open(folder / "at", os.O_WRONLY | os.O_CREAT)
        while index < last and time.time() < until and memory <= MEGABYTES:
            os.pwrite(at, b"%020d" % index, 0)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(WAIT)
            start = time.process_time()
            target, outcome = one(index, files, Path(temporary))
            longest = max(longest, time.process_time() - start)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            if memory > MEGABYTES:
                outcome = f"unforeseen: {memory:,} MB ({outcome})"
            if outcome.startswith("unforeseen"):
                print(f"{index} {target} {' '.join(outcome.split())}", file=failures, flush=True)
            index += 1
    signal.setitimer(signal.ITIMER_PROF, 0)
    (folder / "done").write_text(
        json.dumps({"next": index, "megabytes": memory, "longest": longest})
    )


EMPTY = {"next": 0, "counts": {}, "failures": [], "megabytes": 0, "longest": 0.0}


def run(minutes: float, state: Path, most: int = 1_000_000) -> dict[str, Any]:
    """Go on from `state` until the time is over or `most` numbers are done.

    Numbers that failed are tried again first: what was mended since is no failure of the code at
    hand.
    """
    total = json.loads(state.read_text()) if state.exists() else EMPTY
    until = time.time() + 60 * minutes
    for package in PACKAGES:
        if find_spec(package.split(".")[0]):
            importlib.import_module(package)
    gc.collect(), gc.freeze()  # what is imported stays: a child need not walk through it
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as temporary:
        maker = context.Process(
            target=sow, args=(Path(temporary),)
        )  # so that no thread is there when we fork
        maker.start(), maker.join()
        total["failures"] = again(total["failures"], context, Path(temporary))
        while total["next"] < most and time.time() < until:
            total = added(total, context, Path(temporary), min(total["next"] + BLOCK, most), until)
            state.write_text(json.dumps(total))
    return total


def again(
    failures: list[str], context: multiprocessing.context.ForkContext, folder: Path
) -> list[str]:
    """Those of an earlier run that still fail."""
    numbers = [int(failure.split()[0]) for failure in failures if failure]
    found = [added({**EMPTY, "next": i}, context, folder, i + 1, inf)["failures"] for i in numbers]
    return [failure for still in found for failure in still]


def added(
    total: dict[str, Any],
    context: multiprocessing.context.ForkContext,
    folder: Path,
    last: int,
    until: float,
) -> dict[str, Any]:
    """What is known after one more child."""
    first, files = total["next"], seeds(folder)
    child = context.Process(target=block, args=(first, last, until, folder))
    child.start(), child.join()
    done, failures = folder / "done", (folder / "failures").read_text().splitlines()
    (folder / "failures").unlink()
    if done.exists():
        found = json.loads(done.read_text())
        done.unlink()
    else:
        at = int((folder / "at").read_text())
        failures.append(f"{at} {kind(at, files)} crash, exit {child.exitcode}")
        found = {"next": at + 1, "megabytes": 0, "longest": 0.0}
    counts = Counter(total["counts"])
    counts.update(kind(i, files) for i in range(first, found["next"]))
    return {
        "next": found["next"],
        "counts": counts,
        "failures": [*total["failures"], *failures],
        "megabytes": max(total["megabytes"], found["megabytes"]),
        "longest": max(total["longest"], found["longest"]),
    }
