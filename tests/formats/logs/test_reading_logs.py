"""Logs through `read`, the doctor and the commands, as users type them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from conftest import shared_or_skip
from howsure.cli.main import main
from howsure.formats import describe, problems

EXACT = {"rel": 0, "abs": 1e-9}


def data(path: str) -> Path:
    return shared_or_skip(f"data2/{path}")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command: its exit code, what it printed, and its remarks."""

    def call(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(list(args))
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        (
            "llm_lmeval_winogrande_old/winogrande_llama2-7b_write_out_info.json",
            (),
            (0.7379636937647988, 0.7011838799046454),
        ),
        (
            "llm_lmeval_winogrande_old/winogrande_llama2-13b_write_out_info.json",
            (),
            (0.7616416732438832, 0.7374601104896544),
        ),
        (
            "llm_lmeval_samples_mc/samples_bias_classification_2024-06-17T15-44-37.867068.json",
            (),
            (0.5106732348111659, 0.5830455987397225),
        ),
        (
            "llm_msp_maxlogit_qa/mmlu_Mixtral_norm_logits_first_prompt.txt",
            (),
            (0.6466366215990653, 0.6445798924994189),
        ),
        (
            "llm_msp_maxlogit_qa/mmlu_Mixtral_norm_logits_first_prompt.txt",
            ("--no-answer", "wrong"),
            (0.6456666666666667, 0.6460844931426482),  # as published
        ),
        (
            "llm_verbalised_mmlu_pro/mmlu_pro_gemma-2b-it_eval_all_None.csv",
            (
                "--name",
                "confidence=verbal_numerical_confidence",
                "--drop-outside",
                "--no-answer",
                "wrong",
            ),
            (0.13473739866055692, 0.5052014383826661),
        ),
    ],
)
def test_evaluate(
    path: str, options: tuple[str, ...], expected: tuple[float, float], run: Callable[..., Any]
) -> None:
    code, out, err = run("evaluate", str(data(path)), "--json", *options)
    metrics = json.loads(out)["metrics"]
    assert code == 0
    assert (metrics["accuracy"]["value"], metrics["auroc"]["value"]) == pytest.approx(
        expected, **EXACT
    )
    assert "questions" in err


def test_the_kind_of_log_is_said_in_one_line(run: Callable[..., Any]) -> None:
    path = data("llm_lmeval_winogrande_old/winogrande_llama2-7b_write_out_info.json")
    err = run("evaluate", str(path))[2]
    said = f"howsure: {path.name}: lm-evaluation-harness write_out, 1,267 questions, 2 options\n"
    assert err.startswith(said)
    assert err.count("\n") == 2  # and what its columns are taken for
    assert run("evaluate", str(path), "-q")[2] == ""
    assert run("evaluate", str(path), "-q", "--format", "lm-eval-write-out")[0] == 0


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_constant_confidence_is_warned_about(run: Callable[..., Any]) -> None:
    path = data("llm_helm/bbq_openai_gpt-4o-2024-05-13")
    with pytest.warns(
        UserWarning, match="sequence_probability is 1 for all 100 answers, so it cannot rank them"
    ):
        preds = hs.read(path)
    assert (preds.n, float(preds.correct.mean())) == (100, 0.95)
    code, _, err = run("evaluate", str(path), "--json")
    assert (code, "cannot rank them" in err) == (0, True)
    assert any(
        "cannot rank them" in problem.what and not problem.stops for problem in problems(path)
    )


def test_splits_are_kept_apart() -> None:
    path = data("llm_helm/mmlu-subject_philosophy_eee")
    refused = pytest.raises(hs.InputError, match=r"2 splits \('test', 'valid'\)")
    with pytest.warns(UserWarning, match="cannot rank them"), refused:
        hs.read(path)
    with pytest.warns(UserWarning, match="cannot rank them"):
        assert hs.read(path, split="test").correct.mean() == pytest.approx(1 / 9)


