"""How a file that cannot be read by its names may be meant: the first guess with which it can be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from howsure._core.checks import LISTED_CLASSES, InputError
from howsure.formats.cells import is_whole
from howsure.formats.column_names import (
    SUGGESTION_COLUMNS,
    SUGGESTION_ROWS,
    VALUES,
    find_numbers,
    list_texts,
)
from howsure.formats.contents import Contents
from howsure.formats.files import read, read_beginning
from howsure.formats.receipts import TELLING_NAMES
from howsure.predictions.given_answers import TELLING_ANSWERS
from howsure.predictions.read_options import ReadOptions

RIGHT_NAMES = TELLING_NAMES["correct"]  # of a column of right and wrong
MOST_CLASSES = 1000  # that a column of labels is guessed to have
# A guess is tried by reading the file: of a large one fewer are tried.
MOST_BYTES_TRIED = 1 << 26
FEWEST_GUESSES, MOST_GUESSES = 12, 200


def propose_options(path: Path, options: ReadOptions) -> ReadOptions | None:
    """The options with names that make a file readable, checked by reading it; None where no guess
    does.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("sick,risk\\n1,0.9\\n0,0.2\\n1,0.4\\n")
    >>> proposal = propose_options(path, ReadOptions())
    >>> proposal and proposal.names
    {'probs': 'risk', 'labels': 'sick'}
    """
    try:
        contents = read_beginning(path, SUGGESTION_ROWS)
    except InputError:
        return None
    guesses = _guess_columns(contents) if contents.table else _guess_arrays(contents)
    most = MOST_BYTES_TRIED // max(1, path.stat().st_size)
    for names in islice(guesses, min(MOST_GUESSES, max(FEWEST_GUESSES, most))):
        candidate = replace(options, names={**names, **options.names})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                preds = read(path, options=candidate)
        except InputError:
            continue
        if preds.vectors and preds.known_labels is None:
            continue
        if not preds.vectors and preds.known_correct is None and preds.known_loss is None:
            continue
        # Labels that all answers hit are most likely the answers themselves.
        if preds.vectors and preds.n >= TELLING_ANSWERS and preds.correct.all():
            continue
        return candidate
    return None


def _guess_arrays(contents: Contents) -> Iterator[dict[str, str]]:
    """A matrix of numbers beside a column of as many whole numbers, whatever both are called."""
    for name, entry in contents.entries.items():
        if len(entry.shape) != 2 or not entry.dtype.startswith("float"):
            continue
        for other, labels in contents.entries.items():
            if labels.shape == entry.shape[:1] and labels.dtype.startswith(("int", "uint")):
                yield {"probs": name, "labels": other}
                yield {"logits": name, "labels": other}


def _guess_columns(contents: Contents) -> Iterator[dict[str, str]]:
    """Names for the values of a table and for what says right or wrong, the likeliest first."""
    names = list(contents.entries)[:SUGGESTION_COLUMNS]
    found = find_numbers(contents)
    parts = found.parts
    shares = [name for name in found.shares if parts.get(name) in (None, "prediction")]
    values: list[dict[str, str]] = []
    for name, part in parts.items():
        if part in VALUES:
            # What is called a probability or a confidence may be another kind of number.
            other = "probs" if name in found.shares else "logits"
            values += [{}, {other: name}]
    if found.sums_to_one(shares):
        values.append({"probs": ",".join(shares)})
    if found.logs:
        values.append({"logprobs": ",".join(found.logs)})
    judged = any(name.strip().lower() in RIGHT_NAMES for name in names)
    answered = judged or bool({"prediction", "correct"} & set(parts.values()))
    for name in shares:
        # Beside an answer a number says how sure that is, else how likely class 1 is.
        kinds = ("confidence", "probs") if answered else ("probs", "confidence")
        values += [{kind: name} for kind in kinds]
    for name in found.beyond:
        if name not in parts:
            values.append({"score" if answered else "logits": name})
    for name in names:
        if name not in parts and all(
            text.startswith("[") for text in list_texts(contents.entries[name])
        ):
            values += [{"probs": name}, {"logits": name}]
    truths: list[dict[str, str]] = []
    for name in names:
        if name not in parts and name not in found.shares:
            classes = list_texts(contents.entries[name])
            if 2 <= len(classes) <= MOST_CLASSES:
                truths.append({"labels": name})
                if classes <= {"0", "1", "True", "False", "true", "false"}:
                    at = 0 if name.strip().lower() in RIGHT_NAMES else len(truths)
                    meaning = "loss" if name in found.unsure else "correct"
                    truths.insert(at, {meaning: name})
    for name, part in parts.items():
        if part in ("labels", "correct"):
            truths.insert(0, {})
            # Numbers that do not begin with 0 are names.
            classes = list_texts(contents.entries[name])
            if (
                part == "labels"
                and 2 <= len(classes) <= LISTED_CLASSES
                and all(map(is_whole, classes))
            ):
                truths.insert(1, {"classes": ",".join(sorted(classes, key=int))})
    return chain({**value, **truth} for value in values for truth in truths)
