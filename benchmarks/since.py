"""`python -m benchmarks since`: whole commands beside those of an earlier commit, in one run.

Both source trees are compiled, then take turns with the unit `import numpy, scipy.special` in every
round, so that a busy moment strikes all three. A value is the ratio of the medians of CPU time; the
detail has user and system time apart, and units. The earlier commit is checked out as a worktree in
a temporary folder. `HOWSURE_SINCE` names another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from .commands import KEPT, UNIT, saved
from .rows import Row

SINCE = os.environ.get("HOWSURE_SINCE", "d78843d")  # the first commit of 0.3
ROUNDS = 7
LONG_ROUNDS = 1  # of jobs that take a minute at the earlier commit
REPOSITORY = Path(__file__).parents[1]
LAUNCH = """
import json, os, subprocess, sys
read = open(sys.argv[1], "rb") if sys.argv[1] else subprocess.DEVNULL
child = subprocess.Popen(sys.argv[2:], stdin=read, stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime, used.ru_stime]))
"""
FIRST_DECISION = """
import sys, numpy, howsure as hs
policy = hs.load(sys.argv[1])
policy.decide(hs.Predictions.from_logits(numpy.zeros((1, 10))))
"""
PYTHONS_OWN = {
    "csv": "import csv, sys\nfor row in csv.reader(sys.stdin): list(map(float, row[1:])) if row[1] != 'logit_0' else 0",
    "jsonl": "import json, sys\nfor line in sys.stdin: json.loads(line)",
}


@dataclass(frozen=True)
class Job:
    """A command of both sides, with what its ratio must be; `{policy}` is a policy of that side."""

    name: str
    arguments: Sequence[str]
    must: float | None = None
    moonshot: float | None = None
    rounds: int = ROUNDS
    code: str = ""  # run instead of the command line


def rows() -> Iterator[Row]:
    """One row for each job, then the lines of a pipe beside Python's own readers."""
    with tempfile.TemporaryDirectory() as name, check_out(SINCE, Path(name)) as earlier:
        folder = Path(name)
        sides = {"before": earlier / "src", "now": REPOSITORY / "src"}
        jobs = write_files(folder)
        for side, source in sides.items():
            command = (sys.executable, "-m", "compileall", "-q", str(source))
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            make_policy = ("threshold", "small0.npz", "--risk", "0.3", "-o", f"{side}.json")
            measure(Job("", make_policy), source, side, folder)
        for job in jobs:
            yield compare_sides(job, sides, folder)
        yield from pipe(folder, sides["now"])


@contextmanager
def check_out(commit: str, folder: Path) -> Iterator[Path]:
    tree = folder / "earlier"
    git = ("git", "-C", str(REPOSITORY), "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def write_files(folder: Path) -> list[Job]:
    """The files of all jobs, and the jobs."""
    small = [saved(folder, f"small{i}.npz", 10**4, 10, i) for i in range(200)]
    saved(folder, "ten.npz", 10, 10)
    for name, n, k in (("two", 10**6, 2), ("many", 10**6, 10), ("wide", 5 * 10**4, 1000)):
        saved(folder, f"{name}.npz", n, k)
    jobs = [
        Job("--help", ["--help"], 0.6, 0.45),
        Job("evaluate 10⁴ × 10", ["evaluate", small[0]], 0.93, 0.8),
        Job("evaluate 10⁶ × 2", ["evaluate", "two.npz"], 0.4, 0.3),
        Job("evaluate 10⁶ × 10", ["evaluate", "many.npz"], 0.95, 0.8),
        Job("evaluate 5·10⁴ × 1000", ["evaluate", "wide.npz"], 0.95, 0.8),
        Job("compare 4 models", ["compare", *small[:4]], 0.85, 0.75),
        Job("compare 32 models", ["compare", *small[:32]], 0.22, 0.15, 3),
        Job("compare 200 models", ["compare", *small], 0.16, 0.08, LONG_ROUNDS),
        Job("decide ten rows", ["decide", "{policy}", "ten.npz"], 0.8, 0.6),
        Job("load, first decision", ["{policy}"], 0.8, 0.6, code=FIRST_DECISION),
        Job("monitor 10⁴ × 10", ["monitor", small[0], small[1]], 1),
        Job("threshold --risk 10⁴ × 10", ["threshold", small[0], "--risk", "0.3"], 1),
        Job("doctor 10⁴ × 10", ["doctor", small[0]], 1),
    ]
    sizes = (
        (500, 10, 0.5, 0.3),
        (10**4, 10, 0.9, 0.7),
        (2 * 10**5, 10, 0.85, 0.6),
        (5000, 100, 0.8, 0.5),
    )
    for n, k, must, moonshot in sizes:
        fit, test = (saved(folder, f"{i}_{n}_{k}.npz", n, k, i) for i in (7, 8))
        command = ["calibrate", "--fit", fit, "--on", test]
        jobs.append(Job(f"calibrate {n:,} × {k}", command, must, moonshot))
    if write_parquet(folder / "rows.parquet"):
        jobs.append(
            Job("stream 2·10⁷ Parquet rows", ["evaluate", "rows.parquet", "--stream"], 0.75, 0.5)
        )
    return jobs


def write_parquet(path: Path) -> bool:
    """2·10⁷ rows of a confidence and its outcome; False where pyarrow is missing."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return False
    rng = np.random.default_rng(0)
    kind = pa.schema([("confidence", pa.float32()), ("correct", pa.bool_())])
    with pq.ParquetWriter(path, kind) as writer:
        for _ in range(20):
            c = rng.beta(8, 1.2, 10**6).astype(np.float32)
            writer.write_table(pa.table({"confidence": c, "correct": rng.random(10**6) < c}))
    return True


def run(command: Sequence[str], folder: Path, source: Path, read: str = "") -> np.ndarray:
    """User and system seconds of a process."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCH, read, *command],
        cwd=folder,
        capture_output=True,
        env={**KEPT, "PYTHONPATH": str(source)},
        check=True,
    )
    code, user, system = json.loads(done.stdout)
    if code not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {done.stderr.decode()[-500:]}")
    return np.array([user, system])


