"""lm-evaluation-harness: `samples_*.json` (a list) and `samples_*.jsonl` of 0.4 and later, and the
files that `--write_out` made up to 0.3.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core.checks import Array, Floats, InputError, Ints
from howsure._core.text import is_count
from howsure.formats.logs.json_tree import (
    Json,
    Record,
    as_list,
    as_number,
    as_numbers,
    as_record,
    as_text,
    get_at,
    read_document,
    require_records,
)
from howsure.formats.logs.log import (
    Claim,
    Confidence,
    Kind,
    Log,
    Outcome,
    check_claim,
    check_table_size,
    judge_grades,
    make_column,
    select_text_columns,
)

SAMPLES_TITLE = "lm-evaluation-harness samples"
WRITE_OUT_TITLE = "lm-evaluation-harness write_out"
METRICS = ("acc", "exact_match", "em", "acc_norm")
NORMALISED_METRIC = "acc_norm"
MUTUAL_METRIC = "acc_mutual_info"  # logs every option twice: after the question, and by itself
INVALID_ANSWER = "[invalid]"  # what the harness writes where its filter finds no answer
SLICE_NAMES = ("category", "subject", "topic", "task")
SAMPLES_NAME = re.compile(r"samples_(?P<task>.+)_(?P<stamp>\d{4}-\d\d-\d\dT[\d\-.]+)")


# Samples, of 0.4 and later


def recognise_samples(document: Json) -> bool:
    """Whether this is a list of samples."""
    first = as_record(get_at(document, 0))
    return {"doc_id", "target", "filtered_resps"} <= first.keys()


def read_samples(document: Json, path: Path, metric: str | None = None) -> Log:
    """The samples of a file.

    `metric` says which field tells right from wrong: `acc`, `exact_match`, or what else the task
    logs. `acc_norm` divides the log-likelihood of an option by its length, as the harness does.
    """
    rows = require_records(document, path.name)
    metric = _choose_metric(rows, metric, path)
    grades = [as_number(row.get(metric)) for row in rows]
    rows, alone = _split_mutual(rows)
    values = _read_likelihoods(rows, path)
    if metric == MUTUAL_METRIC and alone and values is not None:
        by_itself = _read_likelihoods(alone, path)
        if by_itself is not None and by_itself.shape == values.shape:
            values = np.where(np.isfinite(values), values - by_itself, -np.inf)
    if values is None:
        answers: list[str] = []
        unanswered: list[Outcome | None] = []
        for row in rows:
            first = get_at(row.get("filtered_resps"), 0)
            if isinstance(first, list):
                first = get_at(first, 0)
            answer = as_text(first).strip()
            answers.append(answer)
            if answer == INVALID_ANSWER:
                unanswered.append(Outcome.UNPARSEABLE)
            else:
                unanswered.append(None if answer else Outcome.MISSING)
        note = "the answers are generated text without log-probabilities"
        log = _build_log(rows, _require_grades(grades, path, metric), notes=(note,))
        outcome = judge_grades(log.grade.tolist(), unanswered)
        log = replace(log, outcome=outcome, answer=make_column(answers))
    elif values.shape[1] == 1:
        # One request per sample: the likelihood of the right answer, which is no confidence of the
        # model's own answer.
        note = (
            "the log-probabilities are those of the right answer, not of the model's: "
            "they are no confidence"
        )
        log = _build_log(rows, _require_grades(grades, path, metric), notes=(note,))
    else:
        log = _read_multiple_choice(rows, values, grades, metric=metric, path=path)
    return replace(log, claims=tuple(_check_results_file(log, metric, path)))


def _choose_metric(rows: Sequence[Record], asked: str | None, path: Path) -> str:
    """The field that says right or wrong."""
    numeric: list[str] = []
    for name, value in rows[0].items():
        if name != "doc_id" and as_number(value) is not None:
            numeric.append(name)
    logged = [as_text(name) for name in as_list(rows[0].get("metrics"))]
    known = [name for name in [*METRICS, *logged] if name in numeric]
    if asked is not None and asked not in numeric:
        shown = ", ".join(known) or "none"
        raise InputError(
            f"{path.name} has no metric {asked!r} for each sample; its metrics are: {shown}."
        )
    if asked is None and not known:
        raise InputError(
            f"{path.name} says of no sample whether it is right; "
            "log a metric such as acc or exact_match."
        )
    return asked or known[0]


def _split_mutual(rows: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The samples with the responses to their questions, and with those to no question, which a log
    of `acc_mutual_info` holds after them; no second ones elsewhere.
    """
    asked: list[Record] = []
    alone: list[Record] = []
    for row in rows:
        responses = as_list(row.get("filtered_resps"))
        half = len(responses) // 2
        if MUTUAL_METRIC not in row or len(responses) != 2 * half:
            return list(rows), []
        arguments = list(as_record(row.get("arguments")).items())
        questions = [as_text(get_at(one, "arg_0")) for _, one in arguments]
        # Options of a task without a question have no context either: nothing was added to them.
        if questions and (any(questions[half:]) or not all(questions[:half])):
            return list(rows), []
        own: Record = dict(arguments[:half])
        asked.append({**row, "filtered_resps": responses[:half], "arguments": own})
        alone.append({**row, "filtered_resps": responses[half:]})
    return asked, alone


