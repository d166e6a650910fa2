"""A comparison in words and pictures: a sheet for terminals and Markdown, and the page."""

from __future__ import annotations

from collections.abc import Sequence

from howsure._core import json
from howsure.render import svg
from howsure.render.html import drawn_json, render
from howsure.render.model import ComparisonData, CostRow, Difference, Entry, Metrics
from howsure.render.overlay import claimed, colour, overlaid, priced
from howsure.render.tables import Sheet, Table
from howsure.render.words import (
    NONE,
    between,
    between_percent,
    between_signed,
    heading,
    identity,
    level,
    limits,
    meaning,
    number,
    origin,
    percent,
    reasons,
    sentence,
    shared,
    signed,
    value,
)

FEW = 12  # models whose pairs a page lists one by one
PAIRS, RANKING = "Paired differences", "Ranking by AURC"
RANKED = ("augrc", "coverage_at_risk_0.05")
GROUPS = (
    ("Its answers", ("accuracy", "nll", "brier")),
    ("Can it be read as a probability?", ("ece", "aece")),
    ("Finding errors", ("auroc", "aupr_error", "aupr_success", "e_aurc")),
)


def sheet(data: ComparisonData) -> Sheet:
    """Everything that is printed of a comparison."""
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
    groups = f" in {data['groups']:,} groups" if "groups" in data else ""
    head = f"{len(data['models'])} models on the same {data['n']:,} samples{groups} · {level(data['level'])} intervals"
    return Sheet(head, [verdict(data)], [table for table in found if table.rows])


def verdict(data: ComparisonData) -> str:
    """Who is best, and whether that is more than chance."""
    best, *others = data["models"]
    tied = [row["name"] for row in others if not row["behind"]["clear"]]
    if not tied:
        return f"{best['name']} ranks best by AURC, clearly ahead of the others."
    names = ", ".join(tied)
    return f"{best['name']} has the lowest AURC; {names} may be as good: among so many pairs that is within chance."


def _ranking(data: ComparisonData) -> Table:
    """AURC, how far each model is behind the best, and what else is read from the order."""
    others = [name for name in RANKED if name in data["comparable"]]
    head = [
        "model",
        _title(data, "aurc"),
        "interval",
        "behind",
        "interval",
        *(_title(data, m) for m in others),
    ]
    rows = [
        [
            row["name"],
            number(row["metrics"]["aurc"]["value"]),
            _limits(row["metrics"]["aurc"]),
            *_difference(row["behind"]),
            *(_value(row["metrics"], m) for m in others),
        ]
        for row in data["models"]
    ]
    entries = [
        row["metrics"][m]
        for row in data["models"]
        for m in ("aurc", *others)
        if m in row["metrics"]
    ]
    behind = [row["behind"] for row in data["models"][1:]]
    notes = sentence(
        dict.fromkeys(text for row in data["models"] for text in shared(row["metrics"]))
    )
    alone = (
        ", each interval for itself: among so many pairs a few miss 0 by chance"
        if len(data["models"]) > 2
        else ""
    )
    said = (
        f"Behind: the paired difference to the best{alone}.",
        reasons([*entries, *behind]),
        notes,
    )
    return Table(RANKING, head, rows, " ".join(filter(None, said)))


def _numbers(data: ComparisonData, title: str, names: Sequence[str]) -> Table:
    """Further numbers with their limits; those that would be unfair are left out."""
    shown = [
        name for name in names if name in data["comparable"] and data["comparable"][name]["fair"]
    ]
    rows = (
        [[row["name"], *(_both(m, row["metrics"].get(m)) for m in shown)] for row in data["models"]]
        if shown
        else []
    )
    entries = [row["metrics"][m] for row in data["models"] for m in shown if m in row["metrics"]]
    return Table(title, ["model", *(_title(data, m) for m in shown)], rows, reasons(entries))


def _title(data: ComparisonData, metric: str) -> str:
    return heading(
        metric,
        next(r["metrics"][metric]["better"] for r in data["models"] if metric in r["metrics"]),
    )


def _value(metrics: Metrics, name: str) -> str:
    return value(name, metrics[name]) if name in metrics else NONE


def _limits(entry: Entry) -> str:
    return between(entry.get("low"), entry.get("high"), 3)


def _both(name: str, entry: Entry | None) -> str:
    """A number with its limits."""
    if entry is None or entry["value"] is None:
        return NONE
    between = limits(name, entry)
    return value(name, entry) + (f" ({between})" if between else "")


def _difference(d: Difference) -> list[str]:
    """A difference and its limits; the best is behind nobody."""
    if d["low"] is None and not d["value"]:
        return ["", ""]
    return [signed(d["value"]), between_signed(d["low"], d["high"])]


def _pairs(data: ComparisonData) -> Table:
    """AURC of all pairs first."""
    found = [
        *((p, "aurc", p["aurc"]) for p in data["pairs"]),
        *((p, "accuracy", p["accuracy"]) for p in data["pairs"]),
        *((p, "ece", p["ece"]) for p in data["pairs"] if "ece" in p),
        *(
            (p, "correctness_brier", p["correctness_brier"])
            for p in data["pairs"]
            if "correctness_brier" in p
        ),
    ]
    rows = [
        [
            f"{p['a']} − {p['b']}",
            meaning(name).title,
            *_difference(d),
            "clear" if d["clear"] else "",
        ]
        for p, name, d in found
    ]
    head = ["models", "number", "difference", "interval", ""]
    return Table(PAIRS, head, rows, "Clear: beyond chance although all pairs were looked at.")


