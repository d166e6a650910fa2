"""A policy that answers requests. A decision is on disk before it is answered, once, and an id that
comes again gets its first answer.

One thread does all of it: what waits is decided together, written in one piece, synced, and then
answered. So a kill leaves whole lines and at most one torn one, which nobody was told.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from errno import EIO
from hashlib import blake2b
from itertools import chain, groupby, islice, pairwise
from pathlib import Path
from time import perf_counter

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure._core.strict_json import Plain
from howsure._core.text import make_printable
from howsure.formats.contents import as_record
from howsure.formats.json_lines import BadLine
from howsure.formats.label_files import find_label_columns, make_label_row
from howsure.formats.streams import StreamBatch, read_batches
from howsure.policies.policy import Decisions
from howsure.serving.alarm_guard import AlarmGuard
from howsure.serving.feedback import judge_answer, parse_label
from howsure.serving.journal import (
    case_lines,
    cut_torn_line,
    decision_lines,
    read_decisions,
    write_all,
)
from howsure.serving.stream import Decide, Serving

REQUEST = Path("request")  # its name in messages
MAX_FIELD_CHANGES = 500  # between the rows of a request
LATENCY_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@frozen
class Answer:
    """What a request gets: a status of HTTP and a line of JSON."""

    status: int
    body: bytes

    @classmethod
    def refuse(cls, status: int, sentence: str) -> Answer:
        """One sentence that says what is wrong."""
        return cls(status, strict_json.dump_line({"error": make_printable(sentence)}).encode())


@frozen
class DecidedRows:
    """Rows of a request that are new, and what was decided about them."""

    batch: StreamBatch
    decisions: Decisions
    keys: Sequence[bytes | None]


class StagedLines:
    """What a commit is about to write: lines, whose decisions they are, and by which id they are
    known.
    """

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.decided: list[DecidedRows] = []
        self.by_key: dict[bytes, bytes] = {}


class LatencyHistogram:
    """Counts of durations, as Prometheus wants them."""

    def __init__(self, name: str, says: str):
        self.name, self.says = name, says
        self.buckets = [0] * (len(LATENCY_SECONDS) + 1)
        self.count, self.total = 0, 0.0

    @property
    def mean(self) -> float:
        """Seconds on average; 0 before the first."""
        return self.total / max(1, self.count)

    def add(self, seconds: float) -> None:
        """Count one."""
        self.buckets[bisect_left(LATENCY_SECONDS, seconds)] += 1
        self.count += 1
        self.total += seconds

    def list_lines(self) -> Iterator[str]:
        """Its lines for Prometheus."""
        yield f"# HELP {self.name} {self.says}"
        yield f"# TYPE {self.name} histogram"
        running = 0
        for edge, count in zip((*LATENCY_SECONDS, "+Inf"), self.buckets, strict=True):
            running += count
            yield f'{self.name}_bucket{{le="{edge}"}} {running}'
        yield f"{self.name}_sum {self.total!r}"
        yield f"{self.name}_count {running}"


class DecisionService:
    """Decides bodies of requests into a journal, and takes labels for the guarantee monitor.

    The journal is a file of `howsure decide` lines, which is continued where it exists. The last
    `remember` ids are known again. All methods but `metrics` belong to one thread.
    """

    def __init__(
        self,
        decide: Decide,
        journal: Path,
        how: Serving,
        *,
        guard: AlarmGuard | None = None,
        labels: Path | None = None,
        class_names: tuple[str, ...] | None = None,
        remember: int = 250_000,
    ):
        self.decide, self.how, self.guard, self.remember = decide, how, guard, remember
        self.class_names = class_names
        self.path, self.labels = journal, labels
        self.known: dict[bytes, int] = {}  # where the line of an id begins; oldest first
        self.lines = 0  # the number of the last line
        self.torn = False  # whether a write failed and could not be taken back
        for path in (journal, labels):
            if path is not None and path.exists():
                cut_torn_line(path)
        if journal.exists():
            for record in read_decisions(journal):
                if record.policy != how.stamp:
                    raise InputError(
                        str(journal),
                        got="holds decisions of another policy",
                        hint="give the decisions of this one a file of their own (-o)",
                    )
                self.lines = record.line
                self._remember(_digest_id(record.id), record.start)
        if guard is not None:
            guard.follow(journal, resume=True)
            guard.learn()
        self.counts = {"accept": 0, "defer": 0, "repeated": 0, "refused": 0}
        self.requests = LatencyHistogram(
            "howsure_request_seconds", "From the first byte of a request to its answer."
        )
        self.commits = LatencyHistogram(
            "howsure_commit_seconds", "To decide, write and sync what waited."
        )

    # Decisions.

    def commit(self, bodies: Sequence[bytes]) -> list[Answer]:
        """The answers to requests that came together; what is decided is on disk."""
        begun = perf_counter()
        answers: dict[int, Answer] = {}
        requests: dict[int, list[Plain]] = {}
        for i, body in enumerate(bodies):
            try:
                requests[i] = _parse_rows(body)
            except InputError as e:
                answers[i] = self._refuse(e)
        staged = StagedLines()
        outcomes = self.stage_requests(list(requests.values()), staged)
        for i, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, InputError):
                answers[i] = self._refuse(outcome)
                continue
            body = b"[" + b",".join(outcome) + b"]"
            if bodies[i].lstrip()[:1] != b"[":
                body = outcome[0]
            answers[i] = Answer(200, body)
        if staged.lines:
            try:
                start = self._append(self.path, b"".join(staged.lines))
            except OSError as e:
                sentence = f"the decision could not be written ({e.strerror}) and was not made."
                failed = Answer.refuse(503, f"{sentence} Ask again later.")
                for i, answer in answers.items():
                    if answer.status == 200:
                        answers[i] = failed
            else:
                self.settle(staged, start)
                self.commits.add(perf_counter() - begun)
        return [answers[i] for i in range(len(bodies))]

    def _refuse(self, error: InputError) -> Answer:
        self.counts["refused"] += 1
        return Answer.refuse(400, str(error))

    def stage_requests(
        self, requests: Sequence[list[Plain]], staged: StagedLines
    ) -> list[list[bytes] | InputError]:
        """The answers to the rows of each request, or why it is refused.

        Requests that look alike are decided together, which takes a tenth of the time. Where a row
        is at fault, halves of them are, down to the request of that row.
        """
        outcomes: list[list[bytes] | InputError] = []
        for _, group in groupby(requests, key=_list_columns):
            alike = list(group)
            try:
                lines = self.stage_rows(list(chain.from_iterable(alike)), staged)
                following = iter(lines)
                outcomes += [list(islice(following, len(rows))) for rows in alike]
            except InputError as e:
                if len(alike) == 1:
                    outcomes.append(e)
                    continue
                middle = len(alike) // 2
                outcomes += self.stage_requests(alike[:middle], staged)
                outcomes += self.stage_requests(alike[middle:], staged)
        return outcomes

    def stage_rows(self, rows: Sequence[Plain], staged: StagedLines) -> list[bytes]:
        """Decide rows and stage their lines; the answer to each. Where one is refused, nothing is
        staged.
        """
        text = "".join(strict_json.dump_line(row) + "\n" for row in rows)
        decided: list[DecidedRows] = []
        keys: list[bytes | None] = []
        taken: set[bytes] = set()
        for batch in read_batches([text.encode()], REQUEST, self.how.wanted):
            if isinstance(batch, BadLine):
                raise batch.error
            names = batch.ids or [None] * len(batch)
            batch_keys = [_digest_id(name) for name in names]
            keys += batch_keys
            new: list[int] = []
            for i, key in enumerate(batch_keys):
                if key is None:
                    new.append(i)
                elif not (key in self.known or key in staged.by_key or key in taken):
                    new.append(i)
                    taken.add(key)
            if new:
                part = batch.rows(new)
                row_keys = [batch_keys[i] for i in new]
                decided.append(DecidedRows(part, self.decide(part.preds), row_keys))
        if len(keys) < len(rows):
            raise InputError(
                "request",
                got="holds rows of another split",
                hint=f"send those of {self.how.wanted.split!r} alone",
            )
        nameless: list[bytes] = []
        for part in decided:
            for key, line in zip(part.keys, self._format(part, len(staged.lines)), strict=True):
                staged.lines.append(line)
                if key is None:
                    nameless.append(line)
                else:
                    staged.by_key[key] = line
        staged.decided += decided
        self.counts["repeated"] += len(keys) - sum(len(part.keys) for part in decided)
        following = iter(nameless)
        answers: list[bytes] = []
        for key in keys:
            if key is None:
                line = next(following)
            else:
                line = staged.by_key.get(key) or self._read_line(self.known[key])
            answers.append(line.rstrip(b"\n"))
        return answers

    def _format(self, part: DecidedRows, before: int) -> list[bytes]:
        """The lines of new rows, of which `before` others stand between them and the journal."""
        first = self.lines + before + 1
        numbers = range(first, first + len(part.batch))
        if part.batch.names:
            text = case_lines(
                part.decisions, part.batch.names, numbers, part.batch.ids, self.how.stamp
            )
        else:
            text = decision_lines(part.decisions, numbers, part.batch.ids, self.how.stamp)
        return text.splitlines(keepends=True)

    def _append(self, path: Path, data: bytes) -> int:
        """Add whole lines, on disk when this returns; where they begin. A failure leaves nothing."""
        if self.torn:
            raise OSError(EIO, "an earlier write could not be taken back; restart the service")
        with path.open("ab", buffering=0) as file:
            start = file.tell()
            try:
                write_all(file, data)
                os.fsync(file.fileno())
            except OSError:
                self.torn = True
                os.ftruncate(file.fileno(), start)
                self.torn = False
                raise
        return start

    def settle(self, staged: StagedLines, start: int) -> None:
        """Remember and count what is on disk now, and show it to the monitors."""
        self.lines += len(staged.lines)
        keys = chain.from_iterable(part.keys for part in staged.decided)
        for key, line in zip(keys, staged.lines, strict=True):
            self._remember(key, start)
            start += len(line)
        for part in staged.decided:
            accepted = int(part.decisions.accept.sum())
            self.counts["accept"] += accepted
            self.counts["defer"] += len(part.decisions) - accepted
            if self.guard is None:
                continue
            try:
                self.guard.see(part.decisions, part.batch)
            except (InputError, OSError) as e:
                # The decisions stand; a monitor catches up with the journal at the next start.
                self.how.tell(str(e))

    def _remember(self, key: bytes | None, start: int) -> None:
        if key is None:
            return
        self.known[key] = start
        if len(self.known) > self.remember:
            del self.known[next(iter(self.known))]

    def _read_line(self, start: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(start)
            return file.readline()

    # Labels.

    def take_labels(self, body: bytes) -> Answer:
        """Add labels to their file, and what the guarantee monitor makes of them.

        A label is `{"id": …, "correct": 0 or 1}` or `{"id": …, "label": …}` with an id that the
        service remembers, or a line of decisions with either added.
        """
        if self.labels is None or self.guard is None or self.guard.guarantee is None:
            return Answer.refuse(
                404, "nobody waits for labels here; start howsure serve with --guarantee."
            )
        try:
            lines = [self.complete_label(row, i) for i, row in enumerate(_parse_rows(body), 1)]
            before = self.guard.guarantee.state.labels
            self._append(self.labels, "".join(lines).encode())
            self.guard.learn()
        except InputError as e:
            return Answer.refuse(400, str(e))
        except OSError as e:
            return Answer.refuse(503, f"the labels could not be written ({e.strerror}).")
        state = self.guard.guarantee.state
        facts = {"counted": state.labels - before, "labels": state.labels, "wrong": state.wrong}
        return Answer(200, strict_json.dump_line({**facts, "alarms": state.alarms}).encode())

    def complete_label(self, row: Plain, number: int) -> str:
        """The line of decisions that a label is of, with the label."""
        given = as_record(row) or {}
        key = _digest_id(given.get("id"))
        decision = given
        if key is not None and key in self.known:
            decision = as_record(strict_json.loads(self._read_line(self.known[key]))) or {}
        where = f"label {number}"
        with suppress(ValueError, KeyError, TypeError):
            found = find_label_columns(Path(where), list(given), "id")
            label = make_label_row(given, found, where)
            correct = int(judge_answer(decision, label, names=self.class_names))
            line = {**decision, "correct": correct}
            if parse_label(line).policy == self.how.stamp:
                return strict_json.dump_line(line) + "\n"
        raise InputError(
            where,
            got="is not the label of a decision that is remembered here",
            hint='send {"id": …, "correct": 0 or 1}, or a line of decisions with "correct" added',
        )

    # What it is doing.

    def list_metrics(self) -> Iterator[str]:
        """The lines of `/metrics`, in the text format of Prometheus."""
        yield "# HELP howsure_decisions_total Decisions since the start."
        yield "# TYPE howsure_decisions_total counter"
        for name in ("accept", "defer"):
            yield f'howsure_decisions_total{{decision="{name}"}} {self.counts[name]}'
        decided = self.counts["accept"] + self.counts["defer"]
        share = self.counts["defer"] / decided if decided else "NaN"
        gauges: dict[str, tuple[str, object]] = {
            "deferred_share": ("Share of these that was deferred.", share),
            "journal_line": ("Number of the last line of the journal.", self.lines),
        }
        counters = {
            "repeated_total": ("Rows whose id was known.", self.counts["repeated"]),
            "refused_total": ("Requests that were refused.", self.counts["refused"]),
        }
        if self.guard is not None:
            drift, guarantee = self.guard.drift, self.guard.guarantee
            if drift is not None:
                for name in ("score", "coverage"):
                    stands = int(name in drift.state.alarms)
                    gauges[f"drift_alarm_{name}"] = (f"1 where an alarm is active: {name}.", stands)
                gauges["drift_seen"] = ("Samples that the drift monitor saw.", drift.state.seen)
            if guarantee is not None:
                state = guarantee.state
                gauges["guarantee_broken"] = (
                    "1 where labels show that the guaranteed risk is exceeded.",
                    int(state.broken is not None),
                )
                gauges["guarantee_kept"] = (
                    "1 where labels show that it is kept.",
                    int(state.kept is not None),
                )
                gauges["guarantee_risk"] = ("The guaranteed risk.", state.risk)
                gauges["guarantee_labels"] = ("Labels of accepted answers.", state.labels)
                gauges["guarantee_wrong"] = ("Of these, wrong answers.", state.wrong)
        for kind, rows in (("gauge", gauges), ("counter", counters)):
            for name, (says, value) in rows.items():
                yield f"# HELP howsure_{name} {says}"
                yield f"# TYPE howsure_{name} {kind}"
                yield f"howsure_{name} {value}"
        yield from self.requests.list_lines()
        yield from self.commits.list_lines()

    def close(self) -> None:
        """Save the monitors."""
        if self.guard is not None:
            self.guard.close()


def _digest_id(name: object) -> bytes | None:
    """What an id is known by, however long it is; None where there is none."""
    if name is None:
        return None
    return blake2b(strict_json.dump_line(name).encode(), digest_size=16).digest()


def _parse_rows(body: bytes) -> list[Plain]:
    """The rows of a body: one JSON object, or a list of them."""
    try:
        value = strict_json.loads(body)
    except InputError as e:
        raise e.at("request") from None
    rows: list[Plain] = [value]
    if isinstance(value, list):
        rows = value
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(
            "request",
            got="is not a JSON object or a list of objects",
            hint='send {"id": "a", "probs": [0.9, 0.1]}',
        )
    names = [row.keys() for row in rows if isinstance(row, dict)]
    changes = sum(first != second for first, second in pairwise(names))
    # Rows with the same fields are decided together; each change costs as much as a request.
    if changes > MAX_FIELD_CHANGES:
        raise InputError(
            "request",
            got=f"changes the fields of its rows {changes:,} times",
            need=f"at most {MAX_FIELD_CHANGES:,} times are possible",
            hint="put rows with the same fields together",
        )
    return rows


def _list_columns(rows: Sequence[Plain]) -> object:
    """Equal for requests that may be read together. Where classes are named, or rows differ, a
    request is like no other: what a row means must not depend on its company.
    """
    columns: set[tuple[str, ...]] = set()
    for row in rows:
        fields = as_record(row) or {}
        columns.add(tuple(fields))
        if any(isinstance(value, dict) for value in fields.values()):
            return object()
    return columns if len(columns) == 1 else object()
