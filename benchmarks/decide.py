"""How fast and how safely streams are decided.

python -m benchmarks.decide speed            lines/s from a pipe (K = 10), rows/s from Parquet
python -m benchmarks.decide memory           peak memory while 10^7 lines pass through
python -m benchmarks.decide kill             kill -9 at 50 random points of 10^5 lines, then resume
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import howsure as hs
from howsure.serving.stream import decide_file

K = 10


def lines(n: int, seed: int = 0) -> bytes:
    """JSON lines with ids and ten logits."""
    z = np.random.default_rng(seed).normal(0, 3, (n, K)).round(4).tolist()
    return b"".join(
        b'{"id":"x%d","logits":%s}\n' % (i, str(row).encode()) for i, row in enumerate(z)
    )


def command(policy: Path, *args: str) -> list[str]:
    return [sys.executable, "-m", "howsure.cli", "decide", str(policy), *args]


def saved_policy(folder: Path) -> Path:
    path = folder / "policy.json"
    hs.save(hs.policies.Policy("max_prob", 0.9, k=K), path)
    return path


def through_pipe(policy: Path, block: bytes, repeats: int) -> tuple[float, float, list[int]]:
    """Wall and CPU seconds of a decide process, and its resident KB at ten moments."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command(policy, "-", "-q"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin is not None
    seen = []
    for i in range(repeats):
        process.stdin.write(block)
        if (i + 1) % max(1, repeats // 10) == 0:
            seen.append(resident(process.pid))
    process.stdin.close()
    _, _, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, seen


def resident(pid: int) -> int:
    """Resident memory in KB (Linux)."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(row for row in text.splitlines() if row.startswith("VmRSS")).split()[1])


def speed(folder: Path, n: int) -> None:
    policy = saved_policy(folder)
    block = lines(20_000)
    idle = through_pipe(policy, b"", 1)[1]
    wall, cpu, _ = through_pipe(policy, block, n // 20_000)
    print(
        f"JSON lines, K = {K}: {n / (cpu - idle):,.0f} lines per CPU second ({n:,} lines, {wall:.1f} s wall)"
    )
    header = ",".join(["id", *(f"logit_{i}" for i in range(K))]).encode() + b"\n"
    z = np.random.default_rng(0).normal(0, 3, (n, K)).round(4)
    csv = b"".join(
        b"x%d,%s\n" % (i, ",".join(map(repr, row)).encode()) for i, row in enumerate(z.tolist())
    )
    _, cpu, _ = through_pipe(policy, header + csv, 1)
    print(f"CSV lines, K = {K}: {n / (cpu - idle):,.0f} lines per CPU second")
    hs.write(hs.Predictions.from_logits(z.astype(np.float32)), folder / "z.parquet")
    before = time.process_time()
    decide_file(
        hs.policies.Policy("max_prob", 0.9).decide, folder / "z.parquet", folder / "out.jsonl"
    )
    print(
        f"Parquet, K = {K}: {n / (time.process_time() - before):,.0f} rows per CPU second, decisions written"
    )
    before = time.process_time()
    total = sum(
        len(hs.policies.Policy("max_prob", 0.9).decide(part))
        for part in hs.scan(folder / "z.parquet")
    )
    print(
        f"Parquet, K = {K}: {total / (time.process_time() - before):,.0f} rows per CPU second, decisions only counted"
    )


def memory(folder: Path, n: int) -> None:
    block = lines(20_000)
    wall, cpu, seen = through_pipe(saved_policy(folder), block, n // 20_000)
    print(
        f"{n:,} lines in {wall:.0f} s ({cpu:.0f} CPU s); resident MB at each tenth:",
        *(kb // 1024 for kb in seen),
    )


def kill(folder: Path, n: int, times: int = 50, seed: int = 0) -> None:
    """Fork a writer, kill it at a random moment, resume; the result must be the bytes of an
    undisturbed run.
    """
    source, whole, out = folder / "in.jsonl", folder / "whole.jsonl", folder / "out.jsonl"
    source.write_bytes(lines(n))
    decide = hs.policies.Policy("max_prob", 0.9).decide
    start = time.perf_counter()
    decide_file(decide, source, whole)
    length, draw, left = time.perf_counter() - start, random.Random(seed), []
    for _ in range(times):
        out.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            decide_file(decide, source, out)
            os._exit(0)
        time.sleep(draw.random() * length)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left.append(out.stat().st_size if out.exists() else 0)
        with out.open("ab") as file:  # a line that the kill tore, in every second run
            file.write(b'{"line":9999999,"id":"x1","deci' if len(left) % 2 else b"")
        decide_file(decide, source, out, resume=True)
        assert out.read_bytes() == whole.read_bytes(), "something was lost, doubled or moved"
    middle = sum(0 < size < whole.stat().st_size for size in left)
    print(
        f"{times} kills, {middle} of them in mid-file: every resumed output equals the undisturbed one byte for byte"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed, memory and safety of howsure decide.")
    parser.add_argument("what", choices=["speed", "memory", "kill"], nargs="?", default="speed")
    parser.add_argument("-n", type=int, help="number of lines")
    args = parser.parse_args()
    job, n = {"speed": (speed, 200_000), "memory": (memory, 10_000_000), "kill": (kill, 100_000)}[
        args.what
    ]
    with tempfile.TemporaryDirectory() as folder:
        job(Path(folder), args.n or n)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"(peak memory of this process {peak // 1024} MB)")


if __name__ == "__main__":
    main()
