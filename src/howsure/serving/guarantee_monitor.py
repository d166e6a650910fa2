"""GuaranteeMonitor: is a promised risk still kept? Judged at any time, from labels that come in any
order, late or never.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Floats, InputError
from howsure._core.frozen import frozen
from howsure.bounds import check_proportion
from howsure.serving.feedback import OnBad, Report, read_labels, read_new_lines

# How many times the promised risk each gambler against it believes in.
BROKEN_FACTORS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
KEPT_FACTORS = (0.0, 0.25, 0.5, 0.75)  # the same of those who believe that it is kept
FRESH_BET_LABELS = 50  # fresh bets start after so many labels: a late change is found too
REMEMBERED_LABELS = 1 << 16  # labels that are known again
MAX_LOG_CAPITAL = 1e15  # a log beyond that is no capital that labels made


@frozen(eq=False)
class GuaranteeMonitor:
    r"""Evidence, from the labels of accepted cases, that a promised risk is broken, or that it is
    kept.

    Each gambler against the promise believes in a risk q above the promised r and multiplies his
    stake by q/r at an error and by (1 − q)/(1 − r) at a right answer. As long as every case is
    wrong with probability at most r, given those before it, the capital of all together does not
    grow on average, so it reaches 1/`false_alarms` with probability at most `false_alarms` *over
    the whole lifetime*, however often it is looked at (Ville). Fresh bets start every 50 labels,
    with stakes that sum to 1. `kept` is the mirror image: gamblers with q below r, all from the
    start; reached by chance with probability at most `false_alarms` where the risk is r or more all
    the time. Which cases are labelled may not depend on whether they are right. Waudby-Smith &
    Ramdas 2024; Podkopaev & Ramdas 2022.

    >>> monitor = GuaranteeMonitor.start(risk=0.05, false_alarms=0.01)
    >>> monitor.see([1] * 95 + [0] * 5).broken is None
    True
    >>> monitor.see([1, 1, 0] * 20).broken  # a third is wrong
    18
    >>> monitor.see([1] * 400).kept
    112
    """

    risk: float
    false_alarms: float
    against: Floats  # log capital of each gambler against the promise
    favour: Floats  # and of each for it
    policy: str = ""  # the start of the digest of the policy that decides; empty: any
    labels: int = 0
    wrong: int = 0
    broken: int | None = None  # the label at which it was
    kept: int | None = None
    read: int = 0  # bytes of the file of labels
    seen: tuple[str, ...] = ()  # the labels that were counted lately
    resets: tuple[str, ...] = ()  # reasons

    def __post_init__(self) -> None:
        check_proportion(self.risk, "risk")
        check_proportion(self.false_alarms, "false_alarms")
        for name, capital, factors in (
            ("against", self.against, BROKEN_FACTORS),
            ("favour", self.favour, KEPT_FACTORS),
        ):
            if capital.shape != (len(factors),) or not (capital <= MAX_LOG_CAPITAL).all():
                raise InputError(
                    name,
                    got=f"is not a list of {len(factors)} logs",
                    hint="start the guarantee monitor again",
                )
        checks.within(self.labels, 0, 2**62, "labels")
        checks.within(self.wrong, 0, self.labels, "wrong")
        checks.within(self.read, 0, 2**62, "read")
        for name, at in (("broken", self.broken), ("kept", self.kept)):
            if at is not None:
                checks.within(at, 1, self.labels, name)

    @classmethod
    def start(
        cls, *, risk: float, false_alarms: float = 0.01, policy: str = ""
    ) -> GuaranteeMonitor:
        """Before the first label."""
        return cls(
            risk=risk,
            false_alarms=false_alarms,
            against=np.full(len(BROKEN_FACTORS), -np.inf),
            favour=np.full(len(KEPT_FACTORS), -log(len(KEPT_FACTORS))),
            policy=policy,
        )

    def see(self, correct: ArrayLike) -> GuaranteeMonitor:
        """The monitor after these labels of accepted cases, in the order in which they came."""
        right = checks.zero_one(correct, "correct")
        risk, level = self.risk, -log(self.false_alarms)
        # A believed risk of 1 or more could never lose at an error, so beliefs stop half-way to 1.
        above = np.minimum(risk * np.array(BROKEN_FACTORS), (1 + risk) / 2)
        below = risk * np.array(KEPT_FACTORS)
        against, broken = self.against, self.broken
        gain_wrong, gain_right = np.log(above / risk), np.log((1 - above) / (1 - risk))
        for number, ok in enumerate(right.tolist(), start=self.labels):
            # Fresh gamblers with small stakes: those of the start may be ruined by a good time.
            if number % FRESH_BET_LABELS == 0:
                window = number // FRESH_BET_LABELS
                stake = -log((window + 1) * (window + 2)) - log(len(BROKEN_FACTORS))
                against = np.logaddexp(against, stake)
            against = against + (gain_right if ok else gain_wrong)
            if broken is None and np.logaddexp.reduce(against) >= level:
                broken = number + 1
        # Who believes in no errors at all (q = 0) is ruined by the first: log 0 is -inf.
        with np.errstate(divide="ignore"):
            gains = np.where(right[:, None], np.log((1 - below) / (1 - risk)), np.log(below / risk))
        path = self.favour + np.cumsum(gains, axis=0)
        over = np.flatnonzero(np.logaddexp.reduce(path, axis=1) >= level)
        kept = self.kept
        if kept is None and len(over):
            kept = self.labels + int(over[0]) + 1
        return replace(
            self,
            against=against,
            favour=path[-1],
            broken=broken,
            kept=kept,
            wrong=self.wrong + int((~right).sum()),
            labels=self.labels + len(right),
        )

    @property
    def alarms(self) -> dict[str, int]:
        """What was raised, with the number of the label at which it was."""
        return {} if self.broken is None else {"guarantee": self.broken}

    def reset(self, reason: str) -> GuaranteeMonitor:
        """Begin again with the next label; the reason is kept. What was read stays read."""
        begun = GuaranteeMonitor.start(
            risk=self.risk, false_alarms=self.false_alarms, policy=self.policy
        )
        return replace(begun, read=self.read, seen=self.seen, resets=(*self.resets, reason))


def judge_labels(
    state: GuaranteeMonitor,
    path: Path,
    *,
    on_bad: OnBad = "stop",
    report: Report = lambda _: None,
) -> GuaranteeMonitor:
    """The monitor after the complete lines that a growing file of labels has beyond what was read
    before.

    A line is a line of `howsure decide` with "correct" added. Only accepted cases count, each once,
    and only those of the monitor's own policy; others are reported.
    """
    while (data := read_new_lines(state.read, path)) is not None:
        known = set(state.seen)
        right: list[bool] = []
        fresh: list[str] = []
        refused: Counter[str] = Counter()
        for label in read_labels(data, path, online=False, on_bad=on_bad, report=report):
            if not label.accept:
                continue
            if state.policy and label.policy != state.policy:
                refused["of another policy"] += 1
            elif label.key in known:
                refused["repeated"] += 1
            else:
                known.add(label.key)
                fresh.append(label.key)
                right.append(label.correct)
        if refused:
            counts = ", ".join(f"{n:,} {why}" for why, n in sorted(refused.items()))
            report(f"{path.name}: labels not counted: {counts}.")
        if right:
            state = state.see(np.array(right))
        seen = (*state.seen, *fresh)[-REMEMBERED_LABELS:]
        state = replace(state, read=state.read + len(data), seen=seen)
    return state
