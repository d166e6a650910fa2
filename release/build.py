"""Build the wheel and the sdist twice, compare the bytes, and check what is inside.

`python -m release.build` leaves both in dist/, with a CycloneDX bill of materials of the wheel in
an empty environment.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from howsure._core.version import __version__

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
IN_SDIST = [
    "pyproject.toml", "PKG-INFO", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "action.yml",
    "src/howsure/__init__.py", "tests/conftest.py", "docs/contract.md", "benchmarks/__main__.py", "release/build.py",
    "studies/predictions/nuclei_unet.npz", ".github/workflows/test.yml",
]  # fmt: skip
OURS = ("howsure/", f"howsure-{__version__}.dist-info/")


def run(*command: object, cwd: Path = ROOT) -> None:
    """Run a command; a failure ends the check."""
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def built(folder: Path) -> dict[str, str]:
    """Wheel and sdist, made from nothing in this folder: their names and hashes."""
    run(sys.executable, "-m", "build", "--outdir", folder)
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("howsure-*"))
    }


def reproducible() -> list[Path]:
    """Both files, built twice with the same bytes."""
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("howsure-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as again:
        first, second = built(DIST), built(Path(again))
    if first != second:
        raise SystemExit(f"two builds differ: {first} and {second}")
    for name, digest in first.items():
        print(f"{name}: {(DIST / name).stat().st_size:,} bytes, twice sha256 {digest}")
    return [DIST / name for name in first]


def check_wheel(path: Path) -> None:
    """The wheel holds every source file of the package and nothing else."""
    with zipfile.ZipFile(path) as file:
        names = set(file.namelist())
        text = file.read(f"howsure-{__version__}.dist-info/METADATA").decode()
    if strangers := [name for name in names if not name.startswith(OURS)]:
        raise SystemExit(f"{path.name} holds {strangers}")
    source = ROOT / "src"
    there = {
        str(p.relative_to(source))
        for p in source.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    if missing := there - names:
        raise SystemExit(f"{path.name} lacks {sorted(missing)}")
    if f"\nVersion: {__version__}\n" not in text:
        raise SystemExit(f"{path.name} is not version {__version__}")
    print(f"{path.name}: {len(names)} files, all of the package and nothing else")


def check_sdist(path: Path) -> None:
    """The sdist holds what its tests need, and no file that git would ignore."""
    with tarfile.open(path) as file:
        names = {name.split("/", 1)[1] for name in file.getnames() if "/" in name}
    if missing := [name for name in IN_SDIST if name not in names]:
        raise SystemExit(f"{path.name} lacks {missing}")
    if strangers := [name for name in names if "__pycache__" in name or ".venv" in name]:
        raise SystemExit(f"{path.name} holds {strangers[:3]}")
    print(f"{path.name}: {len(names)} files")


def bill_of_materials(wheel: Path) -> Path:
    """What an installed howsure consists of, as CycloneDX JSON."""
    out = DIST / f"howsure-{__version__}.cdx.json"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", wheel)
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
        # Twice the same bytes: no serial number and no time of making.
        run(
            sys.executable,
            "-m",
            "cyclonedx_py",
            "environment",
            "--output-reproducible",
            "-o",
            out,
            python,
        )
    found = {part["name"]: part["version"] for part in json.loads(out.read_text())["components"]}
    print(
        f"{out.name}: {', '.join(f'{name} {version}' for name, version in sorted(found.items()))}"
    )
    if not {"howsure", "numpy", "scipy", "click", "rich", "jinja2"} <= {
        name.lower() for name in found
    }:
        raise SystemExit(f"{out.name} does not name every dependency")
    return out


def main() -> None:
    both = reproducible()
    run(sys.executable, "-m", "twine", "check", "--strict", *both)
    print("twine check --strict: passed")
    for path in both:
        check_wheel(path) if path.suffix == ".whl" else check_sdist(path)
    bill_of_materials(next(path for path in both if path.suffix == ".whl"))


if __name__ == "__main__":
    main()
