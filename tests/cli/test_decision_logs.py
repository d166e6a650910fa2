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
        assert "of 1,200 cases bound" in said
    elif "--partial" in extra:
        assert "of all cases get a wrong automatic answer (95 % confidence)" in said
        assert "of 3,600 answers bound" in said
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


LABELS = ["--labels", "old.csv"]


def test_models_in_one_file_are_compared_for_each_question(howsure: Callable, logs: Path) -> None:
    write_log(logs, "a", seed=0)
    records = [json.loads(line) for line in (logs / "a.jsonl").read_text().splitlines()]
    other = []
    for record in records:
        # The second arm is unsure of what it answers, and turns one question around.
        late = {"type": "noul", "noul": round(1 - record["answers"]["late"]["noul"], 2)}
        other.append({**record, "answers": {**record["answers"], "late": late}})
    with (logs / "both.jsonl").open("w") as file:
        for arm, lines in (("A", records), ("B", other)):
            file.writelines(json.dumps({"arm": arm, **line}) + "\n" for line in lines)
    ran = howsure("evaluate", "both.jsonl", "--labels", "a.csv")
    assert ran.code == 2
    assert "say which: --where arm=A; howsure compare compares them" in ran.err
    ran = howsure("compare", "both.jsonl", "--labels", "a.csv", "--json", "--html", "both.html")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["questions"]
    assert [model["name"] for model in found["late"]["models"]] == ["A", "B"]
    assert found["late"]["n"] == 1200
    assert found["team"]["pairs"][0]["aurc"]["value"] == 0  # the same answers
    assert (logs / "both.html").read_text().count("<iframe") == 3
    one = howsure("compare", "old.jsonl", *LABELS)
    assert one.code == 2
    assert "one FILE is given" in one.err


def test_rows_of_several_models_are_a_problem_and_compared(howsure: Callable, logs: Path) -> None:
    rows = [["item_id", "arm", "confidence", "correct"]]
    rng = np.random.default_rng(0)
    for i in range(60):
        for arm in ("x", "y"):
            rows.append([str(i), arm, f"{rng.random():.2f}", str(int(rng.random() < 0.8))])
    csv.writer((logs / "arms.csv").open("w", newline="")).writerows(rows)
    ran = howsure("doctor", "arms.csv")
    assert ran.code == 2
    assert "2 values of 'arm' (x, y)" in " ".join(ran.out.split())
    assert howsure("doctor", "arms.csv", "--where", "arm=x").code == 0
    ran = howsure("compare", "arms.csv", "--json")
    assert sorted(model["name"] for model in json.loads(ran.out)["models"]) == ["x", "y"]


def test_calibrate_has_a_row_for_each_question(howsure: Callable, logs: Path) -> None:
    args = [
        "calibrate",
        "--fit",
        "old.jsonl",
        "--on",
        "old.jsonl",
        *LABELS,
        "--method",
        "temperature",
    ]
    ran = howsure(*args, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["questions"]
    assert {name: one["method"] for name, one in found.items()} == {
        "late": "temperature",
        "team": "temperature",
        "kind": "temperature",
    }
    ran = howsure(*args, "-o", "calibrator.json")
    assert ran.code == 2
    assert "about one: say --question" in ran.err
    assert howsure(*args, "-o", "calibrator.json", "--question", "team").code == 0


def test_monitor_needs_no_labels_of_new_answers(howsure: Callable, logs: Path) -> None:
    howsure("threshold", "old.jsonl", *LABELS, "--risk", "0.05", "-o", "policy.json")
    ran = howsure("monitor", "old.jsonl", "new.jsonl", *LABELS, "--policy", "policy.json", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["questions"]
    policy = json.loads((logs / "policy.json").read_text())["value"]
    own = dict(zip(policy["keys"], policy["thresholds"], strict=True))
    assert {name: one["threshold"] for name, one in found.items()} == own
    drift = {d["column"]: d["drifted"] for d in found["team"]["months"][0]["drift"]}
    assert drift["score"] is False
    # The alias answers from another model: all is said of the score, and the name where it changed.
    lines = [json.loads(line) for line in (logs / "new.jsonl").read_text().splitlines()]
    with (logs / "moved.jsonl").open("w") as file:
        for line in lines:
            line["answers"]["team"]["confidence"] = round(
                line["answers"]["team"]["confidence"] / 2, 2
            )
            file.write(json.dumps({**line, "model": "m-2"}) + "\n")
    ran = howsure("monitor", "old.jsonl", "moved.jsonl", *LABELS, "--max-drop", "0.05", "--json")
    found = json.loads(ran.out)["questions"]
    drift = {d["column"]: d["drifted"] for d in found["team"]["months"][0]["drift"]}
    assert drift["score"] is True
    assert ran.err.count("the model is 'm-2', the reference is of 'm-1'") == 1


def test_shares_of_people_are_evaluated_as_grades(howsure: Callable, logs: Path) -> None:
    with (logs / "soft.jsonl").open("w") as file:
        for i in range(200):
            share = {"a": 0.3, "b": 0.7} if i % 2 else {"a": 0.6, "b": 0.4}
            body = {"choice": "a", "probs": {"a": 0.9, "b": 0.1}, "human": share}
            file.write(json.dumps({"id": i, **body}) + "\n")
    ran = howsure("evaluate", "soft.jsonl")
    assert ran.code == 0, ran.err
    said = " ".join(ran.out.split())
    assert "The mean grade of 200 answers is 0.450" in said
    assert "Its confidence is 45.0 points above the grades" in said
    for command in (
        ["compare", "soft.jsonl"],
        ["threshold", "soft.jsonl", "--case", "record", "--risk", "0.5"],
    ):
        ran = howsure(*command)
        assert ran.code == 2
        assert "graded" in ran.err


def test_ids_of_any_name_are_joined(howsure: Callable, logs: Path) -> None:
    lines = [json.loads(line) for line in (logs / "old.jsonl").read_text().splitlines()]
    with (logs / "named.jsonl").open("w") as file:
        for line in lines:
            file.write(json.dumps({"ticket": line["id"], "answers": line["answers"]}) + "\n")
    ran = howsure("evaluate", "named.jsonl", *LABELS, "--join", "ticket=id", "--json")
    assert json.loads(ran.out)["questions"]["late"]["n"] == 1200
    assert howsure("evaluate", "old.jsonl", *LABELS, "--name", "ids=id").code == 0
