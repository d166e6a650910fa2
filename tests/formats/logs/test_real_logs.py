"""Every real log in the shared folder gives what its index says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import shared_or_skip
from howsure import InputError, tally
from howsure import auroc as metric
from howsure.formats.logs import Kind, Log, Outcome, read_log

EXACT = {"rel": 0, "abs": 1e-9}


def folder(name: str) -> Path:
    return shared_or_skip(f"data2/{name}")


def index(name: str) -> dict[str, Any]:
    return json.loads((folder(name) / "index.json").read_text())


def read(name: str, file: str, **how: Any) -> Log:
    return read_log(folder(name) / file, **how)


def ece15(log: Log, confidence: np.ndarray, rows: np.ndarray) -> float:
    """15 equal-width right-closed bins, as the indexes compute it."""
    conf, right = confidence[rows], log.grade[rows]
    bins = np.clip(np.ceil(conf * 15).astype(int) - 1, 0, 14)
    gaps = [abs(right[bins == b].sum() - conf[bins == b].sum()) for b in range(15)]
    return float(sum(gaps) / rows.sum())


def auroc(log: Log, confidence: np.ndarray, rows: np.ndarray) -> float:
    return metric(tally(confidence[rows], correct=log.grade[rows]))


@pytest.mark.parametrize("model", ["llama2-7b", "llama2-13b"])
def test_write_out(model: str) -> None:
    name = f"winogrande_{model}_write_out_info.json"
    log, known = (
        read("llm_lmeval_winogrande_old", name),
        index("llm_lmeval_winogrande_old")["files"][name],
    )
    assert log.title == "lm-evaluation-harness write_out, 1,267 questions, 2 options"
    assert log.accuracy == pytest.approx(known["recomputed"]["accuracy_argmax"], **EXACT)
    assert round(log.accuracy, 4) == known["log_aggregate"]["acc"]
    everything = np.ones(log.n, dtype=bool)
    value = log.confidences[0].value
    assert ece15(log, value, everything) == pytest.approx(known["recomputed"]["ece15"], **EXACT)
    assert auroc(log, value, everything) == pytest.approx(
        known["recomputed"]["auroc_conf_vs_correct"], **EXACT
    )


@pytest.mark.parametrize("stamp", ["2024-06-17T15-44-37.867068", "2024-06-17T12-20-26.826621"])
@pytest.mark.parametrize("metric", [None, "acc_norm"])
def test_multiple_choice_with_ties(stamp: str, metric: str | None) -> None:
    name = f"samples_bias_classification_{stamp}.json"
    known = index("llm_lmeval_samples_mc")["files"][name]
    log = read("llm_lmeval_samples_mc", name, metric=metric)
    assert log.title == "lm-evaluation-harness samples, 609 questions, 2 options"
    assert log.accuracy == pytest.approx(known["recomputed"]["accuracy_argmax"], **EXACT)
    aggregate = known["log_aggregate"]["bias_classification"]
    assert [c.theirs for c in log.claims] == [aggregate[f"{metric or 'acc'},none"]]
    assert log.options is not None
    assert log.gold is not None
    assert int((log.options[:, 0] == log.options[:, 1]).sum()) == known["recomputed"]["ties"]
    assert np.bincount(log.gold).tolist() == known["recomputed"]["class_counts"]
    everything = np.ones(log.n, dtype=bool)
    assert ece15(log, log.confidences[0].value, everything) == pytest.approx(
        known["recomputed"]["ece15"], **EXACT
    )


@pytest.mark.parametrize("name", ["_mathqa.jsonl", "_qnli.jsonl"])
def test_targets_that_are_texts_of_options_that_are_not_there(name: str) -> None:
    log, known = read("llm_lmeval_samples_mc", name), index("llm_lmeval_samples_mc")["files"][name]
    assert log.accuracy == pytest.approx(known["recomputed"]["accuracy_argmax"], **EXACT)
    assert log.gold is None  # "38" is not option 38
    everything = np.ones(log.n, dtype=bool)
    assert ece15(log, log.confidences[0].value, everything) == pytest.approx(
        known["recomputed"]["ece15"], **EXACT
    )


def test_generated_answers_have_no_confidence() -> None:
    known = index("llm_lmeval_samples_generate")["files"]
    for name, one in known.items():
        log = read("llm_lmeval_samples_generate", name)
        mean = next(iter(one["recomputed_means"].values()))
        assert log.accuracy_of_all == pytest.approx(mean, **EXACT)
        assert [c.theirs for c in log.claims] == [pytest.approx(mean, **EXACT)]
        if "belief" not in name:
            assert log.confidences == ()
            assert "confidence" in log.notes[0] or "log-probabilities" in log.notes[0]
    log = read("llm_lmeval_samples_mc", "_boolq-seq2seq.jsonl")
    assert (log.accuracy_of_all, log.confidences) == (0.0, ())


@pytest.mark.parametrize("run", ["bbq_openai_gpt-4o-2024-05-13", "mmlu-subject_philosophy_eee"])
def test_helm_run(run: str) -> None:
    log = read("llm_helm", run)
    assert log.accuracy == pytest.approx(0.95 if "bbq" in run else 0.1, **EXACT)
    assert "cannot rank them" in log.doubts[0]
    assert (log.split is None) == ("bbq" in run)
    assert read("llm_helm", f"{run}/per_instance_stats.json").accuracy == log.accuracy


def test_helm_splits_are_checked_apart() -> None:
    log = read("llm_helm", "mmlu-subject_philosophy_eee")
    theirs = {c.name: c.theirs for c in log.claims}
    assert theirs == {"exact_match of split test": 1 / 9, "exact_match of split valid": 0.0}
    assert read("llm_helm", "commonsense-dataset_hellaswag_eee").accuracy == pytest.approx(
        0.3, **EXACT
    )


@pytest.mark.parametrize("name", ["match", "choice", "model_graded_fact"])
def test_inspect(name: str) -> None:
    known = index("llm_inspect")["files"]
    files = [f for f, one in known.items() if name in one["recomputed"]]
    assert files
    for file in files:
        log = read("llm_inspect", file)
        assert log.accuracy == pytest.approx(known[file]["recomputed"][name], **EXACT)
        assert [c.theirs for c in log.claims] == [known[file]["log_aggregate"][f"{name}/accuracy"]]
        assert any("cancelled" in doubt for doubt in log.doubts) == (
            known[file]["status"] == "cancelled"
        )


def test_inspect_unscored_and_empty_are_told_apart() -> None:
    with pytest.raises(InputError, match="10 answers without scores"):
        read("llm_inspect", "2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval")
    with pytest.raises(InputError, match=r"holds no samples \(its header gives accuracy 0\.431\)"):
        read("llm_inspect", "data_with_llm_scoring.json")


def test_verbalised_confidences() -> None:
    known = index("llm_verbalised_mmlu_pro")["files"]
    for name, one in known.items():
        log = read("llm_verbalised_mmlu_pro", name)
        assert log.n == one["n"]
        assert log.accuracy_of_all == pytest.approx(one["accuracy"], **EXACT)
        assert log.counts.get("unparseable", 0) == one["empty_answers"]
        assert len(set(log.slices["category"].tolist())) == 14
        for confidence in log.confidences:
            expected = one[confidence.name]
            assert confidence.missing == expected["missing"]
            inside = (confidence.value >= 0) & (confidence.value <= 1)
            assert log.n - confidence.missing - int(inside.sum()) == expected["outside_0_1"]
            assert float(np.nanmax(confidence.value)) == expected["max"]
            assert auroc(log, confidence.value, inside) == pytest.approx(expected["auroc"], **EXACT)
            assert ece15(log, confidence.value, inside) == pytest.approx(expected["ece15"], **EXACT)
    kinds = {c.name: c.kind for c in log.confidences}
    assert kinds["verbal_numerical_confidence"] == Kind.VERBALISED


def test_text_logs_count_the_unparseable() -> None:
    for name, one in index("llm_msp_maxlogit_qa")["files"].items():
        log = read("llm_msp_maxlogit_qa", name)
        assert log.counts == {
            k.lower().replace("correct", "right"): v for k, v in sorted(one["grades"].items())
        }
        assert log.accuracy == pytest.approx(one["accuracy"], **EXACT)
        assert log.accuracy_of_all == pytest.approx(one["accuracy_all_rows"], **EXACT)
        value = log.confidences[0].value
        assert auroc(log, value, log.answered) == pytest.approx(one["auroc"], **EXACT)
        assert metric(log.outcomes().tally()) == pytest.approx(one["auroc"], **EXACT)
        everything = metric(log.outcomes(no_answer="wrong").tally())
        assert everything == pytest.approx(one["auroc_all_rows"], **EXACT)
        assert everything == pytest.approx(
            one.get("published", {}).get("sample_auroc", everything), **EXACT
        )


def test_promptfoo_and_deepeval() -> None:
    for name, one in index("llm_promptfoo")["files"].items():
        log = read("llm_promptfoo", name)
        assert log.counts == {"right": one["recomputed"]["successes"]}
        assert {c.name: c.ours for c in log.claims}["successes"] == one["n"]
    assert (
        read("llm_promptfoo", "config-multishot_output.json").questions == 4
    )  # of two prompts each
    log = read("llm_deepeval", "test_run_sample.json")
    assert (log.n, log.accuracy, log.confidences[0].kind) == (1, 0.0, Kind.JUDGE)


def test_no_outcome_is_one_sentence() -> None:
    cases = {
        "llm_openai_evals/gpt-4-cot_semantic_role_recognition.jsonl": "no match or metrics line",
        "llm_openai_logprobs/test_openai_instructions_with_responses_logprobs.json": "sequence_probability 0.999903",
        "llm_uqlm/whitebox_results_file.json": "nothing says which answers are right",
        "llm_uqlm/ensemble_results_file.json": "15 answers with 5 confidences",
    }
    for path, words in cases.items():
        with pytest.raises(InputError, match=words):
            read_log(shared_or_skip(f"data2/{path}"))


def test_uqlm_with_outcomes() -> None:
    log = read("llm_uqlm", "bsdetector_results_file.json")
    assert log.accuracy == pytest.approx(2 / 3, **EXACT)
    assert Outcome.MISSING not in log.outcome
    assert {c.kind for c in log.confidences} == {Kind.STATED, Kind.JUDGE, Kind.AGREEMENT}


@pytest.mark.parametrize(
    ("file", "title", "accuracy"),
    [
        ("inspect_plain.eval", "Inspect log, 60 questions, 2 confidences", 29 / 60),
        ("inspect_epochs.eval", "Inspect log, 60 questions, 180 answers, 2 confidences", 100 / 180),
        (
            "lmeval_samples_local_mc2.jsonl",
            "lm-evaluation-harness samples, 60 questions, 5 options, 60 graded",
            0.4032559658525535,
        ),
        ("promptfoo.jsonl", "promptfoo output, 25 questions, 50 answers, 2 confidences", 29 / 50),
        ("promptfoo.json", "promptfoo output, 25 questions, 50 answers, 2 confidences", 30 / 50),
        ("deepeval_latest_test_run.json", "deepeval test run, 30 questions", 18 / 30),
    ],
)
def test_newest_releases(file: str, title: str, accuracy: float) -> None:
    if file.endswith(".eval"):
        pytest.importorskip("zstandard")
    log = read("llm_new_logs", file)
    assert (log.title, log.accuracy) == (title, pytest.approx(accuracy, **EXACT))
