"""One process writes an output, whole lines only, and a reader that goes away is told what it was
handed.
"""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from howsure import InputError, Predictions, save
from howsure.policies import Policy
from howsure.serving.journal import decision_lines, hold_lock
from howsure.serving.stream import Serving, decide_file

POLICY = Policy("max_prob", 0.8)
LINE = '{"confidence": 0.9}\n'


def command(folder: Path, *args: str) -> list[str]:
    save(POLICY, folder / "policy.json")
    return [sys.executable, "-m", "howsure.cli", "decide", str(folder / "policy.json"), *args]


def test_the_second_writer_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(LINE)
    out = tmp_path / "out.jsonl"
    with hold_lock(out):
        who = f"is being written by process {os.getpid()} on "
        with pytest.raises(InputError, match=who):
            decide_file(POLICY.decide, tmp_path / "in.jsonl", out)
        with pytest.raises(InputError, match=who):
            decide_file(POLICY.decide, tmp_path / "in.jsonl", out, resume=True)
    assert decide_file(POLICY.decide, tmp_path / "in.jsonl", out).decided == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    child = os.fork()
    if child == 0:
        with hold_lock(out):
            os._exit(0)  # as a kill would, without any clean-up
    os.waitpid(child, 0)
    assert (tmp_path / ".out.jsonl.lock").exists()
    with hold_lock(out):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_torn_line_from_a_pipe(tmp_path: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    ran = subprocess.run(
        command(tmp_path, "-", "-o", str(tmp_path / "out.jsonl")),
        input=LINE * 5_000, capture_output=True, text=True, preexec_fn=limited,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "cannot be written" in ran.stderr
    left = (tmp_path / "out.jsonl").read_bytes()
    assert left.endswith(b"\n")


def test_an_output_of_a_pipe_that_exists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("mine\n")
    ran = subprocess.run(
        command(tmp_path, "-", "-o", str(tmp_path / "out.jsonl")),
        input=LINE,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert "exists; resume it" in ran.stderr


def test_head_is_told_what_it_was_handed(tmp_path: Path) -> None:
    """A reader that takes three lines and goes: the count is that of whole lines the pipe took, not
    of lines read.
    """
    (tmp_path / "in.jsonl").write_text(LINE * 200_000)
    with subprocess.Popen(
        command(tmp_path, str(tmp_path / "in.jsonl")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as p:
        assert p.stdout is not None
        assert p.stderr is not None
        taken = [p.stdout.readline() for _ in range(3)]
        p.stdout.close()
        said = p.stderr.read().decode()
    found = re.search(
        r"^([\d,]+) decided: \1 accepted, 0 deferred \(closed pipe: what the reader was handed\)",
        said,
    )
    assert found is not None
    assert 3 <= int(found[1].replace(",", "")) < 200_000
    assert all(line.endswith(b"}\n") for line in taken)


def test_ids_that_are_all_text_are_written_as_beside_a_number() -> None:
    ids = ["plain", 'a"b', "line\nbreak", "é\u202e\x7f", "::error::", "##[group]", ""]
    decisions = POLICY.decide(Predictions.from_confidence([0.9] * 8))
    texts = decision_lines(decisions, range(8), [*ids, "8"]).splitlines()
    mixed = decision_lines(decisions, range(8), [*ids, 8]).splitlines()
    assert texts[:-1] == mixed[:-1]
    assert [json.loads(line)["id"] for line in mixed] == [*ids, 8]


@pytest.mark.parametrize(
    "bad",
    ['{"x": [{"confidence": 0.1}', '{"confidence": 0.1}, {"confidence": 0.2}', "[1]", "{", "1"],
)
def test_a_bad_line_takes_no_other_with_it(bad: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(f'{LINE} {{"confidence": 0.7}}\r\n\n{bad}\n{LINE}')
    skip = Serving(on_bad="skip")
    served = decide_file(POLICY.decide, tmp_path / "in.jsonl", tmp_path / "out.jsonl", how=skip)
    assert (served.decided, served.bad) == (3, 1)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(line["line"], line.get("score")) for line in lines if "decision" in line] == [
        (1, 0.9),
        (2, 0.7),
        (5, 0.9),
    ]
