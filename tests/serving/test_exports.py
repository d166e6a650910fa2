"""Exported policies decide as howsure does; what is edited is found."""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import exports
from benchmarks.attack import programs
from click.testing import CliRunner

import howsure as hs
from howsure import InputError
from howsure._core.saving import compute_digest
from howsure.calibrators import MatrixScaling, Platt, Temperature
from howsure.cli.main import howsure
from howsure.policies import Policy, guaranteed_threshold
from howsure.policies.policy_check import derive_bounds
from howsure.serving.export_text import SQL_DIALECTS, write_c, write_javascript, write_sql
from howsure.serving.exports import plan_export

PLATT = Platt(slope=np.ones(2), intercept=np.zeros(2))
MATRIX = MatrixScaling(weight=np.eye(2), intercept=np.zeros(2))
CONFIDENCES = [0.0, 5e-324, 0.3, np.nextafter(0.7, 0), 0.7, np.nextafter(0.7, 1), 1.0]
RUN_C = """#include <stdio.h>
#include "policy.h"
int main(int argc, char **argv) {
  double v[%d]; int i;
  (void)argc;
  for (;;) {
    for (i = 0; i < %d; i++) if (scanf("%%lf", &v[i]) != 1) return 0;
    printf("%%d\\n", howsure_decide(v, howsure_segment(argv[1])).accept);
  }
}
"""


def run_c(
    policy: Policy, given: str, rows: np.ndarray, segment: str, folder: Path, compiler: str
) -> list[int]:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (folder / "policy.h").write_text(write_c(plan_export(policy, given=given)))
    k = rows.shape[1]
    (folder / "run.c").write_text(RUN_C % (k, k))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2"]
    subprocess.run([compiler, *flags, "run.c", "-o", "run", "-lm"], cwd=folder, check=True)
    text = "\n".join(" ".join(repr(float(x)) for x in row) for row in rows)
    out = subprocess.run(
        [folder / "run", segment], input=text, capture_output=True, text=True, check=True
    )
    return [int(x) for x in out.stdout.split()]


def run_node(policy: Policy, given: str, rows: np.ndarray, segment: str, folder: Path) -> list[int]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    (folder / "policy.mjs").write_text(write_javascript(plan_export(policy, given=given)))
    # As a module: JSON has no infinity and no NaN.
    script = f"import {{decide}} from './policy.mjs'; const rows = {json.dumps(rows.tolist())};"
    name = json.dumps(segment)
    script += f"console.log(JSON.stringify(rows.map(r => +decide(r, {name}).accept)))"
    (folder / "run.mjs").write_text(script)
    out = subprocess.run(
        ["node", "run.mjs"], cwd=folder, capture_output=True, text=True, check=True
    )
    return json.loads(out.stdout)


def make_rows(k: int) -> np.ndarray:
    rng = np.random.default_rng(k)
    rows = rng.normal(size=(300, k)) * 4
    rows[:50] = np.round(rows[:50])
    rows[50] = 0.0
    rows[51] = -0.0
    rows[52] = 5e-324
    return rows


@pytest.mark.parametrize("target", ["gcc", "clang", "node"])
@pytest.mark.parametrize("k", [2, 10, 1000])
def test_logits_decide_alike_outside_the_band(k: int, target: str, tmp_path: Path) -> None:
    rows = make_rows(k)
    for calibrator in (None, Temperature(1.7)):
        scores = (
            Policy("max_prob", 0.0, calibrator=calibrator)
            .decide(hs.Predictions.from_logits(rows))
            .score
        )
        policy = Policy("max_prob", float(np.sort(scores)[150]), calibrator=calibrator, k=k)
        ours = policy.decide(hs.Predictions.from_logits(rows)).accept
        if target == "node":
            theirs = np.array(run_node(policy, "logits", rows, "", tmp_path), dtype=bool)
        else:
            theirs = np.array(run_c(policy, "logits", rows, "", tmp_path, target), dtype=bool)
        inside = np.abs(scores - policy.threshold) <= 2.0**-40 * policy.threshold
        assert (ours == theirs)[~inside].all()
        assert not (theirs & ~ours).any()
        assert inside.sum() < 60


