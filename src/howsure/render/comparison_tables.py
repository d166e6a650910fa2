"""Comparison JSON → tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from howsure.render import svg
from howsure.render.sections import limits, percent
from howsure.render.words import ARROWS, level, meaning, number

RANKED = ("aurc", "augrc", "coverage_at_risk_0.05")
GROUPS = (
    ("Its answers", ("accuracy", "nll", "brier")),
    ("Can it be read as a probability?", ("ece", "aece")),
    ("Finding errors", ("auroc", "aupr_error", "aupr_success", "e_aurc")),
)


class Table(NamedTuple):
    """A heading, column names, and rows of text whose first cell is a name."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""


def tables(data: dict[str, Any]) -> list[Table]:
    """Everything that is told of a comparison, as tables."""
    found = [
        _ranking(data),
        *(_numbers(data, title, names) for title, names in GROUPS),
        _pairs(data),
        _fair(data),
        _cost(data),
        _shifted(data),
        *_outside(data),
        _slices(data),
        _classes(data),
    ]
    return [t for t in found if t.rows]


def headline(data: dict[str, Any]) -> str:
    """One line about what is compared."""
    return f"{len(data['models'])} models on the same {data['n']:,} samples · {level(data['level'])} intervals"


def verdict(data: dict[str, Any]) -> str:
    """Who is best, and whether that is more than chance."""
    best, *others = data["models"]
    tied = [row["name"] for row in others if not row["behind"]["clear"]]
    if not tied:
        return f"{best['name']} ranks best by AURC, clearly ahead of the others."
    return (
        f"{best['name']} has the lowest AURC; {', '.join(tied)} may be as good: the interval of the difference holds 0."
    )


def _ranking(data: dict[str, Any]) -> Table:
    """AURC, how far each model is behind the best, and what else is read from the order."""
    aurc, *others = [name for name in RANKED if name in data["comparable"]]
    columns = ["model", _title(data, aurc), "interval", "behind", "interval", *(_title(data, m) for m in others)]
    rows = [
        [row["name"], number(entry["value"]), _limits(entry), *_behind(row["behind"]), *_values(row, others)]
        for row in data["models"]
        for entry in [row["metrics"][aurc]]
    ]
    return Table("Ranking by AURC", columns, rows, "Behind: the paired difference to the best.")


def _numbers(data: dict[str, Any], title: str, names: Sequence[str]) -> Table:
    """Further numbers with their limits; those that would be unfair are left out."""
    shown = [name for name in names if data["comparable"].get(name, {"fair": False})["fair"]]
    rows = [[row["name"], *(_both(row["metrics"].get(m)) for m in shown)] for row in data["models"]] if shown else []
    return Table(title, ["model", *(_title(data, m) for m in shown)], rows)


def _title(data: dict[str, Any], metric: str) -> str:
    return f"{meaning(metric).title}\N{NO-BREAK SPACE}{ARROWS[_better(data, metric)]}"


def _values(row: dict[str, Any], names: Sequence[str]) -> list[str]:
    return [number(row["metrics"].get(m, {"value": None})["value"]) for m in names]


def _limits(entry: dict[str, Any]) -> str:
    """Limits in three digits, or a dash."""
    return "–" if entry.get("low") is None else f"{entry['low']:.3g} … {entry['high']:.3g}"


def _both(entry: dict[str, Any] | None) -> str:
    """A number with its limits."""
    if entry is None or entry["value"] is None:
        return "–"
    return number(entry["value"]) + ("" if entry.get("low") is None else f" ({_limits(entry)})")


def _behind(d: dict[str, Any]) -> list[str]:
    """A difference and its limits; of the best to itself there is none."""
    if d["low"] is None:
        return [f"{d['value']:+.3g}" if d["value"] else "–", "–"]
    return [f"{d['value']:+.3g}", f"{d['low']:+.2g} … {d['high']:+.2g}"]


def _better(data: dict[str, Any], metric: str) -> str:
    return next(row["metrics"][metric]["better"] for row in data["models"] if metric in row["metrics"])


