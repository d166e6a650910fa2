"""Labels that come back: lines of earlier decisions with `correct` added, read as far as they are
complete.

Every decision of an online policy carries a ticket, its number and a digest of what was decided. A
label counts once, and only with a ticket of this policy: repeated, unknown and late labels are
reported and not learnt.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np

from howsure._core import json
from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count
from howsure.formats.contents import as_record
from howsure.policies.online import OnlinePolicy
from howsure.policies.policy import Decisions
from howsure.predictions import Predictions

EVERY = 1.0  # seconds between two saves of the state
WINDOW = 1 << 16  # a label for a decision further back than this is late
BLOCK = 1 << 24  # bytes of labels that are looked at together


class Elsewhere(InputError):
    """Something is wrong that has nothing to do with the predictions at hand."""


class LabelError(Elsewhere):
    """Something is wrong with the labels."""


@frozen
class Label:
    """A decision that came back with its label."""

    ticket: str
    accept: bool
    audit: bool
    score: float
    correct: bool

    @property
    def number(self) -> int:
        """Which decision of the policy it was; -1 where the ticket does not say."""
        number = self.ticket.partition("-")[0]
        return int(number) if is_count(number) else -1


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
        on_bad: Literal["stop", "skip"] = "stop",
        report: Callable[[str], None] = lambda _: None,
    ):
        self.state, self.labels, self._save = state, labels, save
        self.on_bad: Literal["stop", "skip"] = on_bad
        self.report = report
        self._who, self._saved, self._before = identity(state), monotonic(), state

    def decide(self, preds: Predictions) -> Decisions:
        """Learn what is new, decide, and save now and then."""
        self._learn()
        if monotonic() - self._saved >= EVERY:
            try:
                self.close()
            except InputError as e:
                raise Elsewhere(str(e)) from None
        self._before = self.state
        self.state, made = self.state.decide(preds)
        return replace(made, ticket=tickets(made, self._before.seen, self._who))

    def _learn(self) -> None:
        if self.labels is not None:
            self.state = learnt(self.state, self.labels, on_bad=self.on_bad, report=self.report)

    def undo(self) -> None:
        """The decisions made last were not delivered, or not all of them."""
        self.state = self._before

    def resume(self, output: Path) -> None:
        """Count the decisions of an earlier run that its last state does not know, whole lines of
        its output.
        """
        if not output.is_file():
            return
        self._learn()
        found: list[Label] = []
        with output.open("rb") as lines:
            for line in lines:
                made = _delivered(line) if line.endswith(b"\n") else None
                if (
                    made is not None
                    and made.number == self.state.seen + len(found)
                    and self._mine(made)
                ):
                    found.append(made)
        if found:
            self.state = self.state.passed(_decisions(found))

    def _mine(self, made: Label) -> bool:
        return made.ticket == _ticket(made.number, (made.accept, made.audit, made.score), self._who)

    def close(self) -> None:
        """Save the state."""
        self._save(self.state)
        self._saved = monotonic()


def identity(state: OnlinePolicy) -> bytes:
    """What stays the same of an online policy while it learns."""
    fixed = (
        state.risk,
        state.step,
        state.audit,
        state.seed,
        state.policy.score,
        state.policy.threshold,
    )
    return hashlib.sha256(repr(fixed).encode() + state.grid.tobytes()).digest()


def tickets(made: Decisions, first: int, who: bytes) -> tuple[str, ...]:
    """The tickets of decisions, the first of which is number `first` of its policy."""
    audit = np.zeros(len(made), dtype=np.bool_) if made.audit is None else made.audit
    rows = zip(made.accept.tolist(), audit.tolist(), made.score.tolist(), strict=True)
    return tuple(_ticket(i, row, who) for i, row in enumerate(rows, start=first))


def _ticket(number: int, row: tuple[bool, bool, float], who: bytes) -> str:
    said = f"{number}|{row[0]:d}|{row[1]:d}|{row[2]!r}".encode()
    return f"{number}-{hashlib.sha256(who + said).hexdigest()[:12]}"


def learnt(
    state: OnlinePolicy,
    path: Path,
    *,
    on_bad: Literal["stop", "skip"] = "stop",
    report: Callable[[str], None] = lambda _: None,
) -> OnlinePolicy:
    """The state after the complete lines that the file has beyond what was read before."""
    while (data := new_lines(state.read, path)) is not None:
        found = [_label(line, path, on_bad, report) for line in data.splitlines() if line.strip()]
        fresh, refused = _fresh([label for label in found if label is not None], state)
        if refused:
            counts = ", ".join(f"{n:,} {why}" for why, n in sorted(refused.items()))
            report(f"{path.name}: {counts} labels were not learnt.")
        if fresh:
            state = state.learn(_decisions(fresh), [label.correct for label in fresh])
            state = replace(
                state, learnt=_kept((*state.learnt, *(label.ticket for label in fresh)))
            )
        state = replace(state, read=state.read + len(data))
    return state


def new_lines(read: int, path: Path) -> bytes | None:
    """Complete lines beyond the first `read` bytes; None where there are none."""
    if not path.exists():
        return None
    if not path.is_file():
        raise LabelError(
            str(path), got="is not a file", hint="labels are read from a file that may grow"
        )
    size = path.stat().st_size
    if size < read:
        got = f"has {size:,} bytes, and {read:,} were read before, so it was cut or replaced"
        raise LabelError(path.name, got=got, hint="append to the file, or begin with a new policy")
    with path.open("rb") as file:
        file.seek(read)
        data = file.read(BLOCK)
    whole = data[: data.rfind(b"\n") + 1]
    if not whole and len(data) == BLOCK:
        raise LabelError(
            path.name, got=f"has a line of more than {BLOCK:,} bytes", hint="is this a text file?"
        )
    return whole or None


def _fresh(found: Sequence[Label], state: OnlinePolicy) -> tuple[list[Label], Counter[str]]:
    """The labels that count, and how many do not, by reason."""
    who, known = identity(state), set(state.learnt)
    newest = max([state.seen, *(_number(ticket) for ticket in state.learnt)])
    fresh: list[Label] = []
    refused: Counter[str] = Counter()
    for label in found:
        if label.ticket in known:
            refused["repeated"] += 1
        elif label.ticket != _ticket(label.number, (label.accept, label.audit, label.score), who):
            refused["unknown"] += 1
        elif label.number < newest - WINDOW:
            refused["late"] += 1
        else:
            known.add(label.ticket)
            fresh.append(label)
    return fresh, refused


def _number(ticket: str) -> int:
    return int(ticket.partition("-")[0])


def _kept(learned: Sequence[str]) -> tuple[str, ...]:
    """Tickets that could still come a second time."""
    newest = max(map(_number, learned))
    return tuple(ticket for ticket in learned if _number(ticket) >= newest - WINDOW)


def _label(line: bytes, path: Path, on_bad: str, report: Callable[[str], None]) -> Label | None:
    try:
        row = as_record(json.loads(line)) or {}
        score = row["score"]
        number = float("nan") if score is None else float(score)
        return Label(str(row.get("ticket", "")), row["decision"] == "accept", bool(row["audit"]), number,
                     _truth(row["correct"]))  # fmt: skip
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


def _delivered(line: bytes) -> Label | None:
    """A line of decisions, which has no label yet; None where it is none of an online policy."""
    try:
        row = as_record(json.loads(line)) or {}
        score = float("nan") if row["score"] is None else float(row["score"])
        return Label(
            str(row["ticket"]),
            row["decision"] == "accept",
            bool(row["audit"]),
            score,
            correct=False,
        )
    except (ValueError, KeyError, TypeError):
        return None


def _truth(x: Any) -> bool:
    if x not in (0, 1):
        raise ValueError(x)
    return bool(x)


def _decisions(rows: Sequence[Label]) -> Decisions:
    accept, audit, score = (
        np.array([getattr(row, name) for row in rows]) for name in ("accept", "audit", "score")
    )
    return Decisions(accept, np.full(len(rows), -1), score, score, audit=accept & audit)
