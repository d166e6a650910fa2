"""Alarms drive jobs: exit code 3, one JSON line each, remembered until a reset with a reason."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs


def howsure(*args: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "howsure", *map(str, args)],
        input=stdin,
        capture_output=True,
        text=True,
    )


def rows(score: np.ndarray, **columns: list[object]) -> str:
    names = list(columns)
    lines = [
        {"id": f"c{i}", "confidence": float(s), **{n: columns[n][i] for n in names}}
        for i, s in enumerate(score)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A policy, a watch and a promise."""
    rng = np.random.default_rng(0)
    s = rng.beta(5, 1.2, 2000)
    hs.write(hs.Predictions.from_confidence(s, rng.random(2000) < s**0.3), tmp_path / "val.csv")
    run = howsure("threshold", tmp_path / "val.csv", "--risk", "0.1", "-o", tmp_path / "policy.json",
                  "--drift", tmp_path / "watch.json", "--guarantee", tmp_path / "promise.json")  # fmt: skip
    assert run.returncode == 0, run.stderr
    return tmp_path


def test_a_drift_is_an_alarm_until_it_is_reset(made):
    alarms, call = (
        made / "alarms.jsonl",
        ("decide", made / "policy.json", "-", "--drift", made / "watch.json"),
    )
    bad = rows(np.random.default_rng(1).random(1000) * 0.5)
    quiet = howsure(*call, "--alarms", alarms, "--quiet", stdin=bad)
    assert quiet.returncode == 3
    assert "ALARM: the score has drifted (at sample" in quiet.stderr
    assert len(quiet.stdout.splitlines()) == 1000
    told = [json.loads(line) for line in alarms.read_text().splitlines()]
    assert {(t["alarm"], t["unit"], t["again"]) for t in told} == {
        ("score", "sample", False),
        ("coverage", "sample", False),
    }
    good = rows(np.random.default_rng(2).beta(5, 1.2, 20))
    later = howsure(*call, "--alarms", alarms, stdin=good)
    assert later.returncode == 3
    assert "ALARM: the score has drifted (since sample" in later.stderr
    assert json.loads(alarms.read_text().splitlines()[-1])["again"]
    status = howsure("alarms", "status", made / "watch.json")
    assert (status.returncode, "ALARM" in status.stdout) == (3, True)
    assert howsure("alarms", "reset", made / "watch.json").returncode == 2  # a reason is asked for
    assert howsure("alarms", "reset", made / "watch.json", "--reason", " ").returncode == 2
    assert (
        howsure("alarms", "reset", made / "watch.json", "--reason", "new scanner").returncode == 0
    )
    fresh = howsure("alarms", "status", made / "watch.json", "--json")
    assert (fresh.returncode, json.loads(fresh.stdout)["resets"]) == (0, ["new scanner"])
    assert howsure(*call, stdin=good).returncode == 0


def test_alarms_have_a_file_of_their_own(made):
    """A line among the decisions, or in a state, would spoil them."""
    (made / "link.json").symlink_to(made / "watch.json")
    bad, before = (
        rows(np.random.default_rng(1).random(1000) * 0.5),
        (made / "watch.json").read_bytes(),
    )
    for name in ("watch.json", "link.json", "out.jsonl", "policy.json"):
        call = (
            "decide",
            made / "policy.json",
            "-",
            "--drift",
            made / "watch.json",
            "-o",
            made / "out.jsonl",
        )
        run = howsure(*call, "--alarms", made / name, stdin=bad)
        assert (run.returncode, "needs a file of its own" in run.stderr) == (2, True)
    assert (made / "watch.json").read_bytes() == before
    assert not (made / "out.jsonl").exists()


def test_stop_on_alarm_decides_nothing_more(made):
    call = ("decide", made / "policy.json", "-", "--drift", made / "watch.json", "--stop-on-alarm")
    first = howsure(*call, stdin=rows(np.full(2000, 0.1)))
    assert first.returncode == 3
    again = howsure(*call, stdin=rows(np.full(2000, 0.1)))
    assert (again.returncode, again.stdout) == (3, "")
    assert "(alarm)" in again.stderr


