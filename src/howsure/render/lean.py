"""A report with less to draw, for pages that would grow too large: fewer points, dots, small
pictures and classes.
"""

from __future__ import annotations

from collections.abc import Sequence

from howsure.render.model import ClassDeferral, ReportData, Scatter, Suspect, Views
from howsure.render.pictures import shown, thin

POINTS, DOTS, PICTURES, CLASSES = 90, 250, 15_000, 8


def lean(report: ReportData) -> ReportData:
    """The same report, drawn more coarsely; no number of it changes."""
    made: ReportData = {**report, "views": _views(report["views"])}
    made["curves"] = {name: thin(c, POINTS) for name, c in report["curves"].items()}
    if "images" in report:
        rows = report["images"]["rows"]
        kept = shown((row.get("overlay", "") for row in rows), PICTURES)
        made["images"] = {
            **report["images"],
            "rows": [{**row, "overlay": one} for row, one in zip(rows, kept, strict=True)],
        }
    return made


def _views(views: Views) -> Views:
    operating = views["operating"]
    made: Views = {
        **views,
        "scatter": _dots(views["scatter"]),
        "label_errors": _pictures(views["label_errors"]),
        "operating": {**operating, "classes": _most_deferred(operating["classes"])},
    }
    if "before" in views:
        made["before"] = {**views["before"], "scatter": _dots(views["before"]["scatter"])}
    return made


def _dots(s: Scatter | None) -> Scatter | None:
    if s is None:
        return None
    return {
        "score": s["score"][:DOTS],
        "loss": s["loss"][:DOTS],
        "fate": s["fate"][:DOTS],
        "of": s["of"],
    }


def _pictures(found: Sequence[Suspect]) -> list[Suspect]:
    kept = shown((s.get("image", "") for s in found), PICTURES)
    return [{**s, "image": one} for s, one in zip(found, kept, strict=True)]


def _most_deferred(found: Sequence[ClassDeferral]) -> list[ClassDeferral]:
    """The classes that are deferred most, in their order."""
    most = sorted(range(len(found)), key=lambda i: -sum(found[i]["deferred"]))[:CLASSES]
    return [found[i] for i in sorted(most)]
