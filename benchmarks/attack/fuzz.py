"""Mutated files, states, lines and calls of the command, numbered and seeded by their number.

Everything is either good (it was read, or refused in one line by `InputError` and exit code 2) or unforeseen. A block
of numbers runs in a child, so that a crash of the interpreter counts as one failure and the next number goes on.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import resource
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import howsure as hs
from benchmarks import fuzz_formats
from benchmarks.attack import states
from howsure.cli import main
from howsure.formats.lines import BadLine
from howsure.formats.names import Wanted
from howsure.formats.streams import batches

BLOCK = 2000  # numbers of one child
ADDRESSES = 12 << 30
TARGETS = ("format",) * 14 + ("state",) * 3 + ("lines",) * 2 + ("command",)
LINES = (
    b'{"id": 1, "probs": [0.2, 0.8], "label": 1}\n{"id": "b", "probs": [0.7, 0.3]}\n',
    b'{"confidence": 0.9, "correct": true}\n{"confidence": "85%"}\n{"confidence": 0.1, "x": []}\n',
    b'id,prob_cat,prob_dog,label\na,0.2,0.8,dog\n"b, c",0.5,0.5,cat\n',
    b"confidence\tcorrect\n0.9\t1\n0.1\t0\n",
)
WORDS = (
    "evaluate", "compare", "check", "calibrate", "threshold", "decide", "doctor", "demo", "--json", "--html", "-o",
    "-q", "--split", "--mc",
    "--renormalise", "--name", "labels=x", "=", "--level", "0.9", "-1", "nan", "1e999", "--seed",
    "--score", "margin", "--max-ece", "--min-coverage-at-risk", "0.01:0.8", "a:b", "--risk", "--delta", "--fit", "--on",
    "--stream", "--compact",
    "--resume", "--workers", "0", "--format", "inspect", "\x1b[31m", "", "-", "--", "*", "[", "~",
)  # fmt: skip


def lines(index: int) -> str:
    """Mutated lines in blocks of any size."""
    rng = np.random.default_rng([7, index])
    raw = LINES[index % len(LINES)] * int(rng.integers(1, 20))
    data = fuzz_formats.mutated(raw, rng, LINES[int(rng.integers(len(LINES)))])
    size = int(rng.integers(1, 200))
    blocks = (data[i : i + size] for i in range(0, len(data), size))
    seen = 0
    for batch in batches(blocks, Path(("standard input", "a.jsonl", "a.csv")[index % 3]), Wanted()):
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
    args = [str(rng.choice([w for w in WORDS if w not in ("demo", "--workers", "--html", "-o", "-")]))]
    args = [str(rng.choice(WORDS[:7]))] if rng.random() < 0.9 else args
    for _ in range(int(rng.integers(0, 6))):
        args.append(str(rng.choice(files)) if rng.random() < 0.5 else str(rng.choice(WORDS[8:])))
    args = [a for a in args if a not in ("-", "-o", "--html", "--resume", "--workers")]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    said = lambda file: file.buffer.getvalue().decode("utf-8", "replace")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(args)
    except SystemExit as e:
        if e.code not in (0, 1, 2, 3) or "Traceback" in said(err) or "\x1b" in said(err) + said(out):
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


def block(first: int, last: int, until: float, report: str) -> None:
    """A range of numbers, until the time is over; the number under way is noted, in case the interpreter dies."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    counts: Counter[str] = Counter()
    failures: list[str] = []
    longest, index = 0.0, first
    with tempfile.TemporaryDirectory() as temporary:
        good, bad = Path(temporary) / "good", Path(temporary) / "bad"
        good.mkdir(), bad.mkdir()
        files = fuzz_formats.seeds(good)
        while index < last and time.time() < until:
            Path(report).write_text(json.dumps({"at": index}))
            start = time.perf_counter()
            target, outcome = one(index, files, bad)
            longest = max(longest, time.perf_counter() - start)
            counts[target] += 1
            if outcome.startswith("unforeseen"):
                failures.append(f"{index} {target} {outcome}")
            index += 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    done = {"next": index, "counts": counts, "failures": failures, "megabytes": memory, "longest": longest}
    Path(report).write_text(json.dumps(done))


def run(minutes: float, state: Path, most: int = 1_000_000) -> dict[str, Any]:
    """Go on from `state` until the time is over or `most` numbers are done."""
    empty = {"next": 0, "counts": {}, "failures": [], "megabytes": 0, "longest": 0.0}
    total = json.loads(state.read_text()) if state.exists() else empty
    until = time.time() + 60 * minutes
    context = multiprocessing.get_context("spawn")
    while total["next"] < most and time.time() < until:
        with tempfile.TemporaryDirectory() as folder:
            report, start = Path(folder) / "report.json", total["next"]
            child = context.Process(target=block, args=(start, min(start + BLOCK, most), until, str(report)))
            child.start()
            child.join()
            found = json.loads(report.read_text()) if report.exists() else {"at": start}
        if "at" in found:
            failure = f"{found['at']} crash, exit {child.exitcode}"
            found = {**empty, "next": found["at"] + 1, "counts": {"crash": 1}, "failures": [failure]}
        counts = Counter(total["counts"])
        counts.update(found["counts"])
        total = {
            "next": found["next"],
            "counts": counts,
            "failures": total["failures"] + found["failures"],
            "megabytes": max(total["megabytes"], found["megabytes"]),
            "longest": max(total["longest"], found["longest"]),
        }
        state.write_text(json.dumps(total))
    return total
