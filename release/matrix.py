"""Install the built wheel into empty environments, Python by dependency versions, and run the core tests there.

`python -m release.matrix [3.11 3.12 …] [--rooms core,cli,…]` takes the wheel and the sdist in dist/ (make them with
`release.build`), unpacks the sdist far from the repository, and prints a table. A Python that this machine lacks is a
row that says so.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from release.build import DIST

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
# The rooms that every user's numbers go through; without the networks, the clusters and the browser.
CORE = [
    "core", "tallies", "predictions", "scores", "metrics", "curves", "calibrators", "policies", "formats", "report",
    "render", "cli", "laws", "test_bad_input.py", "test_binning.py", "test_bounds.py", "test_compatibility.py",
    "test_degenerate.py", "test_losses.py",
]  # fmt: skip


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


def tried(interpreter: str, wheel: Path, sdist: Path, pins: list[str], rooms: list[str]) -> tuple[str, str]:
    """What was installed, and how the tests went."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([interpreter, "-m", "venv", f"{folder}/venv"], check=True)
        with tarfile.open(sdist) as file:
            file.extractall(folder, filter="data")
        there = next(path for path in Path(folder).iterdir() if path.name.startswith("howsure-"))
        inside = f"{folder}/venv/bin/python"
        install = [inside, "-m", "pip", "install", "--quiet", f"{wheel}[test]", *pins]
        if (done := subprocess.run(install, capture_output=True, text=True)).returncode:
            return "–", "cannot be installed: " + done.stderr.strip().splitlines()[-1]
        code = "import numpy, scipy, click, rich, jinja2; from importlib.metadata import version as v; " + (
            "print(*(f'{n} {v(n)}' for n in ('numpy', 'scipy', 'click', 'rich', 'jinja2')), sep=', ')"
        )
        versions = subprocess.run([inside, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run([inside, "-m", "howsure", "demo", "--quiet"], check=True, cwd=folder)
        test = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"]
        paths = [f"tests/{name}" for name in rooms if (there / "tests" / name).exists()]
        flags = {"PYTEST_ADDOPTS": "-n 2", **os.environ}
        ran = subprocess.run([*test, *paths], cwd=there, capture_output=True, text=True, env=flags)
        lines = ran.stdout.strip().splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return versions, "; ".join([re.sub(r"^=+ | =+$", "", lines[-1]), *failed])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("pythons", nargs="*")
    options.add_argument("--rooms", type=lambda text: text.split(","), default=CORE)
    asked = options.parse_args()
    wheel, sdist = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    bad = False
    print("| Python | dependencies | installed | core tests |\n|---|---|---|---|", flush=True)
    for version in asked.pythons or PYTHONS:
        interpreter = python(version)
        if interpreter is None:
            print(f"| {version} | – | – | not run: no Python {version} on this machine |", flush=True)
            continue
        for kind in ("lowest", "newest"):
            pins = lowest(wheel, version) if kind == "lowest" else []
            versions, result = tried(interpreter, wheel, sdist, pins, asked.rooms)
            print(f"| {version} | {kind} | {versions} | {result} |", flush=True)
            bad |= "passed" not in result or "failed" in result or "error" in result
    sys.exit(bad)


if __name__ == "__main__":
    main()
