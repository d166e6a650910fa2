"""A port that is no scheduler is refused within the stated time, a worker of another version by name."""

import socket
import threading
from collections.abc import Iterator

import pytest

from howsure import InputError, workers
from howsure._core.version import __version__
from howsure.scale import summaries
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


def test_a_port_that_is_no_scheduler_is_refused(port: int) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="is not a Dask scheduler"), workers.connected(f"tcp://127.0.0.1:{port}"):
        pass


def test_a_worker_of_another_version_is_refused_by_name() -> None:
    part = Partition(0, 0, "a.npz", 1, "", 1)
    with pytest.raises(InputError, match=f"a worker runs howsure {__version__}, the driver 9.9.9; install the same"):
        summaries.summarised(part, Settings(version="9.9.9"))
