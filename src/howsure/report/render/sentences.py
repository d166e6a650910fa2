"""What each number answers, and how numbers are written; shared by all renderers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

from howsure._core.text import count_decimals
from howsure.report.catalogue import BY_NAME, PERCENT_NUMBERS, QUESTIONS, READ
from howsure.report.report_types import (
    Difference,
    Entry,
    Input,
    Metrics,
    Number,
    Provenance,
    ReportData,
    Streamed,
    Value,
)

NONE = "none"  # stands for a number that does not exist; `explain_missing` says why
MOST_DECIMALS = 7  # numbers that need more are written with an exponent
WIDE_LIMITS = "Intervals are conservative where errors are rare."
ARROWS = {"lower": "↓", "higher": "↑", "zero": "→0"}


class Meaning(NamedTuple):
    """The question a metric belongs to, and what the number says."""

    question: int
    title: str
    says: str


def get_meaning(name: str) -> Meaning:
    """What a metric means; one that is not in the catalogue goes by its name under the last
    question.
    """
    item = BY_NAME.get(name)
    if item is None:
        return Meaning(question=READ, title=name, says="")
    return Meaning(question=item.place, title=item.title, says=item.says)


def format_heading(name: str, better: str) -> str:
    """The title of a metric with the arrow that says which side is better."""
    return f"{get_meaning(name).title}\N{NO-BREAK SPACE}{ARROWS[better]}"


# One number


def format_number(value: float | None, digits: int = 4) -> str:
    """Significant digits as in a paper's table, or "none"."""
    return NONE if value is None else f"{value:.{digits}g}"


def format_signed(value: float | None, decimals: int | None = None) -> str:
    """A difference with its sign, or "none"; three digits where the decimals are not known."""
    if value is None:
        return NONE
    if decimals is None or decimals > MOST_DECIMALS:
        return f"{value:+.3g}"
    return f"{round(value, decimals) + 0.0:+.{decimals}f}"


def format_percent(share: float | None, digits: int = 1) -> str:
    """A share in percent, or "none".

    >>> format_percent(0.912), format_percent(None)
    ('91.2 %', 'none')
    """
    return NONE if share is None else f"{share * 100:.{digits}f} %"


def format_points(difference: float | None, decimals: int = 2) -> str:
    """A difference of shares in percentage points.

    >>> format_points(-0.0123)
    '-1.23 points'
    """
    return NONE if difference is None else f"{difference * 100:+.{decimals}f} points"


def format_level(share: float) -> str:
    """0.999 → 99.9 %."""
    return f"{share * 100:.6g} %"


def find_decimals(entries: Iterable[Number | Difference], *, percent: bool = False) -> int | None:
    """Decimals of a column of numbers, by the narrowest of their limits; None where none has limits."""
    found: list[int] = []
    for entry in entries:
        low, high = entry.get("low"), entry.get("high")
        if low is not None and high is not None and high > low:
            found.append(count_decimals(low, high, percent=percent))
    return max(found, default=None)


def format_decimals(value: float | None, decimals: int | None) -> str:
    """A number with so many decimals; with four significant digits where they are not known.

    >>> format_decimals(0.04, 3), format_decimals(-1e-9, 2), format_decimals(0.0123, None)
    ('0.040', '0.00', '0.0123')
    """
    if value is None or decimals is None or decimals > MOST_DECIMALS:
        return format_number(value)
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def format_metric(name: str, entry: Number, decimals: int | None = None) -> str:
    """A metric in its one unit: shares in percent, everything else as it is; as fine as its limits
    allow, or with so many decimals.

    A metric without a value is the word that begins its reason, or "none".

    >>> format_metric("accuracy", {"value": 0.912}), format_metric("ece", {"value": 0.0123})
    ('91.20 %', '0.0123')
    >>> format_metric("ece", {"value": 0.012345, "low": 0.01, "high": 0.016})
    '0.0123'
    >>> format_metric("eor", {"value": None, "why": "infinite: some bin has no errors"})
    'infinite'
    """
    if entry["value"] is None:
        word, colon, _ = entry.get("why", "").partition(":")
        return word if colon and word.isalpha() else NONE
    percent = name in PERCENT_NUMBERS
    if decimals is None:
        decimals = find_decimals([entry], percent=percent)
    if percent:
        return format_percent(entry["value"], 2 if decimals is None else decimals)
    return format_decimals(entry["value"], decimals)


def format_column(name: str, entries: Sequence[Number | None]) -> list[str]:
    """A column of a table: one metric of several models, all with the same decimals, and limits.

    >>> format_column("ece", [{"value": 0.04, "low": 0.031, "high": 0.048}, {"value": 0.1}])
    ['0.0400 (0.0310 … 0.0480)', '0.1000']
    """
    known = [entry for entry in entries if entry is not None and entry["value"] is not None]
    decimals = find_decimals(known, percent=name in PERCENT_NUMBERS)
    if decimals is None and name not in PERCENT_NUMBERS:
        decimals = count_shared_decimals(entry["value"] for entry in known)
    cells: list[str] = []
    for entry in entries:
        cell = NONE if entry is None else format_metric(name, entry, decimals)
        limits = "" if entry is None else format_limits(name, entry, decimals)
        if limits:
            cell += f" ({limits})"
        cells.append(cell)
    return cells