def test_several_confidences_ask_for_a_choice() -> None:
    path = data("llm_verbalised_mmlu_pro/mmlu_pro_Llama-3.2-3B-Instruct_eval_all_None.csv")
    with pytest.raises(
        hs.InputError, match=r"3 confidences: verbal_numerical_confidence \(verbalised\)"
    ):
        hs.read(path)
    preds = hs.read(path, names={"confidence": "verbal_numerical_confidence", "group": "category"})
    assert preds.unanswered is not None
    assert (preds.unanswered.unparseable, preds.unanswered.unstated) == (214, 6)
    assert preds.answered == pytest.approx((12032 - 220) / 12032)
    right = float(preds.correct.sum()) + preds.unanswered.unstated_right
    assert right / 12032 == pytest.approx(0.31141954787234044, **EXACT)
    assert preds.group is not None
    assert len(set(preds.group.tolist())) == 14


def test_values_outside_are_named_by_row_and_line(run: Callable[..., Any]) -> None:
    path = data("llm_verbalised_mmlu_pro/mmlu_pro_gemma-2b-it_eval_all_None.csv")
    code, _, err = run("evaluate", str(path), "--name", "confidence=verbal_numerical_confidence")
    assert code == 2
    assert (
        "confidence[3715] (line 3717) is 950 (16 such values, the furthest 362880 in row 8215)"
        in err
    )
    assert err.count("\n") == 2


def test_raw_logits_are_no_confidence(run: Callable[..., Any]) -> None:
    code, _, err = run(
        "evaluate", str(data("llm_msp_maxlogit_qa/mmlu_Mixtral_raw_logits_first_prompt.txt"))
    )
    assert code == 2
    assert "is 45.25 (5,991 such values" in err


def test_no_confidence_says_what_can_still_be_told(run: Callable[..., Any]) -> None:
    path = data("llm_inspect/2025-09-23T08-09-58-04-00_popularity_DN2wbX2ZvACsBpjwptzBRo.eval")
    code, out, err = run("evaluate", str(path), "--json")
    told = json.loads(out)
    assert (code, told["n"], told["outcomes"]) == (0, 100, {"right": 63, "wrong": 37})
    assert told["metrics"]["accuracy"]["value"] == pytest.approx(0.63, **EXACT)
    assert told["metrics"]["accuracy"]["low"] < 0.6 < 0.66 < told["metrics"]["accuracy"]["high"]
    assert "no confidence, so only accuracies are given" in err
    assert "when answering" in run("evaluate", str(path))[1]
    assert describe(path).format == "Inspect log, 100 questions"
    with pytest.raises(hs.InputError, match=r"accuracy 0\.63, but holds no confidence"):
        hs.read(path)
    code, _, err = run("evaluate", str(path), "-o", "report.json")
    assert (code, "holds no confidence" in err) == (2, True)


def test_accuracy_by_category_without_a_confidence(run: Callable[..., Any]) -> None:
    told = json.loads(
        run("evaluate", str(data("llm_promptfoo/llama4-scout_output.json")), "--json")[1]
    )
    assert (told["n"], told["questions"]) == (10, 5)
    assert {value: one["n"] for value, one in told["slices"]["prompt"].items()} == {"0": 5, "1": 5}


