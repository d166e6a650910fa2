"""The tables of the page: numbers of the JSON as they are written."""

from __future__ import annotations

from typing import Any

from howsure.render.words import interval, meaning, number

LISTED = (
    ("coverage", "decided alone"),
    ("threshold", "threshold"),
    ("accuracy", "right among these"),
    ("limits", "with limits"),
    ("errors", "wrong per 1,000"),
    ("deferred", "deferred per 1,000"),
)
TABLE = 20  # rows of the operating table


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent, or a dash."""
    return "–" if share is None else f"{share * 100:.{digits}f} %"


def operating(report: dict[str, Any], start: int) -> dict[str, Any]:
    """The operating points: what is written for each, and what the script needs to draw them."""
    o = report["views"]["operating"]
    shown = _shown(o)
    last = len(o["coverage"]) - 1
    listed = [row for row in LISTED if row[0] != "limits" or o["low"] is not None]
    data = {
        "shown": shown,
        "coverage": o["coverage"],
        "threshold": [_or(t, 0.0) for t in o["threshold"]],
        "accuracy": o["accuracy"],
        "risk": [float(f"{1 - a:.6g}") for a in o["accuracy"]],
        "deferred": [float(f"{1 - c:.6g}") for c in o["coverage"]],
        "classes": [c["deferred"] for c in o["classes"]],
    }
    names = [
        {"name": c["name"], "value": c["deferred"][start], "shown": percent(c["deferred"][start])} for c in o["classes"]
    ]
    k = report["k"] or len(report["views"]["classes"])
    return {
        "shown": shown,
        "listed": listed,
        "last": last,
        "start": start,
        "table": [i for i in range(last, -1, -1) if (last - i) % max(1, (last + 1) // TABLE) == 0],
        "names": names,
        "names_note": f"The {len(names)} classes that are deferred most."
        if len(names) < k
        else "Share of each true class that is deferred at this threshold.",
        "data": data,
    }


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _shown(o: dict[str, Any]) -> dict[str, list[str]]:
    rows = range(len(o["coverage"]))
    shown = {
        "coverage": [percent(v) for v in o["coverage"]],
        "threshold": [number(v) if v is None or not 0.99 <= v < 1 else f"{v:.7g}" for v in o["threshold"]],
        "accuracy": [percent(v, 2) for v in o["accuracy"]],
        "errors": [f"{v:.1f}" for v in o["errors"]],
        "deferred": [f"{v:.0f}" for v in o["deferred"]],
        "error_cases": [f"{v:.1f}" for v in o["errors"]],
        "deferred_cases": [f"{v:.0f}" for v in o["deferred"]],
    }
    if o["low"] is not None:
        shown["limits"] = [f"{o['low'][i] * 100:.2f} … {o['high'][i] * 100:.2f} %" for i in rows]
    shown["said"] = [f"{shown['coverage'][i]} decided alone, {shown['accuracy'][i]} of these right" for i in rows]
    return shown


def bins(curve: dict[str, Any]) -> list[list[str]]:
    """From, answers, confidence, accuracy and what chance allows, per bin."""
    columns = zip(*(curve[c] for c in ("threshold", "weight", "x", "y", "low", "high")), strict=True)
    return [
        [number(low), f"{n:,.0f}", number(x), number(y), "–" if a is None else f"{a:.3g} … {b:.3g}"]
        for low, n, x, y, a, b in columns
    ]


def bands(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Bands of promised accuracy, one row per score."""
    found = {report["score"]: report["views"]["bands"], **{name: s["bands"] for name, s in report["scores"].items()}}
    return [{"name": name, "cells": [*map(_band, rows), percent(rows[-1]["accuracy"])]} for name, rows in found.items()]


def _band(b: dict[str, Any]) -> str:
    """The share of a band and where it begins."""
    start = "" if b["threshold"] is None else f" from {number(b['threshold'])}"
    return f"{percent(b['share'])}{start}" if b["share"] else "none"


def calibration(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a calibrator changed, what the others would have done, and remarks."""
    if found is None:
        return None
    methods, metrics = found.get("methods", {}), list(found["metrics"])
    return {
        "rows": [{"name": meaning(m).title, "cells": _change(c)} for m, c in found["metrics"].items()],
        "notes": found.get("notes", []),
        "columns": [meaning(m).title for m in metrics],
        "methods": [{"name": n, "cells": [number(v[m]) for m in metrics]} for n, v in methods.items()],
    }


def _change(c: dict[str, Any]) -> list[str]:
    d = c["difference"]
    signed = "–" if d["value"] is None else f"{d['value']:+.3g}"
    limits = "–" if d["low"] is None or d["high"] is None else f"{d['low']:+.2g} … {d['high']:+.2g}"
    return [number(c["before"]["value"]), number(c["after"]["value"]), signed, limits, c["verdict"]]


def suspects(report: dict[str, Any]) -> dict[str, Any] | None:
    """Sure and wrong answers, with images where there are any."""
    found = report["views"]["label_errors"]
    if not found:
        return None
    rows = [_suspect(s) for s in found]
    return {"rows": rows, "images": any(s["image"] for s in rows)}


def _suspect(s: dict[str, Any]) -> dict[str, Any]:
    named = {key: "–" if s[key] is None else s[key] for key in ("prediction", "label")}
    score = "–" if s["score"] is None else f"{s['score']:.6g}"
    return {**s, **named, "score": score, "image": s.get("image")}


def classes(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Recall, precision and confidence per class."""
    return [
        {
            "name": c["name"],
            "cells": [
                f"{c['count']:,}",
                percent(c["recall"]),
                limits(c),
                f"{c['given']:,}",
                percent(c["precision"]),
                percent(c["confidence"]),
            ],
        }
        for c in report["views"]["classes"]
    ]


def limits(c: dict[str, Any]) -> str:
    """Limits of a share in percent, or a dash."""
    return "–" if c["low"] is None else f"{c['low'] * 100:.1f} … {c['high'] * 100:.1f} %"


def binary(found: dict[str, Any] | None) -> list[dict[str, str]]:
    """The numbers of the positive class."""
    if found is None:
        return []
    entries: list[tuple[str, dict[str, Any]]] = [
        ("prevalence", {"value": found["prevalence"]}),
        ("ECE of the positive class", {"value": found["ece"]}),
        ("calibration slope (1 is perfect)", found["calibration_slope"]),
        ("calibration intercept (0 is perfect)", found["calibration_intercept"]),
        *((f"Brier, {name}", {"value": value}) for name, value in found["brier_decomposition"].items()),
    ]
    return [{"title": title, "value": number(e["value"]), "interval": interval(e)} for title, e in entries]


def evidence(value: Any) -> str:
    """A piece of evidence as it is written."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return ", ".join(evidence(v) for v in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _read(i: dict[str, Any]) -> str:
    """What tells this input from another one; of a streamed file that is its size."""
    return f"sha256 {i['sha256']}" if "sha256" in i else f"{i['bytes']:,} bytes"


def origin(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Provenance, line by line."""
    p = report["provenance"]
    inputs = [(i.get("file") or f"arrays ({i.get('arrays')})", _read(i)) for i in p["inputs"]]
    versions = ", ".join(f"{name} {v}" for name, v in p["versions"].items())
    command = [("command", p["command"])] if p["command"] else []
    return [*inputs, *command, ("seed", str(p["seed"])), ("made with", f"howsure {report['howsure']}, {versions}")]
