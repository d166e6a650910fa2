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
real = pytest.mark.skipif(not MONTHS.exists(), reason="left out: the real months of NannyML are not here")


def howsure(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "howsure", *map(str, args)], capture_output=True, text=True)


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
    assert (good.returncode, good.stderr) == (0, "")
    both = howsure("monitor", files["past"], files["may"], files["june"], "--max-drop", "0.06", "--by", "ward",
                   "--html", tmp_path / "m.html", "-o", tmp_path / "m.md", "--json")  # fmt: skip
    assert both.returncode == 1
    data = json.loads(both.stdout)
    assert [limit["passed"] for limit in data["limits"]] == [True, False]
    assert {p["name"] for p in data["months"][0]["estimate"]["groups"]} == {"a", "b"}
    assert "NOT PASSED: june" in (tmp_path / "m.md").read_text()
    assert "NOT PASSED: june" in (tmp_path / "m.html").read_text()


def test_labels_are_joined_by_id(files):
    come = files["may"].with_suffix(".labels.csv")
    found = json.loads(howsure("monitor", files["past"], files["may"], "--labels", come, "--json").stdout)
    assert found["months"][0]["labelled"]["n"] == 1500
    assert found["months"][0]["labelled"]["held"]


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


def test_a_reference_without_labels_is_refused(files):
    run = howsure("monitor", files["may"], files["june"])
    assert run.returncode == 2
    assert "reference has no labels" in run.stderr


def test_a_policy_for_other_data_is_refused(files, tmp_path):
    hs.save(hs.policies.Policy("max_prob", 0.9, k=3), tmp_path / "three.json")
    other = howsure("monitor", files["past"], files["may"], "--policy", tmp_path / "three.json")
    assert (other.returncode, "made for 3 classes" in other.stderr) == (2, True)
    three = hs.Predictions.from_probs(np.tile([0.2, 0.3, 0.5], (50, 1)), np.arange(50) % 3)
    hs.save(hs.policies.Policy("max_prob", 0.9, hs.calibrators.Platt.fit(three)), tmp_path / "platt.json")
    calibrated = howsure("monitor", files["past"], files["may"], "--policy", tmp_path / "platt.json")
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
                  "--chunk", "5000", "--max-drop", "0.015", "--json")  # fmt: skip
    assert run.returncode == 1, run.stderr
    assert [limit["passed"] for limit in json.loads(run.stdout)["limits"]] == [True] * 5 + [False] * 5
