"""Labels that come back: lines of earlier decisions with `correct` added, read as far as they are
complete. An online policy learns from them (`Learner`), and a `GuaranteeMonitor` judges by them
whether a promised risk is still kept: at any time, in any order, late or never.

Every decision of an online policy carries a ticket, its number and a digest of what was decided. A
label counts once, and only with a ticket of this policy: repeated, unknown and late labels are
reported and not learnt.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks, strict_json
from howsure._core.checks import Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count
from howsure.bounds import check_proportion
from howsure.formats.contents import as_record
from howsure.policies.online import OnlinePolicy
from howsure.policies.policy import Decisions
from howsure.predictions import Predictions
from howsure.serving.journal import ServingError, StateFile

Report: TypeAlias = Callable[[str], None]
OnBad: TypeAlias = Literal["stop", "skip"]
LATE_DECISIONS = 1 << 16  # a label for a decision further back than this is late
LABEL_BLOCK = 1 << 24  # bytes of labels that are looked at together
# How many times the promised risk each gambler against it believes in.
BROKEN_FACTORS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
KEPT_FACTORS = (0.0, 0.25, 0.5, 0.75)  # the same of those who believe that it is kept
FRESH_BET_LABELS = 50  # fresh bets start after so many labels: a late change is found too
REMEMBERED_LABELS = 1 << 16  # labels that are known again
MAX_LOG_CAPITAL = 1e15  # a log beyond that is no capital that labels made


class LabelError(ServingError):
    """Something is wrong with the labels."""


@frozen
class LabelledDecision:
    """A decision that came back with its label."""

    accept: bool
    correct: bool
    audit: bool = False
    score: float = float("nan")
    ticket: str = ""  # of an online policy
    policy: str = ""  # the stamp of a fixed one
    key: str = ""  # the same for two labels of one decision

    @property
    def number(self) -> int:
        """Which decision of the policy it was; -1 where the ticket does not say."""
        return find_number(self.ticket)


def parse_label(row: dict[str, Any], *, online: bool) -> LabelledDecision:
    """A line of decisions with `correct` added; an online policy needs score and audit too."""
    correct = row["correct"]
    if correct not in (0, 1):
        raise ValueError(correct)
    policy = row.get("policy", "")
    name, number = row.get("id"), None
    if online:
        score, audit = row["score"], bool(row["audit"])
    else:
        score, audit = row.get("score"), False
        if name is None:
            number = row["line"]
    return LabelledDecision(
        accept=row["decision"] == "accept",
        correct=bool(correct),
        audit=audit,
        score=float("nan") if score is None else float(score),
        ticket=str(row.get("ticket", "")),
        policy=str(policy),
        key=hashlib.sha256(strict_json.dump_line([name, number, policy]).encode()).hexdigest()[:16],
    )


def read_labels(
    data: bytes, path: Path, *, online: bool, on_bad: OnBad, report: Report
) -> Iterator[LabelledDecision]:
    """The labels in some lines. A line that is none raises, or is reported and left out."""
    for line in data.splitlines():
        if not line.strip():
            continue
        try:
            yield parse_label(as_record(strict_json.loads(line)) or {}, online=online)
        except (ValueError, KeyError, TypeError, RecursionError):
            text = line[:80].decode("utf-8", "replace")
            error = LabelError(
                f"{path.name}: {text}",
                got="is not a decision with its label",
                hint='add "correct": 0 or 1 to the lines of decide',
            )
            if on_bad == "stop":
                raise error from None
            report(str(error))


def read_new_lines(read: int, path: Path) -> bytes | None:
    """Complete lines beyond the first `read` bytes; None where there are none."""
    if not path.exists():
        return None
    if not path.is_file():
        raise LabelError(
            str(path), got="is not a file", hint="labels are read from a file that may grow"
        )
    # A file that shrank is another file: what was read of it before is gone.
    size = path.stat().st_size
    if size < read:
        got = f"has {size:,} bytes, and {read:,} were read before, so it was cut or replaced"
        raise LabelError(path.name, got=got, hint="append to the file, or begin with a new policy")
    with path.open("rb") as file:
        file.seek(read)
        data = file.read(LABEL_BLOCK)
    # The last line may still be growing.
    whole = data[: data.rfind(b"\n") + 1]
    if not whole and len(data) == LABEL_BLOCK:
        raise LabelError(
            path.name,
            got=f"has a line of more than {LABEL_BLOCK:,} bytes",
            hint="is this a text file?",
        )
    return whole or None


# Online policies.


class Learner:
    """Decides by an online policy, learns from a growing file of labels, and saves its state as it
    goes.

    The state holds how many bytes of the label file it has learnt from and which tickets, so after
    a crash no label counts twice and none is lost. `save` must write whole or not at all, as
    `howsure.save` does. What is saved knows no decision that may not have been delivered; those
    that were delivered after it was saved are taken from the output (`resume`), so going on gives
    the decisions of an undisturbed run. A line that is no label ends the run, or is passed to
    `report` and left out where `on_bad` is "skip".
    """

    def __init__(
        self,
        state: OnlinePolicy,
        labels: Path | None,
        save: Callable[[OnlinePolicy], None],
        *,
        on_bad: OnBad = "stop",
        report: Report = lambda _: None,
    ):
        self._file = StateFile(state, save)
        self._identity = compute_identity(state)
        self._undelivered = state  # the state before the decisions made last
        self.labels, self.report = labels, report
        self.on_bad: OnBad = on_bad

    @property
    def state(self) -> OnlinePolicy:
        """The policy as it is now."""
        return self._file.state

    def decide(self, preds: Predictions) -> Decisions:
        """Learn what is new, decide, and save now and then."""
        self._learn()
        if self._file.due:
            try:
                self.close()
            except InputError as e:
                raise ServingError(str(e)) from None
        # What is saved must not know decisions that may not have been delivered; saving comes first.
        before = self._undelivered = self.state
        self._file.state, decisions = before.decide(preds)
        return replace(decisions, ticket=make_tickets(decisions, before.seen, self._identity))

    def _learn(self) -> None:
        if self.labels is not None:
            self._file.state = learn_labels(
                self.state, self.labels, on_bad=self.on_bad, report=self.report
            )

    def undo(self) -> None:
        """The decisions made last were not delivered, or not all of them."""
        self._file.state = self._undelivered

    def resume(self, output: Path) -> None:
        """Count the decisions of an earlier run that its last state does not know, whole lines of
        its output.
        """
        if not output.is_file():
            return
        self._learn()
        delivered: list[LabelledDecision] = []
        with output.open("rb") as lines:
            for line in lines:
                # A torn line was not delivered, and lines of other policies do not count.
                record = parse_delivered(line) if line.endswith(b"\n") else None
                if record is None or record.number != self.state.seen + len(delivered):
                    continue
                if record.ticket == make_ticket(record, self._identity):
                    delivered.append(record)
        if delivered:
            self._file.state = self.state.count(as_decisions(delivered))

    def close(self) -> None:
        """Save the state."""
        self._file.save()


def compute_identity(state: OnlinePolicy) -> bytes:
    """A digest of what stays the same of an online policy while it learns."""
    policy = state.policy
    fixed = (state.risk, state.step, state.audit, state.seed, policy.score, policy.threshold)
    return hashlib.sha256(repr(fixed).encode() + state.grid.tobytes()).digest()


def make_tickets(decisions: Decisions, first: int, identity: bytes) -> tuple[str, ...]:
    """The tickets of decisions, the first of which is number `first` of its policy."""
    audit = decisions.audit
    if audit is None:
        audit = np.zeros(len(decisions), dtype=np.bool_)
    columns = (decisions.accept.tolist(), audit.tolist(), decisions.score.tolist())
    rows = enumerate(zip(*columns, strict=True), start=first)
    return tuple(_format_ticket(i, *row, identity) for i, row in rows)


def make_ticket(label: LabelledDecision, identity: bytes) -> str:
    """The ticket that a decision of this policy would carry."""
    return _format_ticket(label.number, label.accept, label.audit, label.score, identity)


def _format_ticket(number: int, accept: bool, audit: bool, score: float, identity: bytes) -> str:
    content = f"{number}|{accept:d}|{audit:d}|{score!r}".encode()
    return f"{number}-{hashlib.sha256(identity + content).hexdigest()[:12]}"


def find_number(ticket: str) -> int:
    """Which decision a ticket is of; -1 where it does not say."""
    number = ticket.partition("-")[0]
    return int(number) if is_count(number) else -1


def learn_labels(
    state: OnlinePolicy,
    path: Path,
    *,
    on_bad: OnBad = "stop",
    report: Report = lambda _: None,
) -> OnlinePolicy:
    """The state after the complete lines that the file has beyond what was read before."""
    identity = compute_identity(state)
    while (data := read_new_lines(state.read, path)) is not None:
        known = set(state.learnt)
        newest = max([state.seen, *map(find_number, state.learnt)])
        fresh: list[LabelledDecision] = []
        refused: Counter[str] = Counter()
        # All lines are parsed before the first is learnt: a bad one must not leave half a block.
        labels = list(read_labels(data, path, online=True, on_bad=on_bad, report=report))
        for label in labels:
            if label.ticket in known:
                refused["repeated"] += 1
            elif label.ticket != make_ticket(label, identity):
                refused["unknown"] += 1
            elif label.number < newest - LATE_DECISIONS:
                refused["late"] += 1
            else:
                known.add(label.ticket)
                fresh.append(label)
        if refused:
            counts = ", ".join(f"{n:,} {why}" for why, n in sorted(refused.items()))
            report(f"{path.name}: {counts} labels were not learnt.")
        if fresh:
            state = state.learn(as_decisions(fresh), [label.correct for label in fresh])
            tickets = keep_recent((*state.learnt, *(label.ticket for label in fresh)))
            state = replace(state, learnt=tickets)
        state = replace(state, read=state.read + len(data))
    return state


def keep_recent(tickets: Sequence[str]) -> tuple[str, ...]:
    """Tickets that could still come a second time."""
    oldest = max(map(find_number, tickets)) - LATE_DECISIONS
    return tuple(ticket for ticket in tickets if find_number(ticket) >= oldest)


def parse_delivered(line: bytes) -> LabelledDecision | None:
    """A line of decisions, which has no label yet; None where it is none of an online policy."""
    try:
        row = as_record(strict_json.loads(line)) or {}
        score = float("nan") if row["score"] is None else float(row["score"])
        return LabelledDecision(
            accept=row["decision"] == "accept",
            correct=False,
            audit=bool(row["audit"]),
            score=score,
            ticket=str(row["ticket"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def as_decisions(labels: Sequence[LabelledDecision]) -> Decisions:
    """The decisions that labels are of, as far as an online policy looks at them."""
    accept = np.array([label.accept for label in labels])
    audit = np.array([label.audit for label in labels])
    score = np.array([label.score for label in labels])
    unknown = np.full(len(labels), -1)
    return Decisions(
        accept=accept, prediction=unknown, confidence=score, score=score, audit=accept & audit
    )


# Is a promised risk still kept?


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
