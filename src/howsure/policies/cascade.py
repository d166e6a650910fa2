"""Cascade: a cheap model, a dear one, then a person; the thresholds are chosen together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

import numpy as np

from howsure._core import check
from howsure._core.check import Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.policies.policy import Policy
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes

MOST = 1_000_000  # combinations of thresholds that are tried
Model: TypeAlias = (
    Predictions | Callable[[Ints], Predictions]
)  # answers, or how to get them for some rows


@frozen
class CascadeResult:
    """What a cascade does on data: mean cost, accuracy of what it answers by itself, and of the
    whole system.
    """

    cost: float
    accuracy: float
    system_accuracy: float
    shares: tuple[float, ...]  # answered by each model, then by the person


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

    def __post_init__(self) -> None:
        if len(self.thresholds) != len(self.costs) or not self.costs:
            raise InputError(
                f"{len(self.thresholds)} thresholds for {len(self.costs)} costs; one of each is needed."
            )
        for threshold in self.thresholds:
            check.within(threshold, -inf, inf, "a threshold")
        for cost in (*self.costs, self.human_cost, self.error_cost):
            check.within(cost, 0, check.LARGEST, "a cost")
        check.within(self.human_error, 0, 1, "human_error")

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
        _checked(stages, costs)
        money = (
            tuple(float(c) for c in costs),
            float(human_cost),
            float(human_error),
            float(error_cost),
        )
        nobody = cls((inf,) * len(stages), *money)
        n, size = len(stages[0]), max(2, int(MOST ** (1 / len(stages))) - 1)
        grids = [_candidates(np.asarray(o.score, dtype=np.float64), size) for o in stages]
        reached, answered, wrong = _tables(stages, grids)
        cost = sum(c * r for c, r in zip(costs, reached, strict=True)) / n
        left = n - answered
        cost = cost + (human_cost * left + error_cost * (wrong + human_error * left)) / n
        if accuracy is not None:
            check.fraction(accuracy, "accuracy")
            good = answered - wrong >= accuracy * answered - 1e-9
            cost = np.where(good, cost, inf)
        at = np.unravel_index(int(cost.argmin()), cost.shape)
        found = replace(
            nobody, thresholds=tuple(float(grid[i]) for grid, i in zip(grids, at, strict=True))
        )
        return replace(found, expected=found.evaluate(stages))

    def evaluate(self, stages: Sequence[Outcomes]) -> CascadeResult:
        """Cost and accuracy of these thresholds on any data."""
        _checked(stages, self.costs)
        stage = self._stage([np.asarray(o.score, dtype=np.float64) for o in stages])
        n, people = len(stage), len(self.costs)
        right = np.zeros(n, dtype=np.bool_)
        for i, o in enumerate(stages):
            right |= (stage == i) & np.asarray(o.correct)
        shares = np.bincount(stage, minlength=people + 1) / n
        reached = 1 - np.concatenate(([0.0], np.cumsum(shares)))[:people]
        own = float(right.sum())
        answered = float((stage < people).sum())
        missed = (answered - own) / n + self.human_error * shares[people]
        cost = float(
            np.dot(self.costs, reached)
            + self.human_cost * shares[people]
            + self.error_cost * missed
        )
        accuracy = own / answered if answered else float("nan")
        return CascadeResult(cost, accuracy, float(1 - missed), tuple(shares.tolist()))

    def _stage(self, scores: Sequence[Floats]) -> Ints:
        person = np.ones(len(scores[0]), dtype=np.bool_)
        takes = np.stack([*(s >= x for s, x in zip(scores, self.thresholds, strict=True)), person])
        return takes.argmax(axis=0)

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
        n, people = first.n, len(models)
        stage, answer, rows = np.full(n, people), np.full(n, -1), np.arange(n)
        for i, model in enumerate(models):
            if not len(rows):
                break
            preds = model[rows] if isinstance(model, Predictions) else _asked(model, rows)
            policy = Policy("max_prob", inf) if policies is None else policies[i]
            made = Policy(policy.score, self.thresholds[i], policy.calibrator).decide(preds)
            taken: Bools = made.accept
            stage[rows[taken]], answer[rows[taken]] = i, made.prediction[taken]
            rows = rows[~taken]
        return CascadeDecisions(stage, answer)


def stages_of(models: Sequence[Predictions]) -> list[Outcomes]:
    """The outcomes of each model for the same samples, joined by ids: what a cascade is fitted on.

    A sample that a model did not answer has the score -inf there, which no threshold accepts: it
    goes to the next.

    >>> small = Predictions.from_confidence([0.9, 0.6], [1, 0], ids=["a", "b"])
    >>> large = Predictions.from_confidence([0.7], [1], ids=["b"])
    >>> [o.score.tolist() for o in stages_of([small, large])]
    [[0.9, 0.6], [-inf, 0.7]]
    """
    ids = [None if p.ids is None else [str(i) for i in p.ids.tolist()] for p in models]
    known = [column for column in ids if column is not None]
    if len(known) < len(ids):
        if known or len({p.n for p in models}) > 1:
            raise InputError("the models' samples cannot be joined; give each of them ids.")
        return [Outcomes.of(p) for p in models]
    order = {
        i: place for place, i in enumerate(dict.fromkeys(i for column in known for i in column))
    }
    return [
        _placed(p, [order[i] for i in column], list(order))
        for p, column in zip(models, known, strict=True)
    ]


def _placed(preds: Predictions, places: Sequence[int], ids: Sequence[str]) -> Outcomes:
    score, correct = np.full(len(ids), -inf), np.zeros(len(ids), dtype=np.bool_)
    score[places], correct[places] = preds.confidence, preds.correct
    return Outcomes(score, correct=correct, id=np.array(ids))


def _asked(model: Callable[[Ints], Predictions], rows: Ints) -> Predictions:
    preds = model(rows)
    if preds.n != len(rows):
        raise InputError(f"a model was asked for {len(rows)} rows and answered {preds.n}.")
    return preds


def _checked(stages: Sequence[Outcomes], costs: Sequence[float]) -> None:
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


def _candidates(score: Floats, size: int) -> Floats:
    """Thresholds to try, inf (never answer) first, then downwards; -inf is no answer and no
    threshold accepts it.
    """
    score = score[score > -inf]
    distinct = np.unique(score)
    if len(distinct) > size:
        distinct = np.unique(np.quantile(score, np.linspace(0, 1, size), method="inverted_cdf"))
    return np.concatenate(([inf], distinct[::-1]))


def _tables(
    stages: Sequence[Outcomes], grids: Sequence[Floats]
) -> tuple[list[Floats], Floats, Floats]:
    """Samples that reach each model, samples answered and answered wrong, for every combination of
    thresholds.
    """
    shape = tuple(len(g) for g in grids)
    n = len(stages[0])
    # the position of the first threshold that a sample passes: it is answered from there on
    places = [
        np.searchsorted(-g, -np.asarray(o.score, dtype=np.float64))
        for o, g in zip(stages, grids, strict=True)
    ]
    reached: list[Floats] = [np.full((1,) * len(shape), float(n))]
    answered, wrong = np.zeros(shape), np.zeros(shape)
    for i, o in enumerate(stages):
        takes = _count(places[: i + 1], shape[: i + 1], np.ones(n), len(shape))
        answered = answered + takes
        wrong = wrong + _count(
            places[: i + 1], shape[: i + 1], (~np.asarray(o.correct)).astype(np.float64), len(shape)
        )
        reached.append(reached[-1] - takes)
    return reached[:-1], answered, wrong


def _count(places: Sequence[Ints], shape: tuple[int, ...], weight: Floats, axes: int) -> Floats:
    """Summed weight of the samples that all models but the last of `places` pass on and the last
    one answers.
    """
    inside = tuple(s + 1 for s in shape)  # one more place for scores below every threshold
    flat = np.ravel_multi_index(tuple(places), inside)
    table: Floats = (
        np.bincount(flat, weights=weight, minlength=int(np.prod(inside)))
        .reshape(inside)
        .astype(np.float64)
    )
    for axis in range(len(shape) - 1):  # passed on: the sample's place lies beyond the threshold
        table = np.flip(np.cumsum(np.flip(table, axis), axis=axis), axis)
        table = np.take(table, range(1, shape[axis] + 1), axis=axis)
    last = len(shape) - 1  # answered: its place lies at or before the threshold
    table = np.take(np.cumsum(table, axis=last), range(shape[last]), axis=last)
    return table.reshape(shape + (1,) * (axes - len(shape)))
