"""A comparison in words and pictures: a sheet for terminals and Markdown, and the page."""

from __future__ import annotations

from collections.abc import Sequence

from howsure.render import svg
from howsure.render.html import render
from howsure.render.model import ComparisonData, CostRow, Difference, Entry, Metrics
from howsure.render.pictures import LINES, UNIT, Picture, top
from howsure.render.tables import Sheet, Table
from howsure.render.words import (
    between,
    between_percent,
    between_signed,
    heading,
    identity,
    level,
    meaning,
    number,
    origin,
    percent,
    signed,
)

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
    head = f"{len(data['models'])} models on the same {data['n']:,} samples · {level(data['level'])} intervals"
    return Sheet(head, [verdict(data)], [table for table in found if table.rows])


def verdict(data: ComparisonData) -> str:
    """Who is best, and whether that is more than chance."""
    best, *others = data["models"]
    tied = [row["name"] for row in others if not row["behind"]["clear"]]
    if not tied:
        return f"{best['name']} ranks best by AURC, clearly ahead of the others."
    return (
        f"{best['name']} has the lowest AURC; {', '.join(tied)} may be as good: the interval of the difference holds 0."
    )


def _ranking(data: ComparisonData) -> Table:
    """AURC, how far each model is behind the best, and what else is read from the order."""
    others = [name for name in RANKED if name in data["comparable"]]
    head = ["model", _title(data, "aurc"), "interval", "behind", "interval", *(_title(data, m) for m in others)]
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
    return Table("Ranking by AURC", head, rows, "Behind: the paired difference to the best.")


def _numbers(data: ComparisonData, title: str, names: Sequence[str]) -> Table:
    """Further numbers with their limits; those that would be unfair are left out."""
    shown = [name for name in names if name in data["comparable"] and data["comparable"][name]["fair"]]
    rows = [[row["name"], *(_both(row["metrics"].get(m)) for m in shown)] for row in data["models"]] if shown else []
    return Table(title, ["model", *(_title(data, m) for m in shown)], rows)


def _title(data: ComparisonData, metric: str) -> str:
    return heading(metric, next(r["metrics"][metric]["better"] for r in data["models"] if metric in r["metrics"]))


def _value(metrics: Metrics, name: str) -> str:
    return number(metrics[name]["value"]) if name in metrics else "–"


def _limits(entry: Entry) -> str:
    return between(entry.get("low"), entry.get("high"), 3)


def _both(entry: Entry | None) -> str:
    """A number with its limits."""
    if entry is None or entry["value"] is None:
        return "–"
    limits = _limits(entry)
    return number(entry["value"]) + ("" if limits == "–" else f" ({limits})")


def _difference(d: Difference) -> list[str]:
    """A difference and its limits; of the best to itself there is none."""
    return [signed(d["value"] or None if d["low"] is None else d["value"]), between_signed(d["low"], d["high"])]


def _pairs(data: ComparisonData) -> Table:
    """AURC of all pairs first."""
    found = [
        *((p, "aurc", p["aurc"]) for p in data["pairs"]),
        *((p, "accuracy", p["accuracy"]) for p in data["pairs"]),
        *((p, "ece", p["ece"]) for p in data["pairs"] if "ece" in p),
    ]
    rows = [
        [f"{p['a']} − {p['b']}", meaning(name).title, *_difference(d), "clear" if d["clear"] else ""]
        for p, name, d in found
    ]
    head = ["models", "number", "difference", "interval", ""]
    return Table("Paired differences", head, rows, "Clear: the interval excludes 0.")


def _fair(data: ComparisonData) -> Table:
    """Numbers with the same answer and reason share a row."""
    reasons: dict[tuple[bool, str], list[str]] = {}
    for metric, fact in data["comparable"].items():
        reasons.setdefault((fact["fair"], fact["why"]), []).append(meaning(metric).title)
    rows = [[", ".join(titles), "yes" if fair else "no", why] for (fair, why), titles in reasons.items()]
    return Table("May these models be compared by it?", ["number", "fair", "why"], rows)


def _cost(data: ComparisonData) -> Table:
    what = data["cost_name"]
    rows = [
        [c["name"], svg.short(c["cost"]), number(c["aurc"]), number(c["ece"]), *(b or "nobody" for b in _beaten(c))]
        for c in data["cost"]
    ]
    head = ["model", what, "AURC ↓", "ECE ↓", "beaten in AURC by", "beaten in ECE by"]
    return Table(f"What does it cost ({what})?", head, rows, "Beaten: by a model that costs no more.")


def _beaten(c: CostRow) -> list[str | None]:
    return [c["beaten_by"]["aurc"], c["beaten_by"]["ece"] if c["ece"] is not None else "–"]


