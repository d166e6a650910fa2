"""What a user waits for: whole processes, start included, as multiples of `python -c "import numpy,
scipy.special"`.

Every job runs in a process of its own; its CPU time (user and system, with its children's) and its
peak memory come from the operating system. The unit takes turns with the jobs, so that a busy
moment strikes both. Python keeps the compiled form of our modules, as it does of installed ones:
the first of several runs makes it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .rows import Row
from .workloads import logits

UNIT = (sys.executable, "-c", "import numpy, scipy.special")
KEPT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
HOWSURE = (sys.executable, "-m", "howsure")
REPEATS = 5


@dataclass(frozen=True)
class Cost:
    """CPU seconds and peak megabytes of a process."""

    seconds: float
    megabytes: float


LAUNCH = """
import json, os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""  # a process that is forked from a large one has its parent's memory in its peak: a small one stands between


def cost(
    command: Sequence[str], folder: str | Path, before: Callable[[], None] | None = None
) -> Cost:
    """Run a command to its end; its output is thrown away, a failure is not. `before` is called in
    its process.
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCH, *command],
        cwd=folder,
        capture_output=True,
        env=KEPT,
        preexec_fn=before,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} could not be run: {done.stderr.decode()[-500:]}")
    code, seconds, megabytes = json.loads(done.stdout)
    if code not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {done.stderr.decode()[-500:]}")
    return Cost(seconds, megabytes)


def best(
    commands: dict[str, Sequence[str]],
    folder: str | Path,
    repeats: int,
    before: Callable[[], None] | None = None,
) -> dict[str, Cost]:
    """The least CPU time and the peak memory of each command, taking turns."""
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            found[name].append(cost(command, folder, before))
    return {
        name: Cost(min(c.seconds for c in all_), max(c.megabytes for c in all_))
        for name, all_ in found.items()
    }


def saved(folder: Path, name: str, n: int, k: int, noise: int = 0) -> str:
    """A file of float32 logits and labels; `noise` makes another model of the same samples."""
    z, labels = logits(n, k)
    if noise:
        z = z + np.random.default_rng(noise).standard_normal(z.shape, np.float32)
    np.savez(folder / name, logits=z, labels=labels)
    return name


def rows() -> Iterator[Row]:
    """One row for each job of the contract."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from whole(folder)
        yield from small_ones(folder)
        yield counts(folder)
        yield warm()
        yield streamed(folder)


def whole(folder: Path) -> Iterator[Row]:
    """Commands on files of the contract's sizes."""
    small = [saved(folder, f"small{i}.npz", 10**4, 10, i) for i in range(4)]
    many, wide = saved(folder, "many.npz", 10**6, 10), saved(folder, "wide.npz", 5 * 10**4, 1000)
    val, test = (
        saved(folder, "val.npz", 2 * 10**5, 10, 7),
        saved(folder, "test.npz", 2 * 10**5, 10, 8),
    )
    jobs = (
        ("evaluate 10⁴ × 10", ("evaluate", small[0]), 2.5, 1.6, REPEATS),
        ("evaluate 10⁶ × 10", ("evaluate", many), 6, 4, 2),
        ("evaluate 5·10⁴ × 1000", ("evaluate", wide), 7, 5, 2),
        ("compare 4 models of 10⁴ × 10", ("compare", *small), 3.5, 2, REPEATS),
        ("calibrate 10⁴ × 10", ("calibrate", "--fit", small[0], "--on", small[1]), 6, 3, 3),
        ("calibrate 2·10⁵ × 10", ("calibrate", "--fit", val, "--on", test), 40, 15, 2),
    )
    for job, arguments, must, moonshot, repeats in jobs:
        found = best({"unit": UNIT, "job": (*HOWSURE, *arguments)}, folder, repeats)
        yield ratio(f"howsure {job}", found["job"], found["unit"], must, moonshot)


def ratio(job: str, of: Cost, unit: Cost, must: float | None, moonshot: float | None) -> Row:
    detail = f"{of.seconds:.2f} CPU s, unit {unit.seconds:.2f}; peak {of.megabytes:,.0f} MB"
    return Row(job, of.seconds / unit.seconds, "× unit", must, moonshot, detail=detail)


def small_ones(folder: Path) -> Iterator[Row]:
    """Commands that need little."""
    small = saved(folder, "few.npz", 10**4, 10)
    jobs = (
        ("--help", ["--help"]),
        ("doctor 10⁴ × 10", ["doctor", small]),
        ("check 10⁴ × 10", ["check", small, "--require", "ece<=1"]),
        ("threshold 10⁴ × 10", ["threshold", small, "--risk", "0.5"]),
    )
    for name, arguments in jobs:
        found = best({"unit": UNIT, "job": (*HOWSURE, *arguments)}, folder, REPEATS)
        yield ratio(f"howsure {name}", found["job"], found["unit"], None, None)


def counts(folder: Path, n: int = 10**8) -> Row:
    """The report of a table that counts so many answers, each with a confidence of four digits."""
    score = np.arange(1, 10**4) / 10**4
    each = np.full(len(score), n // len(score))
    right = np.random.default_rng(0).binomial(each, score)
    lines = ["confidence,correct,count"]
    for claim, yes, no in zip(score.tolist(), right.tolist(), (each - right).tolist(), strict=True):
        lines += [f"{claim},1,{yes}", f"{claim},0,{no}"]
    (folder / "counts.csv").write_text("\n".join(lines) + "\n")
    found = best({"job": (*HOWSURE, "evaluate", "counts.csv")}, folder, REPEATS)["job"]
    detail = f"peak {found.megabytes:,.0f} MB"
    return Row(
        "evaluate of a table that counts 10⁸ answers", found.seconds, "CPU s", 3, 1.5, detail=detail
    )


def warm() -> Row:
    """`hs.evaluate` where everything is imported already."""
    import howsure as hs

    from .timing import peak_bytes, seconds

    z, labels = logits(10**4, 10)
    job = lambda: hs.evaluate(hs.Predictions.from_logits(z, labels))
    job()
    (found,) = seconds(job, repeats=REPEATS)
    detail = f"peak {peak_bytes(job) / 1e6:,.0f} MB beside the input"
    return Row("hs.evaluate 10⁴ × 10, warm", found, "CPU s", 0.25, 0.1, detail=detail)


def streamed(folder: Path, n: int = 2 * 10**7) -> Row:
    """Parquet rows of a confidence, beside reading the file with pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    with pq.ParquetWriter(
        folder / "rows.parquet", pa.schema([("confidence", pa.float32()), ("correct", pa.bool_())])
    ) as w:
        for _ in range(n // 10**6):
            c = rng.beta(8, 1.2, 10**6).astype(np.float32)
            w.write_table(pa.table({"confidence": c, "correct": rng.random(10**6) < c}))
    read = (
        sys.executable,
        "-c",
        "import pyarrow.parquet as pq; f = pq.ParquetFile('rows.parquet')\nfor b in f.iter_batches(): pass",
    )
    job = (*HOWSURE, "evaluate", "rows.parquet", "--stream")
    found = best({"read": read, "job": job}, folder, 2)
    of, beside = found["job"], found["read"]
    detail = f"{of.seconds:.2f} CPU s, reading {beside.seconds:.2f}; peak {of.megabytes:,.0f} MB"
    return Row(
        "evaluate --stream 2·10⁷ Parquet rows",
        of.seconds / beside.seconds,
        "× reading",
        12,
        8,
        detail=detail,
    )
