"""How a file that cannot be read by its names may be meant: the guesses with which it can be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from howsure._core.checks import LISTED_CLASSES, InputError
from howsure.formats.cells import is_whole
from howsure.formats.column_names import (
    SUGGESTION_COLUMNS,
    SUGGESTION_ROWS,
    VALUES,
    FoundNumbers,
    find_numbers,
    list_texts,
)
from howsure.formats.contents import Contents
from howsure.formats.files import list_columns, read, read_beginning
from howsure.formats.receipts import TELLING_NAMES, TELLING_STARTS
from howsure.predictions import Predictions
from howsure.predictions.class_labels import COLUMN_ALIASES
from howsure.predictions.given_answers import TELLING_ANSWERS
from howsure.predictions.read_options import ReadOptions

RIGHT_NAMES = TELLING_NAMES["correct"]  # of a column of right and wrong
# What the numbers of a file may mean whose names are understood.
MEANINGS = (
    ("percent", True),
    ("answers", "file"),
    ("answers", "argmax"),
    ("multilabel", True),
    ("renormalise", True),
)
MOST_CLASSES = 1000  # that a column of labels is guessed to have
# A guess is tried by reading the file: of a large one fewer are tried.
MOST_BYTES_TRIED = 1 << 26
FEWEST_GUESSES, MOST_GUESSES = 12, 200


def propose_options(path: Path, options: ReadOptions) -> ReadOptions | None:
    """The likeliest options with which a file can be judged; None where no guess does.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("sick,risk\\n1,0.9\\n0,0.2\\n1,0.4\\n")
    >>> proposal = propose_options(path, ReadOptions())
    >>> proposal and proposal.names
    {'probs': 'risk', 'labels': 'sick'}
    """
    return next(list_proposals(path, options), None)


def list_proposals(path: Path, options: ReadOptions) -> Iterator[ReadOptions]:
    """Options with which a file can be judged, each checked by reading it, the likeliest first."""
    try:
        contents = read_beginning(path, SUGGESTION_ROWS)
    except InputError:
        return
    meanings = [replace(options, **{field: value}) for field, value in MEANINGS]
    guess_names = _guess_columns if contents.table else _guess_arrays
    most = MOST_BYTES_TRIED // max(1, path.stat().st_size)
    most = min(MOST_GUESSES, max(FEWEST_GUESSES, most))
    guesses = chain(meanings, islice(guess_names(contents, options), most))
    for guess in dict.fromkeys(guesses):  # each once
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                preds = read(path, options=guess)
        except InputError:
            continue
        if guess == options or not _can_be_judged(preds):
            continue
        # Labels that all answers hit are most likely the answers themselves.
        named = guess.names != options.names
        if named and preds.vectors and preds.n >= TELLING_ANSWERS and preds.correct.all():
            continue
        yield guess


def find_label_file(
    path: Path, others: Sequence[str], options: ReadOptions
) -> tuple[str, str] | None:
    """Which of the other files holds the labels of this one, and the column to join by."""
    columns = list_columns(path)
    for other in others:
        try:
            shared = [name for name in list_columns(other) if name in columns]
        except (InputError, ModuleNotFoundError):  # not a table, or of a format without a reader
            continue
        for join in dict.fromkeys(("id", *shared)):
            try:
                preds = read(path, options=options, labels=other, join=join)
            except InputError:
                continue
            if _can_be_judged(preds):
                return other, join
    return None


def list_label_columns(names: Sequence[str]) -> list[str]:
    """The columns that are called as labels are."""
    return [name for name in names if name.strip().lower() in COLUMN_ALIASES["labels"]]


def _can_be_judged(preds: Predictions) -> bool:
    if preds.vectors:
        return preds.known_labels is not None
    return preds.known_correct is not None or preds.known_loss is not None


def _guess_arrays(contents: Contents, options: ReadOptions) -> Iterator[ReadOptions]:
    """A matrix of numbers beside a column of as many whole numbers, whatever both are called."""
    for name, entry in contents.entries.items():
        if len(entry.shape) != 2 or not entry.dtype.startswith("float"):
            continue
        for other, labels in contents.entries.items():
            if labels.shape == entry.shape[:1] and labels.dtype.startswith(("int", "uint")):
                for kind in ("probs", "logits"):
                    yield replace(options, names={kind: name, "labels": other, **options.names})


def _list_classes(contents: Contents, name: str) -> set[str]:
    """The classes of a column; pandas writes whole numbers beside gaps as 1.0."""
    return {text.removesuffix(".0") for text in list_texts(contents.entries[name])}


def _guess_columns(contents: Contents, options: ReadOptions) -> Iterator[ReadOptions]:
    """Names for the values of a table and for what says right or wrong, the likeliest first."""
    names = list(contents.entries)[:SUGGESTION_COLUMNS]
    found = find_numbers(contents)
    parts = found.parts
    shares = [name for name in found.shares if parts.get(name) in (None, "prediction")]
    values: list[dict[str, str]] = []
    for name, part in parts.items():
        if part not in VALUES:
            continue
        values.append({})
        # What is called a probability or a confidence may be another kind of number; one of many
        # columns is that of its class.
        if list(parts.values()).count(part) == 1:
            other = "probs" if name in found.shares else "logits"
            values.append({other: name})
            if part == "probs" and name in found.shares:
                values.append({"confidence": name})
    if found.sums_to_one(shares):
        values.append({"probs": ",".join(shares)})
    if found.logs:
        values.append({"logprobs": ",".join(found.logs)})
    judged = any(name.strip().lower() in RIGHT_NAMES for name in names)
    answered = judged or bool({"prediction", "correct"} & set(parts.values()))
    cut: list[str] = []
    for name in shares:
        # Beside an answer a number says how sure that is, else how likely class 1 is.
        kinds = ("confidence", "probs") if answered else ("probs", "confidence")
        if found.cuts_answers(name):
            kinds = ("probs",)
            cut.append(name)
        values += [{kind: name} for kind in kinds]
    percentages: list[str] = []
    for name, column in found.numbers.items():
        plain = name.strip().lower()
        telling = plain in TELLING_NAMES["confidence"] or plain.startswith(TELLING_STARTS)
        if name not in parts and telling and column.min() >= 0 and 1 < column.max() <= 100:
            percentages.append(name)
            values.append({"confidence": name})
    for name in found.beyond:
        if name not in parts:
            values.append({"score" if answered else "logits": name})
    for name in names:
        if name not in parts and all(
            text.startswith("[") for text in list_texts(contents.entries[name])
        ):
            values += [{"probs": name}, {"logits": name}]
    truths = _guess_truths(contents, found, names, answered=answered)
    for value in values:
        percent = options.percent or value.get("confidence") in percentages
        for truth in truths:
            guess = replace(options, names={**value, **truth, **options.names}, percent=percent)
            yield guess
            if value.get("probs") in cut:  # perhaps not at one half
                yield replace(guess, answers=options.answers or "file")


def _guess_truths(
    contents: Contents, found: FoundNumbers, names: list[str], *, answered: bool
) -> list[dict[str, str]]:
    """Names for what says right or wrong, the likeliest first."""
    parts = found.parts
    truths: list[dict[str, str]] = []
    answers: set[str] = set()
    for name, part in parts.items():
        if part == "prediction":
            answers = _list_classes(contents, name)
    if len(answers) > LISTED_CLASSES:  # free texts, which need not be those of the labels
        answers = set()
    for name in names:
        if name not in parts and name not in found.shares:
            classes = list_texts(contents.entries[name])
            if 2 <= len(classes) <= MOST_CLASSES:
                # Labels have more classes in common with the answers than not; a time has none.
                given = _list_classes(contents, name)
                alike = len(given & answers) > len(given ^ answers)
                if alike or not answers:
                    truths.append({"labels": name})
                called_right = name.strip().lower() in RIGHT_NAMES
                may_be_right = classes <= {"0", "1", "True", "False", "true", "false"}
                if may_be_right and (called_right or not alike):
                    at = 0 if called_right else len(truths)
                    meaning = "loss" if name in found.unsure else "correct"
                    truths.insert(at, {meaning: name})
    for name, part in parts.items():
        if part in ("labels", "correct"):
            truths.insert(0, {})
            # Of two columns of labels one may be the answer, as pipelines call it.
            for other in list_label_columns(names):
                if part == "labels" and other != name and not answered:
                    truths.insert(0, {"prediction": name, "labels": other})
            # Numbers that do not begin with 0 are names.
            classes = list_texts(contents.entries[name])
            if (
                part == "labels"
                and "0" not in classes
                and 2 <= len(classes) <= LISTED_CLASSES
                and all(map(is_whole, classes))
            ):
                truths.insert(1, {"classes": ",".join(sorted(classes, key=int))})
    return truths
