"""Refuse large files: `python -m release.sizes [FILE …]`, without names every file that git tracks.

Whoever clones the repository pays for each byte ever committed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST_FILE_BYTES = 400_000
# Tests of the studies limit the sum of these.
EXEMPT_FOLDERS = (Path("studies/predictions"), Path("studies/kept"))


def main(argv: list[str]) -> int:
    names = argv or list_tracked_files()
    large: list[str] = []
    for name in names:
        path = ROOT / name
        exempt = any(path.is_relative_to(ROOT / folder) for folder in EXEMPT_FOLDERS)
        if not exempt and path.is_file() and path.stat().st_size > LARGEST_FILE_BYTES:
            large.append(f"{name}: {path.stat().st_size:,} bytes, at most {LARGEST_FILE_BYTES:,}")
    for line in large:
        print(line, file=sys.stderr)
    return min(len(large), 1)


def list_tracked_files() -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return listing.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
