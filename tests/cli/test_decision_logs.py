"""From a log of a decision model and labels to a guarantee, a decision and a check."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


def write_log(folder: Path, name: str, *, seed: int, n: int = 1200, model: str = "m-1") -> None:
    """Records with three questions, whose probabilities are true, and the labels in a table."""
    rng = np.random.default_rng(seed)
    truth: list[list[str]] = []
    with (folder / f"{name}.jsonl").open("w") as file:
        for i in range(n):
            p = round(float(1 / (1 + np.exp(-6 * rng.normal()))), 2)
            answers: dict[str, object] = {"late": {"type": "noul", "noul": p}}
            row = [f"r{i}", "yes" if rng.random() < p else "no"]
            for question in ("team", "kind"):
                z = np.exp(8 * rng.normal(size=3))
                q = z / z.sum()
                row.append("abc"[rng.choice(3, p=q)])
                q = np.round(q, 2)
                top = int(q.argmax())
                answers[question] = {
                    "type": "choice",
                    "choice": "abc"[top],
                    "confidence": round(float((3 * q[top] - 1) / 2), 2),
                    "probabilities": {"abc"[j]: float(q[j]) for j in range(3)},
                }
            truth.append(row)
            record = {"id": f"r{i}", "ward": "AB"[i % 2], "model": model, "answers": answers}
            file.write(json.dumps(record) + "\n")
    with (folder / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "late", "team", "kind"], *truth])


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path, "old", seed=0)
    write_log(tmp_path, "new", seed=1)
    return tmp_path


def test_evaluate_has_a_row_for_each_question(howsure: Callable, logs: Path) -> None:
    ran = howsure("evaluate", "old.jsonl", "--labels", "old.csv", "--html", "page.html")
    assert ran.code == 0
    assert [word in ran.out for word in ("late", "team", "kind")] == [True] * 3
    assert (logs / "page.html").read_text().count("<iframe") == 3
    ran = howsure("evaluate", "old.jsonl", "--labels", "old.csv", "--json")
    assert list(json.loads(ran.out)["questions"]) == ["late", "team", "kind"]


@pytest.mark.parametrize(
    "extra", [[], ["--together"], ["--case", "record"], ["--case", "record", "--partial"]]
)
def test_a_policy_decides_and_is_checked(howsure: Callable, logs: Path, extra: list[str]) -> None:
    labels = ["--labels", "old.csv", "--risk", "0.05", "-o", "policy.json"]
    ran = howsure("threshold", "old.jsonl", *labels, *extra)
    assert ran.code == 0, ran.err
    said = " ".join(ran.out.split())
    if extra == ["--case", "record"]:
        assert "of such cases contain a wrong answer (95 % confidence)" in said
    elif "--partial" in extra:
        assert "of all cases get a wrong automatic answer (95 % confidence)" in said
    else:
        assert "they do not add up to one about a case of 3 answers" in said
    decided = howsure("decide", "policy.json", "new.jsonl")
    assert len(decided.out.splitlines()) == 3600
    if extra[:1] == ["--case"] and len(extra) == 2:  # whole cases
        by_case: dict[str, set[str]] = {}
        for line in map(json.loads, decided.out.splitlines()):
            by_case.setdefault(line["id"].split()[0], set()).add(line["decision"])
        assert all(len(decisions) == 1 for decisions in by_case.values())
    assert howsure("check", "new.jsonl", "--labels", "new.csv", "--policy", "policy.json").code == 0


def test_check_tells_a_broken_guarantee_from_another_model(howsure: Callable, logs: Path) -> None:
    howsure("threshold", "old.jsonl", "--labels", "old.csv", "--risk", "0.05", "-o", "policy.json")
    rows = list(csv.reader((logs / "new.csv").open()))
    for row in rows[1::3]:
        row[1] = "no" if row[1] == "yes" else "yes"
    csv.writer((logs / "bad.csv").open("w", newline="")).writerows(rows)
    ran = howsure("check", "new.jsonl", "--labels", "bad.csv", "--policy", "policy.json")
    assert ran.code == 1
    assert "no longer supported" in ran.out
    write_log(logs, "other", seed=1, model="m-2")
    ran = howsure("check", "other.jsonl", "--labels", "other.csv", "--policy", "policy.json")
    assert ran.code == 3
    assert "the model is 'm-2', the policy was made for 'm-1'" in ran.err


def test_without_labels_it_is_described_not_judged(howsure: Callable, logs: Path) -> None:
    ran = howsure("evaluate", "old.jsonl")
    assert ran.code == 2
    assert "not judged" in ran.err
    ran = howsure("doctor", "old.jsonl")
    assert ran.code == 2
    assert "choice, 3 options" in ran.out
    assert howsure("doctor", "old.jsonl", "--labels", "old.csv").code == 0


def test_digits_round_a_threshold_up(howsure: Callable, logs: Path) -> None:
    args = ["--labels", "old.csv", "--risk", "0.05", "--digits", "1", "--json"]
    ran = howsure("threshold", "old.jsonl", *args)
    at = json.loads(ran.out)["thresholds"].values()
    assert all(value is None or round(value, 1) == value for value in at)


def test_a_tie_at_the_top_has_its_sentence(howsure: Callable, logs: Path) -> None:
    with (logs / "tied.jsonl").open("w") as file:
        for i in range(400):
            label = "yes" if i % 8 else "no"
            body = {"late": {"type": "noul", "noul": 1.0 if i % 2 else 0.9}}
            file.write(json.dumps({"id": i, "label": label, "answers": body}) + "\n")
    ran = howsure("threshold", "tied.jsonl", "--risk", "0.05")
    assert ran.code in (0, 1)
    with (logs / "tied.jsonl").open("w") as file:
        for i in range(400):
            body = {"late": {"type": "noul", "noul": 1.0}}
            record = {"id": i, "label": "yes" if i % 8 else "no", "answers": body}
            file.write(json.dumps(record) + "\n")
    ran = howsure("threshold", "tied.jsonl", "--risk", "0.05")
    assert ran.code == 1
    assert "stand at confidence 1.00, 50 of them wrong" in " ".join(ran.out.split())


def test_a_refusal_is_never_accepted(howsure: Callable, logs: Path) -> None:
    with (logs / "log.jsonl").open("w") as file:
        for i in range(200):
            late = {"type": "refusal"} if i % 10 == 0 else {"type": "noul", "noul": 0.9}
            body = {"late": late, "soon": {"type": "noul", "noul": 0.8}}
            file.write(json.dumps({"id": i, "answers": body}) + "\n")
    (logs / "log.csv").write_text("id,late,soon\n" + "".join(f"{i},yes,yes\n" for i in range(200)))
    for extra in ([], ["--case", "record"], ["--case", "record", "--partial"]):
        args = ["--labels", "log.csv", "--risk", "0.99", "--delta", "0.5", "-o", "p.json"]
        assert howsure("threshold", "log.jsonl", *args, *extra).code == 0
        lines = map(json.loads, howsure("decide", "p.json", "log.jsonl").out.splitlines())
        accepted = {line["id"] for line in lines if line["decision"] == "accept"}
        assert not accepted & {f"{i} late" for i in range(0, 200, 10)}
        assert ("0 soon" in accepted) == (extra != ["--case", "record"])
        assert len(accepted) == 360 if extra == ["--case", "record"] else 380


def test_a_case_counts_where_all_its_answers_have_labels(howsure: Callable, logs: Path) -> None:
    rows = list(csv.reader((logs / "old.csv").open()))
    for row in rows[1::4]:
        row[2] = ""
    csv.writer((logs / "few.csv").open("w", newline="")).writerows(rows)
    args = ["--labels", "few.csv", "--risk", "0.2", "--case", "record", "--json"]
    ran = howsure("threshold", "old.jsonl", *args)
    assert json.loads(ran.out)["n"] == 900
    assert "300 of 1,200 cases lack a label and are left out" in ran.err


def test_no_digits_for_a_whole_case(howsure: Callable, logs: Path) -> None:
    args = ["--labels", "old.csv", "--risk", "0.05", "--case", "record", "--digits", "2"]
    ran = howsure("threshold", "old.jsonl", *args)
    assert ran.code == 2
    assert "no gateway compares a whole case" in ran.err


def test_the_probability_stands_beside_the_field(howsure: Callable, logs: Path) -> None:
    args = ["--labels", "old.csv", "--risk", "0.05", "--question", "team", "--json"]
    plan = json.loads(howsure("threshold", "old.jsonl", *args).out)
    least = plan["asked"]["probability"]["team"]
    assert plan["threshold"] == pytest.approx((3 * least - 1) / 2, abs=0.011)
