"""Measures of the source that may only get better: `python -m benchmarks.ratchet` compares them
with `ratchet.json`, `--write` stores the values of today where none is worse.

A measure is a place to look, never a reason to make code worse.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "howsure"
VALUES = Path(__file__).with_name("ratchet.json")
MOST_POSITIONAL = 5
# These take any number of equal things, so their arguments need no names.
VARIADIC = {"join", "format", "pack", "add_row", "zip", "min", "max", "print"}
LAYOUT_TOKENS = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def main(argv: list[str]) -> int:
    now = measure_source()
    if not VALUES.exists():
        write_values(now)
        return 0
    before: dict[str, float] = json.loads(VALUES.read_text(encoding="utf-8"))
    worse = [name for name, value in now.items() if value > before.get(name, value)]
    for name, value in now.items():
        mark = "  WORSE" if name in worse else ""
        print(f"{name:<48}{value:>10g}  at most {before.get(name, value):g}{mark}")
    if worse:
        print("A change made these worse; write it plainer, or say in its commit why not.")
        return 1
    if "--write" in argv:
        write_values(now)
    return 0


def write_values(values: dict[str, float]) -> None:
    VALUES.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def measure_source() -> dict[str, float]:
    """Every measure of the package, lower is better."""
    trees: list[ast.Module] = []
    tokens = 0
    code_lines = 0
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        trees.append(tree)
        lines_of_tokens = list_token_lines(text, list_docstring_lines(tree))
        tokens += len(lines_of_tokens)
        code_lines += len(set(lines_of_tokens))
    nodes = [node for tree in trees for node in ast.walk(tree)]
    ternaries = sum(isinstance(node, ast.IfExp) for node in nodes)
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        "class names defined more than once": sum(n > 1 for n in classes.values()),
        "calls with more than five positional arguments": sum(map(has_many_positional, calls)),
        "tokens per code line": round(tokens / code_lines, 2),
        "ternaries per 1,000 tokens": round(1000 * ternaries / tokens, 2),
        "private functions with one use": count_helpers_used_once(trees, nodes),
        "layers": len(layers["tool"]["importlinter"]["contracts"][0]["layers"]),
    }


def list_docstring_lines(tree: ast.Module) -> set[int]:
    """Line numbers of every docstring, which is prose and does not count as code."""
    lines: set[int] = set()
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def list_token_lines(text: str, prose: set[int]) -> list[int]:
    """The line number of each token outside docstrings and comments."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = [token.start[0] for token in tokens if token.type not in LAYOUT_TOKENS]
    return [line for line in lines if line not in prose]


def has_many_positional(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return len(call.args) > MOST_POSITIONAL and name not in VARIADIC


def count_helpers_used_once(trees: list[ast.Module], nodes: list[ast.AST]) -> int:
    uses: Counter[str] = Counter()
    for node in nodes:
        if isinstance(node, ast.Name):
            uses[node.id] += 1
        elif isinstance(node, ast.Attribute):
            uses[node.attr] += 1
    helpers: list[str] = []
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
                helpers.append(node.name)
    return sum(uses[name] == 1 for name in helpers if not name.startswith("__"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
