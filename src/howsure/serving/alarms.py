"""Alarms that drive jobs: states that remember, one JSON line for each alarm, and whether to go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Literal

import numpy as np

from howsure._core import json
from howsure._core.check import InputError
from howsure._core.saving import load, save
from howsure.policies.policy import Decisions
from howsure.policies.watch import Watch
from howsure.predictions import Predictions
from howsure.serving.promise import WatchedPromise, learnt_promise
from howsure.serving.resume import Decided, decided, whole_lines
from howsure.serving.stream import bursts_of

EVERY = 1.0  # seconds between two saves
ROWS = 1 << 14  # lines of an earlier output that are looked at together
SAYS = {
    "score": "the score has drifted",
    "coverage": "the accepted share has drifted",
    "promise": "the promised risk is broken",
}


def load_watched(path: str | Path) -> Watch | WatchedPromise:
    """The watch or the promise in a file."""
    found = load(path)
    if not isinstance(found, Watch | WatchedPromise):
        hint = "howsure threshold --watch and --promise make them"
        raise InputError(
            str(path),
            got=f"holds a saved {type(found).__name__}, not a watch or a promise",
            hint=hint,
        )
    return found


@dataclass
class Guard:
    """A watch and a promise that are shown every decision, speak once for each alarm, and are saved
    as they go.

    `tell` gets each alarm in words and `line` as a line of JSON, also those that were raised before
    this run began. `policy` is the start of the digest of the policy that decides; states made for
    another one are refused. A watch knows how many lines of the `output` it has seen: where a run
    is resumed (`follow`) it looks first at those that a kill kept from it, so that it ends as in an
    undisturbed run.
    """

    watch: Path | None = None
    promise: Path | None = None
    labels: Path | None = None
    bursts: bool = False
    tell: Callable[[str], None] = lambda _: None
    line: Callable[[str], None] = lambda _: None
    report: Callable[[str], None] = lambda _: None
    on_bad: Literal["stop", "skip"] = "stop"
    states: dict[Path, Watch | WatchedPromise] = field(
        default_factory=dict[Path, Watch | WatchedPromise]
    )
    saved: float = field(default_factory=monotonic)
    policy: str = ""
    output: Path | None = None  # a file that can be resumed

    def __post_init__(self) -> None:
        for path, what in ((self.watch, "a drift watch"), (self.promise, "a promise")):
            if path is not None:
                found = load_watched(path)
                if isinstance(found, Watch) != (what == "a drift watch"):
                    raise InputError(
                        str(path), got=f"is not {what}", hint="make one with howsure threshold"
                    )
                if self.policy and found.policy not in ("", self.policy):
                    hint = "use the one that howsure threshold wrote beside the policy"
                    raise InputError(str(path), got="was made for another policy", hint=hint)
                self.states[path] = found
                self._say(path, found, {}, again=True)

    def follow(self, output: Path | None, *, resume: bool) -> None:
        """Begin with an output, or catch up with the lines of one that is resumed."""
        watch = self._watching()
        there = whole_lines(output)
        if watch is None or (there and not resume):  # such an output is refused
            return
        self.output = output
        name = "" if output is None else output.name
        if output is None or not resume or watch.output != name or watch.written > there:
            if (watch.output, watch.written) != (name, there):
                self._keep(replace(watch, output=name, written=there))
                self.close()
            return
        unseen = islice(decided(output), watch.written, there)
        while rows := list(islice(unseen, ROWS)):
            self._look(_made(rows), _bursts(rows) if self.bursts else None)
        self.close()

    @property
    def raised(self) -> bool:
        """Whether an alarm stands."""
        return any(state.alarms for state in self.states.values())

    def see(self, made: Decisions, preds: Predictions) -> None:
        """Look at decisions that were written, and at labels that have come."""
        known = self.raised
        self._look(made, bursts_of(preds) if self.bursts else None)
        self.learn()
        if monotonic() - self.saved >= EVERY or self.raised != known:
            self.close()

    def _watching(self) -> Watch | None:
        state = None if self.watch is None else self.states[self.watch]
        return state if isinstance(state, Watch) else None

    def _look(self, made: Decisions, bursts: Sequence[str] | None) -> None:
        """Show decisions to the watch."""
        state = self._watching()
        if state is not None:
            after = state.see(made, bursts=bursts)
            self._keep(
                after if self.output is None else replace(after, written=state.written + len(made))
            )

    def learn(self) -> None:
        """Look at labels that have come."""
        if self.promise is not None and self.labels is not None:
            state = self.states[self.promise]
            if isinstance(state, WatchedPromise):
                after = learnt_promise(state, self.labels, on_bad=self.on_bad, report=self.report)
                self._keep(after)

    def _keep(self, after: Watch | WatchedPromise) -> None:
        path = self.watch if isinstance(after, Watch) else self.promise
        if path is not None:
            before, self.states[path] = self.states[path], after
            self._say(path, after, before.alarms, again=False)

    def _say(
        self, path: Path, state: Watch | WatchedPromise, known: dict[str, int], *, again: bool
    ) -> None:
        unit = "label" if isinstance(state, WatchedPromise) else "sample"
        for name, at in state.alarms.items():
            if name not in known:
                since = "since" if again else "at"
                hint = f"; howsure watch reset {path.name} --reason … ends it" if again else ""
                self.tell(f"ALARM: {SAYS[name]} ({since} {unit} {at:,}){hint}")
                now = datetime.now(UTC).isoformat(timespec="seconds")
                self.line(json.line({"time": now, "alarm": name, "at": at, "unit": unit, "state": path.name,
                                     "again": again, "text": SAYS[name]}))  # fmt: skip

    def close(self) -> None:
        """Save the states, which know no line of the output that is not on disk."""
        if self.output is not None and self.output.is_file():
            with self.output.open("ab") as file:
                os.fsync(file.fileno())
        for path, state in self.states.items():
            save(state, path)
        self.saved = monotonic()


def _made(rows: Sequence[Decided]) -> Decisions:
    """Decisions of an earlier output, as far as a watch looks at them."""
    score = np.array([row.score for row in rows])
    return Decisions(np.array([row.accept for row in rows]), np.full(len(rows), -1), score, score)


def _bursts(rows: Sequence[Decided]) -> list[str]:
    if any(row.burst is None for row in rows):
        raise InputError(
            "the output does not say which burst its rows belong to",
            hint="resume it without --burst",
        )
    return [str(row.burst) for row in rows]
