"""The whole predictions, most of which are not in the working tree: their names, sizes, checksums,
and the commit that last held them all (`fetch` brings them).
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = "predictions.json"


@dataclass(frozen=True)
class Manifest:
    """`files` has the SHA-256 of each prediction file by its name."""

    commit: str
    files: dict[str, str]


@cache
def read_manifest(root: Path) -> Manifest:
    """Of the folder that holds `kept/`; empty where there is none, as in a folder of one's own."""
    path = root / "kept" / FILE
    if not path.exists():
        return Manifest("", {})
    found = json.loads(path.read_text(encoding="utf-8"))
    return Manifest(found["commit"], found["files"])
