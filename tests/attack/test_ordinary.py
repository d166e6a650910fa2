"""Faults of an ordinary day: a disk that is really full, a file that changes while it is read,
processes that are forked or spawned, very many updates.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.calibrators import Temperature
from howsure.policies import DriftMonitor, OnlinePolicy, Policy
from howsure.serving import GuaranteeMonitor

HOWSURE = [sys.executable, "-m", "howsure"]


def make_preds(n: int = 600) -> hs.Predictions:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return hs.Predictions.from_logits(rng.normal(size=(n, 3)) + 3 * np.eye(3)[y], y)


# A full disk: a small tmpfs in a namespace of its own, filled to the last block.

CALLS = {
    "page": "evaluate p.npz --html new.html",
    "policy": "threshold p.npz --risk 0.1 -o old",
    "new policy": "threshold p.npz --risk 0.1 -o new",
    "states": "threshold p.npz --risk 0.1 -o old --drift new --guarantee new2",
    "online": "threshold p.npz --risk 0.1 --online old",
    "calibrator": "calibrate p.npz --on p2.npz -o old",
    "cascade": "cascade p.npz p2.npz --costs 1,2 --person 5 --error 20 -o old",
    "export": "export policy.json --to c --input confidence -o old",
    "junit": "check p.npz --require accuracy>=0.1 --junit old",
    "decisions": "decide policy.json p.npz -o new",
    "decisions with drift": "decide policy.json p.npz -o new --drift drift.json",
    "decisions of an online policy": "decide online.json p.npz -o new",
}
FULL = """
mount -t tmpfs -o size=256k tmpfs full && cp -r files/. full && cd full && echo old > old
dd if=/dev/zero of=fill bs=4k 2> ../dd
exec "$@"
"""
CAN_MOUNT = (
    shutil.which("unshare") is not None
    and subprocess.run(
        ["unshare", "-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"], capture_output=True
    ).returncode
    == 0
)


@pytest.mark.skipif(not CAN_MOUNT, reason="needs a namespace of its own")
@pytest.mark.parametrize("name", CALLS)
def test_a_full_disk(tmp_path: Path, name: str) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (tmp_path / "full").mkdir()
    preds, policy = make_preds(), Policy("max_prob", 0.8)
    hs.write(preds, files / "p.npz")
    hs.write(preds[::-1], files / "p2.npz")
    hs.save(policy, files / "policy.json")
    hs.save(DriftMonitor.start(policy.decide(preds)), files / "drift.json")
    online = OnlinePolicy.start(policy, np.linspace(0.5, 1, 11), risk=0.1, audit=1.0)
    hs.save(online, files / "online.json")
    # What is there afterwards is looked at inside, where the disk is.
    look = "import os, sys, subprocess; ran = subprocess.run(sys.argv[1:], capture_output=True); "
    look += "sys.stderr.buffer.write(ran.stderr); print(ran.returncode, sorted(os.listdir()), "
    look += (
        "open('old').read().strip(), [open(f, 'rb').read() == open('../files/' + f, 'rb').read() "
    )
    look += "for f in ('policy.json', 'drift.json', 'online.json')])"
    inner = [sys.executable, "-c", look, *HOWSURE, *CALLS[name].split(), "-q"]
    call = ["unshare", "-rm", "sh", "-c", FULL, "sh", *inner]
    ran = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    # Decisions may leave their empty file, which the next run takes.
    left = ran.stdout.replace("'new', ", "")
    kept = "['drift.json', 'fill', 'old', 'online.json', 'p.npz', 'p2.npz', 'policy.json']"
    assert left.strip() == f"2 {kept} old [True, True, True]", ran.stderr
    said = [line for line in ran.stderr.splitlines() if "answers: " not in line]
    assert len(said) == 1, ran.stderr
    assert "space left" in said[0].lower()
    assert "old" in said[0] or "new" in said[0] or "drift.json" in said[0] or "online" in said[0]


# A file that changes between two looks at it.

CHANGED = """
import os, sys
from howsure.cli import main

target, at, how, seen = os.path.realpath(sys.argv[1]), int(sys.argv[2]), sys.argv[3], 0


def change(event, args):
    global seen
    if event != "open" or not isinstance(args[0], str) or os.path.realpath(args[0]) != target:
        return
    seen += 1
    if seen != at:
        return
    if how == "gone":
        os.unlink(target)
    elif how == "half":
        os.truncate(target, os.stat(target).st_size // 2)
    else:
        end = os.open(target, os.O_WRONLY | os.O_APPEND)
        os.write(end, b"nonsense\\n" * 100)
        os.close(end)


sys.addaudithook(change)
main(sys.argv[4:])
"""


@pytest.mark.parametrize("how", ["gone", "half", "grown"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "npz"])
@pytest.mark.parametrize("command", ["evaluate", "evaluate --stream", "decide"])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, how: str, suffix: str, command: str
) -> None:
    hs.save(Policy("max_prob", 0.8), tmp_path / "policy.json")
    hs.write(make_preds(), tmp_path / f"good.{suffix}")
    for at in (1, 2):
        shutil.copy(tmp_path / f"good.{suffix}", tmp_path / f"p.{suffix}")
        args = [*command.split(), f"p.{suffix}", "-q"]
        if command == "decide":
            args = ["decide", "policy.json", f"p.{suffix}", "-q"]
        call = [sys.executable, "-c", CHANGED, f"p.{suffix}", str(at), how, *args]
        ran = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert ran.returncode in (0, 1, 2), ran.stderr
        assert "Traceback" not in ran.stderr
        if ran.returncode == 2:
            assert ran.stderr.splitlines()[-1].startswith("howsure: ")


# Processes.


def decide_rows(policy: Policy) -> list[bool]:
    logits = make_preds(60).values
    return [policy.decide_one(logits=row).accept for row in logits]


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_policy_in_other_processes(how: str) -> None:
    policy = Policy("max_prob", 0.8, Temperature(1.5))
    here = decide_rows(policy)  # it knows by heart now what it knows
    with multiprocessing.get_context(how).Pool(2) as pool:
        assert pool.map(decide_rows, [policy, policy]) == [here, here]
    assert pickle.loads(pickle.dumps(policy)) == policy


# States that are moved often.


def test_states_do_not_grow(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    policy = Policy("max_prob", 0.8)
    start = policy.decide(hs.Predictions.from_confidence(rng.beta(5, 1.2, 2000)))
    drift, kept = DriftMonitor.start(start), GuaranteeMonitor.start(risk=0.2)
    online = OnlinePolicy.start(policy, np.linspace(0.5, 1, 11), risk=0.2, audit=1.0)
    sizes: list[int] = []
    for step in range(200):
        confidence = rng.beta(5, 1.2, 1000)
        right = rng.random(1000) < confidence
        preds = hs.Predictions.from_confidence(confidence)
        decided = policy.decide(preds)
        drift, kept = drift.see(decided), kept.see(right[decided.accept])
        online, made = online.decide(preds)
        online = online.learn(made, right)
        if step in (9, 199):
            for i, state in enumerate((drift, kept, online)):
                hs.save(state, tmp_path / f"{i}.json")
            sizes.append(sum((tmp_path / f"{i}.json").stat().st_size for i in range(3)))
    # Twenty times as many updates are a few more digits.
    assert sizes[1] < sizes[0] + 200


def test_a_lock_on_a_full_disk_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from howsure.serving.journal import hold_lock

    def fail(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", fail)
    with (
        hold_lock(tmp_path / "state"),
        pytest.raises(hs.InputError, match="is being written by another process"),
        hold_lock(tmp_path / "state"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
