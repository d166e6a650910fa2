"""decide --labels takes the files of labels that every command takes, before and after the decisions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure.cli import main
from howsure.policies import OnlinePolicy, Policy
from howsure.predictions.given_answers import is_right
from howsure.serving import GuaranteeMonitor, feedback

NAMES = ("cat", "dog")
N = 60


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """A policy with its guarantee monitor and an online policy; decide, and what it said."""
    monkeypatch.chdir(tmp_path)
    policy = Policy("max_prob", 0.6, k=2, class_names=NAMES)
    hs.save(policy, "policy.json")
    hs.save(GuaranteeMonitor.start(risk=0.3), "kept.json")
    hs.save(OnlinePolicy.start(policy, np.linspace(0, 1, 101), risk=0.3, audit=1.0), "online.json")
    rng = np.random.default_rng(3)
    p = rng.random(N)
    rows = [f"c{i},{1 - x!r},{x!r}\n" for i, x in enumerate(p.tolist())]
    Path("new.csv").write_text("case,prob_cat,prob_dog\n" + "".join(rows))
    Path("truth.json").write_text(json.dumps((rng.random(N) < p).astype(int).tolist()))

    def call(*args: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(["decide", *args])
        return int(end.value.code or 0), capsys.readouterr().err

    return call


def write_labels(name: str, rows: range = range(N), add: bool = False) -> None:
    """The labels of some rows, as somebody's tool writes them."""
    truth = json.loads(Path("truth.json").read_text())
    words = [NAMES[x] for x in truth]
    if name.endswith(".jsonl"):
        lines = [json.dumps({"id": f"c{i}", "label": truth[i]}) for i in rows]
    elif name.startswith("only"):
        lines = [f"c{i};{words[i]}" for i in rows]
        lines = lines if add else ["case;whatever", *lines]
    else:
        lines = [f'"c{i}",x,{words[i]}' for i in rows]
        lines = lines if add else ['"key","ward","gold"', *lines]
    with Path(name).open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


JOIN = {"gold.csv": "case=key", "only.csv": "case", "gold.jsonl": "case=id"}


def expect() -> tuple[int, int]:
    """Labels of accepted answers, and wrong ones among them."""
    truth = json.loads(Path("truth.json").read_text())
    made = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    accepted = [i for i, row in enumerate(made) if row["decision"] == "accept"]
    wrong = sum(made[i]["prediction"] != NAMES[truth[i]] for i in accepted)
    return len(accepted), wrong


