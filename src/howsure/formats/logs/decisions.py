"""Logs of decision models → one row per answer, with its question, and what the labels say of it.

A log asks one or several typed questions of each record. All commands read it through `Contents`,
as they read any table: all answers with a column `question`, or the answers to one question with the
probability of each option.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import TypeAlias

import numpy as np

from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.file_access import check_readable
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, repeat_values
from howsure._core.text import make_text_array
from howsure.formats.contents import (
    ARM_NAMES,
    ID_NAMES,
    Contents,
    SeveralArms,
    make_array_entry,
)
from howsure.formats.logs.decision_bodies import (
    ANSWERED,
    MISSING,
    NO,
    REASONS,
    REFUSED,
    YES,
    YES_NO,
    BadAnswer,
    BodyColumns,
    Place,
    convert_flat_record,
    find_body,
    find_request,
    follow_place,
)
from howsure.formats.logs.json_tree import (
    JSON_LINE_SUFFIXES,
    Json,
    Record,
    as_list,
    as_number,
    as_record,
    parse_document,
)
from howsure.predictions.class_labels import COLUMN_ALIASES
from howsure.predictions.read_options import Asked, ReadOptions

FORMAT_NAME = "decisions"
QUESTION = "question"
SOFT_NAMES = ("human", "human_shares", "soft_label", "soft_labels", "label_shares", "votes")
TRUTH_NAMES = (*COLUMN_ALIASES["labels"], "truth", *SOFT_NAMES)
PROBE_RECORDS = 50  # in which a body must be found
COMMON_SHARE = 0.5  # of the records that are asked a question: then a failed record lacks it too
UNLABELLED_TOP = 10  # answers above all labelled ones that show which were chosen for labelling
TRUTH_WORDS = {"true": YES, "yes": YES, "1": YES, "false": NO, "no": NO, "0": NO}
SHARE_TOLERANCE = 0.05
DIGITS = 12  # decimals that are looked for in probabilities
DIGIT_NOISE = 1e-13  # what is lost of a printed number in the last bits

Truth: TypeAlias = "dict[tuple[str, str], Json]"  # (id, question) → label


@frozen
class TypedQuestion:
    """A typed question: its options, None where they differ from record to record, and a hash of its
    text and options, by which a policy knows it again.
    """

    name: str
    kind: str
    options: tuple[str, ...] | None
    digest: str

    @property
    def title(self) -> str:
        """Its type in words."""
        if self.kind == "yes/no":
            return self.kind
        noun = "levels" if self.kind == "score" else "options"
        return f"{self.kind}, {len(self.options) if self.options else 'varying'} {noun}"


@frozen(eq=False)
class DecisionLog:
    """Columns with one row per answer, those that were refused or failed included.

    `answer` and `option` number the options of a choice in `option_names`, the levels of a score, and
    no and yes. `confidence` is the field as given, for yes/no the probability of the answer; `starts`
    says where the probabilities of a row begin. `envelope` has one value per record.
    """

    path: Path
    questions: tuple[TypedQuestion, ...]
    option_names: tuple[str, ...]
    record: Ints
    question: Ints
    answer: Ints
    reason: Ints
    confidence: Floats
    starts: Ints
    option: Ints
    probability: Floats
    envelope: dict[str, list[Json]]
    lines: Ints
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The log in one line."""
        records, answers = len(self.lines), int((self.reason == ANSWERED).sum())
        parts = [f"log of a decision model, {records:,} records", f"{answers:,} answers"]
        many = len(self.questions)
        parts.insert(1, f"{many} question{'s' if many > 1 else ''}")
        for reason in (REFUSED, MISSING):
            count = int((self.reason == reason).sum())
            if count:
                parts.append(f"{count:,} {REASONS[reason]}")
        return ", ".join(parts)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that answered."""
        cells = self.envelope.get("model", [])
        return tuple(sorted({str(cell) for cell in cells if cell is not None}))

    def find_question(self, name: str) -> int:
        """The number of a question."""
        names = [question.name for question in self.questions]
        if name not in names:
            need = f"it asks {', '.join(map(repr, names[:12]))}"
            raise InputError(self.path.name, got=f"has no question {name!r}", need=need)
        return names.index(name)

    def select_records(self, keep: Bools) -> DecisionLog:
        """Some of the records."""
        numbers = np.cumsum(keep) - 1
        rows = keep[self.record]
        sizes = np.diff(self.starts)
        flat = repeat_values(rows, sizes)
        kept = keep.tolist()
        envelope: dict[str, list[Json]] = {}
        for name, cells in self.envelope.items():
            envelope[name] = [cell for cell, there in zip(cells, kept, strict=True) if there]
        asked = set(self.question[rows].tolist())
        order = [i for i in range(len(self.questions)) if i in asked]
        renumber = np.full(len(self.questions), -1)
        renumber[order] = np.arange(len(order))
        return replace(
            self,
            questions=tuple(self.questions[i] for i in order),
            record=numbers[self.record[rows]],
            question=renumber[self.question[rows]],
            answer=self.answer[rows],
            reason=self.reason[rows],
            confidence=self.confidence[rows],
            starts=np.concatenate([[0], np.cumsum(sizes[rows])]),
            option=self.option[flat],
            probability=self.probability[flat],
            envelope=envelope,
            lines=self.lines[keep],
        )

    def get_answer_probability(self, tolerance: int = 0) -> Floats:
        """The probability of each answer, of a score with the levels within `tolerance`; nan where
        the log gives none.
        """
        sizes = np.diff(self.starts)
        row = repeat_values(np.arange(len(sizes)), sizes)
        near = self.option == self.answer[row]
        if tolerance:
            scores = np.array([q.kind == "score" for q in self.questions])[self.question[row]]
            near |= scores & (np.abs(self.option - self.answer[row]) <= tolerance)
        total = count_values(row[near], weights=self.probability[near], minlength=len(sizes))
        counted = count_values(row[near], minlength=len(sizes)) > 0
        found = np.where(counted, total, np.nan)
        yes_no = np.array([q.kind == "yes/no" for q in self.questions])[self.question]
        found = np.where(yes_no, self.confidence, found)
        return np.where(self.reason == ANSWERED, np.minimum(found, 1.0), np.nan)

    def name_answers(self) -> Array:
        """The text of each answer; "" where there is none."""
        names = make_text_array(["", *self.option_names, *YES_NO])
        numbers = self.answer + 1
        base = len(self.option_names) + 1
        yes_no = np.array([q.kind == "yes/no" for q in self.questions])[self.question]
        numbers = np.where(yes_no, base + self.answer, numbers)
        numbers = np.where(self.reason == ANSWERED, numbers, 0)
        texts = names[np.where(self._are_scores(), 0, numbers)]
        if not self._are_scores().any():
            return texts
        texts = texts.astype(object)
        for i, question in enumerate(self.questions):
            if question.kind == "score":
                rows = (self.question == i) & (self.reason == ANSWERED)
                levels = question.options or ()
                texts[rows] = [
                    levels[level] if level < len(levels) else str(level)
                    for level in self.answer[rows].tolist()
                ]
        return make_text_array(texts.tolist())

    def _are_scores(self) -> Bools:
        return np.array([q.kind == "score" for q in self.questions])[self.question]


# Reading


def holds_bodies(path: Path) -> bool:
    """Whether one of the first records holds a body."""
    for i, (_, record) in enumerate(iterate_records(path)):
        if find_record_body(record, ()) is not None:
            return True
        if i > PROBE_RECORDS:
            return False
    return False


def iterate_records(path: Path) -> Iterator[tuple[int, Record]]:
    """The records of a file with their lines, or numbers where it is one JSON document."""
    suffix = path.suffix.lower()
    if suffix in JSON_LINE_SUFFIXES:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    value: Json = json.loads(line)
                except (ValueError, RecursionError):
                    # The reader of whole documents says what is wrong with it.
                    parse_document(line, f"{path.name}, line {number}")
                    raise
                if not isinstance(value, dict):
                    raise InputError(f"{path.name}, line {number}", got="is no object")
                yield number, value
        return
    if suffix in (".csv", ".tsv"):
        text = check_readable(path).read_text(encoding="utf-8-sig")
        rows = csv.DictReader(StringIO(text), delimiter="\t" if suffix == ".tsv" else ",")
        # The limit of a cell is Python's own: raised, it would hold for every reader of the process.
        try:
            for number, row in enumerate(rows, start=2):
                yield number, {str(name): cell for name, cell in row.items()}
        except csv.Error as e:
            raise InputError(
                f"{path.name}, line {rows.line_num + 1}", got=f"is no CSV: {e}"
            ) from None
        return
    for number, value in enumerate(find_records(parse_document(path.read_bytes(), path.name)), 1):
        yield number, as_record(value)


def find_records(document: Json) -> list[Json]:
    """The list of records in a JSON document: the first whose entries hold bodies."""
    level: list[Json] = [document]
    for _ in range(4):
        deeper: list[Json] = []
        for value in level:
            entries = as_list(value)
            if any(find_record_body(one, ()) is not None for one in entries[:PROBE_RECORDS]):
                return entries
            deeper += entries
            deeper += as_record(value).values()
        level = deeper
    return [document]


def find_record_body(record: Json, place: Place) -> tuple[Record, Place] | None:
    """The body of a record: where that of the record before stood, or wherever it is."""
    there = follow_place(record, place)
    if there is not None:
        return there, place
    found = find_body(record)
    if found is not None:
        return found.body, found.place
    flat = convert_flat_record(as_record(record))
    return None if flat is None else (flat, ())


def read_decision_log(path: str | Path, columns: Sequence[str] = ()) -> DecisionLog:
    """The log in a file; `columns` of its envelope are kept beside those with telling names.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> body = {"model": "m", "answers": {"late": {"type": "noul", "noul": 0.07}}}
    >>> _ = path.write_text(json.dumps({"id": "a", **body}) + "\\n")
    >>> log = read_decision_log(path)
    >>> log.questions[0].title, log.confidence.tolist(), log.name_answers().tolist()
    ('yes/no', [0.93], ['no'])
    """
    file = check_readable(path)
    facts = file.stat()
    stamp = (facts.st_mtime_ns, facts.st_size)
    return read_once(LogKey(path=file, stamp=stamp, columns=tuple(sorted(set(columns)))))


@frozen
class LogKey:
    """A file as it is now, and the columns that are kept of it."""

    path: Path
    stamp: tuple[int, int]
    columns: tuple[str, ...]


@lru_cache(maxsize=2)  # a command asks for one question after the other
def read_once(key: LogKey) -> DecisionLog:
    """The log in a file, which is not parsed anew for every question."""
    return build_log(key.path, iterate_records(key.path), key.columns)


def build_log(
    path: Path, records: Iterator[tuple[int, Record]], columns: Sequence[str] = ()
) -> DecisionLog:
    """The log of some records."""
    answers = BodyColumns()
    kept = {*ARM_NAMES, *TRUTH_NAMES, *ID_NAMES, "correct", *columns}
    envelope: dict[str, list[Json]] = {}
    lines: list[int] = []
    failed: list[int] = []
    texts: dict[str, str] = {}
    place: Place = ()
    for number, record in records:
        i = len(lines)
        lines.append(number)
        found = find_record_body(record, place)
        beside = {name: record[name] for name in kept.intersection(record)}
        if found is None:
            failed.append(i)
        else:
            body, place = found
            try:
                answers.add_body(i, body)
            except BadAnswer as e:
                hint = "the bodies of OpenAI Decisions and System One are known"
                raise InputError(f"{path.name}, line {number}: {e}", hint=hint) from None
            if beside.get("model") is None and body.get("model") is not None:
                beside["model"] = body["model"]
            if i < PROBE_RECORDS:
                for name, text in find_request(record).items():
                    # What differs from record to record, such as a text about the record, is no
                    # mark of the question.
                    texts[name] = text if texts.get(name, text) == text else ""
        for name in beside.keys() - envelope.keys():
            envelope[name] = [None] * i
        for name, column in envelope.items():
            column.append(beside.get(name))
    if not answers.kinds:
        raise InputError(path.name, got="holds no answer of a decision model")
    return finish_log(path, answers, envelope=envelope, lines=lines, failed=failed, texts=texts)


def finish_log(
    path: Path,
    answers: BodyColumns,
    envelope: dict[str, list[Json]],
    lines: list[int],
    failed: list[int],
    texts: Mapping[str, str],
) -> DecisionLog:
    """The columns as arrays; a record that failed lacks an answer to every common question."""
    asked = count_values(np.array(answers.question), minlength=len(answers.kinds))
    whole = max(1, len(lines) - len(failed))
    common = [i for i, n in enumerate(asked.tolist()) if n >= COMMON_SHARE * whole]
    for record in failed:
        for question in common:
            answers.add_silent(record, question, MISSING)
    names = [name for kind, name in answers.option_numbers if kind is bool]
    texts_of_strings = [name for kind, name in answers.option_numbers if kind is str]
    option_names: list[str] = []
    for kind, name in answers.option_numbers:
        text = str(name).lower() if kind is bool else str(name)
        # `true` and "true" are two options: where both occur the text is quoted.
        if kind is str and text in ("true", "false") and (text == "true") in names:
            text = json.dumps(text)
        elif kind is not str and text in texts_of_strings and kind is not bool:
            text = f"{text} (number)"
        option_names.append(text)
    notes: list[str] = []
    if answers.boxes:
        notes.append(f"{answers.boxes:,} box answers have no probability and are left out")
    columns = {
        name: np.array(getattr(answers, name))
        for name in ("record", "question", "answer", "reason", "confidence", "starts", "option")
    }
    log = DecisionLog(
        path=path,
        questions=(),
        option_names=tuple(option_names),
        probability=np.array(answers.probability),
        envelope=envelope,
        lines=np.array(lines, dtype=np.int64),
        notes=tuple(notes),
        **columns,
    )
    check_numbers(log)
    questions: list[TypedQuestion] = []
    for i, name in enumerate(answers.question_numbers):
        kind = answers.kinds[i] or "refusal"
        options = find_options(log, i, kind, answers.shown_levels[i])
        facts = json.dumps([kind, texts.get(name, ""), options], ensure_ascii=False)
        digest = sha256(facts.encode()).hexdigest()[:16]
        questions.append(TypedQuestion(name=name, kind=kind, options=options, digest=digest))
    return replace(log, questions=tuple(questions))


def check_numbers(log: DecisionLog) -> None:
    """Probabilities and confidences lie in [0, 1]."""
    for what, values in (("probability", log.probability), ("confidence", log.confidence)):
        with np.errstate(invalid="ignore"):
            bad = (values < 0) | (values > 1)
        if what == "probability":
            bad |= np.isnan(values)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            row = at
            if what == "probability":
                row = int(np.searchsorted(log.starts, at, side="right")) - 1
            line = int(log.lines[log.record[row]])
            got = f"has the {what} {values[at]:g}"
            raise InputError(
                f"{log.path.name}, line {line}", got=got, need="one in [0, 1] is needed"
            )


def find_options(
    log: DecisionLog, question: int, kind: str, levels: Mapping[int, str]
) -> tuple[str, ...] | None:
    """The options of a question in a fixed order; None where they differ from row to row."""
    if kind == "yes/no":
        return YES_NO
    rows = np.flatnonzero((log.question == question) & (log.reason == ANSWERED))
    starts, ends = log.starts[rows], log.starts[rows + 1]
    sizes = ends - starts
    if kind == "score":
        highest = max([*levels, *log.answer[rows].tolist(), 0])
        if len(sizes) and sizes.max():
            flat = repeat_values(np.isin(np.arange(len(log.starts) - 1), rows), np.diff(log.starts))
            highest = max(highest, int(log.option[flat].max()))
        return tuple(levels.get(level, str(level)) for level in range(highest + 1))
    if not len(rows) or sizes.min() != sizes.max() or sizes[0] == 0:
        return None
    table = np.sort(log.option[starts[:, None] + np.arange(int(sizes[0]))], axis=1)
    if not (table == table[0]).all():
        return None
    numbers: list[int] = table[0].tolist()
    return tuple(sorted(log.option_names[i] for i in numbers))


# A log as a table


def choose_records(log: DecisionLog, where: Mapping[str, str]) -> DecisionLog:
    """The records with these values of their columns."""
    for name, value in where.items():
        cells = log.envelope.get(name)
        if cells is None:
            need = f"its records have {', '.join(map(repr, sorted(log.envelope))) or 'none'}"
            raise InputError(log.path.name, got=f"has no column {name!r}", need=need)
        keep = np.array([str(cell) == value for cell in cells], dtype=np.bool_)
        if not keep.any():
            known = sorted({str(cell) for cell in cells})
            need = f"there are {', '.join(map(repr, known[:12]))}"
            raise InputError(log.path.name, got=f"has no record with {name}={value}", need=need)
        log = log.select_records(keep)
    return log


def choose_ids(log: DecisionLog, wanted: str | None = None) -> tuple[str, Array]:
    """The column of ids and the id of each record; line numbers where there is none."""
    names = [wanted] if wanted else [*ID_NAMES]
    for name in names:
        cells = log.envelope.get(name)
        if cells is not None and all(cell is not None for cell in cells):
            return name, make_text_array([str(cell).strip() for cell in cells])
    if wanted:
        need = f"its records have {', '.join(map(repr, sorted(log.envelope))) or 'none'}"
        raise InputError(log.path.name, got=f"has no column {wanted!r} of ids", need=need)
    return "line", make_text_array([str(line) for line in log.lines.tolist()])


def check_repeated(log: DecisionLog, name: str, ids: Array, rows: Bools) -> bool:
    """Whether ids are asked the same question more than once; refused where a column tells several
    models, runs or variants apart. `name` is the column of ids.
    """
    records = log.record[rows]
    pairs = Counter(zip(ids[records].tolist(), log.question[rows].tolist(), strict=True))
    if max(pairs.values(), default=1) == 1:
        return False
    for arm in ARM_NAMES:
        if arm in log.envelope:
            cells = log.envelope[arm]
            values = sorted({str(cells[record]) for record in records.tolist()})
            if len(values) > 1:
                raise SeveralArms.of(log.path, arm, values, name)
    return True


def build_decision_contents(
    log: DecisionLog, options: ReadOptions, truth: Truth | None = None, join: str | None = None
) -> Contents:
    """The answers as a table: of all questions, or of `options.question` with the probability of
    each option. `truth` are the labels of another file, by id and question.
    """
    log = choose_records(log, options.where)
    id_name, ids = choose_ids(log, join or options.get_column("ids"))
    tolerance = options.tolerance or 0
    rows = np.ones(len(log.question), dtype=np.bool_)
    chosen: TypedQuestion | None = None
    if options.question is not None:
        number = log.find_question(options.question)
        rows, chosen = log.question == number, log.questions[number]
    elif len(log.questions) == 1:
        chosen = log.questions[0]
    repeated = check_repeated(log, id_name, ids, rows)
    if chosen is not None and chosen.kind != "score":
        tolerance = 0
    names = make_text_array([question.name for question in log.questions])[log.question]
    record_ids = ids[log.record]
    probability = log.get_answer_probability(tolerance)
    answered = rows & (log.reason == ANSWERED)
    if options.kind is None and not np.isnan(probability[answered]).any():
        # A report asks whether the claim is true, and the field of a choice is no probability.
        confidence = np.where(log.reason == ANSWERED, probability, np.nan)
    else:
        confidence = choose_confidence(log, rows, probability, options)
    reasons = np.array(REASONS)[log.reason]
    columns: dict[str, Array] = {
        "record": record_ids,
        QUESTION: names,
        "answer": log.name_answers(),
        "confidence": confidence,
        "probability": probability,
    }
    notes: list[str] = []
    labels = Labels.of(log, options, truth, ids)
    if labels is not None:
        known = labels.add_columns(log, columns, tolerance)
        check_unlabelled(log, answered, known, confidence)
        notes += drop_unlabelled_cases(log, options, record_ids, known)
        rows = rows & known
        if not rows.any():
            got, need = "has no answer with a label", "check --join and the names of the questions"
            raise InputError(log.path.name, got=got, need=need)
    if (log.reason[rows] != ANSWERED).any():
        columns["no_answer"] = reasons
    for name in (*ARM_NAMES, *options.attributes):
        if name in log.envelope and name not in columns:
            cells = ["" if cell is None else str(cell) for cell in log.envelope[name]]
            columns[name] = make_text_array(cells)[log.record]
    single = chosen is not None
    columns["id"] = record_ids
    if not single:
        columns["id"] = join_texts(record_ids, " ", names)
    if repeated:
        columns["id"] = join_texts(columns["id"], " line ", log.lines[log.record])
    if options.case is not None or not single or repeated:
        columns["group"] = find_cases(log, options, record_ids)
    table = {name: column[rows] for name, column in columns.items()}
    class_names: tuple[str, ...] | None = None
    if chosen is not None and chosen.options and "no_answer" not in table and options.kind is None:
        matrix = build_matrix(log, rows, chosen)
        if matrix is not None and fits_options(table, chosen.options):
            class_names = chosen.options
            for i, option in enumerate(class_names):
                table[f"prob_{option}"] = matrix[:, i]
    return Contents(
        log.path,
        {name: make_array_entry(column) for name, column in table.items()},
        table=True,
        lines=log.lines[log.record[rows]],
        class_names=class_names,
        digits=count_digits(log.probability) if class_names else None,
        asked=list_asked(log, options),
        notes=tuple(notes),
    )


def join_texts(first: Array, between: str, second: Array) -> Array:
    """Two columns as one of text."""
    return np.char.add(np.char.add(first.astype(str), between), second.astype(str))


def drop_unlabelled_cases(
    log: DecisionLog, options: ReadOptions, record_ids: Array, known: Bools
) -> list[str]:
    """Of cases count those whose answers all have labels: an answer without one may be the wrong
    one. Changes `known`, and says how many are left out.
    """
    if options.case is None:
        return []
    # What was refused is deferred, whatever its label: it keeps no case out.
    known |= log.reason != ANSWERED
    cases, place = np.unique(find_cases(log, options, record_ids), return_inverse=True)
    lacking = count_values(place, weights=~known, minlength=len(cases)) > 0
    known &= ~lacking[place]
    labelled = count_values(place, weights=known, minlength=len(cases)) > 0
    if not lacking.any() or not labelled.any():
        return []
    return [f"{int(lacking.sum()):,} of {len(cases):,} cases lack a label and are left out"]


def list_asked(log: DecisionLog, options: ReadOptions) -> Asked:
    """The models and questions of a log, and the field that a gateway compares."""
    questions: dict[str, tuple[str, ...]] = {}
    for i, question in enumerate(log.questions):
        if options.question not in (None, question.name) or question.kind == "refusal":
            continue
        mine = (log.question == i) & (log.reason == ANSWERED)
        compared = "confidence"
        asked_for = options.get_column("confidence") == "probability"
        if question.kind == "yes/no" or asked_for or np.isnan(log.confidence[mine]).all():
            compared = "probability"
        questions[question.name] = (question.kind, compared, question.digest)
    return Asked(models=log.models, questions=questions)


def find_cases(log: DecisionLog, options: ReadOptions, record_ids: Array) -> Array:
    """The case of each answer: its record, or a column."""
    if options.case in (None, "record"):
        return record_ids
    cells = log.envelope.get(options.case)
    if cells is None:
        need = f"its records have {', '.join(map(repr, sorted(log.envelope)))}"
        raise InputError(log.path.name, got=f"has no column {options.case!r}", need=need)
    return make_text_array([str(cell) for cell in cells])[log.record]


def choose_confidence(
    log: DecisionLog, rows: Bools, probability: Floats, options: ReadOptions
) -> Floats:
    """The field that a gateway compares: `confidence` where the log has it, else the probability of
    the answer; refused where some answers have neither.
    """
    confidence = log.confidence.copy()
    answered = rows & (log.reason == ANSWERED)
    for i, question in enumerate(log.questions):
        mine = answered & (log.question == i)
        lacking = mine & np.isnan(confidence)
        if lacking.sum() == mine.sum() or options.get_column("confidence") == "probability":
            confidence[mine] = probability[mine]
            lacking = mine & np.isnan(confidence)
        if lacking.any():
            line = int(log.lines[log.record[np.flatnonzero(lacking)[0]]])
            hint = "ask the gateway for confidence and probabilities"
            if not np.isnan(probability[mine]).any():
                hint = "--name confidence=probability takes the probability of the answer instead"
            raise InputError(
                log.path.name,
                got=f"has no confidence for {int(lacking.sum()):,} of {int(mine.sum()):,} answers "
                f"to {question.name!r} (the first on line {line})",
                need="a threshold needs it for every answer",
                hint=hint,
            )
    if options.no_answer == "wrong":
        confidence[log.reason != ANSWERED] = 0.0
    return confidence


def build_matrix(log: DecisionLog, rows: Bools, question: TypedQuestion) -> Floats | None:
    """The probability of each option, in the order of `question.options`; None where some rows do
    not have all of them, or where the answer is not the most probable one.
    """
    at = np.flatnonzero(rows)
    options = question.options or ()
    starts, sizes = log.starts[at], np.diff(log.starts)[at]
    if question.kind == "yes/no":
        p = log.probability[starts]
        return np.stack([1 - p, p], axis=1)
    if not (sizes == len(options)).all():
        return None
    place = starts[:, None] + np.arange(len(options))
    numbers, answers = log.option[place], log.answer[at]
    if question.kind == "choice":
        by_name = {name: i for i, name in enumerate(options)}
        order = np.array([by_name.get(name, -1) for name in log.option_names])
        numbers, answers = order[numbers], order[answers]
    matrix = np.zeros(place.shape)
    np.put_along_axis(matrix, numbers, log.probability[place], axis=1)
    sums = np.abs(matrix.sum(axis=1) - 1)
    slack = len(options) * 0.5 * 10.0 ** -(count_digits(log.probability) or DIGITS) + 1e-6
    # Of two options at one half the answer may be the second.
    if (answers != matrix.argmax(axis=1)).any() or (sums > slack).any():
        return None
    return matrix


def fits_options(table: Mapping[str, Array], options: Sequence[str]) -> bool:
    """Whether labels are options: else right and wrong are known, but not the class."""
    if "correct" in table or "grade" in table:
        return False
    return "label" not in table or set(table["label"].tolist()) <= set(options)


def count_digits(values: Floats) -> int | None:
    """The decimals that all values have; None for full precision. Noise in the last bits, as in
    0.9299999999999999, is none.

    >>> count_digits(np.array([0.5, 0.9299999999999999])), count_digits(np.array([1 / 3]))
    (2, None)
    """
    for digits in range(DIGITS):
        scaled = values * 10**digits
        if np.abs(scaled - np.rint(scaled)).max(initial=0.0) < DIGIT_NOISE * 10**digits:
            return digits
    return None


# What is true


@frozen(eq=False)
class Labels:
    """What is known of each answer: the text of the right option, or its share among people."""

    by_record: list[Json] = field(default_factory=list[Json])
    by_key: Truth | None = None
    ids: Array | None = None
    graded: bool = False

    @classmethod
    def of(
        cls, log: DecisionLog, options: ReadOptions, truth: Truth | None, ids: Array
    ) -> Labels | None:
        """The labels of another file, else those that stand in the records."""
        if truth is not None:
            return cls(by_key=truth, ids=ids)
        asked = options.get_column("labels")
        if "labels" not in options.beside and "correct" not in options.beside:
            return None
        names = [asked] if asked else [n for n in TRUTH_NAMES if n in log.envelope]
        if asked and asked not in log.envelope:
            need = f"its records have {', '.join(map(repr, sorted(log.envelope))) or 'none'}"
            raise InputError(log.path.name, got=f"has no column {asked!r}", need=need)
        for name in names:
            return cls(by_record=log.envelope[name])
        if "correct" in log.envelope and len(log.questions) == 1:
            return cls(by_record=log.envelope["correct"], graded=True)
        return None

    def get(self, record: int, question: str, many: bool) -> Json:
        """What a record says of a question; None where it says nothing."""
        if self.by_key is not None and self.ids is not None:
            name = str(self.ids[record])
            return self.by_key.get((name, question), self.by_key.get((name, "")))
        value = self.by_record[record]
        if isinstance(value, dict) and question in value:
            share = value[question]
            return {YES: share} if isinstance(share, float) and are_shares(value) else share
        if isinstance(value, dict) and not are_shares(value):
            return None
        return None if many and not isinstance(value, dict) else value

    def add_columns(self, log: DecisionLog, columns: dict[str, Array], tolerance: int) -> Bools:
        """Add what is true to the columns: labels, or where they are shares or levels may differ a
        grade or right and wrong. Returns which answers have a label.
        """
        many = len(log.questions) > 1
        texts = columns["answer"].tolist()
        known = np.zeros(len(texts), dtype=np.bool_)
        labels = [""] * len(texts)
        grades = np.zeros(len(texts))
        soft = False
        levels = [{text: i for i, text in enumerate(q.options or ())} for q in log.questions]
        records: list[int] = log.record.tolist()
        numbers: list[int] = log.question.tolist()
        for row, (record, number) in enumerate(zip(records, numbers, strict=True)):
            question = log.questions[number]
            value = self.get(record, question.name, many)
            if value is None or value == "":
                continue
            known[row] = True
            answered = log.reason[row] == ANSWERED
            if self.graded:
                grades[row], labels[row] = (as_number(value) or 0.0) * answered, texts[row]
                continue
            if isinstance(value, dict):
                soft = True
                grades[row] = answered * find_share(
                    value, texts[row], question, levels[number], tolerance
                )
                continue
            labels[row] = read_label(value, question, log.path)
            right = labels[row] == texts[row]
            if tolerance and question.kind == "score" and answered:
                place = levels[number].get(labels[row])
                right = place is not None and abs(place - int(log.answer[row])) <= tolerance
            grades[row] = float(right and answered)
        if soft:
            columns["grade"] = grades
        elif self.graded or tolerance:
            columns["correct"] = grades
        else:
            columns["label"] = make_text_array(labels)
        return known


def are_shares(value: Record) -> bool:
    numbers = [as_number(share) for share in value.values()]
    known = [share for share in numbers if share is not None]
    return len(known) == len(numbers) and abs(sum(known) - 1) <= SHARE_TOLERANCE


def find_share(
    shares: Record, answer: str, question: TypedQuestion, levels: Mapping[str, int], tolerance: int
) -> float:
    """The share of people who gave this answer, with the levels near it."""
    if question.kind == "yes/no":
        yes = as_number(shares.get(YES, shares.get("true", shares.get(question.name)))) or 0.0
        return yes if answer == YES else 1 - yes
    total = 0.0
    for option, share in shares.items():
        place = levels.get(option)
        near = place is not None and abs(place - levels.get(answer, 10**9)) <= tolerance
        if option == answer or (tolerance and near):
            total += as_number(share) or 0.0
    return min(1.0, total)


def read_label(value: Json, question: TypedQuestion, path: Path) -> str:
    """A label as the text of an option: of yes/no also true, 1; of a score also its number."""
    text = str(value).strip()
    if isinstance(value, bool):
        text = text.lower()
    if question.kind == "yes/no":
        word = TRUTH_WORDS.get(text.lower().removesuffix(".0"))
        if word is None:
            got, need = f"has the label {text[:60]!r} for {question.name!r}", "yes or no is needed"
            raise InputError(path.name, got=got, need=need)
        return word
    options = question.options or ()
    if question.kind == "score" and text not in options:
        number = as_number(text)
        if number is None or number != int(number) or not 0 <= number < len(options):
            need = f"a level, {', '.join(map(repr, options[:8]))}, or its number is needed"
            raise InputError(
                path.name, got=f"has the label {text[:60]!r} for {question.name!r}", need=need
            )
        return options[int(number)]
    if options and text not in options and text.lower() in options:
        return text.lower()
    return text


def check_unlabelled(log: DecisionLog, rows: Bools, known: Bools, confidence: Floats) -> None:
    """Refuse labels that stop where the most confident answers begin: a gateway kept those, and how
    often they are wrong is not known.
    """
    for i, question in enumerate(log.questions):
        mine = rows & (log.question == i)
        labelled, others = mine & known, mine & ~known
        if not labelled.any() or not others.any():
            continue
        highest = confidence[labelled].max()
        above = int((confidence[others] > highest).sum())
        if above >= UNLABELLED_TOP and above >= 0.5 * others.sum():
            raise InputError(
                log.path.name,
                got=f"has labels for {question.name!r} up to confidence {highest:g} only; "
                f"{above:,} more confident answers have none",
                need="labels of escalated answers say nothing about accepted ones",
                hint="label a random sample of all answers",
            )