EXTREME = [
    [0, -inf, 0], [1, -inf, -inf], [0, -inf, -1], [-inf, -inf, 9], [-inf, -inf, -inf], [inf, 0, 0],
    [1e100, 0, 0], [1.1e100, 0, 0], [0, -1e100, -9], [9, -1.1e100, 0], [9, -1e308, -inf],
    [-1e100, -inf, -1e100], [-1e100, -inf, -inf], [-1.1e100, -inf, -inf], [np.nan, 0, 9],
    [9, np.nan, 0], [-inf, 0, np.nan], [9, -inf, 0],
]  # fmt: skip


def decide_or_defer(policy: Policy, row: list[float]) -> int:
    try:
        return int(policy.decide(hs.Predictions.from_logits([row])).accept[0])
    except InputError:
        return 0


@pytest.mark.parametrize("temperature", [None, 0.01, 1.7])
@pytest.mark.parametrize("target", ["gcc", "clang", "node", "sqlite", "duckdb"])
def test_ruled_out_and_huge_logits(target: str, temperature: float | None, tmp_path: Path) -> None:
    calibrator = temperature and Temperature(temperature)
    policy = Policy("max_prob", 0.6, calibrator=calibrator or None, k=3)
    ours = [decide_or_defer(policy, row) for row in EXTREME]
    assert 0 < sum(ours) < len(ours)
    rows = np.array(EXTREME, dtype=float)
    if target == "node":
        theirs = run_node(policy, "logits", rows, "", tmp_path)
    elif target in ("gcc", "clang"):
        theirs = run_c(policy, "logits", rows, "", tmp_path, target)
    else:
        base = sqlite3.connect(":memory:")
        if target == "duckdb":
            base = pytest.importorskip("duckdb").connect()
        base.execute(
            "CREATE TABLE rows (i INTEGER, logit_0 DOUBLE, logit_1 DOUBLE, logit_2 DOUBLE)"
        )
        numbered = [(i, *row) for i, row in enumerate(rows.tolist())]
        base.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", numbered)
        sql = write_sql(plan_export(policy, given="logits", dialect=target))
        made = base.execute(f"SELECT {sql} FROM rows ORDER BY i").fetchall()
        theirs = [int(row[0] == "accept") for row in made]
    assert theirs == ours


@pytest.mark.parametrize(
    "values", ["[null, 9, 0]", "['0', '9', '0']", "[9, 0]", "[9, 0, 0, 0]", "[]"]
)
def test_javascript_defers_what_is_not_a_number_for_each_class(values: str, tmp_path: Path) -> None:
    policy = Policy("max_prob", 0.6, k=3)
    assert run_node(policy, "logits", np.array([[9.0, 0, 0]]), "", tmp_path) == [1]
    script = f"import {{decide}} from './policy.mjs'; console.log(decide({values}).accept)"
    command = ["node", "--input-type=module", "-e", script]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert out.stdout == "false\n"


KEYS = ("Zürich", "東京1", "a\tb\x011", 'say "\\n"', "what??/", "\x7f9\u2028")


@pytest.mark.parametrize("target", ["gcc", "clang", "node"])
@pytest.mark.parametrize("segment", [*KEYS, "Zurich"])
def test_segments_of_any_letters(target: str, segment: str, tmp_path: Path) -> None:
    policy = Policy("max_prob", inf, by="site", keys=KEYS, thresholds=(0.7,) * len(KEYS))
    rows = np.array([[0.7], [0.6]])
    if target == "node":
        theirs = run_node(policy, "confidence", rows, segment, tmp_path)
    else:
        assert write_c(plan_export(policy, given="confidence")).isascii()
        theirs = run_c(policy, "confidence", rows, segment, tmp_path, target)
    assert theirs == [int(segment in KEYS), 0]


