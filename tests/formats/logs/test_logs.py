"""Logs written for one question each: what the real ones do not hold, and what is wrong with a
file.
"""

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure import InputError
from howsure.formats.logs import Kind, read_log


def written(tmp_path: Path, content: Any, name: str = "log.json") -> Path:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def sample(
    target: Any, likelihoods: list[float], options: list[str], **fields: Any
) -> dict[str, Any]:
    arguments = {f"gen_args_{i}": {"arg_0": "Q", "arg_1": f" {o}"} for i, o in enumerate(options)}
    pairs = [[str(v), "False"] for v in likelihoods]
    row = {
        "doc_id": 0,
        "doc": {},
        "target": target,
        "arguments": arguments,
        "filtered_resps": pairs,
    }
    return {**row, "resps": [[p] for p in pairs], **fields}


@pytest.mark.parametrize(
    ("target", "gold"),
    [("38", 1), ("b", 1), (1, 1), ("(B)", 1), ("2", 2), ("27", 0)],
    ids=["text", "letter", "number", "letter in brackets", "digit", "first"],
)
def test_target_as_text_letter_or_number(target: Any, gold: int, tmp_path: Path) -> None:
    log = read_log(
        written(tmp_path, [sample(target, [-1, -2, -3], ["27", "38", "30"], acc=float(gold == 0))])
    )
    assert log.gold is not None
    assert log.gold.tolist() == [gold]


def test_a_target_that_is_text_and_number_follows_the_metric(tmp_path: Path) -> None:
    """ "1" is the text of option 0 and the number of option 1; the log's own right and wrong
    decides.
    """
    for right, gold in ((1.0, 0), (0.0, 1)):
        log = read_log(written(tmp_path, [sample("1", [-1, -2], ["1", "2"], acc=right)]))
        assert log.gold is not None
        assert log.gold.tolist() == [gold]


def test_ties_go_to_the_first_option(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, [sample("A", [-1, -1], ["A", "B"], acc=1.0)]))
    assert (log.accuracy, log.confidences[0].value.tolist()) == (1.0, [0.5])


def test_length_of_an_option(tmp_path: Path) -> None:
    rows = [sample("no", [-4.0, -3.0], ["certainly", "no"], acc=1.0, acc_norm=0.0)]
    path = written(tmp_path, rows)
    assert read_log(path).accuracy == 1.0
    normalised = read_log(path, metric="acc_norm")
    assert normalised.accuracy == 0.0
    assert normalised.options is not None
    np.testing.assert_allclose(normalised.options, [[-4 / 9, -3 / 2]])


def test_options_of_different_number(tmp_path: Path) -> None:
    rows = [
        sample("A", [-1, -2, -3], ["A", "B", "C"], acc=1.0),
        sample("B", [-1, -2], ["A", "B"], acc=0.0, doc_id=1),
    ]
    log = read_log(written(tmp_path, rows))
    assert log.title.endswith("2 questions, 2 to 3 options")
    assert log.options is not None
    assert log.options[1, 2] == -np.inf


def test_metric_that_disagrees_gives_both_numbers(tmp_path: Path) -> None:
    rows = [sample("A", [-1, -2], ["A", "B"], acc=a, doc_id=i) for i, a in enumerate((1.0, 0.0))]
    with pytest.raises(
        InputError, match=r"counts 0\.5 of its answers as right, its most likely options give 1;"
    ):
        read_log(written(tmp_path, rows))


def test_results_beside_that_disagree_give_both_numbers(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [sample("A", [-1, -2], ["A", "B"], acc=1.0)],
        "samples_t_2024-01-01T00-00-00.1.json",
    )
    written(tmp_path, {"results": {"t": {"acc,none": 0.9}}}, "results_2024-01-01T00-00-00.1.json")
    with pytest.raises(InputError, match=r"says acc 0\.9, its rows give 1;"):
        read_log(path)


def test_filter_that_finds_no_answer_is_unparseable(tmp_path: Path) -> None:
    answers = {"4": 1.0, "5": 0.0, "[invalid]": 0.0, " ": 0.0}
    rows = [
        {
            "doc_id": i,
            "doc": {},
            "target": "4",
            "arguments": {},
            "resps": [[a]],
            "filtered_resps": [a],
            "exact_match": m,
        }
        for i, (a, m) in enumerate(answers.items())
    ]
    log = read_log(written(tmp_path, "\n".join(map(json.dumps, rows)), "samples.jsonl"))
    assert log.counts == {"right": 1, "wrong": 1, "unparseable": 1, "missing": 1}
    assert (log.accuracy, log.accuracy_of_all) == (0.5, 0.25)


