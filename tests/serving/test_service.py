"""howsure serve: real processes on loopback, killed, attacked and asked the same thing twice."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks.attack.bodies import BODIES, read_peak

import howsure as hs
from howsure._core.saving import identify_saved
from howsure.policies import DriftMonitor, Policy
from howsure.predictions import Predictions
from howsure.predictions.read_options import UNLABELLED_PARTS, ReadOptions
from howsure.serving import GuaranteeMonitor, Serving
from howsure.serving.alarm_guard import recall_decisions
from howsure.serving.journal import read_decisions
from howsure.serving.service import DecisionService

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
web = pytest.importorskip("howsure.serving.web")

# httpx gives up after 5 s, which a busy machine may need.
post, get = (partial(send, timeout=None) for send in (httpx.post, httpx.get))

# Runs the command and kills it at a named point of the commit with this number.
KILLED = """
import os, signal, sys
from howsure.cli import main
from howsure.serving import service

point, at = sys.argv[1], int(sys.argv[2])
write, sync, calls = service.write_all, os.fsync, 0


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def write_all(out, data):
    global calls
    calls += 1
    if calls == at and point == "before":
        die()
    if calls == at and point == "torn":
        write(out, data[: len(data) - 7])
        die()
    write(out, data)
    if calls == at and point == "written":
        die()


def fsync(fd):
    sync(fd)
    if calls == at and point == "synced":
        die()


