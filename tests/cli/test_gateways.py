"""Exported thresholds, applied as each gateway applies them, decide as `howsure decide` does."""

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RECORDS = 3000


def write_log(folder: Path, name: str, *, seed: int, digits: int | None, n: int = RECORDS) -> None:
    """Records with a question of each type, in few digits or in full precision."""
    rng = np.random.default_rng(seed)
    rows: list[list[object]] = [["id", "late", "team", "sev"]]

    def shorten(x: float) -> float:
        return float(x) if digits is None else round(float(x), digits)

    with (folder / f"{name}.jsonl").open("w") as file:
        for i in range(n):
            p = 1 / (1 + np.exp(-5 * rng.normal()))
            row: list[object] = [i, "yes" if rng.random() < p else "no"]
            answers: dict[str, Any] = {"late": {"type": "noul", "noul": shorten(p)}}
            for question, kind in (("team", "choice"), ("sev", "score")):
                q = rng.dirichlet([0.15] * 3)
                row.append(
                    "abc"[rng.choice(3, p=q)] if kind == "choice" else int(rng.choice(3, p=q))
                )
                keys = "abc" if kind == "choice" else "012"
                answers[question] = {
                    "type": kind,
                    kind: "abc"[int(q.argmax())] if kind == "choice" else shorten(q @ np.arange(3)),
                    "confidence": shorten((3 * q.max() - 1) / 2),
                    "probabilities": dict(zip(keys, map(shorten, q.tolist()), strict=True)),
                }
            rows.append(row)
            file.write(json.dumps({"id": i, "model": "m-1", "answers": answers}) + "\n")
    with (folder / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def compare(row: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """The plain table: one of its comparisons holds."""
    for one in row["accept"]:
        value = answer["noul"] if one["field"] == "probability" else answer[one["field"]]
        if value >= one["threshold"] if one["operator"] == ">=" else value <= one["threshold"]:
            return True
    return False


def read_checks(text: str) -> dict[str, float]:
    """The names and thresholds of LiteLLM's checks."""
    names = [json.loads(name) for name in re.findall(r"- name: (.*)", text)]
    return dict(zip(names, map(float, re.findall(r"threshold: (.*)", text)), strict=True))


@pytest.mark.parametrize("digits", [2, None])
@pytest.mark.parametrize("extra", [[], ["--digits", "2"], ["--case", "record", "--partial"]])
def test_gateways_decide_as_decide_does(
    howsure: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    digits: int,
    extra: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path, "old", seed=0, digits=digits, n=1500)
    write_log(tmp_path, "new", seed=1, digits=digits)
    risk = ["--risk", "0.1", "-o", "policy.json"]
    assert howsure("threshold", "old.jsonl", "--labels", "old.csv", *risk, *extra).code == 0
    for target, more in (("table", []), ("litellm", []), ("vercel", ["--question", "team"])):
        ran = howsure(
            "export", "policy.json", "--to", target, "-o", target, "--model", "x/y", *more
        )
        assert ran.code == 0, ran.err
    table = {row["question"]: row for row in json.loads(Path("table").read_text())["thresholds"]}
    below = json.loads(Path("vercel").read_text())["gateway"]["models"][0]["when"]
    checks = read_checks(Path("litellm").read_text())
    assert set(table) == {"late", "team", "sev"}
    assert list(checks) == ["late"]
    assert below["question"] == "team"
    records = [json.loads(line) for line in Path("new.jsonl").read_text().splitlines()]
    answers = {
        f"{record['id']} {name}": a for record in records for name, a in record["answers"].items()
    }
    decided = [
        json.loads(line) for line in howsure("decide", "policy.json", "new.jsonl").out.splitlines()
    ]
    assert len(decided) == 3 * RECORDS
    accepted = 0
    for one in decided:
        name, answer = one["id"].split()[1], answers[one["id"]]
        accept = one["decision"] == "accept"
        accepted += accept
        assert compare(table[name], answer) == accept
        if name == below["question"]:
            assert (not answer["confidence"] < below["confidenceBelow"]) == accept
        if name in checks:
            assert (answer["noul"] >= checks[name]) == (accept and one["prediction"] == "yes")
    assert 0 < accepted < len(decided)


def test_what_a_gateway_cannot_hold_is_refused(
    howsure: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path, "old", seed=0, digits=2, n=800)
    fit = ["threshold", "old.jsonl", "--labels", "old.csv", "--risk", "0.2", "-o", "policy.json"]
    howsure(*fit)
    export = ["export", "policy.json", "-o", "out", "--to"]
    assert "name it with --model" in howsure(*export, "vercel").err
    several = howsure(*export, "vercel", "--model", "x/y").err
    assert "holds one condition, the policy has 2 (sev, team); say --question" in several
    wrong = howsure(*export, "litellm", "--question", "team").err
    assert "litellm compares answers of type yes/no" in wrong
    howsure(*fit, "--case", "record")
    assert "compares whole cases" in howsure(*export, "litellm").err
    assert howsure(*export, "table").code == 0
    evidence = json.loads(Path("out").read_text())
    assert evidence["models"] == ["m-1"]
    assert set(evidence["questions"]) == {"late", "team", "sev"}
    assert (evidence["thresholds"][0]["n"], evidence["thresholds"][0]["delta"]) == (800, 0.05)
    howsure(*fit[:-2], "--question", "team", "-o", "policy.json")
    assert howsure(*export, "vercel", "--model", "x/y").code == 0