def test_filters_are_splits(tmp_path: Path) -> None:
    rows = [sample("A", [-1, -2], ["A", "B"], acc=1.0, filter=f) for f in ("strict", "flexible")]
    log = read_log(written(tmp_path, rows))
    assert log.split is not None
    assert log.split.tolist() == ["strict", "flexible"]


def inspect(*samples: dict[str, Any], accuracy: float | None = None, **top: Any) -> dict[str, Any]:
    scores = [{"name": "match", "metrics": {"accuracy": {"value": accuracy}}}]
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "results": {"scores": scores}}
    return {**log, "samples": list(samples), **top}


def answered(value: Any, number: int = 1, epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": epoch,
        "scores": {"match": {"value": value, "answer": "x"}},
        **more,
    }


def test_inspect_grades(tmp_path: Path) -> None:
    samples = [answered(v, i) for i, v in enumerate(("C", "I", "P", "N", 0.25))]
    log = read_log(written(tmp_path, inspect(*samples, accuracy=0.35)))
    assert log.counts == {"right": 1, "wrong": 1, "graded": 2, "refused": 1}
    assert log.accuracy == pytest.approx((1 + 0 + 0.5 + 0.25) / 4)


def test_inspect_epochs_are_one_group(tmp_path: Path) -> None:
    samples = [answered(v, i, e) for i in (1, 2) for e, v in ((1, "C"), (2, "I"))]
    log = read_log(written(tmp_path, inspect(*samples, accuracy=0.5)))
    assert log.group is not None
    assert (log.group.tolist(), log.ids.tolist()) == (
        ["1", "1", "2", "2"],
        ["1/1", "1/2", "2/1", "2/2"],
    )
    assert log.title == "Inspect log, 2 questions, 4 answers"


def test_inspect_token_probabilities(tmp_path: Path) -> None:
    tokens = {"content": [{"logprob": -0.1}, {"logprob": -0.2}]}
    log = read_log(
        written(tmp_path, inspect(answered("C", output={"choices": [{"logprobs": tokens}]})))
    )
    assert [(c.name, c.kind) for c in log.confidences] == [
        ("sequence_probability", Kind.SEQUENCE),
        ("mean_token_probability", Kind.SEQUENCE),
    ]
    assert log.confidences[0].value[0] == pytest.approx(np.exp(-0.3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"accuracy": 0.9}, r"its header says accuracy 0\.9, its rows give 1;"),
        ({"version": 7}, "of version 7; up to 2 are read"),
        ({"samples": [], "status": "cancelled"}, "was cancelled before a sample was finished"),
        (
            {"samples": [{"id": 1, "scores": {"a": {"value": 1}, "b": {"value": 0}}}]},
            r"2 scorers \(a, b\); choose one",
        ),
        ({"samples": [{"id": 1, "scores": {"a": {"value": 7}}}]}, "sample '1': a gives '7'"),
    ],
)
def test_inspect_refusals(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        read_log(written(tmp_path, inspect(answered("C"), **change)))


def archive(tmp_path: Path, **members: str) -> Path:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def test_eval_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"log\.eval is no zip archive"):
        read_log(written(tmp_path, "{}", "log.eval"))
    with pytest.raises(InputError, match=r"has no header\.json"):
        read_log(archive(tmp_path, **{"other.json": "{}"}))
    with pytest.raises(InputError, match=r"log\.eval, header\.json ends in the middle"):
        read_log(archive(tmp_path, **{"header.json": '{"eval": {'}))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path, **{"header.json": "{}", "samples/1_epoch_1.json": " " * 1000})
    data = path.read_bytes()
    size = struct.pack("<I", 1000)
    path.write_bytes(data.replace(size, struct.pack("<I", 3_000_000_000)))
    with pytest.raises(InputError, match="claims 3,000,000,000 bytes"):
        read_log(path)
    path = archive(
        tmp_path, **{"header.json": "{}", "samples/1_epoch_1.json": " " * (1 << 28) + "{}"}
    )
    with pytest.raises(InputError, match="would unpack to 268,435,460 bytes"):
        read_log(path)


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        ('[{"doc_id": 0, "doc": {"q": "wh', "log.json", "ends in the middle"),
        ('{"doc_id": 0}\n{"doc_id"', "log.jsonl", "line 2 ends in the middle"),
        ('{"doc_id": 0}\nnonsense\n{}', "log.jsonl", "line 2 is not JSON"),
        ("", "log.json", "is empty"),
        ("[" * 100_000, "log.json", "nested too deeply|ends in the middle"),
        ('{"a": 1}', "log.json", "no log of a known tool .* it holds 'a'"),
        ("[1, 2]", "log.json", "it holds no objects"),
        (
            "grade confidence_level\nPerhaps 0.5\n",
            "log.txt",
            "line 2, column 'grade': the value is 'Perhaps'",
        ),
        (
            "grade confidence_level\nCorrect high\n",
            "log.txt",
            "line 2, column 'confidence_level': the value is 'high'",
        ),
        ("grade confidence_level\nCorrect\n", "log.txt", "line 2 has 1 values, the header 2"),
        ("words and more\n", "log.txt", "has the columns words, and, more"),
    ],
)
def test_bad_files(content: str, name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_log(written(tmp_path, content, name))
    assert "\n" not in str(caught.value)


def test_tool_that_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, inspect(answered("C")))
    assert read_log(path, tool="inspect").accuracy == 1.0
    with pytest.raises(InputError, match="is no log of promptfoo, or one of another version"):
        read_log(path, tool="promptfoo")
    with pytest.raises(InputError, match="'ragas' is no known log"):
        read_log(path, tool="ragas")


