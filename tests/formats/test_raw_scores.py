"""Scores that are no probabilities: every command ranks, thresholds and decides by them, none calibrates."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.cli.main import main

N = 800
RNG = np.random.default_rng(3)
SCORE = RNG.normal(3, 2, N).round(4)
RIGHT = RNG.random(N) < 1 / (1 + np.exp(1 - SCORE))
NAMED = ("--name", "score=max_logit")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = zip(SCORE, np.where(RIGHT, "a", "b"), strict=True)
    text = "".join(f"{i},{s},{said},a\n" for i, (s, said) in enumerate(rows))
    (tmp_path / "a.csv").write_text(f"id,max_logit,prediction,label\n{text}")
    (tmp_path / "b.csv").write_text(f"id,max_logit,prediction,label\n{text}")
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    assert folder.is_dir()

    def call(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(list(args))
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


def test_a_confidence_outside_proposes_a_score_and_that_is_read(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    code, _, err = run("evaluate", "a.csv", "--name", "confidence=max_logit")
    assert code == 2
    assert err.count("\n") == 1
    assert "--name score=max_logit" in err
    code, _, err = run("evaluate", "a.csv")
    assert code == 2
    assert "try --name score=max_logit if higher is surer" in err
    _, out, _ = run("doctor", "a.csv")
    assert "howsure evaluate a.csv --name score=max_logit" in out
    code, out, err = run("evaluate", "a.csv", *NAMED, "--json")
    assert code == 0
    assert "score = 'max_logit' (no probability; higher = surer)" in err
    report = json.loads(out)
    assert (report["kind"], report["score"]) == ("score", "score")
    assert report["metrics"]["aurc"]["value"] == pytest.approx(hs.aurc(SCORE, RIGHT), abs=1e-12)
    for name in ("ece", "aece", "correctness_nll"):
        entry = report["metrics"][name]
        assert entry["value"] is None
        assert "no probability" in entry["why"]
    assert "calibration_test" not in report


def test_a_score_inside_0_and_1_is_no_claim_either() -> None:
    preds = hs.Predictions.from_score(np.linspace(0.5, 1, 50), np.arange(50) % 3 > 0)
    data = hs.evaluate(preds).data
    assert data["metrics"]["ece"]["value"] is None
    assert not [name for name in data["curves"] if name.startswith("reliability")]
    assert hs.aurc(preds) == hs.aurc(preds.score, preds.correct)
    for use in (hs.ece, lambda p: p.confidence, hs.calibrators.Isotonic.fit):
        with pytest.raises(hs.InputError, match="no probability of being right"):
            use(preds)


def test_thresholds_and_decisions(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("threshold", "a.csv", *NAMED, "--risk", "0.1", "-o", "p.json", "--json")
    assert code == 0
    at = json.loads(out)["threshold"]
    assert at == hs.policies.guaranteed_threshold(hs.tally(SCORE, RIGHT), risk=0.1, delta=0.05).threshold  # fmt: skip
    policy = hs.load("p.json")
    assert isinstance(policy, hs.policies.Policy)
    assert policy.read is not None
    assert policy.read.kind == "score"
    code, out, _ = run("decide", "p.json", "a.csv")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["decision"] == "accept" for line in lines] == (at <= SCORE).tolist()
    assert {line["confidence"] for line in lines} == {None}


def test_a_policy_for_scores_refuses_a_confidence(
    run: Callable[..., tuple[int, str, str]], folder: Path
) -> None:
    run("threshold", "a.csv", *NAMED, "--risk", "0.1", "-o", "p.json", "-q")
    (folder / "c.csv").write_text("id,confidence,prediction\n1,0.9,a\n")
    code, out, err = run("decide", "p.json", "c.csv")
    assert (code, out) == (2, "")
    assert "max_logit" in err
    code, out, err = run("decide", "p.json", "c.csv", "--name", "confidence=confidence")
    assert (code, out) == (2, "")


def test_compare_check_and_monitor(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("compare", "a.csv", "b.csv", *NAMED, "--json")
    assert code == 0
    models = json.loads(out)["models"]
    assert {model["score"] for model in models} == {"score"}
    assert models[0]["metrics"]["aurc"]["value"] == pytest.approx(hs.aurc(SCORE, RIGHT))
    assert run("check", "a.csv", *NAMED, "--require", "aurc<=0.3")[0] == 0
    code, _, err = run("check", "a.csv", *NAMED, "--require", "ece<=0.3")
    assert code == 2
    assert "ece cannot be measured" in err
    code, out, _ = run("check", "a.csv", *NAMED, "--against", "b.csv", "--json")
    whats = [verdict["what"] for verdict in json.loads(out)["verdicts"]]
    assert len(whats) == 2
    assert not any("ece" in what for what in whats)
    assert run("monitor", "a.csv", "b.csv", *NAMED)[0] == 0
    code, _, err = run("calibrate", "--fit", "a.csv", "--on", "b.csv", *NAMED)
    assert code == 2
    assert "no probability of being right" in err


@pytest.mark.parametrize("rows", [600, 3000])
def test_the_estimate_without_labels_does_not_depend_on_the_scale(rows: int) -> None:
    rng = np.random.default_rng(rows)

    def draw(n: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
        s = rng.normal(shift, 1.5, n)
        return s, rng.random(n) < 1 / (1 + np.exp(-s - 0.5))

    past, right = draw(rows, 1.5)
    new, truth = draw(2000, 0.5)
    made = hs.Predictions.from_score
    plain, scaled = (hs.estimate(made(c * past, right), made(c * new)) for c in (1, 1000))
    assert plain.accuracy == pytest.approx(scaled.accuracy, abs=1e-9)
    assert plain.accuracy == pytest.approx(truth.mean(), abs=0.06)
    # A sigmoid is one scale more.
    share = hs.Predictions.from_confidence
    as_confidence = hs.estimate(
        share(1 / (1 + np.exp(-past)), right), share(1 / (1 + np.exp(-new)))
    )
    assert plain.accuracy == pytest.approx(as_confidence.accuracy, abs=0.02)
