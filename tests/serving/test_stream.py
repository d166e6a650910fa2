"""Streams: one line in, one line out, at once; bad lines, signals, closed pipes."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest

from howsure import InputError, Predictions, save
from howsure.policies import Policy
from howsure.serving.stream import Serving, decide_stream

POLICY = Policy("max_prob", 0.8)


def decided(text: str | bytes, how: Serving = Serving(), policy: Policy = POLICY) -> list[dict]:  # noqa: B008
    out = BytesIO()
    decide_stream(
        policy.decide, BytesIO(text if isinstance(text, bytes) else text.encode()), out, how=how
    )
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_json_lines_of_every_kind() -> None:
    rows = decided(
        '{"id": "a", "probs": [0.9, 0.1]}\n'
        '{"id": 7, "logits": [0.0, 0.1]}\n'
        "\n"
        '{"confidence": 0.85, "prediction": "cat"}\n'
        '{"prob_0": 0.2, "prob_1": 0.8}\n'
    )
    assert [(r["line"], r.get("id"), r["decision"], r["prediction"]) for r in rows] == [
        (1, "a", "accept", 0),
        (2, 7, "defer", 1),
        (4, None, "accept", "cat"),
        (5, None, "accept", 1),
    ]


def test_answers_stay_what_they_were() -> None:
    rows = decided(
        '{"confidence": 0.9, "prediction": 1}\n{"confidence": 0.9, "prediction": "cat"}\n'
    )
    assert [r["prediction"] for r in rows] == [1, "cat"]


def test_csv_with_a_header() -> None:
    rows = decided('id,logit_1,logit_0\r\n"a,b",0.0,5.0\r\nc,1.0,0.9\r\n')
    assert [(r["line"], r["id"], r["decision"], r["prediction"]) for r in rows] == [
        (2, "a,b", "accept", 0),
        (3, "c", "defer", 1),
    ]


def test_a_last_line_without_newline_counts() -> None:
    assert len(decided('{"confidence": 0.9}\n{"confidence": 0.9}')) == 2


def test_the_numbers_are_those_of_the_policy() -> None:
    logits = [[0.3, 2.0, -1.0], [5.0, 1.0, 1.0]]
    rows = decided("".join(json.dumps({"logits": z}) + "\n" for z in logits))
    made = POLICY.decide(Predictions.from_logits(logits))
    assert [r["confidence"] for r in rows] == made.confidence.tolist()


def test_names_of_classes_and_of_the_policy() -> None:
    policy = Policy("max_prob", 0.5, k=2, class_names=("cat", "dog"))
    (row,) = decided('{"probs": [0.1, 0.9]}', Serving(stamp="ab12"), policy)
    assert (row["prediction"], row["policy"]) == ("dog", "ab12")


def test_an_infinite_score_is_null() -> None:
    (row,) = decided('{"probs": [0.0, 1.0]}\n', policy=Policy("neg_entropy", -1.0))
    assert row["score"] == 0.0
    (row,) = decided('{"confidence": 0.0}\n', policy=Policy("log_max_prob", -1.0))
    assert row["score"] is None


BAD = {
    "not json": b'{"confidence": 0.9',
    "nan": b'{"logits": [NaN, 1.0]}',
    "infinite": b'{"logits": [1e999, 1.0]}',
    "no numbers": b'{"id": 3}',
    "a list": b"[1, 2]",
    "text": b'{"logits": ["0.1", "low"]}',
    "a huge number": b'{"logits": [1, 1' + b"0" * 400 + b"]}",
    "ragged": b'{"logits": [[1, 2]]}',
    "an id that is a list": b'{"id": [1], "confidence": 0.5}',
    "no distribution": b'{"probs": [0.9, 0.9]}',
    "outside": b'{"confidence": 1.5}',
    "other classes": b'{"logits": [0.1, 0.2, 0.3]}',
    "bytes": b'{"id": "\xff", "confidence": 0.5}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_line_stops_with_its_number_after_the_good_ones(what: str) -> None:
    text = b'{"id": 1, "logits": [3.0, 0.0]}\n' + BAD[what] + b'\n{"id": 3, "logits": [3.0, 0.0]}\n'
    out = BytesIO()
    with pytest.raises(InputError, match=r"\bline 2\b"):
        decide_stream(Policy("max_prob", 0.8, k=2).decide, BytesIO(text), out)
    assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == [1]


@pytest.mark.parametrize("what", BAD)
def test_a_bad_line_is_reported_and_skipped(what: str) -> None:
    told: list[str] = []
    text = b'{"id": 1, "logits": [3.0, 0.0]}\n' + BAD[what] + b'\n{"id": 3, "logits": [3.0, 0.0]}\n'
    rows = decided(text, Serving("skip", told.append), Policy("max_prob", 0.8, k=2))
    assert [r["id"] for r in rows] == [1, 3]
    assert len(told) == 1
    assert "line 2" in told[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b\n1,2\n",
            r"^standard input has no logit_0…, prob_0… or confidence \(it holds 'a', 'b'\)",
        ),
        ("logit_0,logit_2\n1,2\n", "gaps"),
        ("confidence\n0.5,0.6\n", "^standard input, line 2: 2 cells for 1 columns"),
        ("confidence\nhigh\n", "^standard input, line 2, column 'confidence': the value is 'high'"),
        ("confidence\nnan\n", "line 2, "),
    ],
)
def test_bad_csv(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decided(text)


def test_two_objects_on_a_line_do_not_hide_one_on_two_lines() -> None:
    """As many objects as lines, and with commas between the lines they would be a list."""
    lines = (
        '{"id": 1, "confidence": 0.9} , {"id": 2, "confidence": 0.9}',
        '{"id": 3, "confidence": 0.9, "more": [{}',
        "{}]}",
        '{"id": 4, "confidence": 0.9}',
    )
    told: list[str] = []
    rows = decided("\n".join(lines), Serving("skip", told.append))
    assert [(row["line"], row["id"]) for row in rows] == [(4, 4)]
    assert [line for line in (1, 2, 3) if f"line {line} " in told[line - 1]] == [1, 2, 3]


def test_rows_of_every_kind_in_one_block_of_csv() -> None:
    """Plain rows, empty ones, quotes, a cell too many, a carriage return amid a row."""
    text = 'id,confidence\na,0.9\n,\n\n"b,""c",0.8\nd,0.7,7\n"e\nf",0.6\ng\rh,0.5\ni,0.4\n'
    told: list[str] = []
    rows = decided(text, Serving("skip", told.append))
    assert [(row["line"], row["id"], row["confidence"]) for row in rows] == [
        (2, "a", 0.9),
        (5, 'b,"c', 0.8),
        (8, "e\nf", 0.6),
        (10, "i", 0.4),
    ]
    assert [part for part in ("line 6:", "line 9:") if any(part in one for one in told)] == [
        "line 6:",
        "line 9:",
    ]
    assert len(told) == 2


def test_plain_rows_are_those_that_the_csv_module_reads() -> None:
    text = "id,confidence\n  a ,0.9\nä;b, 0.80\n,0.7\n0\x00,1\n"
    quoted = text.replace("\nä", '\n"ä').replace(";b", ';b"')
    assert decided(text) == decided(quoted)
    assert [row["id"] for row in decided(text)] == ["  a ", "ä;b", "", "0\x00"]


def test_each_line_is_answered_before_the_next_is_sent() -> None:
    """A pipe that stays open: the answer must not wait for more input."""
    r, w = os.pipe()
    back_r, back_w = os.pipe()

    def serve() -> None:
        with os.fdopen(r, "rb", buffering=0) as source, os.fdopen(back_w, "wb", buffering=0) as out:
            decide_stream(POLICY.decide, source, out)

    thread = threading.Thread(target=serve)
    thread.start()
    with os.fdopen(back_r, "rb") as answers:
        for i in range(3):
            os.write(w, b'{"id": %d, "confidence": 0.9}\n' % i)
            assert json.loads(answers.readline())["id"] == i
        os.write(w, b'{"id": 3, "conf')  # half a line is no line yet
        os.write(w, b'idence": 0.1}\n')
        assert json.loads(answers.readline())["decision"] == "defer"
        os.close(w)
        thread.join()


@pytest.fixture
def process(tmp_path: Path):
    """`howsure decide policy.json -` as a process of its own."""
    save(POLICY, tmp_path / "policy.json")
    command = [sys.executable, "-m", "howsure.cli", "decide", str(tmp_path / "policy.json"), "-"]
    p = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    yield p
    p.kill()
    for stream in (p.stdin, p.stdout, p.stderr):
        with suppress(BrokenPipeError):
            stream.close()
    p.wait()


def test_sigterm_ends_it_cleanly(process: subprocess.Popen) -> None:
    process.stdin.write(b'{"confidence": 0.9}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["decision"] == "accept"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert b"1 decided: 1 accepted, 0 deferred (SIGTERM)" in process.stderr.read()


def test_a_closed_pipe_ends_it_cleanly(process: subprocess.Popen) -> None:
    process.stdin.write(b'{"confidence": 0.9}\n')
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    # The answer to this line meets a closed pipe, however long it takes.
    process.stdin.write(b'{"confidence": 0.9}\n')
    process.stdin.flush()
    assert process.wait(60) == 0
    assert b"Traceback" not in (error := process.stderr.read())
    assert b"closed pipe" in error
    assert b"Exception" not in error