def _fair(data: ComparisonData) -> Table:
    """Numbers with the same answer and reason share a row."""
    reasons: dict[tuple[bool, str], list[str]] = {}
    for metric, fact in data["comparable"].items():
        reasons.setdefault((fact["fair"], fact["why"]), []).append(meaning(metric).title)
    rows = [
        [", ".join(titles), "yes" if fair else "no", why] for (fair, why), titles in reasons.items()
    ]
    return Table("May these models be compared by it?", ["number", "fair", "why"], rows)


def _cost(data: ComparisonData) -> Table:
    what = data["cost_name"]
    rows = [
        [
            c["name"],
            svg.short(c["cost"]),
            number(c["aurc"]),
            number(c["ece"]),
            *(b or "nobody" for b in _beaten(c)),
        ]
        for c in data["cost"]
    ]
    head = ["model", what, "AURC ↓", "ECE ↓", "beaten in AURC by", "beaten in ECE by"]
    return Table(
        f"What does it cost ({what})?", head, rows, "Beaten: by a model that costs no more."
    )


def _beaten(c: CostRow) -> list[str | None]:
    return [
        c["beaten_by"]["aurc"],
        c["beaten_by"]["ece"] if c["ece"] is not None else "it has no ECE",
    ]


def _shifted(data: ComparisonData) -> Table:
    names = ("accuracy", "aurc", "ece")
    rows = [
        [s["set"], s["model"], f"{s['n']:,}", *(_both(m, s["metrics"].get(m)) for m in names)]
        for s in data["shifted"]
    ]
    return Table(
        "Shifted data beside the home set",
        ["set", "model", "samples", "accuracy ↑", "AURC ↓", "ECE ↓"],
        rows,
    )


def _outside(data: ComparisonData) -> list[Table]:
    """In or out, and finding errors on the mix of both."""
    kept = "FPR: outside samples kept where 95 % of the home samples are."
    mix = "Every answer to an outside sample counts as wrong. AUROC of finding errors compares scores of one model only."
    split, found = "AUROC of in or out ↑", "AUROC of finding errors ↑"
    return [
        _further(
            data,
            "Samples from outside: in or out?",
            {"auroc": split, "fpr_at_95": "FPR at 95 % ↓"},
            kept,
        ),
        _further(
            data,
            "Finding errors on the mix of both",
            {"mix_aurc": "AURC ↓", "mix_auroc": found},
            mix,
        ),
    ]


def _further(data: ComparisonData, title: str, names: dict[str, str], note: str) -> Table:
    rows = [
        [o["set"], o["model"], f"{o['n']:,}", *(_both(m, o["metrics"][m]) for m in names)]
        for o in data["outside"]
    ]
    return Table(title, ["set", "model", "samples", *names.values()], rows, note)


def _slices(data: ComparisonData) -> Table:
    rows = [
        [
            s["group"],
            s["model"],
            f"{s['n']:,}",
            percent(s["accuracy"]),
            between_percent(s["low"], s["high"]),
            number(s["aurc"]),
            number(s["gap"]),
            "worse" if s["worse"] else "",
        ]
        for s in data["slices"]
    ]
    head = [
        "group",
        "model",
        "samples",
        "accuracy ↑",
        "limits",
        "AURC ↓",
        "confidence − accuracy",
        "",
    ]
    return Table("Groups, worst first", head, rows, "The limits of all groups hold together.")


def _classes(data: ComparisonData) -> Table:
    names = [row["name"] for row in data["models"]]
    rows = [
        [c["name"], f"{c['count']:,}", *(percent(c["recall"][m]) for m in names)]
        for c in data["classes"]
    ]
    return Table("Recall by class, worst first", ["class", "samples", *names], rows)


def page(data: ComparisonData) -> str:
    """One offline file: overlaid curves, cost, who is clearly better, and all tables."""
    names = [row["name"] for row in data["models"]]
    shown, first = sheet(data), data["provenance"][names[0]]
    pictures = [overlaid(data), *claimed(data), *priced(data)]
    tables = [table for table in shown.tables if table.title != PAIRS or len(names) <= FEW]
    return render(
        "compare.html.j2",
        data=data,
        title="Which one is better?",
        sheet=shown,
        tables=[_cut(table, len(names)) for table in tables],
        matrix=matrix(data),
        models=names,
        pairs={f"{p['a']} − {p['b']}": json.line([p["a"], p["b"]]) for p in data["pairs"]},
        legend=[(name, colour(i)) for i, name in enumerate(names)],
        pictures=pictures,
        drawn_data=drawn_json(pictures),
        origin=[
            *(
                (name, ", ".join(identity(i) for i in p["inputs"]))
                for name, p in data["provenance"].items()
            ),
            *origin(data["howsure"], {**first, "inputs": []}),
        ],
    )


def _cut(table: Table, models: int) -> Table:
    """A long table of many models, cut to what a page can hold; the JSON has all of it."""
    most = 200 if models <= 4 else 60 if models <= FEW else 25
    if table.title == RANKING or len(table.rows) <= most:
        return table
    note = f"{table.note} The first {most} of {len(table.rows):,} rows.".strip()
    return Table(table.title, table.head, table.rows[:most], note)


def matrix(data: ComparisonData) -> Table:
    """Every model against every other by AURC; a sign is only given where the difference is clear."""
    names = [row["name"] for row in data["models"]]
    found: dict[tuple[str, str], str] = {}
    for p in data["pairs"]:
        better = p["aurc"]["value"] < 0
        signs = ("=", "=") if not p["aurc"]["clear"] else ("+", "−") if better else ("−", "+")
        found[p["a"], p["b"]], found[p["b"], p["a"]] = signs
    rows = [[a, *("" if a == b else found[a, b] for b in names)] for a in names]
    note = (
        "The row against the column, by AURC: + clearly better, − clearly worse, = not told apart."
    )
    return Table("Clearly better, or not told apart?", ["", *names], rows, note)
