"""How a file that cannot be read by its names may be meant: the first guess with which it can be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure.formats.column_names import (
    ROW_SUM_SLACK,
    SUGGESTION_COLUMNS,
    SUGGESTION_ROWS,
    VALUES,
    find_parts,
    list_texts,
    read_numbers,
)
from howsure.formats.contents import Contents
from howsure.formats.files import read, read_beginning
from howsure.predictions.read_options import ReadOptions

RIGHT_NAMES = (
    "ok",
    "right",
    "hit",
    "passed",
    "success",
    "acc",
    "was_right",
)  # a column of right and wrong
MOST_CLASSES = 1000  # that a column of labels is guessed to have


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
    for names in guesses:
        candidate = replace(options, names={**names, **options.names})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                preds = read(path, options=candidate)
        except InputError:
            continue
        if preds.known_labels is not None or preds.known_correct is not None:
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
    parts = find_parts(contents)
    numbers: dict[str, Floats] = {}
    for name in names:
        column = read_numbers(contents.entries[name], contents.commas)
        if column is not None and name not in parts:
            numbers[name] = column
    shares: list[str] = []
    for name, column in numbers.items():
        if column.min() >= 0 and column.max() <= 1 and not np.isin(column, (0, 1)).all():
            shares.append(name)
    values: list[dict[str, str]] = []
    if len(shares) > 1:
        total = sum(numbers[name] for name in shares)
        if np.allclose(total, 1, atol=ROW_SUM_SLACK):
            values.append({"probs": ",".join(shares)})
    judged = any(name.strip().lower() in RIGHT_NAMES for name in names)
    answered = judged or bool({"prediction", "correct"} & set(parts.values()))
    for name in shares:
        # Beside an answer a number says how sure that is, else how likely class 1 is.
        kinds = ("confidence", "probs") if answered else ("probs", "confidence")
        values += [{kind: name} for kind in kinds]
    for name, column in numbers.items():
        if answered and name not in shares and not np.equal(column, np.rint(column)).all():
            values.append({"score": name})
    if set(VALUES) & set(parts.values()):
        values.insert(0, {})
    truths: list[dict[str, str]] = []
    for name in names:
        if name not in parts and name not in shares:
            classes = list_texts(contents.entries[name])
            if 2 <= len(classes) <= MOST_CLASSES:
                truths.append({"labels": name})
                if classes <= {"0", "1", "True", "False", "true", "false"}:
                    at = 0 if name.strip().lower() in RIGHT_NAMES else len(truths)
                    truths.insert(at, {"correct": name})
    if {"labels", "correct"} & set(parts.values()):
        truths.insert(0, {})
    return chain({**value, **truth} for value in values for truth in truths)
