"""Install the built wheel into empty environments, Python by dependency versions, and run the tests
of the sdist there.

`python -m release.matrix [3.11 3.12 …] [--kinds lowest,newest] [--rooms tests/core,tests/cli,…]
[--folder FOLDER]` takes the wheel and the sdist in dist/ (make them with `release.build`), unpacks
the sdist far from the repository, and prints a table, and one by rooms that says why nothing of a
room ran. A Python that this machine lacks is a row that says so. Every finished room is a line in
FOLDER/results-….jsonl; a second call with the same sdist goes on behind it, and runs again what
failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from release.build import DIST

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
KINDS = ["lowest", "newest"]
CODE = "src/howsure"  # the examples in the docstrings
HEAD = "| Python | dependencies | installed | rooms | tests |\n|---|---|---|---|---|"


class Ran(TypedDict):
    """One room of tests in one environment."""

    python: str
    kind: str
    room: str
    installed: str
    counts: dict[str, int]
    failed: list[str]
    reasons: dict[str, int]  # why tests were skipped


def found(version: str) -> str | None:
    """The interpreter of this version that really starts, or None."""
    for name in (
        f"python{version}",
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
    ):
        if (path := shutil.which(name)) and subprocess.run(
            [path, "-c", ""], capture_output=True
        ).returncode == 0:
            return path
    return None


def lowest(wheel: Path, version: str) -> list[str]:
    """The lower bounds that hold for this Python, as pins: `numpy==2.1`."""
    from packaging.requirements import Requirement

    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(wheel, folder, "zip")
        text = next(Path(folder).glob("*.dist-info/METADATA")).read_text()
    pins: dict[str, str] = {}
    for line in re.findall(r"(?m)^Requires-Dist: (.*)$", text):
        need = Requirement(line)
        here = {"python_version": version, "extra": ""}
        if need.marker is None or need.marker.evaluate(here):
            bound = next(s.version for s in need.specifier if s.operator == ">=")
            pins[need.name] = max(
                pins.get(need.name, "0"), bound, key=lambda v: [int(x) for x in v.split(".")]
            )
    return [f"{name}=={bound}" for name, bound in pins.items()]


def rooms_of(source: Path) -> list[str]:
    """Every folder and every file of tests, and the examples in the docstrings."""
    found = [
        p
        for p in (source / "tests").iterdir()
        if p.name.startswith("test_") or any(p.glob("test_*.py"))
    ]
    return [*sorted(f"tests/{p.name}" for p in found), CODE]


def installed(interpreter: str, wheel: Path, pins: list[str], folder: Path) -> str:
    """An environment with the wheel and what its tests need; what was installed, or why it cannot
    be.
    """
    inside, note = folder / "bin" / "python", folder / "installed.txt"
    if note.exists():
        return note.read_text()
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([interpreter, "-m", "venv", folder], check=True)
    install = [inside, "-m", "pip", "install", "--quiet", f"{wheel}[test]", *pins]
    if (done := subprocess.run(install, capture_output=True, text=True)).returncode:
        raise SystemExit(f"{folder.name} cannot be installed: {done.stderr}")
    subprocess.run([inside, "-m", "howsure", "demo", "--quiet"], check=True, cwd=folder)
    code = "from importlib.metadata import version as v; " + (
        "print(*(f'{n} {v(n)}' for n in ('numpy', 'scipy', 'click', 'rich', 'jinja2')), sep=', ')"
    )
    versions = subprocess.run(
        [inside, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    note.write_text(versions)
    return versions


def tested(
    environment: Path, source: Path, room: str
) -> tuple[dict[str, int], list[str], dict[str, int]]:
    """How many tests of a room passed, were skipped or failed; which failed; why others were
    skipped.
    """
    test = [
        environment / "bin" / "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-header",
        room,
    ]
    flags = {"PYTEST_ADDOPTS": "-n 2", **os.environ, "COLUMNS": "1000"}
    flags["PYTHONPATH"] = str(source / "src") if room == CODE else ""
    ran = subprocess.run(test, cwd=source, capture_output=True, text=True, env=flags)
    lines = ran.stdout.strip().splitlines() or [""]
    counts = {
        kind: int(n) for n, kind in re.findall(r"(\d+) (passed|skipped|failed|error)", lines[-1])
    }
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    if (
        ran.returncode not in (0, 5) and not failed
    ):  # 5: no test was collected, for all of it needs an extra
        failed = [f"{room}: pytest ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-500:]}"]
    return counts, failed, reasons(lines)


def reasons(lines: list[str]) -> dict[str, int]:
    """Why tests were skipped, from pytest's summary, and how many for each reason."""
    whys = Counter[str]()
    for n, why in re.findall(r"(?m)^SKIPPED \[(\d+)\] [^:]+(?::\d+)?: (.*)$", "\n".join(lines)):
        whys[why] += int(n)
    return dict(whys.most_common())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def unpacked(sdist: Path, source: Path) -> None:
    """The sdist, far from the repository."""
    if not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as empty, tarfile.open(sdist) as file:
            file.extractall(empty, filter="data")
            shutil.move(next(Path(empty).iterdir()), source)


