"""The tables of a comparison: models ranked by AURC with paired differences, their cost, further
data sets, groups and classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import combinations
from math import isfinite, isnan, nan
from typing import cast

import numpy as np

from howsure import metrics
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.bounds import compute_proportion_limits
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes
from howsure.report import catalogue
from howsure.report.catalogue import BY_NAME, Score, is_claim
from howsure.report.focus_sections import THRESHOLDS
from howsure.report.measurement import Sureness, TallyData, measure_items
from howsure.report.report_types import (
    COST_METRICS,
    BenefitRow,
    CostRow,
    Difference,
    Entry,
    Fairness,
    FindingData,
    FurtherRow,
    Metrics,
    ModelRow,
    Number,
    PairData,
    RecallRow,
    SliceRow,
    TieData,
)
from howsure.report.samples import Samples, Shape, find_known_classes, list_class_names
from howsure.report.score_findings import find_unsafe_top
from howsure.report.summary import Summary
from howsure.report.sums import find_class_numbers
from howsure.report.verdict import FALSE_FINDING_RATE, FindingCase
from howsure.report.views import round_numbers
from howsure.tallies.building import tally
from howsure.tallies.tally import Tally
from howsure.uncertainty.intervals import (
    all_differences,
    hold_same_outcomes,
    net_benefit_difference,
    pair_with_first,
)
from howsure.uncertainty.limits import compute_limits
from howsure.uncertainty.paired import combine_limits
from howsure.uncertainty.sample_case import SampleCase

# A model, or a model with the score that is looked at.
ModelInput = Predictions | tuple[Predictions, Score]

Differences = dict[tuple[int, int], dict[str, Difference]]  # by places of the two models, by metric
SAME_ANSWERS_METRICS = ("auroc", "aupr_error", "aupr_success", "e_aurc")
PAIRED_METRICS = ("accuracy", "aurc", "ece")
BESIDE_ECE = "correctness_brier"  # a constant claim makes the ECE small, and this one large
WITHHELD = (
    "withheld: the models answer differently, and this number takes right and wrong answers as given. It can rise "
    "while the model gets worse (Ding et al. 2020, section 4.1 and table 1). Read AURC instead."
)
NO_PAIRS = "counts do not say which answers are to the same sample"
FAIR_METRICS = {
    "accuracy": "a property of the answers alone",
    "aurc": "joins answers and confidence, so models of different accuracy compare",
    "augrc": "joins answers and confidence, so models of different accuracy compare",
    "coverage_at_risk_0.05": "the same limit for every model",
    "eor_pool": "odds against each model's own base rate: read it beside the accuracy",
    "ece": "of each model's own confidence; biased upwards, more so where few samples fill many bins",
    "aece": "of each model's own confidence",
    "mce": "of each model's own confidence",
    "amce": "of each model's own confidence",
    "nll": "a proper score of the whole answer",
    "brier": "a proper score of the whole answer",
}
# What is looked at where AURC does not tell models apart.
TIE_METRICS: dict[str, Callable[..., float]] = {
    "accuracy": metrics.accuracy,
    "augrc": metrics.augrc,
    "coverage_at_risk_0.01": partial(metrics.coverage_at_risk, risk=0.01),
    "coverage_at_risk_0.05": partial(metrics.coverage_at_risk, risk=0.05),
    "risk_at_coverage_0.02": partial(metrics.risk_at_coverage, coverage=0.02),
}
LOWER_TIE_METRICS = {"augrc", "risk_at_coverage_0.02"}  # of which less is better
HOME_KEPT = 0.95  # share of home samples kept where the false positive rate is read
LEAST_TESTED = 20  # a group of fewer samples is listed, not tested
LISTED_GROUPS = 200  # or classes, the worst ones


@frozen(eq=False)
class ComparedModel:
    """One model and its samples with the score that is looked at."""

    name: str
    samples: Samples

    @classmethod
    def of(cls, name: str, preds: Predictions, score: Score | None) -> ComparedModel:
        """A model with its score computed."""
        return cls(name=str(name), samples=Samples.of(preds, [score or preds.score_name]))

    @property
    def preds(self) -> Predictions:
        """What it answered."""
        return self.samples.preds

    @property
    def score_name(self) -> str:
        """The score that is looked at."""
        return self.samples.first

    @property
    def score(self) -> Floats:
        """That score of each sample."""
        return self.samples.scores[self.score_name]

    @property
    def outcomes(self) -> Outcomes:
        """Score and correctness, sample by sample, in the order that all models share."""
        return self.samples.outcomes("score", self.score_name)

    @property
    def tally(self) -> Tally:
        """The sorted table of the score."""
        return self.outcomes.tally()


@frozen(eq=False)
class CountedModel:
    """One model of which only counts are known."""

    name: str
    samples: Summary

    @property
    def preds(self) -> Shape:
        """What is known of its answers."""
        return self.samples.shape

    @property
    def score_name(self) -> str:
        """The score that is looked at."""
        return self.samples.first

    @property
    def tally(self) -> Tally:
        """The sorted table of the score."""
        return self.samples.tally


AnyModel = ComparedModel | CountedModel


def compare_unpaired(models: Sequence[CountedModel], sure: Sureness) -> Differences:
    """The differences of every two models with limits as of independent samples, all pairs together
    at the level: those of the same samples would be narrower.
    """
    names = [*PAIRED_METRICS, BESIDE_ECE]
    if not all(is_claim(m.tally, m.preds.kind) for m in models):
        names = [name for name in PAIRED_METRICS if name != "ece"]
    pairs = list(combinations(range(len(models)), 2))
    shared = Sureness(1 - (1 - sure.level) / len(pairs), sure.seed)
    tables = [measure_named(m, names, shared) for m in models]
    differences: Differences = {pair: {} for pair in pairs}
    for i, j in pairs:
        for name in names:
            value, limits = zip(*(_read_limits(tables[k][name]) for k in (i, j)), strict=True)
            low, high = combine_limits(value[0], limits[0], value[1], limits[1], 0.0)
            difference: Difference = {
                "value": value[0] - value[1],
                "low": low,
                "high": high,
                "clear": not low <= 0 <= high,
            }
            if isnan(low) or isnan(high):
                difference.update(low=None, high=None, clear=False, why="it has no limits")
            differences[i, j][name] = difference
    return differences


def _read_limits(entry: Entry) -> tuple[float, tuple[float, float]]:
    """The value of a number and its limits, nan where there are none."""
    value, low, high = (
        nan if x is None else x for x in (entry["value"], entry.get("low"), entry.get("high"))
    )
    # Both limits of a biased number, such as a small ECE, may lie on one side of its value.
    return value, (min(low, value), max(high, value))


def join_models(
    given: Mapping[str, ModelInput], score: Score | None, *, common: bool = False
) -> list[ComparedModel]:
    """The models with their samples joined; a value is predictions, or (predictions, score)."""
    check_is_mapping(given)
    if len(given) < 2:
        raise InputError(f"there is {len(given)} model to compare; at least two are needed.")
    predictions: dict[str, Predictions] = {}
    scores: dict[str, Score | None] = {}
    for name, value in given.items():
        preds, own_score = value if isinstance(value, tuple) else (value, score)
        needs_predictions(preds, f"comparing {name!r}")
        predictions[name], scores[name] = preds, own_score
    joined = align(predictions, common=common)
    return [ComparedModel.of(name, joined[name], scores[name]) for name in given]


def check_is_mapping(given: object) -> None:
    """Raise where models come without names, as in a list."""
    if not isinstance(given, Mapping):
        got = f"needs names, this is a {type(given).__name__}"
        raise InputError("compare", got=got, need='write compare({"a": preds_a, "b": preds_b})')


def align(given: Mapping[str, Predictions], *, common: bool) -> dict[str, Predictions]:
    """The same samples in the same order: by ids where all have them, else row by row."""
    if all(p.ids is not None for p in given.values()):
        ids: dict[str, Array] = {name: np.asarray(p.ids) for name, p in given.items()}
        for name, column in ids.items():
            if len(np.unique(column)) < len(column):
                raise InputError(f"{name}: an id occurs twice; ids must be unique to join by them.")
        # Sorted, so that all models get the same order.
        shared = reduce(np.intersect1d, ids.values())
        longer = [name for name, column in ids.items() if len(column) > len(shared)]
        if not len(shared) or (longer and not common):
            raise InputError(
                f"only {len(shared):,} ids are in all models ({longer[0]} has {len(ids[longer[0]]):,}); "
                "common=True (--common) compares on those."
            )
        aligned: dict[str, Predictions] = {}
        for name, preds in given.items():
            order = np.argsort(ids[name], kind="stable")
            rows = order[np.searchsorted(ids[name][order], shared)]
            aligned[name] = preds[rows]
    else:
        sizes = {name: p.n for name, p in given.items()}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
            raise InputError(
                f"these are not the same samples ({listed}); give ids, so that they can be joined."
            )
        aligned = dict(given)
    # Where labels differ these are not the same samples.
    known = {name: p.known_labels for name, p in aligned.items() if p.known_labels is not None}
    for name, labels in known.items():
        first = next(iter(known))
        differ = np.flatnonzero(labels != known[first])
        if len(differ):
            row = differ[0]
            raise InputError(
                f"row {row} has label {known[first][row]} in {first} and {labels[row]} in {name} "
                f"({len(differ):,} such rows); these are not the same samples in the same order. Give ids."
            )
    return aligned


def give_same_answers(models: Sequence[ComparedModel]) -> bool:
    """Whether all models give the same answer to every sample, so that only their scores differ."""
    first = models[0].preds
    first_answers = _get_answers(first)
    for model in models[1:]:
        preds, answers = model.preds, _get_answers(model.preds)
        if (first.correct != preds.correct).any():
            return False
        if first_answers is None or answers is None:
            # Unknown answers are the same only where the predictions are.
            if first.values is not preds.values:
                return False
        elif (first_answers != answers).any():
            return False
    return True


def _get_answers(preds: Predictions) -> Array | None:
    if not preds.vectors:
        return preds.known_prediction
    return preds.prediction


def compare_pairs(models: Sequence[ComparedModel], sure: Sureness) -> Differences:
    """The paired differences of every two models, by their places; positive: the first has the
    higher number.

    All pairs are looked at together: among equal models some pair is called clear in 1 − level of
    the tables at most.
    """
    # Calibration errors need claims in [0, 1], of every model.
    names = [*PAIRED_METRICS, BESIDE_ECE]
    if not all(is_claim(m.tally, m.preds.kind) for m in models):
        names = [name for name in PAIRED_METRICS if name != "ece"]
    outcomes = [m.outcomes for m in models]
    differences: Differences = {pair: {} for pair in combinations(range(len(models)), 2)}
    same = {(i, j) for i, j in differences if hold_same_outcomes(outcomes[i], outcomes[j])}
    for name in names:
        for pair in all_differences(getattr(metrics, name), outcomes, sure.level, sure.seed):
            difference: Difference = {
                "value": pair.difference,
                "low": pair.low,
                "high": pair.high,
                "clear": pair.clear,
            }
            if (pair.first, pair.second) in same:
                difference.update(value=0.0, low=0.0, high=0.0, clear=False)
            if not (isfinite(pair.low) and isfinite(pair.high)):
                difference.update(low=None, high=None, clear=False, why="it has no limits")
            differences[pair.first, pair.second][name] = difference
    return differences


def list_ties(
    models: Sequence[ComparedModel], rows: Sequence[ModelRow], sure: Sureness
) -> list[TieData]:
    """In which numbers the best model and those that AURC does not tell from it differ."""
    outcomes = {model.name: model.outcomes for model in models}
    best = rows[0]["name"]
    tied = [row["name"] for row in rows[1:] if not row["behind"]["clear"]]
    tied = [name for name in tied if not hold_same_outcomes(outcomes[best], outcomes[name])]
    sides = [outcomes[name] for name in (best, *tied)]
    # Among many equal models some pair differs by chance: the level is shared out over the pairs.
    level = 1 - (1 - sure.level) / max(1, len(tied))
    limits = [pair_with_first(metric, sides, level, sure.seed) for metric in TIE_METRICS.values()]
    ties: list[TieData] = []
    for other, of_pair in zip(tied, zip(*limits, strict=True), strict=True):
        for name, (value, low, high) in zip(TIE_METRICS, of_pair, strict=True):
            if low <= 0 <= high or isnan(low):
                continue
            is_first = (value > 0) == (name not in LOWER_TIE_METRICS)
            better, over = (best, other) if is_first else (other, best)
            if not is_first:
                value, low, high = -value, -high, -low
            ties.append(
                {
                    "metric": name,
                    "better": better,
                    "over": over,
                    "difference": {"value": value, "low": low, "high": high},
                }
            )
    return ties


def find_unsafe_tops(models: Sequence[AnyModel]) -> list[FindingData]:
    """The models whose risk rises at the sure end; the level is shared out over all of them."""
    findings: list[FindingData] = []
    for model in models:
        if isinstance(model, ComparedModel) and model.preds.group is not None:
            continue  # the test takes samples as independent
        case = FindingCase(tally=model.tally, kind=model.preds.kind)
        finding = find_unsafe_top(case, level=FALSE_FINDING_RATE / len(models))
        if finding is not None:
            findings.append(replace(finding, text=f"{model.name}: {finding.text}").json())
    return findings


def compare_net_benefits(
    models: Sequence[ComparedModel], rows: Sequence[ModelRow], level: float
) -> list[BenefitRow]:
    """Net benefit of the best model by AURC minus that of each other one at a few thresholds; none
    where the models are not all about two classes, or cases carry weights.
    """
    predictions = {model.name: model.preds for model in models}
    for preds in predictions.values():
        if (
            not preds.vectors
            or preds.k != 2
            or preds.layout is not None
            or preds.weight is not None
        ):
            return []
    best, *others = [row["name"] for row in rows[: LISTED_GROUPS + 1]]
    out: list[BenefitRow] = []
    for other in others:
        # Scores of the same model call the same cases.
        if np.array_equal(predictions[best].probs, predictions[other].probs):
            continue
        for threshold in THRESHOLDS:
            value, low, high = net_benefit_difference(
                predictions[best], predictions[other], threshold, level=level
            )
            number: Number = {"value": value, "low": low, "high": high}
            out.append({"a": best, "b": other, "threshold": threshold, "difference": number})
    return out


def list_pairs(models: Sequence[AnyModel], differences: Differences) -> list[PairData]:
    """Every pair with its paired differences."""
    return [
        cast(PairData, {"a": models[i].name, "b": models[j].name, **of_pair})
        for (i, j), of_pair in differences.items()
    ]


def rank_models(
    models: Sequence[AnyModel], differences: Differences, fair: bool, sure: Sureness
) -> list[ModelRow]:
    """One row per model, best AURC first: its numbers, and how far it is from the best; numbers
    that are not `fair` are withheld.
    """
    names = (*FAIR_METRICS, *SAME_ANSWERS_METRICS) if fair else tuple(FAIR_METRICS)
    tables = [measure_named(m, names, sure) for m in models]
    if not fair:
        for item in catalogue.list_ranking_items():
            if item.name in SAME_ANSWERS_METRICS:
                for table in tables:
                    table[item.name] = {"value": None, "why": WITHHELD, "better": item.better}
    # Models of the same AURC stay in the order in which they were given.
    order = sorted(range(len(models)), key=lambda i: (tables[i]["aurc"]["value"] or 0.0, i))
    best = order[0]
    rows: list[ModelRow] = []
    for i in order:
        if i == best:
            behind: Difference = {
                "value": 0.0,
                "low": None,
                "high": None,
                "clear": False,
                "why": "the best itself",
            }
        elif i < best:
            behind = differences[i, best]["aurc"]
        else:
            # The difference of the same two models in the other order.
            ahead = differences[best, i]["aurc"]
            low, high = ahead["low"], ahead["high"]
            behind = {
                **ahead,
                "value": 0.0 - ahead["value"],
                "low": None if high is None else 0.0 - high,
                "high": None if low is None else 0.0 - low,
            }
        rows.append(
            {
                "name": models[i].name,
                "score": models[i].score_name,
                "metrics": tables[i],
                "behind": behind,
            }
        )
    return rows


def measure_named(model: AnyModel, names: Sequence[str], sure: Sureness) -> Metrics:
    """Those of the named numbers that the model's score allows."""
    items = catalogue.list_possible_items(model.preds, model.tally)
    wanted = [item for item in items if item.name in names]
    return measure_items(wanted, model.samples, model.score_name, sure)


