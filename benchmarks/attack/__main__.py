"""All attacks: a table of what was tried and what failed, with the largest memory and the longest
time.

    python -m benchmarks.attack                   everything, mutations for five minutes
    python -m benchmarks.attack --minutes 600 --state fuzz.json --only 7
                                                  goes on until 10⁶ mutations are done

With every extra installed; tests of an area that need more (notebooks) count where they can run.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import howsure as hs
from benchmarks import service
from benchmarks.attack import counts, fuzz, numbers, programs, states
from benchmarks.attack.bodies import BODIES, read_peak
from benchmarks.attack.bombs import BOMBS
from benchmarks.attack.child import run

ROOT = Path(__file__).resolve().parents[2]
MEGABYTES = 600
COUNT_TESTS = ("cli/test_sql.py", "formats/test_count_tables.py")
DECISION_LOG_TESTS = ("formats/logs/test_broken_logs.py", "formats/logs/test_decisions.py")


@dataclass
class Row:
    """One area."""

    area: str
    tried: int = 0
    failed: int = 0
    megabytes: int = 0
    seconds: float = 0.0
    faults: tuple[str, ...] = ()


def bombs() -> Row:
    row = Row("1 small files, endless input")
    for bomb in BOMBS:
        if find_spec(bomb.package) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = bomb.make(Path(folder))
            for command in ("doctor", "evaluate"):
                found = run([command, path])
                fault = found.fault(MEGABYTES)
                row.tried += 1
                row.failed += bool(fault)
                row.megabytes, row.seconds = (
                    max(row.megabytes, found.megabytes),
                    max(row.seconds, found.seconds),
                )
                row.faults += (f"{bomb.name} {command}: {fault}",) if fault else ()
    return added(row, tests(row.area, "attack/test_endless.py"))


def added(row: Row, other: Row) -> Row:
    faults = (*row.faults, *other.faults)
    seconds = max(row.seconds, other.seconds)
    return Row(
        row.area, row.tried + other.tried, row.failed + other.failed, row.megabytes, seconds, faults
    )


def tests(area: str, *paths: str) -> Row:
    """Tests of an area, each one a try."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        call = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
        ]
        subprocess.run(
            [*call, *(str(ROOT / "tests" / p) for p in paths)],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        cases = ElementTree.parse(report).getroot().iter("testcase")
        found = [c for c in cases if c.find("skipped") is None]
    bad = [c for c in found if c.find("failure") is not None or c.find("error") is not None]
    longest = max((float(c.get("time", 0)) for c in found), default=0.0)
    return Row(area, len(found), len(bad), 0, longest, tuple(str(c.get("name")) for c in bad))


def tampered(number: int = 3000) -> Row:
    row = Row("4 tampered states")
    with tempfile.TemporaryDirectory() as folder:
        states.large(Path(folder))  # written once, before the time is taken
        made: list[Callable[[], str]] = [
            partial(states.one, i, Path(folder)) for i in range(number)
        ]
        for i, attack in enumerate([*made, partial(states.large, Path(folder))]):
            start = time.perf_counter()
            found = attack()
            row.seconds = max(row.seconds, time.perf_counter() - start)
            row.tried += 1
            if found.startswith("unforeseen"):
                row.failed += 1
                row.faults += (f"{i} {found}",)
    return added(row, tests(row.area, "attack/test_states.py"))


def odd_numbers(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """Numbers at the edge through every function."""
    for name, call in chain(numbers.list_bounds(), numbers.list_calls(folder)):
        yield name, partial(numbers.run, call)


def services() -> Row:
    """Hostile bodies to `howsure serve` on 127.0.0.1."""
    row = Row("8 bodies of requests")
    if find_spec("uvicorn") is None:
        return row
    with tempfile.TemporaryDirectory() as folder:
        hs.save(hs.policies.Policy("max_prob", 0.8), Path(folder, "policy.json"))
        with service.running(service.SERVE, folder) as (pid, port):
            for name, body in BODIES.items():
                start = time.perf_counter()
                connection = HTTPConnection("127.0.0.1", port)
                connection.request("POST", "/decide", body)
                status = connection.getresponse().status
                connection.close()
                row.seconds = max(row.seconds, time.perf_counter() - start)
                row.tried += 1
                if status != 400:
                    row.failed += 1
                    row.faults += (f"{name}: {status}",)
            row.megabytes = read_peak(pid)
    return added(row, tests(row.area, "serving/test_service.py"))


def exported(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """Hostile names in exported programs, compiled and run."""
    for name, target in programs.list_attacks():
        yield f"{name[:40]!r} {target}", partial(programs.attack, name, target, folder)


def try_each(area: str, attacks: Callable[[Path], Iterable[tuple[str, Callable[[], str]]]]) -> Row:
    """Attacks that say what went wrong, in this process."""
    row = Row(area)
    with tempfile.TemporaryDirectory() as folder:
        for name, attack in attacks(Path(folder)):
            start = time.perf_counter()
            fault = attack()
            row.seconds = max(row.seconds, time.perf_counter() - start)
            row.tried += 1
            if fault:
                row.failed += 1
                row.faults += (f"{name}: {fault}",)
    row.megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return row


def widgets() -> Row:
    """The widget of a notebook; nothing where notebooks are not installed."""
    area = "n notebook widget"
    if find_spec("anywidget") is None:
        return Row(area)
    return tests(area, "notebooks/test_notebooks.py")


def mutations(minutes: float, state: Path | None, most: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        found = fuzz.run(minutes, state or Path(folder) / "fuzz.json", most)
    tried = sum(found["counts"].values())
    return Row(
        "7 mutations",
        tried,
        len(found["failures"]),
        found["megabytes"],
        found["longest"],
        tuple(found["failures"]),
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="of mutations")
    parser.add_argument("--most", type=int, default=1_000_000, help="mutations")
    parser.add_argument("--state", type=Path, help="file from which mutations go on")
    parser.add_argument("--only", default="12345689sdn7", help="areas, e.g. 47")
    args = parser.parse_args()
    areas: dict[str, Callable[[], Row]] = {
        "1": bombs,
        "2": lambda: tests("2 escaped outputs", "attack/test_sinks.py"),
        "3": lambda: tests(
            "3 streams, kills",
            "serving",
            "attack/test_faults.py",
            "attack/test_ordinary.py",
            "attack/test_clock.py",
        ),
        "4": tampered,
        "5": lambda: added(
            try_each("5 numbers at the edge", odd_numbers), tests("", "attack/test_edges.py")
        ),
        "6": lambda: tests("6 cluster", "attack/test_cluster.py", "scale/test_cluster.py"),
        "8": services,
        "9": lambda: try_each("9 exports: C, JavaScript, SQL", exported),
        "s": lambda: added(
            try_each("s queries, count tables", counts.list_attacks), tests("", *COUNT_TESTS)
        ),
        "n": widgets,
        "d": lambda: tests("d decision logs", *DECISION_LOG_TESTS),
        "7": lambda: mutations(args.minutes, args.state, args.most),
    }
    print(f"{'area':<32}{'tried':>9}{'failed':>8}{'peak MB':>9}{'longest s':>11}", flush=True)
    faults: list[str] = []
    for key in args.only:
        row = areas[key]()
        peak = f"{row.megabytes:,}" if row.megabytes else "-"
        print(
            f"{row.area:<32}{row.tried:>9,}{row.failed:>8,}{peak:>9}{row.seconds:>11.1f}",
            flush=True,
        )
        faults += [f"{row.area}: {fault}" for fault in row.faults]
    print("\n".join(faults[:50]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
