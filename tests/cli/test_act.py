"""howsure threshold and howsure decide, as a user calls them."""

from __future__ import annotations

import io
import json
import os
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from howsure import load, save
from schemas import validate


@pytest.fixture
def val(tmp_path: Path) -> Path:
    """A good classifier with validation and test split and two groups."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 4, 2400)
    z = (6 * np.eye(4)[labels] + 2 * rng.standard_normal((2400, 4))).round(3)
    np.savez(tmp_path / "v.npz", val_logits=z[:1600], val_labels=labels[:1600], test_logits=z[1600:],
             test_labels=labels[1600:])  # fmt: skip
    (tmp_path / "new.jsonl").write_text(
        "".join(f'{{"id": {i}, "logits": {row}}}\n' for i, row in enumerate(z[:50].tolist()))
    )
    return tmp_path


def test_threshold_with_a_promise_checked_on_test(
    howsure: Callable, snapshot: Callable, val: Path
) -> None:
    ran = howsure(
        "threshold",
        "v.npz",
        "--split",
        "val",
        "--on-split",
        "test",
        "--risk",
        "0.02",
        "-o",
        "p.json",
    )
    assert ran.code == 0
    assert ran.err == (
        "wrote p.json\n"
        "howsure: 1,600 answers: logits of 4 classes = 'val_logits', "
        "right = most probable class against 'val_labels'\n"
        "howsure: 800 answers: logits of 4 classes = 'test_logits', "
        "right = most probable class against 'test_labels'\n"
    )
    snapshot(ran.out)


def test_threshold_as_json(howsure: Callable, val: Path) -> None:
    ran = howsure(
        "threshold", "v.npz", "--split", "val", "--accuracy", "0.99", "--by", "predicted", "--json"
    )
    plan = json.loads(ran.out)
    validate(plan, "plan")
    assert ran.code == 0
    assert set(plan["thresholds"]) == {"0", "1", "2", "3"}
    assert plan["deferral"]["predicted class"][0]["name"] == "all"


@pytest.mark.parametrize(
    "rule",
    [
        ("--coverage", "0.8"),
        ("--error-cost", "50", "--expert-error", "0.01"),
        ("--uncertainty", "0.3"),
        ("--risk", "0.05", "--method", "sgr"),
    ],
)
def test_every_rule(rule: tuple[str, ...], howsure: Callable, val: Path) -> None:
    ran = howsure("threshold", "v.npz", "--split", "val", *rule)
    assert ran.code == 0
    assert ran.out.startswith("Accept where ")


def test_a_matrix_of_costs(howsure: Callable, val: Path) -> None:
    (val / "costs.csv").write_text("0,1,1,1\n1,0,1,1\n1,1,0,1\n30,30,30,0\n")
    ran = howsure(
        "threshold",
        "v.npz",
        "--split",
        "val",
        "--costs",
        "costs.csv",
        "--deferral-cost",
        "0.2",
        "-o",
        "p.json",
    )
    assert ran.code == 0
    assert howsure("decide", "p.json", "new.jsonl").code == 0


def test_infeasible_exits_1_and_says_how_many_labels(howsure: Callable, val: Path) -> None:
    ran = howsure("threshold", "v.npz", "--split", "val", "--risk", "0.0001")
    assert ran.code == 1
    assert "Nothing can be accepted" in ran.out
    assert "labels" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "exactly one of --accuracy"),
        (("--accuracy", "0.9", "--coverage", "0.5"), "exactly one of"),
        (("--accuracy", "1.5"), "accuracy is 1.5"),
        (("--risk", "0.1", "--delta", "0"), "delta is 0"),
        (("--accuracy", "0.9", "--score", "max_prop"), "not a score"),
        (("--accuracy", "0.9", "--by", "group"), "there is no column 'group'"),
        (("--accuracy", "0.9", "--online", "o.json"), "give --risk"),
    ],
)
def test_bad_calls_of_threshold(
    arguments: tuple[str, ...], message: str, howsure: Callable, val: Path
) -> None:
    ran = howsure("threshold", "v.npz", "--split", "val", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


@pytest.fixture
def policy(howsure: Callable, val: Path) -> Callable:
    """`howsure`, with policy.json, online.json and watch.json made."""
    ran = howsure("threshold", "v.npz", "--split", "val", "--risk", "0.05", "-o", "policy.json",
                  "--online", "online.json", "--drift", "watch.json", "-q")  # fmt: skip
    assert (ran.code, ran.out) == (0, "")
    return howsure


def test_decide_a_file_then_resume(policy: Callable, val: Path) -> None:
    ran = policy("decide", "policy.json", "new.jsonl", "-o", "out.jsonl")
    assert ran.code == 0
    assert ran.err.startswith("50 decided: ")
    whole = (val / "out.jsonl").read_text()
    (val / "out.jsonl").write_text(whole[: len(whole) // 2])
    assert (
        "decided before"
        in policy("decide", "policy.json", "new.jsonl", "-o", "out.jsonl", "--resume").err
    )
    assert (val / "out.jsonl").read_text() == whole
    assert json.loads(whole.splitlines()[0])["policy"]


def test_decide_standard_input(
    policy: Callable, val: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sys.stdin",
        io.TextIOWrapper(io.BytesIO(b"logit_0,logit_1,logit_2,logit_3,id\n9,0,0,0,a\n0,0,0,0,b\n")),
    )
    ran = policy("decide", "policy.json", "-")
    assert [json.loads(line)["decision"] for line in ran.out.splitlines()] == ["accept", "defer"]
    assert ran.err == (
        "2 decided: 1 accepted, 1 deferred (end of input)\n"
        "howsure: logits of 4 classes = 'logit_0' … 'logit_3'\n"
    )


def test_another_kind_of_numbers_is_not_decided(policy: Callable, val: Path) -> None:
    (val / "sure.jsonl").write_text('{"confidence": 0.99}\n')
    ran = policy("decide", "policy.json", "sure.jsonl")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert (
        "hold confidence ('confidence'); the policy or calibrator was fitted on logits" in ran.err
    )


def test_decide_arrays_to_standard_output(policy: Callable, val: Path) -> None:
    ran = policy("decide", "policy.json", "v.npz", "--split", "test")
    assert (ran.code, ran.out.count("\n")) == (0, 800)


def test_online_with_labels_and_watch(policy: Callable, val: Path) -> None:
    ran = policy("decide", "online.json", "new.jsonl", "-o", "out.jsonl", "--drift", "watch.json")
    assert ran.code == 0
    rows = [json.loads(line) for line in (val / "out.jsonl").read_text().splitlines()]
    assert all("audit" in row for row in rows)
    (val / "labels.jsonl").write_text(
        "".join(json.dumps(row | {"correct": 1}) + "\n" for row in rows)
    )
    assert policy("decide", "online.json", "new.jsonl", "--labels", "labels.jsonl").code == 0
    from howsure import load

    state = load(val / "online.json")
    assert (state.seen, state.read) == (100, (val / "labels.jsonl").stat().st_size)
    assert load(val / "watch.json").seen == 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("policy.json", "bad.jsonl"), "bad.jsonl, line 2 is not JSON"),
        (("policy.json", "nan.jsonl"), "nan.jsonl, line 1 cannot be read: NaN is not a number"),
        (("policy.json", "other.jsonl"), "made for 4 classes, these predictions have 2"),
        (("watch.json", "new.jsonl"), "holds a saved DriftMonitor, not a policy"),
        (("policy.json", "new.jsonl", "--resume"), "give FILE and --out"),
        (("policy.json", "new.jsonl", "--labels", "l.jsonl"), "fixed policy"),
        (("policy.json", "none.jsonl"), "none.jsonl"),
        (("new.jsonl", "other.jsonl"), "cannot be loaded"),
    ],
)
def test_bad_calls_of_decide(
    arguments: tuple[str, ...], message: str, policy: Callable, val: Path
) -> None:
    (val / "bad.jsonl").write_text('{"logits": [9, 0, 0, 0]}\n{"logits": }\n')
    (val / "nan.jsonl").write_text('{"logits": [NaN, 0, 0, 0]}\n')
    (val / "other.jsonl").write_text('{"logits": [1, 0]}\n')
    ran = policy("decide", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_bad_lines_can_be_skipped(policy: Callable, val: Path) -> None:
    row = '{"logits": [9, 0, 0, 0]}'
    (val / "bad.jsonl").write_text(f"{row}\nx\n{row}\n")
    ran = policy("decide", "policy.json", "bad.jsonl", "--on-bad", "skip")
    assert (ran.code, ran.out.count("\n")) == (0, 2)
    assert ran.err.startswith("bad.jsonl, line 2 is not JSON")
    assert "1 bad lines" in ran.err


def test_a_bad_label_does_not_make_predictions_bad(policy: Callable, val: Path) -> None:
    (val / "labels.jsonl").write_text("oops\n")
    ran = policy(
        "decide", "online.json", "new.jsonl", "--labels", "labels.jsonl", "--on-bad", "skip"
    )
    assert (ran.code, ran.out.count("\n")) == (0, 50)
    assert "labels.jsonl, line 1 is not JSON" in ran.err
    assert "bad lines" not in ran.err
    (val / "labels.jsonl").write_text("oops\noops\n")
    stopped = policy("decide", "online.json", "new.jsonl", "--labels", "labels.jsonl")
    assert (stopped.code, stopped.out) == (2, "")
    assert stopped.err.startswith("howsure: labels.jsonl, line 2 is not JSON")


def test_a_named_pipe_is_decided_and_nothing_else_waits_for_one(
    policy: Callable, val: Path
) -> None:
    os.mkfifo(val / "pipe.jsonl")
    ran = policy("evaluate", "pipe.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert "pipe.jsonl is a pipe or a device; a file is needed" in ran.err
    row = '{"logits": [9, 0, 0, 0]}\n'
    writer = threading.Thread(target=lambda: (val / "pipe.jsonl").write_text(row))
    writer.start()
    ran = policy("decide", "policy.json", "pipe.jsonl")
    writer.join()
    assert json.loads(ran.out)["prediction"] == 0


@pytest.fixture
def percents(tmp_path: Path) -> Path:
    """Confidences in percent under a name of their own, with the truth and without."""
    rng = np.random.default_rng(5)
    sure = rng.beta(6, 1, 800).round(4)
    right = rng.random(800) < sure
    rows = [f"{100 * c:.2f},{int(r)}" for c, r in zip(sure, right, strict=True)]
    (tmp_path / "old.csv").write_text("\n".join(["how_sure,was_right", *rows]) + "\n")
    new = [f"q{i},{100 * c:.2f},{c / 2:.4f}" for i, c in enumerate(sure[:60])]
    (tmp_path / "new.csv").write_text("\n".join(["id,how_sure,half", *new]) + "\n")
    return tmp_path


NAMED = ("--name", "confidence=how_sure", "--percent")


@pytest.mark.parametrize("piped", [False, True])
def test_a_policy_remembers_how_its_file_was_read(
    howsure: Callable, percents: Path, monkeypatch: pytest.MonkeyPatch, piped: bool
) -> None:
    file = "-" if piped else "new.csv"

    def decide(*options: str) -> list[str]:
        stream = io.TextIOWrapper(io.BytesIO((percents / "new.csv").read_bytes()))
        monkeypatch.setattr("sys.stdin", stream)
        ran = howsure("decide", "p.json", file, *options, "-q")
        assert (ran.code, ran.err) == (0, "")
        return ran.out.splitlines()

    fitted = ("old.csv", *NAMED, "--name", "correct=was_right", "--risk", "0.1")
    assert howsure("threshold", *fitted, "-o", "p.json", "-q").code == 0
    lines = decide()
    assert lines == decide(*NAMED)
    assert {json.loads(line)["decision"] for line in lines} == {"accept", "defer"}
    # An option that is given wins, part by part: half of the confidence, of which percents remain.
    halves = [json.loads(line)["confidence"] for line in decide("--name", "confidence=half")]
    assert max(halves) < 0.01
    # One without the field, as policies of before, decides only what is told again.
    save(replace(load("p.json"), read=None), "p.json")
    assert howsure("decide", "p.json", "new.csv").code == 2
    again = [json.loads(line) for line in decide(*NAMED)]
    before = [json.loads(line) for line in lines]
    assert [d["decision"] for d in again] == [d["decision"] for d in before]


def test_the_split_of_a_policy_is_not_that_of_new_data(howsure: Callable, val: Path) -> None:
    howsure("threshold", "v.npz", "--split", "val", "--risk", "0.02", "-o", "p.json", "-q")
    assert load("p.json").read.split == "val"
    assert howsure("decide", "p.json", "new.jsonl", "-q").code == 0
    ran = howsure("decide", "p.json", "v.npz", "--split", "test", "-q")
    assert len(ran.out.splitlines()) == 800


def test_an_online_policy_remembers_it_too(howsure: Callable, percents: Path) -> None:
    fitted = ("old.csv", *NAMED, "--name", "correct=was_right", "--risk", "0.2")
    howsure("threshold", *fitted, "--online", "o.json", "-q")
    assert len(howsure("decide", "o.json", "new.csv", "-q").out.splitlines()) == 60


def write_wards(folder: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["id,confidence,correct,ward,age,group"]
    for i in range(1200):
        ward = "ABC"[i % 3]
        right = int(rng.random() > {"A": 0.001, "B": 0.001, "C": 0.4}[ward])
        lines.append(f"{i},{rng.uniform(0.5, 1):.4f},{right},{ward},{20 + i % 70},{ward}")
    (folder / "v.csv").write_text("\n".join(lines) + "\n")
    new = "id,confidence,ward,age,group\na,0.999,A,30,A\nb,0.999,C,30,C\nc,0.999,Z,30,Z\n"
    (folder / "n.csv").write_text(new)


@pytest.mark.parametrize("more", [("--by", "group"), ("--by", "ward", "--cluster", "ward")])
def test_a_group_has_a_threshold_with_a_promise_of_its_own(
    more: tuple[str, ...], howsure: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--risk --by group` never accepted anything, and a group not known took the common threshold."""
    monkeypatch.chdir(tmp_path)
    write_wards(tmp_path)
    ran = howsure("threshold", "v.csv", "--risk", "0.05", *more, "-o", "p.json", "--json")
    assert ran.code == 0
    found = {row["name"]: row["guarantee"]["feasible"] for row in json.loads(ran.out)["segments"]}
    assert found == {"A": True, "B": True, "C": False}
    decided = [json.loads(line) for line in howsure("decide", "p.json", "n.csv").out.splitlines()]
    assert [row["decision"] for row in decided] == ["accept", "defer", "defer"]
    assert [row["segment"] for row in decided] == ["A", "C", "Z"]
    assert [row.get("known", True) for row in decided] == [True, True, False]


