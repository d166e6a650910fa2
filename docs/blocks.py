"""Run the blocks of a page as they are written, in order, in a folder of the page's own.

    ```python            a session (>>>), which must print what the page says, digit for digit; or a script
    ```sh                commands, up to the first that fails; `howsure` is this package. Kept as a file where it
                         begins with #! and its second line names one
    ```sh elsewhere      commands that need what is not here: a download, a cluster. Not run
    <!-- python … -->    the same as the first, out of the reader's sight: the files that the next
    block speaks of <!-- needs a b -->   packages without which the section is left out, or the
    page, if it stands before all sections

Names live as long as the page. Other blocks hold no code.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", *(p for p in ROOT.glob("docs/**/*.md") if "_build" not in p.parts)]
)
EXACT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PART = re.compile(
    r"^```(?P<kind>[^\n`]*)\n(?P<shown>.*?)^```$|^<!-- python\n(?P<hidden>.*?)^-->$|^<!-- needs (?P<needs>[^\n]*) -->$"
    r"|^(?P<section>## [^\n]*)$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"^\s*(\$ )?(howsure |>>> |.*\| howsure )", re.MULTILINE)


@dataclass
class Ran:
    """What happened on a page: blocks that ran, faults, and sections left out with what they lack."""

    blocks: int = 0
    faults: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Block:
    line: int
    kind: str
    body: str


def parts(text: str) -> Iterator[Block]:
    """Blocks, needs and sections of a page in their order."""
    for found in PART.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        kind = "python" if found["hidden"] is not None else found.lastgroup or ""
        if found["shown"] is not None:
            yield Block(line, found["kind"].strip(), found["shown"])
        else:
            yield Block(line, kind, found["hidden"] or found[found.lastgroup or 0])


def run(page: Path, folder: Path) -> Ran:
    """Run a page; the folder is where its files are."""
    ran, names, page_lacks, lacks, section = Ran(), {"__name__": "__main__"}, [], [], ""
    _install(folder)
    with contextlib.chdir(folder):
        for block in parts(page.read_text(encoding="utf-8")):
            if block.kind == "section":
                section, lacks = block.body, []
            elif block.kind == "needs":
                found = [name for name in block.body.split() if find_spec(name) is None]
                if section:
                    lacks = found
                else:
                    page_lacks = found
                if found:
                    ran.left_out.append(f"{section or page.name} needs {', '.join(found)}")
            elif block.kind in RUNS and not (lacks or page_lacks):
                ran.blocks += 1
                if fault := RUNS[block.kind](block, names, f"{page.name}:{block.line}"):
                    ran.faults.append(fault)
    return ran


def strangers(page: Path) -> list[str]:
    """Blocks that hold sessions or commands and are of no kind that is run."""
    blocks = [
        b
        for b in parts(page.read_text(encoding="utf-8"))
        if b.kind not in (*RUNS, "sh elsewhere", "needs")
    ]
    return [
        f"{page.name}:{b.line}" for b in blocks if b.kind != "section" and COMMAND.search(b.body)
    ]


def _install(folder: Path) -> None:
    """A `howsure` on the path of commands that is this package, whatever else is installed."""
    tool = folder / "bin" / "howsure"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m howsure "$@"\n', encoding="utf-8")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def _python(block: Block, names: dict[str, Any], where: str) -> str:
    if not re.search(r"(?m)^>>> ", block.body):
        try:
            exec(compile(block.body, where, "exec"), names)
        except Exception as e:
            return f"{where}: {type(e).__name__}: {e}"
        return ""
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(block.body, {}, where, where, block.line)
    test.globs = names
    doctest.DocTestRunner(optionflags=EXACT, verbose=False).run(
        test, out=told.append, clear_globs=False
    )
    return "".join(told)


def _sh(block: Block, _names: dict[str, Any], where: str) -> str:
    if block.body.startswith("#!"):
        name = block.body.splitlines()[1].lstrip("# ").split()[0]
        Path(name).write_text(block.body, encoding="utf-8")
        command = ["sh", "-n", name]
    else:
        command = ["sh", "-e", "-c", block.body]
    here = f"{Path.cwd() / 'bin'}{os.pathsep}{os.environ['PATH']}"
    sources = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(
        os.pathsep
    )
    env = {**os.environ, "PATH": here, "PYTHONPATH": sources}
    done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace")
    return (
        f"{where}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        if done.returncode
        else ""
    )


RUNS = {"python": _python, "sh": _sh}
