"""Hostile names in exported policies: the program must still be one, and decide as before."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import howsure as hs
from howsure.policies import Policy
from howsure.policies.policy import Basis, Guarantee
from howsure.serving.export_text import TEXT_EXPORTS
from howsure.serving.exports import plan_export

NAMES = (
    "plain",
    "",
    " ",
    "'",
    '"',
    "''); DROP TABLE answers; --",
    "*/ int main(void) { return 1; } /*",
    "-- \n SELECT 1",
    "\n#error\n",
    "\r\n*/",
    "\\",
    "\\'",
    "\\x00",
    "%s%n",
    "${alert(1)}",
    "</script><script>alert(1)</script>",
    "??/",
    "\u2028\u2029",
    "\u202e",
    "\x1b[31m",
    "é" * 100,
    "\U0001f600",
    "\ud800",
    "a" * 10_000,
    "\x00",
    "NULL",
    "1e999",
)
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]


def make_policy(name: str) -> Policy:
    """A policy in which a name stands wherever a name may stand."""
    return Policy(
        "max_prob",
        0.9,
        by="site",
        keys=(name, "other"),
        thresholds=(0.5, 0.6),
        guarantee=Guarantee(name, risk=0.1, delta=0.05, bound=0.09),
        basis=Basis(n=100, coverage=0.5, accuracy=0.95, source=name, sha256=name),
    )


def list_attacks() -> Iterator[tuple[str, str]]:
    """What is exported: a name and a target."""
    for name in NAMES:
        for target in ("c", "js", "sql"):
            yield name, target


def attack(name: str, target: str, folder: Path) -> str:
    """What went wrong; nothing where the program is right, or was refused with one sentence."""
    try:
        export = plan_export(
            make_policy(name),
            target=target,
            given="confidence",
            precision="double",
            dialect="sqlite",
            digest=name,
            model=name,
            expires=name,
        )
        text = TEXT_EXPORTS[target](export)
        text.encode()
    except hs.InputError as e:
        return "" if "\n" not in str(e) else "a refusal of several lines"
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    check = {"c": check_c, "js": check_js, "sql": check_sql}[target]
    return check(text, name, folder)


def check_c(text: str, _: str, folder: Path) -> str:
    (folder / "policy.h").write_text(text, encoding="utf-8")
    (folder / "main.c").write_text('#include "policy.h"\nint main(void) { return 0; }\n')
    for compiler in COMPILERS:
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "main.c"]
        ran = subprocess.run([compiler, *flags], cwd=folder, capture_output=True, text=True)
        if ran.returncode:
            return f"{compiler}: {ran.stderr[:300]}"
    return ""


def check_js(text: str, name: str, folder: Path) -> str:
    if not shutil.which("node"):
        return ""
    (folder / "policy.mjs").write_text(text, encoding="utf-8")
    program = (
        'import { decide } from "./policy.mjs";'
        "const name = JSON.parse(process.argv[2]);"
        "console.log(JSON.stringify([decide([0.55], name), decide([0.55], 'other')]));"
    )
    (folder / "main.mjs").write_text(program)
    call = ["node", "main.mjs", json.dumps(name)]
    ran = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        return f"node: {ran.stderr[:300]}"
    mine, other = (row["accept"] for row in json.loads(ran.stdout))
    return "" if (mine, other) == (True, False) else f"node decides {ran.stdout}"


def check_sql(text: str, name: str, _: Path) -> str:
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE answers (site TEXT, confidence REAL)")
        base.execute("INSERT INTO answers VALUES (?, 0.55), ('other', 0.55)", (name,))
        try:
            rows = base.execute(f"SELECT\n{text}\nFROM answers").fetchall()
        except sqlite3.Error as e:
            return f"sqlite: {e}"
        if base.execute("SELECT count(*) FROM answers").fetchone() != (2,):
            return "the table changed"
    decided = [row[0] for row in rows]
    return "" if decided == ["accept", "defer"] else f"sqlite decides {decided}"
