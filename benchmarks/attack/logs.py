"""A small good log of every tool, and tables as spreadsheets write them: where the attacks on their
readers begin.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

PAIRS = [["-1.5", "True"], ["-2.5", "False"]]
ARGUMENTS = {
    "gen_args_0": {"arg_0": "Q", "arg_1": " A"},
    "gen_args_1": {"arg_0": "Q", "arg_1": " B"},
}
CHOICE = {
    "doc_id": 0,
    "doc": {"subject": "law"},
    "target": "A",
    "arguments": ARGUMENTS,
    "filtered_resps": PAIRS,
    "acc": 1.0,
}
TEXT = {
    "doc_id": 0,
    "doc": {},
    "target": "4",
    "filtered_resps": ["4"],
    "exact_match": 1.0,
    "filter": "none",
}
TOKENS = {"content": [{"token": "a", "logprob": -0.1}]}
SCORED = {"match": {"value": "C", "answer": "a"}}
SAMPLE = {
    "id": 1,
    "epoch": 1,
    "scores": SCORED,
    "output": {"choices": [{"logprobs": TOKENS}]},
    "metadata": {},
}
ACCURACY = {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 1.0}}}]}
RESULT = {
    "success": True,
    "response": {"output": "a", "logProbs": [-0.1]},
    "vars": {},
    "prompt": {"raw": "p"},
}
JUDGED = {
    "name": "t",
    "success": True,
    "actualOutput": "a",
    "metricsData": [{"name": "m", "score": 0.9, "success": True}],
}
RESPONSE = {
    "object": "response",
    "id": "r",
    "output": [{"content": [{"text": "a", "logprobs": [{"logprob": -0.1}]}]}],
}
SPEC = {"spec": {"completion_fns": ["f"], "eval_name": "e"}}
TEAM = {
    "type": "choice",
    "name": "team",
    "choice": "a",
    "confidence": 0.8,
    "probabilities": {"a": 0.8, "b": 0.2},
}
LATE = {"type": "predicate", "name": "late", "probability": 0.07}
DECIDED = {"id": "r1", "label": {"team": "a", "late": False}, "output": {"answers": [TEAM, LATE]}}
LOGS: dict[str, Any] = {
    "lm-eval, options": [CHOICE, {**CHOICE, "doc_id": 1}],
    "lm-eval, text": [TEXT, {**TEXT, "doc_id": 1}],
    "write_out": [
        {
            "doc_id": 0,
            "prompt_0": "p",
            "prompt_1": "q",
            "logit_0": -1.0,
            "logit_1": -2.0,
            "truth": 0,
            "acc": "True",
        }
    ],
    "inspect": {
        "version": 2,
        "status": "success",
        "eval": {"task": "t"},
        "results": ACCURACY,
        "samples": [SAMPLE],
    },
    "promptfoo": {
        "results": {"version": 3, "results": [RESULT], "stats": {"successes": 1, "failures": 0}}
    },
    "deepeval": {"testCases": [JUDGED], "metricsScores": [], "testPassed": 1, "testFailed": 0},
    "openai evals": [SPEC, {"type": "match", "sample_id": "s", "data": {"correct": True}}],
    "openai responses": [{"correct": 1, "response": RESPONSE}],
    "uqlm": {"data": {"prompts": ["p"], "responses": ["a"], "exact_match": [1.0], "correct": [1]}},
}
TABLES = {
    "graded.csv": "id,grade,confidence_level\na,correct,0.9\nb,wrong,0.4\n",
    "graded.txt": "grade logprob_confidence\n1 0.9\n0 0.4\n",
    "commas.csv": "id;y_prob;y_true\na;0,25;0\nb;7,5e-1;1\n",
    "percent.csv": 'confidence;correct;weight\n"85,5%";1;1,5\n10%;0;2\n',
}


def write(folder: Path) -> list[Path]:
    """One file of each; those of several objects as JSON lines too, Inspect's as an archive too."""
    made = {f"{name}.json": json.dumps(log) for name, log in LOGS.items()} | TABLES
    made |= {
        f"{name}.jsonl": "\n".join(map(json.dumps, log))
        for name, log in LOGS.items()
        if isinstance(log, list)
    }
    made["decision model.jsonl"] = "\n".join(map(json.dumps, (DECIDED, {**DECIDED, "id": "r2"})))
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [*(folder / name for name in made), archive(folder / "inspect.eval", LOGS["inspect"])]


def archive(path: Path, log: dict[str, Any]) -> Path:
    """A log of Inspect as it keeps it: a header and a member for each sample."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("header.json", json.dumps({key: log[key] for key in log if key != "samples"}))
        for i, sample in enumerate(log["samples"]):
            out.writestr(f"samples/{i}_epoch_1.json", json.dumps(sample))
    return path
