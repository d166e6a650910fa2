"""Do exported policies decide as `decide` does, and how fast?

python -m benchmarks.exports              every score and calibrator in every target that is installed, 10^7 vectors
python -m benchmarks.exports --rows 1e5   the same with fewer
python -m benchmarks.exports speed        ns for each decision with 10 and 1,000 classes, and sizes

Targets: C by gcc and clang in double and float, JavaScript by Node and Chromium, SQLite, DuckDB, PostgreSQL (with
--psql, the command of a psql that may create tables), ONNX Runtime. Each must decide alike wherever the score is
farther from its threshold than the band, and inside may only defer; a score that is compared as given never differs.
"""

from __future__ import annotations

import argparse
import base64
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import howsure as hs
from benchmarks import machine
from howsure import InputError
from howsure._core.checks import Bools, Floats
from howsure.calibrators import (
    Beta,
    Calibrator,
    HistogramBinning,
    Isotonic,
    Platt,
    StructuredScaling,
    Temperature,
    VectorScaling,
)
from howsure.policies import Policy
from howsure.serving.export_onnx import write_onnx
from howsure.serving.export_text import write_c, write_javascript, write_sql
from howsure.serving.exports import Export, plan_export

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O2")
BROWSER_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run")
SCORES = (
    "max_prob", "log_max_prob", "margin", "entropy", "neg_entropy", "top_k_mass", "max_logit", "energy",
)  # fmt: skip
# Of all vectors, the share that has so many classes.
CLASSES = {2: 0.46, 10: 0.47, 100: 0.065, 1000: 0.005}
SQL_SHARE, BROWSER_SHARE = 0.1, 0.1  # of the vectors: these take longer

C_MAIN = """#include <stdio.h>
#include "policy.h"
int main(void) {
  %s v[%d];
  while (fread(v, sizeof v[0], %d, stdin) == %d) putchar(howsure_decide(v, 0).accept ? '1' : '0');
  return 0;
}
"""
JS_MAIN = """import {readFileSync} from 'fs';
import {decide} from './policy.mjs';
const bytes = readFileSync('rows.bin');
const rows = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);
let out = '';
for (let i = 0; i < rows.length; i += %d) out += decide(rows.subarray(i, i + %d), '').accept ? '1' : '0';
process.stdout.write(out);
"""
BROWSER_MAIN = """const [source, text, k, done] = arguments;
import(URL.createObjectURL(new Blob([source], {type: 'text/javascript'}))).then(({decide}) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const rows = new Float64Array(bytes.buffer);
  let out = '';
  for (let i = 0; i < rows.length; i += k) out += decide(rows.subarray(i, i + k), '').accept ? '1' : '0';
  done(out);
}).catch((e) => done(String(e)));
"""


@dataclass(frozen=True, eq=False)
class Case:
    """One policy, what it is given, rows, and which of them are no input at all."""

    policy: Policy
    given: str
    rows: Floats
    bad: Bools

    def decide(self, rows: Floats) -> tuple[Bools, Floats]:
        """What `decide` says of each row, and the scores; rows that it refuses are deferred."""
        make = {
            "logits": hs.Predictions.from_logits,
            "probs": hs.Predictions.from_probs,
            "confidence": lambda v: hs.Predictions.from_confidence(v[:, 0]),
            "score": lambda v: hs.Predictions.from_score(v[:, 0]),
        }[self.given]
        made = self.policy.decide(make(rows[~self.bad]))
        accept, score = np.zeros(len(rows), dtype=np.bool_), np.full(len(rows), np.nan)
        accept[~self.bad], score[~self.bad] = made.accept, made.score
        return accept, score


# ---- the targets: an export and rows → accepted or not