def count_shared_decimals(values: Iterable[float | None]) -> int | None:
    """Decimals of a column without limits: four significant digits of its largest number."""
    largest = max((abs(v) for v in values if v is not None), default=0.0)
    return count_decimals(-largest, largest, digits=4) if 0 < largest < inf else None


def format_evidence(name: str, value: Value) -> str:
    """A piece of evidence in words; small p values are all alike.

    >>> format_evidence("p_value", 1.7e-320), format_evidence("n", 1200)
    ('< 0.001', '1,200')
    """
    if isinstance(value, float):
        if name == "p_value":
            return "< 0.001" if value < 0.001 else format_number(value, 2)
        return f"{value:,.0f}" if abs(value) >= 1000 else format_number(value)
    if isinstance(value, list):
        return ", ".join(format_evidence(name, v) for v in value)
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


# Limits: "none" where one of them is missing


def format_range(low: float | None, high: float | None, digits: int = 4) -> str:
    """Two limits."""
    if low is None or high is None:
        return NONE
    return f"{format_number(low, digits)} … {format_number(high, digits)}"


def format_percent_range(low: float | None, high: float | None, digits: int = 1) -> str:
    """Limits of a share in percent."""
    if low is None or high is None:
        return NONE
    return f"{low * 100:.{digits}f} … {high * 100:.{digits}f} %"


def format_difference(
    name: str, difference: Number | Difference, decimals: int | None = None
) -> tuple[str, str]:
    """A difference and its limits with their signs, shares in points; as fine as the limits allow.

    >>> format_difference("ece", {"value": -0.01234, "low": -0.02, "high": 0.001})
    ('-0.012', '-0.020 … +0.001')
    >>> format_difference("accuracy", {"value": 0.0153, "low": 0.008, "high": 0.023})
    ('+1.53 points', '+0.80 … +2.30 points')
    """
    percent = name in PERCENT_NUMBERS
    value, low, high = difference["value"], difference.get("low"), difference.get("high")
    if decimals is None:
        decimals = find_decimals([difference], percent=percent)
    if percent:
        write = partial(format_points, decimals=2 if decimals is None else decimals)
    else:
        write = partial(format_signed, decimals=decimals)
    if low is None or high is None:
        return write(value), NONE
    return write(value), f"{write(low).removesuffix(' points')} … {write(high)}"


def format_estimate(entry: Number, decimals: int | None = None) -> tuple[str, str]:
    """A number and its limits, as fine as these allow, or with so many decimals.

    >>> format_estimate({"value": 4e-8, "low": -0.34, "high": 0.34}), format_estimate({"value": 4e-8})
    (('0.00', '-0.34 … 0.34'), ('4e-08', 'none'))
    """
    return format_metric("", entry, decimals), format_limits("", entry, decimals) or NONE


def format_share(share: Number, digits: int) -> tuple[str, str]:
    """A share and its limits in percent."""
    limits = format_percent_range(share.get("low"), share.get("high"), digits)
    return format_percent(share["value"], digits), limits


def format_limits(name: str, entry: Number, decimals: int | None = None) -> str:
    """The limits of a metric in its unit; empty where there are none, `explain_metric` says why."""
    low, high = entry.get("low"), entry.get("high")
    if low is None or high is None:
        return ""
    percent = name in PERCENT_NUMBERS
    if decimals is None:
        decimals = find_decimals([entry], percent=percent)
    if percent:
        return format_percent_range(low, high, 2 if decimals is None else decimals)
    return f"{format_decimals(low, decimals)} … {format_decimals(high, decimals)}"


# Notes and reasons


def explain_missing(entries: Iterable[Number | Entry | Difference]) -> str:
    """Why numbers or limits of a table are missing, each reason once.

    >>> explain_missing([{"value": 1.0, "low": None, "why": "one group only"}, {"value": None, "why": "no cases"}])
    'None: one group only; no cases.'
    """
    missing = [n for n in entries if n["value"] is None or n.get("low") is None]
    reasons = dict.fromkeys(n.get("why", "").rstrip(".") for n in missing)
    reasons.pop("", None)
    return f"None: {'; '.join(reasons)}." if reasons else ""


def find_shared_notes(metrics: Metrics) -> list[str]:
    """Notes that more than one number has: they stand once below a table, not in every row.

    >>> few = "only 5 groups, so these limits are unsafe"
    >>> entry = {"value": 1, "better": "lower", "note": few}
    >>> find_shared_notes({"a": entry, "b": entry})
    ['only 5 groups, so these limits are unsafe']
    """
    notes = Counter(entry["note"] for entry in metrics.values() if "note" in entry)
    return [text for text, times in notes.items() if times > 1]


def join_notes(notes: Iterable[str]) -> str:
    """Notes as sentences.

    >>> join_notes(["only 5 groups, so these limits are unsafe"])
    'Only 5 groups, so these limits are unsafe.'
    """
    return " ".join(f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in notes if text)


