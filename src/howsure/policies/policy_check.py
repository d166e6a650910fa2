"""Is a guarantee still supported? A fixed policy beside new labels, or beside the counts it holds."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan

import numpy as np

from howsure._core.checks import Bools, InputError
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.bounds import clopper_pearson
from howsure.policies.guarantee import METHOD_NAMES, AcceptedCounts, RiskTest, search_thresholds
from howsure.policies.policy import CASE_SCORE, Guarantee, Policy
from howsure.predictions import Predictions

ALLOWED_ROUNDING = 1e-9


@frozen
class GuaranteeCheck:
    """One guarantee beside new labels: `wrong` of `n` accepted units, and the limits of their risk,
    each at the level of the guarantee. It is contradicted where even the lower one is above `risk`.
    """

    name: str
    unit: str
    n: int
    wrong: int
    low: float
    high: float
    risk: float

    @property
    def supported(self) -> bool:
        """Whether these labels can have come from a policy that keeps its guarantee."""
        return self.low <= self.risk

    @property
    def note(self) -> str:
        """What these labels say, in words."""
        if self.n == 0:
            return "nothing is accepted"
        if not self.supported:
            return "no longer supported: the risk is above the guarantee"
        if self.high <= self.risk:
            return "confirmed by these labels"
        return "these labels alone do not confirm it, nor contradict it"


def check_guarantees(policy: Policy, preds: Predictions) -> list[GuaranteeCheck]:
    """Each guarantee of a policy beside labelled predictions that did not choose it.

    >>> policy = Policy("max_prob", 0.5, guarantee=Guarantee("", risk=0.05, delta=0.05))
    >>> new = Predictions.from_confidence([0.9] * 100, [0] * 20 + [1] * 80)
    >>> check_guarantees(policy, new)[0].note
    'no longer supported: the risk is above the guarantee'
    """
    common = policy.guarantee
    if common is None or isnan(common.risk):
        raise InputError("this policy guarantees no risk; make one with howsure threshold --risk.")
    decisions = policy.decide(preds)
    wrong = ~preds.correct
    if policy.costs is not None or (preds.kind != "confidence" and preds.known_labels is not None):
        wrong = decisions.prediction != preds.labels
    accept, segment = decisions.accept, decisions.segment
    unit = "answers"
    if policy.score == CASE_SCORE or policy.partial:
        if preds.group is None:
            raise InputError("the answers do not say which case they belong to; give group=.")
        unit = "cases"
        _, first, place = np.unique(preds.group, return_index=True, return_inverse=True)
        broken = count_values(place, weights=accept & wrong, minlength=len(first)) > 0
        segment = None if segment is None else segment[first]
        # A guarantee about single answers counts all cases, one about whole cases the automatic ones.
        accept = np.ones(len(first), dtype=np.bool_) if policy.partial else accept[first]
        wrong = broken
    if segment is None or not policy.guarantees:
        return [count_broken("all", unit, accept, wrong, common)]
    checks: list[GuaranteeCheck] = []
    for name, guarantee in zip(policy.keys, policy.guarantees, strict=True):
        if guarantee.feasible and not isnan(guarantee.risk):
            name = policy.name_key(name)
            mine = np.asarray(segment.astype(str) == name)
            checks.append(count_broken(name, unit, accept & mine, wrong, guarantee))
    return checks


def count_broken(
    name: str, unit: str, accept: Bools, wrong: Bools, guarantee: Guarantee
) -> GuaranteeCheck:
    """Errors among what is accepted, with the limits of their share."""
    n, errors = int(accept.sum()), int((accept & wrong).sum())
    low, high = 0.0, 1.0
    if n:
        high = clopper_pearson(errors, n, guarantee.delta)
        low = 1 - clopper_pearson(n - errors, n, guarantee.delta)
    return GuaranteeCheck(
        name=name, unit=unit, n=n, wrong=errors, low=low, high=high, risk=guarantee.risk
    )


@frozen
class DerivedBound:
    """A bound that was derived again from the counts of a policy; nan where they give none."""

    name: str  # of the segment
    bound: float
    said: float
    counts: str
    follows: bool


def derive_bounds(policy: Policy) -> list[DerivedBound]:
    """Every guarantee of a policy that holds what was tested, searched again.

    It follows where the search finds the threshold of the policy and its bound, and where the
    counts are those that the policy says it rests on.

    >>> from howsure.policies import guaranteed_threshold
    >>> sure = Predictions.from_confidence([0.9] * 300, [1] * 300)
    >>> policy = Policy.fit(sure, lambda t: guaranteed_threshold(t, risk=0.05, delta=0.05))
    >>> [made.follows for made in derive_bounds(policy)]
    [True]
    """
    if policy.keys:
        named = list(zip(policy.keys, policy.thresholds, policy.guarantees, strict=False))
    else:
        named = [("", policy.threshold, policy.guarantee)]
    made: list[DerivedBound] = []
    for name, threshold, guarantee in named:
        if guarantee is not None and guarantee.tested:
            made.append(_derive_bound(name, threshold, guarantee, policy))
    return made


def _derive_bound(
    name: str, threshold: float, guarantee: Guarantee, policy: Policy
) -> DerivedBound:
    broken = DerivedBound(name, nan, guarantee.bound, "what was tested is no list of counts", False)
    method = [key for key, words in METHOD_NAMES.items() if words in guarantee.rule]
    if len(method) != 1 or len({len(column) for column in guarantee.tested}) != 1:
        return broken
    try:
        score, kept, errors = (np.array(column) for column in guarantee.tested)
    except ValueError:
        return broken
    ordered = (np.diff(score) < 0).all() and (np.diff(kept) > 0).all() and kept[0] > 0
    if not ordered or not (np.diff(errors, prepend=0.0) >= 0).all() or (errors > kept).any():
        return broken
    counts = AcceptedCounts(score=score, kept=kept, loss=errors, zero_one=True)
    test = RiskTest(risk=guarantee.risk, delta=guarantee.delta, bound="clopper_pearson")
    row, bound = search_thresholds(counts, test, method[0])
    if row is None:
        text = f"{errors[-1]:,.0f} errors among {kept[-1]:,.0f} (delta {guarantee.delta:g})"
        return replace(broken, counts=text)
    text = f"{errors[row]:,.0f} errors among {kept[row]:,.0f} of {kept[-1]:,.0f} (delta {guarantee.delta:g})"
    follows = bool(score[row] == threshold) and abs(bound - guarantee.bound) <= ALLOWED_ROUNDING
    basis = policy.basis
    if basis is not None and not name and guarantee.groups is None:
        share = kept[row] / kept[-1]
        accuracy = 1 - errors[row] / kept[row]
        same = basis.n == kept[-1] and abs(share - basis.coverage) <= ALLOWED_ROUNDING
        follows = bool(follows and same and abs(accuracy - basis.accuracy) <= ALLOWED_ROUNDING)
    return DerivedBound(name, bound, guarantee.bound, text, follows)
