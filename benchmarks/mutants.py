"""Mutation testing: one small change in one function of a room, and that room's tests must notice.

    python -m benchmarks.mutants metrics --out mutants.jsonl          goes on where it was ended
    python -m benchmarks.mutants metrics --out mutants.jsonl --show
    python -m benchmarks.mutants metrics --out mutants.jsonl --again  survivors and changed lines only
    python -m benchmarks.mutants --stale                              explanations of what is gone

The mutants are drawn by a fixed seed from all comparisons, operators, numbers and truth values
inside functions, those of messages included. A mutant is known by its statement before and after
the change, and drawn by the hash of that, so that an edit elsewhere leaves the sample as it is. The
tests are collected once; every mutant is a fork of that process in which the code of one function
is exchanged, and only the tests that ran the function without the change are run, fastest first,
until one fails. `mutants_explained.toml` holds the survivors that change nothing a user can see,
each with the reason; they are counted apart, and one that a test kills is named there no longer.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import hashlib
import json
import os
import resource
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
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
EXPLAINED = ROOT / "benchmarks/mutants_explained.toml"
UNTOUCHED = ("annotation", "returns", "decorator_list")
FAILED = "failed"
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
MEMORY = 4 << 30  # bytes of a mutant: one that asks for more is noticed too
SECONDS = (
    10  # of the processor, and five times what the tests took: a mutant without end is noticed too
)
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
    """One change: the file, the function, the place among those of the function, the statement
    before and after.
    """

    path: Path
    function: str
    place: int
    line: int
    before: str
    after: str
    nth: int = 0  # among equal changes of equal statements in one function

    @property
    def name(self) -> str:
        nth = f" ({self.nth + 1})" if self.nth else ""
        return f"{self.path.relative_to(ROOT)} {self.function}: {self.before} -> {self.after}{nth}"

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(
            ".__init__"
        )


@dataclass(frozen=True)
class Place:
    """A node that can be changed, the number of the operator in a comparison, the statement it is
    in.
    """

    node: ast.AST
    which: int
    statement: ast.stmt


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The outermost functions and methods by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from (
                (f"{node.name}.{m.name}", m) for m in node.body if isinstance(m, ast.FunctionDef)
            )


def places(function: ast.FunctionDef) -> list[Place]:
    """What can be changed in a function; annotations stay."""
    found: list[Place] = []

    def walk(node: ast.AST, statement: ast.stmt) -> None:
        if isinstance(node, ast.Compare):
            found.extend(
                Place(node, i, statement) for i, op in enumerate(node.ops) if type(op) in COMPARED
            )
        elif _changeable(node):
            found.append(Place(node, 0, statement))
        for name, value in ast.iter_fields(node):
            if name in UNTOUCHED:
                continue
            for child in value if isinstance(value, list) else [value]:
                if (
                    isinstance(child, ast.AST) and getattr(child, "arg", "") != "strict"
                ):  # it only ever raises
                    walk(child, child if isinstance(child, ast.stmt) else statement)

    for statement in function.body:
        walk(statement, statement)
    return found


def written(statement: ast.stmt) -> str:
    """A statement on one line, without the statements inside it."""
    bare = copy.copy(statement)
    for name in BODIES:
        if isinstance(getattr(bare, name, None), list):
            setattr(bare, name, [ast.Pass()] if name == "body" else [])
    return " ".join(ast.unparse(bare).removesuffix("pass").split())


def _changeable(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not | ast.USub)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool | int | float)
    return isinstance(node, ast.BoolOp) or (
        isinstance(node, ast.BinOp) and type(node.op) in COMPUTED
    )


def change(place: Place) -> None:
    """Change a node in place."""
    node = place.node
    if isinstance(node, ast.Compare):
        node.ops[place.which] = COMPARED[type(node.ops[place.which])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.BinOp):
        node.op = COMPUTED[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    elif isinstance(node, ast.UnaryOp):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Constant):
        node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1


def sites(room: str) -> list[Site]:
    """Every possible change of a room."""
    out: list[Site] = []
    for path in sorted((ROOT / "src/howsure" / room).rglob("*.py")):
        for name, function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            seen = Counter[tuple[str, str]]()
            for i in range(len(places(function))):
                place = places(copy.deepcopy(function))[i]
                before, line = written(place.statement), getattr(place.node, "lineno", 0)
                change(place)
                after = written(place.statement)
                out.append(Site(path, name, i, line, before, after, seen[before, after]))
                seen[before, after] += 1
    return out


def chosen(room: str, number: int, seed: int) -> list[Site]:
    """So many of them: those of the smallest hashes, so that the others stay when one goes or
    comes.
    """
    return sorted(
        sites(room), key=lambda site: hashlib.sha256(f"{seed} {site.name}".encode()).digest()
    )[:number]


def mutant(site: Site) -> CodeType:
    """The changed code of the function."""
    tree = ast.parse(site.path.read_text(encoding="utf-8"))
    function = dict(functions(tree))[site.function]
    change(places(function)[site.place])
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


def exchange(old: CodeType, new: CodeType) -> None:
    """Give every function made from the old code the new one, those that it made before (closures)
    included.
    """
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__ is old:
            found.__code__ = new
    inner = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new))
    for pair in zip(*inner, strict=True):
        exchange(*pair)


class Mutating:
    """A plugin of pytest that runs the mutants instead of the tests."""

    def __init__(self, room: str, wanted: list[Site], out: Path, minutes: float):
        self.room, self.wanted, self.out, self.minutes = room, wanted, out, minutes

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        done = {row["name"] for row in rows(self.out)}
        left = [site for site in self.wanted if site.name not in done]
        if not left:
            return True
        ran = in_child(lambda: self.covered(session.items), 3600) or {}
        for i, _ in ran.get(FAILED, []):
            print(f"left out, for it fails without a change: {session.items[i].nodeid}")
        end = time.monotonic() + 60 * self.minutes
        for site in left:
            if time.monotonic() > end:
                break
            key = f"{site.path}:{site.function}"
            tests = sorted(ran.get(key, []), key=lambda pair: pair[1])
            limit = SECONDS + 5 * sum(seconds for _, seconds in tests)
            killed = in_child(
                lambda tests=tests, site=site: self.killed(site, [i for i, _ in tests], session),
                limit,
            )
            row = {
                "name": site.name,
                "tests": len(tests),
                "killed": "time" if killed is None else killed,
            }
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return True

    def covered(self, items: list[pytest.Item]) -> dict[str, list[tuple[int, float]]]:
        """For every function of the room the tests that run it, with their seconds; and those that
        fail as it is.
        """
        folder, found = (
            str(ROOT / "src/howsure" / self.room),
            defaultdict[str, list[tuple[int, float]]](list),
        )
        by_line = {
            (str(path), f.lineno, f.end_lineno): name
            for path in (ROOT / "src/howsure" / self.room).rglob("*.py")
            for name, f in functions(ast.parse(path.read_text(encoding="utf-8")))
        }
        for i, item in enumerate(items):
            codes: set[CodeType] = set()
            sys.setprofile(lambda frame, *_, codes=codes: codes.add(frame.f_code))
            start = time.process_time()
            passed = not any(r.failed for r in runtestprotocol(item, nextitem=None, log=False))
            seconds = time.process_time() - start
            sys.setprofile(None)
            if not passed:
                found[FAILED].append((i, seconds))
                continue
            spans = {
                (c.co_filename, c.co_firstlineno) for c in codes if c.co_filename.startswith(folder)
            }
            for (path, first, last), name in by_line.items():
                if any(p == path and first - 5 <= at <= (last or 0) for p, at in spans):
                    found[f"{path}:{name}"].append((i, seconds))
        return found

    def killed(self, site: Site, tests: list[int], session: pytest.Session) -> str:
        """The first test that fails with the change; empty where none does."""
        exchange(function_of(site).__code__, mutant(site))
        for i in tests:
            if any(r.failed for r in runtestprotocol(session.items[i], nextitem=None, log=False)):
                return session.items[i].nodeid
        return ""


def in_child(work: Any, seconds: float) -> Any:
    """The result of a function in a fork; None where it took more time of the processor, ten times
    it, or died.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(int(10 * seconds))
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
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if path.exists()
        else []
    )


