"""`howsure serve` under load on 127.0.0.1, beside a bare starlette that answers the same bytes.

python -m benchmarks.service [seconds]       requests/s, median and p99 with 1, 16 and 256 connections;
                                             then hostile bodies: longest answer and peak memory

The machine is shared by the server and the client, so requests per CPU second of the server stand
beside those per second.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

import howsure as hs
from benchmarks.attack.bodies import BODIES, read_peak

CONNECTIONS = (1, 16, 256)
SERVE = [sys.executable, "-m", "howsure.cli", "serve", "policy.json", "--port", "0"]
BARE = """
import socket, sys
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from uvicorn import Config, Server

answer = sys.argv[1].encode()


async def decide(request):
    await request.body()
    return Response(answer, media_type="application/json")


app = Starlette(routes=[Route("/decide", decide, methods=["POST"])])
listener = socket.create_server(("127.0.0.1", 0))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(f"http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
config = Config(app, lifespan="off", ws="none", log_config=None, access_log=False, server_header=False)
Server(config).run(sockets=[listener])
"""


@contextmanager
def running(command: list[str], folder: str) -> Iterator[tuple[int, int]]:
    """The number of a server's process and its port."""
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            port = re.search(r"http://127.0.0.1:(\d+)", line)
            assert port, line
            yield process.pid, int(port[1])
        finally:  # else a mistake inside the block waits for the server for ever
            process.terminate()


def measure_cpu(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_request(number: int, rows: int) -> bytes:
    probs = [0.91, *[0.01] * 9]
    body: object = {"id": number, "probs": probs}
    if rows > 1:
        body = [{"id": number * rows + i, "probs": probs} for i in range(rows)]
    text = json.dumps(body).encode()
    head = f"POST /decide HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


async def ask(
    port: int, ends: float, numbers: itertools.count[int], rows: int, took: list[float]
) -> None:
    """One connection that asks again as soon as it is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < ends:
        begun = time.perf_counter()
        writer.write(make_request(next(numbers), rows))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = re.search(rb"content-length: (\d+)", head)
        assert length
        await reader.readexactly(int(length[1]))
        took.append(time.perf_counter() - begun)
    writer.close()


def load(pid: int, port: int, connections: int, rows: int, seconds: float) -> str:
    """A line of the table."""

    async def ask_all() -> list[float]:
        took: list[float] = []
        ends = time.perf_counter() + seconds
        numbers = itertools.count(time.time_ns())  # ids that were not used before
        await asyncio.gather(*(ask(port, ends, numbers, rows, took) for _ in range(connections)))
        return took

    cpu, begun = measure_cpu(pid), time.perf_counter()
    took = np.sort(asyncio.run(ask_all()))
    cpu, wall = measure_cpu(pid) - cpu, time.perf_counter() - begun
    return (
        f"{connections:4d} connections, {rows:4d} rows: {len(took) / wall:7.0f} requests/s, "
        f"{len(took) / cpu:6.0f} per CPU s, median {np.median(took) * 1e3:6.1f} ms, "
        f"p99 {np.quantile(took, 0.99) * 1e3:6.1f} ms"
    )


def sync_alone(folder: str, seconds: float) -> str:
    """How often a line can be added and synced here: what one connection cannot exceed."""
    with Path(folder, "synced").open("ab", buffering=0) as file:
        count, ends = 0, time.perf_counter() + seconds
        while time.perf_counter() < ends:
            file.write(b"x" * 130 + b"\n")
            os.fsync(file.fileno())
            count += 1
    return f"a line added and synced, nothing else: {count / seconds:.0f} per second"


def refuse_hostile(folder: str) -> str:
    """Every hostile body twice: what was answered, how long the longest took, and the memory."""
    with running(SERVE, folder) as (pid, port):
        before, statuses, longest = read_peak(pid), set[int](), 0.0
        for _ in range(2):
            for body in BODIES.values():
                begun = time.perf_counter()
                connection = HTTPConnection("127.0.0.1", port)
                connection.request("POST", "/decide", body)
                statuses.add(connection.getresponse().status)
                connection.close()
                longest = max(longest, time.perf_counter() - begun)
        return (
            f"{len(BODIES)} hostile bodies twice: status {sorted(statuses)}, longest "
            f"{longest:.1f} s, peak {before} MB before and {read_peak(pid)} MB after"
        )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    with tempfile.TemporaryDirectory() as folder:
        hs.save(hs.policies.Policy("max_prob", 0.8, k=10), Path(folder, "policy.json"))
        line = '{"line":100000,"id":1700000000000000000,"decision":"accept","prediction":0,'
        line += '"confidence":0.91,"score":0.91,"policy":"d88611938eaf"}'
        print(sync_alone(folder, min(2.0, seconds)))
        commands = {
            "bare starlette": [sys.executable, "-c", BARE, line],
            "howsure serve": SERVE,
            "howsure serve --commit-ms 2": [*SERVE, "--commit-ms", "2"],
        }
        for name, command in commands.items():
            print(name)
            with running(command, folder) as (pid, port):
                for connections in CONNECTIONS:
                    print(" ", load(pid, port, connections, 1, seconds), flush=True)
                if "serve" in name:
                    print(" ", load(pid, port, 16, 100, seconds), flush=True)
        lines = Path(folder, "decisions.jsonl").read_bytes().splitlines()
        ids = {json.loads(line)["id"] for line in lines}
        print(f"{len(lines):,} lines in the journal, {len(ids):,} ids")
        print(refuse_hostile(folder))


if __name__ == "__main__":
    main()
