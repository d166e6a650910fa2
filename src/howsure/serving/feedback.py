"""Labels that come back: lines of earlier decisions with `correct` added, read as far as they are complete."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from howsure._core.check import InputError
from howsure.policies.online import OnlinePolicy
from howsure.policies.policy import Decisions
from howsure.predictions import Predictions

EVERY = 1.0  # seconds between two saves of the state


class Learner:
    """Decides by an online policy, learns from a growing file of labels, and saves its state as it goes.

    The state holds how many bytes of the label file it has learnt from, so after a crash no label counts twice
    and none is lost. `save` must write whole or not at all, as `howsure.save` does.
    """

    def __init__(self, state: OnlinePolicy, labels: Path | None, save: Callable[[OnlinePolicy], None]):
        self.state, self.labels, self._save = state, labels, save
        self._saved = monotonic()

    def decide(self, preds: Predictions) -> Decisions:
        """Learn what is new, decide, and save now and then."""
        if self.labels is not None:
            self.state = learnt(self.state, self.labels)
        self.state, made = self.state.decide(preds)
        if monotonic() - self._saved >= EVERY:
            self.close()
        return made

    def close(self) -> None:
        """Save the state."""
        self._save(self.state)
        self._saved = monotonic()


def learnt(state: OnlinePolicy, path: Path) -> OnlinePolicy:
    """The state after the complete lines that the file has beyond what was read before."""
    if not path.exists():
        return state
    with path.open("rb") as file:
        file.seek(state.read)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        return state
    rows = [_row(line, path) for line in whole.splitlines() if line.strip()]
    if rows:
        state = state.learn(_decisions(rows), [row["correct"] for row in rows])
    return replace(state, read=state.read + len(whole))


def _row(line: bytes, path: Path) -> dict[str, Any]:
    try:
        row = json.loads(line)
        return {"accept": row["decision"] == "accept", "audit": bool(row["audit"]), "score": float(row["score"]),
                "correct": _truth(row["correct"])}  # fmt: skip
    except (ValueError, KeyError, TypeError):
        text = line[:80].decode("utf-8", "replace")
        raise InputError(
            f'{path.name}: {text} is not a decision with its label; add "correct": 0 or 1 to the lines of decide.'
        ) from None


def _truth(x: Any) -> bool:
    if x not in (0, 1):
        raise ValueError(x)
    return bool(x)


def _decisions(rows: list[dict[str, Any]]) -> Decisions:
    accept, audit, score = (np.array([row[name] for row in rows]) for name in ("accept", "audit", "score"))
    return Decisions(accept, np.full(len(rows), -1), score, score, audit=accept & audit)