def _pairs(data: dict[str, Any]) -> Table:
    """AURC of all pairs first."""
    rows = [
        [f"{p['a']} − {p['b']}", meaning(m).title, *_behind(p[m]), "clear" if p[m]["clear"] else ""]
        for m in ("aurc", "accuracy", "ece")
        for p in data["pairs"]
        if m in p
    ]
    columns = ["models", "number", "difference", "interval", ""]
    return Table("Paired differences", columns, rows, "Clear: the interval excludes 0.")


def _fair(data: dict[str, Any]) -> Table:
    """Numbers with the same answer and reason share a row."""
    reasons: dict[tuple[bool, str], list[str]] = {}
    for metric, fact in data["comparable"].items():
        reasons.setdefault((fact["fair"], fact["why"]), []).append(meaning(metric).title)
    rows = [[", ".join(titles), "yes" if fair else "no", why] for (fair, why), titles in reasons.items()]
    return Table("May these models be compared by it?", ["number", "fair", "why"], rows)


def _cost(data: dict[str, Any]) -> Table:
    what = data["cost_name"]
    rows = [
        [c["name"], svg.short(c["cost"]), number(c["aurc"]), number(c["ece"]), *(b or "nobody" for b in _beaten(c))]
        for c in data["cost"]
    ]
    columns = ["model", what, "AURC ↓", "ECE ↓", "beaten in AURC by", "beaten in ECE by"]
    return Table(f"What does it cost ({what})?", columns, rows, "Beaten: by a model that costs no more.")


def _beaten(c: dict[str, Any]) -> list[str | None]:
    return [c["beaten_by"]["aurc"], c["beaten_by"]["ece"] if c["ece"] is not None else "–"]


def _shifted(data: dict[str, Any]) -> Table:
    names = ("accuracy", "aurc", "ece")
    rows = [
        [s["set"], s["model"], f"{s['n']:,}", *(_both(s["metrics"].get(m)) for m in names)] for s in data["shifted"]
    ]
    return Table("Shifted data beside the home set", ["set", "model", "samples", "accuracy ↑", "AURC ↓", "ECE ↓"], rows)


def _outside(data: dict[str, Any]) -> list[Table]:
    """In or out, and finding failures on the mix of both."""
    one = _further(data, {"auroc": "AUROC ↑", "fpr_at_95": "FPR at 95 % ↓"})
    two = _further(data, {"mix_aurc": "AURC ↓", "mix_auroc": "AUROC ↑"})
    mix = "Every answer to an outside sample counts as wrong. AUROC compares scores of one model only."
    return [
        Table(
            "Samples from outside: in or out?", *one, "FPR: outside samples kept where 95 % of the home samples are."
        ),
        Table("Finding failures on the mix of both", *two, mix),
    ]


def _further(data: dict[str, Any], names: dict[str, str]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of an outside set."""
    rows = [[o["set"], o["model"], f"{o['n']:,}", *(_both(o["metrics"][m]) for m in names)] for o in data["outside"]]
    return ["set", "model", "samples", *names.values()], rows


def _slices(data: dict[str, Any]) -> Table:
    rows = [
        [
            s["group"],
            s["model"],
            f"{s['n']:,}",
            percent(s["accuracy"]),
            limits(s),
            number(s["aurc"]),
            number(s["gap"]),
            "worse" if s["worse"] else "",
        ]
        for s in data["slices"]
    ]
    columns = ["group", "model", "samples", "accuracy ↑", "limits", "AURC ↓", "confidence − accuracy", ""]
    return Table("Groups, worst first", columns, rows, "The limits of all groups hold together.")


def _classes(data: dict[str, Any]) -> Table:
    if not data["classes"]:
        return Table("", [], [])
    names = [row["name"] for row in data["models"]]
    rows = [[c["name"], f"{c['count']:,}", *(percent(c["recall"][m]) for m in names)] for c in data["classes"]]
    return Table("Recall by class, worst first", ["class", "samples", *names], rows)
