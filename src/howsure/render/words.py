"""What each number answers, and how numbers are written; shared by all renderers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from howsure._core.text import no_finer
from howsure.render.catalogue import BY_NAME, QUESTIONS, READ, SHARES
from howsure.render.model import (
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

NONE = "none"  # stands for a number that there is not; `reasons` says why
WIDE = "Where errors are few or a gap may be chance, intervals are wide: they hold the truth more often than stated."
ARROWS = {"lower": "↓", "higher": "↑", "zero": "→0"}


class Meaning(NamedTuple):
    """The question a metric belongs to, and what the number says."""

    question: int
    title: str
    says: str


def meaning(name: str) -> Meaning:
    """What a metric means; one that is not in the catalogue stands under the last question by its
    name.
    """
    known = BY_NAME.get(name)
    return (
        Meaning(READ, name, "") if known is None else Meaning(known.place, known.title, known.says)
    )


def heading(name: str, better: str) -> str:
    """The title of a metric with the arrow that says which side is better."""
    return f"{meaning(name).title}\N{NO-BREAK SPACE}{ARROWS[better]}"


def number(value: float | None, digits: int = 4) -> str:
    """Significant digits as in a paper's table, or "none"."""
    return NONE if value is None else f"{value:.{digits}g}"


def signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign, or "none"."""
    return NONE if value is None else f"{value:+.{digits}g}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent, or "none".

    >>> percent(0.912), percent(None)
    ('91.2 %', 'none')
    """
    return NONE if share is None else f"{share * 100:.{digits}f} %"


def points(difference: float | None) -> str:
    """A difference of shares in points of a percent.

    >>> points(-0.0123)
    '-1.23 points'
    """
    return NONE if difference is None else f"{difference * 100:+.2f} points"


def value(name: str, entry: Number) -> str:
    """A metric in its one unit: shares in percent, everything else as it is; or the word for why
    there is none.

    >>> value("accuracy", {"value": 0.912}), value("ece", {"value": 0.0123})
    ('91.20 %', '0.0123')
    >>> value("eor", {"value": None, "why": "infinite: some bin has no errors"})
    'infinite'
    """
    if entry["value"] is None:
        word, colon, _ = entry.get("why", "").partition(":")
        return word if colon and word.isalpha() else "none"
    return percent(entry["value"], 2) if name in SHARES else number(entry["value"])


def limits(name: str, entry: Number) -> str:
    """The limits of a metric in the same unit; nothing where there are none, `note` says why."""
    low, high = entry.get("low"), entry.get("high")
    if low is None or high is None:
        return ""
    return between_percent(low, high, 2) if name in SHARES else between(low, high, 3)


def level(share: float) -> str:
    """0.999 → 99.9 %."""
    return f"{share * 100:.6g} %"


def between(low: float | None, high: float | None, digits: int = 4) -> str:
    """Two limits, or "none"."""
    return (
        NONE if low is None or high is None else f"{number(low, digits)} … {number(high, digits)}"
    )


def between_percent(low: float | None, high: float | None, digits: int = 1) -> str:
    """Limits of a share in percent, or "none"."""
    return (
        NONE
        if low is None or high is None
        else f"{low * 100:.{digits}f} … {high * 100:.{digits}f} %"
    )


def between_signed(low: float | None, high: float | None) -> str:
    """Limits of a difference, or "none"."""
    return NONE if low is None or high is None else f"{signed(low, 2)} … {signed(high, 2)}"


def between_points(low: float | None, high: float | None) -> str:
    """Limits of a difference of shares, or "none".

    >>> between_points(-0.0023, 0.0011)
    '-0.23 … +0.11 points'
    """
    return (
        NONE
        if low is None or high is None
        else f"{points(low).removesuffix(' points')} … {points(high)}"
    )


def interval(entry: Number) -> str:
    """The limits of a number, or "none"."""
    return between(entry.get("low"), entry.get("high"))


def measured(entry: Number) -> str:
    """A number, no finer than a thousandth of the width of its limits: 4e-08 between -0.3 and 0.3
    is 0.

    >>> measured({"value": 4e-8, "low": -0.34, "high": 0.34}), measured({"value": 4e-8})
    ('0', '4e-08')
    """
    value, low, high = entry["value"], entry.get("low"), entry.get("high")
    if value is None or low is None or high is None or not high > low:
        return number(value)
    return number(no_finer(value, low, high))


def reasons(found: Iterable[Number | Entry | Difference]) -> str:
    """Why numbers or limits of a table are missing, each reason once.

    >>> reasons([{"value": 1.0, "low": None, "why": "one group only"}, {"value": None, "why": "no cases"}])
    'None: one group only; no cases.'
    """
    missing = (n.get("why", "") for n in found if n["value"] is None or n.get("low") is None)
    said = dict.fromkeys(why.rstrip(".") for why in missing if why)
    return f"None: {'; '.join(said)}." if said else ""


def shared(metrics: Metrics) -> list[str]:
    """Notes that more than one number has: they are said once, below, and not in every row.

    >>> few = "only 5 groups, so these limits are unsafe"
    >>> shared({"a": {"value": 1, "better": "lower", "note": few}, "b": {"value": 2, "better": "lower", "note": few}})
    ['only 5 groups, so these limits are unsafe']
    """
    said = Counter(entry["note"] for entry in metrics.values() if "note" in entry)
    return [text for text, times in said.items() if times > 1]


