"""Alarms that drive jobs: monitors that are shown every decision, one JSON line for each alarm, and
whether to go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure._core.saving import load, save
from howsure.formats.streams import StreamBatch
from howsure.policies.drift_monitor import DriftMonitor
from howsure.policies.policy import Decisions
from howsure.serving.feedback import GuaranteeMonitor, LabelFeed, Report, judge_labels
from howsure.serving.journal import DecisionRecord, StateFile, count_lines, read_decisions
from howsure.serving.stream import find_bursts

AlarmState: TypeAlias = DriftMonitor | GuaranteeMonitor
CATCH_UP_ROWS = 1 << 14  # lines of an earlier output that are looked at together
ALARM_TEXTS = {
    "score": "the score has drifted",
    "coverage": "the accepted share has drifted",
    "guarantee": "the guaranteed risk is exceeded",
}


def load_state(path: str | Path) -> AlarmState:
    """The drift monitor or the guarantee monitor in a file."""
    state = load(path)
    if not isinstance(state, AlarmState):
        raise InputError(
            str(path),
            got=f"holds a saved {type(state).__name__}, not a drift or a guarantee monitor",
            hint="howsure threshold --drift and --guarantee make them",
        )
    return state


@frozen
class AlarmInputs:
    """What a guard follows: the files of its two states, the labels that come, and whether rows
    have bursts.

    `policy` is the start of the digest of the policy that decides; states made for another one are
    refused.
    """

    drift: Path | None = None
    guarantee: Path | None = None
    labels: LabelFeed | None = None
    bursts: bool = False
    policy: str = ""


class AlarmGuard:
    """A drift monitor and a guarantee monitor that are shown every decision, speak once for each
    alarm, and are saved as they go.

    `tell` gets each alarm in words and `write_line` as a line of JSON, also those that were raised
    before this run began. A drift monitor knows how
    many lines of the `output` it has seen: where a run is resumed (`follow`) it looks first at those
    that a kill kept from it, so that it ends as in an undisturbed run.
    """

    def __init__(
        self,
        inputs: AlarmInputs,
        *,
        tell: Report = lambda _: None,
        write_line: Callable[[str], None] = lambda _: None,
    ):
        self.inputs = inputs
        self.tell, self.write_line = tell, write_line
        self.output: Path | None = None  # a file that can be resumed
        self.drift: StateFile[DriftMonitor] | None = None
        self.guarantee: StateFile[GuaranteeMonitor] | None = None
        if inputs.drift is not None:
            drift = self._load(inputs.drift)
            if not isinstance(drift, DriftMonitor):
                raise _refuse_kind(inputs.drift, "a drift monitor")
            self.drift = StateFile(drift, partial(save, path=inputs.drift))
        if inputs.guarantee is not None:
            guarantee = self._load(inputs.guarantee)
            if not isinstance(guarantee, GuaranteeMonitor):
                raise _refuse_kind(inputs.guarantee, "a guarantee monitor")
            self.guarantee = StateFile(guarantee, partial(save, path=inputs.guarantee))
            if inputs.labels is not None:
                inputs.labels.restore(guarantee)
        for file in self.files:
            self._announce(file.state, known={}, again=True)

    def _load(self, path: Path) -> AlarmState:
        state = load_state(path)
        if self.inputs.policy and state.policy not in ("", self.inputs.policy):
            raise InputError(
                str(path),
                got="was made for another policy",
                hint="use the one that howsure threshold wrote beside the policy",
            )
        return state

    @property
    def files(self) -> list[StateFile[DriftMonitor] | StateFile[GuaranteeMonitor]]:
        """The states that there are."""
        return [file for file in (self.drift, self.guarantee) if file is not None]

    @property
    def raised(self) -> bool:
        """Whether an alarm is active."""
        return any(file.state.alarms for file in self.files)

    def follow(self, output: Path | None, *, resume: bool) -> None:
        """Begin with an output, or catch up with the lines of one that is resumed."""
        lines = count_lines(output)
        if self.inputs.labels is not None and output is not None and lines and resume:
            self.inputs.labels.recall_output(output)
        if self.drift is None or (lines and not resume):  # such an output is refused
            return
        self.output = output
        state = self.drift.state
        name = "" if output is None else output.name
        if output is None or not resume or state.output != name or state.written > lines:
            # Another output than last time: nothing of it was seen, and nothing is caught up.
            if (state.output, state.written) != (name, lines):
                self.drift.state = replace(state, output=name, written=lines)
                self.save()
            return
        unseen = islice(read_decisions(output), state.written, lines)
        while records := list(islice(unseen, CATCH_UP_ROWS)):
            bursts = None
            if self.inputs.bursts:
                bursts = recall_bursts(records)
            self._show(recall_decisions(records), bursts)
        self.save()

    def see(self, decisions: Decisions, batch: StreamBatch) -> None:
        """Look at decisions that were written, and at labels that have come."""
        raised_before = self.raised
        self._show(decisions, find_bursts(batch.preds) if self.inputs.bursts else None)
        if self.inputs.labels is not None:
            self.inputs.labels.see(decisions, batch)
        self.learn()
        # An alarm is saved at once, so that a kill does not silence it.
        if any(file.due for file in self.files) or self.raised != raised_before:
            self.save()

    def _show(self, decisions: Decisions, bursts: Sequence[str] | None) -> None:
        """Show decisions to the drift monitor."""
        if self.drift is None:
            return
        before = self.drift.state
        after = before.see(decisions, bursts=bursts)
        if self.output is not None:
            after = replace(after, written=before.written + len(decisions))
        self.drift.state = after
        self._announce(after, known=before.alarms)

    def learn(self) -> None:
        """Look at labels that have come."""
        if self.guarantee is None or self.inputs.labels is None:
            return
        before = self.guarantee.state
        after = judge_labels(before, self.inputs.labels)
        self.guarantee.state = after
        self._announce(after, known=before.alarms)

    def _announce(self, state: AlarmState, known: dict[str, int], *, again: bool = False) -> None:
        """Speak of each alarm that is not known yet; `again`: it was raised by an earlier run."""
        path, unit = self.inputs.drift, "sample"
        if isinstance(state, GuaranteeMonitor):
            path, unit = self.inputs.guarantee, "label"
        file = "" if path is None else path.name
        for name, at in state.alarms.items():
            if name in known:
                continue
            text = f"ALARM: {ALARM_TEXTS[name]} (at {unit} {at:,})"
            if again:
                text = (
                    f"ALARM: {ALARM_TEXTS[name]} (since {unit} {at:,}); "
                    f"howsure alarms reset {file} --reason … ends it"
                )
            self.tell(text)
            line = {
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "alarm": name,
                "at": at,
                "unit": unit,
                "state": file,
                "again": again,
                "text": ALARM_TEXTS[name],
            }
            self.write_line(strict_json.dump_line(line))

    def close(self) -> None:
        """Save the states, and report which labels wait."""
        self.save()
        if self.inputs.labels is not None:
            self.inputs.labels.close()

    def save(self) -> None:
        """Save the states, which know no line of the output that is not on disk."""
        # The output goes to disk before the state that has seen it.
        if self.output is not None and self.output.is_file():
            with self.output.open("ab") as file:
                os.fsync(file.fileno())
        if self.guarantee is not None and self.inputs.labels is not None:
            waiting = self.inputs.labels.dump()
            self.guarantee.state = replace(self.guarantee.state, **waiting)
        for state_file in self.files:
            state_file.save()


def _refuse_kind(path: Path, kind: str) -> InputError:
    return InputError(str(path), got=f"is not {kind}", hint="make one with howsure threshold")


def recall_decisions(records: Sequence[DecisionRecord]) -> Decisions:
    """Decisions of an earlier output, as far as a drift monitor looks at them."""
    score = np.array([record.score for record in records])
    accept = np.array([record.accept for record in records])
    unknown = np.full(len(records), -1)
    return Decisions(accept=accept, prediction=unknown, confidence=score, score=score)


def recall_bursts(records: Sequence[DecisionRecord]) -> list[str]:
    """The bursts of an earlier output."""
    if any(record.burst is None for record in records):
        raise InputError(
            "the output does not say which burst its rows belong to",
            hint="resume it without --burst",
        )
    return [str(record.burst) for record in records]
