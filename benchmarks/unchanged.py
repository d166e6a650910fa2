"""All numbers of all real sets, by an older source tree and by this one: `python -m
benchmarks.unchanged OLD/src`.

Each set is evaluated by both in processes of their own, and numbers at the same place of both
reports are compared: values to 1e-12, limits to 1e-9 where their method is the same. What differs
is attributed: a limit to the method that made it before and the one that makes it now, by metric; a
value to one of the reasons below, which are checked where a check can be written. What is left over
is listed as unexplained, and then the exit code is 1.

The state before is that of 0.1, the last commit before limits and report were built anew: `git
archive 0bcfe52 src | tar x -C OLD`. With `--keep FOLDER` reports are kept there and not made again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, isclose
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared"))
SOURCE = Path(__file__).parents[1] / "src"
CLOSE, CLOSE_LIMIT = 1e-12, 1e-9
DIGITS = 0.0005  # half of the last of three digits
Z = 1.96 / 1.959963984540054  # what 0.1 took for the normal quantile, and the quantile
APART = (
    "provenance",
    "howsure",
    "schema",
    "findings",
    "verdict",
)  # words, and what says who computed it
LIMITS = ("low", "high", "p_value")
PROGRAM = """
import sys, warnings
import howsure as hs
warnings.simplefilter("ignore")
def read(path):
    try:
        return hs.read(path)
    except hs.InputError:
        return hs.read(path, split="test")
