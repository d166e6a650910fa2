"""Answers with grades between 0 and 1, from a file to their numbers."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.report.graded import measure_graded


def run(*words: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "howsure", *words]
    return subprocess.run(call, capture_output=True, text=True, check=False)


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    claim = rng.beta(5, 1, 300).round(4)
    grade = np.where(rng.random(300) < claim, 1.0, rng.choice([0, 0.25, 0.5], 300))
    rows = [f"{c},{g}" for c, g in zip(claim, grade, strict=True)]
    path = tmp_path / "graded.csv"
    path.write_text("\n".join(["confidence,grade", *rows]) + "\n")
    return path


def test_a_log_with_fractional_grades_is_evaluated(graded: Path) -> None:
    ran = run("evaluate", str(graded), "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    claim, grade = np.loadtxt(graded, delimiter=",", skiprows=1, unpack=True)
    assert found["n"] == 300
    assert found["metrics"]["accuracy"]["value"] == pytest.approx(grade.mean(), abs=1e-12)
    signed = found["metrics"]["signed_calibration_error"]
    assert signed["value"] == pytest.approx((claim - grade).mean(), abs=1e-12)
    place = np.ceil(claim * 15).astype(int)
    gaps = np.bincount(place, claim - grade) / 300
    assert found["metrics"]["ece"]["value"] == pytest.approx(np.abs(gaps).sum(), abs=1e-12)
    assert "auroc" not in found["metrics"]


def test_limits_of_graded_answers_are_those_of_interval(graded: Path) -> None:
    preds = hs.read(graded)
    found = measure_graded(preds)["metrics"]
    for name in ("accuracy", "aurc", "augrc", "ece", "aece", "correctness_brier"):
        limits = hs.interval(getattr(hs, name), preds)
        assert (found[name]["low"], found[name]["high"]) == limits, name


def test_the_sentences_of_graded_answers_follow_their_rows(graded: Path) -> None:
    text = run("evaluate", str(graded)).stdout
    signed = measure_graded(hs.read(graded))["metrics"]["signed_calibration_error"]
    assert signed["high"] is not None
    assert signed["high"] < 0
    assert f"{-100 * signed['value']:.1f} points below the grades" in text
    claim = np.linspace(0.3, 0.9, 50)
    true = hs.Predictions.from_confidence(claim, loss=1 - claim)
    assert "not clearly off the grades" in measure_graded(true)["verdict"][1]
    high = hs.Predictions.from_confidence(claim, loss=np.minimum(1, 1.3 - claim))
    assert "points above the grades" in measure_graded(high)["verdict"][1]


def test_what_grades_do_not_allow_is_one_sentence(graded: Path, tmp_path: Path) -> None:
    ran = run("evaluate", str(graded), "--html", str(tmp_path / "page.html"))
    assert ran.returncode == 2
    assert "these answers are graded, and a report needs right or wrong" in ran.stderr
    assert not (tmp_path / "page.html").exists()
    with pytest.raises(hs.InputError, match="graded"):
        hs.evaluate(hs.read(graded))
    with pytest.raises(hs.InputError, match=r"a loss is 2\.5"):
        measure_graded(hs.Predictions.from_confidence([0.5, 0.6], loss=[0, 2.5]))


def test_the_doctor_takes_a_grade_for_an_outcome(graded: Path) -> None:
    assert "nothing says which answers are right" not in run("doctor", str(graded)).stdout
