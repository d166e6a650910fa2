"""Logs of decision models: bodies in any envelope, typed answers, and what they are judged by."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.formats.logs import is_decision_log
from howsure.formats.logs.decisions import read_decision_log
from howsure.predictions.read_options import ReadOptions

LISTED = {
    "model": "m",
    "answers": [
        {"type": "predicate", "name": "late", "probability": 0.07},
        {
            "type": "choice",
            "name": None,
            "choice": True,
            "confidence": 0.4,
            "probabilities": [
                {"value": True, "probability": 0.7},
                {"value": "true", "probability": 0.3},
            ],
        },
        {
            "type": "score",
            "name": "s",
            "score": 1.2,
            "confidence": 0.7,
            "probabilities": [
                {"value": 0, "label": "low", "probability": 0.1},
                {"value": 1, "label": "mid", "probability": 0.6},
                {"value": 2, "label": "high", "probability": 0.3},
            ],
        },
        {"type": "refusal", "name": "x"},
    ],
}


def choice(answer: str, p: float, confidence: float | None = 0.5) -> dict[str, object]:
    body: dict[str, object] = {
        "type": "choice",
        "choice": answer,
        "probabilities": {"a": p, "b": round(1 - p, 2)},
    }
    if confidence is not None:
        body["confidence"] = confidence
    return body


def write_lines(path: Path, records: list[object]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_all_types_of_a_list(tmp_path: Path) -> None:
    log = read_decision_log(write_lines(tmp_path / "a.jsonl", [LISTED]))
    assert [question.name for question in log.questions] == ["late", "#2", "s", "x"]
    assert log.name_answers().tolist() == ["no", "true", "mid", ""]
    assert '"true"' in log.option_names
    assert log.confidence[:3].tolist() == [0.93, 0.4, 0.7]  # not 0.9299999999999999
    assert log.questions[2].options == ("low", "mid", "high")
    assert "1 refused" in log.title


@pytest.mark.parametrize("wrap", [lambda b: b, json.dumps, lambda b: [{"x": {"y": b}}]])
def test_the_body_is_found_in_any_envelope(tmp_path: Path, wrap: object) -> None:
    body = {"model": "m", "answers": {"q": choice("a", 0.9)}}
    path = write_lines(tmp_path / "a.jsonl", [{"id": 1, "out": wrap(body)}])  # type: ignore[operator]
    assert is_decision_log(path)
    assert read_decision_log(path).models == ("m",)


def test_a_body_in_a_cell_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "raw"], ["1", json.dumps({"answers": {"q": choice("a", 0.9)}})]])
    assert read_decision_log(path).name_answers().tolist() == ["a"]


def test_errors_and_boxes_are_counted(tmp_path: Path) -> None:
    body = {"answers": {"q": choice("a", 0.9), "where": {"type": "box"}}}
    path = write_lines(tmp_path / "a.jsonl", [{"id": 1, **body}, {"id": 2, "error": "timeout"}])
    log = read_decision_log(path)
    assert "1 missing" in log.title
    assert log.notes == ("1 box answers have no probability and are left out",)


def test_labels_by_column_and_by_line(tmp_path: Path) -> None:
    answers = {"q": choice("a", 0.9), "late": {"type": "noul", "noul": 0.2}}
    path = write_lines(tmp_path / "a.jsonl", [{"item": i, "answers": answers} for i in range(3)])
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv"
    wide.write_text("id,q,late\n0,a,no\n1,b,no\n2,,true\n")
    long.write_text("id,question,label\n0,q,a\n1,q,b\n0,late,no\n1,late,0\n2,late,1\n")
    for labels in (wide, long):
        options = ReadOptions(kind="confidence")
        preds = hs.read(path, options=options, labels=labels, join="item=id")
        assert preds.n == 5
        assert int(preds.correct.sum()) == 3
    one = hs.read(path, options=ReadOptions(question="late"), labels=wide, join="item=id")
    assert one.class_names == ("no", "yes")
    assert one.confidence.tolist() == [0.8] * 3


def test_confidence_is_the_field_for_a_threshold_and_the_probability_for_a_report(
    tmp_path: Path,
) -> None:
    lines = [{"id": i, "label": "a", "answers": {"q": choice("a", 0.69, 0.37)}} for i in range(2)]
    path = write_lines(tmp_path / "a.jsonl", lines)
    assert hs.read(path).confidence.tolist() == [0.69, 0.69]
    assert hs.read(path, options=ReadOptions(kind="confidence")).values.tolist() == [0.37, 0.37]


def test_missing_confidence_is_refused(tmp_path: Path) -> None:
    lines = [
        {"id": i, "label": "a", "answers": {"q": choice("a", 0.9, None if i else 0.8)}}
        for i in range(4)
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(hs.InputError, match="no confidence for 3 of 4 answers to 'q'"):
        hs.read(path, options=ReadOptions(kind="confidence"))


def test_several_models_are_asked_for(tmp_path: Path) -> None:
    lines = [
        {"id": i, "arm": arm, "label": "a", "answers": {"q": choice("a", 0.9)}}
        for i in range(3)
        for arm in "xy"
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(hs.InputError, match="say which: --where arm=x"):
        hs.read(path)
    assert hs.read(path, options=ReadOptions(where={"arm": "y"})).n == 3


def test_shares_of_people_are_grades(tmp_path: Path) -> None:
    lines = [
        {"id": 1, "human": {"a": 0.6, "b": 0.4}, "choice": "a", "probs": {"a": 0.9, "b": 0.1}},
        {"id": 2, "human": {"a": 0.5, "b": 0.5}, "choice": "b", "probs": {"b": 0.5, "a": 0.5}},
    ]
    preds = hs.read(write_lines(tmp_path / "a.jsonl", lines))
    assert preds.loss.tolist() == pytest.approx([0.4, 0.5])


def test_levels_within_the_tolerance_are_right(tmp_path: Path) -> None:
    answer = {
        "type": "score",
        "score": 1.0,
        "confidence": 0.5,
        "legend": {"0": "low", "1": "mid", "2": "high"},
        "probabilities": {"0": 0.2, "1": 0.5, "2": 0.3},
    }
    lines = [{"id": i, "label": i, "answers": {"s": answer}} for i in range(3)]
    path = write_lines(tmp_path / "a.jsonl", lines)
    assert hs.read(path).correct.tolist() == [False, True, False]
    near = hs.read(path, options=ReadOptions(tolerance=1))
    assert near.correct.all()
    assert near.confidence.tolist() == [1.0] * 3


def test_labels_of_escalated_answers_alone_are_refused(tmp_path: Path) -> None:
    lines = []
    for i in range(60):
        label = "a" if i < 20 else None
        confidence = 0.5 if i < 20 else 0.9
        lines.append({"id": i, "label": label, "answers": {"q": choice("a", 0.9, confidence)}})
    path = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(hs.InputError, match=r"up to confidence 0.5 only; 40 more confident"):
        hs.read(path, options=ReadOptions(kind="confidence"))


def test_a_probability_outside_is_refused_with_its_line(tmp_path: Path) -> None:
    lines = [{"answers": {"late": {"type": "noul", "noul": p}}} for p in (0.5, 1.5)]
    with pytest.raises(hs.InputError, match=r"line 2 has the probability 1.5"):
        read_decision_log(write_lines(tmp_path / "a.jsonl", lines))


def test_options_may_differ_and_keys_come_in_any_order(tmp_path: Path) -> None:
    same = [{"answers": {"q": choice("a", 0.9)}}]
    turned = {"type": "choice", "choice": "a", "confidence": 1, "probabilities": {"b": 0, "a": 1}}
    log = read_decision_log(write_lines(tmp_path / "a.jsonl", [*same, {"answers": {"q": turned}}]))
    assert log.questions[0].options == ("a", "b")
    other = {**turned, "probabilities": {"c": 0, "a": 1}}
    log = read_decision_log(write_lines(tmp_path / "b.jsonl", [*same, {"answers": {"q": other}}]))
    assert log.questions[0].options is None
    assert np.allclose(log.get_answer_probability(), [0.9, 1.0])


def test_a_cell_beyond_the_limit_of_csv_is_refused_and_the_limit_stays(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    body = json.dumps({"model": "m", "answers": {"late": {"type": "noul", "noul": 0.07}}})
    path = tmp_path / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["id", "raw", "note"], ["a", body, ""], ["b", body, "x" * (limit + 1)]]
        )
    with pytest.raises(InputError, match="line 3 is no CSV"):
        read_decision_log(path)
    assert csv.field_size_limit() == limit


def test_a_policy_knows_the_question_it_is_about(tmp_path: Path) -> None:
    body = {"q": choice("a", 0.9), "late": {"type": "noul", "noul": 0.2}}
    records = [{"id": i, "label": {"q": "a"}, "answers": body} for i in range(3)]
    path = write_lines(tmp_path / "a.jsonl", records)
    options = ReadOptions(question="q", kind="confidence", names={"confidence": "probability"})
    preds = hs.read(path, options=options)
    assert preds.receipt is not None
    assert preds.receipt.asked is not None
    assert list(preds.receipt.asked.questions) == ["q"]
    assert preds.receipt.asked.questions["q"][1] == "probability"
    assert preds.values.tolist() == [0.9] * 3  # asked for, although there is a field


def test_a_text_about_the_record_is_no_mark_of_the_question(tmp_path: Path) -> None:
    digests: list[str] = []
    for text in ("Is {} late?", "Is it late?", "Is {} late?"):
        records = []
        for i in range(3):
            asked = [{"type": "predicate", "name": "late", "text": text.format(i + len(digests))}]
            answers = [{"type": "predicate", "name": "late", "probability": 0.7}]
            records.append({"request": {"questions": asked}, "answers": answers})
        log = read_decision_log(write_lines(tmp_path / f"{len(digests)}.jsonl", records))
        digests.append(log.questions[0].digest)
    assert digests[0] == digests[2] != digests[1]


def test_labels_of_another_model_are_agreement(tmp_path: Path) -> None:
    records = [{"id": i, "answers": {"q": choice("a", 0.9)}} for i in range(3)]
    path = write_lines(tmp_path / "a.jsonl", records)
    for name, doubted in (("fallback_labels.csv", True), ("people.csv", False)):
        labels = tmp_path / name
        labels.write_text("id,q\n0,a\n1,a\n2,b\n")
        preds = hs.read(path, labels=labels)
        assert preds.receipt is not None
        assert ("agreement with it is counted, not truth" in str(preds.receipt)) == doubted


def test_rows_miss_one_by_the_rounding_of_their_digits(tmp_path: Path) -> None:
    answer = {
        "type": "choice",
        "choice": "a",
        "confidence": 0.01,
        "probabilities": {"a": 0.34, "b": 0.33, "c": 0.32},
    }
    lines = [{"id": i, "label": "a", "answers": {"q": answer}} for i in range(3)]
    preds = hs.read(write_lines(tmp_path / "a.jsonl", lines))
    assert preds.class_names == ("a", "b", "c")
    assert preds.confidence.tolist() == [0.34] * 3


def test_the_answer_is_what_the_model_chose(tmp_path: Path) -> None:
    answer = {
        "type": "choice",
        "choice": "b",
        "confidence": 0.0,
        "probabilities": {"a": 0.5, "b": 0.5},
    }
    lines = [{"id": i, "label": "b", "answers": {"q": answer}} for i in range(3)]
    assert hs.read(write_lines(tmp_path / "a.jsonl", lines)).correct.all()


def test_without_confidence_and_probabilities_there_is_no_threshold(tmp_path: Path) -> None:
    answer = {"type": "choice", "choice": "b"}
    lines = [{"id": i, "label": "b", "answers": {"q": answer}} for i in range(12)]
    path = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(InputError, match="has no confidence for 12 of 12 answers to 'q'"):
        hs.read(path, options=ReadOptions(kind="confidence"))


def test_the_same_question_of_another_type_is_refused_with_its_line(tmp_path: Path) -> None:
    lines = [{"answers": {"q": choice("a", 0.9)}}, {"answers": {"q": {"type": "noul", "noul": 1}}}]
    with pytest.raises(InputError, match=r"line 2: the answer to 'q' is a yes/no"):
        read_decision_log(write_lines(tmp_path / "a.jsonl", lines))


REAL = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[4] / "shared"))
REAL_LOGS = [
    ("decidebench/results_v1.0_jev.first26.jsonl", (17, 1, 17)),
    ("decidebench/results_v1_openai-decisions.first18.jsonl", (12, 1, 12)),
    ("Jev-Calibration/jev_variants.first15.jsonl", (10, 8, 80)),
    ("jev-calibration-audit/06-chaosnli.first54.jsonl", (36, 4, 60)),
]


@pytest.mark.parametrize(("name", "counts"), REAL_LOGS)
def test_real_logs(name: str, counts: tuple[int, int, int]) -> None:
    path = REAL / "data2" / "llm_decisions" / name
    if not path.is_file():
        pytest.skip("the shared folder is not there")
    assert is_decision_log(path)
    log = read_decision_log(path)
    assert (len(log.lines), len(log.questions), len(log.question)) == counts
    assert len(log.models) == 1
    kinds = [question.kind for question in log.questions]
    if counts[1] == 8:
        assert [kinds.count(kind) for kind in ("yes/no", "choice", "score")] == [3, 4, 1]


def test_real_tables() -> None:
    folder = REAL / "data2" / "llm_decisions"
    if not folder.is_dir():
        pytest.skip("the shared folder is not there")
    several = folder / "jev-calibration-eval/jevctx-p2_per-item.first289.csv"
    with pytest.raises(InputError, match=r"the same 'item_id' for 2 values of 'arm'"):
        hs.read(several)
    assert hs.read(folder / "is-jev-calibrated/decisions.first51.csv").n == 33
