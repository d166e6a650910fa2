"""Install the built wheel into empty environments, Python by dependency versions, and run the tests of the sdist there.

`python -m release.matrix [3.11 3.12 …] [--kinds lowest,newest] [--rooms tests/core,tests/cli,…] [--folder FOLDER]`
takes the wheel and the sdist in dist/ (make them with `release.build`), unpacks the sdist far from the repository, and
prints a table. A Python that this machine lacks is a row that says so. Every finished room is a line in
FOLDER/results-….jsonl; a second call with the same sdist goes on behind it, and runs again what failed.
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
from pathlib import Path
from typing import TypedDict

from release.build import DIST

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
KINDS = ["lowest", "newest"]
CODE = "src/howsure"  # the examples in the docstrings


class Ran(TypedDict):
    """One room of tests in one environment."""

    python: str
    kind: str
    room: str
    installed: str
    counts: dict[str, int]
    failed: list[str]


def python(version: str) -> str | None:
    """The interpreter of this version that really starts, or None."""
    for name in (f"python{version}", *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))):
        if (path := shutil.which(name)) and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
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
            pins[need.name] = max(pins.get(need.name, "0"), bound, key=lambda v: [int(x) for x in v.split(".")])
    return [f"{name}=={bound}" for name, bound in pins.items()]


def rooms_of(source: Path) -> list[str]:
    """Every folder and every file of tests, and the examples in the docstrings."""
    found = [p for p in (source / "tests").iterdir() if p.name.startswith("test_") or any(p.glob("test_*.py"))]
    return [*sorted(f"tests/{p.name}" for p in found), CODE]


def installed(interpreter: str, wheel: Path, pins: list[str], folder: Path) -> str:
    """An environment with the wheel and what its tests need; what was installed, or why it cannot be."""
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
    versions = subprocess.run([inside, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    note.write_text(versions)
    return versions


def tested(environment: Path, source: Path, room: str) -> tuple[dict[str, int], list[str]]:
    """How many tests of a room passed, were skipped or failed, and the lines that name the failed ones."""
    test = [environment / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", room]
    flags = {"PYTEST_ADDOPTS": "-n 2", **os.environ}
    flags["PYTHONPATH"] = str(source / "src") if room == CODE else ""
    ran = subprocess.run(test, cwd=source, capture_output=True, text=True, env=flags)
    lines = ran.stdout.strip().splitlines() or [""]
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (passed|skipped|failed|error)", lines[-1])}
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    if ran.returncode not in (0, 5) and not failed:  # 5: no test was collected, for all of it needs an extra
        failed = [f"{room}: pytest ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-500:]}"]
    return counts, failed


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("pythons", nargs="*")
    options.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    options.add_argument("--rooms", type=lambda text: text.split(","))
    options.add_argument("--folder", type=Path)
    asked = options.parse_args()
    wheel, sdist = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()[:12]
    folder: Path = asked.folder or Path(tempfile.gettempdir()) / f"howsure-matrix-{digest}"
    source, results = folder / digest, folder / f"results-{digest}.jsonl"
    if not source.exists():
        with tempfile.TemporaryDirectory() as empty, tarfile.open(sdist) as file:
            file.extractall(empty, filter="data")
            folder.mkdir(parents=True, exist_ok=True)
            shutil.move(next(Path(empty).iterdir()), source)
    before: list[Ran] = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {(ran["python"], ran["kind"], ran["room"]): ran for ran in before if not ran["failed"]}
    bad = False
    print(f"results: {results}\n\n| Python | dependencies | installed | tests |\n|---|---|---|---|", flush=True)
    for version in asked.pythons or PYTHONS:
        interpreter = python(version)
        if interpreter is None:
            print(f"| {version} | – | – | not run: no Python {version} on this machine |", flush=True)
            continue
        for kind in asked.kinds:
            environment = folder / f"{version}-{kind}-{digest}"
            pins = lowest(wheel, version) if kind == "lowest" else []
            versions = installed(interpreter, wheel, pins, environment)
            total, wrong = Counter[str](), list[str]()
            for room in asked.rooms or rooms_of(source):
                ran = done.get((version, kind, room))
                if ran is None:
                    counts, failed = tested(environment, source, room)
                    ran = Ran(python=version, kind=kind, room=room, installed=versions, counts=counts, failed=failed)
                    with results.open("a") as file:
                        file.write(json.dumps(ran) + "\n")
                total.update(ran["counts"])
                wrong += ran["failed"]
            told = ", ".join(f"{n:,} {what}" for what, n in sorted(total.items()))
            print(f"| {version} | {kind} | {versions} | {'; '.join([told, *wrong])} |", flush=True)
            bad |= bool(wrong) or not total["passed"]
    sys.exit(bad)


if __name__ == "__main__":
    main()
