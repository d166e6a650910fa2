"""Is a guarantee still supported? A fixed policy beside new labels."""

from __future__ import annotations

from math import isnan

import numpy as np

from howsure._core.checks import Bools, InputError
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.bounds import clopper_pearson
from howsure.policies.policy import CASE_SCORE, Guarantee, Policy
from howsure.predictions import Predictions


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
