"""`python -m benchmarks.longest FOLDER`: the five longest functions and files, so that growth is
seen.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SHOWN = 5


class Length(NamedTuple):
    """Lines of something, and where it stands."""

    lines: int
    where: str


def main(argv: list[str]) -> int:
    paths = sorted(Path(argv[0] if argv else "src").rglob("*.py"))
    if not paths:
        print(
            f"benchmarks.longest: no Python files under {argv[0] if argv else 'src'}",
            file=sys.stderr,
        )
        return 2
    show(
        "longest functions, without their docstrings",
        [f for path in paths for f in functions(path)],
    )
    show(
        "longest files",
        [Length(len(path.read_text("utf-8").splitlines()), str(path)) for path in paths],
    )
    return 0


def show(title: str, found: list[Length]) -> None:
    print(title)
    for lines, where in sorted(found, key=lambda length: (-length.lines, length.where))[:SHOWN]:
        print(f"{lines:6d}  {where}")


def functions(path: Path) -> Iterator[Length]:
    """Every function of a file; one inside another counts by itself and in the outer one."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Length(body_lines(node), f"{path}:{node.lineno} {node.name}")


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end; a docstring is prose and does not count."""
    prose = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
    return last_line(node) - node.lineno + 1 - (last_line(prose) - prose.lineno + 1 if prose else 0)


def last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
