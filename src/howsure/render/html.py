"""A report → one offline HTML file: inline SVG, a little script, and a policy that lets nothing
else run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from howsure._core import json
from howsure._core.text import page_safe, printable
from howsure.render import pictures, sections
from howsure.render.lean import lean
from howsure.render.model import Confusion, Entry, ReportData
from howsure.render.steps import steps
from howsure.render.tables import Sheet, Table
from howsure.render.words import (
    ARROWS,
    about_limits,
    by_question,
    evidence,
    headline,
    level,
    limits,
    meaning,
    note,
    number,
    origin,
    percent,
    shared,
    streamed,
    value,
)

TILES = ("accuracy", "aurc", "coverage_at_risk_0.01", "ece")
IMAGE_TILES = ("dice_loss", "image_aurc", "accuracy", "ece")
LABEL_TILES = ("hamming_loss", "exact_match", "macro_auroc", "ece")
COSTS = (
    ("error", "Cost of a wrong answer", 10),
    ("deferral", "Cost of a deferral", 1),
    ("expert", "Error rate of the expert", 0),
)
CALLED = (
    ("sensitivity", "sensitivity"),
    ("specificity", "specificity"),
    ("ppv", "right among the called (PPV)"),
    ("npv", "right among the others (NPV)"),
    ("counts", "called"),
)
LIMIT = 290_000  # bytes of a page
LISTED, COUNTED = 100, 30  # classes, and bins of a reliability diagram, that a page lists
BINS = {"equal_range": "equal range", "equal_size": "equal size", "adaptive": "adaptive"}


def page(report: ReportData) -> str:
    """The whole page; everything on it comes from the report. One that grows too large is drawn
    more coarsely.
    """
    whole = render("report.html.j2", report=report, **_parts(report))
    if len(whole.encode()) <= LIMIT:
        return whole
    report = lean(report)
    return render("report.html.j2", report=report, **_parts(report))


def frame(html: str) -> str:
    """A page in a frame for notebooks; sandboxed, so it can reach nothing of the notebook."""
    rights = "allow-scripts allow-downloads"
    return str(
        Markup('<iframe srcdoc="{}" sandbox="{}" width="100%" height="900"></iframe>').format(
            html, rights
        )
    )


def render(template: str, **parts: object) -> str:
    """A template with the shared style, script and policy."""
    css, js = map(Markup, assets())
    page = (
        _environment()
        .get_template(template)
        .render(css=css, js=js, policy=policy(css, js), **parts)
    )
    return f"{page_safe(page)}\n"


def assets() -> tuple[str, str]:
    """The style and the script that every page has."""
    return source("report.css"), source("page.js") + "\n" + source("decide.js")


@cache
def source(name: str) -> str:
    """A file that belongs to the page."""
    text = files("howsure.render").joinpath("templates", name).read_text(encoding="utf-8")
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


@cache
def _environment() -> Environment:
    folder = files("howsure.render").joinpath("templates")
    found = {
        f.name: f.read_text(encoding="utf-8") for f in folder.iterdir() if f.name.endswith(".j2")
    }
    return Environment(
        autoescape=True, loader=DictLoader(found), undefined=StrictUndefined, trim_blocks=False
    )


def policy(css: str, js: str) -> str:
    """Nothing may load from anywhere, and only this very style and script may act."""
    allowed = f"script-src {digest(js)}; style-src {digest(css)}; img-src data:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def digest(text: str) -> str:
    """How a policy names a text that may act."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def safe_json(data: object) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.canonical(data)
    for mark in "<>&'\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def drawn_json(drawn: Iterable[pictures.Picture]) -> Markup:
    """What is drawn, for the pointer and for files; its names are those that the page shows."""
    return safe_json({p.name: _shown(json.plain(p.data)) for p in drawn})


def _shown(data: json.Plain) -> json.Plain:
    if isinstance(data, str):
        return page_safe(data)
    if isinstance(data, dict):
        return {page_safe(key): _shown(value) for key, value in data.items()}
    return [_shown(value) for value in data] if isinstance(data, list) else data