def test_openai_evals(tmp_path: Path) -> None:
    spec = {"spec": {"completion_fns": ["gpt"], "eval_name": "e"}}
    events = [
        {"sample_id": f"s{i}", "type": "match", "data": {"correct": c}}
        for i, c in enumerate((True, False))
    ]
    lines = [spec, *events, {"final_report": {"accuracy": 0.5}}]
    log = read_log(written(tmp_path, "\n".join(map(json.dumps, lines)), "log.jsonl"))
    assert (log.title, log.accuracy) == ("OpenAI evals log, 2 questions", 0.5)
    lines[-1] = {"final_report": {"accuracy": 0.75}}
    with pytest.raises(
        InputError, match=r"its final report says accuracy 0\.75, its rows give 0\.5"
    ):
        read_log(written(tmp_path, "\n".join(map(json.dumps, lines)), "log.jsonl"))


def test_openai_responses(tmp_path: Path) -> None:
    said = {"type": "output_text", "text": "yes", "logprobs": [{"logprob": -0.5}]}
    response = {"object": "response", "id": "a", "output": [{"content": [said]}]}
    refused = {
        "object": "response",
        "id": "b",
        "output": [{"content": [{"type": "refusal", "refusal": "no"}]}],
    }
    chat = {
        "object": "chat.completion",
        "id": "c",
        "choices": [{"message": {"content": "yes"}, "logprobs": {"content": [{"logprob": -0.25}]}}],
    }
    rows = [{"correct": c, "response": r} for c, r in ((1, response), (0, refused), (0, chat))]
    log = read_log(written(tmp_path, rows))
    assert log.counts == {"right": 1, "wrong": 1, "refused": 1}
    np.testing.assert_allclose(log.confidences[0].value, [np.exp(-0.5), np.nan, np.exp(-0.25)])
    assert log.answer is not None
    assert log.answer.tolist() == ["yes", "", "yes"]


def test_promptfoo_counts_and_errors(tmp_path: Path) -> None:
    rows = [
        {"success": True, "response": {"output": "a"}, "testIdx": 0, "vars": {}, "failureReason": 0}
    ]
    rows.append(
        {"success": False, "response": {"output": ""}, "testIdx": 1, "vars": {}, "failureReason": 2}
    )
    top = {
        "results": {
            "version": 3,
            "results": rows,
            "stats": {"successes": 1, "failures": 0, "errors": 1},
        }
    }
    assert read_log(written(tmp_path, top)).counts == {"right": 1, "missing": 1}
    top["results"]["stats"]["successes"] = 2
    with pytest.raises(InputError, match="its table of counts says successes 2, its rows give 1"):
        read_log(written(tmp_path, top))


def test_csv_with_grades_and_refusals(tmp_path: Path) -> None:
    text = "id,grade,stated_confidence,subject\na,0.5,0.9,law\nb,refused,,art\nc,correct,0.2,art\n"
    log = read_log(written(tmp_path, text, "log.csv"))
    assert log.counts == {"right": 1, "graded": 1, "refused": 1}
    assert (log.ids.tolist(), log.confidences[0].kind, log.confidences[0].missing) == (
        ["a", "b", "c"],
        Kind.VERBALISED,
        1,
    )
    assert log.slices["subject"].tolist() == ["law", "art", "art"]
