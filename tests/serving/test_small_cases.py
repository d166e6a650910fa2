"""Small cases worked out in full: what is written, counted, kept and refused, to the letter."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO, FileIO
from math import exp, log, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure.formats import label_files
from howsure.formats.json_lines import BadLine
from howsure.formats.streams import StreamBatch
from howsure.policies import DriftMonitor, OnlinePolicy, Policy
from howsure.policies.policy import Decisions
from howsure.predictions.read_options import ReadOptions
from howsure.serving import alarm_guard, feedback, journal, stream
from howsure.serving.alarm_guard import AlarmGuard, AlarmInputs
from howsure.serving.feedback import (
    GuaranteeMonitor,
    LabelError,
    LabelFeed,
    LabelledDecision,
    Learner,
    judge_labels,
    learn_labels,
)
from howsure.serving.journal import (
    ClosedPipe,
    StopRequested,
    StopSignal,
    catch_signals,
    decision_lines,
    read_blocks,
    write_all,
)
from howsure.serving.stream import (
    Served,
    Serving,
    add_signal,
    decide_batches,
    decide_file,
    decide_path,
    decide_stream,
)

POLICY = Policy("max_prob", 0.8)
START = OnlinePolicy.start(POLICY, np.linspace(0, 1, 101), risk=0.1, audit=1.0)


def batch(n: int, first: int = 1, ids: list[str] | None = None) -> StreamBatch:
    """Lines whose confidence is .9, .7, .9, …"""
    return StreamBatch(
        Predictions.from_confidence(np.resize([0.9, 0.7], n)), range(first, first + n), ids
    )


def numbers(out: BytesIO) -> list[int]:
    return [json.loads(line)["line"] for line in out.getvalue().splitlines()]


# ---- streams


@pytest.mark.parametrize(("halts", "seen"), [(False, [250]), (True, [100, 100, 50])])
def test_a_run_that_may_halt_looks_every_hundred_lines(halts: bool, seen: list[int]) -> None:
    found: list[int] = []
    out = BytesIO()
    how = Serving(
        see=lambda made, _: found.append(len(made)), halt=(lambda: False) if halts else None
    )
    total = decide_batches(POLICY.decide, [batch(250)], out, how)
    assert (found, total) == (seen, Served(250, 125))
    assert numbers(out) == list(range(1, 251))


def test_an_alarm_ends_the_run_after_what_was_decided() -> None:
    out, looks = BytesIO(), iter([False, False, True])
    how = Serving(on_bad="skip", halt=lambda: next(looks))
    bad = BadLine(1, InputError("line 1 is bad"))
    total = decide_batches(POLICY.decide, [bad, batch(300, 2)], out, how)
    assert total == Served(100, 50, bad=1, ended="alarm")
    assert numbers(out) == list(range(2, 102))


@pytest.mark.parametrize("ids", [None, ["a", "b", "c"]])
def test_lines_that_were_decided_before_are_counted_as_skipped(ids: list[str] | None) -> None:
    out = BytesIO()
    given = [batch(3, 1, ids), batch(3, 4, ids), batch(3, 7, ids)]
    total = decide_batches(
        POLICY.decide, given, out, Serving(), lambda line, name: line in (1, 2, 5) or name == "c"
    )
    left = [3, 4, 6, 7, 8, 9] if ids is None else [4, 7, 8]
    assert numbers(out) == left
    assert (total.decided, total.skipped) == (len(left), 9 - len(left))


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("refused", [(0,), (1, 2), (4,), (0, 3, 7), range(8)])
def test_what_a_policy_refuses_is_told_line_by_line(n: int, refused: tuple[int, ...]) -> None:
    low = [i for i in refused if i < n]

    def decide(preds: Predictions) -> Decisions:
        if not preds.n or (preds.confidence < 0.1).any():
            raise InputError("confidence", got="is too low")
        return POLICY.decide(preds)

    confidence = np.full(n, 0.9)
    confidence[low] = 0.05
    given, out, told = (
        StreamBatch(Predictions.from_confidence(confidence), range(11, 11 + n), None),
        BytesIO(),
        list[str](),
    )
    total = decide_batches(decide, [given], out, Serving("skip", told.append))
    assert numbers(out) == [11 + i for i in range(n) if i not in low]
    assert [int(text.partition("line ")[2].partition(":")[0].split()[0]) for text in told] == [
        11 + i for i in low
    ]
    assert total == Served(n - len(low), n - len(low), bad=len(low))


class Closing:
    """A reader that takes so many bytes, a few at a time, and goes away."""

    def __init__(self, most: int):
        self.most, self.taken = most, b""

    def write(self, data: Any) -> int:
        if len(self.taken) >= self.most:
            raise BrokenPipeError
        part = bytes(data)[: min(7, self.most - len(self.taken))]
        self.taken += part
        return len(part)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("each", [1, 2])
def test_a_reader_that_goes_away_was_handed_whole_lines(each: int) -> None:
    p = np.array([[0.99, 0.98], [0.6, 0.99], [0.97, 0.96]])
    labels = Predictions.from_multilabel(p, label_names=["cat", "dog"])
    preds = labels if each == 2 else Predictions.from_confidence(p[:, 0])
    made = POLICY.decide(preds)
    whole = BytesIO()
    decide_batches(POLICY.decide, [StreamBatch(preds, range(1, 4), None)], whole, Serving())
    ends = [i + 1 for i, byte in enumerate(whole.getvalue()) if byte == 10]
    for most, handed in (
        (ends[0] - 1, 0),
        (ends[0], 1),
        (ends[1] - 1, 1),
        (ends[1] + 3, 2),
        (ends[2] - 1, 2),
    ):
        out = Closing(most)
        total = decide_batches(
            POLICY.decide,
            [batch(2), StreamBatch(preds, range(1, 4), None)],
            Skipping(out, 2),
            Serving(),
        )
        n = handed * each
        assert total == Served(2 + n, 1 + int(made.accept[:n].sum()), ended="closed pipe")
        assert out.taken == whole.getvalue()[:most]


class Skipping:
    """The lines after the first few go to another sink."""

    def __init__(self, then: Closing, lines: int):
        self.then, self.lines = then, lines

    def write(self, data: Any) -> int:
        if not self.lines:
            return self.then.write(data)
        self.lines -= bytes(data).count(b"\n")
        return len(data)

    def flush(self) -> None:
        pass


def test_the_signal_that_ended_a_run() -> None:
    for number, name in (
        (None, "end of input"),
        (signal.SIGTERM, "SIGTERM"),
        (signal.SIGINT, "interrupt"),
    ):
        stop = StopSignal()
        if number is not None:
            stop.ask(number)
        assert add_signal(Served(3, 2), stop) == Served(3, 2, ended=name)  # type: ignore[arg-type]
        stop.close()


@pytest.mark.parametrize(
    ("prediction", "names", "said"),
    [
        ([0, 1, 2, -1], ("cat", "dog", "owl"), ["cat", "dog", "owl", None]),
        ([0, 1, 2, -1], None, [0, 1, 2, None]),
        (["0", "-1", "x", ""], None, ["0", "-1", "x", ""]),
        (["a", "b", "c", "-1"], ("cat", "dog", "owl"), ["a", "b", "c", "-1"]),
    ],
)
def test_what_was_said(
    prediction: list[object], names: tuple[str, ...] | None, said: list[object]
) -> None:
    ones = np.ones(4)
    made = Decisions(ones > 0, np.array(prediction), ones, ones, class_names=names)
    assert [
        json.loads(x)["prediction"] for x in decision_lines(made, range(4), None).splitlines()
    ] == said


def test_audits_and_tickets_are_written_where_there_are_any() -> None:
    one = np.ones(2)
    made = Decisions(one > 0, np.array([1, 0]), one, one, audit=np.array([True, False]))
    assert decision_lines(made, [1, 2], None).decode().splitlines() == [
        '{"line":1,"decision":"accept","prediction":1,"confidence":1.0,"score":1.0,"audit":true}',
        '{"line":2,"decision":"accept","prediction":0,"confidence":1.0,"score":1.0,"audit":false}',
    ]
    named = (
        decision_lines(replace(made, ticket=("0-a", "1-b")), [1, 2], ["x", 7], "p")
        .decode()
        .splitlines()
    )
    assert named[0].startswith('{"line":1,"id":"x",')
    assert named[0].endswith(',"audit":true,"ticket":"0-a","policy":"p"}')
    assert named[1].startswith('{"line":2,"id":7,')
    assert decision_lines(replace(made, audit=None), [1, 2], None) == re.sub(
        rb',"audit":\w+', b"", decision_lines(made, [1, 2], None)
    )


# ---- pipes


class Hesitant(BytesIO):
    """Takes nothing the first time, then a byte at a time."""

    calls = 0

    def write(self, data: Any) -> int | None:  # type: ignore[override]
        self.calls += 1
        return None if self.calls == 1 else super().write(bytes(data)[:1])


def test_everything_is_written_however_little_is_taken() -> None:
    out = Hesitant()
    write_all(out, b"abc")
    assert (out.getvalue(), out.calls) == (b"abc", 4)


def test_a_closed_pipe_says_how_much_was_delivered() -> None:
    with pytest.raises(ClosedPipe) as caught:
        write_all(Closing(10), b"x" * 25)
    assert caught.value.delivered == 10


def test_asking_never_waits() -> None:
    """More often than a pipe holds bytes."""
    stop = StopSignal()
    stop.check()
    for _ in range(70_000):
        stop.ask(signal.SIGINT)
    with pytest.raises(StopRequested):
        stop.check()
    assert os.read(stop.fd, 1) == b"x"
    stop.close()


def test_signals_are_taken_inside_the_block_only() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with catch_signals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        while stop.signal is None:
            pass
        assert stop.signal == signal.SIGTERM
        stop.check()
        pytest.fail("the block ends where the end was asked for")
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_stream_is_decided_in_another_thread_too() -> None:
    """Where no signal can be taken."""
    out, found = BytesIO(), list[Served]()
    work = lambda: found.append(
        decide_stream(POLICY.decide, BytesIO(b'{"confidence": 0.9}\n'), out)
    )
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [Served(1, 1)]


def test_blocks_come_as_they_are_there() -> None:
    read, write = os.pipe()
    stop = StopSignal()
    with os.fdopen(read, "rb") as source:
        found = read_blocks(source, stop)
        os.write(write, b"one")
        assert next(found) == b"one"
        os.write(write, b"two")
        assert next(found) == b"two"
        stop.ask(signal.SIGTERM)
        with pytest.raises(StopRequested):
            next(found)
    os.close(write)
    stop.close()


# ---- outputs


def test_the_lock_names_its_holder_and_only_it(tmp_path: Path) -> None:
    lock = tmp_path / ".out.jsonl.lock"
    lock.write_text("process 1 on a host with a very long name " * 9)
    before = os.umask(0)
    with journal.hold_lock(tmp_path / "out.jsonl"):
        assert re.fullmatch(rf"process {os.getpid()} on \S+", lock.read_text())
    with journal.hold_lock(tmp_path / "out.jsonl"):
        assert lock.stat().st_mode & 0o777 == 0o644
        lock.write_text("x" * 300)
        with (
            pytest.raises(InputError, match=r"is being written by x{200};"),
            journal.hold_lock(tmp_path / "out.jsonl"),
        ):
            pass
    os.umask(before)
    assert not lock.exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "no space left on device"),
        (OSError("It Is Gone"), "it is gone"),
    ],
)
def test_a_write_that_fails_says_why(tmp_path: Path, error: OSError, said: str) -> None:
    class Failing(BytesIO):
        def write(self, data: Any) -> int:
            raise error

    path = tmp_path / "out"
    path.write_bytes(b"whole\ntor")
    with pytest.raises(
        InputError, match=rf"cannot be written: {said}\. What was decided so far is kept"
    ):
        journal.AppendOnlyFile(Failing(), path).write(b"more")
    assert path.read_bytes() == b"whole\n"


def test_nothing_is_held_back(tmp_path: Path) -> None:
    with journal.open_to_append(tmp_path / "out") as out:
        assert isinstance(out.raw, FileIO)
        assert out.write(memoryview(b"one\n")) == 4
        assert (tmp_path / "out").read_bytes() == b"one\n"


def test_a_lock_that_somebody_removed_is_no_fault(tmp_path: Path) -> None:
    with journal.hold_lock(tmp_path / "out.jsonl"):
        (tmp_path / ".out.jsonl.lock").unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_that_went_away_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    lock, flock, calls = tmp_path / ".out.jsonl.lock", fcntl.flock, list[int]()

    def late(fd: int, how: int) -> None:
        flock(fd, how)
        calls.append(fd)
        if len(calls) == 1:
            lock.rename(tmp_path / "gone")
            if replaced:
                lock.touch()

    monkeypatch.setattr(fcntl, "flock", late)
    with journal.hold_lock(tmp_path / "out.jsonl"):
        assert lock.read_text().startswith("process ")
    assert len(calls) == 2
    assert not lock.exists()


def test_a_torn_line_is_cut_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "READ_BLOCK_BYTES", 4)
    path = tmp_path / "out"
    for text in (
        "",
        "\n",
        "a",
        "\nabc",
        "ab\n",
        "a\nbcdefgh",
        "abcdefghijk",
        "a\n\n",
        "abcd\n",
        "abc\nd",
        "\nabcdefgh",
    ):
        path.write_text(text)
        journal.cut_torn_line(path)
        assert path.read_text() == text[: text.rfind("\n") + 1]


# ---- going on


def test_rows_without_ids_go_on_by_position(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines = ['{"confidence": 0.9}', "", "oops", '{"confidence": 0.2}', '{"confidence": 0.95}']
    source.write_text("\n".join(lines) + "\n")
    how = Serving("skip")
    decide_file(POLICY.decide, source, out, how=how)
    whole = out.read_bytes()
    for kept in range(4):
        out.write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]))
        total = decide_file(POLICY.decide, source, out, resume=True, how=how)
        assert out.read_bytes() == whole
        assert (total.decided, total.skipped) == (3 - kept, kept)
    twice = whole.splitlines(keepends=True)[0] * 2
    out.write_bytes(twice)
    with pytest.raises(InputError, match="rows without ids cannot be told apart"):
        decide_file(POLICY.decide, source, out, resume=True, how=how)
    assert out.read_bytes() == twice


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [("a", "b", "(a, now b)"), ("", "b", "(none named, now b)"), ("a", "", "(a, now none)")],
)
def test_both_policies_are_named(tmp_path: Path, first: str, then: str, said: str) -> None:
    (tmp_path / "in.jsonl").write_text('{"confidence": 0.9}\n')
    decide_file(
        POLICY.decide, tmp_path / "in.jsonl", tmp_path / "out.jsonl", how=Serving(stamp=first)
    )
    with pytest.raises(InputError, match=re.escape(f"was decided by another policy {said}")):
        decide_file(
            POLICY.decide,
            tmp_path / "in.jsonl",
            tmp_path / "out.jsonl",
            resume=True,
            how=Serving(stamp=then),
        )


def test_only_ids_that_are_new_are_decided(tmp_path: Path) -> None:
    line = '{{"id": "{}", "confidence": 0.95}}\n'.format
    (tmp_path / "in.jsonl").write_text(line("a") + line("b"))
    decide_file(POLICY.decide, tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    (tmp_path / "in.jsonl").write_text(line("c") + line("b") + line("d") + line("a") + line("e"))
    total = decide_file(POLICY.decide, tmp_path / "in.jsonl", tmp_path / "out.jsonl", resume=True)
    assert total == Served(3, 3, skipped=2)
    rows = [json.loads(text) for text in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["line"], row["id"]) for row in rows] == [
        (1, "a"),
        (2, "b"),
        (1, "c"),
        (3, "d"),
        (5, "e"),
    ]


def test_decisions_of_an_earlier_output_as_a_watch_sees_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    lines = [
        '{"line":1,"decision":"accept","score":0.9,"burst":"a"}\n',
        '{"line":2,"decision":"defer","score":null,"burst":"b"}\n',
        '{"line":5,"decision":"accept","score":null}\n',
    ]
    path.write_text("".join(lines) + '{"line":6,"decis')
    assert journal.count_lines(path) == 3
    monkeypatch.setattr(journal, "READ_BLOCK_BYTES", 7)
    assert journal.count_lines(path) == 3
    assert journal.count_lines(tmp_path / "none") == journal.count_lines(None) == 0
    path.write_text("".join(lines))
    rows = list(journal.read_decisions(path))
    made = alarm_guard.recall_decisions(rows)
    assert made.accept.tolist() == [True, False, True]
    assert made.score.tolist() == made.confidence.tolist() == [0.9, -np.inf, np.inf]
    assert made.prediction.tolist() == [-1, -1, -1]  # it is not looked at
    assert alarm_guard.recall_bursts(rows[:2]) == ["a", "b"]
    with pytest.raises(InputError, match="does not say which burst its rows belong to"):
        alarm_guard.recall_bursts(rows)


def test_a_line_that_is_no_decision_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"confidence": 0.9}\n' * 3)
    out = tmp_path / "out.jsonl"
    decide_file(POLICY.decide, tmp_path / "in.jsonl", out)
    out.write_text(out.read_text() + "notes\n")
    with pytest.raises(InputError, match=r"out\.jsonl, line 4 is not a decision of howsure"):
        decide_file(POLICY.decide, tmp_path / "in.jsonl", out, resume=True)


def tagged(n: int, ids: list[str] | None) -> Predictions:
    rng = np.random.default_rng(0)
    return Predictions.from_multilabel(rng.random((n, 3)), label_names=["a", "b", "c"], ids=ids)


@pytest.mark.parametrize("named", [False, True])
def test_cases_of_many_labels_keep_their_numbers_over_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setattr(stream, "FILE_BATCH_ROWS", 2)
    ids = [f"case{i}" for i in range(7)] if named else None
    preds = tagged(7, ids)
    hs.write(preds, tmp_path / "in.npz")
    out, wanted = BytesIO(), ReadOptions(multilabel=True)
    total = decide_path(POLICY.decide, tmp_path / "in.npz", out, Serving(wanted=wanted))
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row["line"] for row in rows] == list(range(1, 8))
    assert [row["id"] for row in rows] == (ids or [str(i) for i in range(7)])
    said = [row["labels"][name]["confidence"] for row in rows for name in "abc"]
    assert said == pytest.approx(POLICY.decide(preds).confidence.tolist())
    assert (total.decided, total.accepted) == (21, int(POLICY.decide(preds).accept.sum()))


def test_rows_of_arrays_keep_their_numbers_and_ids_over_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "FILE_BATCH_ROWS", 3)
    p = np.random.default_rng(0).dirichlet(np.ones(4), 8)
    hs.write(Predictions.from_probs(p, ids=np.arange(8) * 10), tmp_path / "in.npz")
    out = BytesIO()
    decide_path(POLICY.decide, tmp_path / "in.npz", out)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(row["line"], row["id"]) for row in rows] == [(i + 1, 10 * i) for i in range(8)]


def test_images_are_decided_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "FILE_BATCH_ROWS", 4)
    p = (
        np.random.default_rng(1).dirichlet(np.ones(2), (5, 2, 2)).transpose(0, 3, 1, 2)
    )  # image, class, height, width
    np.savez(tmp_path / "in.npz", probs=p)
    out = BytesIO()
    how = Serving(wanted=ReadOptions(image_score="mean_confidence"))
    total = decide_path(POLICY.decide, tmp_path / "in.npz", out, how)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    sure = p.max(axis=1).mean(axis=(1, 2))
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5]
    assert len({row["id"] for row in rows}) == 5
    assert [row["confidence"] for row in rows] == pytest.approx(sure.tolist())
    assert (total.decided, total.accepted) == (5, int((sure >= 0.8).sum()))
    (tmp_path / "in.csv").write_text("prob_0,prob_1\n0.2,0.8\n")
    with pytest.raises(
        InputError, match="has a pixel on every line; images are decided from arrays"
    ):
        decide_path(POLICY.decide, tmp_path / "in.csv", BytesIO(), how)


# ---- labels that come back


class Clock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_state_is_saved_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, saved = Clock(), list[int]()
    monkeypatch.setattr(journal, "monotonic", clock)
    learner = Learner(START, None, lambda state: saved.append(state.seen))
    preds = Predictions.from_confidence([0.9])
    for seconds, then in (0.5, []), (0.49, []), (0.01, [2]), (0.99, [2]), (0.5, [2, 4]):
        clock.now += seconds
        learner.decide(preds)
        assert saved == then
    learner.close()
    assert saved == [2, 4, 5]


def test_a_guard_saves_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, preds = Clock(), Predictions.from_confidence([0.9, 0.3])
    monkeypatch.setattr(journal, "monotonic", clock)
    path = tmp_path / "watch.json"
    some = Predictions.from_confidence(np.random.default_rng(0).random(200))
    hs.save(DriftMonitor.start(POLICY.decide(some), false_alarms=0.01), path)
    guard = AlarmGuard(AlarmInputs(drift=path))
    for seconds, seen in (0.5, 0), (0.49, 0), (0.01, 6), (0.99, 6), (0.5, 10):
        clock.now += seconds
        guard.see(POLICY.decide(preds), preds)
        found = hs.load(path)
        assert found.seen == seen


def delivered(n: int, state: OnlinePolicy = START) -> tuple[OnlinePolicy, list[str]]:
    """A policy after n decisions, and their lines."""
    learner = Learner(state, None, lambda _: None)
    made = learner.decide(Predictions.from_confidence(np.resize([0.9, 0.85, 0.2], n)))
    return learner.state, decision_lines(made, range(1, n + 1), None).decode().splitlines(
        keepends=True
    )


def test_decisions_that_the_state_does_not_know_are_taken_from_the_output(tmp_path: Path) -> None:
    end, lines = delivered(6)
    half, _ = delivered(2)
    out = tmp_path / "out.jsonl"
    other = delivered(6, replace(START, seed=9))[1]
    infinite = lines[3].replace('"score":0.9', '"score":null')
    for text, first, seen in (
        ("".join(lines), START, 6),
        ("".join(lines), half, 6),
        ("".join(lines)[:-1], half, 5),  # the last line is torn
        ("".join(lines[:2]), half, 2),
        ("".join(lines[:3] + lines[4:]), START, 3),  # one is missing
        ("".join(other), START, 0),
        ("notes\n[1]\n{}\n" + "".join(lines[:4]), START, 4),
        (lines[0] + lines[0] + lines[1], START, 2),
        ("".join([*lines[:3], infinite, *lines[4:]]), START, 3),
    ):
        out.write_text(text)
        learner = Learner(first, None, lambda _: None)
        learner.resume(out)
        assert learner.state.seen == seen
        if seen == 6:
            assert (
                (learner.state.accepted, learner.state.idle) == (end.accepted, end.idle) == (4, 1)
            )
    out.unlink()
    learner = Learner(half, None, lambda _: None)
    learner.resume(out)
    assert learner.state is half


def test_a_decision_that_was_delivered_has_no_label_yet() -> None:
    line = b'{"ticket":"3-a","decision":"accept","audit":true,"score":null}'
    found = feedback.parse_delivered(line)
    assert found is not None
    assert (found.ticket, found.accept, found.audit, found.correct) == ("3-a", True, True, False)
    assert np.isnan(found.score)


def test_what_is_not_known_of_a_label_is_minus_one() -> None:
    rows = [
        LabelledDecision(ticket="0-a", accept=True, audit=True, score=0.9, correct=True),
        LabelledDecision(ticket="1-b", accept=False, audit=True, score=0.3, correct=True),
        LabelledDecision(ticket="2-c", accept=True, audit=False, score=nan, correct=False),
    ]
    made = feedback.as_decisions(rows)
    assert made.prediction.tolist() == [-1, -1, -1]
    assert made.audit is not None
    assert made.audit.tolist() == [True, False, False]  # what was deferred costs no risk
    assert made.accept.tolist() == [True, False, True]


def test_tickets_have_a_number_and_twelve_digits() -> None:
    _, lines = delivered(3)
    found = [json.loads(line)["ticket"] for line in lines]
    assert [ticket.partition("-")[0] for ticket in found] == ["0", "1", "2"]
    assert all(re.fullmatch(r"\d-[0-9a-f]{12}", ticket) for ticket in found)
    made = replace(POLICY.decide(Predictions.from_confidence([0.9])), audit=None)
    no, yes = (replace(made, audit=np.array([x])) for x in (False, True))
    first, same, audited = (feedback.make_tickets(x, 5, b"who")[0] for x in (made, no, yes))
    assert first == same != audited
    others = (replace(made, accept=~made.accept), replace(made, score=made.score + 0.01))
    assert (
        len(
            {
                first,
                *(feedback.make_tickets(x, 5, b"who")[0] for x in others),
                feedback.make_tickets(made, 5, b"w")[0],
            }
        )
        == 4
    )


def test_labels_at_the_edge_of_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback, "LATE_DECISIONS", 3)
    state, lines = delivered(6)
    path, said = tmp_path / "labels.jsonl", list[str]()
    label: Callable[[int], str] = lambda i: lines[i].rstrip()[:-1] + ',"correct":1}\n'
    path.write_text(label(2))
    assert (
        learn_labels(state, LabelFeed(path, report=said.append)).labels == 0
    )  # decision 2 of 6 is too far back
    path.write_text(label(3))
    after = learn_labels(state, LabelFeed(path, report=said.append))
    assert (after.labels, said) == (1, ["labels.jsonl: 1 late labels were not learnt."])
    assert after.learnt == (json.loads(lines[3])["ticket"],)
    known = replace(
        state, learnt=(f"8-{'0' * 12}",)
    )  # of a decision that the saved count does not know yet
    path.write_text(label(4) + label(5))
    found = learn_labels(known, LabelFeed(path, report=said.append))
    assert (found.read, said[1:]) == (
        path.stat().st_size,
        ["labels.jsonl: 1 late labels were not learnt."],
    )
    assert found.learnt == (f"8-{'0' * 12}", json.loads(lines[5])["ticket"])
    assert feedback.keep_recent(("1-a", "2-b", "5-c", "4-d")) == ("2-b", "5-c", "4-d")


@pytest.mark.parametrize("size", [30, 31, 32, 33])
def test_a_line_longer_than_a_block_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(label_files, "LABEL_BLOCK_BYTES", 32)
    path = tmp_path / "labels.jsonl"
    path.write_bytes(b"x" * size)
    if size < 32:
        assert label_files.read_new_lines(0, path) is None
    else:
        with pytest.raises(InputError, match="has a line of more than 32 bytes"):
            label_files.read_new_lines(0, path)
    path.write_bytes(b"x" * (size - 1) + b"\n" + b"y" * 31)
    if size <= 32:
        assert label_files.read_new_lines(0, path) == b"x" * (size - 1) + b"\n"
        assert label_files.read_new_lines(size, path) is None
    assert label_files.read_new_lines(size + 31, path) is None
    with pytest.raises(
        InputError, match=f"has {size + 31} bytes, and {size + 32} were read before"
    ):
        label_files.read_new_lines(size + 32, path)
    with pytest.raises(InputError, match="is not a file"):
        label_files.read_new_lines(0, tmp_path)


@pytest.mark.parametrize(
    "learn",
    [
        lambda path: learn_labels(START, LabelFeed(path)),
        lambda path: judge_labels(PROMISE, LabelFeed(path)),
    ],
)
def test_a_bad_label_is_named_by_its_line(tmp_path: Path, learn: Callable[[Path], object]) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("z" * 100 + "\n")
    with pytest.raises(LabelError, match=r"^labels\.jsonl, line 1 is not JSON"):
        learn(path)


@pytest.mark.parametrize(
    ("correct", "labels"), [(0, 1), (1, 1), ("true", 1), (2, 0), (-1, 0), ('"1"', 1), ("null", 0)]
)
def test_what_counts_as_a_label(tmp_path: Path, correct: object, labels: int) -> None:
    state, lines = delivered(1)
    path, said = tmp_path / "labels.jsonl", list[str]()
    path.write_text(lines[0].rstrip()[:-1] + f',"correct":{correct}}}\n')
    after = learn_labels(state, LabelFeed(path, on_bad="skip", report=said.append))
    assert (after.labels, after.wrong, len(said)) == (labels, int(correct == 0), 1 - labels)


# ---- promises and guards

PROMISE = GuaranteeMonitor.start(risk=0.1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"against": np.zeros(5)}, "against is not a list of 6 logs"),
        ({"against": np.full(6, 2e15)}, "against is not a list of 6 logs"),
        ({"against": np.full(6, nan)}, "against is not a list of 6 logs"),
        ({"favour": np.zeros((4, 1))}, "favour is not a list of 4 logs"),
        ({"favour": np.array([0.0, 0.0, 0.0, 2e15])}, "favour is not a list of 4 logs"),
        ({"labels": -1}, "labels is -1"),
        ({"labels": 2**62 + 1}, "labels is 4.61169e"),
        ({"read": -1}, "read is -1"),
        ({"read": 2**62 + 1}, "read is 4.61169e"),
        ({"labels": 5, "wrong": 6}, "wrong is 6; a number from 0 to 5"),
        ({"labels": 5, "wrong": -1}, "wrong is -1"),
        ({"labels": 5, "broken": 6}, "broken is 6; a number from 1 to 5"),
        ({"labels": 5, "kept": 0}, "kept is 0; a number from 1 to 5"),
    ],
)
def test_a_promise_that_cannot_be(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        replace(PROMISE, **change)


def test_a_promise_at_its_limits() -> None:
    large = replace(PROMISE, labels=2**62, read=2**62, wrong=2**62, broken=1, kept=2**62)
    assert (large.broken, large.alarms) == (1, {"guarantee": 1})
    assert replace(PROMISE, against=np.full(6, 1e15)).against.tolist() == [1e15] * 6
    assert replace(PROMISE, labels=1, broken=1, kept=1, wrong=1).kept == 1


@pytest.mark.parametrize("right", [0, 1])
def test_capital_equal_to_the_level_is_enough(right: int) -> None:
    """The rate is chosen so that the capital after some labels is the level itself, to the last
    bit.
    """
    found = 0
    for n in range(1, 40):
        seen = PROMISE.see([right] * n)
        capital = float(np.logaddexp.reduce(seen.favour if right else seen.against))
        if capital > 0 and -log(exp(-capital)) == capital:
            again = GuaranteeMonitor.start(risk=0.1, false_alarms=exp(-capital)).see([right] * n)
            assert (again.kept if right else again.broken) == n
            found += 1
    assert found > 3


def test_labels_are_remembered_by_sixteen_digits(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(
        '{"line":1,"decision":"accept","correct":1}\n{"id":"a","line":1,"decision":"accept","correct":0}\n'
    )
    found = judge_labels(PROMISE, LabelFeed(path))
    assert (found.labels, found.wrong) == (2, 1)
    assert all(re.fullmatch("[0-9a-f]{16}", key) for key in found.seen)
    path.write_text(path.read_text() + '{"id":"a","line":7,"decision":"accept","correct":0}\n')
    assert (
        judge_labels(found, LabelFeed(path)).labels == 2
    )  # an id names a case, wherever it stands


@pytest.mark.parametrize(
    ("guards", "made_for", "fine"),
    [("abc", "abc", True), ("abc", "", True), ("", "xyz", True), ("abc", "xyz", False)],
)
def test_a_guard_takes_states_of_its_own_policy(
    tmp_path: Path, guards: str, made_for: str, fine: bool
) -> None:
    path = tmp_path / "promise.json"
    hs.save(GuaranteeMonitor.start(risk=0.1, policy=made_for), path)
    if fine:
        assert not AlarmGuard(AlarmInputs(guarantee=path, policy=guards)).raised
    else:
        with pytest.raises(InputError, match="was made for another policy"):
            AlarmGuard(AlarmInputs(guarantee=path, policy=guards))