def _parts(report: ReportData) -> dict[str, object]:
    views, calibration, told = report["views"], report["calibration"], shared(report["metrics"])
    return {
        "title": _title(report),
        "headline": " · ".join([headline(report), *told]),
        "level": level(report["provenance"]["level"]),
        "tiles": [
            _tile(name, report["metrics"][name])
            for name in _tiles(report)
            if name in report["metrics"]
        ],
        **_operating(report),
        **_pictures(report),
        "evidence": evidence,
        "questions": [
            (q, [_metric(name, e, told) for name, e in found.items()])
            for q, found in by_question(report["metrics"])
        ],
        "told": about_limits(report["metrics"]),
        "heat": pictures.heat(views.get("confusion")),
        "taken": _taken(views.get("confusion")),
        "sliced": _known(sections.slices(report.get("slices"))),
        "labels": sections.labels(report),
        "images": sections.images(report),
        "overlays": _overlays(report),
        "tables": _tables(report),
        "changed": _known(
            sections.changes(calibration),
            sections.candidates(calibration),
            sections.methods(calibration),
        ),
        "lead": [] if calibration is None or "lead" not in calibration else calibration["lead"],
        "notes": calibration["notes"] if calibration is not None and "notes" in calibration else [],
        "steps": steps(report, page=True, full=True),
        "doubts": sections.doubts(
            views["label_errors"], pictures.shown(s.get("image", "") for s in views["label_errors"])
        ),
        "classes": sections.classes(views["classes"][:LISTED]),
        "unlisted": len(views["classes"]) > LISTED,
        "origin": [
            *origin(report["howsure"], report["provenance"]),
            *streamed(report.get("streamed")),
        ],
    }


def fragment(sheet: Sheet) -> str:
    """A sheet as a piece of a notebook's page, in the notebook's own style."""
    return page_safe(_environment().get_template("fragment.html.j2").render(sheet=sheet))


def _overlays(report: ReportData) -> list[tuple[str, str, str]]:
    """Name, Dice and picture of the worst images that there is room for."""
    rows = report["images"]["rows"] if "images" in report else []
    found = zip(rows, pictures.shown(row.get("overlay", "") for row in rows), strict=True)
    return [(row["name"], number(row["dice"]), picture) for row, picture in found if picture]


def _known(*tables: Table | None) -> list[Table]:
    return [table for table in tables if table is not None]


def _tables(report: ReportData) -> list[Table]:
    """Everything that is shown as a plain table beside the metrics."""
    binary = report["binary"]
    found = _known(sections.scores(report), sections.binary(binary), sections.calls(binary))
    return [*found, sections.bands(report)]


def _taken(found: Confusion | None) -> list[Table]:
    """The commonest wrong answers; of two classes the table of all answers says it."""
    return (
        []
        if found is None or not found["top"] or len(found["classes"]) == 2
        else [sections.taken(found)]
    )


def _title(report: ReportData) -> str:
    names = [i["file"] for i in report["provenance"]["inputs"] if "file" in i]
    return f"How sure is it? {', '.join(names)}" if names else "How sure is it?"


class Tile(NamedTuple):
    """A number that stands out."""

    title: str
    value: str
    note: str


def _tiles(report: ReportData) -> tuple[str, ...]:
    """What stands at the top: numbers of images or of whole cases where these are the units."""
    return IMAGE_TILES if "images" in report else LABEL_TILES if "labels" in report else TILES


def _tile(name: str, entry: Entry) -> Tile:
    return Tile(meaning(name).title, value(name, entry), limits(name, entry) or note(name, entry))


class MetricRow(NamedTuple):
    """A metric in words."""

    name: str
    title: str
    arrow: str
    value: str
    interval: str
    note: str


def _metric(name: str, e: Entry, told: Sequence[str]) -> MetricRow:
    said = note(name, e, told)
    return MetricRow(
        name, meaning(name).title, ARROWS[e["better"]], value(name, e), limits(name, e), said
    )