def explain_fairness(rows: Sequence[ModelRow], fair: bool) -> dict[str, Fairness]:
    """Which columns may be compared, and why or why not."""
    same = "all models give the same answers, so their scores compare"
    columns: dict[str, Fairness] = {}
    for name in (*FAIR_METRICS, *SAME_ANSWERS_METRICS):
        if not any(name in row["metrics"] for row in rows):
            continue
        if name in FAIR_METRICS:
            columns[name] = {"fair": True, "why": FAIR_METRICS[name]}
        else:
            columns[name] = {"fair": fair, "why": same if fair else WITHHELD}
    return columns


def find_pareto_front(rows: Sequence[ModelRow], cost: Mapping[str, float]) -> list[CostRow]:
    """Cost against AURC and calibration errors; `beaten_by` names a model that costs no more and is
    better by it.
    """
    priced: list[CostRow] = []
    for row in rows:
        if row["name"] in cost:
            amount = float(cost[row["name"]])
            priced.append(
                {"name": row["name"], "cost": amount, "aurc": None, "ece": None, "beaten_by": {}}
            )
    for metric in COST_METRICS:
        values = {row["name"]: row["metrics"].get(metric) for row in rows}
        for row in priced:
            entry = values[row["name"]]
            row[metric] = None if entry is None else entry["value"]
        for row in priced:
            others = [(other, other.get(metric)) for other in priced]
            row["beaten_by"][metric] = _find_better(row, others, row.get(metric))
    return priced


