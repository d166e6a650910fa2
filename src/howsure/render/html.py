"""Report JSON → one offline HTML file: inline SVG, a little script, and a policy that lets nothing else run."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from howsure.render import pictures
from howsure.render import sections as rows
from howsure.render.pictures import Picture
from howsure.render.words import ARROWS, by_question, headline, interval, level, meaning, note, number

TILES = ("accuracy", "aurc", "coverage_at_risk_0.01", "ece")
SCORES = ("aurc", "auroc", "aupr_error", "coverage_at_risk_0.01", "eor_smooth")
BINS = (("equal_range", "equal range"), ("equal_size", "equal size"), ("adaptive", "adaptive"))


def page(report: dict[str, Any]) -> str:
    """The whole page; everything on it comes from the JSON."""
    return render("report.html.j2", report=report, **_parts(report))


def framed(report: dict[str, Any]) -> str:
    """The page of a report as a frame for notebooks."""
    return frame(page(report))


def frame(html: str) -> str:
    """A page in a frame; sandboxed, so it can reach nothing of the notebook."""
    return str(Markup('<iframe srcdoc="{}" sandbox="allow-scripts" width="100%" height="900"></iframe>').format(html))


def render(template: str, **parts: Any) -> str:
    """A template with the shared style, script and policy."""
    css, js = Markup(source("report.css")), Markup(source("report.js"))
    return _environment().get_template(template).render(css=css, js=js, policy=policy(css, js), **parts) + "\n"


@cache
def source(name: str) -> str:
    """A file that belongs to the page."""
    return (files("howsure.render") / "templates" / name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    folder = files("howsure.render") / "templates"
    found = {f.name: f.read_text(encoding="utf-8") for f in folder.iterdir() if f.name.endswith(".j2")}
    return Environment(autoescape=True, loader=DictLoader(found), undefined=StrictUndefined, trim_blocks=False)


def policy(css: str, js: str) -> str:
    """Nothing may load from anywhere, and only this very style and script may act."""
    allowed = f"script-src {_digest(js)}; style-src {_digest(css)}; img-src data:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def safe_json(data: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for mark in "<>&'\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def _parts(report: dict[str, Any]) -> dict[str, Any]:
    shown = rows.operating(report, pictures.opening(report).row)
    return {
        "title": _title(report),
        "headline": headline(report),
        "level": level(report["provenance"]["level"]),
        "tiles": [_tile(report, name) for name in TILES if name in report["metrics"]],
        "rows": {**shown, "data": safe_json(shown["data"])},
        "linked": _drawn(
            [pictures.risk_coverage(report), pictures.threshold_diagram(report), pictures.confidence_histogram(report)]
        ),
        "reliability": _reliability(report),
        "evidence": rows.evidence,
        "questions": [
            (q, [_metric(name, e) for name, e in found.items()]) for q, found in by_question(report["metrics"])
        ],
        "scores": _scores(report),
        "binary": rows.binary(report["binary"]),
        "bands": rows.bands(report),
        "calibration": rows.calibration(report.get("calibration")),
        "more": _drawn(_more(report)),
        "suspects": rows.suspects(report),
        "classes": rows.classes(report),
        "origin": rows.origin(report),
    }


def _title(report: dict[str, Any]) -> str:
    names = [i["file"] for i in report["provenance"]["inputs"] if "file" in i]
    return f"How sure is it? {', '.join(names)}" if names else "How sure is it?"


def _tile(report: dict[str, Any], name: str) -> dict[str, str]:
    entry = report["metrics"][name]
    limits = interval(entry)
    return {
        "title": meaning(name).title,
        "value": number(entry["value"]),
        "note": note(name, entry) if limits == "–" else limits,
    }


def _metric(name: str, entry: dict[str, Any]) -> dict[str, str]:
    why = entry.get("why")
    says = note(name, entry) + (f" (no interval: {why})" if why and entry["value"] is not None else "")
    cells = {"value": number(entry["value"]), "interval": interval(entry), "note": says}
    return {"name": name, "title": meaning(name).title, "arrow": ARROWS[entry["better"]], **cells}


def _reliability(report: dict[str, Any]) -> list[dict[str, Any]]:
    drawn = [(name, title, pictures.reliability(report, name)) for name, title in BINS]
    return [
        {"name": name, "title": title, "svg": svg, "rows": rows.bins(report["curves"][f"reliability_{name}"])}
        for name, title, svg in drawn
        if svg is not None
    ]


def _more(report: dict[str, Any]) -> list[Picture | None]:
    return [
        pictures.scatter(report),
        pictures.uncertainty_reliability(report),
        pictures.rejection(report),
        pictures.odds(report),
        pictures.rate(report, "roc", "ROC of finding errors"),
        pictures.rate(report, "precision_recall", "Precision and recall of finding errors"),
    ]


def _drawn(found: list[Picture | None]) -> list[Picture]:
    return [p for p in found if p is not None]


def _scores(report: dict[str, Any]) -> dict[str, Any] | None:
    """Ranking metrics of all scores; the same predictions, so all of them compare."""
    if not report["scores"]:
        return None
    found = {report["score"]: report["metrics"], **{name: s["metrics"] for name, s in report["scores"].items()}}
    columns = [f"{meaning(m).title} {ARROWS[report['metrics'][m]['better']]}" for m in SCORES]
    return {
        "columns": columns,
        "rows": [{"name": n, "cells": [number(m[c]["value"]) for c in SCORES]} for n, m in found.items()],
    }
