"""The attack by mutations itself: whatever happens to one number, the next one goes on and all are
counted.
"""

import json
import os
import signal
from pathlib import Path

import pytest
from benchmarks.attack import fuzz

MOST = 40


def sow(folder: Path) -> None:
    (folder / "good").mkdir()
    (folder / "names").write_text("a.csv\nb.npz")


def one(index: int, files: list[Path], folder: Path) -> tuple[str, str]:
    if index == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if index == 5:
        return "state", "unforeseen: a fault\nof two lines\n"
    if index == 8:
        while True:
            pass
    if index == 11:
        held = bytearray(1 << 29)  # more than the parent may give back before it forks
        held[:: 1 << 12] = b"x" * len(held[:: 1 << 12])
    return fuzz.kind(index, files), "refused"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    # a fork has the anonymous memory of its parent, and of the files that it has mapped only what
    # it touches
    now = int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) // 1024
    for name, value in {
        "sow": sow,
        "one": one,
        "PACKAGES": (),
        "SECONDS": 3,
        "MEGABYTES": now + 75,
    }.items():
        monkeypatch.setattr(fuzz, name, value)


@pytest.mark.usefixtures("quick")
def test_every_number_is_counted_and_every_fault_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "fuzz.json"
    found = fuzz.run(5, state, MOST)
    assert found == json.loads(state.read_text())
    assert (found["next"], sum(found["counts"].values())) == (MOST, MOST)
    assert found["counts"] == {".csv": 14, ".npz": 14, "state": 6, "lines": 4, "command": 2}
    crash, fault, endless, memory = found["failures"]
    assert crash == f"3 .npz crash, exit -{signal.SIGKILL:d}"
    assert fault == "5 state unforeseen: a fault of two lines"
    assert endless == f"8 .csv crash, exit -{signal.SIGPROF:d}"
    assert memory.startswith("11 .npz unforeseen: ")
    assert memory.endswith(" MB (refused)")
    monkeypatch.setattr(fuzz, "one", lambda index, files, _: (fuzz.kind(index, files), "read"))
    mended = fuzz.run(5, state, MOST + 10)
    assert (mended["next"], sum(mended["counts"].values()), mended["failures"]) == (
        MOST + 10,
        MOST + 10,
        [],
    )
