"""The journal of a run: one line for each decision, and the states that change on the way.

Decisions are written here and read back here, so that a run can be resumed and a state can catch up
with an output. A `StateFile` is the one way in which an online policy, a drift monitor and a
guarantee monitor are kept on disk: saved whole, at most once a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, isfinite
from pathlib import Path
from time import monotonic
from typing import Any, Generic, NotRequired, TypedDict, TypeVar, cast

import numpy as np

from howsure._core import strict_json
from howsure._core.check import Array, InputError
from howsure._core.frozen import frozen
from howsure.formats.text_lines import READ_BLOCK_BYTES
from howsure.policies.policy import Decisions

SAVE_SECONDS = 1.0  # between two saves of a state
DECISION_WORDS = {True: '"accept"', False: '"defer"'}

S = TypeVar("S")


class ServingError(InputError):
    """Something is wrong that has nothing to do with the predictions at hand."""


class StateFile(Generic[S]):
    """A state, and how it is saved; `save` must write whole or not at all, as `howsure.save` does."""

    def __init__(self, state: S, save: Callable[[S], None]):
        self.state, self._save, self._saved = state, save, monotonic()

    @property
    def due(self) -> bool:
        """Whether the last save is long enough ago."""
        return monotonic() - self._saved >= SAVE_SECONDS

    def save(self) -> None:
        """Write the state."""
        self._save(self.state)
        self._saved = monotonic()


# Writing decisions.


def decision_lines(
    decisions: Decisions,
    numbers: Iterable[int],
    ids: Sequence[Any] | None,
    stamp: str = "",
    bursts: Sequence[str] | None = None,
) -> bytes:
    """One JSON line for each decision."""
    tail = _format_stamp(stamp)
    inner = _format_decisions(decisions, bursts)
    # Formatted by column, not as one dictionary per line: this is the hot path of a stream.
    columns = zip(numbers, _format_ids(ids, len(decisions)), inner, strict=True)
    return "".join([f'{{"line":{n},{name}{text}{tail}\n' for n, name, text in columns]).encode()


def case_lines(
    decisions: Decisions,
    names: Sequence[str],
    numbers: Sequence[int],
    ids: Sequence[Any] | None,
    stamp: str = "",
) -> bytes:
    """One JSON line for each case, with the decision about each of its labels."""
    tail, inner = _format_stamp(stamp), iter(_format_decisions(decisions))
    labels = [strict_json.dump_line(name) for name in names]
    lines: list[str] = []
    for number, name in zip(numbers, _format_ids(ids, len(numbers)), strict=True):
        parts = [f"{label}:{{{next(inner)}}}" for label in labels]
        lines.append(f'{{"line":{number},{name}"labels":{{{",".join(parts)}}}{tail}\n')
    return "".join(lines).encode()


def _format_stamp(stamp: str) -> str:
    return f',"policy":{strict_json.dump_line(stamp)}}}' if stamp else "}"


def _format_ids(ids: Sequence[Any] | None, n: int) -> list[str]:
    if ids is None:
        return [""] * n
    return ["" if name is None else f'"id":{_format_value(name)},' for name in ids]


def _format_decisions(decisions: Decisions, bursts: Sequence[str] | None = None) -> list[str]:
    """The decision about each row, as the inside of a JSON object."""
    n = len(decisions)
    extra = [""] * n
    if decisions.audit is not None:
        extra = [
            ',"audit":true' if asked else ',"audit":false' for asked in decisions.audit.tolist()
        ]
        tickets = decisions.ticket
        if tickets is not None:
            extra = [f'{x},"ticket":"{t}"' for x, t in zip(extra, tickets, strict=True)]
    if bursts is not None:
        extra = [
            f'{x},"burst":{strict_json.dump_line(name)}'
            for x, name in zip(extra, bursts, strict=True)
        ]
    answers = _format_answers(decisions)
    confidence, score = _format_numbers(decisions.confidence), _format_numbers(decisions.score)
    columns = zip(decisions.accept.tolist(), answers, confidence, score, extra, strict=True)
    return [
        f'"decision":{DECISION_WORDS[a]},"prediction":{p},"confidence":{c},"score":{s}{x}'
        for a, p, c, s, x in columns
    ]


def _format_answers(decisions: Decisions) -> list[str]:
    """The predicted classes; a class number below 0 stands for one that is not known."""
    answers = cast("list[Any]", decisions.prediction.tolist())
    if decisions.prediction.dtype.kind not in "iu":
        return [_format_value(answer) for answer in answers]
    if decisions.class_names is None:
        return ["null" if answer == -1 else str(answer) for answer in answers]
    words = [strict_json.dump_line(name) for name in decisions.class_names]
    return [words[answer] if answer >= 0 else "null" for answer in answers]


def _format_value(value: Any) -> str:
    return str(value) if type(value) is int else strict_json.dump_line(value)


def _format_numbers(x: Array) -> Iterable[str]:
    """Numbers as JSON writes them; infinite scores become null."""
    if np.isfinite(x).all():  # nearly always
        return map(repr, x.tolist())
    return [repr(value) if isfinite(value) else "null" for value in x.tolist()]


# Reading them back.


class DecisionLine(TypedDict):
    """What resuming needs of a line of decisions."""

    line: int
    id: NotRequired[object]
    policy: NotRequired[str]
    decision: NotRequired[str]
    score: NotRequired[float | None]
    burst: NotRequired[str]


@frozen
class DecisionRecord:
    """One line of an earlier output."""

    line: int
    id: Any
    policy: str
    accept: bool
    score: float
    burst: str | None


def read_decisions(path: Path) -> Iterator[DecisionRecord]:
    """The decisions in a file."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = strict_json.check_typed(strict_json.loads(line), DecisionLine)
            except ValueError:
                raise InputError(
                    f"{path}, line {number}",
                    got="is not a decision of howsure",
                    need="resume needs its own output",
                ) from None
            accept, score = row.get("decision") == "accept", row.get("score")
            if score is None:  # infinite: accepted where it is above every threshold
                score = inf if accept else -inf
            yield DecisionRecord(
                line=row["line"],
                id=row.get("id"),
                policy=row.get("policy", ""),
                accept=accept,
                score=score,
                burst=row.get("burst"),
            )


def count_lines(path: Path | None) -> int:
    """How many complete lines a file has; none where there is no file."""
    if path is None or not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(READ_BLOCK_BYTES), b""))
