"""A port that is no scheduler is refused within the stated time, a worker of another version by
name.
"""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import howsure as hs
from howsure import InputError, Predictions, workers
from howsure._core.version import __version__
from howsure.scale import parts
from howsure.scale.parts import Partition, Settings


@pytest.fixture(params=["silent", "closing", "talking"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """A server that says nothing, hangs up, or speaks another language."""
    server = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            if request.param == "closing":
                client.close()
                continue
            if request.param == "talking":
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 50)
            held.append(client)

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.close()
    for client in held:
        client.close()


def test_a_port_that_is_no_scheduler_is_refused(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 1.0)
    with (
        pytest.raises(InputError, match="is not a Dask scheduler"),
        workers.connected(f"tcp://127.0.0.1:{port}"),
    ):
        pass


class LostOnce:
    """A future, client and queue in one: done, then lost with its worker, then done again."""

    key = "a"
    loop = None

    def __init__(self) -> None:
        self.status = "lost"
        self.waiting = [self]

    def result(self) -> int:
        assert self.status == "finished"
        return 7

    def submit(self, f: object, item: object, **options: object) -> "LostOnce":
        return self

    def cancel(self, futures: list["LostOnce"], *, force: bool) -> None:
        pass

    def count(self) -> int:
        return len(self.waiting)

    def has_ready(self) -> bool:
        return True

    def next_batch(self, block: bool) -> list["LostOnce"]:
        batch, self.waiting = self.waiting, []
        return batch

    def add(self, future: "LostOnce") -> None:
        self.status = "finished"
        self.waiting.append(future)


def test_a_result_that_is_lost_with_its_worker_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster: Any = LostOnce()
    monkeypatch.setattr(workers._Tasks, "queue_completed", lambda *_: cluster)
    assert list(workers.Cluster(cluster)(abs, [-7])) == [7]


def test_a_worker_of_another_version_is_refused_by_name() -> None:
    part = Partition(0, 0, "a.npz", 1, "", 1)
    with pytest.raises(
        InputError, match=f"a worker runs howsure {__version__}, the driver 9.9.9; install the same"
    ):
        parts.load_or_summarise(part, Settings(version="9.9.9"))


@pytest.mark.slow
def test_a_worker_process_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    """A scheduler and a worker as processes of their own; in the worker howsure is of another
    version.
    """
    pytest.importorskip("distributed")
    from benchmarks.killed_workers import Cluster

    older = tmp_path / "older.py"
    older.write_text(
        "import howsure.scale.parts as s\n\ndef dask_setup(worker):\n    s.__version__ = '0.0.9'\n"
    )
    hs.write(Predictions.from_confidence([0.9, 0.6], [1, 0]), tmp_path / "a.npz")
    message = f"a worker runs howsure 0.0.9, the driver {__version__}; install the same"
    with Cluster(1, preload=str(older)) as running:
        with workers.connected(running.address) as mapped, pytest.raises(InputError, match=message):
            hs.evaluate_files([tmp_path / "a.npz"], map=mapped)
        call = [
            sys.executable,
            "-m",
            "howsure.cli",
            "evaluate",
            str(tmp_path / "a.npz"),
            "--scheduler",
            running.address,
        ]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
