"""Cascade: a cheap model, an expensive one, then a person; the thresholds are chosen together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.bounds import clopper_pearson
from howsure.policies.policy import PERSON, Basis, Guarantee, Policy
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes

MODEL_COLUMN = "model"  # says whose answer a row is
MAX_COMBINATIONS = 1_000_000  # of thresholds that are tried
# Answers, or how to get them for some rows.
Model: TypeAlias = Predictions | Callable[[Ints], Predictions]


@frozen
class CascadeResult:
    """What a cascade does on data: mean cost, accuracy of what it answers by itself, and of the
    whole system.
    """

    cost: float
    accuracy: float
    system_accuracy: float
    shares: tuple[float, ...]  # answered by each model, then by the person
    n: int = 0
    # At most so many of the models' own answers are wrong, with probability 1 - delta; None on the
    # data that chose the thresholds, and where samples belong together.
    bound: float | None = None
    delta: float = 0.05


@frozen(eq=False)
class CascadeDecisions:
    """The answering stage of each sample (the number of models: the person) and its answer, -1 for
    the person.
    """

    stage: Ints
    prediction: Ints


@frozen
class Cascade:
    """Ask the models in turn; each answers where its score reaches its threshold, the rest goes to
    a person.

    `costs` are paid for every sample that reaches a model, `human_cost` for every sample that
    reaches the person, who is wrong with rate `human_error`, and `error_cost` for every wrong
    answer. Wang et al. 2018 (IDK cascades).

    >>> cheap = Outcomes([0.9, 0.8, 0.4, 0.3], correct=[1, 1, 0, 0])
    >>> dear = Outcomes([0.9, 0.9, 0.9, 0.2], correct=[1, 1, 1, 0])
    >>> c = Cascade.fit([cheap, dear], costs=(1, 5), human_cost=20, error_cost=100)
    >>> c.thresholds, c.expected.shares, c.expected.cost
    ((0.8, 0.9), (0.5, 0.25, 0.25), 8.5)
    """

    thresholds: tuple[float, ...]
    costs: tuple[float, ...]
    human_cost: float
    human_error: float = 0.0
    error_cost: float = 0.0
    expected: CascadeResult | None = None
    names: tuple[str, ...] = ()  # of the models
    judged: CascadeResult | None = None  # on other data than those that chose the thresholds

    def __post_init__(self) -> None:
        if len(self.thresholds) != len(self.costs) or not self.costs:
            raise InputError(
                f"{len(self.thresholds)} thresholds for {len(self.costs)} costs; one of each is needed."
            )
        if self.names and len(set(self.names)) != len(self.costs):
            raise InputError(f"{len(self.costs)} models need as many different names.")
        for threshold in self.thresholds:
            checks.within(threshold, -inf, inf, "a threshold")
        for cost in (*self.costs, self.human_cost, self.error_cost):
            checks.within(cost, 0, checks.LARGEST_NUMBER, "a cost")
        checks.within(self.human_error, 0, 1, "human_error")

    @classmethod
    def fit(
        cls,
        stages: Sequence[Outcomes],
        *,
        costs: Sequence[float],
        human_cost: float,
        human_error: float = 0.0,
        error_cost: float = 0.0,
        accuracy: float | None = None,
    ) -> Cascade:
        """All thresholds together, on outcomes of each model for the same samples in the same
        order.

        Without `accuracy`: the least mean cost. With it: the least mean cost among those whose own
        answers are right that often (the errors of the person do not count). Up to a million
        combinations of thresholds are tried, on the score quantiles where there are more scores.
        Nothing is guaranteed: judge it on new data with `evaluate`. Where no combination reaches
        the accuracy, everything goes to the person.
        """
        _check_stages(stages, costs)
        nobody = cls(  # everything goes to the person; the costs are checked here
            thresholds=(inf,) * len(stages),
            costs=tuple(float(cost) for cost in costs),
            human_cost=float(human_cost),
            human_error=float(human_error),
            error_cost=float(error_cost),
        )
        n, size = len(stages[0]), max(2, int(MAX_COMBINATIONS ** (1 / len(stages))) - 1)
        scores = [np.asarray(o.score, dtype=np.float64) for o in stages]
        grids = [_find_candidates(score, size) for score in scores]
        # The position of the first threshold that a sample passes: it is answered from there on.
        places = [np.searchsorted(-g, -s) for g, s in zip(grids, scores, strict=True)]
        shape = tuple(len(grid) for grid in grids)
        reached: Floats = np.full((1,) * len(shape), float(n))
        answered, wrong, model_cost = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for i, (o, cost) in enumerate(zip(stages, costs, strict=True)):
            model_cost = model_cost + cost * reached
            errors = (~np.asarray(o.correct)).astype(np.float64)
            answers = _count_answers(places[: i + 1], shape, np.ones(n))
            answered = answered + answers
            wrong = wrong + _count_answers(places[: i + 1], shape, errors)
            reached = reached - answers
        # What no model answers is left to the person, who is paid and errs too.
        left = n - answered
        person_cost = human_cost * left + error_cost * (wrong + human_error * left)
        total_cost = model_cost / n + person_cost / n
        if accuracy is not None:
            checks.fraction(accuracy, "accuracy")
            accurate = answered - wrong >= accuracy * answered - 1e-9
            total_cost = np.where(accurate, total_cost, inf)
        best = np.unravel_index(int(total_cost.argmin()), total_cost.shape)
        thresholds = tuple(float(grid[i]) for grid, i in zip(grids, best, strict=True))
        cascade = replace(nobody, thresholds=thresholds)
        # They chose the thresholds, so they bound nothing.
        return replace(cascade, expected=replace(cascade.evaluate(stages), bound=None))

    def evaluate(self, stages: Sequence[Outcomes]) -> CascadeResult:
        """Cost and accuracy of these thresholds on any data."""
        _check_stages(stages, self.costs)
        n, person = len(stages[0]), len(self.costs)
        stage = np.full(n, person)
        right = np.zeros(n, dtype=np.bool_)
        for i, (o, threshold) in enumerate(zip(stages, self.thresholds, strict=True)):
            answers = (stage == person) & (np.asarray(o.score, dtype=np.float64) >= threshold)
            stage[answers] = i
            right |= answers & np.asarray(o.correct)
        shares = count_values(stage, minlength=person + 1) / n
        reached = 1 - np.concatenate(([0.0], np.cumsum(shares)))[:person]
        answered, hits = float((stage < person).sum()), float(right.sum())
        missed = (answered - hits) / n + self.human_error * shares[person]
        model_cost = np.dot(self.costs, reached)
        cost = model_cost + self.human_cost * shares[person] + self.error_cost * missed
        bound: float | None = None
        if all(o.group is None for o in stages):
            bound = clopper_pearson(answered - hits, answered, CascadeResult.delta)
        return CascadeResult(
            cost=float(cost),
            accuracy=hits / answered if answered else float("nan"),
            system_accuracy=float(1 - missed),
            shares=tuple(shares.tolist()),
            n=n,
            bound=bound,
        )

    def to_policy(self) -> Policy:
        """The same as a policy with a threshold for each `model`, for one answer at a time: `decide`,
        `decide_one`, `howsure decide` and `howsure export`. What is deferred says who is next.

        >>> policy = Cascade((0.8, 0.5), (1, 5), 20, names=("small", "large")).to_policy()
        >>> [policy.decide_one(confidence=0.7, segment=model).next for model in ("small", "large")]
        ['large', None]
        >>> policy.decide_one(confidence=0.4, segment="large").next
        'a person'
        """
        names = self.names or tuple(str(i + 1) for i in range(len(self.costs)))
        policy = Policy(
            score="max_prob",
            threshold=inf,
            by=MODEL_COLUMN,
            keys=names,
            thresholds=self.thresholds,
            following=(*names[1:], PERSON),
        )
        judged = self.judged
        if judged is None or judged.bound is None:
            return policy
        guarantee = Guarantee(
            rule=f"of the whole cascade, at a mean cost of {judged.cost:.4g} (clopper_pearson on held-out data)",
            risk=judged.bound,
            delta=judged.delta,
            bound=judged.bound,
        )
        basis = Basis(n=judged.n, coverage=1 - judged.shares[-1], accuracy=judged.accuracy)
        return replace(policy, guarantee=guarantee, basis=basis)

    def decide(
        self, models: Sequence[Model], policies: Sequence[Policy] | None = None
    ) -> CascadeDecisions:
        """Answers stage by stage. A model given as a function is asked only for the rows that reach
        it.

        `policies` bring the score and calibrator of each stage (default: `max_prob`); the
        thresholds are ours.

        >>> c = Cascade((0.8, 0.5), (1, 5), 20)
        >>> first = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]])
        >>> made = c.decide([first, lambda rows: Predictions.from_probs([[0.3, 0.7]])])
        >>> made.stage, made.prediction
        (array([0, 1]), array([0, 1]))
        """
        if len(models) != len(self.thresholds):
            raise InputError(
                f"this cascade has {len(self.thresholds)} models, {len(models)} are given."
            )
        first = models[0]
        if not isinstance(first, Predictions):
            raise InputError(
                "the first model answers every sample; give its predictions, not a function."
            )
        n, person = first.n, len(models)
        stage, answer, rows = np.full(n, person), np.full(n, -1), np.arange(n)
        for i, model in enumerate(models):
            if not len(rows):
                break
            preds = model[rows] if isinstance(model, Predictions) else model(rows)
            if preds.n != len(rows):
                raise InputError(f"a model was asked for {len(rows)} rows and answered {preds.n}.")
            policy = Policy("max_prob", inf) if policies is None else policies[i]
            # Score and calibrator are the policy's, the threshold is the cascade's.
            own = Policy(policy.score, self.thresholds[i], policy.calibrator)
            decisions = own.decide(preds)
            accepted: Bools = decisions.accept
            stage[rows[accepted]] = i
            answer[rows[accepted]] = decisions.prediction[accepted]
            rows = rows[~accepted]
        return CascadeDecisions(stage=stage, prediction=answer)


def join_stages(models: Sequence[Predictions]) -> list[Outcomes]:
    """The outcomes of each model for the same samples, joined by ids: what a cascade is fitted on.

    A sample that a model did not answer has the score -inf there, which no threshold accepts: it
    goes to the next.

    >>> small = Predictions.from_confidence([0.9, 0.6], [1, 0], ids=["a", "b"])
    >>> large = Predictions.from_confidence([0.7], [1], ids=["b"])
    >>> [o.score.tolist() for o in join_stages([small, large])]
    [[0.9, 0.6], [-inf, 0.7]]
    """
    ids = [[str(i) for i in p.ids.tolist()] for p in models if p.ids is not None]
    if len(ids) < len(models):
        if ids or len({p.n for p in models}) > 1:
            raise InputError("the models' samples cannot be joined; give each of them ids.")
        return [Outcomes.of(p) for p in models]
    place: dict[str, int] = {}  # of each id, in the order of their first appearance
    for column in ids:
        for name in column:
            place.setdefault(name, len(place))
    stages: list[Outcomes] = []
    for preds, column in zip(models, ids, strict=True):
        rows = [place[name] for name in column]
        score, correct = np.full(len(place), -inf), np.zeros(len(place), dtype=np.bool_)
        score[rows], correct[rows] = preds.confidence, preds.correct
        group: Array | None = None
        if preds.group is not None:
            group = np.full(len(place), "", dtype=object)
            group[rows] = preds.group.astype(str)
        stages.append(Outcomes(score, correct=correct, id=np.array(list(place)), group=group))
    return stages


def _check_stages(stages: Sequence[Outcomes], costs: Sequence[float]) -> None:
    if not stages or len(stages) != len(costs):
        raise InputError(
            f"{len(stages)} models have {len(costs)} costs; one cost per model is needed."
        )
    if len({len(o) for o in stages}) > 1:
        raise InputError(
            "the models answered different numbers of samples; they must answer the same ones."
        )
    if any(o.correct is None for o in stages):
        raise InputError("a cascade needs right or wrong for each model; give correct=.")


def _find_candidates(score: Floats, size: int) -> Floats:
    """Thresholds to try, inf (never answer) first, then downwards; -inf is no answer and no
    threshold accepts it.
    """
    score = score[score > -inf]
    distinct = np.unique(score)
    if len(distinct) > size:
        distinct = np.unique(np.quantile(score, np.linspace(0, 1, size), method="inverted_cdf"))
    return np.concatenate(([inf], distinct[::-1]))


def _count_answers(places: Sequence[Ints], shape: tuple[int, ...], weight: Floats) -> Floats:
    """Summed weight of the samples that all models but the last of `places` pass on and the last
    one answers, for every combination of thresholds of these models.
    """
    mine = shape[: len(places)]
    inside = tuple(size + 1 for size in mine)  # one more place for scores below every threshold
    flat = np.ravel_multi_index(tuple(places), inside)
    sums = count_values(flat, weights=weight, minlength=int(np.prod(inside)))
    table: Floats = sums.reshape(inside).astype(np.float64)
    last = len(mine) - 1
    for axis in range(last):  # passed on: the sample's place lies beyond the threshold
        table = np.flip(np.cumsum(np.flip(table, axis), axis=axis), axis)
        table = np.take(table, range(1, mine[axis] + 1), axis=axis)
    # Answered: its place lies at or before the threshold.
    table = np.take(np.cumsum(table, axis=last), range(mine[last]), axis=last)
    return table.reshape(mine + (1,) * (len(shape) - len(mine)))