def _find_better(
    row: CostRow, others: Sequence[tuple[CostRow, float | None]], value: float | None
) -> str | None:
    """The first model that costs no more and is no worse, and better in one of the two."""
    for other, other_value in others:
        if value is None or other_value is None:
            continue
        if other["cost"] > row["cost"] or other_value > value:
            continue
        if other["cost"] < row["cost"] or other_value < value:
            return other["name"]
    return None


def compute_shifted_rows(
    home: Sequence[ComparedModel],
    sets: Mapping[str, Mapping[str, Predictions]],
    score: Score | None,
    sure: Sureness,
) -> list[FurtherRow]:
    """Accuracy, AURC and ECE of each model on each further labelled set, beside the home set."""
    models = [("home", model) for model in home]
    for name, model, preds in _walk_sets(sets, home):
        models.append((name, ComparedModel.of(model.name, preds, score)))
    return [
        {
            "set": name,
            "model": model.name,
            "n": model.preds.n,
            "metrics": measure_named(model, PAIRED_METRICS, sure),
        }
        for name, model in models
    ]


def compute_outside_rows(
    home: Sequence[ComparedModel],
    sets: Mapping[str, Mapping[str, Predictions]],
    score: Score | None,
    sure: Sureness,
) -> list[FurtherRow]:
    """Can the score tell home samples from others? And does it still find errors on the mix of
    both?

    In the mix every answer to an outside sample counts as wrong, for no answer to it is right.
    """
    rows: list[FurtherRow] = []
    for name, model, preds in _walk_sets(sets, home):
        outside = ComparedModel.of(model.name, preds, score).score
        table = measure_separation(model.score, outside, model.preds.correct, sure.level, sure.seed)
        rows.append({"set": name, "model": model.name, "n": len(outside), "metrics": table})
    return rows