def _read_likelihoods(rows: Sequence[Record], path: Path) -> Floats | None:
    """The log-likelihoods of the options of each sample; None where answers were generated."""
    table: list[list[float]] = []
    for row in rows:
        pairs = as_list(row.get("filtered_resps"))
        if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            return None
        numbers = as_numbers([get_at(pair, 0) for pair in pairs])
        if numbers is None:
            return None
        table.append(numbers)
    return build_option_matrix(table, path.name)


def _read_multiple_choice(
    rows: Sequence[Record],
    values: Floats,
    grades: Sequence[float | None],
    *,
    metric: str,
    path: Path,
) -> Log:
    # The texts of the options, where the log has the arguments of every request.
    texts: list[list[str]] | None = []
    for row in rows:
        arguments = as_record(row.get("arguments")).values()
        texts.append([as_text(get_at(one, "arg_1")) for one in arguments])
    if [len(row) for row in texts] != np.isfinite(values).sum(axis=1).tolist():
        texts = None
    if metric == NORMALISED_METRIC:
        if texts is None:
            raise InputError(
                f"{path.name} does not hold the texts of its options, whose lengths acc_norm "
                "needs; use acc."
            )
        values = normalise_by_length(values, texts, path.name)
    targets = [row.get("target") for row in rows]
    best = np.argmax(values, axis=1)
    gold = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    if any(grade is not None and 0 < grade < 1 for grade in grades):
        # Such as the probability of all true options together: no option is the right one.
        doubts = (
            f"{metric} grades all options of a question together, not the most likely one, "
            "whose probability is the confidence",
        )
    else:
        gold = find_gold(targets, texts, values, correct=grades, where=path.name)
        if gold is None:
            notes = ("the right option is not known, only right or wrong",)
    if gold is None:
        right = _require_grades(grades, path, metric)
    else:
        right = (gold == best).astype(np.float64)
    places: list[int] = best.tolist()
    answers = [str(place) for place in places]
    option_names = None
    if texts is not None:
        answers = [row[place].strip() for row, place in zip(texts, places, strict=True)]
        if all(row == texts[0] for row in texts):
            option_names = tuple(option.strip() for option in texts[0])
    top = Confidence("option_probability", Kind.OPTIONS, compute_top_probability(values))
    log = _build_log(rows, right, notes=notes)
    return replace(
        log,
        confidences=(top,),
        options=values,
        option_names=option_names,
        gold=gold,
        answer=make_column(answers),
        doubts=doubts,
    )


def _require_grades(grades: Sequence[float | None], path: Path, metric: str) -> Floats:
    for i, grade in enumerate(grades):
        if grade is None or not 0 <= grade <= 1:
            raise InputError(
                f"{path.name}, sample {i}: {metric} is {grade}; a number from 0 to 1 is needed."
            )
    return np.array(grades, dtype=np.float64)


