"""Mutation testing: one small change in one function of a room, and that room's tests must notice.

    python -m benchmarks.mutants metrics --mutants 300 --out mutants.jsonl     goes on where it was ended
    python -m benchmarks.mutants metrics --show mutants.jsonl

The mutants are drawn by a fixed seed from all comparisons, operators, numbers and truth values inside functions. The
tests are collected once; every mutant is a fork of that process in which the code of one function is exchanged, and
only the tests that ran the function without the change are run, fastest first, until one fails.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[1]
UNTOUCHED = ("annotation", "returns", "decorator_list")
SECONDS = 120  # of a mutant: one that does not end is noticed too
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """One change: the file, the function it is in, the place among the places of that function, and what it is."""

    path: Path
    function: str
    place: int
    line: int
    what: str

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} {self.function} #{self.place} {self.what}"

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The outermost functions and methods by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{m.name}", m) for m in node.body if isinstance(m, ast.FunctionDef))


def places(function: ast.FunctionDef) -> list[tuple[ast.AST, int]]:
    """Nodes that can be changed, with the number of the operator in a comparison; annotations and texts stay."""
    found: list[tuple[ast.AST, int]] = []

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.Compare):
            found.extend((node, i) for i, op in enumerate(node.ops) if type(op) in COMPARED)
        elif _changeable(node):
            found.append((node, 0))
        for name, value in ast.iter_fields(node):
            if name in UNTOUCHED or isinstance(node, ast.JoinedStr | ast.Raise):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and getattr(child, "arg", "") != "strict":  # it only ever raises
                    walk(child)

    for statement in function.body:
        walk(statement)
    return found


def _changeable(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not | ast.USub)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool | int | float)
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.BinOp) and type(node.op) in COMPUTED)


def change(node: ast.AST, which: int) -> str:
    """Change a node in place; what was done."""
    if isinstance(node, ast.Compare):
        old = node.ops[which]
        node.ops[which] = COMPARED[type(old)]()
        return f"{type(old).__name__} -> {type(node.ops[which]).__name__}"
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return f"-> {type(node.op).__name__}"
    if isinstance(node, ast.BinOp):
        old_op = node.op
        node.op = COMPUTED[type(old_op)]()
        return f"{type(old_op).__name__} -> {type(node.op).__name__}"
    if isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        return "sign or not removed"
    assert isinstance(node, ast.Constant)
    before = node.value
    node.value = (not before) if isinstance(before, bool) else before + 1
    return f"{before!r} -> {node.value!r}"


def sites(room: str) -> list[Site]:
    """Every possible change of a room."""
    out: list[Site] = []
    for path in sorted((ROOT / "src/howsure" / room).rglob("*.py")):
        for name, function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            for i, (node, which) in enumerate(places(function)):
                line = getattr(node, "lineno", 0)
                out.append(Site(path, name, i, line, change(copy.deepcopy(node), which)))
    return out


def chosen(room: str, number: int, seed: int = 0) -> list[Site]:
    """So many of them."""
    found = sites(room)
    return random.Random(seed).sample(found, min(number, len(found)))


def mutant(site: Site) -> CodeType:
    """The changed code of the function."""
    tree = ast.parse(site.path.read_text(encoding="utf-8"))
    function = dict(functions(tree))[site.function]
    change(*places(function)[site.place])
    module = compile(ast.fix_missing_locations(tree), str(site.path), "exec")
    return _code(module, site.function.split("."))


def _code(code: CodeType, names: list[str]) -> CodeType:
    found = [c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == names[0]][-1]
    return found if len(names) == 1 else _code(found, names[1:])


def function_of(site: Site) -> FunctionType:
    """The function as it is imported, behind whatever wraps it."""
    found: Any = import_module(site.module)
    *owner, name = site.function.split(".")
    for part in owner:
        found = getattr(found, part)
    found = vars(found)[name]
    while not isinstance(found, FunctionType):
        if isinstance(found, property):
            found = found.fget
        elif isinstance(found, cached_property):
            found = found.func
        else:
            found = getattr(found, "__func__", None) or found.__wrapped__
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found


class Mutating:
    """A plugin of pytest that runs the mutants instead of the tests."""

    def __init__(self, room: str, number: int, out: Path, minutes: float):
        self.room, self.number, self.out, self.minutes = room, number, out, minutes

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        done = {row["name"] for row in rows(self.out)}
        left = [site for site in chosen(self.room, self.number) if site.name not in done]
        if not left:
            return True
        ran = in_child(lambda: self.covered(session.items), 3600) or {}
        end = time.monotonic() + 60 * self.minutes
        for site in left:
            if time.monotonic() > end:
                break
            key = f"{site.path}:{site.function}"
            tests = sorted(ran.get(key, []), key=lambda pair: pair[1])
            killed = in_child(lambda tests=tests, site=site: self.killed(site, [i for i, _ in tests], session), SECONDS)
            row = {"name": site.name, "tests": len(tests), "killed": "time" if killed is None else killed}
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return True

    def covered(self, items: list[pytest.Item]) -> dict[str, list[tuple[int, float]]]:
        """For every function of the room the tests that run it and pass, with their seconds."""
        folder, found = str(ROOT / "src/howsure" / self.room), defaultdict[str, list[tuple[int, float]]](list)
        by_line = {
            (str(path), f.lineno, f.end_lineno): name
            for path in (ROOT / "src/howsure" / self.room).rglob("*.py")
            for name, f in functions(ast.parse(path.read_text(encoding="utf-8")))
        }
        for i, item in enumerate(items):
            codes: set[CodeType] = set()
            sys.setprofile(lambda frame, *_, codes=codes: codes.add(frame.f_code))
            start = time.perf_counter()
            passed = not any(r.failed for r in runtestprotocol(item, nextitem=None, log=False))
            seconds = time.perf_counter() - start
            sys.setprofile(None)
            spans = {(c.co_filename, c.co_firstlineno) for c in codes if c.co_filename.startswith(folder)}
            for (path, first, last), name in by_line.items():
                if passed and any(p == path and first - 5 <= at <= (last or 0) for p, at in spans):
                    found[f"{path}:{name}"].append((i, seconds))
        return found

    def killed(self, site: Site, tests: list[int], session: pytest.Session) -> str:
        """The first test that fails with the change; empty where none does."""
        function_of(site).__code__ = mutant(site)
        for i in tests:
            if any(r.failed for r in runtestprotocol(session.items[i], nextitem=None, log=False)):
                return session.items[i].nodeid
        return ""


def in_child(work: Any, seconds: int) -> Any:
    """The result of a function in a fork; None where it did not end in time or died."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.setsid()
        signal.alarm(seconds)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        with os.fdopen(write, "w") as file:
            json.dump(work(), file)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def show(path: Path) -> None:
    """The share that was noticed, and what was not."""
    found = rows(path)
    survivors = [row for row in found if row["killed"] == ""]
    share = 1 - len(survivors) / max(1, len(found))
    print(f"{path.stem}: {len(found)} mutants, {len(survivors)} survived, {share:.1%} killed")
    for row in survivors:
        print(f"  {row['name']} ({row['tests']} tests)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room")
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--out", type=Path, required=True, help="results, one line each; read back to go on")
    parser.add_argument("--show", action="store_true", help="only show what is there")
    args = parser.parse_args()
    if not args.show:
        tests = [str(ROOT / "tests" / args.room), str(ROOT / "src/howsure" / args.room), "--doctest-modules"]
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--continue-on-collection-errors"]
        pytest.main([*tests, *options], plugins=[Mutating(args.room, args.mutants, args.out, args.minutes)])
    show(args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