def recorded(results: Path) -> dict[tuple[str, str, str], Ran]:
    """The rooms that an earlier call finished without a failure."""
    lines = results.read_text().splitlines() if results.exists() else []
    before: list[Ran] = [json.loads(line) for line in lines]
    return {
        (room["python"], room["kind"], room["room"]): room for room in before if not room["failed"]
    }


def told(counts: Counter[str]) -> str:
    return ", ".join(f"{n:,} {what}" for what, n in sorted(counts.items())) or "none collected"


def row(column: list[Ran]) -> str:
    """All rooms of one environment, as a line of the table."""
    total = Counter[str]()
    for room in column:
        total.update(room["counts"])
    wrong = [line for room in column for line in room["failed"]]
    first = column[0]
    cells = (
        first["python"],
        first["kind"],
        first["installed"],
        str(len(column)),
        "; ".join([told(total), *wrong]),
    )
    return f"| {' | '.join(cells)} |"


def good(column: list[Ran]) -> bool:
    return any(room["counts"].get("passed") for room in column) and not any(
        room["failed"] for room in column
    )


def by_room(columns: list[list[Ran]]) -> Iterator[str]:
    """Each room in every environment, and why nothing of a room ran."""
    heads = [f"{column[0]['python']} {column[0]['kind']}" for column in columns]
    yield f"| room | {' | '.join(heads)} | why left out |\n|---|{'---|' * len(heads)}---|"
    for same in zip(*columns, strict=True):
        cells = [told(Counter(room["counts"])) for room in same]
        whys = {why for room in same if not room["counts"].get("passed") for why in room["reasons"]}
        yield f"| {same[0]['room']} | {' | '.join(cells)} | {'; '.join(sorted(whys))} |"


def ran(
    python: str, kind: str, wheel: Path, source: Path, results: Path, rooms: list[str]
) -> list[Ran]:
    """Every room in one environment; those of an earlier call are taken from the results."""
    interpreter, environment = found(python), results.parent / f"{python}-{kind}-{digest(wheel)}"
    versions = installed(
        str(interpreter), wheel, lowest(wheel, python) if kind == "lowest" else [], environment
    )
    column, before = list[Ran](), recorded(results)
    for room in rooms:
        if (python, kind, room) not in before:
            counts, failed, why = tested(environment, source, room)
            key = {"python": python, "kind": kind, "room": room, "installed": versions}
            before[python, kind, room] = Ran(**key, counts=counts, failed=failed, reasons=why)
            with results.open("a") as file:
                file.write(json.dumps(before[python, kind, room]) + "\n")
        column.append(before[python, kind, room])
    return column


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("pythons", nargs="*", default=PYTHONS)
    options.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    options.add_argument("--rooms", type=lambda text: text.split(","))
    options.add_argument("--folder", type=Path)
    asked = options.parse_args()
    wheel, sdist = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    folder: Path = asked.folder or Path(tempfile.gettempdir()) / "howsure-matrix"
    source, results = folder / digest(sdist), folder / f"results-{digest(sdist)}.jsonl"
    unpacked(sdist, source)
    rooms, columns = asked.rooms or rooms_of(source), list[list[Ran]]()
    print(f"results: {results}\n\n{HEAD}", flush=True)
    for version in asked.pythons:
        if not found(version):
            print(
                f"| {version} | – | – | – | not run: no Python {version} on this machine |",
                flush=True,
            )
            continue
        for kind in asked.kinds:
            columns.append(ran(version, kind, wheel, source, results, rooms))
            print(row(columns[-1]), flush=True)
    print("", *by_room(columns), sep="\n")
    sys.exit(not all(map(good, columns)))


if __name__ == "__main__":
    main()