def _build_log(rows: Sequence[Record], grades: Floats, *, notes: tuple[str, ...]) -> Log:
    """What every kind of sample has: ids, outcomes, the filter of each row, and what to slice by."""
    slices: dict[str, list[Json]] = {}
    for name in SLICE_NAMES:
        slices[name] = [get_at(row.get("doc"), name) for row in rows]
    # A file may hold the same samples under several answer filters: those are splits.
    filters = [as_text(row.get("filter")) for row in rows]
    split: Array | None = None
    if len(set(filters)) > 1:
        split = make_column(filters)
    return Log(
        tool=SAMPLES_TITLE,
        ids=make_column([as_text(row.get("doc_id")) for row in rows]),
        outcome=judge_grades(grades.tolist()),
        grade=grades,
        split=split,
        slices=select_text_columns(slices),
        notes=notes,
    )


def _check_results_file(log: Log, metric: str, path: Path) -> list[Claim]:
    """The log's means, compared with the results file that the harness wrote beside it."""
    name = SAMPLES_NAME.fullmatch(path.stem)
    if name is None:
        return []
    beside = path.with_name(f"results_{name['stamp']}.json")
    if not beside.is_file():
        return []
    results = as_record(get_at(read_document(beside), "results", name["task"]))
    filters = [""] if log.split is None else sorted(set(log.split.tolist()))
    claims: list[Claim] = []
    for one_filter in filters:
        rows = np.ones(log.n, dtype=np.bool_) if log.split is None else log.split == one_filter
        ours = float(log.grade[rows].mean())
        for key, value in results.items():
            # Keys are "metric,filter"; without several filters any of them is meant.
            theirs = as_number(value)
            wanted = f"{metric},{one_filter or key.partition(',')[2]}"
            if key == wanted and theirs is not None:
                claim = check_claim(
                    metric, theirs=theirs, ours=ours, source=beside.name, where=path.name
                )
                claims.append(claim)
    return claims


# What --write_out made, up to 0.3


def recognise_write_out(document: Json) -> bool:
    """Whether this is a list of documents with their requests."""
    first = as_record(get_at(document, 0))
    return {"doc_id", "prompt_0", "logit_0", "truth"} <= first.keys()


def read_write_out(document: Json, path: Path, metric: str | None = None) -> Log:
    """The documents of a file; `metric` is the field that says right or wrong, `acc` unless given."""
    rows = require_records(document, path.name)
    name = metric or "acc"
    if metric is not None and metric not in rows[0]:
        raise InputError(
            f"{path.name} has no field {metric!r}; its fields are: {', '.join(rows[0])}."
        )
    values = _read_logits(rows, path)
    grades = [as_number(row.get(name)) for row in rows]
    targets = [row.get("truth") for row in rows]
    gold = find_gold(targets, None, values, correct=grades, where=path.name)
    if gold is None:
        raise InputError(
            f"{path.name}: truth is not the number of an option; "
            "save the log of a multiple-choice task."
        )
    best = np.argmax(values, axis=1)
    right = (gold == best).astype(np.float64)
    claims: tuple[Claim, ...] = ()
    if None not in grades:
        claim = check_claim(
            name,
            theirs=float(np.array(grades, dtype=np.float64).mean()),
            ours=float(right.mean()),
            source=f"its field {name}",
            where=path.name,
        )
        claims = (claim,)
    top = Confidence("option_probability", Kind.OPTIONS, compute_top_probability(values))
    return Log(
        tool=WRITE_OUT_TITLE,
        ids=make_column([as_text(row.get("doc_id")) for row in rows]),
        outcome=judge_grades(right.tolist()),
        grade=right,
        confidences=(top,),
        options=values,
        gold=gold,
        answer=make_column([str(place) for place in best.tolist()]),
        claims=claims,
    )


def _read_logits(rows: Sequence[Record], path: Path) -> Floats:
    """The log-likelihoods under `logit_0`, `logit_1`, …; a pair holds the greedy flag beside it."""
    table: list[list[float]] = []
    for i, row in enumerate(rows):
        count = sum(key.startswith("logit_") for key in row)
        cells: list[Json] = []
        for j in range(count):
            if f"logit_{j}" in row:
                cell = row[f"logit_{j}"]
                cells.append(get_at(cell, 0) if isinstance(cell, list) else cell)
        numbers = as_numbers(cells)
        if numbers is None or len(numbers) < 2:
            raise InputError(
                f"{path.name}, document {i} has no log-likelihood for each of at least 2 options; "
                "a log of a multiple-choice task is needed."
            )
        table.append(numbers)
    return build_option_matrix(table, path.name)