print(hs.evaluate(read(sys.argv[1])).to_json())
"""
DRAWS = "percentiles of 1,000 Poisson draws"
NOW = {  # the method by metric, where 0.1 had those draws (DEFINITIONS 13.2 and 13.3; groups by 13.4)
    "Clopper & Pearson": ("accuracy", "top_5_accuracy"),
    "Student on the mean": (
        "nll",
        "brier",
        "correctness_nll",
        "correctness_brier",
        "signed_calibration_error",
    ),
    "gamma, by influences": ("aurc", "e_aurc", "augrc"),
    "moment-matched beta": ("auroc",),
    "logit or gamma, by influences": ("aupr_error", "aupr_success"),
    "binomial mid-p at every row": ("coverage_at_risk_0.01", "coverage_at_risk_0.05"),
    "clear and unclear bins": ("ece", "aece", "uce", "over_confidence", "under_confidence"),
    "squares of the gaps": ("debiased_ece",),
}
METHODS = {metric: f"{DRAWS} → {method}" for method, names in NOW.items() for metric in names}
QUANTILE, UNITS = "1.96 → 1.959964 standard errors", "samples → groups as units"
SPOTS = "points of the scatter plot: another sample, each spot once"
ROUNDED = "deferred share of a class: three digits instead of four"
MOST = "the twenty classes deferred most: by the thresholds that are shown, before by the ranks of all samples"
Key = tuple[str, ...]
Number = float | None


def report(source: Path, file: Path, keep: Path | None) -> Any:
    """The report that a source tree makes of a file."""
    kept = (
        None
        if keep is None
        else keep / f"{file.stem}.{'now' if source == SOURCE else 'before'}.json"
    )
    if kept is not None and kept.exists():
        return json.loads(kept.read_text("utf-8"))
    environment = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{file.name} by {source}: {done.stderr[-800:]}")
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(done.stdout, "utf-8")
    return json.loads(done.stdout)


def numbers(node: Any, path: Key = ()) -> Iterator[tuple[Key, Number]]:
    """Every number of a report by its place; None where it says that there is none. Classes stand
    by their names.
    """
    if isinstance(node, dict):
        for key, value in node.items():
            if path or key not in APART:
                yield from numbers(value, (*path, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            named = isinstance(value, dict) and path[-1:] == ("classes",) and "name" in value
            yield from numbers(value, (*path, f"#{value['name'] if named else i}"))
    elif node is None or (isinstance(node, int | float) and not isinstance(node, bool)):
        yield path, node


def name_of(path: Key) -> str:
    """The place without rows of lists."""
    return ".".join("*" if part.startswith("#") else part for part in path)


def apart(a: Number, b: Number) -> float:
    """How far two numbers are apart, or by what part of the larger one, whichever is less."""
    if a is None or b is None:
        return 0.0 if a is b else inf
    return 0.0 if a == b else abs(a - b) / max(1.0, abs(a), abs(b))


def method(
    path: Key, before: dict[Key, Number], now: dict[Key, Number], grouped: bool
) -> str | None:
    """The change of method behind a limit; None where it is the same method."""
    if "metrics" in path[:-1] and path[-1] in LIMITS:
        return METHODS.get(path[-2])
    if path[0] == "binary" and path[1].startswith("calibration_"):
        if grouped:
            return UNITS
        value, old, new = before[(*path[:-1], "value")], before[path], now[path]
        if value is not None and old is not None and new is not None:
            return (
                QUANTILE if isclose((old - value) / (new - value), Z, rel_tol=CLOSE_LIMIT) else None
            )
    return None


def reason(path: Key, a: Number, b: Number) -> str | None:
    """Why a value differs."""
    if path[:2] == ("views", "scatter"):
        return SPOTS
    of_class = path[:3] == ("views", "operating", "classes") and path[4:5] == ("deferred",)
    if of_class and a is not None and b is not None and abs(a - b) <= DIGITS + CLOSE:
        return ROUNDED
    return None


def missing(path: Key, now: Any) -> str | None:
    """Why a number stands in the report before only."""
    if path[:2] == ("views", "scatter"):
        return SPOTS
    if (
        path[:3] == ("views", "operating", "classes")
        and len(now["views"]["operating"]["classes"]) == 20
    ):
        return MOST
    return None


@dataclass
class Group:
    """Numbers with one explanation: how many, how many differ, and the largest difference with its
    place.
    """

    all: int = 0
    differ: int = 0
    worst: float = -1.0
    where: str = ""

    def add(self, differs: bool, size: float, where: str) -> None:
        """One more number."""
        self.all += 1
        self.differ += differs
        if differs and size > self.worst:
            self.worst, self.where = size, where


@dataclass
class Account:
    """All that was compared, by explanation and name."""

    values: dict[str, Group] = field(default_factory=lambda: defaultdict(Group))
    limits: dict[tuple[str, str], Group] = field(default_factory=lambda: defaultdict(Group))
    gone: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    unexplained: dict[str, Group] = field(default_factory=lambda: defaultdict(Group))

    def compare(self, file: str, before: Any, now: Any) -> None:
        """Add one set."""
        a, b = dict(numbers(before)), dict(numbers(now))
        for path in a.keys() & b.keys():
            size, where = apart(a[path], b[path]), f"{file}: {a[path]} → {b[path]}"
            if any(part in LIMITS for part in path):
                how = method(path, a, b, bool(now.get("groups")))
                self.limits[how or "the same method", path[-2]].add(size > CLOSE_LIMIT, size, where)
                explained = how is not None or size <= CLOSE_LIMIT
            else:
                why = "the same" if size <= CLOSE else reason(path, a[path], b[path])
                self.values[why or "unexplained"].add(size > CLOSE, size, where)
                explained = why is not None
            if not explained:
                self.unexplained[name_of(path)].add(True, size, where)
        for path in a.keys() - b.keys():
            why = missing(path, now)
            self.gone[why or "unexplained"] += 1
            if why is None:
                self.unexplained[f"{name_of(path)} (before only)"].add(True, inf, file)
        print(
            f"{file}: {len(a.keys() & b.keys()):,} numbers in both, {len(b.keys() - a.keys()):,} now only",
            flush=True,
        )

    def lines(self) -> Iterator[str]:
        """The account in words."""
        yield f"values: {sum(g.all for g in self.values.values()):,} compared to {CLOSE:g}"
        for why, g in sorted(self.values.items()):
            yield f"  {why}: {g.all:,}" + (
                f", at most {g.worst:.3g} ({g.where})" if g.differ else ""
            )
        total = sum(g.all for g in self.limits.values())
        yield f"limits: {total:,} compared to {CLOSE_LIMIT:g}; {sum(g.differ for g in self.limits.values()):,} differ"
        for how in sorted({how for how, _ in self.limits}):
            some = {name: g for (h, name), g in self.limits.items() if h == how}
            differ = sum(g.differ for g in some.values())
            yield f"  {how}: {sum(g.all for g in some.values()):,}, of which {differ:,} differ"
            for name, g in sorted(some.items()):
                if g.differ:
                    yield f"    {name}: {g.differ:,} of {g.all:,}, at most {g.worst:.3g} ({g.where})"
        for why, count in sorted(self.gone.items()):
            yield f"before only: {count:,}, {why}"
        yield f"unexplained: {sum(g.all for g in self.unexplained.values()):,}"
        for name, g in sorted(self.unexplained.items()):
            yield f"  {name}: {g.all:,}, at most {g.worst:.3g} ({g.where})"


def main(argv: list[str]) -> int:
    keep = None
    if "--keep" in argv:
        at = argv.index("--keep")
        keep, argv = Path(argv[at + 1]), argv[:at] + argv[at + 2 :]
    if not argv:
        print(
            "usage: python -m benchmarks.unchanged OLD/src [SET…] [--keep FOLDER]", file=sys.stderr
        )
        return 2
    old, account = Path(argv[0]).resolve(), Account()
    for file in sorted((SHARED / "data").glob("*.npz")):
        if file.stem != "membrane_images" and (not argv[1:] or file.stem in argv[1:]):
            account.compare(file.stem, *(report(source, file, keep) for source in (old, SOURCE)))
    print("\n".join(account.lines()))
    return 1 if account.unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
