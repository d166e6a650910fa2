"""Which model is better: AURC with paired differences, and which other numbers may be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isfinite
from typing import cast

from howsure import metrics
from howsure.predictions import Predictions
from howsure.render.model import CostRow, Difference, Fairness, Metrics, ModelRow, Pair
from howsure.report import catalogue
from howsure.report.catalogue import is_claim
from howsure.report.comparison.models import Model
from howsure.report.measurement import Sureness, measured
from howsure.uncertainty.many import PairDifference, all_differences

Differences = dict[tuple[int, int], dict[str, Difference]]
FAIR = ("accuracy", "aurc", "augrc", "coverage_at_risk_0.05", "ece", "aece", "nll", "brier")
ONE_MODEL = ("auroc", "aupr_error", "aupr_success", "e_aurc")
PAIRED = ("accuracy", "aurc", "ece")
LOST = "correctness_brier"  # beside the ECE, which a constant claim makes small
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


def _same(a: Predictions, b: Predictions) -> bool:
    one, two = (p.known_prediction if p.kind == "confidence" else p.prediction for p in (a, b))
    right = bool((a.correct == b.correct).all())
    return right and (
        a.values is b.values if one is None or two is None else bool((one == two).all())
    )


def table(models: Sequence[Model], differences: Differences, sure: Sureness) -> list[ModelRow]:
    """One row per model, best AURC first: its numbers, and how far it is from the best."""
    fair = same_answers(models)
    numbers = [_numbers(m, fair, sure) for m in models]
    order = sorted(range(len(models)), key=lambda i: (numbers[i]["aurc"]["value"] or 0.0, i))
    return [
        {
            "name": models[i].name,
            "score": models[i].score_name,
            "metrics": numbers[i],
            "behind": _behind(i, order[0], differences),
        }
        for i in order
    ]


def _behind(i: int, best: int, differences: Differences) -> Difference:
    if i == best:
        return {"value": 0.0, "low": None, "high": None, "clear": False, "why": "the best itself"}
    found = differences[min(i, best), max(i, best)]["aurc"]
    if i < best:
        return found
    low, high = (None if end is None else -end for end in (found["high"], found["low"]))
    return {**found, "value": -found["value"], "low": low, "high": high}


def _numbers(m: Model, fair: bool, sure: Sureness) -> Metrics:
    found = numbers_of(m, (*FAIR, *(ONE_MODEL if fair else ())), sure)
    withheld = [item for item in catalogue.ranking() if item.name in ONE_MODEL and not fair]
    hidden: Metrics = {
        item.name: {"value": None, "why": WITHHELD, "better": item.better} for item in withheld
    }
    return {**found, **hidden}


def numbers_of(m: Model, names: Sequence[str], sure: Sureness) -> Metrics:
    """Those of the named numbers that the model's score allows."""
    items = [item for item in catalogue.possible(m.preds, m.tally) if item.name in names]
    return measured(items, m.samples, m.score_name, sure)


def comparable(rows: Sequence[ModelRow], fair: bool) -> dict[str, Fairness]:
    """Which columns may be compared, and why or why not."""
    shown = [name for name in (*FAIR, *ONE_MODEL) if any(name in row["metrics"] for row in rows)]
    same = "all models give the same answers, so their scores compare"
    return {
        name: {"fair": True, "why": FAIR_WHY[name]}
        if name in FAIR
        else {"fair": fair, "why": same if fair else WITHHELD}
        for name in shown
    }


def paired(models: Sequence[Model], sure: Sureness) -> Differences:
    """The paired differences of every two models, by their places; positive: the first has the
    higher number.

    All pairs are looked at together: among equal models some pair is called clear in 1 − level of
    the tables at most.
    """
    names = (
        [*PAIRED, LOST]
        if all(is_claim(m.tally) for m in models)
        else [n for n in PAIRED if n != "ece"]
    )
    outcomes = [m.outcomes for m in models]
    found: Differences = {pair: {} for pair in combinations(range(len(models)), 2)}
    for name in names:
        for pair in all_differences(getattr(metrics, name), outcomes, sure.level, sure.seed):
            found[pair.first, pair.second][name] = _difference(pair)
    return found


def pairs(models: Sequence[Model], differences: Differences) -> list[Pair]:
    """Every pair with its paired differences."""
    return [
        cast(Pair, {"a": models[i].name, "b": models[j].name, **found})
        for (i, j), found in differences.items()
    ]


def _difference(pair: PairDifference) -> Difference:
    """A difference with its own limits; `clear` allows for all the pairs that were looked at."""
    if not (isfinite(pair.low) and isfinite(pair.high)):
        return {
            "value": pair.difference,
            "low": None,
            "high": None,
            "clear": False,
            "why": "it has no limits",
        }
    return {"value": pair.difference, "low": pair.low, "high": pair.high, "clear": pair.clear}


def pareto(rows: Sequence[ModelRow], cost: Mapping[str, float]) -> list[CostRow]:
    """Cost against AURC and ECE; `beaten_by` names a model that costs no more and is better by it."""
    priced = [row for row in rows if row["name"] in cost]
    return [
        {
            "name": row["name"],
            "cost": float(cost[row["name"]]),
            "aurc": _value(row, "aurc"),
            "ece": _value(row, "ece"),
            "beaten_by": {
                "aurc": _beaten(row, priced, cost, "aurc"),
                "ece": _beaten(row, priced, cost, "ece"),
            },
        }
        for row in priced
    ]


def _value(row: ModelRow, name: str) -> float | None:
    entry = row["metrics"].get(name)
    return None if entry is None else entry["value"]


def _beaten(
    row: ModelRow, rows: Sequence[ModelRow], cost: Mapping[str, float], metric: str
) -> str | None:
    """The first model that costs no more and is no worse, and better in one of the two."""
    price, here = cost[row["name"]], _value(row, metric)
    for other in rows:
        paid, there = cost[other["name"]], _value(other, metric)
        if here is None or there is None or paid > price or there > here:
            continue
        if paid < price or there < here:
            return other["name"]
    return None