# The options of a question, in either layout


def build_option_matrix(rows: Sequence[Sequence[float]], where: str) -> Floats:
    """One row per question, filled up with minus infinity where a question has fewer options.

    >>> build_option_matrix([[-1.0, -2.0], [-3.0]], "log.json")
    array([[ -1.,  -2.],
           [ -3., -inf]])
    """
    sizes = {len(row) for row in rows}
    if len(sizes) == 1:
        return np.array(rows, dtype=np.float64)
    check_table_size(len(rows), max(sizes), sum(map(len, rows)), where)
    matrix = np.full((len(rows), max(sizes)), -np.inf)
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    return matrix


def normalise_by_length(values: Floats, options: Sequence[Sequence[str]], where: str) -> Floats:
    """Log-likelihood per character, as in the harness's `acc_norm`: the space before an option does
    not count.
    """
    lengths: list[list[float]] = []
    for row in options:
        lengths.append([float(max(1, len(option.removeprefix(" ")))) for option in row])
    per_character = values / build_option_matrix(lengths, where)
    return np.where(np.isfinite(values), per_character, -np.inf)


def compute_top_probability(values: Floats) -> Floats:
    """The probability of the most likely option among the options.

    >>> compute_top_probability(np.log([[0.1, 0.3]]))
    array([0.75])
    """
    return 1.0 / np.exp(values - values.max(axis=1, keepdims=True)).sum(axis=1)


def find_gold(
    targets: Sequence[Json],
    options: Sequence[Sequence[str]] | None,
    values: Floats,
    *,
    correct: Sequence[float | None],
    where: str,
) -> Ints | None:
    """The number of the right option, from targets that are option texts, numbers or letters.

    A text that is one of the options is that option, whatever else it could be: "38" is not option
    38. Of the readings that fit every row, the first that agrees with the log's own right and wrong
    is taken. None where no reading fits and the log says right or wrong: then that is all there is
    to know.
    """
    best = np.argmax(values, axis=1)  # of equal ones the first, as the harness does
    sizes = np.isfinite(values).sum(axis=1)
    texts = [as_text(target) for target in targets]
    names = options
    if names is None:
        names = [[""] * int(size) for size in sizes]
    pairs = zip(texts, names, strict=True)
    readings = list(zip(*[_read_target(text, row) for text, row in pairs], strict=True))
    if options is None:
        del readings[0]  # there are no texts to find a target among
    candidates: list[Ints] = []
    for places in readings:
        if None not in places:
            candidates.append(np.array(places, dtype=np.int64))

    known = np.array(correct, dtype=np.float64)  # nan where nothing is said
    binary = np.isin(known, (0.0, 1.0))
    for gold in candidates:
        if ((gold == best) == (known == 1))[binary].all():
            return gold
    if not binary.any():
        raise InputError(
            f"{where}: the target {str(targets[0])[:40]!r} is neither the text, the number nor the "
            "letter of an option, and no field says right or wrong; log the metric acc."
        )
    if candidates and binary.all():
        ours = float((candidates[0] == best).mean())
        theirs = float(known.mean())
        raise InputError(
            f"{where}: the log counts {theirs:.10g} of its answers as right, its most likely "
            f"options give {ours:.10g}; the file is damaged or its targets are of an unknown form."
        )
    return None


def _read_target(target: str, options: Sequence[str]) -> tuple[int | None, int | None, int | None]:
    """The option that a target means: by its text, by its number, by its letter."""
    by_text = by_number = by_letter = None
    plain = target.strip()
    names = [option.strip() for option in options]
    if names.count(plain) == 1:
        by_text = names.index(plain)
    if is_count(plain) and int(plain) < len(options):
        by_number = int(plain)
    letter = target.strip(" ().").upper()
    if len(letter) == 1:
        place = string.ascii_uppercase.find(letter)
        by_letter = None
        if 0 <= place < len(options):
            by_letter = place
    return by_text, by_number, by_letter