def test_a_nul_in_a_segment_is_refused_for_c() -> None:
    policy = Policy("max_prob", inf, by="site", keys=("a\0b",), thresholds=(0.7,))
    with pytest.raises(InputError, match="NUL"):
        write_c(plan_export(policy, given="confidence"))


ALL_TARGETS = ["c double", "c float", "js", "onnx", "sqlite", "duckdb"]
NEEDED = {"c double": "gcc", "c float": "gcc", "js": "node"}


@pytest.fixture(scope="module")
def cases() -> list[exports.Case]:
    return list(exports.make_cases(12_000, seed=1))


@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("k", [1, 2, 10])
def test_every_score_and_calibrator(
    k: int, target: str, cases: list[exports.Case], tmp_path: Path
) -> None:
    if target in NEEDED and shutil.which(NEEDED[target]) is None:
        pytest.skip(f"{NEEDED[target]} is not installed")
    if target == "duckdb":
        pytest.importorskip("duckdb")
    if target == "onnx":
        pytest.importorskip("onnxruntime")
    language, _, precision = target.partition(" ")
    runs = {
        "c": lambda e, r: exports.run_c(e, r, "gcc", tmp_path),
        "js": lambda e, r: exports.run_node(e, r, tmp_path),
        "onnx": exports.run_onnx,
        "sqlite": exports.run_sqlite,
        "duckdb": exports.run_duckdb,
    }
    found = exports.Tally()
    # Every third, and all in float, where many are refused; the benchmark runs them all.
    step = 1 if precision == "float" else 3
    for case in [case for case in cases if case.policy.k == k][::step]:
        try:
            export = exports.plan(case, language, precision or "double")
        except InputError:
            continue
        part = exports.round_to_float(case) if precision == "float" else case
        exports.compare(part, export, part.rows, runs[language](export, part.rows), found)
    assert found.policies >= {1: 1, 2: 5, 10: 5}[k]
    assert (found.outside_differs, found.inside_accepts) == (0, 0)


def make_segmented() -> Policy:
    return Policy("max_prob", inf, by="site", keys=("a", "it's"), thresholds=(0.7, 0.3))


@pytest.mark.parametrize("target", ["gcc", "node"])
@pytest.mark.parametrize("segment", ["a", "it's", "zz"])
def test_confidences_never_differ(target: str, segment: str, tmp_path: Path) -> None:
    policy, rows = make_segmented(), np.array(CONFIDENCES)[:, None]
    ours = [int(policy.decide_one(confidence=c, segment=segment).accept) for c in CONFIDENCES]
    if target == "node":
        assert run_node(policy, "confidence", rows, segment, tmp_path) == ours
    else:
        assert run_c(policy, "confidence", rows, segment, tmp_path, target) == ours


def test_sqlite_decides_alike() -> None:
    base, policy = sqlite3.connect(":memory:"), make_segmented()
    base.execute("CREATE TABLE rows (confidence REAL, site TEXT)")
    pairs = [(c, s) for c in CONFIDENCES for s in ("a", "it's", "zz")]
    base.executemany("INSERT INTO rows VALUES (?, ?)", pairs)
    base.execute("INSERT INTO rows VALUES (NULL, 'a')")
    sql = write_sql(plan_export(policy, given="confidence"))
    made = [row[0] for row in base.execute(f"SELECT {sql} FROM rows")]
    ours = [policy.decide_one(confidence=c, segment=s).accept for c, s in pairs]
    said = ["defer", "accept"]
    expected = [
        said[x] if s != "zz" else "defer: unknown segment"
        for x, (_, s) in zip(ours, pairs, strict=True)
    ]
    assert made == [*expected, "defer"]


