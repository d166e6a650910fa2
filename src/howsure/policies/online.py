"""OnlinePolicy: the threshold follows the labels that come back, so the long-run risk stays at its
target.
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Floats, InputError
from howsure._core.frozen import frozen
from howsure.bounds import check_proportion
from howsure.policies.policy import Decisions, Policy
from howsure.predictions import Predictions, needs_predictions

# After so many samples without an accepted one, labels of deferred samples may reopen the door.
REOPEN_AFTER = 200
SUREST_SHARE = 0.1  # the share of surest samples whose labels then count
AUDIT_BLOCK = 4096  # samples whose audits are drawn together
TOP_STEP = 0.01  # how far one score moves the level of the surest tenth
GRID_LEVELS = 201  # levels at which calibration scores are kept
TICKET_PATTERN = re.compile(r"\d{1,18}-[0-9a-f]{12}", re.ASCII)


@frozen(eq=False)
class OnlinePolicy:
    r"""A policy whose threshold moves with every audited label.

    The threshold is kept as a `level`, the share of the calibration scores below it. A random share
    `audit` of the accepted samples is marked for labelling; each such label moves the level,

    .. math:: q \leftarrow \max(0,\; q + \eta (\ell - \mathrm{risk})),

    so after m labels, whatever the drift, their mean loss is at most :math:`\mathrm{risk} + (1 + \eta (1 + d) - q_1)
    / (\eta m)`, with d the labels still under way. Labels may come late, in any order, or never (for a share that does
    not depend on the loss); labels of accepted samples that were not marked are ignored, for they may be a
    biased choice. Where nothing was accepted for 200 samples, labels of the surest tenth of the deferred may
    lower the level again; without any labels it stays closed. A frozen value: `decide` and `learn` return the next
    state, `howsure.save` stores it whole. Gibbs & Candès 2021; Angelopoulos et al. 2023.

    >>> start = OnlinePolicy.start(Policy("max_prob", 0.5), np.linspace(0, 1, 101), risk=0.1, audit=1.0)
    >>> state, made = start.decide(Predictions.from_confidence([0.9, 0.2]))
    >>> made.accept
    array([ True, False])
    >>> state.learn(made, [0, 0]).level > state.level  # an accepted answer was wrong
    True
    """

    policy: Policy
    risk: float
    grid: Floats  # calibration scores at equally spaced levels
    level: float
    step: float = 0.02
    audit: float = 0.1
    seed: int = 0
    seen: int = 0
    accepted: int = 0
    idle: int = 0  # samples since the last accepted one
    labels: int = 0
    wrong: int = 0
    top: float = 1.0 - SUREST_SHARE  # level above which about a tenth of the recent scores lie
    read: int = 0  # bytes of a file of labels that were learnt from
    learnt: tuple[str, ...] = ()  # tickets of the decisions whose labels were learnt lately
    waiting_decisions: tuple[dict[str, Any], ...] = ()  # those whose labels may come
    early_labels: tuple[dict[str, Any], ...] = ()  # those that came before their decisions

    def __post_init__(self) -> None:
        checks.within(self.risk, 0, 1, "risk")
        checks.within(self.step, 0, 1e6, "step")
        checks.within(self.audit, 0, 1, "audit")
        checks.within(self.top, -1, 2, "top")
        checks.within(self.level, -1e9, 1e9, "level")
        for name in ("seed", "seen", "accepted", "idle", "labels", "wrong", "read"):
            checks.within(getattr(self, name), 0, 2**62, name)
        grid = checks.no_nan(self.grid, "grid")
        if grid.ndim != 1 or not grid.size or not (np.diff(grid) >= 0).all():
            raise InputError(
                "grid", got="is not a rising list of scores", hint="make the policy again"
            )
        if self.accepted > self.seen or self.wrong > self.labels:
            raise InputError(
                "the counts of an online policy", got="contradict each other", hint="make it again"
            )
        if not all(TICKET_PATTERN.fullmatch(ticket) for ticket in self.learnt):
            raise InputError(
                "learnt", got="holds something that is no ticket", hint="make the policy again"
            )

    @classmethod
    def start(
        cls,
        policy: Policy,
        score: ArrayLike,
        *,
        risk: float,
        step: float = 0.02,
        audit: float = 0.1,
        seed: int = 0,
    ) -> OnlinePolicy:
        """Begin at the policy's threshold; `score` are the scores of the calibration data."""
        check_proportion(risk, "risk")
        checks.fraction(audit, "audit")
        checks.fraction(step, "step")
        if policy.by is not None:
            raise InputError(
                "an online policy moves one threshold; this policy has thresholds by class or group."
            )
        if policy.suggestions is not None:
            raise InputError(
                "suggestions hold for what one threshold defers, and an online policy moves it."
            )
        # A level is a share of the calibration scores, so one step means the same for any score.
        s = checks.column(score, "score").astype(np.float64)
        return cls(
            policy=policy,
            risk=risk,
            grid=np.quantile(s, np.linspace(0, 1, GRID_LEVELS), method="inverted_cdf"),
            level=float((s < policy.threshold).mean()),
            step=step,
            audit=audit,
            seed=seed,
        )

    @property
    def threshold(self) -> float:
        """The score at the present level; -inf accepts everything, inf nothing."""
        if self.level <= 0:
            return -inf
        if self.level >= 1:
            return inf
        return float(np.interp(self.level, np.linspace(0, 1, len(self.grid)), self.grid))

    @property
    def audited_risk(self) -> float:
        """Mean loss of all audited labels so far; nan before the first."""
        return self.wrong / self.labels if self.labels else float("nan")

    def decide(self, preds: Predictions) -> tuple[OnlinePolicy, Decisions]:
        """The next state, and decisions at the present threshold with `.audit` marking the labels
        asked for.
        """
        needs_predictions(preds, "OnlinePolicy.decide")
        decisions = replace(self.policy, threshold=self.threshold).decide(preds)
        asked = draw_audits(self.seed, self.seen, len(decisions)) < self.audit
        return self.count(decisions), replace(decisions, audit=decisions.accept & asked)

    def count(self, decisions: Decisions) -> OnlinePolicy:
        """The state after decisions that it made, in whatever pieces they come."""
        n, accepted = len(decisions), np.flatnonzero(decisions.accept)
        idle = self.idle + n
        if len(accepted):
            idle = n - 1 - int(accepted[-1])
        # Follow the level that a tenth of the scores exceed (stochastic quantile estimation).
        top = self.top
        for level in self._find_levels(decisions.score).tolist():
            top = min(1.0, max(0.0, top + TOP_STEP * ((level >= top) - SUREST_SHARE)))
        return replace(
            self,
            seen=self.seen + n,
            accepted=self.accepted + len(accepted),
            idle=idle,
            top=top,
        )

    def learn(self, decisions: Decisions, correct: ArrayLike) -> OnlinePolicy:
        """The state after labels for some of the decisions made earlier (`decisions[rows]`), in any
        order.
        """
        right = checks.zero_one(correct, "correct")
        checks.same_length(right, "correct", len(decisions), "the decisions")
        if decisions.audit is None:
            raise InputError(
                "these decisions are not of an online policy; learn must know which were audited."
            )
        loss = (~right).astype(np.float64)
        # Only audited labels count: others may be a biased choice of whoever labels.
        audited = loss[decisions.audit]
        level = self.level
        for x in audited.tolist():
            level = max(0.0, level + self.step * (x - self.risk))
        if self.idle >= REOPEN_AFTER:
            # Nothing is accepted: the surest of the deferred count too, whose labels cost no risk.
            level = min(level, 1.0)
            surest = ~decisions.accept & (self._find_levels(decisions.score) >= self.top)
            for x in loss[surest].tolist():
                level = min(1.0, max(0.0, level + self.step * (x - self.risk)))
        return replace(
            self,
            labels=self.labels + len(audited),
            wrong=self.wrong + int(audited.sum()),
            level=level,
        )

    def _find_levels(self, score: Floats) -> Floats:
        return np.searchsorted(self.grid, score, side="right") / len(self.grid)


def draw_audits(seed: int, first: int, n: int) -> Floats:
    """Uniform numbers that belong to the samples `first`, `first` + 1, ...: the same in whatever
    pieces they come.
    """
    # Each block has a generator of its own, so a draw depends on the number of its sample alone.
    start = first % AUDIT_BLOCK
    numbers: list[Floats] = [np.zeros(0)]
    for block in range(first - start, first + n, AUDIT_BLOCK):
        numbers.append(np.random.default_rng([seed, block]).random(AUDIT_BLOCK))
    return np.concatenate(numbers)[start : start + n]
