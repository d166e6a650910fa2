"""Alarms that drive jobs: states that remember, one JSON line for each alarm, and whether to go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Literal

from howsure._core import json
from howsure._core.check import InputError
from howsure._core.saving import load, save
from howsure.policies.policy import Decisions
from howsure.policies.watch import Watch
from howsure.predictions import Predictions
from howsure.serving.promise import WatchedPromise, learnt_promise

EVERY = 1.0  # seconds between two saves
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
        raise InputError(str(path), got=f"holds a {type(found).__name__}, not a watch or a promise", hint=hint)
    return found


@dataclass
class Guard:
    """A watch and a promise that are shown every decision, speak once for each alarm, and are saved as they go.

    `tell` gets each alarm in words and `line` as a line of JSON, also those that were raised before this run began.
    `policy` is the start of the digest of the policy that decides; states made for another one are refused.
    """

    watch: Path | None = None
    promise: Path | None = None
    labels: Path | None = None
    bursts: bool = False
    tell: Callable[[str], None] = lambda _: None
    line: Callable[[str], None] = lambda _: None
    report: Callable[[str], None] = lambda _: None
    on_bad: Literal["stop", "skip"] = "stop"
    states: dict[Path, Watch | WatchedPromise] = field(default_factory=dict[Path, Watch | WatchedPromise])
    saved: float = field(default_factory=monotonic)
    policy: str = ""

    def __post_init__(self) -> None:
        for path, what in ((self.watch, "a drift watch"), (self.promise, "a promise")):
            if path is not None:
                found = load_watched(path)
                if isinstance(found, Watch) != (what == "a drift watch"):
                    raise InputError(str(path), got=f"is not {what}", hint="make one with howsure threshold")
                if self.policy and found.policy not in ("", self.policy):
                    hint = "use the one that howsure threshold wrote beside the policy"
                    raise InputError(str(path), got="was made for another policy", hint=hint)
                self.states[path] = found
                self._say(path, found, {}, again=True)

    @property
    def raised(self) -> bool:
        """Whether an alarm stands."""
        return any(state.alarms for state in self.states.values())

    def see(self, made: Decisions, preds: Predictions) -> None:
        """Look at decisions, and at labels that have come."""
        if self.watch is not None:
            state = self.states[self.watch]
            if isinstance(state, Watch):
                self._after(self.watch, state, state.see(made, bursts=self._names(preds)))
        self.learn()
        if monotonic() - self.saved >= EVERY:
            self.close()

    def learn(self) -> None:
        """Look at labels that have come."""
        if self.promise is not None and self.labels is not None:
            state = self.states[self.promise]
            if isinstance(state, WatchedPromise):
                after = learnt_promise(state, self.labels, on_bad=self.on_bad, report=self.report)
                self._after(self.promise, state, after)

    def _names(self, preds: Predictions) -> list[str] | None:
        if not self.bursts:
            return None
        if preds.group is None:
            raise InputError("the rows do not say which burst they belong to", hint="check the name in --burst")
        return [str(name) for name in preds.group.tolist()]

    def _after(self, path: Path, before: Watch | WatchedPromise, after: Watch | WatchedPromise) -> None:
        self.states[path] = after
        self._say(path, after, before.alarms, again=False)

    def _say(self, path: Path, state: Watch | WatchedPromise, known: dict[str, int], *, again: bool) -> None:
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
        """Save the states."""
        for path, state in self.states.items():
            save(state, path)
        self.saved = monotonic()
