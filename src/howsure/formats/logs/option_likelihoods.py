"""Log-likelihoods of answer options: the matrix, the right option, and whether the log agrees."""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np

from howsure._core.check import Floats, InputError, Ints
from howsure._core.text import is_count
from howsure.formats.logs.json_tree import Json, as_text
from howsure.formats.logs.log import check_table_size


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
    readings = [_read_number, _read_letter]
    names: Sequence[Sequence[str]] = [[""] * int(size) for size in sizes]
    if options is not None:
        readings = [_read_text, *readings]
        names = options
    candidates: list[Ints] = []
    for read in readings:
        places = [read(text, row) for text, row in zip(texts, names, strict=True)]
        known_places = [place for place in places if place is not None]
        if len(known_places) == len(places):
            candidates.append(np.array(known_places, dtype=np.int64))

    known = np.array([np.nan if c is None else c for c in correct])
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


def _read_text(target: str, options: Sequence[str]) -> int | None:
    names = [option.strip() for option in options]
    return names.index(target.strip()) if names.count(target.strip()) == 1 else None


def _read_number(target: str, options: Sequence[str]) -> int | None:
    digits = target.strip()
    return int(digits) if is_count(digits) and int(digits) < len(options) else None


def _read_letter(target: str, options: Sequence[str]) -> int | None:
    letter = target.strip(" ().").upper()
    if len(letter) != 1:
        return None
    place = string.ascii_uppercase.find(letter)
    return place if 0 <= place < len(options) else None