def explained() -> dict[str, str]:
    """The reason for every mutant that was found to be equivalent, by its name."""
    entries = (
        tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["mutant"] if EXPLAINED.exists() else []
    )
    return {
        f"{e['file']} {e['function']}: {e['before']} -> {e['after']}": e["reason"].strip()
        for e in entries
    }


def show(room: str, asked: list[Site], out: Path) -> None:
    """How many were noticed, how many cannot be, and which are open."""
    wanted, reasons = {site.name: site for site in asked}, explained()
    found = [row for row in rows(out) if row["name"] in wanted]
    killed = [row["name"] for row in found if row["killed"]]
    alive = [row["name"] for row in found if not row["killed"]]
    equal, left = (
        [name for name in alive if name in reasons],
        [name for name in alive if name not in reasons],
    )
    print(f"{room}: {len(found)} of {len(wanted)} mutants run")
    print(f"  killed    {len(killed):4}  {len(killed) / max(1, len(found)):6.1%} of all")
    print(
        f"  explained {len(equal):4}  {len(killed) / max(1, len(found) - len(equal)):6.1%} killed of the others"
    )
    print(f"  open      {len(left):4}")
    for title, names in ("open", left), ("explained", equal):
        for site in sorted(
            (wanted[name] for name in names), key=lambda site: (site.path, site.line)
        ):
            print(f"{title}: {site.path.relative_to(ROOT)}:{site.line} {site.function}")
            print(f"    {site.before}\n    {site.after}")
            if site.name in reasons:
                print(f"    because: {reasons[site.name]}")
    for name in sorted(
        (set(killed) | (set(reasons) - {site.name for site in sites(room)})) & set(reasons)
    ):
        if f"src/howsure/{room}/" in name:
            print(f"not to be explained any more: {name}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("room", nargs="?", default="")
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--out", type=Path, help="results, one line each; read back to go on")
    parser.add_argument("--show", action="store_true", help="only show what is there")
    parser.add_argument("--again", action="store_true", help="run the survivors once more")
    parser.add_argument("--stale", action="store_true", help="list explanations of what is gone")
    args = parser.parse_args()
    if args.stale:
        known = {site.name for site in sites("")}
        stale = [name for name in explained() if name not in known]
        print("\n".join(stale) or "every explanation is about a change that can be made")
        return 1 if stale else 0
    if not args.room or args.out is None:
        parser.error("a room and --out are needed")
    if args.again:
        kept = [json.dumps(row) + "\n" for row in rows(args.out) if row["killed"]]
        args.out.write_text("".join(kept), encoding="utf-8")
    wanted = chosen(args.room, args.mutants, args.seed)
    if not args.show:
        tests = [
            str(ROOT / "tests" / args.room),
            str(ROOT / "src/howsure" / args.room),
            "--doctest-modules",
        ]
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--continue-on-collection-errors",
        ]
        pytest.main(
            [*tests, *options], plugins=[Mutating(args.room, wanted, args.out, args.minutes)]
        )
    show(args.room, wanted, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