def explain_limits(metrics: Metrics) -> str:
    """What holds for all limits: what makes them unsafe, else where they are too wide.

    >>> explain_limits({"aurc": {"value": 0.1, "better": "lower"}})
    ''
    """
    if not any(format_limits(name, entry) for name, entry in metrics.items()):
        return ""
    return join_notes(find_shared_notes(metrics)) or WIDE_LIMITS


def explain_metric(name: str, entry: Entry, shared: Iterable[str] = ()) -> str:
    """What the number says and why it, or its limits, are missing; without `shared` notes.

    >>> explain_metric("gap", {"value": 0.02, "better": "lower", "floor": 0.01, "why": "one group"})
    '0.01 would be chance; no limits: one group'
    """
    why = entry.get("why", "")
    if entry["value"] is None:
        return why
    parts = [get_meaning(name).says]
    if "anchors" in entry:
        decimals = find_decimals([entry]) or 4
        random, best = (
            format_decimals(entry["anchors"][end], decimals) for end in ("random", "best")
        )
        parts.append(f"random order would give {random}, the best possible {best}")
    if "floor" in entry:
        floor = format_decimals(entry["floor"], find_decimals([entry]))
        parts.append(f"{floor} would be chance")
    parts.append(describe_bounds(entry))
    if why and not format_limits(name, entry):
        parts.append(why if why.startswith("no interval") else f"no limits: {why}")
    own = entry.get("note", "")
    if own not in shared:
        parts.append(own)
    return "; ".join(filter(None, parts))


def describe_bounds(entry: Entry) -> str:
    """What is certain about the exact value where the tally was compacted."""
    if "bounds" not in entry:
        return ""
    if entry["bounds"] is None:
        return "approximate, without certified bounds"
    # A bound may be infinite, which JSON has as null.
    low, high = ("∞" if end is None else f"{end:.6g}" for end in entry["bounds"])
    return f"exactly {low}" if low == high else f"certainly {low} … {high}"


# Whole reports


def group_by_question(metrics: Metrics) -> list[tuple[str, Metrics]]:
    """The metrics under the question that each answers; questions without metrics are left out."""
    groups: list[Metrics] = [{} for _ in QUESTIONS]
    for name, entry in metrics.items():
        groups[get_meaning(name).question][name] = entry
    return [pair for pair in zip(QUESTIONS, groups, strict=True) if pair[1]]


def build_headline(report: ReportData) -> str:
    """One line about the data."""
    n = f"{report['n']:,}"
    classes = "" if report["k"] is None else f", {report['k']:,} classes"
    if "images" in report:
        what = f"{report['images']['images']:,} images of {n} pixels in all{classes}"
    elif "labels" in report:
        what = f"{report['labels']['cases']:,} cases, {len(report['labels']['rows'])} labels each"
    else:
        plural = "" if report["n"] == 1 else "s"
        groups = f" in {report['groups']:,} groups" if "groups" in report else ""
        what = f"{n} prediction{plural}{groups}{classes}"
    if report["samples"] != 1:
        what += f", {report['samples']} samples each"
    streamed = report.get("streamed")
    if streamed is not None and streamed["partial"]:
        what = f"PARTIAL, {streamed['parts']:,} of {streamed['of']:,} parts: {what}"
    level = format_level(report["provenance"]["level"])
    parts = [what, f"score {report['score']}", f"{level} intervals"]
    if "approximate" in report:
        parts.append(report["approximate"])
    return " · ".join(parts)


def describe_streaming(streamed: Streamed | None) -> list[tuple[str, str]]:
    """How a report was read in parts, and what it leaves out, line by line."""
    if streamed is None:
        return []
    parts = f"{streamed['parts']:,} of {streamed['of']:,} parts of {streamed['files']:,} files"
    lines = [("read", parts)]
    lines += [("skipped", text) for text in streamed["skipped"]]
    lines += [("left out", f"{what}: {why}") for what, why in streamed["left_out"].items()]
    return lines


def describe_origin(version: str, provenance: Provenance) -> list[tuple[str, str]]:
    """Where numbers come from, line by line."""
    lines: list[tuple[str, str]] = []
    for source in provenance["inputs"]:
        name = source.get("file") or f"arrays ({source.get('arrays')})"
        lines.append((name, identify_input(source)))
    if "receipt" in provenance:
        lines.append(("read as", provenance["receipt"]["text"]))
    if provenance["command"]:
        lines.append(("command", provenance["command"]))
    lines.append(("seed", str(provenance["seed"])))
    versions = ", ".join(f"{name} {v}" for name, v in provenance["versions"].items())
    lines.append(("made with", f"howsure {version}, {versions}"))
    return lines


def identify_input(source: Input) -> str:
    """What tells an input from another one: its hash, or the size of a streamed file."""
    if "sha256" in source:
        return f"sha256 {source['sha256']}"
    if "bytes" in source:
        return f"{source['bytes']:,} bytes"
    return "not recorded"