service.write_all, os.fsync = write_all, fsync
main(sys.argv[3:])
"""


@contextmanager
def running(folder: Path, *options: str, point: str = "", at: int = 0) -> Iterator[tuple]:
    """The process and its address; it is ended at the end, if it still runs."""
    command = [sys.executable, "-c", KILLED, point, str(at), "serve", "policy.json"]
    command += ["--port", "0", "--commit-ms", "1", "--timeout", "300", *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            address = re.search(r"http://[\d.]+:\d+", line)
            assert address, line + process.stderr.read()
            yield process, address[0]
        finally:
            process.terminate()
            process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hs.save(Policy("max_prob", 0.8), tmp_path / "policy.json")
    return tmp_path


def save_monitors(folder: Path) -> DriftMonitor:
    """Monitors for the policy; the drift monitor as it begins."""
    stamp = identify_saved(folder / "policy.json")[1][:12]
    reference = Predictions.from_confidence(np.linspace(0.5, 1, 200))
    decide = hs.load(folder / "policy.json").decide
    hs.save(DriftMonitor.start(decide(reference)), folder / "drift.json")
    hs.save(GuaranteeMonitor.start(risk=0.1, policy=stamp), folder / "kept.json")
    return hs.load(folder / "drift.json")


def read_journal(folder: Path) -> list[str]:
    return (folder / "decisions.jsonl").read_text().splitlines()


def test_one_and_many(folder: Path) -> None:
    rows = [{"id": i, "probs": [p, 1 - p]} for i, p in enumerate((0.9, 0.75, 0.8))]
    with running(folder) as (process, url):
        one = post(f"{url}/decide", json=rows[0])
        many = post(f"{url}/decide", json=[*rows[1:], {"confidence": 0.1}])
        process.terminate()
        assert process.wait() == 0
    assert one.status_code == many.status_code == 200
    assert one.headers["content-type"] == "application/json"
    answers = [one.json(), *many.json()]
    assert answers == [json.loads(line) for line in read_journal(folder)]
    assert [row["decision"] for row in answers] == ["accept", "defer", "accept", "defer"]
    assert [row["line"] for row in answers] == [1, 2, 3, 4]
    # The lines are those of decide, but for their numbers.
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "in.jsonl").write_text(text)
    command = [sys.executable, "-m", "howsure.cli", "decide", "policy.json", "in.jsonl", "-q"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == read_journal(folder)[:3]


def test_an_id_that_comes_again_gets_its_first_answer(folder: Path) -> None:
    first = {"id": "a", "probs": [0.9, 0.1]}
    other = {"id": "a", "probs": [0.5, 0.5]}
    with running(folder) as (_, url):
        answer = post(f"{url}/decide", json=first).content
        assert post(f"{url}/decide", json=other).content == answer
        both = post(f"{url}/decide", json=[other, {**other, "id": "b"}]).json()
        assert both[0] == json.loads(answer)
        assert both[1]["decision"] == "defer"
    with running(folder) as (_, url):  # also after a restart
        assert post(f"{url}/decide", json=other).content == answer
        assert "howsure_repeated_total 1" in get(f"{url}/metrics").text
    assert len(read_journal(folder)) == 2


def test_what_comes_together_is_committed_together(folder: Path) -> None:
    policy = Policy("max_prob", 0.8)
    service = DecisionService(policy.decide, folder / "out.jsonl", Serving(), remember=2)
    row = b'{"id": "%d", "confidence": 0.9}'
    bodies = [row % 1, b"[" + row % 2 + b"," + row % 1 + b"]", b"{}", b"[1]", row % 3]
    answers = service.commit(bodies)
    assert [answer.status for answer in answers] == [200, 200, 400, 400, 200]
    assert json.loads(answers[1].body)[1] == json.loads(answers[0].body)
    lines = (folder / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["1", "2", "3"]
    assert service.commits.count == 1
    # Only the last two are remembered.
    assert json.loads(service.commit([row % 3])[0].body)["line"] == 3
    assert json.loads(service.commit([row % 1])[0].body)["line"] == 4


def make_service(path: Path, policy: Policy, **wanted) -> DecisionService:
    options = ReadOptions(beside=UNLABELLED_PARTS, **wanted)
    return DecisionService(policy.decide, path, Serving(stamp="p", wanted=options))


@pytest.mark.parametrize("score", ["max_prob", "log_max_prob", "margin", "entropy", "energy"])
@pytest.mark.parametrize("k", [2, 10, 100])
def test_an_answer_does_not_depend_on_what_came_with_it(tmp_path: Path, score: str, k: int) -> None:
    logits = np.random.default_rng(k).normal(size=(40, k)) * 3
    bodies = [json.dumps({"id": i, "logits": z.tolist()}).encode() for i, z in enumerate(logits)]
    together = make_service(tmp_path / "together", Policy(score, 0.1)).commit(bodies)
    alone = make_service(tmp_path / "alone", Policy(score, 0.1))
    assert [alone.commit([body])[0] for body in bodies] == together
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "together").read_bytes()


def test_requests_of_other_shapes_do_not_disturb_each_other(tmp_path: Path) -> None:
    bodies = [
        b'{"id": 1, "probs": [0.9, 0.1]}',
        b'{"id": 2, "probs": [0.6, 0.2, 0.2]}',
        b'{"id": 3, "probs": [0.9, 0.9]}',
        b'{"id": 4, "probs": {"cat": 0.5, "dog": 0.5}}',
        b'{"id": 5, "probs": {"dog": 0.5, "cat": 0.5}}',
        b'{"id": 6, "probs": [0.9, 0.1]}',
    ]
    service = make_service(tmp_path / "out", Policy("max_prob", 0.8))
    answers = service.commit(bodies)
    assert [answer.status for answer in answers] == [200, 200, 400, 200, 200, 200]
    rows = [json.loads(answer.body) for answer in answers if answer.status == 200]
    assert [row["id"] for row in rows] == [1, 2, 4, 5, 6]
    assert [row["prediction"] for row in rows] == [0, 0, "cat", "dog", 0]
    assert service.counts["refused"] == 1


def test_rows_of_another_split_are_refused(tmp_path: Path) -> None:
    service = make_service(tmp_path / "out", Policy("max_prob", 0.8), split="val")
    rows = [b'{"confidence": 1, "split": "%s"}' % name for name in (b"val", b"test")]
    answers = service.commit([rows[0], rows[1], b"[" + b",".join(rows) + b"]"])
    assert [answer.status for answer in answers] == [200, 400, 400]
    assert "'val'" in json.loads(answers[2].body)["error"]


def test_what_waits_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service(tmp_path / "out", Policy("max_prob", 0.8))
    body = b'{"confidence": 0.9}'
    monkeypatch.setattr(web, "MAX_HELD_BYTES", 2 * len(body))
    monkeypatch.setattr(web, "MAX_COMMIT_BYTES", 1)

    async def ask(times: int) -> list[int]:
        answers = await asyncio.gather(*(commits.decide(body) for _ in range(times)))
        return [answer.status for answer in answers]

    commits = web.GroupCommit(service, 0)
    assert asyncio.run(ask(3)) == [200, 200, 503]
    assert service.commits.count == 2  # each by itself
    assert asyncio.run(ask(1)) == [200]
    commits.worker.shutdown()


def test_a_request_with_one_bad_row_is_refused_whole(folder: Path) -> None:
    with running(folder) as (_, url):
        bad = [{"id": 1, "confidence": 0.9}, {"id": 2, "confidence": 1.9}]
        answer = post(f"{url}/decide", json=bad)
        assert answer.status_code == 400
        assert "line 2" in answer.json()["error"]
        assert post(f"{url}/decide", json=bad[0]).json()["line"] == 1
    assert len(read_journal(folder)) == 1


POINTS = [("before", 3), ("torn", 2), ("written", 4), ("synced", 1), ("torn", 5)] * 2


@pytest.mark.slow
def test_kill_9_ten_times(folder: Path) -> None:
    begun = save_monitors(folder)
    options = ("--drift", "drift.json", "--guarantee", "kept.json", "--labels", "came.jsonl")
    confidence = np.random.default_rng(0).uniform(0.5, 1, 2000).round(3).tolist()
    answered: dict[int, bytes] = {}
    client = httpx.Client(trust_env=False, timeout=None)

    def ask(url: str, i: int) -> None:
        try:
            answer = client.post(f"{url}/decide", json={"id": i, "confidence": confidence[i]})
        except httpx.HTTPError:  # killed before it could answer
            return
        assert answer.status_code == 200, answer.text
        assert answered.setdefault(i, answer.content) == answer.content

    def ask_open(url: str, stop: Callable[[], bool]) -> None:
        with ThreadPoolExecutor(4) as pool:
            for _ in range(10):
                # Some are asked again although they are answered.
                list(
                    pool.map(
                        lambda i: ask(url, i), [max(0, len(answered) + k - 4) for k in range(8)]
                    )
                )
                if stop():
                    return

    for point, at in POINTS:
        with running(folder, *options, point=point, at=at) as (process, url):
            while process.poll() is None:
                ask_open(url, lambda process=process: process.poll() is not None)
            assert process.wait() == -signal.SIGKILL
    with running(folder, *options) as (process, url):
        n = max(answered) + 10
        for i in range(n):
            ask(url, i)
        process.terminate()
        assert process.wait() == 0
    lines = (folder / "decisions.jsonl").read_bytes().splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted(row["id"] for row in rows) == list(range(n))  # each once
    assert [row["line"] for row in rows] == list(range(1, n + 1))
    assert {row["id"]: line for row, line in zip(rows, lines, strict=True)} == answered
    # The drift monitor has seen each line once, in order.
    records = list(read_decisions(folder / "decisions.jsonl"))
    expected = begun.see(recall_decisions(records))
    drift = hs.load(folder / "drift.json")
    assert drift.seen == expected.seen == n
    np.testing.assert_array_equal(drift.score.capital, expected.score.capital)


def test_labels_feed_the_guarantee(folder: Path) -> None:
    save_monitors(folder)
    options = ("--guarantee", "kept.json", "--labels", "came.jsonl", "--alarms", "alarms.jsonl")
    with running(folder, *options) as (process, url):
        ids = list(range(60))
        rows = [{"id": i, "confidence": 0.9} for i in ids]
        lines = post(f"{url}/decide", json=rows).json()
        answer = post(f"{url}/labels", json={"id": 0, "correct": 1})
        assert answer.json() == {"counted": 1, "labels": 1, "wrong": 0, "alarms": {}}
        again = [{"id": 0, "correct": 1}, {**lines[1], "correct": 0}]
        assert post(f"{url}/labels", json=again).json()["counted"] == 1
        for wrong in ({"id": 99, "correct": 1}, {"id": 1}, {"id": 1, "correct": 2}, [3], {}):
            answer = post(f"{url}/labels", json=wrong)
            assert answer.status_code == 400, wrong
        forged = {**lines[1], "policy": "another", "id": 99, "correct": 0}
        assert post(f"{url}/labels", json=forged).status_code == 400
        wrongs = [{"id": i, "correct": 0} for i in ids[2:]]
        assert "guarantee" in post(f"{url}/labels", json=wrongs).json()["alarms"]
        metrics = parse_metrics(get(f"{url}/metrics").text)
        assert metrics["howsure_guarantee_broken"] == 1
        assert metrics["howsure_guarantee_labels"] == 60
        process.terminate()
        assert process.wait() == 3
    assert hs.load(folder / "kept.json").labels == 60
    assert json.loads((folder / "alarms.jsonl").read_text())["alarm"] == "guarantee"
    with running(folder) as (_, url):
        answer = post(f"{url}/labels", json={"id": 0, "correct": 1})
        assert answer.status_code == 404
        assert "--guarantee" in answer.json()["error"]


def parse_metrics(text: str) -> dict[str, float]:
    """Prometheus text, line by line; every sample belongs to a family that was announced."""
    values: dict[str, float] = {}
    families: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in families
            families[name] = kind
        elif not line.startswith("# HELP "):
            found = re.fullmatch(r'([a-z_]+)((?:\{[a-z]+="[^"]*"\})?) (\S+)', line)
            assert found, line
            family = re.sub("_(bucket|sum|count)$", "", found[1])
            assert found[1] in families or families[family] == "histogram"
            assert found[1] + found[2] not in values
            values[found[1] + found[2]] = float(found[3])
    return values


def test_metrics_and_health(folder: Path) -> None:
    save_monitors(folder)
    with running(folder, "--drift", "drift.json") as (_, url):
        before = parse_metrics(get(f"{url}/metrics").text)
        assert np.isnan(before["howsure_deferred_share"])
        rows = [{"confidence": c} for c in (0.9, 0.9, 0.9, 0.2)]
        post(f"{url}/decide", json=rows)
        post(f"{url}/decide", content=b"nonsense")
        metrics = parse_metrics(get(f"{url}/metrics").text)
        assert get(f"{url}/healthz").json() == {"status": "ok"}
    assert metrics['howsure_decisions_total{decision="accept"}'] == 3
    assert metrics['howsure_decisions_total{decision="defer"}'] == 1
    assert metrics["howsure_deferred_share"] == 0.25
    assert metrics["howsure_refused_total"] == 1
    assert metrics["howsure_drift_seen"] == 4
    assert metrics["howsure_drift_alarm_score"] == 0
    for name, count in (("request", 2), ("commit", 1)):
        assert metrics[f"howsure_{name}_seconds_count"] == count
        assert metrics[f'howsure_{name}_seconds_bucket{{le="+Inf"}}'] == count
        assert metrics[f"howsure_{name}_seconds_sum"] > 0


def test_token(folder: Path) -> None:
    (folder / "token").write_text("geheim\n")
    row = {"confidence": 0.9}
    with running(folder, "--token-file", "token") as (_, url):
        for headers in ({}, {"Authorization": "Bearer gehei"}, {"Authorization": "geheim"}):
            for path, answer in (
                ("decide", post(f"{url}/decide", json=row, headers=headers)),
                ("metrics", get(f"{url}/metrics", headers=headers)),
            ):
                assert answer.status_code == 401, path
        headers = {"Authorization": "Bearer geheim"}
        assert post(f"{url}/decide", json=row, headers=headers).status_code == 200
        assert get(f"{url}/healthz").status_code == 200
    assert len(read_journal(folder)) == 1


def test_a_page_in_a_browser_is_not_answered(folder: Path) -> None:
    with running(folder) as (_, url):
        headers = {"Origin": "http://example.org", "Content-Type": "text/plain"}
        answer = post(f"{url}/decide", content=b'{"confidence": 1}', headers=headers)
        assert answer.status_code == 403
        for path, status in (("/", 404), ("/decide", 405), ("/../etc/passwd", 404)):
            assert get(f"{url}{path}").status_code == status


def test_hostile_bodies(folder: Path) -> None:
    with running(folder, "--timeout", "60") as (process, url):
        post(f"{url}/decide", json={"confidence": 0.9})
        peaks: list[int] = []
        for _ in range(3):
            for name, body in BODIES.items():
                answer = post(f"{url}/decide", content=body)
                assert answer.status_code == 400, (name, answer.text)
                sentence = answer.json()["error"]
                assert 10 < len(sentence) < 500, name
                assert "Traceback" not in sentence
            peaks.append(read_peak(process.pid))
        big = b"[" + b" " * (1 << 26)
        assert post(f"{url}/decide", content=big).status_code == 413
        pieces = (b" " * (1 << 16) for _ in range(1000))  # sent in chunks, no length declared
        with suppress(httpx.WriteError):  # it may hang up before everything is sent
            assert post(f"{url}/decide", content=pieces).status_code == 413
        # One mebibyte of JSON may become a hundred of lists; that is given back.
        assert peaks[0] < 300
        assert read_peak(process.pid) - peaks[0] < 50
        assert post(f"{url}/decide", json={"confidence": 0.9}).json()["line"] == 2
        process.terminate()
        assert process.wait() == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_slow_and_broken_senders(folder: Path) -> None:
    begun = b"POST /decide HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
    with running(folder, "--timeout", "1") as (process, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(begun)
            assert slow.recv(4096).startswith(b"HTTP/1.1 408")
        with socket.create_connection((host, int(port))) as gone:
            gone.sendall(begun)
        with socket.create_connection((host, int(port))) as noise:
            noise.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
            assert noise.recv(4096).startswith(b"HTTP/1.1 400")
        assert get(f"{url}/healthz").status_code == 200
        process.terminate()
        assert process.wait() == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_what_was_taken_in_is_answered_before_it_stops(folder: Path) -> None:
    body = b'{"confidence": 0.9}'
    head = f"POST /decide HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    with running(folder) as (process, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
            assert client.recv(4096).startswith(b"HTTP/1.1 100")
            # The request is being read when the end is asked for.
            process.terminate()
            client.sendall(body)
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
        assert process.wait() == 0
    assert len(read_journal(folder)) == 1


def test_a_full_disk_is_said_and_nothing_half_written(folder: Path) -> None:
    service = DecisionService(Policy("max_prob", 0.8).decide, folder / "out.jsonl", Serving())
    service.path = Path("/dev/full")
    answer = service.commit([b'{"confidence": 0.9}', b"[]"])
    assert [a.status for a in answer] == [503, 400]
    assert "could not be written" in json.loads(answer[0].body)["error"]
    # What cannot be cut back is not written to again.
    assert service.torn
    assert service.commit([b'{"confidence": 0.9}'])[0].status == 503


def test_wrong_calls(folder: Path) -> None:
    def fail(*options: str) -> str:
        command = [sys.executable, "-m", "howsure.cli", "serve", "policy.json", "--port", "0"]
        ran = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True)
        assert ran.returncode == 2, ran.stderr
        assert ran.stderr.count("\n") == 1
        return ran.stderr

    save_monitors(folder)
    (folder / "empty").write_text("\n")
    assert "--labels" in fail("--guarantee", "kept.json")
    assert "is empty" in fail("--token-file", "empty")
    assert "cannot listen on" in fail("--host", "192.0.2.1")
    assert "one file" in fail("-o", "policy.json")
    (folder / "other.jsonl").write_text('{"line":1,"decision":"accept","score":1,"policy":"x"}\n')
    assert "another policy" in fail("-o", "other.jsonl")
    (folder / "other.jsonl").write_text("nonsense\n")
    assert "is not a decision of howsure" in fail("-o", "other.jsonl")
    with running(folder):
        assert "is being written by process" in fail()
