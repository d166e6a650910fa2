"""Files: whatever ends a run, going on gives the bytes of an undisturbed one."""

import os
import random
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError, Predictions, write
from howsure.policies import Policy
from howsure.serving.stream import Serving, decide_file

DECIDE = Policy("max_prob", 0.9).decide


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("in") / "in.jsonl"
    confidence = np.random.default_rng(0).random(8_000).round(3).tolist()
    path.write_text(
        "".join(f'{{"id": "x{i}", "confidence": {c}}}\n' for i, c in enumerate(confidence))
    )
    return path


@pytest.fixture(scope="module")
def whole(source: Path) -> bytes:
    decide_file(DECIDE, source, source.with_name("whole.jsonl"))
    return source.with_name("whole.jsonl").read_bytes()


def test_cut_anywhere_and_resumed(source: Path, whole: bytes, tmp_path: Path) -> None:
    out, draw = tmp_path / "out.jsonl", random.Random(1)
    for cut in [0, 1, len(whole) - 1, len(whole), *(draw.randrange(len(whole)) for _ in range(12))]:
        out.write_bytes(whole[:cut])
        total = decide_file(DECIDE, source, out, resume=True)
        assert out.read_bytes() == whole
        assert total.skipped == whole[:cut].count(b"\n")


def test_killed_and_resumed(source: Path, whole: bytes, tmp_path: Path) -> None:
    """kill -9 at random moments; the long version is `python -m benchmarks.decide kill`."""
    out, draw = tmp_path / "out.jsonl", random.Random(2)
    for _ in range(5):
        out.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            decide_file(DECIDE, source, out)
            os._exit(0)
        # Wherever it is when so much is written; on a slow machine that is no other place.
        enough = draw.random() * len(whole)
        while not out.exists() or out.stat().st_size < enough:
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        decide_file(DECIDE, source, out, resume=True)
        assert out.read_bytes() == whole


def test_a_full_disk_loses_nothing(source: Path, whole: bytes, tmp_path: Path) -> None:
    """A limit on the file size stands for a disk that is full; the child exits 3 where the message
    is right.
    """
    out = tmp_path / "out.jsonl"

    def limited() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        try:
            decide_file(DECIDE, source, out)
        except InputError as e:
            return 3 if "cannot be written" in str(e) and "--resume" in str(e) else 4
        return 5

    assert in_child(limited) == 3
    left = out.read_bytes()
    assert whole.startswith(left)
    assert left.endswith(b"\n")
    assert 0 < len(left) <= 300_000
    decide_file(DECIDE, source, out, resume=True)
    assert out.read_bytes() == whole


def in_child(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_bad_lines_before_the_cut_are_passed_over(tmp_path: Path) -> None:
    lines = [
        '{"id": 1, "confidence": 0.9}',
        "oops",
        '{"id": 3, "confidence": 0.9}',
        '{"id": 4, "confidence": 0.2}',
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    how = Serving("skip")
    decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "whole.jsonl", how=how)
    whole = (tmp_path / "whole.jsonl").read_bytes()
    (tmp_path / "out.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    total = decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "out.jsonl", how=how, resume=True)
    assert (tmp_path / "out.jsonl").read_bytes() == whole
    assert total.decided == 1


def test_a_changed_input_is_joined_by_ids(tmp_path: Path) -> None:
    line = '{{"id": "{}", "confidence": 0.95}}\n'.format
    (tmp_path / "in.jsonl").write_text(line("a") + line("b"))
    decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    (tmp_path / "in.jsonl").write_text(line("new") + line("b") + line("a") + line("c"))
    total = decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "out.jsonl", resume=True)
    assert (total.decided, total.skipped) == (2, 2)
    assert (tmp_path / "out.jsonl").read_text().count('"id"') == 4


def test_a_changed_input_without_ids_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"confidence": 0.9}\n' * 3)
    decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    (tmp_path / "in.jsonl").write_text('{"confidence": 0.9}\n')
    with pytest.raises(InputError, match="rows without ids"):
        decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "out.jsonl", resume=True)


def test_another_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"confidence": 0.9}\n' * 3)
    decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "out.jsonl", how=Serving(stamp="one"))
    with pytest.raises(InputError, match="another policy"):
        decide_file(
            DECIDE,
            tmp_path / "in.jsonl",
            tmp_path / "out.jsonl",
            how=Serving(stamp="two"),
            resume=True,
        )


def test_an_output_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"confidence": 0.9}\n')
    (tmp_path / "out.jsonl").write_text("my precious notes\n")
    with pytest.raises(InputError, match="exists; resume it"):
        decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    with pytest.raises(InputError, match="not a decision"):
        decide_file(DECIDE, tmp_path / "in.jsonl", tmp_path / "out.jsonl", resume=True)
    assert (tmp_path / "out.jsonl").read_text() == "my precious notes\n"


def test_other_formats_resume_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    write(
        Predictions.from_logits(rng.normal(0, 3, (40_000, 3)), ids=np.arange(40_000)),
        tmp_path / "in.npz",
    )
    decide_file(DECIDE, tmp_path / "in.npz", tmp_path / "whole.jsonl")
    whole = (tmp_path / "whole.jsonl").read_bytes()
    assert whole.count(b"\n") == 40_000
    (tmp_path / "out.jsonl").write_bytes(whole[: len(whole) // 2])
    decide_file(DECIDE, tmp_path / "in.npz", tmp_path / "out.jsonl", resume=True)
    assert (tmp_path / "out.jsonl").read_bytes() == whole
