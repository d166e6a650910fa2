"""Deciding streams and files: one line in, one decision out, in order, in constant memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from signal import SIGTERM
from typing import IO, Any, Literal, TypeAlias

import numpy as np

from howsure._core.check import Array, InputError
from howsure.policies.policy import Decisions
from howsure.predictions import Predictions
from howsure.serving.lines import Line, Parse, alike, csv_parser, format_of_first, json_row, parsed, predictions
from howsure.serving.pipes import Sink, Stop, line_batches, stopping, write_all

Decide: TypeAlias = Callable[[Predictions], Decisions]
Skip: TypeAlias = Callable[[int, Any], bool]  # line number and id → decided before
WORD = {True: '"accept"', False: '"defer"'}


@dataclass(frozen=True)
class Served:
    """What happened to a stream: decisions made, of which accepted, lines refused, and why it ended."""

    decided: int = 0
    accepted: int = 0
    bad: int = 0
    skipped: int = 0
    ended: Literal["end of input", "SIGTERM", "interrupt", "closed pipe"] = "end of input"


@dataclass(frozen=True)
class Serving:
    """How to serve: what to do about a bad line and whom to tell, the name of the policy in each line, and who
    is shown all decisions (a `Watch`, say)."""

    on_bad: Literal["stop", "skip"] = "stop"
    report: Callable[[str], None] | None = None
    renormalise: bool = False
    stamp: str = ""
    see: Callable[[Decisions], None] | None = None

    def tell(self, message: str) -> None:
        """Report a problem, where somebody asked."""
        if self.report is not None:
            self.report(message)


PLAIN = Serving()


def decide_stream(
    decide: Decide, source: IO[bytes], out: Sink, *, how: Serving = PLAIN, done: Skip | None = None
) -> Served:
    """Decide each line of JSON or CSV as it arrives and write one JSON line for it at once.

    `decide` is `policy.decide`. Input lines hold `logits`, `probs` (lists, or logit_0…, prob_0…) or `confidence`,
    with optional `id`, `group` and `prediction`; a first line that is no JSON object is a CSV header. A bad line
    is reported with its number and skipped, or ends the stream with an `InputError` after the lines before it
    were written. SIGTERM, Ctrl-C and a reader that goes away end it cleanly. `done` says which lines to leave out.

    >>> from io import BytesIO
    >>> from howsure.policies import Policy
    >>> out = BytesIO()
    >>> decide_stream(Policy("max_prob", 0.8).decide, BytesIO(b'{"id": "a", "probs": [0.9, 0.1]}'), out).accepted
    1
    >>> print(out.getvalue().decode(), end="")
    {"line":1,"id":"a","decision":"accept","prediction":0,"confidence":0.9,"score":0.9}
    """
    total, parse = Served(), None
    with stopping() as stop:
        try:
            for batch in line_batches(source, stop):
                filled = [(number, raw) for number, raw in batch if raw.strip()]
                if parse is None and filled:
                    parse, filled = _parser(filled)
                good, bad, problem = _sorted_out(filled, parse or json_row, how, done)
                total = replace(total, bad=total.bad + bad, skipped=total.skipped + len(filled) - len(good) - bad)
                total = _write(good, total, decide, out, how)
                if problem is not None:
                    raise problem
        except BrokenPipeError:
            return replace(total, ended="closed pipe")
    return ended(total, stop)


def ended(total: Served, stop: Stop) -> Served:
    """The summary with the signal that ended it, if one did."""
    if stop.signal is None:
        return total
    return replace(total, ended="SIGTERM" if stop.signal == SIGTERM else "interrupt")


def _parser(lines: list[tuple[int, bytes]]) -> tuple[Parse, list[tuple[int, bytes]]]:
    """How to read the rest, from the first line; a CSV header is used up."""
    if format_of_first(lines[0][1]) == "jsonl":
        return json_row, [(lines[0][0], lines[0][1].removeprefix(b"\xef\xbb\xbf")), *lines[1:]]
    return csv_parser(lines[0][1]), lines[1:]


def _sorted_out(
    lines: list[tuple[int, bytes]], parse: Parse, how: Serving, done: Skip | None
) -> tuple[list[Line], int, InputError | None]:
    """The lines to decide, how many were bad, and the error to stop with once the good ones are written."""
    good: list[Line] = []
    bad = 0
    for item in parsed(lines, parse):
        if isinstance(item, tuple):
            message = f"line {item[0]}: {item[1]}"
            if how.on_bad == "stop":
                return good, bad, InputError(message)
            how.tell(message)
            bad += 1
        elif done is None or not done(item.number, item.id):
            good.append(item)
    return good, bad, None


def _write(good: list[Line], total: Served, decide: Decide, out: Sink, how: Serving) -> Served:
    """Decide and write the good lines; a line that only now turns out to be bad is found by itself."""
    for run in alike(good):
        try:
            made = decide(predictions(run, how.renormalise))
        except InputError as e:
            if len(run) > 1:
                for line in run:
                    total = _write([line], total, decide, out, how)
                continue
            if how.on_bad == "stop":
                raise InputError(f"line {run[0].number}: {e}") from None
            how.tell(f"line {run[0].number}: {e}")
            total = replace(total, bad=total.bad + 1)
            continue
        total = written(made, [line.number for line in run], [line.id for line in run], total, out, how)
    return total


def written(
    made: Decisions, numbers: Sequence[int], ids: Sequence[Any] | None, total: Served, out: Sink, how: Serving
) -> Served:
    """Write decisions, show them to who watches, count them."""
    write_all(out, decision_lines(made, numbers, ids, how.stamp))
    if how.see is not None:
        how.see(made)
    return replace(total, decided=total.decided + len(made), accepted=total.accepted + int(made.accept.sum()))


def decision_lines(made: Decisions, numbers: Iterable[int], ids: Sequence[Any] | None, stamp: str = "") -> bytes:
    """One JSON line for each decision."""
    tail = f',"policy":{json.dumps(stamp)}}}' if stamp else "}"
    names = ["" if i is None else f'"id":{_plain(i)},' for i in ids] if ids is not None else [""] * len(made)
    columns = zip(
        numbers,
        names,
        made.accept.tolist(),
        _said(made),
        _numbers(made.confidence),
        _numbers(made.score),
        _extra(made),
        strict=True,
    )
    lines = [
        f'{{"line":{n},{i}"decision":{WORD[a]},"prediction":{p},"confidence":{c},"score":{s}{x}{tail}\n'
        for n, i, a, p, c, s, x in columns
    ]
    return "".join(lines).encode()


def _plain(value: Any) -> str:
    return str(value) if type(value) is int else json.dumps(value)


def _said(made: Decisions) -> Iterable[str]:
    said = made.prediction.tolist()
    if made.class_names is not None and made.prediction.dtype.kind in "iu":
        words = [json.dumps(name) for name in made.class_names]
        return [words[i] if i >= 0 else "null" for i in said]
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
    return [',"audit":true' if a else ',"audit":false' for a in made.audit.tolist()]


def numbered_ids(parts: Iterable[Predictions]) -> Iterator[tuple[int, Any]]:
    """Row numbers from 1, with their ids."""
    row = 0
    for part in parts:
        ids = [None] * part.n if part.ids is None else part.ids.tolist()
        yield from enumerate(ids, start=row + 1)
        row += part.n