def run_c(export: Export, rows: Floats, compiler: str, folder: Path) -> Bools:
    """By a compiler."""
    (folder / "policy.h").write_text(write_c(export))
    k = rows.shape[1]
    (folder / "main.c").write_text(C_MAIN % (export.precision, k, k, k))
    subprocess.run([compiler, *FLAGS, "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
    raw = rows.astype({"float": np.float32, "double": np.float64}[export.precision]).tobytes()
    made = subprocess.run([folder / "main"], input=raw, capture_output=True, check=True)
    return read_flags(made.stdout)


def run_node(export: Export, rows: Floats, folder: Path) -> Bools:
    """By Node."""
    (folder / "policy.mjs").write_text(write_javascript(export))
    (folder / "main.mjs").write_text(JS_MAIN % (rows.shape[1], rows.shape[1]))
    (folder / "rows.bin").write_bytes(rows.tobytes())
    made = subprocess.run(["node", "main.mjs"], cwd=folder, capture_output=True, check=True)
    return read_flags(made.stdout)


def run_browser(export: Export, rows: Floats, browser: Any) -> Bools:
    """In Chromium."""
    text = base64.b64encode(rows.tobytes()).decode()
    made = browser.execute_async_script(BROWSER_MAIN, write_javascript(export), text, rows.shape[1])
    assert set(made) <= {"0", "1"}, made
    return read_flags(made.encode())


def run_onnx(export: Export, rows: Floats) -> Bools:
    """By ONNX Runtime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(
        write_onnx(export).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    kind = {"float": np.float32, "double": np.float64}[export.precision]
    return session.run(["accept"], {"values": rows.astype(kind)})[0]


def name_columns(export: Export) -> list[str]:
    """What the columns of a table are called."""
    if export.size == 1:
        return [export.given]
    return [f"{export.given.removesuffix('s')}_{i}" for i in range(export.size)]


def run_sqlite(export: Export, rows: Floats) -> Bools:
    """By SQLite."""
    names = name_columns(export)
    base = sqlite3.connect(":memory:")
    base.execute(f"CREATE TABLE vectors ({', '.join(f'{name} REAL' for name in names)})")
    base.executemany(f"INSERT INTO vectors VALUES ({', '.join('?' * len(names))})", rows.tolist())
    made = base.execute(f"SELECT {write_sql(export)} FROM vectors ORDER BY rowid").fetchall()
    return np.array([row[0] == "accept" for row in made])


def run_duckdb(export: Export, rows: Floats) -> Bools:
    """By DuckDB."""
    import duckdb

    vectors = {"hs_row": np.arange(len(rows))}
    vectors |= {name: rows[:, i].copy() for i, name in enumerate(name_columns(export))}
    base = duckdb.connect()
    base.register("vectors", vectors)
    made = base.execute(f"SELECT hs_row, {write_sql(export)} FROM vectors").fetchall()
    accept = np.zeros(len(rows), dtype=np.bool_)
    accept[[row[0] for row in made]] = [row[1] == "accept" for row in made]
    return accept


def run_postgres(export: Export, rows: Floats, psql: list[str]) -> Bools:
    """By PostgreSQL."""
    names = name_columns(export)
    columns = ", ".join(f"{name} double precision" for name in names)
    lines = "\n".join("\t".join(repr(float(x)) for x in (i, *row)) for i, row in enumerate(rows))
    script = f"CREATE TEMP TABLE vectors (hs_row double precision, {columns});\nCOPY vectors FROM STDIN;\n{lines}\n\\.\n"
    expression = "\n".join(x for x in write_sql(export).splitlines() if not x.startswith("--"))
    script += f"SELECT {expression} FROM vectors ORDER BY hs_row;\n"
    made = subprocess.run(
        [*psql, "-qAtX", "-v", "ON_ERROR_STOP=1"], input=script, capture_output=True, text=True, check=True
    )  # fmt: skip
    return np.array([x == "accept" for x in made.stdout.splitlines()])


def read_flags(text: bytes) -> Bools:
    """Zeros and ones, one for each row."""
    return np.frombuffer(text, dtype=np.uint8) == ord("1")


# ---- rows of every kind


def make_logits(n: int, k: int, rng: np.random.Generator) -> Floats:
    """Logits with ties, neighbours, huge and tiny ones, classes that are ruled out, and what is no
    logit at all.
    """
    z = rng.normal(size=(n, k)) * rng.choice([0.3, 3.0, 30.0], size=(n, 1))
    part = np.array_split(np.arange(n), 16)
    z[part[0]] = np.round(z[part[0]])
    z[part[1]] = np.round(z[part[1]] * 4) / 4
    z[part[2]] = np.nextafter(np.round(z[part[2]]), rng.choice([-9e9, 9e9], size=(len(part[2]), k)))
    z[part[3]] = rng.choice([0.0, -0.0, 5e-324, -5e-324, 1e-310], size=(len(part[3]), k))
    z[part[4]] *= 1e6
    z[part[5][::2]] *= 1e90
    z[part[5][1::2]] *= 1e-300
    z[part[6]] = np.where(rng.random((len(part[6]), k)) < 0.3, -np.inf, z[part[6]])
    few = part[7][:: max(1, len(part[7]) // 60)]
    wrong = [np.nan, np.inf, 1.1e100, -1.1e100, 1e308]
    z[few, rng.integers(0, k, len(few))] = rng.choice(wrong, size=len(few))
    z[few[:3]] = -np.inf
    return z


def find_bad_logits(z: Floats, ruled_out: bool) -> Bools:
    """What `decide` refuses."""
    fine = (np.abs(z) <= 1e100) | (ruled_out & (z == -np.inf))
    return ~(fine.all(axis=1) & (z > -np.inf).any(axis=1))


def make_probabilities(n: int, k: int, rng: np.random.Generator) -> Floats:
    """Distributions, among them certain ones, ties, edges of bins, tiny ones, and what is none."""
    z = rng.normal(size=(n, k)) * rng.choice([0.3, 3.0, 30.0], size=(n, 1))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    part = np.array_split(np.arange(n), 16)
    p[part[0]] = np.eye(k)[rng.integers(0, k, len(part[0]))] * rng.choice([1.0, -0.0 + 1.0])
    p[part[1]] = 1 / k
    p[part[2]] = 0.0
    edge = rng.integers(0, 16, len(part[2])) / 15
    p[part[2], 0], p[part[2], 1] = edge, 1 - edge
    p[part[3], 2:] = -0.0
    p[part[3], 0] = rng.choice([5e-324, 1e-300, 1e-13, 0.5 - 1e-16, 0.5], size=len(part[3]))
    p[part[3], 1] = 1 - p[part[3], 0]
    p[part[4]] = np.float32(p[part[4]])
    p[part[5]] *= 1 + rng.uniform(-9e-7, 9e-7, size=(len(part[5]), 1))
    few = part[7][:: max(1, len(part[7]) // 60)]
    p[few, 0] += rng.choice([np.nan, 0.5, -2.0, np.inf], size=len(few))
    return p


def find_bad_probabilities(p: Floats, tolerance: float) -> Bools:
    with np.errstate(invalid="ignore"):
        inside = ((p >= -tolerance) & (p <= 1 + tolerance)).all(axis=1)
        return ~(inside & (np.abs(p.sum(axis=1) - 1) <= tolerance))


def make_calibrators(k: int, given: str, rng: np.random.Generator) -> Iterator[Calibrator | None]:
    """Every calibrator that can be exported for this input."""
    if given == "confidence":
        c = rng.random(300)
        preds = hs.Predictions.from_confidence(c, rng.random(300) < c**2)
        yield from (None, Platt.fit(preds), Beta.fit(preds), Isotonic.fit(preds))
        return
    yield from (None, Temperature(1.7), Temperature(0.3), Temperature(0.9, samples=500))
    weight, shift = 1 + 0.2 * rng.normal(size=k), 0.3 * rng.normal(size=k)
    yield VectorScaling(weight=weight, intercept=shift)
    small = 0.1 * rng.normal(size=k)
    yield StructuredScaling(weight=small, intercept=shift, temperature=1.3, samples=800)
    if k <= 10:
        full = 0.05 * rng.normal(size=(k, k))
        yield StructuredScaling(weight=full, intercept=shift, temperature=1.3, samples=800)
    if given == "logits":
        return
    yield Platt(slope=np.abs(weight), intercept=shift)
    yield Beta(a=np.abs(weight), b=np.abs(weight[::-1]), c=shift)
    if k <= 100:
        z = rng.normal(size=(60 * k, k))
        labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        preds = hs.Predictions.from_logits(z, labels)
        yield from (HistogramBinning.fit(preds), Isotonic.fit(preds))


def make_cases(rows: int, seed: int = 0) -> Iterator[Case]:
    """Every score after every calibrator, about `rows` vectors together."""
    rng = np.random.default_rng(seed)
    by_kind: dict[tuple[object, ...], list[tuple[int, Calibrator | None]]] = {}
    for k in CLASSES:
        for given in ("logits", "probs"):
            for made in make_calibrators(k, given, rng):
                full = isinstance(made, StructuredScaling) and made.weight.ndim == 2
                kind = (given, type(made), full, getattr(made, "temperature", None))
                by_kind.setdefault(kind, []).append((k, made))
    listed: list[tuple[int, str, Calibrator | None, str]] = []
    for j, ((given, *_), choices) in enumerate(by_kind.items()):
        scores = SCORES if given == "logits" else SCORES[:6]
        for i, score in enumerate(scores):  # each pair once, with one of the numbers of classes
            k, made = choices[(i + j) % len(choices)]
            listed.append((k, str(given), made, score))
    rng.shuffle(listed)
    count = Counter(k for k, *_ in listed)
    for calibrator in make_calibrators(1, "confidence", rng):
        listed.append((1, "confidence", calibrator, "max_prob"))
    listed.append((1, "score", None, "score"))
    for k, given, calibrator, score in listed:
        n = 100_000 if k == 1 else max(64, int(rows * CLASSES[k] / count[k]))
        yield make_case(n, k, given, calibrator, score, rng)


def make_case(
    n: int, k: int, given: str, calibrator: Calibrator | None, score: str, rng: np.random.Generator
) -> Case:
    """Rows, and a policy whose threshold is one of their scores."""
    if given == "logits":
        values = make_logits(n, k, rng)
        keeps = calibrator is None or isinstance(calibrator, Temperature)
        bad = find_bad_logits(values, keeps)
    elif given == "probs":
        values = make_probabilities(n, k, rng)
        bad = find_bad_probabilities(values, 1e-6)
    else:
        values = rng.random((n, 1))
        values[:9, 0] = [0.0, -0.0, 5e-324, 1.0, 0.5, np.nan, np.nan, 0.7, np.nextafter(0.7, 1)]
        bad = np.isnan(values[:, 0])
    case = Case(Policy(score, 0.0, calibrator=calibrator, k=k), given, values, bad)
    found = np.sort(case.decide(values)[1][~bad])
    for _ in range(8):  # a threshold so near to 0 that rounding decides is refused
        at = float(found[int(len(found) * rng.uniform(0.2, 0.9))])
        case = Case(Policy(score, at, calibrator=calibrator, k=k), given, values, bad)
        try:
            plan_export(case.policy, given=given)
            break
        except InputError:
            continue
    return case


# ---- the rule


@dataclass
class Tally:
    """What one target did."""

    vectors: int = 0
    inside: int = 0
    outside_differs: int = 0
    inside_accepts: int = 0
    policies: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def compare(case: Case, export: Export, rows: Floats, theirs: Bools, found: Tally) -> None:
    """Count what breaks the rule."""
    ours, score = case.decide(rows)
    t = case.policy.threshold
    band = 2 * export.guard * max(abs(t), 2.0**-1000)
    with np.errstate(invalid="ignore"):
        inside = np.abs(score - t) <= band
    if export.guard == 0:
        inside[:] = False
    found.policies += 1
    found.vectors += len(rows)
    found.inside += int(inside.sum())
    found.outside_differs += int((theirs != ours)[~inside].sum())
    found.inside_accepts += int((theirs & ~ours)[inside].sum())


Run = Callable[[Export, Floats], Bools]


def list_targets(folder: Path, psql: list[str]) -> dict[str, tuple[str, str, Run]]:
    """Those that are installed: by name what is written, in which precision, and how it is run."""
    found: dict[str, tuple[str, str, Run]] = {}
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler):
            for precision in ("double", "float"):
                run: Run = lambda e, r, by=compiler: run_c(e, r, by, folder)
                found[f"C {precision}, {compiler}"] = ("c", precision, run)
    if shutil.which("node"):
        found["JavaScript, Node"] = ("js", "double", lambda e, r: run_node(e, r, folder))
    if shutil.which("chromium") and find_spec("selenium"):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*BROWSER_FLAGS, f"--user-data-dir={folder / 'profile'}"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        browser.set_script_timeout(300)
        (folder / "page.html").write_text("<!doctype html><title>exports</title>")
        browser.get((folder / "page.html").as_uri())
        found["JavaScript, Chromium"] = ("js", "double", lambda e, r: run_browser(e, r, browser))
    if find_spec("onnxruntime"):
        found["ONNX Runtime"] = ("onnx", "double", run_onnx)
    found["SQLite"] = ("sqlite", "double", run_sqlite)
    if find_spec("duckdb"):
        found["DuckDB"] = ("duckdb", "double", run_duckdb)
    if psql:
        found["PostgreSQL"] = ("postgres", "double", lambda e, r: run_postgres(e, r, psql))
    return found


def choose_rows(case: Case, target: str, name: str) -> Case:
    """Fewer rows where a target is slow, spread over all kinds of them."""
    share = 1.0
    if target in ("sqlite", "duckdb", "postgres"):
        share = SQL_SHARE
    elif "Chromium" in name:
        share = BROWSER_SHARE
    step = int(1 / share)
    rows, bad = case.rows[::step], case.bad[::step]
    return Case(case.policy, case.given, rows, bad)


def plan(case: Case, target: str, precision: str) -> Export:
    """The export of a case."""
    if target in ("sqlite", "duckdb", "postgres"):
        return plan_export(case.policy, target="sql", given=case.given, dialect=target)
    return plan_export(case.policy, target=target, given=case.given, precision=precision)


def round_to_float(case: Case) -> Case:
    """The case as a program sees it that is given floats."""
    with np.errstate(over="ignore"):
        rows = case.rows.astype(np.float32).astype(np.float64)
    if case.given == "logits":
        ruled_out = case.policy.calibrator is None or isinstance(
            case.policy.calibrator, Temperature
        )
        return Case(case.policy, case.given, rows, find_bad_logits(rows, ruled_out))
    bad = np.isnan(rows).any(axis=1)
    if case.given == "probs":
        # Those that only the tolerance of float32 lets through are left out: they are refused as doubles.
        bad = find_bad_probabilities(rows, 1e-6)
        loose = bad & ~find_bad_probabilities(rows, 1e-3)
        rows, bad = rows[~loose], bad[~loose]
    return Case(case.policy, case.given, rows, bad)


def check_rule(rows: int, psql: list[str], only: str = "") -> dict[str, Tally]:
    """Every case in every target; prints as it goes."""
    found: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        targets = list_targets(folder, psql)
        for i, case in enumerate(make_cases(rows)):
            if i % 25 == 0:
                print(
                    f"case {i}", {name: tally.vectors for name, tally in found.items()}, flush=True
                )
            for name, (target, precision, run) in targets.items():
                if only and only not in name:
                    continue
                tally = found.setdefault(name, Tally())
                try:
                    export = plan(case, target, precision)
                    part = choose_rows(case, target, name)
                    if precision == "float":
                        part = round_to_float(part)
                    theirs = run(export, part.rows)
                except InputError as e:
                    why = "too many classes" if "columns" in str(e) else "rounding could decide"
                    if "rounding" not in str(e) and "columns" not in str(e):
                        why = str(e)
                    tally.refused[f"{type(case.policy.calibrator).__name__}, {why}"] += 1
                    continue
                before = tally.outside_differs + tally.inside_accepts
                compare(part, export, part.rows, theirs, tally)
                if tally.outside_differs + tally.inside_accepts > before:
                    print("DIFFERS", name, case.given, case.policy, flush=True)
    return found


def print_rule(found: dict[str, Tally]) -> None:
    print(
        f"{'target':24} {'policies':>8} {'refused':>8} {'vectors':>12} {'differ':>7} {'inside, %':>10}"
    )
    for name, tally in found.items():
        wrong = tally.outside_differs + tally.inside_accepts
        share = 100 * tally.inside / max(1, tally.vectors)
        print(
            f"{name:24} {tally.policies:8,} {sum(tally.refused.values()):8,} {tally.vectors:12,} "
            f"{wrong:7,} {share:10.4f}"
        )
    for name, tally in found.items():
        for what, count in tally.refused.most_common():
            print(f"refused by {name}: {what} ({count})")


# ---- speed


C_TIMED = """#include <stdio.h>
#include <time.h>
#include "policy.h"
static %s v[64 * %d];
int main(void) {
  long i, n = %d, accepted = 0;
  clock_t start;
  if (fread(v, sizeof v[0], 64 * %d, stdin) == 0) return 1;
  start = clock();
  for (i = 0; i < n; i++) accepted += howsure_decide(v + (i %% 64) * %d, 0).accept;
  printf("%%g %%ld", (double)(clock() - start) / CLOCKS_PER_SEC / (double)n * 1e9, accepted);
  return 0;
}
"""
JS_TIMED = """import {readFileSync} from 'fs';
import {decide} from './policy.mjs';
const rows = new Float64Array(readFileSync('rows.bin').buffer.slice(0));
const k = %d, n = %d;
const parts = Array.from({length: 64}, (_, i) => rows.slice(i * k, i * k + k));
let accepted = 0;
for (let i = 0; i < 2000; i++) accepted += decide(parts[i %% 64], '').accept;
const start = performance.now();
for (let i = 0; i < n; i++) accepted += decide(parts[i %% 64], '').accept;
console.log((performance.now() - start) / n * 1e6, accepted);
"""


def measure_speed() -> None:
    """CPU time of one decision by max_prob after a temperature, and how large the code is."""
    print(machine.facts())
    for k in (10, 1000):
        rows = np.random.default_rng(0).normal(size=(64, k)) * 3
        policy = Policy("max_prob", 0.7, calibrator=Temperature(1.7), k=k)
        n = 20_000_000 // k
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for compiler in ("gcc", "clang"):
                for precision in ("double", "float"):
                    export = plan_export(policy, given="logits", precision=precision)
                    header = write_c(export)
                    (folder / "policy.h").write_text(header)
                    (folder / "main.c").write_text(C_TIMED % (precision, k, n, k, k))
                    command = [compiler, *FLAGS, "main.c", "-o", "main", "-lm"]
                    subprocess.run(command, cwd=folder, check=True)
                    kind = {"float": np.float32, "double": np.float64}[precision]
                    raw = rows.astype(kind).tobytes()
                    out = subprocess.run(
                        [folder / "main"], input=raw, capture_output=True, check=True
                    )
                    (folder / "one.c").write_text(
                        f'#include "policy.h"\nint one(const {precision} *v) {{ return howsure_decide(v, 0).accept; }}\n'
                    )
                    command = [compiler, *FLAGS[:-1], "-Os", "-c", "one.c"]
                    subprocess.run(command, cwd=folder, check=True)
                    size = subprocess.run(
                        ["size", "one.o"], cwd=folder, capture_output=True, text=True, check=True
                    )
                    code = size.stdout.splitlines()[1].split()[0]
                    print(
                        f"k={k} {compiler} {precision}: {float(out.stdout.split()[0]):,.0f} ns, "
                        f"header {len(header):,} bytes, code {code} bytes"
                    )
            (folder / "policy.mjs").write_text(
                write_javascript(plan_export(policy, given="logits"))
            )
            (folder / "rows.bin").write_bytes(rows.tobytes())
            (folder / "main.mjs").write_text(JS_TIMED % (k, n // 10))
            out = subprocess.run(["node", "main.mjs"], cwd=folder, capture_output=True, check=True)
            print(f"k={k} Node: {float(out.stdout.split()[0]):,.0f} ns")
        measure_python(policy, rows)


def measure_python(policy: Policy, rows: Floats) -> None:
    """The least of several runs: other work on the machine only adds to it."""
    listed = list(rows)
    best = float("inf")
    for _ in range(20):
        start = time.process_time()
        for row in listed:
            policy.decide_one(logits=row)
        best = min(best, (time.process_time() - start) / len(listed))
    print(f"k={rows.shape[1]} Policy.decide_one: {best * 1e6:.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="rule", choices=["rule", "speed"])
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--psql", default="")
    parser.add_argument("--only", default="", help="targets whose name holds this")
    options = parser.parse_args()
    if options.what == "speed":
        measure_speed()
        return
    found = check_rule(int(options.rows), shlex.split(options.psql), options.only)
    print(machine.facts())
    print_rule(found)


if __name__ == "__main__":
    main()