def test_crossed_segments_at_once(
    howsure: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_wards(tmp_path)
    call = ("threshold", "v.csv", "--risk", "0.05", "--by", "ward,age:50,", "--together")
    ran = howsure(*call, "--cluster", "id", "-o", "p.json")
    assert ran.code == 0
    assert "6 segments of ward,age:50, at once" in " ".join(ran.out.split())
    assert "with probability 95.00 %, in each segment" in " ".join(ran.out.split())
    decided = [json.loads(line) for line in howsure("decide", "p.json", "n.csv").out.splitlines()]
    assert [row["segment"] for row in decided] == ["A × below 50", "C × below 50", "Z × below 50"]
    assert [row["decision"] for row in decided] == ["accept", "defer", "defer"]
    alone = howsure("threshold", "v.csv", "--risk", "0.05", "--together")
    assert (alone.code, alone.err.splitlines()[-1]) == (
        2,
        "howsure: --together is about segments; say --by.",
    )


def test_suggestions_for_the_deferred(howsure: Callable, val: Path) -> None:
    rule = ("v.npz", "--split", "val", "--risk", "0.02", "--suggest", "0.95")
    ran = howsure("threshold", *rule, "-o", "p.json")
    assert ran.code == 0
    assert "among the suggestions in 95 % of the deferred, on average; " in ran.out.replace(
        "\n", " "
    )
    # The threshold rests on one half of the 1,600 labels.
    assert "of 800 samples" in ran.out
    assert howsure("decide", "p.json", "new.jsonl", "-o", "d.jsonl").code == 0
    lines = [json.loads(line) for line in (val / "d.jsonl").read_text().splitlines()]
    assert {"accept", "defer"} == {line["decision"] for line in lines}
    for line in lines:
        assert ("suggestions" in line) == (line["decision"] == "defer")
        assert line.get("suggestions") is None or line["prediction"] in line["suggestions"]
    said = json.loads(howsure("threshold", *rule, "--json").out)
    validate(said, "plan")
    assert said["suggestions"]["level"] == 0.95
    refused = howsure("threshold", *rule, "--online", "o.json")
    assert refused.code == 2
    assert "an online policy moves it" in refused.err


def test_suggestions_need_every_class(howsure: Callable, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("confidence,correct\n" + "0.9,1\n0.4,0\n" * 50)
    ran = howsure("threshold", "t.csv", "--accuracy", "0.9", "--suggest", "0.95")
    assert ran.code == 2
    assert "only the top label is known, too little for --suggest" in ran.err


def test_few_missed_positives(howsure: Callable, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 2.0, 2000).round(4)
    y = (rng.random(2000) < p).astype(int)
    rows = "".join(f"{a:.4f},{b}\n" for a, b in zip(p, y, strict=True))
    (tmp_path / "t.csv").write_text("prob_1,label\n" + rows)
    ran = howsure("threshold", "t.csv", "--risk", "0.1", "--max-missed", "0.3")
    assert ran.code == 0
    assert "0.3 of the positives passed as negative" in ran.out.replace("\n", " ")
    assert "expected" not in ran.out
    assert howsure("threshold", "t.csv", "--accuracy", "0.9", "--max-missed", "0.3").code == 2


def test_each_segmentation_for_itself(howsure: Callable, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    sure = rng.random(1200) ** 0.2
    right = (rng.random(1200) < sure).astype(int)
    columns = [sure.round(4), right, rng.choice(["a", "b"], 1200), rng.integers(20, 80, 1200)]
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    text = "\n".join(["confidence,correct,site,age", *rows])
    (tmp_path / "a.csv").write_text(text)
    call = ("threshold", "a.csv", "--risk", "0.2", "--json")
    both = howsure(*call, "--by", "site", "--by", "age:40,60")
    assert both.code == 0
    found = [json.loads(line) for line in both.out.splitlines()]
    alone = [json.loads(howsure(*call, "--by", by).out) for by in ("site", "age:40,60")]
    assert found == alone
    assert [one["by"] for one in found] == ["site", "age:40,60"]
    refused = howsure(*call, "--by", "site", "--by", "age:40,60", "-o", "p.json")
    assert (refused.code, refused.out) == (2, "")
    assert "--by site,age:40,60" in refused.err


def write_segments(path: Path) -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 400)
    p = np.clip(0.5 + (truth - 0.5) * 0.8 + 0.15 * rng.normal(size=400), 0.01, 0.99)
    names = np.array(["cat", "dog"])[truth]
    rows = [f"{1 - x},{x},{y},{'ab'[i % 2]}" for i, (x, y) in enumerate(zip(p, names, strict=True))]
    path.write_text("\n".join(["prob_cat,prob_dog,label,ward", *rows]) + "\n")


def test_a_predicted_class_is_called_by_its_name(howsure: Callable, val: Path) -> None:
    write_segments(val / "pets.csv")
    ran = howsure("threshold", "pets.csv", "--risk", "0.2", "--by", "predicted", "-o", "p.json")
    assert ran.code == 0
    assert re.search(r"\n(cat|dog) +0\.\d+ ", ran.out)
    for line in howsure("decide", "p.json", "pets.csv").out.splitlines():
        row = json.loads(line)
        assert row["segment"] == row["prediction"]
        assert "known" not in row
    assert "cat: risk of" in howsure("check", "pets.csv", "--policy", "p.json").out
    both = "ward,predicted"
    assert howsure("threshold", "pets.csv", "--risk", "0.2", "--by", both, "-o", "q.json").code == 0
    rows = [json.loads(line) for line in howsure("decide", "q.json", "pets.csv").out.splitlines()]
    assert rows[0]["segment"] == f"a × {rows[0]['prediction']}"


def test_several_segmentations_are_several_policies(howsure: Callable, val: Path) -> None:
    write_segments(val / "pets.csv")
    call = ("threshold", "pets.csv", "--risk", "0.2", "--by", "ward", "--by", "predicted")
    ran = howsure(*call, "-o", "p.json")
    assert ran.code == 2
    assert (
        "say -o 'p_{by}.json' for a policy of each, or cross them: --by ward,predicted" in ran.err
    )
    assert not (val / "p.json").exists()
    assert howsure(*call, "-o", "p_{by}.json").code == 0
    for name in ("ward", "predicted"):
        assert howsure("decide", f"p_{name}.json", "pets.csv").code == 0


@pytest.mark.parametrize("column", ["weight", "group"])
def test_a_guarantee_that_is_refused_is_no_next_step(
    howsure: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 400)
    answers = {"confidence": confidence, "correct": rng.random(400) < confidence}
    np.savez("plain.npz", **answers)
    np.savez("other.npz", **answers, **{column: rng.integers(1, 5, 400)})
    assert "howsure threshold plain.npz --risk" in howsure("evaluate", "plain.npz").out
    assert "howsure threshold" not in howsure("evaluate", "other.npz").out
    assert howsure("threshold", "other.npz", "--risk", "0.1").code != 0