def _operating(report: ReportData) -> dict[str, object]:
    """The operating points in words, and what the script needs to move between them."""
    o, start = report["views"]["operating"], pictures.opening(report).row
    shown = sections.operating(o, report["n"])
    deferred = [
        (c["name"], c["deferred"][start], percent(c["deferred"][start])) for c in o["classes"]
    ]
    some = len(deferred) < (report["k"] or len(report["views"]["classes"]))
    names = ("coverage", "threshold", "accuracy", "low", "high", "asked", "kept", "wrong")
    columns = {name: o.get(name) for name in names}
    return {
        "shown": shown,
        "costs": COSTS,
        "start": start,
        "points": sections.listed(len(o["coverage"])),
        "listed": [(name, what) for name, what in sections.LISTED.items() if name in shown],
        "deferred": deferred,
        "deferred_note": f"The {len(deferred)} classes that are deferred most."
        if some
        else "Share of each true class that is deferred at this threshold.",
        "rows": safe_json(
            {
                **columns,
                "n": report["n"],
                "classes": [c["deferred"] for c in o["classes"]],
                "decide": _decide(report),
            }
        ),
    }


def _decide(report: ReportData) -> dict[str, object]:
    """What the script needs to price and promise, and to write the command and the policy of it."""
    p, calibrated = report["provenance"], report["calibration"] is not None
    digests = [i.get("sha256", "") for i in p["inputs"]]
    return {
        "deciding": report["views"].get("deciding"),
        "reading": None if "reading" not in p else printable(p["reading"]),
        "score": report["score"],
        "calibrated": calibrated,
        "policy": {
            "howsure": report["howsure"],
            "score": report["score"],
            "k": report["k"],
            "class_names": report["class_names"],
            "n": report["n"],
            "source": ", ".join(i["file"] for i in p["inputs"] if "file" in i),
            "sha256": digests if any("file" in i for i in p["inputs"]) else [],
        },
    }


def _pictures(report: ReportData) -> dict[str, object]:
    """All pictures, and what is drawn in them for the pointer and for files."""
    linked = [
        pictures.risk_coverage(report),
        pictures.threshold_diagram(report),
        pictures.histogram(report),
    ]
    bins, more = _reliability(report), pictures.more(report)
    found = report["views"].get("corp")
    corp = None if found is None else pictures.corp(report, found)
    positive = [
        p
        for p in (pictures.decision_curve(report), pictures.positive_reliability(report))
        if p is not None
    ]
    sliced, confused = pictures.slices(report.get("slices")), _confused(report)
    every = [
        *linked,
        *(b.picture for b in bins),
        *more,
        *([corp] if corp else []),
        *positive,
        *sliced,
        *confused,
    ]
    binary = report["binary"]
    calling = None if binary is None else binary.get("calling")
    return {
        "positive": positive,
        "positive_class": None if binary is None else sections.called(binary["positive_class"]),
        "calling": None if calling is None else safe_json(calling),
        "called": CALLED,
        "linked": linked,
        "reliability": bins,
        "more": more,
        "slice_pictures": sliced,
        "confused": confused,
        "corp": corp,
        "corp_parts": [] if found is None else sections.corp(found),
        "drawn_data": drawn_json(every),
    }


def _confused(report: ReportData) -> list[pictures.Picture]:
    """The commonest wrong answers, where there are too many classes for a table of all."""
    found = report["views"].get("confusion")
    few = found is None or (
        found["counts"] is not None and len(found["classes"]) <= pictures.HEATED
    )
    picture = None if few else pictures.confusions(report)
    return [] if picture is None else [picture]


class Bins(NamedTuple):
    """One way to bin: its reliability diagram and its table."""

    name: str
    title: str
    bins: int
    picture: pictures.Picture
    rows: list[list[str]]


def _reliability(report: ReportData) -> list[Bins]:
    curves = {name: report["curves"].get(f"reliability_{name}") for name in BINS}
    return [
        Bins(
            name,
            BINS[name],
            len(curve["x"]),
            pictures.reliability(report, curve, name),
            sections.bins(pictures.thin(curve, COUNTED)),
        )
        for name, curve in curves.items()
        if curve is not None
    ]