@pytest.mark.parametrize("given", ["confidence", "logits"])
def test_duckdb_decides_alike(given: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = make_rows(4) if given == "logits" else np.array(CONFIDENCES)[:, None]
    policy = Policy("max_prob", 0.7, k=4)
    sql = write_sql(plan_export(policy, given=given, dialect="duckdb"))
    names = [f"logit_{i}" for i in range(4)] if given == "logits" else ["confidence"]
    base = duckdb.connect()
    base.execute(f"CREATE TABLE rows ({', '.join(n + ' DOUBLE' for n in names)})")
    base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(names))})", rows.tolist())
    made = [row[0] == "accept" for row in base.execute(f"SELECT {sql} FROM rows").fetchall()]
    values = rows if given == "logits" else rows[:, 0]
    ours = [policy.decide_one(**{given: v}).accept for v in values]
    assert made == ours
    others = ", ".join(f"1.0 AS {n}" for n in names[1:]) or "1"
    nan_row = f"(SELECT 'nan'::DOUBLE AS {names[0]}, {others})"
    assert base.execute(f"SELECT {sql} FROM {nan_row}").fetchall() == [("defer",)]


@pytest.mark.parametrize(
    ("policy", "given", "message"),
    [
        (Policy("max_prob", 0.5), None, "say --input"),
        (Policy("max_prob", 0.5), "logits", "has None classes"),
        (Policy("max_prob", 1 - 2.0**-45, k=3), "logits", "is 1 but for rounding"),
        (Policy("margin", 1e-9, k=3), "logits", "rounding in double could decide"),
        (Policy("variance", -0.5, k=3), "logits", "variance of logits cannot be exported"),
        (Policy("energy", 5.0, k=3), "probs", "energy of probs cannot be exported"),
        (Policy("max_prob", 0.5, k=2, calibrator=PLATT), "logits", "export with --input probs"),
        (
            Policy("max_prob", 0.5, k=2, calibrator=MATRIX),
            "logits",
            "MatrixScaling cannot be exported",
        ),
        (Policy("max_prob", 0.5, calibrator=PLATT), "score", "applies Platt before it scores"),
        (Policy("max_prob", 0.5, calibrator=Temperature(2.0)), "confidence", "needs all classes"),
        (
            Policy("max_prob", 0.5, by="predicted", keys=("0",), thresholds=(0.5,)),
            "confidence",
            "cannot be exported",
        ),
    ],
)
def test_what_cannot_be_exported_is_said(policy: Policy, given: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_export(policy, given=given)


@pytest.mark.parametrize("dialect", SQL_DIALECTS)
def test_sql_is_parsed_in_every_dialect(dialect: str) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    odd = Policy("max_prob", 0.3, by="site", keys=("it's",), thresholds=(0.2,))
    if not SQL_DIALECTS[dialect].run:
        with pytest.raises(InputError, match="rename the segment"):
            write_sql(plan_export(odd, target="sql", given="confidence", dialect=dialect))
    policy = Policy("entropy", 0.3, k=3, by="site", keys=("a", "b"), thresholds=(0.2, inf))
    for given, made in (("logits", policy), ("score", Policy("score", 2.0))):
        text = write_sql(plan_export(made, target="sql", given=given, dialect=dialect))
        sqlglot.parse_one(f"SELECT {text} FROM answers", dialect=dialect)
        assert ("Not run" in text) == (dialect not in ("sqlite", "duckdb", "postgres"))


@pytest.mark.parametrize("precision", ["double", "float"])
def test_the_header_calls_nothing_but_exp_and_log(precision: str, tmp_path: Path) -> None:
    if shutil.which("gcc") is None or shutil.which("nm") is None:
        pytest.skip("gcc is not installed")
    policy = Policy(
        "entropy", 0.7, k=10, by="site", keys=("a",), thresholds=(0.8,), calibrator=Temperature(1.7)
    )
    export = plan_export(policy, given="logits", precision=precision)
    (tmp_path / "policy.h").write_text(write_c(export))
    call = f"int one(const {precision} *v, const char *s) {{ return howsure_decide(v, howsure_segment(s)).accept; }}"
    (tmp_path / "one.c").write_text(f'#include "policy.h"\n{call}\n')
    for optimise in ("-O0", "-Os"):
        flags = [*exports.FLAGS[:-1], optimise, "-ffreestanding", "-c", "one.c"]
        subprocess.run(["gcc", *flags], cwd=tmp_path, check=True)
        listed = subprocess.run(
            ["nm", "-u", "one.o"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        called = {line.split()[-1] for line in listed.stdout.splitlines()}
        assert (
            called - {"__stack_chk_fail"}
            == {"double": {"exp", "log"}, "float": {"expf", "logf"}}[precision]
        )


def test_segments_in_onnx() -> None:
    runtime = pytest.importorskip("onnxruntime")
    from howsure.serving.export_onnx import write_onnx

    policy = Policy("max_prob", inf, by="site", keys=("a", "Zürich"), thresholds=(0.7, 0.3))
    model = write_onnx(plan_export(policy, target="onnx", given="confidence"))
    assert "Accept where max_prob" in model.doc_string
    session = runtime.InferenceSession(model.SerializeToString())
    values = {
        "values": np.array([[0.5], [0.5], [0.9]]),
        "segment": np.array(["a", "Zürich", "zz"], dtype=object),
    }
    accept, known = session.run(["accept", "known"], values)
    assert (accept.tolist(), known.tolist()) == ([False, True, False], [True, True, False])


def test_javascript_says_that_a_segment_is_unknown(tmp_path: Path) -> None:
    assert run_node(make_segmented(), "confidence", np.array([[0.9]]), "zz", tmp_path) == [0]
    script = "import {decide} from './policy.mjs'; console.log(decide([0.9], 'zz').reason)"
    command = ["node", "--input-type=module", "-e", script]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert out.stdout == "this segment has no threshold of its own\n"


def test_float_is_refused_where_its_digits_would_decide() -> None:
    near = Policy("max_prob", 1 - 2.0**-21, k=3)
    with pytest.raises(InputError, match="log_max_prob"):
        plan_export(near, given="logits", precision="float")
    assert plan_export(near, given="logits").guard == 2.0**-41
    made = plan_export(Policy("log_max_prob", -1e-7, k=3), given="logits", precision="float")
    assert made.guard == 2.0**-21
    with pytest.raises(InputError, match="--precision double"):
        plan_export(Policy("margin", 0.1, k=3), given="logits", precision="float")
    with pytest.raises(InputError, match="knows only double"):
        plan_export(near, target="js", given="logits", precision="float")


def save_policy(folder: Path, error: float = 0.6, name: str = "") -> Path:
    c = np.linspace(0.5, 1, 400)
    preds = hs.Predictions.from_confidence(c, (c > error) & (np.arange(400) % 90 != 89))
    policy = Policy.fit(
        preds, lambda t: guaranteed_threshold(t, risk=0.05, delta=0.05), source=(name, "")
    )
    hs.save(policy, folder / "policy.json")
    return folder / "policy.json"


def test_verify_and_export_from_the_command_line(tmp_path: Path) -> None:
    path = save_policy(tmp_path)
    made = CliRunner().invoke(howsure, ["verify", str(path)], standalone_mode=False)
    assert made.return_value == 0
    assert "follows from" in made.output
    out = tmp_path / "policy.h"
    options = ["--to", "c", "--input", "confidence", "--model", "m1", "-o", str(out)]
    CliRunner().invoke(howsure, ["export", str(path), *options], standalone_mode=False)
    text = out.read_text()
    assert all(
        x in text for x in ("Risk 0.05, delta 0.05", "errors", "sha256", "Digest: ", "Model: m1")
    )


def list_edits(value: object, way: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    if isinstance(value, dict):
        return [edit for key, item in value.items() for edit in list_edits(item, (*way, key))]
    return [way]


def test_every_edited_field_is_rejected(tmp_path: Path) -> None:
    path = save_policy(tmp_path)
    text = path.read_text()
    edits = [way for way in list_edits(json.loads(text)) if way != ("digest",)]
    assert len(edits) > 20
    for way in edits:
        document = json.loads(text)
        inner = document
        for key in way[:-1]:
            inner = inner[key]
        inner[way[-1]] = "edited"
        path.write_text(json.dumps(document))
        with pytest.raises(InputError):
            hs.load(path)


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a saved policy and write the digest that anybody can write."""
    document = json.loads(path.read_text())
    change(document["value"])
    head = {key: document[key] for key in ("howsure", "schema", "value")}
    document["digest"] = compute_digest(head)
    path.write_text(json.dumps(document))


def verify_in_node(path: Path, key: str = "") -> dict[str, bool | None]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    folder = path.parent
    CliRunner().invoke(howsure, ["verify", str(path), "--js", str(folder / "verify.mjs")])
    script = "import {verify} from './verify.mjs'; import {readFileSync} from 'fs';"
    script += f"verify(readFileSync('{path.name}', 'utf8'), '{key}').then((x) => console.log(JSON.stringify(x)))"
    command = ["node", "--input-type=module", "-e", script]
    out = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


EDITS: dict[str, Callable[[dict[str, Any]], None]] = {
    "bound": lambda value: value["guarantee"].update(bound=0.001),
    "threshold": lambda value: value.update(threshold=0.51),
    "delta": lambda value: value["guarantee"].update(delta=0.5),
    "errors": lambda value: value["guarantee"]["tested"].__setitem__(
        2, [0.0] * len(value["guarantee"]["tested"][2])
    ),
    "kept": lambda value: value["guarantee"]["tested"][1].__setitem__(0, -1.0),
    "n": lambda value: value["basis"].update(n=4000),
    "coverage": lambda value: value["basis"].update(coverage=0.99),
    "accuracy": lambda value: value["basis"].update(accuracy=1.0),
}


@pytest.mark.parametrize("what", EDITS)
def test_what_does_not_follow_is_found(what: str, tmp_path: Path) -> None:
    path = save_policy(tmp_path, error=0.57)
    edit(path, EDITS[what])
    made = CliRunner().invoke(howsure, ["verify", str(path)], standalone_mode=False)
    assert made.return_value == 1
    assert "FAILED" in made.output
    if what in ("bound", "threshold", "delta"):
        assert verify_in_node(path) == {"digest": True, "bounds": False}


def test_the_same_checks_in_javascript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_policy(tmp_path, error=0.57, name="Zürich\x7f\U0001f600\n")
    text = path.read_text()
    assert verify_in_node(path) == {"digest": True, "bounds": True}
    path.write_text(text.replace('"max_prob"', '"margin"'))
    assert verify_in_node(path) == {"digest": False, "bounds": True}
    monkeypatch.setenv("HOWSURE_KEY", "secret")
    signed = save_policy(tmp_path)
    assert verify_in_node(signed, "secret") == {"digest": True, "bounds": True}
    assert verify_in_node(signed, "another") == {"digest": False, "bounds": True}
    # A digest that was made anew without the key is refused where one is set.
    path.write_text(text)
    assert verify_in_node(path, "secret")["digest"] is False
    with pytest.raises(InputError, match="not signed"):
        hs.load(path)


@pytest.mark.parametrize("name", programs.NAMES, ids=lambda name: ascii(name[:12]))
def test_hostile_names_in_programs(tmp_path: Path, name: str) -> None:
    for target in ("c", "js", "sql"):
        assert programs.attack(name, target, tmp_path) == ""


@pytest.mark.parametrize("method", ["band", "fixed_sequence", "fallback"])
def test_every_search_is_repeated_from_what_was_tested(method: str) -> None:
    rng = np.random.default_rng(3)
    found = 0
    for n in (150, 700, 3000):
        c = rng.random(n).round(3)
        preds = hs.Predictions.from_confidence(c, rng.random(n) < 0.8 + 0.2 * c)
        policy = Policy.fit(
            preds, lambda t: guaranteed_threshold(t, risk=0.1, delta=0.1, method=method)
        )
        derived = derive_bounds(policy)
        assert all(made.follows for made in derived)
        assert len(derived) == policy.guarantee.feasible
        found += len(derived)
    assert found