def _shifted(data: ComparisonData) -> Table:
    names = ("accuracy", "aurc", "ece")
    rows = [
        [s["set"], s["model"], f"{s['n']:,}", *(_both(s["metrics"].get(m)) for m in names)] for s in data["shifted"]
    ]
    return Table("Shifted data beside the home set", ["set", "model", "samples", "accuracy ↑", "AURC ↓", "ECE ↓"], rows)


def _outside(data: ComparisonData) -> list[Table]:
    """In or out, and finding failures on the mix of both."""
    kept = "FPR: outside samples kept where 95 % of the home samples are."
    mix = "Every answer to an outside sample counts as wrong. AUROC compares scores of one model only."
    return [
        _further(data, "Samples from outside: in or out?", {"auroc": "AUROC ↑", "fpr_at_95": "FPR at 95 % ↓"}, kept),
        _further(data, "Finding failures on the mix of both", {"mix_aurc": "AURC ↓", "mix_auroc": "AUROC ↑"}, mix),
    ]


def _further(data: ComparisonData, title: str, names: dict[str, str], note: str) -> Table:
    rows = [[o["set"], o["model"], f"{o['n']:,}", *(_both(o["metrics"][m]) for m in names)] for o in data["outside"]]
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
    head = ["group", "model", "samples", "accuracy ↑", "limits", "AURC ↓", "confidence − accuracy", ""]
    return Table("Groups, worst first", head, rows, "The limits of all groups hold together.")


def _classes(data: ComparisonData) -> Table:
    names = [row["name"] for row in data["models"]]
    rows = [[c["name"], f"{c['count']:,}", *(percent(c["recall"][m]) for m in names)] for c in data["classes"]]
    return Table("Recall by class, worst first", ["class", "samples", *names], rows)


def page(data: ComparisonData) -> str:
    """One offline file: overlaid curves, cost, and all tables."""
    names = [row["name"] for row in data["models"]]
    shown, first = sheet(data), data["provenance"][names[0]]
    return render(
        "compare.html.j2",
        data=data,
        title="Which one is better?",
        sheet=shown,
        legend=[(name, _colour(i)) for i, name in enumerate(names)],
        pictures=[_overlaid(data), *_claimed(data), *_priced(data)],
        origin=[
            *((name, ", ".join(identity(i) for i in p["inputs"])) for name, p in data["provenance"].items()),
            *origin(data["howsure"], {**first, "inputs": []}),
        ],
    )


def _colour(model: int) -> str:
    return f"c{model % LINES}"


def _overlaid(data: ComparisonData) -> Picture:
    curves = [data["curves"][row["name"]] for row in data["models"]]
    f = svg.frame(UNIT, (0, top(v for c in curves for v in c["y"])), ("share accepted", "wrong among the accepted"))
    lines = [svg.line(f, c["x"], c["y"], _colour(i)) for i, c in enumerate(curves)]
    read = "A lower curve is better. Curves that cross: better for one coverage, worse for another."
    return Picture("Risk and coverage", read, svg.svg(f, lines[::-1], title="Risk against coverage of every model"))


def _claimed(data: ComparisonData) -> list[Picture]:
    """Reliability of the models whose score is a probability."""
    found = [(i, data["reliability"].get(row["name"])) for i, row in enumerate(data["models"])]
    f = svg.frame(UNIT, UNIT, ("confidence", "accuracy"))
    lines = [svg.line(f, c["x"], c["y"], _colour(i)) for i, c in found if c is not None]
    if not lines:
        return []
    marks = [svg.line(f, UNIT, UNIT, "ideal"), *lines[::-1]]
    read = "Fifteen bins of equally many answers. On the dashed line confidence is accuracy; below it claims too much."
    return [Picture("Reliability", read, svg.svg(f, marks, title="Accuracy against confidence of every model"))]


def _priced(data: ComparisonData) -> list[Picture]:
    """Cost against AURC and, where known, ECE; one dot per model."""
    colour = {row["name"]: _colour(i) for i, row in enumerate(data["models"])}
    found: list[Picture] = []
    for name in ("aurc", "ece"):
        known = [(c["cost"], c[name], colour[c["name"]]) for c in data["cost"]]
        dots = [(cost, value, kind) for cost, value, kind in known if value is not None]
        if dots:
            found.append(_dots(dots, data["cost_name"], meaning(name).title))
    return found


def _dots(dots: list[tuple[float, float, str]], what: str, title: str) -> Picture:
    ends = (top(cost for cost, _, _ in dots), top(value for _, value, _ in dots))
    f = svg.frame((0, ends[0]), (0, ends[1]), (what, title), (svg.short, svg.plain))
    marks = [svg.dots(f, [cost], [value], kind) for cost, value, kind in dots]
    drawn = svg.svg(f, marks, title=f"{title} against {what}")
    return Picture(f"Cost and {title}", "Lower and further left is better.", drawn)
