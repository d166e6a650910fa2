"""Labels count once and only for decisions of this policy; what is wrong with them is not the
predictions' fault.
"""

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, Predictions, save
from howsure.cli import main
from howsure.policies import OnlinePolicy, Policy
from howsure.serving import feedback, journal
from howsure.serving.feedback import LabelError, LabelFeed, Learner, ServingError, learn_labels
from howsure.serving.journal import decision_lines
from howsure.serving.stream import Serving, decide_stream

START = OnlinePolicy.start(Policy("max_prob", 0.5), np.linspace(0, 1, 101), risk=0.1, audit=1.0)


@pytest.fixture
def decided(tmp_path: Path) -> tuple[OnlinePolicy, list[str]]:
    """A policy after four decisions, and the lines of these with their labels."""
    learner = Learner(START, None, lambda _: None)
    made = learner.decide(Predictions.from_confidence([0.9, 0.8, 0.7, 0.6]))
    lines = decision_lines(made, range(1, 5), None).decode().splitlines()
    return learner.state, [f'{line[:-1]},"correct":0}}\n' for line in lines]


def told(state: OnlinePolicy, path: Path, on_bad: str = "stop") -> tuple[OnlinePolicy, list[str]]:
    said: list[str] = []
    return learn_labels(state, LabelFeed(path, on_bad=on_bad, report=said.append)), said  # type: ignore[arg-type]


def test_a_label_counts_once(decided: tuple, tmp_path: Path) -> None:
    state, lines = decided
    path = tmp_path / "labels.jsonl"
    path.write_text(lines[0] + lines[1] + lines[0])
    once, said = told(state, path)
    assert (once.labels, said) == (2, ["labels.jsonl: 1 repeated labels were not learnt."])
    with path.open("a") as file:
        file.write(lines[1] + lines[2])
    again, said = told(once, path)
    assert (again.labels, said) == (3, ["labels.jsonl: 1 repeated labels were not learnt."])


def test_labels_of_another_policy_or_of_changed_lines_are_unknown(
    decided: tuple, tmp_path: Path
) -> None:
    state, lines = decided
    path = tmp_path / "labels.jsonl"
    other = json.loads(lines[1]) | {"score": 0.81}
    bare = {key: value for key, value in json.loads(lines[2]).items() if key != "ticket"}
    path.write_text("".join(json.dumps(row) + "\n" for row in (other, bare)) + lines[3])
    after, said = told(state, path)
    assert (after.labels, said) == (1, ["labels.jsonl: 2 unknown labels were not learnt."])
    stranger = replace(state, seed=5)
    assert told(stranger, path)[0].labels == 0


def test_a_late_label_is_not_learnt(
    decided: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, lines = decided
    monkeypatch.setattr(feedback, "LATE_DECISIONS", 2)
    path = tmp_path / "labels.jsonl"
    path.write_text(lines[0] + lines[3])
    after, said = told(state, path)
    assert (after.labels, said) == (1, ["labels.jsonl: 1 late labels were not learnt."])


def test_a_label_file_that_became_shorter_is_refused(decided: tuple, tmp_path: Path) -> None:
    state, lines = decided
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(lines))
    state, _ = told(state, path)
    path.write_text(lines[0])
    with pytest.raises(LabelError, match="were read before, so it was cut or replaced"):
        told(state, path)


def test_a_bad_label_is_passed_over_or_ends_the_run(decided: tuple, tmp_path: Path) -> None:
    state, lines = decided
    path = tmp_path / "labels.jsonl"
    path.write_text(lines[0] + "oops\n" + lines[1])
    after, said = told(state, path, "skip")
    assert (after.labels, len(said)) == (2, 1)
    assert "labels.jsonl, line 2 is not JSON" in said[0]
    with pytest.raises(LabelError, match="line 2 is not JSON"):
        told(state, path)


@pytest.mark.parametrize(("on_bad", "code", "lines"), [("skip", 0, 40), ("stop", 2, 0)])
def test_one_bad_label_is_not_the_fault_of_the_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], on_bad: str, code: int, lines: int
) -> None:
    """Through the command: every row is decided although a line of the labels is none, or none is
    and it says why.
    """
    save(START, tmp_path / "online.json")
    (tmp_path / "labels.jsonl").write_text("oops\n")
    rows = "".join(f'{{"id": {i}, "confidence": {0.5 + i / 100}}}\n' for i in range(40))
    (tmp_path / "in.jsonl").write_text(rows)
    call = [
        "decide",
        tmp_path / "online.json",
        tmp_path / "in.jsonl",
        "--labels",
        tmp_path / "labels.jsonl",
    ]
    with pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in (*call, "--on-bad", on_bad, "-o", tmp_path / "out.jsonl")])
    said = " ".join(capsys.readouterr().err.split())
    assert ended.value.code == code
    assert "labels.jsonl, line 1 is not JSON" in said
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == lines


def test_a_state_that_cannot_be_saved_is_not_the_fault_of_the_predictions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(_: OnlinePolicy) -> None:
        raise InputError("online.json cannot be written: No space left on device.")

    monkeypatch.setattr(journal, "SAVE_SECONDS", 0.0)
    learner, out = Learner(START, None, full), BytesIO()
    with pytest.raises(ServingError, match="No space left on device"):
        decide_stream(
            learner.decide, BytesIO(b'{"confidence": 0.9}\n' * 3), out, how=Serving(on_bad="skip")
        )
    assert out.getvalue() == b""


def test_draws_and_levels_do_not_depend_on_the_pieces_in_which_rows_come() -> None:
    """So a run that goes on in the middle of a block decides and audits as an undisturbed one."""
    score = np.random.default_rng(7).random(9_000)  # other numbers than those that draw the audits
    start = OnlinePolicy.start(Policy("max_prob", 0.5), np.linspace(0, 1, 101), risk=0.1, audit=0.3)
    whole, made = start.decide(Predictions.from_confidence(score))
    state, audit = start, []
    for piece in np.split(score, [1, 7, 4_000, 4_096, 4_097, 8_500]):
        state, part = state.decide(Predictions.from_confidence(piece))
        audit.append(part.audit)
    assert np.array_equal(np.concatenate(audit), made.audit)
    assert (state.seen, state.accepted, state.idle, state.top) == (
        whole.seen,
        whole.accepted,
        whole.idle,
        whole.top,
    )
    assert made.audit is not None
    assert made.audit.sum() / made.accept.sum() == pytest.approx(0.3, abs=0.03)
