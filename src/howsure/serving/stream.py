"""Deciding streams and files: one line in, one decision out, in order, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from signal import SIGTERM
from typing import IO, Any, Literal, TypeAlias, cast

import numpy as np

from howsure._core import json
from howsure._core.check import Array, InputError
from howsure._core.frozen import frozen
from howsure.formats.lines import BadLine
from howsure.formats.names import UNLABELLED, Wanted
from howsure.formats.streams import Batch, batches
from howsure.policies.policy import Decisions
from howsure.predictions import Predictions
from howsure.serving.feedback import Elsewhere
from howsure.serving.pipes import ClosedPipe, Sink, Stop, Stopped, blocks, stopping, write_all

Decide: TypeAlias = Callable[[Predictions], Decisions]
Skip: TypeAlias = Callable[[int, Any], bool]  # line number and id → decided before
STDIN = Path("standard input")  # its name in messages
UNTOLD = Wanted(beside=UNLABELLED)
WORD = {True: '"accept"', False: '"defer"'}
LOOKED = 100  # lines between two looks at whether to go on


@frozen
class Served:
    """What happened to a stream: decisions made, of which accepted, lines refused, and why it
    ended.
    """

    decided: int = 0
    accepted: int = 0
    bad: int = 0
    skipped: int = 0
    ended: Literal["end of input", "SIGTERM", "interrupt", "closed pipe", "alarm"] = "end of input"


@frozen
class Serving:
    """How to serve: what to do about a bad line and whom to tell, the name of the policy in each
    line, who is shown all decisions (a `Watch`, say), how the input is read, what ends the run
    after the decisions so far, and whether each line names the burst of its row."""

    on_bad: Literal["stop", "skip"] = "stop"
    report: Callable[[str], None] | None = None
    stamp: str = ""
    see: Callable[[Decisions, Predictions], None] | None = None
    wanted: Wanted = UNTOLD
    halt: Callable[[], bool] | None = None
    bursts: bool = False

    def tell(self, message: str) -> None:
        """Report a problem, where somebody asked."""
        if self.report is not None:
            self.report(message)


PLAIN = Serving()


def decide_stream(decide: Decide, source: IO[bytes], out: Sink, *, how: Serving = PLAIN) -> Served:
    """Decide each line of JSON or CSV as it arrives and write one JSON line for it at once.

    `decide` is `policy.decide`. A line is read by the rules of files (docs/formats.md); only what
    tells the truth (label, correct, weight) is not looked at. A first line that is no JSON object
    is a CSV header. A bad line is reported with its number and skipped, or ends the stream with an
    `InputError` after the lines before it were written. SIGTERM, Ctrl-C and a reader that goes away
    end it cleanly.

    >>> from io import BytesIO
    >>> from howsure.policies import Policy
    >>> out = BytesIO()
    >>> decide_stream(Policy("max_prob", 0.8).decide, BytesIO(b'{"id": "a", "probs": [0.9, 0.1]}'), out).accepted
    1
    >>> print(out.getvalue().decode(), end="")
    {"line":1,"id":"a","decision":"accept","prediction":0,"confidence":0.9,"score":0.9}
    """
    with stopping() as stop:
        found = batches(blocks(source, stop), STDIN, how.wanted)
        total = decide_batches(decide, found, out, how)
    return ended(total, stop)


def decide_batches(
    decide: Decide,
    found: Iterable[Batch | BadLine],
    out: Sink,
    how: Serving,
    done: Skip | None = None,
) -> Served:
    """Decide what is read, in order; `done` says which lines to leave out. Ends at `Stopped` and at
    a closed pipe.
    """
    total = Served()
    try:
        for batch in found if how.halt is None else _small(found):
            if how.halt is not None and how.halt():
                return replace(total, ended="alarm")
            if isinstance(batch, BadLine):
                total = _refused(batch, total, how)
                continue
            left = range(len(batch)) if done is None else _left(batch, done)
            total = replace(total, skipped=total.skipped + len(batch) - len(left))
            if left:
                total = _decided(batch.rows(left), total, decide, out, how)
    except _Undelivered as e:
        return replace(e.total, ended="closed pipe")
    except Stopped:
        pass
    return total


def _small(found: Iterable[Batch | BadLine]) -> Iterator[Batch | BadLine]:
    """The same in batches of at most `LOOKED` lines, so that little is decided after what ends the
    run.
    """
    for batch in found:
        if isinstance(batch, BadLine):
            yield batch
        else:
            yield from (
                batch.rows(range(i, min(i + LOOKED, len(batch))))
                for i in range(0, len(batch), LOOKED)
            )


class _Undelivered(Exception):
    """The reader went away; `total` counts what it was handed."""

    def __init__(self, total: Served):
        super().__init__()
        self.total = total


def _left(batch: Batch, done: Skip) -> list[int]:
    """Positions in the batch that are not decided yet."""
    ids = [None] * len(batch) if batch.ids is None else batch.ids
    return [
        i
        for i, (line, name) in enumerate(zip(batch.lines, ids, strict=True))
        if not done(line, name)
    ]


def _refused(bad: BadLine, total: Served, how: Serving) -> Served:
    if how.on_bad == "stop":
        raise bad.error
    how.tell(str(bad.error))
    return replace(total, bad=total.bad + 1)


def _decided(batch: Batch, total: Served, decide: Decide, out: Sink, how: Serving) -> Served:
    """Decide and write; where the policy refuses, its lines are told apart."""
    try:
        made = decide(batch.preds)
    except Elsewhere:  # the predictions are not at fault
        raise
    except InputError as e:
        n = len(batch)
        if n == 1:
            return _refused(BadLine(batch.lines[0], e.at(f"line {batch.lines[0]}")), total, how)
        for half in (range(n // 2), range(n // 2, n)):
            total = _decided(batch.rows(half), total, decide, out, how)
        return total
    if batch.names:
        lines = case_lines(made, batch.names, batch.lines, batch.ids, how.stamp)
    else:
        names = bursts_of(batch.preds) if how.bursts else None
        lines = decision_lines(made, batch.lines, batch.ids, how.stamp, names)
    try:
        write_all(out, lines)
    except ClosedPipe as e:
        handed = lines[: e.delivered].count(b"\n") * batch.each
        raise _Undelivered(_counted(total, made, handed)) from None
    if how.see is not None:
        how.see(made, batch.preds)
    return _counted(total, made, len(made))


def _counted(total: Served, made: Decisions, n: int) -> Served:
    return replace(
        total, decided=total.decided + n, accepted=total.accepted + int(made.accept[:n].sum())
    )


def ended(total: Served, stop: Stop) -> Served:
    """The summary with the signal that ended it, if one did."""
    if stop.signal is None:
        return total
    return replace(total, ended="SIGTERM" if stop.signal == SIGTERM else "interrupt")


def bursts_of(preds: Predictions) -> list[str]:
    """The burst of each row."""
    if preds.group is None:
        raise InputError(
            "the rows do not say which burst they belong to", hint="check the name in --burst"
        )
    return [str(name) for name in preds.group.tolist()]


def decision_lines(
    made: Decisions,
    numbers: Iterable[int],
    ids: Sequence[Any] | None,
    stamp: str = "",
    bursts: Sequence[str] | None = None,
) -> bytes:
    """One JSON line for each decision."""
    tail = _tail(stamp)
    columns = zip(numbers, _named(ids, len(made)), _each(made, bursts), strict=True)
    return "".join([f'{{"line":{n},{i}{one}{tail}\n' for n, i, one in columns]).encode()


def case_lines(
    made: Decisions,
    names: Sequence[str],
    numbers: Sequence[int],
    ids: Sequence[Any] | None,
    stamp: str = "",
) -> bytes:
    """One JSON line for each case, with the decision about each of its labels."""
    tail, each, many = _tail(stamp), _each(made), len(names)
    called = [json.line(name) for name in names]
    lines: list[str] = []
    for i, (n, name) in enumerate(zip(numbers, _named(ids, len(numbers)), strict=True)):
        labels = ",".join(
            f"{label}:{{{one}}}"
            for label, one in zip(called, each[i * many : (i + 1) * many], strict=True)
        )
        lines.append(f'{{"line":{n},{name}"labels":{{{labels}}}{tail}\n')
    return "".join(lines).encode()


def _tail(stamp: str) -> str:
    return f',"policy":{json.line(stamp)}}}' if stamp else "}"


def _named(ids: Sequence[Any] | None, n: int) -> list[str]:
    return [""] * n if ids is None else ["" if i is None else f'"id":{_plain(i)},' for i in ids]


def _each(made: Decisions, bursts: Sequence[str] | None = None) -> list[str]:
    """The decision about each row, as the inside of a JSON object."""
    extra = _extra(made)
    if bursts is not None:
        extra = [f'{x},"burst":{json.line(name)}' for x, name in zip(extra, bursts, strict=True)]
    columns = zip(
        *(
            made.accept.tolist(),
            _said(made),
            _numbers(made.confidence),
            _numbers(made.score),
            extra,
        ),
        strict=True,
    )
    return [
        f'"decision":{WORD[a]},"prediction":{p},"confidence":{c},"score":{s}{x}'
        for a, p, c, s, x in columns
    ]


def _plain(value: Any) -> str:
    return str(value) if type(value) is int else json.line(value)


def _said(made: Decisions) -> Iterable[str]:
    said = cast("list[Any]", made.prediction.tolist())
    if made.class_names is not None and made.prediction.dtype.kind in "iu":
        words: list[str] = [json.line(name) for name in made.class_names]
        return [words[int(i)] if i >= 0 else "null" for i in said]
    unknown = made.prediction.dtype.kind in "iu"
    return ["null" if unknown and p == -1 else _plain(p) for p in said]


def _numbers(x: Array) -> Iterable[str]:
    """Numbers as JSON writes them; infinite scores become null."""
    if np.isfinite(x).all():
        return map(repr, x.tolist())
    return [repr(v) if isfinite(v) else "null" for v in x.tolist()]


def _extra(made: Decisions) -> Iterable[str]:
    """Whether a label is asked for, where an online policy audits."""
    if made.audit is None:
        return [""] * len(made)
    named = (
        [""] * len(made)
        if made.ticket is None
        else [f',"ticket":"{ticket}"' for ticket in made.ticket]
    )
    return [
        f',"audit":{"true" if a else "false"}{t}'
        for a, t in zip(made.audit.tolist(), named, strict=True)
    ]
