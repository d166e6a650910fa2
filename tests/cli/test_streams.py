"""Real processes with the streams of real shells: any encoding, closed, full, narrow, stopped."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure

# The package that these tests import, whichever is installed.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(howsure.__file__).parents[1])}
HOWSURE = [sys.executable, "-m", "howsure"]
COMMANDS = {
    "evaluate": (["evaluate", "a.npz"], 0),
    "full": (["evaluate", "a.npz", "--full"], 0),
    "compare": (["compare", "a.npz", "b.npz"], 0),
    "demo": (["demo"], 0),
    "monitor": (["monitor", "a.npz", "b.npz"], 0),
    "threshold": (["threshold", "a.npz", "--risk", "0.3"], 0),
    "check": (["check", "a.npz", "--require", "accuracy>=0.999"], 1),
    "doctor": (["doctor", "a.npz"], 0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models with class names that few encodings have."""
    folder = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    names = np.array(["≤50K", "中", "é"])
    for name in ("a", "b"):
        logits = (3 * np.eye(3)[labels] + 2 * rng.normal(size=(300, 3))).astype(np.float32)
        np.savez(folder / f"{name}.npz", logits=logits, labels=labels, class_names=names)
    return folder


def run(
    folder: Path, *args: str, shell: str = '"$@"', **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The command, started by a shell that may close its streams."""
    return subprocess.run(
        ["sh", "-c", shell, "sh", *HOWSURE, *args],
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("name", COMMANDS)
def test_an_encoding_without_our_characters(folder: Path, name: str, encoding: str) -> None:
    args, code = COMMANDS[name]
    ran = run(folder, *args, PYTHONIOENCODING=encoding)
    assert (ran.returncode, ran.stderr.decode(encoding).count("bug")) == (code, 0)
    text = ran.stdout.decode(encoding)
    # What is escaped comes from the file; our own characters have a plain form.
    for escaped in ("\\u4e2d", "\\u00e9"):
        text = text.replace(escaped, "")
    assert "\\u" not in text


def test_latin_1(folder: Path) -> None:
    assert run(folder, "evaluate", "a.npz", PYTHONIOENCODING="latin-1").returncode == 0


def test_json_means_the_same_in_every_encoding(folder: Path) -> None:
    whole = json.loads(run(folder, "evaluate", "a.npz", "--json").stdout)
    for encoding in ("ascii", "cp1252"):
        ran = run(folder, "evaluate", "a.npz", "--json", PYTHONIOENCODING=encoding)
        assert json.loads(ran.stdout.decode(encoding)) == whole


RECEIPT = (
    "howsure: 300 answers: logits of 3 classes = 'logits', "
    "right = most probable class against 'labels'\n"
)
CLOSED = {
    "stdin": ('exec "$@" <&-', ["evaluate", "a.npz"], 0, RECEIPT),
    "stdin_needed": (
        'exec "$@" <&-',
        ["decide", "p.json", "-"],
        2,
        "howsure: standard input is closed; open it, or name a file.\n",
    ),
    "stdout": (
        'exec "$@" >&-',
        ["evaluate", "a.npz"],
        2,
        "howsure: standard output is closed; open it, or name a file.\n",
    ),
    "stdout_json": (
        'exec "$@" >&-',
        ["evaluate", "a.npz", "--json"],
        2,
        "howsure: standard output is closed; open it, or name a file.\n",
    ),
    "stdout_decide": (
        'exec "$@" >&-',
        ["decide", "p.json", "a.npz"],
        2,
        "howsure: standard output is closed; open it, or name a file.\n",
    ),
    "stdout_not_needed": ('exec "$@" >&-', ["evaluate", "a.npz", "-q", "-o", "r.json"], 0, ""),
    "stdout_version": (
        'exec "$@" >&-',
        ["--version"],
        2,
        "howsure: standard output is closed; open it, or name a file.\n",
    ),
    "stderr": ('exec "$@" 2>&-', ["evaluate", "a.npz"], 0, ""),
    "stderr_mistake": ('exec "$@" 2>&-', ["evaluate", "none.npz"], 2, ""),
    "all": ('exec "$@" <&- >&- 2>&-', ["evaluate", "a.npz", "-q", "-o", "r.json"], 0, ""),
    "full_disk": (
        'exec "$@" >/dev/full',
        ["evaluate", "a.npz"],
        2,
        "howsure: no space left on device.\n",
    ),
    "head": ('"$@" | head -1 >/dev/null', ["evaluate", "a.npz", "--full"], 0, RECEIPT),
    "no_reader": ('{ "$@"; echo $? >&2; } | true', ["evaluate", "a.npz", "--full"], 0, "1\n"),
}


@pytest.mark.parametrize("name", CLOSED)
def test_streams_that_are_closed_full_or_gone(folder: Path, name: str) -> None:
    shell, args, code, stderr = CLOSED[name]
    if "p.json" in args:
        made = run(folder, "threshold", "a.npz", "--risk", "0.3", "-o", "p.json", "-q")
        assert made.returncode == 0
    ran = run(folder, *args, shell=shell)
    assert (ran.returncode, ran.stderr.decode()) == (code, stderr)


def test_no_file_gets_the_number_of_a_closed_stream(folder: Path) -> None:
    look = (
        "import os; from howsure.cli.input_output import prepare_streams; prepare_streams();"
        "number = os.open('a.npz', os.O_RDONLY); assert number > 2, number"
    )
    ran = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", look],
        cwd=folder,
        env=ENVIRONMENT,
        check=False,
    )
    assert ran.returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_of_20_columns(folder: Path, name: str) -> None:
    args, code = COMMANDS[name]
    ours, theirs = pty.openpty()
    environment = {**ENVIRONMENT, "COLUMNS": "20", "TERM": "xterm"}
    process = subprocess.Popen(
        [*HOWSURE, *args], cwd=folder, env=environment, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        said += block
    os.close(ours)
    assert process.wait() == code, said[-500:]
    assert said


# The process stops itself where the named module is being imported, as if Ctrl-C came just then.
STOPPED = """
import os, signal, sys
class Stop:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
sys.argv = ["howsure", "evaluate", "a.npz"]
from howsure.cli import main
main()
"""


@pytest.mark.parametrize(
    "module", ["click", "howsure.cli.main", "howsure.cli.evaluate", "numpy.linalg", "rich.console"]
)
def test_ctrl_c_during_imports(folder: Path, module: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STOPPED.format(module=module)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (ran.returncode, ran.stderr.strip()) == (130, "howsure: stopped")
