"""Everything to know before a threshold goes live, as one plain value: what `howsure threshold`
prints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from math import isnan
from typing import NotRequired, TypedDict

import numpy as np

from howsure._core import json
from howsure._core.check import Bools, InputError
from howsure.policies.deployment import (
    Deferral,
    Expected,
    count_kept,
    deferral_table,
    expected_on_new_data,
    named,
)
from howsure.policies.guarantee import Guaranteed
from howsure.policies.policy import Decisions, Policy, keys_of
from howsure.policies.threshold import Threshold
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Tally

Choose = Callable[[Tally], Threshold | Guaranteed]


class ShareData(TypedDict):
    """A proportion with its limits; null where there was nothing to count."""

    value: float | None
    low: float | None
    high: float | None


class PromiseData(TypedDict):
    """How the threshold was chosen, and what is promised of it."""

    rule: str
    risk: float | None
    delta: float | None
    bound: float | None
    feasible: bool
    labels_needed: int | None


class ExpectedData(TypedDict):
    """Coverage and accuracy to expect on new data, and the counts behind them."""

    coverage: ShareData
    accuracy: ShareData
    kept: int
    n: int


class DeferralData(TypedDict):
    """One class or group: its size, the share deferred, and the accuracy of both sides."""

    name: str
    n: int
    deferred: ShareData
    accuracy_accepted: ShareData
    accuracy_deferred: ShareData


class TrialData(TypedDict):
    """How a policy did on data that chose nothing, and whether its promise is compatible with them."""

    coverage: ShareData
    accuracy: ShareData
    kept: int
    n: int
    risk_promised: float | None
    observed_below: bool | None
    compatible: bool | None
    deferral: dict[str, list[DeferralData]]


class AllData(TypedDict):
    """All questions that were asked, those without an answer by reason, and the share of all that
    is accepted.
    """

    asked: int
    answered: float
    coverage: float
    unparseable: int
    refused: int
    missing: int
    unstated: int


class PlanData(TypedDict):
    """Everything to know before a threshold goes live; what is null does not exist or is infinite."""

    score: str
    threshold: float | None
    feasible: bool
    promise: NotRequired[PromiseData]
    n: NotRequired[int]
    coverage: NotRequired[float | None]
    accuracy: NotRequired[float | None]
    questions: NotRequired[AllData]
    by: str | None
    thresholds: dict[str, float | None]
    deferral: dict[str, list[DeferralData]]
    expected: ExpectedData | None
    test: TrialData | None


def plan(
    policy: Policy,
    choose: Choose,
    preds: Predictions,
    *,
    test: Predictions | None = None,
    level: float = 0.95,
) -> PlanData:
    """What a fitted policy promises, what to expect of it, what it defers, and how it did on test
    data.

    Values are plain JSON types; nan and infinite ones are None. `expected` is cross-fitted on
    `preds` (`expected_on_new_data`) for a single threshold; `test` compares with data that chose
    nothing.

    >>> from howsure.policies import threshold_for_coverage
    >>> preds = Predictions.from_confidence(np.linspace(0.5, 1, 100), [1] * 100)
    >>> choose = lambda t: threshold_for_coverage(t, 0.5)
    >>> plan(Policy.fit(preds, choose), choose, preds)["coverage"]
    0.5
    """
    promise, basis = policy.promise, policy.basis
    made = policy.decide(preds)
    out: dict[str, object] = {
        "score": policy.score,
        "threshold": policy.threshold,
        "feasible": policy.threshold < np.inf or any(x < np.inf for x in policy.thresholds),
        **({} if promise is None else {"promise": promise}),
        **(
            {}
            if basis is None
            else {"n": basis.n, "coverage": basis.coverage, "accuracy": basis.accuracy}
        ),
        **_questions(made, preds),
        "by": policy.by,
        "thresholds": dict(zip(policy.keys, policy.thresholds, strict=True)),
        "deferral": {} if preds.graded else _deferral(policy, preds, level),
        "expected": None,
        "test": None,
    }
    if policy.by is None and policy.costs is None and preds.weight is None and not preds.graded:
        o = Outcomes(made.score, preds.correct, group=preds.group)
        out["expected"] = expected_on_new_data(o, choose, level=level)
    if test is not None and test.graded:
        raise InputError(
            "a test holds right and wrong answers against the promise; the answers of this one are graded."
        )
    if test is not None:
        out["test"] = {**_on_test(policy, test, level), "deferral": _deferral(policy, test, level)}
    return json.typed(json.plain(out), PlanData)


def _questions(made: Decisions, preds: Predictions) -> dict[str, object]:
    """How many questions were asked and answered at all, and the share of all of them that is
    accepted.
    """
    if preds.unanswered is None or not preds.unanswered.total:
        return {}
    counts = {
        name: count for name, count in asdict(preds.unanswered).items() if name != "unstated_right"
    }
    accepted = made.coverage * preds.answered
    asked = preds.n + preds.unanswered.total
    return {
        "questions": {"asked": asked, "answered": preds.answered, "coverage": accepted, **counts}
    }


def _right(policy: Policy, preds: Predictions) -> tuple[Decisions, Bools]:
    """Accepted, and right as the policy answers."""
    made = policy.decide(preds)
    known = preds.kind == "confidence"
    return made, preds.correct if known else made.prediction == preds.labels


def _deferral(policy: Policy, preds: Predictions, level: float) -> dict[str, tuple[Deferral, ...]]:
    made, right = _right(policy, preds)
    tables: dict[str, tuple[Deferral, ...]] = {}
    if preds.kind != "confidence" or preds.known_prediction is not None:
        keys = named(
            made.prediction, made.class_names if made.prediction.dtype.kind in "iu" else None
        )
        tables["predicted class"] = deferral_table(made.accept, right, keys, level=level)
    if preds.layout is not None and preds.layout.parts == "labels":
        tables["label"] = deferral_table(
            made.accept, right, keys_of(preds, "label", made.prediction), level=level
        )
    elif preds.group is not None:
        tables["group"] = deferral_table(made.accept, right, preds.group, level=level)
    return tables


def _on_test(policy: Policy, test: Predictions, level: float) -> dict[str, object]:
    """Coverage and accuracy on test data, and whether the promised risk is compatible with them."""
    made, right = _right(policy, test)
    found: Expected = count_kept(made.accept, right, level)
    risk = policy.promise.risk if policy.promise is not None else float("nan")
    kept = None if isnan(risk) or not found.kept else bool(1 - found.accuracy.high <= risk)
    below = None if isnan(risk) or not found.kept else bool(1 - found.accuracy.value <= risk)
    return {**asdict(found), "risk_promised": risk, "observed_below": below, "compatible": kept}
