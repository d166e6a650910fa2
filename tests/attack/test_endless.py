"""Pipes and devices behind names, patterns and links are refused; a pipe is read where it was named
as the input.
"""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from benchmarks.attack.child import run

import howsure as hs
from howsure import InputError, Predictions, read
from howsure.calibrators import Temperature
from howsure.policies import OnlinePolicy, Policy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hs.write(Predictions.from_confidence([0.9, 0.8, 0.3, 0.2], [1, 1, 0, 1]), tmp_path / "good.npz")
    hs.save(Policy("max_prob", 0.5), tmp_path / "policy.json")
    start = OnlinePolicy.start(Policy("max_prob", 0.5), np.linspace(0, 1, 11), risk=0.1)
    hs.save(start, tmp_path / "online.json")
    np.save(tmp_path / "x_confidence.npy", np.array([0.5, 0.6]))
    for name in (
        "a.npz",
        "a.csv",
        "a.jsonl",
        "a.parquet",
        "a.json",
        "a.eval",
        "a.txt",
        "a.npy",
        "x_correct.npy",
        "fifo",
    ):
        os.mkfifo(tmp_path / name)
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    return tmp_path


CALLS = [
    *(
        ["evaluate", name]
        for name in (
            "a.npz",
            "a.csv",
            "a.jsonl",
            "a.json",
            "a.eval",
            "a.txt",
            "link.csv",
            "zero.csv",
        )
    ),
    *(["doctor", name] for name in ("a.npz", "a.csv", "a.json", "zero.csv")),
    ["evaluate", "a.*"],
    ["evaluate", "a.parquet", "--stream"],
    ["evaluate", "x"],
    ["evaluate", "x_confidence.npy"],
    ["evaluate", "/dev/zero"],
    ["evaluate", "good.npz", "--calibrator", "fifo"],
    ["evaluate", "good.npz", "--images", "fifo"],
    ["check", "good.npz", "--require", "ece<=0.5", "--baseline", "fifo"],
    ["threshold", "good.npz", "--costs", "fifo"],
    ["decide", "fifo", "good.npz"],
    ["decide", "/dev/zero", "good.npz"],
    ["decide", "policy.json", "zero.csv"],
    ["decide", "policy.json", "good.npz", "-o", "fifo"],
    ["decide", "online.json", "good.npz", "--labels", "fifo"],
    ["decide", "policy.json", "good.npz", "--drift", "fifo"],
    ["decide", "policy.json", "good.npz", "--alarms", "fifo"],
    ["decide", "policy.json", "good.npz", "--alarms", "policy.json"],
    ["evaluate", "good.npz", "-o", "a.json"],
]


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_pipes_and_devices_are_refused(call: list[str], folder: Path) -> None:
    named = [
        str(folder / word) if (folder / word).exists() or "*" in word or word == "x" else word
        for word in call
    ]
    found = run(named)
    errors = [
        line for line in found.err.splitlines() if "read as a stream" not in line
    ]  # what a pattern is told first
    said = found.out if call[0] == "doctor" else errors
    assert found.code == 2, found
    assert said, found
    assert len(errors) < 2, found
    assert found.megabytes < 600, found


def test_nothing_takes_the_place_of_a_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InputError, match="is a pipe or a device"):
        hs.save(Temperature(1.5), tmp_path / "pipe.json")
    assert (tmp_path / "pipe.json").is_fifo()


def test_a_pipe_named_as_the_input_of_decide_is_read(folder: Path) -> None:
    def fill() -> None:
        (folder / "fifo").write_text('{"confidence": 0.9}\n{"confidence": 0.1}\n')

    writer = threading.Thread(target=fill)
    writer.start()
    found = run(["decide", folder / "policy.json", folder / "fifo"])
    writer.join()
    assert (found.code, found.out.count('"decision"')) == (0, 2)


def test_reading_a_device_in_a_program_is_refused_too() -> None:
    for path in ("/dev/zero", "/dev/stdin"):
        with pytest.raises(InputError):
            read(path)