def test_percent(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("confidence,correct\n90,1\n75,0\n")
    code, _, err = run("evaluate", str(path))
    assert (code, "Divide percentages by 100 (--percent)" in err) == (2, True)
    assert hs.read(path, percent=True).confidence.tolist() == [0.9, 0.75]
    path.write_text("prob_0,prob_1,label\n0.5,0.5,1\n")
    with pytest.raises(hs.InputError, match="only a confidence can be given in percent"):
        hs.read(path, percent=True)


def test_no_answer_is_a_column_of_any_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "id,confidence,correct,no_answer\na,0.9,1,\nb,0.8,0,refused\nc,0.7,0,\nd,0.1,1,missing\n"
    )
    preds = hs.read(path)
    assert (preds.n, str(preds.unanswered), preds.answered) == (2, "1 refused, 1 missing", 0.5)
    assert (
        repr(preds) == "<Predictions: n=2, k=None, confidence, accuracy 0.5, 1 refused, 1 missing>"
    )
    wrong = hs.read(path, no_answer="wrong")
    assert (wrong.n, wrong.correct.tolist(), wrong.answered) == (
        4,
        [True, False, False, False],
        1.0,
    )
    parts = list(hs.scan(path, rows=1))
    assert [p.unanswered.total for p in parts if p.unanswered is not None] == [1, 1]
    path.write_text("confidence,correct,no_answer\n0.9,1,perhaps\n")
    with pytest.raises(
        hs.InputError, match="the value is 'perhaps'; unparseable, refused, missing"
    ):
        hs.read(path)


