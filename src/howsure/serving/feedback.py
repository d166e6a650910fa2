"""Labels that come back, in a file that may grow: joined to their decisions by ids, or lines of
decisions with `correct` added. An online policy learns from them (`Learner`), and a `GuaranteeMonitor` judges by them
whether a promised risk is still kept: at any time, in any order, late or never.

Every decision of an online policy carries a ticket, its number and a digest of what was decided. A
label counts once, and only with a ticket of this policy: repeated, unknown and late labels are
reported and not learnt.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from howsure.formats.cells import TRUTH_WORDS
from howsure.formats.contents import as_record
from howsure.formats.json_lines import BadLine
from howsure.formats.label_files import DECISION_COLUMNS, JoinedLabel, LabelReader
from howsure.formats.streams import StreamBatch
from howsure.policies.online import OnlinePolicy
from howsure.policies.policy import Decisions
from howsure.predictions import Predictions
from howsure.predictions.given_answers import is_right
from howsure.serving.journal import ServingError, StateFile, decision_lines

Report: TypeAlias = Callable[[str], None]
OnBad: TypeAlias = Literal["stop", "skip"]
LATE_DECISIONS = 1 << 16  # a label for a decision further back than this is late
WAITING_LABELS = 1 << 14  # decisions that wait for a label, and labels that wait for a decision
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


def parse_label(row: Mapping[str, Any]) -> LabelledDecision:
    """A line of decisions with `correct` added."""
    correct = parse_zero_one(row["correct"])
    if correct is None:
        raise ValueError(row["correct"])
    policy = row.get("policy") or ""
    name, number, score = row.get("id"), None, row.get("score")
    if name is None:
        number = str(row["line"])
    key = strict_json.dump_line([None if name is None else str(name), number, policy])
    return LabelledDecision(
        accept=row["decision"] == "accept",
        correct=correct,
        audit=bool(parse_zero_one(row.get("audit"))),
        score=float("nan") if score in (None, "") else float(score),
        ticket=str(row.get("ticket") or ""),
        policy=str(policy),
        key=hashlib.sha256(key.encode()).hexdigest()[:16],
    )


def parse_zero_one(value: object) -> bool | None:
    """True and false in the words of files; None where it is neither."""
    number = TRUTH_WORDS.get(str(value).strip().lower())
    return None if number is None else number == 1


def judge_answer(
    decision: Mapping[str, Any],
    label: JoinedLabel,
    k: int | None = None,
    names: tuple[str, ...] | None = None,
) -> bool:
    """Whether the answer of a decision was right; `k` classes have these names, where it is known."""
    if label.part == "labels":
        if decision["prediction"] is None:
            got = "has a label for a decision without an answer"
            raise InputError(label.where, got=got, hint='give "correct" (0 or 1) instead')
        try:
            return is_right(decision["prediction"], label.text, k, names)
        except InputError as e:
            raise e.at(label.where) from None
    correct = parse_zero_one(label.text)
    if correct is None:
        raise InputError(
            label.where, got=f"says {label.text[:60]!r}", need="1 (right) or 0 (wrong) is needed"
        )
    return correct


class LabelFeed:
    """Labels that come back, each joined to its decision.

    A line of `howsure decide` with `correct` or a label added holds its own decision. Any other
    label is joined by its id to the decisions that were delivered (`see`), whichever comes first:
    the last 16,384 decisions and as many labels without a decision are remembered, and stored with
    the state that follows them (`dump`, `restore`). Without `join` no decision is remembered.
    """

    def __init__(
        self,
        path: Path,
        *,
        join: str | None = "id",
        column: str | None = None,
        stamp: str = "",
        class_names: tuple[str, ...] | None = None,
        on_bad: OnBad = "stop",
        report: Report = lambda _: None,
    ):
        self.reader = LabelReader(path, join or "id", column)
        self._joins = join is not None
        self.path, self.stamp, self.report = path, stamp, report
        self.on_bad: OnBad = on_bad
        self.class_names, self.k = class_names, None if class_names is None else len(class_names)
        self._decided: dict[str, dict[str, Any]] = {}
        self._early: dict[str, JoinedLabel] = {}
        self._met: list[tuple[dict[str, Any], JoinedLabel]] = []  # early labels that now are of use
        self._forgotten_decisions = 0
        self._forgotten_labels = 0

    def see(self, decisions: Decisions, batch: StreamBatch) -> None:
        """Remember decisions that were delivered."""
        if self.k is None:
            self.class_names, self.k = decisions.class_names, batch.preds.k
        if batch.ids is None or not self._joins:
            return
        lines = decision_lines(decisions, batch.lines, batch.ids, self.stamp)
        for line in lines.splitlines():
            self.recall(as_record(strict_json.loads(line)) or {})

    def recall(self, row: dict[str, Any]) -> None:
        """Remember a line of decisions."""
        name = row.get("id")
        if name is None:
            return
        name = str(name).strip()
        decision = {key: row[key] for key in DECISION_COLUMNS if key in row and key != "line"}
        self._decided.pop(name, None)  # the last decision about an id is the one that counts
        self._decided[name] = {"id": name, **decision}
        if name in self._early:
            self._met.append((self._decided[name], self._early.pop(name)))
        if len(self._decided) > WAITING_LABELS:
            del self._decided[next(iter(self._decided))]
            self._forgotten_decisions += 1

    def recall_output(self, output: Path) -> None:
        """Remember the decisions of an earlier run."""
        if not self._joins:
            return
        with output.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self.recall(as_record(strict_json.loads(line)) or {})

    def read_new(self, read: int) -> tuple[list[LabelledDecision], int] | None:
        """The labels that came since `read` bytes were read, and how many bytes are read then; None
        where there are none. What is no label raises, or is reported and left out.
        """
        try:
            found = self.reader.read_new(read)
        except InputError as e:
            raise LabelError(str(e)) from None
        if found is None and not self._met:
            return None
        rows, read = found or ([], read)
        pairs, self._met = self._met, []
        labelled: list[LabelledDecision] = []
        for row in rows:
            if isinstance(row, BadLine):
                self._refuse(row.error)
            elif row.decision:
                pairs.append(({**row.decision, "id": row.id or None}, row))
            elif row.id in self._decided:
                pairs.append((self._decided[row.id], row))
            else:
                self._early[row.id] = row
        for decision, row in pairs:
            try:
                correct = judge_answer(decision, row, self.k, self.class_names)
                labelled.append(parse_label({**decision, "correct": correct}))
            except InputError as e:
                self._refuse(e)
            except (ValueError, KeyError, TypeError):
                got = "is not a decision with its label"
                hint = 'add "correct": 0 or 1 to the lines of decide'
                self._refuse(InputError(row.where, got=got, hint=hint))
        while len(self._early) > WAITING_LABELS:
            del self._early[next(iter(self._early))]
            self._forgotten_labels += 1
        return labelled, read

    def _refuse(self, error: InputError) -> None:
        if self.on_bad == "stop":
            raise LabelError(str(error))
        self.report(str(error))

    def close(self) -> None:
        """Report what waits, and what was forgotten."""
        name = self.path.name
        if self._early:
            self.report(f"{name}: labels still without a decision: {len(self._early):,}.")
        if self._forgotten_labels:
            self.report(
                f"{name}: labels forgotten because no decision came with their id: "
                f"{self._forgotten_labels:,} (the last {WAITING_LABELS:,} are remembered)."
            )
        if self._forgotten_decisions:
            self.report(
                f"{name}: decisions forgotten before a label came: {self._forgotten_decisions:,} "
                f"(the last {WAITING_LABELS:,} are remembered); their labels count as lines of "
                'decisions with "correct" added.'
            )

    def dump(self) -> dict[str, tuple[dict[str, Any], ...]]:
        """What waits, as the fields of a state."""
        early: list[dict[str, Any]] = []
        for row in (*(row for _, row in self._met), *self._early.values()):
            early.append({"id": row.id, "part": row.part, "text": row.text})
        return {"waiting_decisions": tuple(self._decided.values()), "early_labels": tuple(early)}

    def restore(self, state: OnlinePolicy | GuaranteeMonitor) -> None:
        """Remember what waited when the state was saved."""
        where = self.path.name
        for label in state.early_labels:
            self._early[label["id"]] = JoinedLabel(**label, where=where, decision={})
        for decision in state.waiting_decisions:
            self.recall(decision)


# Online policies.


class Learner:
    """Decides by an online policy, learns from a growing file of labels, and saves its state as it
    goes.

    The state holds how many bytes of the label file it has learnt from and which tickets, so after
    a crash no label counts twice and none is lost. `save` must write whole or not at all, as
    `howsure.save` does. What is saved knows no decision that may not have been delivered; those
    that were delivered after it was saved are taken from the output (`resume`), so going on gives
    the decisions of an undisturbed run.
    """

    def __init__(
        self, state: OnlinePolicy, labels: LabelFeed | None, save: Callable[[OnlinePolicy], None]
    ):
        self._file = StateFile(state, save)
        self._identity = compute_identity(state)
        self._undelivered = state  # the state before the decisions made last
        self.labels = labels
        if labels is not None:
            labels.restore(state)

    @property
    def state(self) -> OnlinePolicy:
        """The policy as it is now."""
        return self._file.state

    def decide(self, preds: Predictions) -> Decisions:
        """Learn what is new, decide, and save now and then."""
        self.learn()
        if self._file.due:
            try:
                self.save()
            except InputError as e:
                raise ServingError(str(e)) from None
        # What is saved must not know decisions that may not have been delivered; saving comes first.
        before = self._undelivered = self.state
        self._file.state, decisions = before.decide(preds)
        return replace(decisions, ticket=make_tickets(decisions, before.seen, self._identity))

    def see(self, decisions: Decisions, batch: StreamBatch) -> None:
        """Remember decisions that were delivered: their labels may come."""
        if self.labels is not None:
            self.labels.see(decisions, batch)

    def learn(self) -> None:
        """Look at labels that have come."""
        if self.labels is not None:
            self._file.state = learn_labels(self.state, self.labels)

    def undo(self) -> None:
        """The decisions made last were not delivered, or not all of them."""
        self._file.state = self._undelivered

    def resume(self, output: Path) -> None:
        """Count the decisions of an earlier run that its last state does not know, whole lines of
        its output.
        """
        if not output.is_file():
            return
        self.learn()
        if self.labels is not None:
            self.labels.recall_output(output)
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

    def save(self) -> None:
        """Save the state."""
        if self.labels is not None:
            self._file.state = replace(self.state, **self.labels.dump())
        self._file.save()

    def close(self) -> None:
        """Save the state, and report what waits for its decision or its label."""
        self.save()
        if self.labels is not None:
            self.labels.close()


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


def learn_labels(state: OnlinePolicy, feed: LabelFeed) -> OnlinePolicy:
    """The state after the labels that have come since."""
    identity = compute_identity(state)
    while (found := feed.read_new(state.read)) is not None:
        labels, read = found
        known = set(state.learnt)
        newest = max([state.seen, *map(find_number, state.learnt)])
        fresh: list[LabelledDecision] = []
        refused: Counter[str] = Counter()
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
            feed.report(f"{feed.path.name}: {counts} labels were not learnt.")
        if fresh:
            state = state.learn(as_decisions(fresh), [label.correct for label in fresh])
            tickets = keep_recent((*state.learnt, *(label.ticket for label in fresh)))
            state = replace(state, learnt=tickets)
        state = replace(state, read=read)
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
    waiting_decisions: tuple[dict[str, Any], ...] = ()  # those whose labels may come
    early_labels: tuple[dict[str, Any], ...] = ()  # those that came before their decisions

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
        return replace(
            begun,
            read=self.read,
            seen=self.seen,
            resets=(*self.resets, reason),
            waiting_decisions=self.waiting_decisions,
            early_labels=self.early_labels,
        )


def judge_labels(state: GuaranteeMonitor, feed: LabelFeed) -> GuaranteeMonitor:
    """The monitor after the labels that have come since. Only accepted cases count, each once, and
    only those of the monitor's own policy; others are reported.
    """
    while (found := feed.read_new(state.read)) is not None:
        labels, read = found
        known = set(state.seen)
        right: list[bool] = []
        fresh: list[str] = []
        refused: Counter[str] = Counter()
        for label in labels:
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
            feed.report(f"{feed.path.name}: labels not counted: {counts}.")
        if right:
            state = state.see(np.array(right))
        seen = (*state.seen, *fresh)[-REMEMBERED_LABELS:]
        state = replace(state, read=read, seen=seen)
    return state