@pytest.mark.parametrize("name", JOIN)
@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_labels_count_whenever_they_come(run: Callable[..., Any], name: str, when: str) -> None:
    early = {"before": N, "after": 0, "half": N // 2}[when]
    options = ("--guarantee", "kept.json", "--labels", name, "--join", JOIN[name])
    if early:
        write_labels(name, range(early))
    code, err = run("policy.json", "new.csv", "-o", "out.jsonl", *options)
    assert (code, "without a decision" in err) == (0, False), err
    if early < N:
        write_labels(name, range(early, N), add=early > 0)
        Path("none.csv").write_text("case,prob_cat,prob_dog\nlast,0.5,0.5\n")
        assert run("policy.json", "none.csv", "-o", "more.jsonl", *options)[0] == 0
    state = hs.load("kept.json")
    assert (state.labels, state.wrong) == expect()
    assert state.labels > 10


@pytest.mark.parametrize("early", [True, False])
def test_an_online_policy_learns_the_same(run: Callable[..., Any], early: bool) -> None:
    options = ("--labels", "gold.csv", "--join", "case=key")
    if early:
        write_labels("gold.csv")
    assert run("online.json", "new.csv", "-o", "out.jsonl", *options)[0] == 0
    if not early:
        write_labels("gold.csv")
        Path("none.csv").write_text("case,prob_cat,prob_dog\nlast,0.5,0.5\n")
        assert run("online.json", "none.csv", "-o", "more.jsonl", *options)[0] == 0
    state = hs.load("online.json")
    assert (state.labels, state.wrong) == expect()
    assert state.read == Path("gold.csv").stat().st_size


def test_a_label_counts_once_also_in_another_file_form(run: Callable[..., Any]) -> None:
    options = ("--guarantee", "kept.json", "--labels", "gold.jsonl", "--join", "case=id")
    write_labels("gold.jsonl")
    assert run("policy.json", "new.csv", "-o", "out.jsonl", *options)[0] == 0
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    with Path("gold.jsonl").open("a") as file:
        file.writelines(json.dumps({**row, "correct": 0}) + "\n" for row in lines)
    accepted, wrong = expect()
    code, err = run("policy.json", "new.csv", "-o", "o2.jsonl", *options)
    assert code == 0
    assert f"{accepted:,} repeated" in err
    state = hs.load("kept.json")
    assert (state.labels, state.wrong) == (accepted, wrong)


def test_decisions_of_a_run_that_was_killed_are_known_again(run: Callable[..., Any]) -> None:
    options = ("--guarantee", "kept.json", "--labels", "gold.csv", "--join", "case=key")
    begun = Path("kept.json").read_bytes()
    assert run("policy.json", "new.csv", "-o", "out.jsonl", *options)[0] == 0
    Path("kept.json").write_bytes(begun)  # as if nothing had been saved
    write_labels("gold.csv")
    assert run("policy.json", "new.csv", "-o", "out.jsonl", "--resume", *options)[0] == 0
    state = hs.load("kept.json")
    assert (state.labels, state.wrong) == expect()


def test_what_does_not_fit_is_said(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "WAITING_LABELS", 10)
    write_labels("gold.csv")
    options = ("--guarantee", "kept.json", "--labels", "gold.csv", "--join", "case=key")
    code, err = run("policy.json", "new.csv", "-o", "out.jsonl", *options)
    assert code == 0
    said = " ".join(err.split())
    assert "labels forgotten because no decision came with their id: 50 (the last 10" in said
    assert "decisions forgotten before a label came: 50 (the last 10" in said
    state = hs.load("kept.json")
    assert 0 < state.labels <= 10
    assert len(state.waiting_decisions) == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "key,gold\nc1,bird\n",
            "gold.csv, line 2: the label is 'bird'; the classes are 'cat', 'dog'",
        ),
        ("key,gold\nc1,7\n", "the label is '7'"),
        ("key,gold\nc1,\n", "gold.csv, line 2 has no 'gold'"),
        ("key,correct\nc1,2\n", "gold.csv, line 2 says '2'; 1 (right) or 0 (wrong) is needed"),
        ("id,gold\nc1,cat\n", "gold.csv has no column 'key' of ids (it has 'id', 'gold')"),
        ("key,a,b\nc1,cat,dog\n", "no column of labels"),
    ],
)
def test_bad_labels_are_named(run: Callable[..., Any], text: str, message: str) -> None:
    Path("gold.csv").write_text(text)
    options = ("--guarantee", "kept.json", "--labels", "gold.csv", "--join", "case=key")
    code, err = run("policy.json", "new.csv", "-o", "out.jsonl", *options)
    assert (code, "Traceback" in err) == (2, False)
    assert message in " ".join(err.split())


def test_labels_of_other_rows_wait_and_that_is_said(run: Callable[..., Any]) -> None:
    Path("gold.csv").write_text("key,gold\nelse,cat\nnobody,dog\n")
    options = ("--guarantee", "kept.json", "--labels", "gold.csv", "--join", "case=key")
    code, err = run("policy.json", "new.csv", "-o", "out.jsonl", *options)
    assert code == 0
    assert "gold.csv: labels still without a decision: 2." in err
    assert [row["id"] for row in hs.load("kept.json").early_labels] == ["else", "nobody"]


def test_a_cell_that_is_not_complete_yet_waits(run: Callable[..., Any]) -> None:
    options = ("--guarantee", "kept.json", "--labels", "gold.csv", "--join", "case=key")
    Path("gold.csv").write_text('key,note,gold\nc1,"two\nlines",dog\nc2,"one of\n')
    assert run("policy.json", "new.csv", "-o", "out.jsonl", *options)[0] == 0
    assert hs.load("kept.json").read == len('key,note,gold\nc1,"two\nlines",dog\n')
    with Path("gold.csv").open("a") as file:
        file.write('two",cat\nc3,x\n')
    code, err = run("policy.json", "new.csv", "-o", "o2.jsonl", *options)
    assert (code, "gold.csv, line 6: 2 cells for 3 columns" in err) == (2, True), err


@pytest.mark.parametrize(
    ("answer", "label", "names", "right"),
    [
        ("dog", "dog", NAMES, True),
        ("dog", "1", NAMES, True),
        (1, "0", None, False),
        (1, "1.0", None, True),
        (1, "true", None, True),
        ("yes", "1", ("yes", "no"), True),
        ("no", "0", ("yes", "no"), True),
        ("3", "3", ("1", "2", "3"), True),
        ("1", "0", ("1", "0"), False),
        ("New York", "new  york", None, True),
    ],
)
def test_labels_and_answers_are_compared_as_files_are_read(
    answer: int | str, label: str, names: tuple[str, ...] | None, right: bool
) -> None:
    k = 2 if names is None and isinstance(answer, int) else None
    assert is_right(answer, label, k, names) is right
