"""Which rows of a file count: those of the wanted split, and those with an answer.

Rows come in runs, one after the other. Rows without an answer are told apart by `no_answer`,
counted by their reason, and left out or counted as wrong. What an answer is worth is said at the
end: how sure, how often given, whether the same as another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError
from howsure.formats.column_names import make_no_split_error, make_several_splits_error
from howsure.predictions.input_shapes import Unanswered
from howsure.predictions.predictions import describe_outside
from howsure.predictions.read_options import ReadOptions

if TYPE_CHECKING:  # `fields` imports this module
    from howsure.formats.fields import Fields

NO_ANSWER_REASONS = ("unparseable", "refused", "missing")


def select_file(runs: Iterable[Fields], options: ReadOptions) -> Fields:
    """All wanted rows of a file as one, those without an answer counted."""
    rows = concat_runs(list(select_split(runs, options.split)))
    return next(skip_empty_runs([select_answers(rows, options)]))


def select_runs(
    runs: Iterable[Fields], options: ReadOptions, *, whole: bool = True
) -> Iterator[Fields]:
    """The wanted rows of a file run by run; `whole=False` for a piece of a file."""
    chosen = select_split(runs, options.split, whole=whole)
    return skip_empty_runs(select_answers(run, options) for run in chosen)


# Rows of a split


def select_split(
    runs: Iterable[Fields], split: str | None, *, whole: bool = True
) -> Iterator[Fields]:
    """The rows of the split, run by run; a file with several splits is refused where none is named.

    A `whole` file must have the split; a piece of a file need not.
    """
    seen: dict[str, Path] = {}
    for run in runs:
        words = run.arrays.get("split")
        if words is None:
            yield run
            continue
        if words.ndim != 1:
            got = "has lists in the column split"
            raise InputError(run.path.name, got=got, need="one word per row is needed")
        if words.dtype != object:
            words = words.astype(np.str_)
        seen |= dict.fromkeys(words.tolist(), run.path)
        if split is None and len(seen) > 1:
            raise make_several_splits_error(run.path, sorted(seen))
        keep = np.ones(len(words), dtype=np.bool_)
        if split is not None:
            keep = words == split
        if keep.any():
            yield _select_rows(run, keep)
    if whole and split is not None and seen and split not in seen:
        raise make_no_split_error(split, sorted(seen), next(iter(seen.values())))


def _select_rows(run: Fields, keep: Bools) -> Fields:
    """These rows of every array of the same length; others are left for the checks to complain
    about. The column of splits has served.
    """
    arrays = {part: a for part, a in run.arrays.items() if part != "split"}
    if keep.all():
        return replace(run, arrays=arrays)
    for part, a in arrays.items():
        if part.startswith("mc_") and a.ndim > 1 and a.shape[1] == len(keep):
            arrays[part] = a[:, keep]
        elif len(a) == len(keep):
            arrays[part] = a[keep]
    lines = None if run.lines is None else run.lines[keep]
    return replace(run, arrays=arrays, lines=lines)


# Runs as one


def concat_runs(runs: Sequence[Fields]) -> Fields:
    """Runs of rows of one file as one."""
    first = runs[0]
    if len(runs) == 1:
        return first
    for run in runs[1:]:
        odd = ", ".join(sorted(set(run.arrays) ^ set(first.arrays)))
        if odd or run.kind != first.kind or run.class_names != first.class_names:
            start = "" if run.lines is None else f" from line {int(run.lines[0])} on"
            got = f"changes{start}: {odd or 'the classes'} is not the same in all rows"
            raise InputError(run.path.name, got=got, hint="give every row the same columns")
    arrays: dict[str, Array] = {}
    for part in first.arrays:
        parts = [run.arrays[part] for run in runs]
        try:
            arrays[part] = concat_arrays(parts, axis=1 if part.startswith("mc_") else 0)
        except ValueError:
            shapes = ", ".join(sorted({str(a.shape[1:]) for a in parts}))
            got = f"changes its shape between rows ({shapes})"
            raise InputError(part, where=first.path.name, got=got) from None
    lines = first.lines
    if lines is not None:
        lines = np.concatenate([run.lines for run in runs if run.lines is not None])
    return replace(first, arrays=arrays, lines=lines)


def concat_arrays(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays behind each other; where some are text and others whole numbers, all become text."""
    if len({a.dtype.kind in "UO" for a in arrays}) > 1:
        arrays = [a if a.dtype.kind in "UO" else a.astype(np.str_) for a in arrays]
    return np.concatenate(arrays, axis=axis)


# Rows with an answer