def test_stop_on_alarm_stops_within_a_file(made):
    score = np.concatenate([np.random.default_rng(3).beta(5, 1.2, 450), np.full(1550, 0.1)])
    (made / "new.jsonl").write_text(rows(score))
    call = (
        "decide",
        made / "policy.json",
        made / "new.jsonl",
        "-o",
        made / "out.jsonl",
        "--drift",
        made / "watch.json",
    )
    assert howsure(*call, "--stop-on-alarm").returncode == 3
    decided = len((made / "out.jsonl").read_text().splitlines())
    assert decided in (500, 600)
    assert howsure("alarms", "reset", made / "watch.json", "--reason", "seen to").returncode == 0
    status = howsure("alarms", "status", made / "watch.json")
    assert "reset once: seen to" in " ".join(status.stdout.split())
    assert howsure(*call, "--resume").returncode == 3
    assert len((made / "out.jsonl").read_text().splitlines()) == 2000


def test_a_broken_promise_is_an_alarm(made):
    call = (
        "decide",
        made / "policy.json",
        "-",
        "--guarantee",
        made / "promise.json",
        "--labels",
        made / "came.jsonl",
    )
    first = howsure(*call, stdin=rows(np.full(300, 0.99)))
    assert first.returncode == 0, first.stderr
    wrong = [json.dumps({**json.loads(line), "correct": 0}) for line in first.stdout.splitlines()]
    (made / "came.jsonl").write_text("\n".join(wrong) + "\n")
    later = howsure(*call, "--alarms", made / "alarms.jsonl", stdin=rows(np.full(3, 0.99)))
    assert later.returncode == 3
    assert "the guaranteed risk is exceeded (at label" in later.stderr
    assert json.loads((made / "alarms.jsonl").read_text())["alarm"] == "guarantee"
    assert howsure("alarms", "status", made / "promise.json", made / "watch.json").returncode == 3


def test_a_kept_promise_is_shown(made):
    call = (
        "decide",
        made / "policy.json",
        "-",
        "--guarantee",
        made / "promise.json",
        "--labels",
        made / "came.jsonl",
    )
    first = howsure(*call, stdin=rows(np.full(300, 0.99)))
    right = [json.dumps({**json.loads(line), "correct": 1}) for line in first.stdout.splitlines()]
    (made / "came.jsonl").write_text("\n".join(right) + "\n")
    assert howsure(*call, stdin=rows(np.full(1, 0.99))).returncode == 0
    assert "shown to be kept at label" in howsure("alarms", "status", made / "promise.json").stdout


def test_a_burst_counts_once(made):
    score = np.full(3000, 0.3)
    one = rows(score, scan=["s1"] * 3000)
    call = ("decide", made / "policy.json", "-", "--drift", made / "watch.json")
    assert howsure(*call, "--burst", "scan", stdin=one).returncode == 0
    assert (
        json.loads(howsure("alarms", "status", made / "watch.json", "--json").stdout)["seen"] == 1
    )
    assert howsure(*call, stdin=one).returncode == 3


def test_a_watch_or_a_promise_of_another_policy_is_refused(made):
    assert (
        howsure(
            "threshold", made / "val.csv", "--risk", "0.15", "-o", made / "other.json"
        ).returncode
        == 0
    )
    for options in (
        ("--drift", "watch.json"),
        ("--guarantee", "promise.json", "--labels", "came.jsonl"),
    ):
        given = [made / o if "." in o else o for o in options]
        run = howsure("decide", made / "other.json", "-", *given, stdin=rows(np.full(3, 0.9)))
        assert (run.returncode, run.stdout) == (2, "")
        assert "was made for another policy" in run.stderr
        assert (
            howsure(
                "decide", made / "policy.json", "-", *given, stdin=rows(np.full(3, 0.9))
            ).returncode
            == 0
        )


BAD = {
    "burst without watch": (("--burst", "scan"), "give --drift too"),
    "promise without labels": (("--guarantee", "promise.json"), "give --labels"),
    "a watch as promise": (
        ("--guarantee", "watch.json", "--labels", "x"),
        "is not a guarantee monitor",
    ),
    "a policy as watch": (("--drift", "copy.json"), "not a drift or a guarantee monitor"),
}


@pytest.mark.parametrize(("options", "words"), BAD.values(), ids=BAD.keys())
def test_bad_calls(made, options, words):
    (made / "copy.json").write_bytes((made / "policy.json").read_bytes())
    given = [made / o if str(o).endswith(".json") else o for o in options]
    run = howsure("decide", made / "policy.json", "-", *given, stdin=rows(np.full(3, 0.9)))
    assert run.returncode == 2
    assert words in run.stderr
    assert run.stdout == ""
