"""A monitor in words and pictures: a sheet for terminals and Markdown, and the page."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from markupsafe import Markup

from howsure.render import svg
from howsure.render.html import drawn_json, render
from howsure.render.model import (
    Column,
    DriftData,
    EstimateData,
    MonitorData,
    MonthData,
    Number,
    PartData,
    PastData,
)
from howsure.render.pictures import Picture, drawn, edges, middles, top
from howsure.render.tables import Sheet, Table
from howsure.render.words import NONE, between_percent, level, number, origin, percent, points

SHOWN = 10  # parts of a long table
BESIDE = 5  # periods beside each other


def sheet(data: MonitorData) -> Sheet:
    """Everything that is printed of a monitor."""
    months = data["months"]
    found = [_months(data), _policy(data), _labelled(data), _limits(data), _drift(data)]
    last = months[-1]
    for what, of in (("answer", _answers), ("group", _groups)):
        found += [_parts(of(last), what, f", {last['name']}"), _over_time(months, what, of)]
    head = f"{_many(months)} beside {data['reference']['n']:,} labelled rows · {level(data['level'])} limits"
    return Sheet(head, verdict(data), [table for table in found if table.rows], _remarks(data))


def verdict(data: MonitorData) -> list[str]:
    """What a reader should know first: stated limits, the last month beside the reference, labels,
    and drift.
    """
    out: list[str] = []
    failed = [limit for limit in data["limits"] if not limit["passed"]]
    if data["limits"]:
        names = ", ".join(limit["month"] for limit in failed)
        out.append(
            f"NOT PASSED: {names}: {failed[0]['what']} is not shown."
            if failed
            else "The stated limit is met."
        )
    last, past = data["months"][-1], data["reference"]["accuracy"]
    now = last["estimate"]["accuracy"]
    if now["value"] is None:
        out.append(
            f"In {last['name']}: the accuracy cannot be estimated; the reference has {_share(past)}."
        )
    else:
        said = f"accuracy {_share(now)}, estimated without labels; the reference has {_share(past)}"
        out.append(f"In {last['name']}: {said}{_beside(now, past)}.")
    if (come := last["labelled"]) is not None:
        within = "within" if come["held"] else "outside"
        who = (
            "The one label that came says"
            if come["n"] == 1
            else f"The {come['n']:,} labels that came say"
        )
        out.append(f"{who} {_share(come['accuracy'])}, {within} the estimate's limits.")
    out.append(_drifted(data["months"]))
    return out


def _beside(now: Number, past: Number) -> str:
    """Whether limits lie apart; where they meet nothing is said."""
    low, high, then = now.get("low"), now.get("high"), past["value"]
    if low is None or high is None or then is None:
        return ""
    below, above = past.get("low") or then, past.get("high") or then
    return (
        ": clearly less"
        if high < below
        else ": clearly more"
        if low > above
        else ": no clear change"
    )


def _drifted(months: list[MonthData]) -> str:
    """Which columns look different, in which months, whatever their accuracy."""
    found: dict[str, list[str]] = {}
    for m in months:
        for d in m["drift"]:
            if d["drifted"]:
                found.setdefault(d["column"], []).append(m["name"])
    if not found:
        return "Nothing drifted beyond chance."
    if len(months) == 1:
        return f"Drift beyond chance: {', '.join(found)}."
    said = (
        f"{column} in {len(names)} of {len(months)}, first {names[0]}"
        for column, names in found.items()
    )
    return f"Drift beyond chance: {'; '.join(said)}."


def _many(months: list[MonthData]) -> str:
    return f"{months[0]['n']:,} new rows" if len(months) == 1 else f"{len(months)} periods"


def _share(n: Number) -> str:
    limits = between_percent(n.get("low"), n.get("high")).removesuffix(" %").replace(" … ", " to ")
    return percent(n["value"]) + ("" if limits == NONE else f" ({limits})")


def _months(data: MonitorData) -> Table:
    """The time line."""
    past = data["reference"]
    silent = any(side["unanswered"] for side in (past, *data["months"]))
    missing: Callable[[PastData | MonthData], list[str]] = lambda m: (
        [percent(m["unanswered"])] if silent else []
    )
    rows = [["reference", f"{past['n']:,}", *_both(past["accuracy"]), *missing(past), NONE, NONE]]
    rows += [
        [
            m["name"],
            f"{m['n']:,}",
            *_both(m["estimate"]["accuracy"]),
            *missing(m),
            percent(m["estimate"]["outside"]),
            ", ".join(d["column"] for d in m["drift"] if d["drifted"]) or "none",
        ]
        for m in data["months"]
    ]
    head = [
        "",
        "rows",
        "accuracy",
        "interval",
        *(["no answer"] if silent else []),
        "never seen",
        "drift",
    ]
    note = "Estimated without labels; the limits are those of the accuracy that labels would show."
    return Table("Accuracy", head, rows, note)


def _both(n: Number) -> list[str]:
    return [percent(n["value"], 2), between_percent(n.get("low"), n.get("high"), 2)]


def _policy(data: MonitorData) -> Table:
    past = data["reference"]
    if data["threshold"] is None:
        return Table("", [], [])
    rows = [["reference", percent(past["coverage"]), percent(past["risk"], 2), "observed"]]
    rows += [
        [m["name"], percent(m["estimate"]["coverage"]), *_both(m["estimate"]["risk"])]
        for m in data["months"]
    ]
    title = f"What the policy does (accepts {data['score']} >= {number(data['threshold'], 6)})"
    return Table(
        title,
        ["", "accepted", "risk", "interval"],
        rows,
        "Risk: expected share of wrong among the accepted.",
    )


def _labelled(data: MonitorData) -> Table:
    rows = [
        [
            m["name"],
            f"{come['n']:,}",
            *_both(come["accuracy"]),
            *_both(come["estimate"]),
            points(come["off"]),
            "yes" if come["held"] else "no",
        ]
        for m in data["months"]
        if (come := m["labelled"]) is not None
    ]
    head = [
        "",
        "labels",
        "accuracy",
        "interval",
        "estimated",
        "interval",
        "off by",
        "within its limits",
    ]
    return Table("Where labels came", head, rows)


def _limits(data: MonitorData) -> Table:
    rows = [
        [
            v["month"],
            v["what"],
            percent(v["value"], 2),
            percent(v["compared"], 2),
            percent(v["limit"], 2),
            v["note"],
            "yes" if v["passed"] else "NO",
        ]
        for v in data["limits"]
    ]
    return Table("Stated limits", ["", "limit", "value", "compared", "least", "by", "met"], rows)


def _drift(data: MonitorData) -> Table:
    """All tests of one period; of several periods those that found something."""
    months = data["months"]
    title = f"Drift ({level(data['drift_level'])} for all {data['tests']} tests together)"
    if len(months) == 1:
        head = ["column", "effect", "which is", "p", "drifted", "moved most (reference to now)"]
        return Table(title, head, [[*_test(d, d["measure"]), "yes" if d["drifted"] else "no", _moved(d)]
                                   for d in months[0]["drift"]])  # fmt: skip
    found = [(m["name"], d) for m in months for d in m["drift"] if d["drifted"]]
    measures = {d["column"]: d["measure"] for _, d in found}
    said = "; ".join(f"of {column} the {measure}" for column, measure in measures.items())
    rows = [[name, *_test(d), _moved(d)] for name, d in found]
    note = f"Those beyond chance; the JSON has all. Effect: {said}."
    return Table(title, ["", "column", "effect", "p", "moved most"], rows, note)


def _test(d: DriftData, *more: str) -> list[str]:
    return [d["column"], number(d["effect"], 3), *more, f"{d['p']:.2g}"]


def _moved(d: DriftData) -> str:
    shares = [
        f"{m['name']} {percent(m['reference'])} to {percent(m['new'])}" for m in d["moved"][:3]
    ]
    return ", ".join(shares) if d["drifted"] else ""


def estimated(
    data: EstimateData, n: int, reference_n: int, past: float | None, sure: float
) -> Sheet:
    """An estimate without a monitor around it."""
    row = [percent(past, 2), f"{reference_n:,}", percent(data["outside"])]
    rows = [["new data", f"{n:,}", *_both(data["accuracy"]), *row]]
    note, unseen = "Limits of the accuracy that labels would show.", "rows beyond the reference"
    tables = [
        Table(
            "Accuracy",
            ["", "rows", "accuracy", "interval", "in the reference", "its rows", unseen],
            rows,
            note,
        ),
        Table("What the policy would do", ["accepted", "risk", "interval"], _accepted(data)),
        _parts(data["classes"], "answer"),
        _parts(data["groups"], "group"),
    ]
    head = f"{n:,} new rows beside {reference_n:,} labelled rows · {level(sure)} limits"
    said = f"Accuracy {_share(data['accuracy'])}, estimated without labels; the reference has {percent(past)}."
    remarks = [*data["notes"], *(f"Cannot be seen: {text}" for text in data["cannot_see"])]
    return Sheet(head, [said], [table for table in tables if table.rows], remarks)


def _accepted(data: EstimateData) -> list[list[str]]:
    """What a policy accepts; nothing where there is none, and everything is accepted."""
    return [] if data["coverage"] == 1 else [[percent(data["coverage"]), *_both(data["risk"])]]


def _parts(parts: list[PartData], what: str, of: str = "") -> Table:
    rows = [
        [
            p["name"],
            f"{p['n']:,}",
            *_both(p["accuracy"]),
            percent(p["reference"], 2),
            f"{p['reference_n']:,}",
            "all of it" if p["borrowed"] else "the same",
        ]
        for p in parts[:SHOWN]
    ]
    some = (
        f", the {SHOWN} that fell most of {len(parts)}"
        if len(parts) > SHOWN
        else ", largest fall first"
    )
    head = [what, "rows", "accuracy", "interval", "in the reference", "its rows", "estimated from"]
    return Table(f"By {what}{of}{some}", head, rows)


def _answers(month: MonthData) -> list[PartData]:
    return month["estimate"]["classes"]


def _groups(month: MonthData) -> list[PartData]:
    return month["estimate"]["groups"]


def _over_time(
    months: list[MonthData], what: str, of: Callable[[MonthData], list[PartData]]
) -> Table:
    """The same parts as in the table of the last period, beside those before it."""
    if len(months) == 1:
        return Table("", [], [])
    shown, last = months[-BESIDE:], of(months[-1])[:SHOWN]
    columns = [{p["name"]: percent(p["accuracy"]["value"], 2) for p in of(m)} for m in shown]
    rows = [
        [p["name"], percent(p["reference"], 2), *(c.get(p["name"], NONE) for c in columns)]
        for p in last
    ]
    some = (
        f", the last {BESIDE} of {len(months)} periods"
        if len(months) > BESIDE
        else " in each period"
    )
    return Table(
        f"Accuracy by {what}{some}", [what, "in the reference", *(m["name"] for m in shown)], rows
    )


def _remarks(data: MonitorData) -> list[str]:
    """What no number here would show, and what is odd about the data."""
    out = [f"{m['name']}: {note}" for m in data["months"] for note in m["estimate"]["notes"]]
    last = data["months"][-1]
    return [
        *out,
        *(f"Cannot be seen ({last['name']}): {text}" for text in last["estimate"]["cannot_see"]),
    ]


def page(data: MonitorData) -> str:
    """The whole page; everything on it comes from the monitor."""
    shown, pictures = sheet(data), [*_line(data), _distributions(data)]
    sources = [pair for p in data["provenance"].values() for pair in origin(data["howsure"], p)]
    return render(
        "monitor.html.j2",
        data=data,
        title="Is it still as good?",
        sheet=shown,
        pictures=pictures,
        drawn_data=drawn_json(pictures),
        origin=list(dict.fromkeys(sources)),
    )


def _line(data: MonitorData) -> list[Picture]:
    """Accuracy over the months, the reference as a dashed line."""
    months = data["months"]
    guesses = [m["estimate"]["accuracy"] for m in months]
    low, high = ([g.get(end) for g in guesses] for end in ("low", "high"))
    came = [None if m["labelled"] is None else m["labelled"]["accuracy"]["value"] for m in months]
    past = data["reference"]["accuracy"]["value"]
    floor = min(v for v in (*low, *came, past) if v is not None)
    x, names = [float(i) for i in range(1, len(months) + 1)], [m["name"] for m in months]
    ends = (0.5, len(months) + 0.5)
    labels = ("periods, numbered in order" if svg.numbered(names) else "", "accuracy")
    f = svg.frame(ends, (_below(floor), 1.0), labels, (svg.plain, svg.percent), names=(names, ()))
    marks = [
        svg.line(f, ends, (past, past), "ideal"),
        svg.whiskers(f, x, low, high),
        svg.line(f, x, [g["value"] for g in guesses], "thin"),
        svg.dots(f, x, [g["value"] for g in guesses], "main"),
        svg.dots(f, [at + 0.16 for at in x], came, "worse"),
    ]
    by = (("by labels", "wrong"),) if any(v is not None for v in came) else ()
    legend = (("estimated, with limits", "main"), *by, ("reference", "ideal"))
    read = "Bars: limits of the accuracy that labels would show."
    said = f"Accuracy: {', '.join(names)}"
    series: dict[str, dict[str, Column]] = {
        "estimated": {"x": [*x], "y": [g["value"] for g in guesses], "low": low, "high": high},
    }
    known = [i for i, v in enumerate(came) if v is not None]
    if known:
        series["by labels"] = {"x": [x[i] for i in known], "y": [came[i] for i in known]}
    return [drawn("accuracy", "Accuracy", read, f, marks, series, said=said, legend=legend)]


def _below(v: float) -> float:
    """A round number below, so that the line does not touch the frame."""
    return next((low for low in (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2) if low < v), 0.0)


def _distributions(data: MonitorData) -> Picture:
    """Scores of the reference as bars, of the last period as a line, of those before it as thin
    ones; the threshold.
    """
    bars, (*before, last) = data["reference"]["bars"], data["months"]
    most = top([*bars, *(share for m in data["months"] for share in m["bars"])])
    f = svg.frame(
        (data["low"], data["high"]),
        (0, most),
        (data["score"], "share of rows"),
        (svg.plain, svg.percent),
    )
    cuts = edges(data["low"], data["high"], len(bars))
    across = [x for both in pairwise(cuts) for x in both]
    marks = [svg.bars(f, cuts, [0.0] * len(bars), bars, "right")]
    for month, kind in (*((m, "thin") for m in before), (last, "main")):
        marks.append(
            svg.line(f, across, [y for share in month["bars"] for y in (share, share)], kind)
        )
    legend = [
        ("reference", "right"),
        *([("earlier periods", "thin")] if before else []),
        (last["name"], "main"),
    ]
    if data["threshold"] is not None:
        marks.append(_threshold(f, data["threshold"]))
        legend.append(("threshold", "ideal"))
    middle = middles(cuts)
    series: dict[str, dict[str, Column]] = {"reference": {"x": [*middle], "y": [*bars]}}
    series |= {m["name"]: {"x": [*middle], "y": [*m["bars"]]} for m in data["months"]}
    read = "Where a line leaves the bars, scores have moved."
    said = f"Scores of {last['name']}{' and the periods before it' if before else ''} beside the reference"
    return drawn("scores", "Scores", read, f, marks, series, said=said, legend=tuple(legend))


def _threshold(f: svg.Frame, at: float) -> Markup:
    return svg.line(f, (at, at), (f.y.low, f.y.high), "ideal")
