"""Which model is better: AURC with paired differences, and which other numbers may be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isfinite
from typing import Any

from howsure import metrics
from howsure.report import catalogue
from howsure.report.comparison.models import Model
from howsure.report.report import Scored
from howsure.uncertainty.intervals import paired_difference

FAIR = ("accuracy", "aurc", "augrc", "coverage_at_risk_0.05", "ece", "aece", "nll", "brier")
ONE_MODEL = ("auroc", "aupr_error", "aupr_success", "e_aurc")
PAIRED = ("accuracy", "aurc", "ece")
PRICED = ("aurc", "ece")
WITHHELD = (
    "withheld: the models answer differently, and this number takes right and wrong answers as given. It can rise "
    "while the model gets worse (Ding et al. 2020, section 4.1 and table 1). Read AURC instead."
)
FAIR_WHY = {
    "accuracy": "a property of the answers alone",
    "aurc": "joins answers and confidence, so models of different accuracy compare",
    "augrc": "joins answers and confidence, so models of different accuracy compare",
    "coverage_at_risk_0.05": "the same promise for every model",
    "ece": "of each model's own confidence; biased upwards, more so where few samples fill many bins",
    "aece": "of each model's own confidence",
    "nll": "a proper score of the whole answer",
    "brier": "a proper score of the whole answer",
}


def same_answers(models: Sequence[Model]) -> bool:
    """Whether all models give the same answer to every sample, so that only their scores differ."""
    first = models[0].preds
    return all(_same(first, m.preds) for m in models[1:])


def _same(a: Any, b: Any) -> bool:
    said = [p.known_prediction if p.kind == "confidence" else p.prediction for p in (a, b)]
    if any(s is None for s in said):
        return bool((a.correct == b.correct).all()) and a.values is b.values
    return bool((said[0] == said[1]).all() and (a.correct == b.correct).all())


def table(models: Sequence[Model], level: float, seed: int) -> list[dict[str, Any]]:
    """One row per model, best AURC first: its numbers, and how far it is from the best."""
    fair = same_answers(models)
    rows: list[dict[str, Any]] = [
        {"name": m.name, "score": m.score_name, "metrics": _numbers(m, fair, level, seed)} for m in models
    ]
    order = sorted(range(len(rows)), key=lambda i: (rows[i]["metrics"]["aurc"]["value"], i))
    best = models[order[0]]
    return [{**rows[i], "behind": _difference(models[i], best, "aurc", level, seed)} for i in order]


def _numbers(m: Model, fair: bool, level: float, seed: int) -> dict[str, Any]:
    found = measured(m, (*FAIR, *(ONE_MODEL if fair else ())), level, seed)
    withheld = {"value": None, "why": WITHHELD}
    hidden = {i.name: {**withheld, "better": i.better} for i in catalogue.ranking() if i.name in ONE_MODEL and not fair}
    return {**found, **hidden}


def measured(m: Model, names: Sequence[str], level: float, seed: int) -> dict[str, Any]:
    """Those of the named numbers that the model's score allows."""
    low, high = m.tally.score_range()
    items = [*catalogue.whole(m.preds), *catalogue.ranking(), *(catalogue.claims() if low >= 0 and high <= 1 else [])]
    return Scored(m.preds, m.score, level, seed).measure([i for i in items if i.name in names])


def comparable(rows: Sequence[Mapping[str, Any]], fair: bool) -> dict[str, Any]:
    """Which columns may be compared, and why or why not."""
    shown = [name for name in (*FAIR, *ONE_MODEL) if any(name in row["metrics"] for row in rows)]
    same = "all models give the same answers, so their scores compare"
    return {
        name: {"fair": True, "why": FAIR_WHY[name]}
        if name in FAIR
        else {"fair": fair, "why": same if fair else WITHHELD}
        for name in shown
    }


def pairs(models: Sequence[Model], level: float, seed: int) -> list[dict[str, Any]]:
    """Every pair with its paired differences; positive: the first has the higher number."""
    return [
        {"a": a.name, "b": b.name, **{name: _difference(a, b, name, level, seed) for name in _shared(a, b)}}
        for a, b in combinations(models, 2)
    ]


def _shared(a: Model, b: Model) -> list[str]:
    ranges = [m.tally.score_range() for m in (a, b)]
    claims = all(low >= 0 and high <= 1 for low, high in ranges)
    return [name for name in PAIRED if name != "ece" or claims]


def _difference(a: Model, b: Model, name: str, level: float, seed: int) -> dict[str, Any]:
    """metric(a) − metric(b) with limits; `clear` where they exclude 0."""
    if a is b:
        return {"value": 0.0, "low": None, "high": None, "clear": False, "why": "the best itself"}
    value, low, high = paired_difference(getattr(metrics, name), a.outcomes, b.outcomes, level, seed)
    if not (isfinite(low) and isfinite(high)):
        return {"value": value, "low": None, "high": None, "clear": False, "why": "resampling gives no limits"}
    return {"value": value, "low": low, "high": high, "clear": bool(low > 0 or high < 0)}


def pareto(rows: Sequence[Mapping[str, Any]], cost: Mapping[str, float]) -> list[dict[str, Any]]:
    """Cost against AURC and ECE; `beaten_by` names a model that costs no more and is better by it."""
    priced = [row for row in rows if row["name"] in cost]
    return [
        {
            "name": row["name"],
            "cost": float(cost[row["name"]]),
            **{metric: _value(row, metric) for metric in PRICED},
            "beaten_by": {metric: _beaten(row, priced, cost, metric) for metric in PRICED},
        }
        for row in priced
    ]


def _value(row: Mapping[str, Any], name: str) -> float | None:
    return row["metrics"].get(name, {}).get("value")


def _beaten(
    row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], cost: Mapping[str, float], metric: str
) -> str | None:
    points = {r["name"]: (cost[r["name"]], _value(r, metric)) for r in rows}
    price, here = points[row["name"]]
    better = [
        name
        for name, (other, there) in points.items()
        if None not in (here, there) and other <= price and there <= here and (other < price or there < here)  # type: ignore[operator]
    ]
    return better[0] if better else None
