"""The changelog from its fragments: one file `changes/<topic>.md` of bullet lines for each thing
that users notice.

`python -m release.changes` prints the section of the next release; `--release` dates it, puts it
into CHANGELOG.md and removes the fragments, so that no bullet stands in two places.
"""

from __future__ import annotations

import argparse
import datetime
import re
from pathlib import Path

from howsure._core.version import __version__

ROOT = Path(__file__).parents[1]
NEXT = re.sub(r"\.?(dev|a|b|rc)\d*$", "", __version__)


def list_fragments(folder: Path = ROOT / "changes") -> list[Path]:
    """The fragments by name; raise where a line is neither a bullet nor goes on with one."""
    paths = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line and not line.startswith(("- ", "  ")):
                raise SystemExit(
                    f"{path.name}:{number} is no bullet line ('- …', continued by two blanks): {line!r}"
                )
    return paths


def build_section(paths: list[Path], date: str = "unreleased") -> str:
    """The section of the next release: its title and the bullets."""
    lines: list[str] = []
    for path in paths:
        lines += [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    return "\n".join([f"## {NEXT}, {date}", "", *lines, ""])


def insert_section(changelog: str, section: str) -> str:
    """The changelog with this section above the others."""
    head, *older = re.split(r"(?m)^(?=## )", changelog)
    return head + "\n".join(part.strip() + "\n" for part in [section, *older])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", action="store_true")
    release = parser.parse_args().release
    paths = list_fragments()
    if not release:
        print(build_section(paths))
        return
    section = build_section(paths, datetime.date.today().isoformat())
    changelog = ROOT / "CHANGELOG.md"
    text = insert_section(changelog.read_text(encoding="utf-8"), section)
    changelog.write_text(text, encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    main()
