"""Whatever is missing or of another type in a log: it is read, or refused in one sentence."""

import copy
import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

import howsure as hs

ODD: list[Any] = [None, True, 0, -1, 1e400, "", "x", [], {}, [1], {"a": 1}, "1_0", [[]], 10**400, "nan", -5.5]
PAIRS = [["-1.5", "True"], ["-2.5", "False"]]
ARGUMENTS = {"gen_args_0": {"arg_0": "Q", "arg_1": " A"}, "gen_args_1": {"arg_0": "Q", "arg_1": " B"}}
CHOICE = {
    "doc_id": 0,
    "doc": {"subject": "law"},
    "target": "A",
    "arguments": ARGUMENTS,
    "filtered_resps": PAIRS,
    "acc": 1.0,
}
TEXT = {"doc_id": 0, "doc": {}, "target": "4", "filtered_resps": ["4"], "exact_match": 1.0, "filter": "none"}
TOKENS = {"content": [{"token": "a", "logprob": -0.1}]}
SCORED = {"match": {"value": "C", "answer": "a"}}
SAMPLE = {"id": 1, "epoch": 1, "scores": SCORED, "output": {"choices": [{"logprobs": TOKENS}]}, "metadata": {}}
ACCURACY = {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 1.0}}}]}
RESULT = {"success": True, "response": {"output": "a", "logProbs": [-0.1]}, "vars": {}, "prompt": {"raw": "p"}}
JUDGED = {
    "name": "t",
    "success": True,
    "actualOutput": "a",
    "metricsData": [{"name": "m", "score": 0.9, "success": True}],
}
RESPONSE = {"object": "response", "id": "r", "output": [{"content": [{"text": "a", "logprobs": [{"logprob": -0.1}]}]}]}
SPEC = {"spec": {"completion_fns": ["f"], "eval_name": "e"}}
LOGS: dict[str, Any] = {
    "lm-eval, options": [CHOICE, {**CHOICE, "doc_id": 1}],
    "lm-eval, text": [TEXT, {**TEXT, "doc_id": 1}],
    "write_out": [
        {"doc_id": 0, "prompt_0": "p", "prompt_1": "q", "logit_0": -1.0, "logit_1": -2.0, "truth": 0, "acc": "True"}
    ],
    "inspect": {"version": 2, "status": "success", "eval": {"task": "t"}, "results": ACCURACY, "samples": [SAMPLE]},
    "promptfoo": {"results": {"version": 3, "results": [RESULT], "stats": {"successes": 1, "failures": 0}}},
    "deepeval": {"testCases": [JUDGED], "metricsScores": [], "testPassed": 1, "testFailed": 0},
    "openai evals": [SPEC, {"type": "match", "sample_id": "s", "data": {"correct": True}}],
    "openai responses": [{"correct": 1, "response": RESPONSE}],
    "uqlm": {"data": {"prompts": ["p"], "responses": ["a"], "exact_match": [1.0], "correct": [1]}},
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in below for place in places(one, (*path, key)))]


def broken(log: Any, rng: random.Random) -> Any:
    """The log with one to three of its values gone or replaced."""
    log = copy.deepcopy(log)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice([place for place in places(log) if place] or [()])
        if not path:
            return log
        parent = log
        for key in path[:-1]:
            parent = parent[key]
        if rng.random() < 0.4:
            del parent[path[-1]]
        else:
            parent[path[-1]] = copy.deepcopy(rng.choice(ODD))
    return log


@pytest.mark.parametrize("name", LOGS)
def test_broken_log(name: str, tmp_path: Path) -> None:
    rng, path = random.Random(name), tmp_path / "log.json"
    read, refused = 0, list[str]()
    for _ in range(60):
        path.write_text(json.dumps(broken(LOGS[name], rng)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a constant confidence, say
                read += hs.read(path).n > 0
        except hs.InputError as error:
            refused.append(str(error))
    assert read + len(refused) == 60
    assert len(refused) > 10
    assert not [sentence for sentence in refused if "\n" in sentence]


@pytest.mark.parametrize("name", LOGS)
def test_whole_log(name: str, tmp_path: Path) -> None:
    """The logs that are broken above are logs."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps(LOGS[name]))
    assert hs.formats.read_log(path).accuracy == 1.0