def _walk_sets(
    sets: Mapping[str, Mapping[str, Predictions]], home: Sequence[ComparedModel]
) -> Iterator[tuple[str, ComparedModel, Predictions]]:
    """Name of the set, model at home, and its predictions of the set."""
    models = {model.name: model for model in home}
    for name, by_model in sets.items():
        for who, preds in by_model.items():
            if who not in models:
                raise InputError(f"{who} is not among the models compared: {', '.join(models)}.")
            yield name, models[who], preds


def measure_separation(
    inside: Floats, outside: Floats, correct: Bools, level: float = 0.95, seed: int = 0
) -> Metrics:
    """In or out: AUROC, false positive rate at 95 % of home samples kept. On the mix: AURC, AUROC
    of finding errors.

    >>> found = measure_separation(np.array([0.9, 0.8]), np.array([0.1]), np.array([True, False]))
    >>> found["auroc"]["value"]
    1.0
    """
    both = np.concatenate((inside, outside))
    # In or out is a question of its own: right means that the sample is from home.
    is_home = tally(both, correct=np.arange(len(both)) < len(inside))
    mix = tally(both, correct=np.concatenate((correct, np.zeros(len(outside), dtype=bool))))
    sure, aurc, auroc = Sureness(level, seed), BY_NAME["aurc"], BY_NAME["auroc"]
    of_mix = measure_items([aurc, auroc], TallyData(mix), "", sure)
    threshold = np.sort(inside)[::-1][int(np.ceil(HOME_KEPT * len(inside))) - 1]
    kept = outside >= threshold
    low, high = compute_proportion_limits(kept.sum(), len(kept), (1 - level) / 2)
    return {
        "auroc": measure_items([auroc], TallyData(is_home), "", sure)["auroc"],
        "fpr_at_95": {
            "value": float(kept.mean()),
            "low": float(low),
            "high": float(high),
            "better": "lower",
        },
        "mix_aurc": of_mix["aurc"],
        "mix_auroc": of_mix["auroc"],
    }


