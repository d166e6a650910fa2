"""Promise: is a promised risk still kept? Judged at any time, from labels that come in any order,
late or never.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check, json
from howsure._core.check import Floats, InputError
from howsure._core.frozen import frozen
from howsure.bounds import proportion
from howsure.formats.contents import as_record
from howsure.serving.feedback import LabelError, new_lines

TIMES = (
    1.25,
    1.5,
    2.0,
    3.0,
    5.0,
    10.0,
)  # how many times the promised risk each gambler against it believes in
LESS = (0.0, 0.25, 0.5, 0.75)  # the same of those who believe that it is kept
FRESH = 50  # labels after which fresh bets start, so that a late change is found too
REMEMBERED = 1 << 16  # labels that are known again
LARGEST = 1e15  # a log beyond that is no capital that labels made


@frozen(eq=False)
class WatchedPromise:
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

    >>> promise = WatchedPromise.start(risk=0.05, false_alarms=0.01)
    >>> promise.see([1] * 95 + [0] * 5).broken is None
    True
    >>> promise.see([1, 1, 0] * 20).broken  # a third is wrong
    18
    >>> promise.see([1] * 400).kept
    112
    """

    risk: float
    false_alarms: float
    against: Floats  # log capital of each gambler against the promise
    favour: Floats  # and of each for it
    policy: str = (
        ""  # the start of the digest of the policy whose decisions it judges; empty: of any
    )
    labels: int = 0
    wrong: int = 0
    broken: int | None = None  # the label at which it was
    kept: int | None = None
    read: int = 0  # bytes of the file of labels
    seen: tuple[str, ...] = ()  # the labels that were counted lately
    resets: tuple[str, ...] = ()  # reasons

    def __post_init__(self) -> None:
        proportion(self.risk, "risk")
        proportion(self.false_alarms, "false_alarms")
        for name, capital, size in (
            ("against", self.against, len(TIMES)),
            ("favour", self.favour, len(LESS)),
        ):
            if capital.shape != (size,) or not (capital <= LARGEST).all():
                raise InputError(
                    name, got=f"is not a list of {size} logs", hint="start the promise again"
                )
        check.within(self.labels, 0, 2**62, "labels")
        check.within(self.wrong, 0, self.labels, "wrong")
        check.within(self.read, 0, 2**62, "read")
        for name, at in (("broken", self.broken), ("kept", self.kept)):
            if at is not None:
                check.within(at, 1, self.labels, name)

    @classmethod
    def start(cls, *, risk: float, false_alarms: float = 0.01, policy: str = "") -> WatchedPromise:
        """Before the first label."""
        favour = np.full(len(LESS), -log(len(LESS)))
        return cls(risk, false_alarms, np.full(len(TIMES), -np.inf), favour, policy)

    def see(self, correct: ArrayLike) -> WatchedPromise:
        """The promise after these labels of accepted cases, in the order in which they came."""
        right = check.zero_one(correct, "correct")
        above, below = _beliefs(self.risk)
        level = -log(self.false_alarms)
        against, broken = self.against, self.broken
        gains = [np.log(above / self.risk), np.log((1 - above) / (1 - self.risk))]
        for i, ok in enumerate(right.tolist()):
            if (self.labels + i) % FRESH == 0:
                start = (self.labels + i) // FRESH
                against = np.logaddexp(against, -log((start + 1) * (start + 2)) - log(len(TIMES)))
            against = against + gains[1 if ok else 0]
            if broken is None and np.logaddexp.reduce(against) >= level:
                broken = self.labels + i + 1
        favour, kept = _favoured(self, right, below, level)
        wrong = self.wrong + int((~right).sum())
        return replace(self, against=against, favour=favour, broken=broken, kept=kept, wrong=wrong,
                       labels=self.labels + len(right))  # fmt: skip

    @property
    def alarms(self) -> dict[str, int]:
        """What was raised, with the number of the label at which it was."""
        return {} if self.broken is None else {"promise": self.broken}

    def reset(self, reason: str) -> WatchedPromise:
        """Begin again with the next label; the reason is kept. What was read stays read."""
        begun = WatchedPromise.start(
            risk=self.risk, false_alarms=self.false_alarms, policy=self.policy
        )
        return replace(begun, read=self.read, seen=self.seen, resets=(*self.resets, reason))


def _beliefs(risk: float) -> tuple[Floats, Floats]:
    """The risks that gamblers against the promise and for it believe in."""
    above = np.minimum(risk * np.array(TIMES), (1 + risk) / 2)
    return above, risk * np.array(LESS)


def _favoured(
    state: WatchedPromise, right: Floats | np.ndarray, below: Floats, level: float
) -> tuple[Floats, int | None]:
    """The capital of those who believe that the promise is kept, and the label at which it was
    shown.
    """
    with np.errstate(divide="ignore"):
        steps = np.where(
            right[:, None], np.log((1 - below) / (1 - state.risk)), np.log(below / state.risk)
        )
    path = state.favour + np.cumsum(steps, axis=0)
    over = np.flatnonzero(np.logaddexp.reduce(path, axis=1) >= level)
    kept = (
        state.kept if state.kept is not None or not len(over) else state.labels + int(over[0]) + 1
    )
    return path[-1], kept


def learnt_promise(
    state: WatchedPromise,
    path: Path,
    *,
    on_bad: Literal["stop", "skip"] = "stop",
    report: Callable[[str], None] = lambda _: None,
) -> WatchedPromise:
    """The promise after the complete lines that a growing file of labels has beyond what was read
    before.

    A line is a line of `howsure decide` with "correct" added. Only accepted cases count, each once,
    and only those of the promise's own policy; others are reported.
    """
    while (data := new_lines(state.read, path)) is not None:
        known, right = set(state.seen), list[bool]()
        fresh: list[str] = []
        refused: Counter[str] = Counter()
        for line in data.splitlines():
            if not line.strip():
                continue
            found = _label(line, path, on_bad, report)
            if found is None or not found[1]:
                continue
            key, _, correct, policy = found
            if state.policy and policy != state.policy:
                refused["of another policy"] += 1
            elif key in known:
                refused["repeated"] += 1
            else:
                known.add(key)
                fresh.append(key)
                right.append(correct)
        if refused:
            report(
                f"{path.name}: labels not counted: {', '.join(f'{n:,} {why}' for why, n in sorted(refused.items()))}."
            )
        if right:
            state = state.see(np.array(right))
        state = replace(
            state, read=state.read + len(data), seen=(*state.seen, *fresh)[-REMEMBERED:]
        )
    return state


def _label(
    line: bytes, path: Path, on_bad: str, report: Callable[[str], None]
) -> tuple[str, bool, bool, str] | None:
    """What names a decision, whether it was accepted, whether it was right, and its policy."""
    try:
        row = as_record(json.loads(line)) or {}
        correct = row["correct"]
        if isinstance(correct, float) or correct not in (0, 1):
            raise ValueError(correct)
        name = json.line(
            [
                row.get("id"),
                None if row.get("id") is not None else row["line"],
                row.get("policy", ""),
            ]
        )
        key = hashlib.sha256(name.encode()).hexdigest()[:16]
        return key, row["decision"] == "accept", bool(correct), str(row.get("policy", ""))
    except (ValueError, KeyError, TypeError, RecursionError):
        text = line[:80].decode("utf-8", "replace")
        hint = 'add "correct": 0 or 1 to the lines of decide'
        error = LabelError(
            f"{path.name}: {text}", got="is not a decision with its label", hint=hint
        )
        if on_bad == "stop":
            raise error from None
        report(str(error))
        return None