def test_two_files_add_what_was_not_answered(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(
            f"id,confidence,correct,no_answer\n{name},0.9,1,\n{name}2,,0,\n"
        )
    with pytest.raises(
        hs.InputError, match="the value is empty"
    ):  # an empty cell without a reason is a mistake
        hs.read([tmp_path / "a.csv", tmp_path / "b.csv"])
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(
            f"id,confidence,correct,no_answer\n{name},0.9,1,\n{name}2,,,refused\n"
        )
    preds = hs.read([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert preds.unanswered is not None
    assert preds.unanswered.refused == 2


def test_graded_answers_are_losses(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("grade,stated_confidence\n0.5,0.9\n1,0.8\nrefused,\n0,0.1\n")
    preds = hs.read(path)
    np.testing.assert_allclose(preds.loss, [0.5, 0.0, 1.0])
    with pytest.raises(
        hs.InputError, match=r"have a loss or grades between 0 and 1 instead of right and wrong"
    ):
        _ = preds.correct
    assert "mean loss 0.5, 1 refused" in repr(preds)
    assert hs.predictions.Outcomes.of(preds).loss.tolist() == preds.loss.tolist()


def test_loss_beside_right_and_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("confidence,correct,loss\n0.9,1,0.1\n0.4,0,2.5\n")
    preds = hs.read(path)
    assert (preds.correct.tolist(), preds.loss.tolist()) == ([True, False], [0.1, 2.5])


def test_doctor_of_a_log(run: Callable[..., Any]) -> None:
    code, out, _ = run("doctor", str(data("llm_lmeval_samples_mc/_qnli.jsonl")))
    assert code == 0
    assert "lm-evaluation-harness samples, 16 questions, 2 options" in " ".join(
        out.split()
    )  # a long path wraps


@pytest.mark.parametrize("name", ["log.eval", "log.json", "log.txt"])
def test_a_log_that_is_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(hs.InputError, match="does not exist"):
        hs.read(tmp_path / name)


def test_compare_the_confidences_of_a_log(run: Callable[..., Any]) -> None:
    path = data("llm_verbalised_mmlu_pro/mmlu_pro_Llama-3.2-3B-Instruct_eval_all_None.csv")
    code, out, err = run("compare", str(path), "--json")
    models = {m["name"]: m["metrics"] for m in json.loads(out)["models"]}
    assert code == 0
    assert len(models) == 3
    assert {name: len(m) > 0 for name, m in models.items()} == dict.fromkeys(models, True)
    assert (
        "verbal_numerical_confidence is verbalised, logit_perplexity_confidence is sequence probability"
        in err
    )
    assert err.count("12,032 questions") == 1
    two = ("verbal_numerical_confidence", "verbal_linguistic_confidence")
    out = run("compare", str(path), "--json", "--score", two[0], "--score", two[1])[1]
    assert {m["name"] for m in json.loads(out)["models"]} == set(two)


def test_from_a_log_to_decisions(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = data("llm_lmeval_winogrande_old/winogrande_llama2-13b_write_out_info.json")
    policy = str(tmp_path / "policy.json")
    code, out, _ = run("threshold", str(path), "--risk", "0.15", "-o", policy, "--json")
    assert code == 0
    plan = json.loads(out)
    run("decide", policy, str(path), "-o", str(tmp_path / "decisions.jsonl"))
    made = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert len(made) == 1267
    assert sum(d["decision"] == "accept" for d in made) / 1267 == pytest.approx(plan["coverage"])
    assert made[0]["id"] == "0"


def test_a_promise_for_graded_answers(tmp_path: Path) -> None:
    """A grade of 0.5 is half a loss; the promise is on the mean loss of the accepted."""
    rng = np.random.default_rng(0)
    confidence = rng.random(3000)
    grade = (rng.random(3000) < confidence) * rng.choice([0.5, 1.0], 3000)
    path = tmp_path / "log.csv"
    lines = [f"{g},{c}" for g, c in zip(grade, confidence, strict=True)]
    path.write_text("\n".join(["grade,stated_confidence", *lines]))
    preds = hs.read(path)
    rule = lambda t: hs.policies.guaranteed_threshold(t, risk=0.4, delta=0.05)
    policy = hs.policies.Policy.fit(preds, rule)
    kept = preds.confidence >= policy.threshold
    assert 0.1 < kept.mean() < 0.4
    assert preds.loss[kept].mean() < 0.4 < preds.loss.mean()


def test_threshold_counts_all_questions(run: Callable[..., Any]) -> None:
    path = data("llm_msp_maxlogit_qa/mmlu_gpt-4-turbo_norm_logits_first_prompt.txt")
    args = ("threshold", str(path), "--risk", "0.1")
    plan = json.loads(run(*args, "--json")[1])
    asked = plan["questions"]
    assert (asked["asked"], asked["unparseable"], asked["unstated"]) == (6000, 1, 0)
    assert asked["coverage"] == pytest.approx(plan["coverage"] * 5999 / 6000)
    out = run(*args)[1]
    assert "answered (1 unparseable); alone on" in out
    assert "of all 6,000 questions" in out


def test_threshold_of_graded_answers(tmp_path: Path, run: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    rows = [f"{0.5 * (rng.random() < c)},{c}" for c in rng.random(900)]
    (tmp_path / "log.csv").write_text("\n".join(["grade,stated_confidence", *rows]))
    code, out, _ = run("threshold", str(tmp_path / "log.csv"), "--risk", "0.8", "--json")
    plan = json.loads(out)
    assert code == 0
    assert plan["feasible"]
    assert plan["guarantee"]["bound"] <= 0.8
    assert (plan["accuracy"], plan["expected"], plan["deferral"]) == (None, None, {})
    code, out, _ = run(
        "threshold", str(tmp_path / "log.csv"), "--risk", "0.8", "--on", str(tmp_path / "log.csv")
    )
    assert (code, "guarantee of risk 80.00 %" in out) == (0, True)


def test_both_accuracies_are_said(run: Callable[..., Any]) -> None:
    err = run(
        "evaluate",
        str(data("llm_msp_maxlogit_qa/mmlu_Mixtral_norm_logits_first_prompt.txt")),
        "--json",
    )[2]
    assert "5,991 of 6,000 questions are answered (9 unparseable)" in err
    assert "accuracy 0.6466 when answering, 0.6457 with no answer counted as wrong" in err


def test_a_log_that_grades_itself_takes_no_named_labels(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = ["correct_answer,extracted_answer,category,verbal_confidence"]
    rows += [f"A,{'AB'[i % 4 == 0]},maths,0.{5 + i % 5}" for i in range(40)]
    path.write_text("\n".join(rows) + "\n")
    assert hs.read(path).correct.sum() == 30
    with pytest.raises(hs.InputError, match=r"says itself what is right.* leave out --name labels"):
        hs.read(path, names={"labels": "category"})
