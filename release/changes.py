"""The changelog from its fragments: one file `changes/<topic>.md` of bullet lines for each thing
that users notice.

`python -m release.changes` prints the section of the next release; `--write` puts it into
CHANGELOG.md, where it replaces an unreleased section of the same version; `--release` also dates it
and removes the fragments.
"""

from __future__ import annotations

import argparse
import datetime
import re
from pathlib import Path

from howsure._core.version import __version__

ROOT = Path(__file__).parents[1]
NEXT = re.sub(r"\.?(dev|a|b|rc)\d*$", "", __version__)


def fragments(folder: Path = ROOT / "changes") -> list[Path]:
    """The fragments in the order of their names; every line of one is a bullet or goes on with the
    one above.
    """
    found = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    for path in found:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line and not line.startswith(("- ", "  ")):
                raise SystemExit(
                    f"{path.name}:{number} is no bullet line ('- …', continued by two blanks): {line!r}"
                )
    return found


def section(found: list[Path], date: str = "unreleased") -> str:
    """The section of the next release, `## 0.2.0, unreleased` and the bullets."""
    lines = [
        line for path in found for line in path.read_text(encoding="utf-8").splitlines() if line
    ]
    return "\n".join([f"## {NEXT}, {date}", "", *lines, ""])


def merged(changelog: str, new: str) -> str:
    """The changelog with this section on top, instead of an unreleased one of the same version."""
    head, *old = re.split(r"(?m)^(?=## )", changelog)
    kept = [part for part in old if not part.startswith(f"## {NEXT},")]
    return head + "\n".join(part.strip() + "\n" for part in [new, *kept])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true")
    options.add_argument("--release", action="store_true")
    asked = options.parse_args()
    found = fragments()
    new = section(found, datetime.date.today().isoformat() if asked.release else "unreleased")
    if not (asked.write or asked.release):
        print(new)
        return
    changelog = ROOT / "CHANGELOG.md"
    changelog.write_text(merged(changelog.read_text(encoding="utf-8"), new), encoding="utf-8")
    for path in found if asked.release else ():
        path.unlink()


if __name__ == "__main__":
    main()
