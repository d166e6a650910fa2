"""howsure monitor: files in, tables and exit codes out; the real months of data2/drift_nannyml."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs

MONTHS = Path(os.environ.get("HOWSURE_SHARED", "../shared")) / "data2" / "drift_nannyml"
real = pytest.mark.skipif(
    not MONTHS.exists(), reason="left out: the real months of NannyML are not here"
)


def howsure(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "howsure", *map(str, args)], capture_output=True, text=True
    )


def csv(path: Path, seed: int, *, labelled: bool, hard: bool = False) -> Path:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, 1500) if hard else rng.beta(0.7, 0.7, 1500)
    label = (rng.random(1500) < p).astype(int)
    head = "id,prob_0,prob_1,ward" + (",label" if labelled else "")
    rows = [f"{seed}-{i},{1 - x!r},{x!r},{'ab'[i % 2]}" + (f",{y}" if labelled else "") for i, (x, y) in
            enumerate(zip(p.tolist(), label.tolist(), strict=True))]  # fmt: skip
    path.write_text("\n".join([head, *rows]) + "\n")
    path.with_suffix(".labels.csv").write_text(
        "id,label\n" + "".join(f"{seed}-{i},{y}\n" for i, y in enumerate(label.tolist()))
    )
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {
        "past": csv(tmp_path / "past.csv", 0, labelled=True),
        "may": csv(tmp_path / "may.csv", 1, labelled=False),
        "june": csv(tmp_path / "june.csv", 2, labelled=False, hard=True),
    }


def test_a_good_month_passes_and_a_hard_one_fails(files, tmp_path):
    good = howsure("monitor", files["past"], files["may"], "--max-drop", "0.06")
    assert good.returncode == 0
    assert good.stderr.count("probabilities of 2 classes = 'prob_0', 'prob_1'") == 2
    both = howsure("monitor", files["past"], files["may"], files["june"], "--max-drop", "0.06", "--by", "ward",
                   "--html", tmp_path / "m.html", "-o", tmp_path / "m.md", "--json")  # fmt: skip
    assert both.returncode == 1
    data = json.loads(both.stdout)
    assert [limit["passed"] for limit in data["limits"]] == [True, False]
    assert {p["name"] for p in data["months"][0]["estimate"]["groups"]} == {"a", "b"}
    assert "FAILED: accuracy may have dropped by more than" in (tmp_path / "m.md").read_text()
    assert "FAILED: accuracy may have dropped by more than" in (tmp_path / "m.html").read_text()


def test_labels_are_joined_by_id(files):
    come = files["may"].with_suffix(".labels.csv")
    found = json.loads(
        howsure("monitor", files["past"], files["may"], "--labels", come, "--json").stdout
    )
    assert found["months"][0]["labelled"]["n"] == 1500
    assert found["months"][0]["labelled"]["held"]


def test_right_and_wrong_are_no_classes(files):
    """A file that says which answers were right was read as classes 1 and 0."""
    come = files["may"].with_suffix(".labels.csv")
    labels = [line.split(",") for line in come.read_text().splitlines()[1:]]
    rows = [line.split(",") for line in files["may"].read_text().splitlines()[1:]]
    right = [
        int((float(row[2]) > 0.5) == (y == "1")) for row, (_, y) in zip(rows, labels, strict=True)
    ]
    judged = come.with_name("judged.csv")
    judged.write_text(
        "id,correct\n" + "".join(f"{i},{x}\n" for (i, _), x in zip(labels, right, strict=True))
    )
    accuracy = []
    for path in (come, judged):
        ran = howsure("monitor", files["past"], files["may"], "--labels", path, "--json")
        accuracy.append(json.loads(ran.stdout)["months"][0]["labelled"]["accuracy"])
    assert accuracy[0] == accuracy[1]
    assert accuracy[0]["value"] == sum(right) / len(right)


def answers(path: Path, seed: int, missing: float, *, labelled: bool) -> Path:
    """A table with months, whose rows without an answer have nothing but the reason."""
    rng = np.random.default_rng(seed)
    rows = ["id,confidence,prediction,month,ward,no_answer" + (",correct" if labelled else "")]
    for i in range(1200):
        s, month = rng.beta(8, 2), ("May", "June", "July")[i // 400]
        gone = rng.random() < (missing if month == "July" else 0.01)
        cells = [
            str(i),
            "" if gone else f"{s:.4f}",
            "" if gone else "cat",
            month,
            "ab"[i % 2],
            "refused" * gone,
        ]
        rows.append(
            ",".join(cells) + (("," if gone else f",{int(rng.random() < s)}") if labelled else "")
        )
    path.write_text("\n".join(rows) + "\n")
    return path


def test_missing_answers_are_tested_month_by_month(tmp_path):
    past, new = (
        answers(tmp_path / "past.csv", 0, 0.01, labelled=True),
        answers(tmp_path / "y.csv", 1, 0.1, labelled=False),
    )
    run = howsure("monitor", past, new, "--month", "month", "--by", "ward", "--json")
    assert run.returncode == 0, run.stderr
    data = json.loads(run.stdout)
    assert [m["name"] for m in data["months"]] == ["May", "June", "July"]
    assert sum(m["n"] for m in data["months"]) < 1200
    silent = [next(d for d in m["drift"] if d["column"] == "no answer") for m in data["months"]]
    assert [d["drifted"] for d in silent] == [False, False, True]
    assert data["months"][2]["unanswered"] == pytest.approx(1 - data["months"][2]["n"] / 400)
    assert sum(p["n"] for p in data["months"][0]["estimate"]["groups"]) == data["months"][0]["n"]
    chunks = json.loads(howsure("monitor", past, new, "--chunk", "400", "--json").stdout)
    assert [m["n"] for m in chunks["months"]] == [m["n"] for m in data["months"]]


def test_months_stand_in_order(files, tmp_path):
    lines = files["may"].read_text().splitlines()
    for name, cells in (("number", ("10", "9", "2")), ("date", ("2024-10", "2024-09", "2024-02"))):
        rows = [f"{line},{cells[i % 3]}" for i, line in enumerate(lines[1:])]
        (tmp_path / f"{name}.csv").write_text("\n".join([lines[0] + ",when", *rows]) + "\n")
        found = json.loads(
            howsure(
                "monitor", files["past"], tmp_path / f"{name}.csv", "--month", "when", "--json"
            ).stdout
        )
        assert [m["name"] for m in found["months"]] == list(cells[::-1])
    (tmp_path / "none.csv").write_text(
        "\n".join([lines[0] + ",when", *(f"{line}," for line in lines[1:])]) + "\n"
    )
    run = howsure("monitor", files["past"], tmp_path / "none.csv", "--month", "when")
    assert (run.returncode, "none.csv has 1,500 rows without a when" in run.stderr) == (2, True), (
        run.stderr
    )


BAD = {
    "empty month": ("prob_0,prob_1\n", "empty|no rows|no data"),
    "other classes": ("prob_0,prob_1,prob_2\n0.2,0.3,0.5\n", "has 2 classes, the new data 3"),
    "other kind": ("logit_0,logit_1\n0.2,0.3\n", "the reference holds probs, the new data logits"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD.keys())
def test_bad_months_are_refused(files, tmp_path, text, words):
    import re

    (tmp_path / "bad.csv").write_text(text)
    run = howsure("monitor", files["past"], tmp_path / "bad.csv", "--html", tmp_path / "no.html")
    assert run.returncode == 2
    assert re.search(words, run.stderr), run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert not (tmp_path / "no.html").exists()


def test_a_month_that_is_given_twice_is_refused(files):
    run = howsure("monitor", files["past"], files["may"], files["may"])
    assert (run.returncode, "may.csv is given twice" in run.stderr) == (2, True)


def test_labels_without_a_column_of_labels_are_refused(files, tmp_path):
    (tmp_path / "came.csv").write_text("id,truth,when\n1-0,1,2\n")
    run = howsure("monitor", files["past"], files["may"], "--labels", tmp_path / "came.csv")
    assert run.returncode == 2
    assert (
        "has no column of labels (it has 'id', 'truth', 'when'); name it with --name"
        in " ".join(run.stderr.split())
    )


def test_a_reference_without_labels_is_refused(files):
    run = howsure("monitor", files["may"], files["june"])
    assert run.returncode == 2
    assert "reference has no labels" in run.stderr


def test_a_policy_for_other_data_is_refused(files, tmp_path):
    hs.save(hs.policies.Policy("max_prob", 0.9, k=3), tmp_path / "three.json")
    other = howsure("monitor", files["past"], files["may"], "--policy", tmp_path / "three.json")
    assert (other.returncode, "made for 3 classes" in other.stderr) == (2, True)
    three = hs.Predictions.from_probs(np.tile([0.2, 0.3, 0.5], (50, 1)), np.arange(50) % 3)
    hs.save(
        hs.policies.Policy("max_prob", 0.9, hs.calibrators.Platt.fit(three)),
        tmp_path / "platt.json",
    )
    calibrated = howsure(
        "monitor", files["past"], files["may"], "--policy", tmp_path / "platt.json"
    )
    assert (calibrated.returncode, len(calibrated.stderr.splitlines())) == (2, 1), calibrated.stdout
    hs.save(hs.policies.Policy("energy", 0.9), tmp_path / "energy.json")
    score = howsure("monitor", files["past"], files["may"], "--policy", tmp_path / "energy.json")
    assert (score.returncode, len(score.stderr.splitlines())) == (2, 1)


@real
def test_census_gives_no_alarm_and_holds():
    pytest.importorskip("pyarrow")
    run = howsure("monitor", MONTHS / "employment_MA_reference.pq", MONTHS / "employment_MA_analysis.pq",
                  "--name", "probs=predicted_probability", "--name", "labels=employed", "--month", "year",
                  "--labels", MONTHS / "employment_MA_analysis_target.pq", "--max-drop", "0.01", "--json")  # fmt: skip
    assert run.returncode == 0, run.stderr
    months = json.loads(run.stdout)["months"]
    assert [m["name"] for m in months] == ["2016", "2017", "2018"]
    assert [round(m["labelled"]["accuracy"]["value"], 3) for m in months] == [0.825, 0.829, 0.828]
    assert all(m["labelled"]["held"] for m in months)


@real
def test_car_loans_alarm_from_the_fifth_chunk_on():
    run = howsure("monitor", MONTHS / "car_loan_reference.csv.gz", MONTHS / "car_loan_analysis.csv.gz",
                  "--name", "probs=y_pred_proba", "--name", "labels=repaid", "--name", "prediction=y_pred",
                  "--chunk", "5000", "--max-drop", "0.015", "--answers", "argmax", "--json")  # fmt: skip
    assert run.returncode == 1, run.stderr
    assert [limit["passed"] for limit in json.loads(run.stdout)["limits"]] == [True] * 5 + [
        False
    ] * 5