def compute_slice_rows(models: Sequence[ComparedModel], by: Array, level: float) -> list[SliceRow]:
    """Each group of each model: accuracy with limits, AURC, confidence minus accuracy; the worst
    groups first.

    With G groups and M models each limit holds at 1 − (1 − level)/(GM), so that all hold together
    (Bonferroni). `worse` marks a group whose upper limit is below the model's accuracy. Where
    samples come in clusters that are not the groups themselves, limits count clusters; a group
    within one cluster has none and is not marked.
    """
    if len(by) != models[0].preds.n:
        raise InputError(f"by has {len(by):,} values for {models[0].preds.n:,} samples.")
    names, where = np.unique(by, return_inverse=True)
    if len(names) < 2:
        raise InputError("there is one group only; nothing can be compared.")
    # Bonferroni, and half of it at either end.
    half = (1 - level) / (len(names) * len(models)) / 2
    rows: list[SliceRow] = []
    for model in models:
        rows += _slice_model(model, names, where.reshape(-1), half)
    worst: dict[str, float] = {}
    for row in rows:
        worst[row["group"]] = min(row["accuracy"], worst.get(row["group"], 1.0))
    rows.sort(key=lambda row: (worst[row["group"]], row["group"]))
    return rows[: LISTED_GROUPS * len(models)]