def sentence(texts: Iterable[str]) -> str:
    """Notes as sentences.

    >>> sentence(["only 5 groups, so these limits are unsafe"])
    'Only 5 groups, so these limits are unsafe.'
    """
    return " ".join(f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in texts if text)


def about_limits(metrics: Metrics) -> str:
    """What is said once of all limits: what makes them unsafe, else where they hold the truth more
    often than stated.

    >>> about_limits({"aurc": {"value": 0.1, "better": "lower"}})
    ''
    """
    if not any(limits(name, entry) for name, entry in metrics.items()):
        return ""
    return sentence(shared(metrics)) or WIDE


def note(name: str, entry: Entry, told: Iterable[str] = ()) -> str:
    """What the number says, why it has no limits, or why there is none; `told` are notes that stand
    elsewhere.
    """
    why = entry.get("why", "")
    if entry["value"] is None:
        return why
    bare = "" if limits(name, entry) or not why else f"no limits: {why}"
    own = entry.get("note", "")
    said = (
        meaning(name).says,
        anchors(entry),
        floor(entry),
        certain(entry),
        bare,
        "" if own in told else own,
    )
    return "; ".join(filter(None, said))


def floor(entry: Entry) -> str:
    """What a calibrated model would show of a calibration error.

    >>> floor({"value": 0.02, "better": "lower", "floor": 0.01})
    '0.01 by chance alone'
    """
    return f"{number(entry['floor'])} by chance alone" if "floor" in entry else ""


def anchors(entry: Entry) -> str:
    """What the number is held against.

    >>> anchors({"value": 0.02, "better": "lower", "anchors": {"random": 0.096, "best": 0.005}})
    'random order would give 0.096, the best possible 0.005'
    """
    found = entry.get("anchors")
    if found is None:
        return ""
    return f"random order would give {number(found['random'], 2)}, the best possible {number(found['best'], 2)}"


def certain(entry: Entry) -> str:
    """What is certain about the exact value where the tally was compacted."""
    if "bounds" not in entry:
        return ""
    if entry["bounds"] is None:
        return "approximate, without certified bounds"
    low, high = ("∞" if end is None else f"{end:.6g}" for end in entry["bounds"])
    return f"exactly {low}" if low == high else f"certainly {low} … {high}"


def evidence(value: Value) -> str:
    """A piece of evidence in words."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return ", ".join(evidence(v) for v in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def by_question(metrics: Metrics) -> list[tuple[str, Metrics]]:
    """The metrics under the question that each answers; questions without metrics are left out."""
    groups = [
        (question, {name: entry for name, entry in metrics.items() if meaning(name).question == i})
        for i, question in enumerate(QUESTIONS)
    ]
    return [(question, found) for question, found in groups if found]


def headline(report: ReportData) -> str:
    """One line about the data."""
    k = "" if report["k"] is None else f", {report['k']:,} classes"
    samples = "" if report["samples"] == 1 else f", {report['samples']} samples each"
    groups = f" in {report['groups']:,} groups" if "groups" in report else ""
    limits = f"{level(report['provenance']['level'])} intervals"
    coarse = f" · {report['approximate']}" if "approximate" in report else ""
    read = report.get("streamed")
    partial = (
        f"PARTIAL, {read['parts']:,} of {read['of']:,} parts: " if read and read["partial"] else ""
    )
    what = f"{report['n']:,} prediction{'' if report['n'] == 1 else 's'}{groups}{k}"
    if "labels" in report:
        what = f"{report['labels']['cases']:,} cases, {len(report['labels']['rows'])} labels each"
    if "images" in report:
        what = f"{report['images']['images']:,} images of {report['n']:,} pixels in all{k}"
    return f"{partial}{what}{samples} · score {report['score']} · {limits}{coarse}"


def streamed(s: Streamed | None) -> list[tuple[str, str]]:
    """How a report was read in parts, and what it leaves out, line by line."""
    if s is None:
        return []
    read = f"{s['parts']:,} of {s['of']:,} parts of {s['files']:,} files"
    left_out = [("left out", f"{what}: {why}") for what, why in s["left_out"].items()]
    return [("read", read), *(("skipped", text) for text in s["skipped"]), *left_out]


def origin(version: str, p: Provenance) -> list[tuple[str, str]]:
    """Where numbers come from, line by line."""
    inputs = [(i.get("file") or f"arrays ({i.get('arrays')})", identity(i)) for i in p["inputs"]]
    versions = ", ".join(f"{name} {v}" for name, v in p["versions"].items())
    command = [("command", p["command"])] if p["command"] else []
    return [
        *inputs,
        *command,
        ("seed", str(p["seed"])),
        ("made with", f"howsure {version}, {versions}"),
    ]


def identity(i: Input) -> str:
    """What tells an input from another one: its hash, or the size of a streamed file."""
    return (
        f"sha256 {i['sha256']}"
        if "sha256" in i
        else f"{i['bytes']:,} bytes"
        if "bytes" in i
        else "not recorded"
    )
