"""Answers and labels that a file or a frame gives beside its numbers: what they name, and whether
both say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, InputError
from howsure._core.indices import repeat_values
from howsure._core.text import is_count, make_text_array
from howsure.predictions.class_labels import (
    CLASS_COLUMN_STARTS,
    HINT_CHARACTERS,
    list_names,
    number_classes,
    simplify_text,
)
from howsure.predictions.input_shapes import ROW_SUM_TOLERANCE
from howsure.predictions.predictions import Predictions
from howsure.predictions.read_options import Answers

# Words for yes and no, of which yes is class 1 wherever it stands.
OPPOSITES = {
    "yes": "no",
    "y": "n",
    "true": "false",
    "t": "f",
    "positive": "negative",
    "pos": "neg",
}
TELLING_ANSWERS = 20  # fewer answers may lie on two sides of one half by chance
TELLING_ROWS = 1000  # that are looked at
MOST_OF_OPTIONS = 1.05  # the probabilities of all options together, with some rounding
TELLING_SIDE = 5  # so many of each
MANY_CLASSES = 1 << 31  # where nobody said how many there are


def name_numbers(given: Array, classes: Sequence[str] | None) -> Array:
    """Numbers that name classes, as these names: where classes are called by numbers, a number is
    such a name and no place among the columns; of yes and no, 1 is yes.

    >>> name_numbers(np.array([1, 3]), ("1", "2", "3")).tolist()
    ['1', '3']
    >>> name_numbers(np.array([0, 1]), ("positive", "negative")).tolist()
    ['negative', 'positive']
    >>> name_numbers(np.array([0, 1]), ("cat", "dog")).tolist()
    [0, 1]
    """
    if classes is None or given.dtype.kind not in "biuf" or given.ndim != 1:
        return given
    if (given != np.floor(given)).any():
        return given
    numbers = given.astype(np.int64)
    if all(is_count(name.removeprefix("-")) for name in classes):
        return numbers.astype(np.str_)
    first, last = classes[0], classes[-1]
    reversed_words = len(classes) == 2 and OPPOSITES.get(first.lower()) == last.lower()
    if reversed_words and np.isin(numbers, (0, 1)).all():
        return np.where(numbers == 1, first, last)
    return given


def is_right(
    answer: int | str, label: str, k: int | None = None, names: tuple[str, ...] | None = None
) -> bool:
    """Whether an answer is what a label says: classes by name or number, other answers as texts.

    >>> is_right(1, "dog", 2, ("cat", "dog")), is_right("dog", "1", 2, ("cat", "dog")), is_right("Paris", "paris")
    (True, True, True)
    """
    if names is not None and answer in names:
        answer = names.index(str(answer))
    if isinstance(answer, str):
        return simplify_text(answer) == simplify_text(label)
    given = np.array([label])
    if names is not None and label not in names and is_count(label):
        given = name_numbers(np.array([int(label)]), names)
    if k is None:
        k = MANY_CLASSES if names is None else len(names)
    try:
        return answer == int(number_classes(given, k, names)[0])
    except InputError:
        need = "class numbers are needed"
        if names is not None:
            need = f"the classes are {list_names(names)}"
        elif k != MANY_CLASSES:
            need = f"class numbers 0 to {k - 1} are needed"
        got = f"is {label[:HINT_CHARACTERS]!r}"
        raise InputError("the label", got=got, need=need) from None


def take_answers(
    preds: Predictions, given: Array, count: Array | None, answers: Answers | None
) -> Predictions:
    """Predictions whose own answers stand beside the numbers of all classes.

    Refused where an answer is not the most probable class, ties apart; `answers="file"` takes the
    answers that were given, each with its own probability.
    """
    answer = number_classes(given, int(preds.values.shape[-1]), preds.class_names, "prediction")
    if count is not None:
        answer = repeat_values(answer, checks.counts(count, len(answer)))
    checks.same_length(answer, "prediction", preds.n, preds.kind)
    rows = np.arange(preds.n)
    values = preds.values if preds.values.ndim == 2 else preds.probs
    if answers == "file":
        return Predictions.from_confidence(
            preds.probs[rows, answer].clip(0.0, 1.0),
            prediction=answer,
            labels=preds.known_labels,
            k=preds.k,
            ids=preds.ids,
            group=preds.group,
            weight=preds.weight,
            class_names=preds.class_names,
            attributes=preds.attributes,
        )
    differ = values[rows, answer] < values.max(axis=1)
    if not differ.any():
        return preds
    i = checks.find_first(differ)
    names = preds.class_names or tuple(map(str, range(values.shape[1])))
    best = names[int(values[i].argmax())]
    raise InputError(
        "prediction",
        row=None if count is not None else i,
        got=f"is {names[int(answer[i])]!r}, the most probable class is {best!r} "
        f"({int(differ.sum()):,} of {preds.n:,} rows differ)",
        need="say which answers count: answers='file' or 'argmax' (ReadOptions, from_frame)",
        hint="of a command, --answers file or --answers argmax",
    )


def refuse_class_1_confidence(confidence: Array, answers: Array, column: str) -> None:
    """Raise where a confidence lies above one half for all answers of one kind and below it for all
    others: that is the probability of a class, and no answer of two is less sure than one half.
    """
    if confidence.ndim != 1 or answers.shape != confidence.shape or len(answers) < TELLING_ANSWERS:
        return
    above = confidence > 0.5
    if not TELLING_SIDE <= above.sum() <= len(above) - TELLING_SIDE:
        return
    high = {str(answer) for answer in np.unique(answers[above].astype(np.str_)).tolist()}
    low = {str(answer) for answer in np.unique(answers[~above].astype(np.str_)).tolist()}
    if len(high) != 1 or len(low) != 1 or high == low:
        return
    (one,), (other,) = high, low
    option = f"--name {quote(f'probs={column}')}"
    if (other, one) != ("0", "1"):
        option += f" --name {quote(f'classes={other},{one}')}"
    raise InputError(
        f"{column!r}",
        got=f"is above one half exactly where the answer is {one!r}",
        need=f"so it is the probability of {one!r}, not how sure each answer is",
        hint=f"Read it with {option}, or if it is meant with --name {quote(f'confidence={column}')}",
    )


def refuse_top_probability(values: Array, answers: Array, column: str) -> None:
    """Raise where one column is taken for the probability of class 1 of two, and there are more
    answers than two, or both beside numbers that are never below one half: that is how sure each
    answer is.
    """
    if values.shape not in (answers.shape, (*answers.shape, 1)) or answers.ndim != 1:
        return
    kinds, times = np.unique(answers.astype(np.str_), return_counts=True)
    got = f"stands beside {len(kinds)} different answers"
    if len(kinds) < 3:
        if len(kinds) < 2 or times.min() < TELLING_SIDE or values.min() < 0.5:
            return
        got = f"is never below one half, beside {times[0]:,} answers {str(kinds[0])!r}"
    raise InputError(
        f"{column!r}",
        got=got,
        need="so it is how sure each answer is, not the probability of class 1",
        hint=f"Read it with --name {quote(f'confidence={column}')} (confidence={column!r})",
    )


def refuse_other_numbers(kind: str, values: Array, column: str, named: bool) -> None:
    """Raise where numbers are called logits and all rows are distributions, or where a list of
    log-probabilities without names of options holds more than all options can have together.
    """
    if values.ndim != 2 or values.shape[1] < 2 or len(values) < TELLING_ANSWERS:
        return
    rows = values[:TELLING_ROWS].astype(np.float64)
    start = next((one for one in CLASS_COLUMN_STARTS if column.lower().startswith(one)), None)
    columns = column if start is None else f"{start}*"
    sums_to_one = (np.abs(rows.sum(axis=1) - 1) < ROW_SUM_TOLERANCE[4]).all()
    if kind == "logits" and sums_to_one and rows.min() >= 0:
        raise InputError(
            f"{columns!r}",
            got="holds rows that are not negative and sum to 1",
            need="so these are probabilities, not logits",
            hint=f"Read them with --name {quote(f'probs={columns}')}, or if they are meant with "
            f"--name {quote(f'logits={columns}')}",
        )
    if kind != "logprobs" or named or rows.max() > 0:
        return
    if (np.exp(rows).sum(axis=1) > MOST_OF_OPTIONS).mean() > 0.5:
        raise InputError(
            f"{columns!r}",
            got="holds lists whose probabilities sum to more than 1",
            need="so these are log-probabilities of tokens, not of options",
            hint="Give the exponential of their sum as confidence, or if options are meant say "
            f"--name {quote(f'logprobs={columns}')}",
        )


def check_ids(ids: Array | None) -> None:
    """Raise where an id stands for two samples."""
    if ids is None or ids.ndim != 1:
        return
    if ids.dtype.kind == "O":  # objects of several kinds have no order
        ids = make_text_array([str(one) for one in ids.tolist()])
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(same):
        i, j = sorted((int(order[same[0]]), int(order[same[0] + 1])))
        raise InputError(
            "ids",
            row=j,
            got=f"is {str(ids[j])[:60]!r} like row {i} ({len(same):,} repeated ids)",
            need="an id names one sample, so use `group` for what several samples share",
        )
