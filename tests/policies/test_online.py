"""The online policy: each move by hand, and a stream whose accuracy drops."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, Predictions, load, save
from howsure.policies import OnlinePolicy, Policy
from howsure.serving.feedback import (
    LabelFeed,
    Learner,
    compute_identity,
    learn_labels,
    make_tickets,
)
from howsure.serving.journal import decision_lines

GRID = np.linspace(0, 1, 1001)


def start(**change: float) -> OnlinePolicy:
    return OnlinePolicy.start(
        Policy("max_prob", 0.5), GRID, **({"risk": 0.1, "audit": 1.0, "step": 0.02} | change)
    )


def confidence(*values: float) -> Predictions:
    return Predictions.from_confidence(list(values))


def test_starts_at_the_policy() -> None:
    assert start().threshold == pytest.approx(0.5, abs=0.005)


def test_moves_by_hand() -> None:
    state, made = start().decide(confidence(0.9, 0.8, 0.1))
    after = state.learn(made, [0, 1, 0])  # one wrong, one right; the deferred one does not count
    assert after.level == pytest.approx(state.level + 0.02 * (0.9 - 0.1))
    assert (after.labels, after.wrong, after.audited_risk) == (2, 1, 0.5)


def test_labels_that_were_not_asked_for_are_ignored() -> None:
    state, made = start(audit=0.3).decide(Predictions.from_confidence(np.full(200, 0.9)))
    assert 0.15 < made.audit.mean() < 0.45
    rows = np.flatnonzero(~made.audit)
    assert state.learn(made[rows], np.zeros(len(rows))).level == state.level


def test_order_and_delay_do_not_matter_without_the_floor() -> None:
    state, made = start().decide(confidence(0.9, 0.8, 0.7))
    one = state.learn(made[[2]], [0]).learn(made[[0, 1]], [1, 1])
    assert one.level == pytest.approx(state.learn(made, [1, 1, 0]).level)


def test_the_mean_audited_loss_is_bounded_whatever_happens() -> None:
    """The telescoped bound of the docstring, on an adversarial stream."""
    rng = np.random.default_rng(0)
    state = first = start()
    for i in range(3000):
        state, made = state.decide(Predictions.from_confidence([rng.random()]))
        if made.audit.any():
            state = state.learn(made, [float(rng.random() < (0.2 if i % 700 < 350 else 0.99))])
    bound = 0.1 + (1 + 0.02 * 2 - first.level) / (0.02 * state.labels)
    assert state.audited_risk <= bound


def test_closed_it_reopens_only_on_labels_of_the_surest_deferred() -> None:
    state = start()
    for _ in range(40):
        state, made = state.decide(confidence(*np.linspace(0.6, 1, 20)))
        state = state.learn(made, np.zeros(20)) if made.audit.any() else state
    assert state.threshold == np.inf
    closed = state
    for _ in range(60):
        state, made = state.decide(confidence(*np.linspace(0, 1, 20)))
    assert state.level == closed.level  # no labels: it stays closed
    for _ in range(300):
        state, made = state.decide(confidence(*np.linspace(0, 1, 20)))
        state = state.learn(made, np.ones(20))
    assert state.threshold < 1


def drifting(online: bool, seed: int, n: int = 40_000) -> tuple[int, int]:
    """Accepted and wrong in the last quarter; right with s^0.5, half-way with s^1.5; labels come
    500 late.
    """
    rng = np.random.default_rng(seed)
    score = rng.beta(5, 1.2, 5000)
    policy = Policy("max_prob", float(np.quantile(score, 0.4)))  # about 5 % wrong before the drop
    state = OnlinePolicy.start(policy, score, risk=0.05, audit=0.2, step=0.03, seed=seed)
    kept, missed, waiting = 0, 0, []
    for start in range(0, n, 100):
        s = rng.beta(5, 1.2, 100)
        right = rng.random(100) < s ** (0.5 if start < n / 2 else 1.5)
        state, made = state.decide(Predictions.from_confidence(s))
        waiting.append((made, right))
        if online and len(waiting) > 5:
            late, labels = waiting.pop(0)
            state = state.learn(late, labels)
        if start >= 3 * n / 4:
            kept, missed = kept + made.accept.sum(), missed + (made.accept & ~right).sum()
    return kept, missed


def test_risk_returns_to_its_target_after_a_drop() -> None:
    risk = {}
    for online in (False, True):
        kept, missed = np.sum([drifting(online, seed) for seed in range(3)], axis=0)
        risk[online] = missed / kept
    assert risk[False] > 0.1
    assert risk[True] < 0.07


def test_saved_whole_and_goes_on_the_same(tmp_path: Path) -> None:
    state, made = start(audit=0.5).decide(Predictions.from_confidence(np.linspace(0, 1, 50)))
    state = state.learn(made, np.ones(50))
    save(state, tmp_path / "s.json")
    again = load(tmp_path / "s.json")
    preds = Predictions.from_confidence(np.linspace(0, 1, 50))
    (a, one), (b, two) = state.decide(preds), again.decide(preds)
    assert one.audit.tolist() == two.audit.tolist()
    assert (a.level, a.seen, a.top) == (b.level, b.seen, b.top)


def test_a_file_of_labels_is_learnt_once(tmp_path: Path) -> None:
    state, made = start().decide(confidence(0.9, 0.8))
    made = replace(made, ticket=make_tickets(made, 0, compute_identity(state)))
    lines = decision_lines(made, [1, 2], None).decode().splitlines()
    path = tmp_path / "labels.jsonl"
    path.write_text(
        lines[0][:-1] + ',"correct":0}\n' + lines[1][:20]
    )  # the second line is not complete yet
    one = learn_labels(state, LabelFeed(path))
    assert (one.labels, one.wrong) == (1, 1)
    assert learn_labels(one, LabelFeed(path)) == one
    path.write_text(lines[0][:-1] + ',"correct":0}\n' + lines[1][:-1] + ',"correct":1}\n')
    assert learn_labels(one, LabelFeed(path)).labels == 2


def test_a_learner_saves_at_the_end(tmp_path: Path) -> None:
    learner = Learner(start(), None, lambda state: save(state, tmp_path / "s.json"))
    learner.decide(confidence(0.9))
    learner.close()
    assert load(tmp_path / "s.json").seen == 1


def test_bad_labels_are_named(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"line": 1, "decision": "accept", "correct": 2}\n')
    with pytest.raises(InputError, match=r"labels.jsonl, line 1 says '2'"):
        learn_labels(start(), LabelFeed(tmp_path / "labels.jsonl"))


def test_decisions_of_a_fixed_policy_teach_nothing() -> None:
    with pytest.raises(InputError, match="not of an online policy"):
        start().learn(Policy("max_prob", 0.5).decide(confidence(0.9)), [1])


@pytest.mark.parametrize("change", [{"risk": 0}, {"audit": 0}, {"step": 2}])
def test_bad_settings(change: dict) -> None:
    with pytest.raises(InputError):
        start(**change)
