"""Log-likelihoods of answer options: the matrix, the right option, and whether the log agrees."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence

import numpy as np

from howsure._core.check import Floats, InputError, Ints
from howsure._core.text import is_count
from howsure.formats.logs.log import fits
from howsure.formats.logs.tree import Json, text

Reading = Callable[[str, Sequence[str]], int | None]


def matrix(rows: Sequence[Sequence[float]], where: str) -> Floats:
    """One row per question, filled up with minus infinity where a question has fewer options.

    >>> matrix([[-1.0, -2.0], [-3.0]], "log.json")
    array([[ -1.,  -2.],
           [ -3., -inf]])
    """
    sizes = {len(row) for row in rows}
    if len(sizes) == 1:
        return np.array(rows, dtype=np.float64)
    fits(len(rows), max(sizes), sum(map(len, rows)), where)
    out = np.full((len(rows), max(sizes)), -np.inf)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def by_length(values: Floats, options: Sequence[Sequence[str]], where: str) -> Floats:
    """Log-likelihood per character, as in the harness's `acc_norm`: the space before an option does
    not count.
    """
    lengths = matrix(
        [[float(max(1, len(option.removeprefix(" ")))) for option in row] for row in options], where
    )
    return np.where(np.isfinite(values), values / lengths, -np.inf)


def top(values: Floats) -> Floats:
    """The probability of the most likely option among the options.

    >>> top(np.log([[0.1, 0.3]]))
    array([0.75])
    """
    return 1.0 / np.exp(values - values.max(axis=1, keepdims=True)).sum(axis=1)


def gold(
    targets: Sequence[Json],
    options: Sequence[Sequence[str]] | None,
    values: Floats,
    correct: Sequence[float | None],
    *,
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
    fitting = [g for g in _candidates(targets, options, sizes) if g is not None]
    known = np.array([np.nan if c is None else c for c in correct])
    binary = np.isin(known, (0.0, 1.0))
    for found in fitting:
        if ((found == best) == (known == 1))[binary].all():
            return found
    if not binary.any():
        raise InputError(_unreadable(targets, where))
    if fitting and binary.all():
        ours, theirs = float((fitting[0] == best).mean()), float(known.mean())
        raise InputError(
            f"{where}: the log counts {theirs:.10g} of its answers as right, its most likely options give {ours:.10g}; "
            "the file is damaged or its targets are of an unknown form."
        )
    return None


def _candidates(
    targets: Sequence[Json], options: Sequence[Sequence[str]] | None, sizes: Ints
) -> list[Ints | None]:
    texts = [text(t) for t in targets]
    known: Sequence[Sequence[str]] = [[""] * int(k) for k in sizes] if options is None else options
    readings: tuple[Reading, ...] = (
        (_as_number, _as_letter) if options is None else (_as_text, _as_number, _as_letter)
    )
    return [_read(reading, texts, known) for reading in readings]


def _read(
    reading: Reading, targets: Sequence[str], options: Sequence[Sequence[str]]
) -> Ints | None:
    found = [reading(target, row) for target, row in zip(targets, options, strict=True)]
    numbers = [f for f in found if f is not None]
    return np.array(numbers, dtype=np.int64) if len(numbers) == len(found) else None


def _as_text(target: str, options: Sequence[str]) -> int | None:
    plain = [option.strip() for option in options]
    return plain.index(target.strip()) if plain.count(target.strip()) == 1 else None


def _as_number(target: str, options: Sequence[str]) -> int | None:
    digits = target.strip()
    return int(digits) if is_count(digits) and int(digits) < len(options) else None


def _as_letter(target: str, options: Sequence[str]) -> int | None:
    letter = target.strip(" ().").upper()
    place = string.ascii_uppercase.find(letter) if len(letter) == 1 else -1
    return place if 0 <= place < len(options) else None


def _unreadable(targets: Sequence[Json], where: str) -> str:
    return (
        f"{where}: the target {str(targets[0])[:40]!r} is neither the text, the number nor the letter of an option, "
        "and no field says right or wrong; log the metric acc."
    )