def select_answers(data: Fields, options: ReadOptions) -> Fields:
    """The rows with an answer and a confidence, which is a share, and the count of the others by
    reason.

    `no_answer="wrong"` keeps rows without an answer that have a confidence, and counts them as
    wrong.
    """
    if options.percent:
        data = convert_percent(data)
    arrays = dict(data.arrays)
    value = arrays[data.kind]
    if options.drop_outside and data.kind == "confidence":
        value = value.astype(np.float64)
        value = np.where((value >= 0) & (value <= 1), value, np.nan)
        arrays["confidence"] = value
        arrays.setdefault("no_answer", np.full(len(value), "", dtype=np.str_))
    reasons = arrays.pop("no_answer", None)
    if reasons is None:
        return data
    if value.ndim != 1 or len(reasons) != len(value):
        return replace(data, arrays=arrays)
    if data.kind == "confidence":
        # Refused here, while rows are still numbered as in the file.
        bad = (value < 0) | (value > 1)
        if bad.any():
            line = None if data.lines is None else int(data.lines[checks.find_first(bad)])
            error = describe_outside(np.where(np.isnan(value), 0, value), bad)
            raise error.at(data.path.name, line)
    silent: Bools = reasons != ""
    for part in ("correct", "grade"):
        if part in arrays:
            arrays[part] = np.where(silent, 0, arrays[part])  # no answer is not a right one
    missing: Bools = np.isnan(value.astype(np.float64))
    keep = ~missing
    if options.no_answer != "wrong":
        keep &= ~silent

    unstated = missing & ~silent  # answers without a confidence
    right = arrays.get("correct", arrays.get("grade"))
    unstated_right = 0.0
    if right is not None:
        unstated_right = float(np.asarray(right, dtype=np.float64)[unstated].sum())
    counts = {reason: int(((reasons == reason) & ~keep).sum()) for reason in NO_ANSWER_REASONS}
    return replace(
        data,
        arrays={part: a[keep] for part, a in arrays.items()},
        lines=None if data.lines is None else data.lines[keep],
        unanswered=Unanswered(
            **counts, unstated=int(unstated.sum()), unstated_right=unstated_right
        ),
    )


def convert_percent(data: Fields) -> Fields:
    """A confidence given in percent, as a share."""
    if data.kind != "confidence":
        need = "only a confidence can be given in percent"
        raise InputError(data.path.name, got=f"holds {data.kind}", need=need)
    return replace(data, arrays={**data.arrays, "confidence": data.arrays["confidence"] / 100})


def skip_empty_runs(runs: Iterable[Fields]) -> Iterator[Fields]:
    """Runs that hold an answer; the counts of those that hold none go to the one before, or to the
    first that does.
    """
    held: Fields | None = None  # the last run with an answer, until the next one comes
    count: Unanswered | None = None  # of the runs without an answer before the first with one
    path: Path | None = None
    for run in runs:
        path = run.path
        if run.arrays[run.kind].size:
            if held is not None:
                yield held
            held = replace(run, unanswered=_sum_counts(count, run.unanswered))
            count = None
        elif held is not None:
            held = replace(held, unanswered=_sum_counts(held.unanswered, run.unanswered))
        else:
            count = _sum_counts(count, run.unanswered)
    if held is not None:
        yield held
    elif path is not None:
        got = "is empty" if count is None else "has no answer with a confidence"
        raise InputError(path.name, got=got, need="at least one is needed")


def _sum_counts(a: Unanswered | None, b: Unanswered | None) -> Unanswered | None:
    if a is None or b is None:
        return a or b
    return a + b


# Answers as such


def from_logprob(logprob: Array) -> Floats:
    r"""The confidence :math:`e^{\ell}` of an answer whose log-probability is :math:`\ell \le 0`.

    >>> from_logprob(np.log([0.5, 1.0]))
    array([0.5, 1. ])
    """
    column = checks.column(logprob, "logprob").astype(np.float64)
    bad = column > 0
    if bad.any():
        i = checks.find_first(bad)
        need = "a log-probability is at most 0, so name a probability otherwise"
        raise InputError("logprob", row=i, got=f"is {column[i]:g}", need=need)
    return np.exp(column)


def majority(samples: Sequence[str]) -> str:
    """The most frequent answer; of several, the one that comes first in the alphabet, whatever the
    order.

    >>> majority(["Paris", "paris ", "Lyon"]), majority(["b", "a"])
    ('Paris', 'a')
    """
    counts = Counter(map(_plain, samples))
    best = min(counts, key=lambda answer: (-counts[answer], answer))
    return min(s.strip() for s in samples if _plain(s) == best)


def agreement(samples: Sequence[Sequence[str]], answers: Sequence[str]) -> Floats:
    """The share of each row's samples that are the same as the row's answer.

    >>> agreement([["Paris", "paris ", "Lyon"], ["b", "a"]], ["Paris", "c"])
    array([0.66666667, 0. ])
    """
    shares = [
        sum(_plain(s) == _plain(a) for s in row) / len(row)
        for row, a in zip(samples, answers, strict=True)
    ]
    return np.array(shares, dtype=np.float64)


def same_answer(prediction: Array, labels: Array) -> Bools:
    """Whether prediction and label are the same: numbers as numbers, texts without regard to case
    and white space.

    >>> same_answer(np.array(["Paris", "42"]), np.array([" paris", "41"]))
    array([ True, False])
    """
    if prediction.dtype.kind in "biuf" and labels.dtype.kind in "biuf":
        return prediction == labels
    pairs = zip(prediction.tolist(), labels.tolist(), strict=True)
    return np.array([_plain(str(a)) == _plain(str(b)) for a, b in pairs], dtype=np.bool_)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