def measure(job: Job, source: Path, side: str, folder: Path) -> np.ndarray:
    arguments = [a.replace("{policy}", f"{side}.json") for a in job.arguments]
    start = ["-c", job.code] if job.code else ["-m", "howsure"]
    return run([sys.executable, *start, *arguments], folder, source)


def compare_sides(job: Job, sides: dict[str, Path], folder: Path) -> Row:
    times: dict[str, list[np.ndarray]] = {side: [] for side in (*sides, "unit")}
    for _ in range(job.rounds):
        for side, source in sides.items():
            times[side].append(measure(job, source, side, folder))
        times["unit"].append(run(UNIT, folder, sides["now"]))
    total = {side: median(t.sum() for t in found) for side, found in times.items()}
    user, system = np.median(times["now"], axis=0)
    old_user, old_system = np.median(times["before"], axis=0)
    detail = (
        f"{user:.2f} + {system:.2f} CPU s user and system, {old_user:.2f} + {old_system:.2f} before; "
        f"{total['now'] / total['unit']:.1f} units; {job.rounds} rounds"
    )
    value = total["now"] / total["before"]
    return Row(f"{job.name}, × of {SINCE}", value, "×", job.must, job.moonshot, detail=detail)


def pipe(folder: Path, source: Path, n: int = 2 * 10**5) -> Iterator[Row]:
    """Lines of ten logits through `decide`, beside Python's own reader of the same lines."""
    z = np.random.default_rng(0).normal(0, 3, (n, 10)).round(4).tolist()
    with (folder / "in.csv").open("w") as file:
        file.write(",".join(["id", *(f"logit_{i}" for i in range(10))]) + "\n")
        file.writelines(f"x{i},{','.join(map(repr, row))}\n" for i, row in enumerate(z))
    with (folder / "in.jsonl").open("w") as file:
        file.writelines(f'{{"id":"x{i}","logits":{row}}}\n' for i, row in enumerate(z))
    (folder / "in.none").touch()
    decide = (sys.executable, "-m", "howsure", "decide", "now.json", "-", "-q")
    for kind, must, moonshot in (("csv", 0.4, 0.8), ("jsonl", 0.8, 2)):
        own = (sys.executable, "-c", PYTHONS_OWN[kind])
        took: dict[str, list[float]] = {"decide": [], "own": []}
        for _ in range(ROUNDS):
            for name, command in (("decide", decide), ("own", own)):
                full = run(command, folder, source, f"in.{kind}").sum()
                took[name].append(full - run(command, folder, source, "in.none").sum())
        ours, theirs = median(took["decide"]), median(took["own"])
        detail = f"{n / ours:,.0f} rows per CPU second, Python's own {kind} {n / theirs:,.0f}"
        yield Row(
            f"decide {kind} in a pipe, × Python's own {kind}",
            theirs / ours,
            "×",
            must,
            moonshot,
            more_is_better=True,
            detail=detail,
        )