def _slice_model(model: ComparedModel, names: Array, where: Ints, half: float) -> list[SliceRow]:
    """One row per group; `half` is the probability of missing at either end of a limit."""
    correct, score = model.preds.correct, model.score
    n = count_values(where)
    right = count_values(where, correct).astype(np.float64)
    # Limits are of clusters; where every group is one cluster, its samples are all there is of it.
    each_is_one_cluster = True
    if model.preds.group is not None:
        cluster = np.unique(model.preds.group, return_inverse=True)[1].reshape(-1)
        pairs = np.unique(np.stack((where, cluster), axis=1), axis=0)
        each_is_one_cluster = len(pairs) == len(names) == len(np.unique(cluster))
    low, high = np.full(len(n), nan), np.full(len(n), nan)
    if each_is_one_cluster:
        low, high = compute_proportion_limits(right, n, half)
    else:
        for g in range(len(n)):
            case = SampleCase.of(model.outcomes[where == g])
            limits = compute_limits(metrics.accuracy, case, half)
            if limits is not None:
                low[g], high[g] = limits.low, limits.high
    is_probability = is_claim(model.tally, model.preds.kind)
    rows: list[SliceRow] = []
    for g, name in enumerate(names):
        inside = where == g
        accuracy = float(right[g] / n[g])
        rows.append(
            {
                "model": model.name,
                "group": str(name),
                "n": int(n[g]),
                "accuracy": accuracy,
                "low": None if isnan(low[g]) else float(low[g]),
                "high": None if isnan(high[g]) else float(high[g]),
                "aurc": metrics.aurc(tally(score[inside], correct=correct[inside])),
                "gap": float(score[inside].mean() - accuracy) if is_probability else None,
                "worse": bool(high[g] < correct.mean() and n[g] >= LEAST_TESTED),
            }
        )
    return rows


def compute_recall_rows(models: Sequence[ComparedModel]) -> list[RecallRow]:
    """Recall of each class by each model, the class with the worst recall first."""
    first = models[0].samples
    known = find_known_classes(first.classes, first.shape, first.preds.n)
    if known is None:
        return []
    names, count = list_class_names(known, first.shape), known.count
    labels = find_class_numbers(known.keys, first.preds.labels)
    recall: dict[str, Floats] = {}
    for model in models:
        hits = count_values(labels[model.preds.correct], minlength=len(names))
        recall[model.name] = hits / np.maximum(count, 1)
    worst = np.min(list(recall.values()), axis=0)
    order = [c for c in np.lexsort((np.arange(len(names)), worst)) if count[c]]
    return [
        {
            "name": names[c],
            "count": int(count[c]),
            "recall": {
                model: round_numbers(of_model[[c]])[0] for model, of_model in recall.items()
            },
        }
        for c in order[:LISTED_GROUPS]
    ]
