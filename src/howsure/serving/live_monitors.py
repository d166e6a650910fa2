"""Monitors inside a process that decides one answer at a time: fed by the call that decides."""

from __future__ import annotations

from threading import Lock

import numpy as np

from howsure.policies.drift_monitor import DriftMonitor
from howsure.policies.one_decision import OneDecision
from howsure.policies.policy import Decisions
from howsure.serving.feedback import GuaranteeMonitor

SEEN_TOGETHER = 100  # decisions that a drift monitor is shown at once; it judges each of them


class LiveMonitors:
    """A drift monitor that is shown every decision and a guarantee monitor that is told the labels
    that come back; threads may share it.

    Pass it as `monitor=` to `Policy.decide_one`. `drift` and `guarantee` are the states as of now,
    to be saved with `howsure.save`, and `alarms` names what was raised, at which sample or label.

    >>> from howsure.policies import Policy
    >>> policy = Policy("max_prob", 0.8)
    >>> live = LiveMonitors(guarantee=GuaranteeMonitor.start(risk=0.05))
    >>> for confidence in (0.9, 0.95, 0.97, 0.99):
    ...     one = policy.decide_one(confidence=confidence, monitor=live)
    ...     live.learn(one, correct=False)
    >>> live.alarms, live.guarantee.labels
    ({'guarantee': 4}, 4)
    """

    def __init__(
        self, *, drift: DriftMonitor | None = None, guarantee: GuaranteeMonitor | None = None
    ) -> None:
        self._drift, self._guarantee = drift, guarantee
        self._unseen: list[tuple[bool, float]] = []
        self._lock = Lock()

    def see(self, decision: OneDecision) -> None:
        """Take note of a decision."""
        if self._drift is None:
            return
        with self._lock:
            self._unseen.append((decision.accept, decision.score))
            if len(self._unseen) >= SEEN_TOGETHER:
                self._show_drift()

    def learn(self, decision: OneDecision, correct: bool) -> None:
        """Count the label of a decision; that of a deferred one says nothing about the guarantee."""
        if self._guarantee is None or not decision.accept:
            return
        with self._lock:
            self._guarantee = self._guarantee.see([correct])

    def _show_drift(self) -> None:
        if self._drift is None or not self._unseen:
            return
        accept, score = zip(*self._unseen, strict=True)
        scores = np.array(score)
        self._drift = self._drift.see(
            Decisions(
                accept=np.array(accept),
                prediction=np.full(len(scores), -1),
                confidence=scores,
                score=scores,
            )
        )
        self._unseen.clear()

    @property
    def drift(self) -> DriftMonitor | None:
        """The drift monitor after all decisions so far."""
        with self._lock:
            self._show_drift()
            return self._drift

    @property
    def guarantee(self) -> GuaranteeMonitor | None:
        """The guarantee monitor after all labels so far."""
        return self._guarantee

    @property
    def alarms(self) -> dict[str, int]:
        """What was raised, with the number of the sample or label at which it was."""
        raised: dict[str, int] = {}
        for state in (self.drift, self.guarantee):
            if state is not None:
                raised |= state.alarms
        return raised
