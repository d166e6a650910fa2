"""The parts of a file as typed arrays, and which of its rows count: those of the wanted split that
have an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.text import make_text_array
from howsure.formats import cells
from howsure.formats.cells import TextColumn
from howsure.formats.column_names import (
    ATTRIBUTE,
    CELL_ENDS,
    NUMBERS,
    VECTORS,
    Plan,
    get_given_classes,
    infer_classes,
    infer_two_classes,
    make_no_split_error,
    make_several_splits_error,
    plan_wanted,
)
from howsure.formats.contents import Cells, Contents, Report, refuse
from howsure.predictions.class_labels import simplify_text
from howsure.predictions.given_answers import name_numbers
from howsure.predictions.input_shapes import ROW_SUM_TOLERANCE, Unanswered
from howsure.predictions.predictions import describe_outside
from howsure.predictions.read_options import ReadOptions

MOSTLY_SHARES = 0.99  # of a confidence: so many values of at most 1 are no percentages
NO_ANSWER_REASONS = ("unparseable", "refused", "missing")
MAX_COLUMNS_WITH_GAPS = 20  # more columns with empty values than this: the table is given up
PARSERS: dict[str, Callable[[TextColumn], Array]] = {
    "confidence": cells.parse_confidences,
    "logprob": cells.parse_numbers,
    "score": cells.parse_numbers,
    "weight": cells.parse_numbers,
    "count": cells.parse_numbers,
    "correct": cells.parse_truths,
    "grade": cells.parse_numbers,
    "loss": cells.parse_numbers,
    "no_answer": cells.parse_reasons,
}


@frozen
class Fields:
    """Arrays by part, of one file or of a run of its rows from `first` on. `kind` says which part
    holds the values.
    """

    path: Path
    kind: str
    arrays: dict[str, Array]
    class_names: tuple[str, ...] | None = None
    lines: Ints | None = None
    first: int = 0
    unanswered: Unanswered | None = None
    column: str = "…"  # the first that holds values
    digits: int | None = None  # of probabilities in text, where rows miss 1


def load_fields(contents: Contents, options: ReadOptions, report: Report = refuse) -> Fields:
    """Find the parts by name and load them; `report` is called with each cell that does not fit."""
    kind, wanted = plan_wanted(contents, options)
    ends = [name for name in CELL_ENDS if name in contents.entries]
    has_counts = "count" in wanted or "count" in contents.entries
    if has_counts and len(ends) == 2 and ATTRIBUTE + ends[0] not in wanted:
        # A mean would pass for the score of every answer in its cell.
        raise InputError(
            contents.path.name,
            got="counts cells of several scores, and single answers are needed here",
            need="howsure evaluate, compare and check take such cells",
            hint="For anything else count without --grid and --min-count",
        )
    silent = _find_silent_rows(wanted, contents)
    loader = _PartLoader(contents=contents, options=options, report=report, silent=silent)
    loaded: dict[str, _LoadedPart] = {}
    for part, names in wanted.items():
        if part != "samples":
            loaded[part] = loader.load(part, names)
    column = wanted[kind][0]
    if kind == "samples":
        loaded |= loader.load_agreement(column, loaded.get("prediction"))
        kind = "confidence"

    classes = get_given_classes(options) or _find_classes(loaded, wanted, contents)
    listed = loaded.pop("class_names", None) is not None or contents.class_names is not None
    arrays = {part: one.array for part, one in loaded.items()}
    # Names that stand in a list of their own are counted from 0.
    if kind in VECTORS and not options.multilabel and (not listed or "classes" in options.names):
        for part in {"labels", "prediction"} & set(arrays):
            arrays[part] = name_numbers(arrays[part], classes)
    return Fields(
        path=contents.path,
        kind=kind,
        arrays=arrays,
        class_names=classes,
        lines=contents.lines,
        first=contents.first,
        column=column,
        digits=contents.digits or loaded[kind].digits,
    )


def load_cells(contents: Contents, name: str) -> Cells:
    """The values of a column as Python values."""
    values = contents.entries[name].load()
    return values.tolist() if isinstance(values, np.ndarray) else values


def _find_silent_rows(plan: Plan, contents: Contents) -> frozenset[int]:
    """Rows whose confidence is empty and whose `no_answer` says why."""
    if "no_answer" not in plan or "confidence" not in plan:
        return frozenset()
    confidences = contents.entries[plan["confidence"][0]].load()
    if isinstance(confidences, np.ndarray):
        return frozenset()
    reasons = load_cells(contents, plan["no_answer"][0])
    rows: set[int] = set()
    for row, (reason, cell) in enumerate(zip(reasons, confidences, strict=True)):
        if reason and cell in ("", None):
            rows.add(row)
    return frozenset(rows)


def _find_classes(
    loaded: dict[str, _LoadedPart], plan: Plan, contents: Contents
) -> tuple[str, ...] | None:
    if contents.class_names is not None:
        return contents.class_names
    if "class_names" in loaded and not contents.table:
        names = np.atleast_1d(loaded["class_names"].array)
        return tuple(map(str, names.tolist()))
    for one in loaded.values():
        if one.names:
            return one.names
    for part, columns in plan.items():
        if part in VECTORS and len(columns) == 1 and contents.table and "labels" in loaded:
            labels = loaded["labels"].array
            if labels.dtype.kind in "UO":
                return infer_two_classes(columns[0], labels.tolist())
        if part in VECTORS:
            return infer_classes(columns)
    return None


@frozen
class _LoadedPart:
    """An array and the class names that its cells carry."""

    array: Array
    names: tuple[str, ...] | None = None
    digits: int | None = None


@frozen
class _PartLoader:
    """Loads entries as the arrays of parts; `silent` are rows without a confidence that say why."""

    contents: Contents
    options: ReadOptions
    report: Report
    silent: frozenset[int]

    def load(self, part: str, names: tuple[str, ...]) -> _LoadedPart:
        """One part, of one entry or of several columns side by side."""
        values = self._load_entries(names)
        arrays = [one for one in values if isinstance(one, np.ndarray)]
        if len(arrays) == len(values):
            return _LoadedPart(self._stack_arrays(arrays, part, names))
        is_vector = part in VECTORS or (part == "labels" and self.options.multilabel)
        columns: list[TextColumn] = []
        for name, one in zip(names, values, strict=True):
            texts = one.tolist() if isinstance(one, np.ndarray) else one
            # Ids and names are no numbers, whatever they look like.
            if self.contents.commas and part.startswith(ATTRIBUTE):
                texts = cells.replace_commas_of_numbers(texts)
            elif self.contents.commas and (part in NUMBERS or is_vector):
                texts = cells.replace_commas(texts)
            columns.append(self._make_column(name, texts))
        if part.startswith(ATTRIBUTE):
            return _LoadedPart(cells.parse_attribute(columns[0]))
        if is_vector:
            return self._parse_vectors(part, columns)
        parse = PARSERS.get(part, cells.parse_names)
        array = parse(self._fill_silent_rows(part, columns[0]))
        if part == "confidence":
            array[list(self.silent)] = np.nan
        return _LoadedPart(array)

    def load_agreement(self, name: str, prediction: _LoadedPart | None) -> dict[str, _LoadedPart]:
        """The share of a row's samples that agree with its answer, which is the most frequent one
        where none is given.
        """
        column = self._make_column(name, load_cells(self.contents, name))
        samples = cells.parse_text_lists(column)
        if prediction is None:
            answers = [majority(row) for row in samples]
            prediction = _LoadedPart(make_text_array(answers))
        else:
            answers = [str(answer) for answer in prediction.array.tolist()]
        if len(answers) != len(samples):
            what = "prediction and samples"
            raise InputError(what, where=self.contents.path.name, got="have different lengths")
        share = _LoadedPart(agreement(samples, answers))
        return {"confidence": share, "prediction": prediction}

    def _make_column(self, name: str, texts: Cells) -> TextColumn:
        return TextColumn(cells=texts, name=name, contents=self.contents, report=self.report)

    def _load_entries(self, names: tuple[str, ...]) -> list[Array | Cells]:
        """The entries one after the other. Where many of many columns have gaps, the rows do not
        have the same classes, and reporting every cell would take for ever.
        """
        gaps = 0
        out: list[Array | Cells] = []
        for name in names:
            values = self.contents.entries[name].load()
            if len(names) > MAX_COLUMNS_WITH_GAPS and not isinstance(values, np.ndarray):
                gaps += None in values
            if gaps > MAX_COLUMNS_WITH_GAPS:
                raise InputError(
                    self.contents.path.name,
                    got=f"lacks values in more than {MAX_COLUMNS_WITH_GAPS} of the columns "
                    f"{names[0]!r} to {names[-1]!r}",
                    need="every row needs a value for every class",
                )
            out.append(values)
        return out

    def _stack_arrays(self, arrays: list[Array], part: str, names: tuple[str, ...]) -> Array:
        """One array as it is; the columns of a table side by side."""
        first = arrays[0]
        if len(arrays) == 1:
            # The samples of a table stand in its rows, (n, s, k).
            if self.contents.table and part.startswith("mc_") and first.ndim == 3:
                return first.swapaxes(0, 1)
            return first
        for a, name in zip(arrays, names, strict=True):
            if a.dtype.kind not in "biuf" or a.shape != first.shape or a.ndim != 1:
                what = f"{self.contents.path.name}, column {name!r}"
                raise InputError(what, got=f"is {a.dtype} {a.shape}", need="numbers are needed")
        return np.stack(arrays, axis=1)

    def _parse_vectors(self, part: str, columns: list[TextColumn]) -> _LoadedPart:
        """Columns side by side, or one column of lists."""
        names: tuple[str, ...] | None = None
        if len(columns) > 1:
            array = cells.parse_matrix(columns)
        elif cells.is_number_column(columns[0]):  # of a binary model
            array = cells.parse_numbers(columns[0])
        else:
            array, names = cells.parse_lists(columns[0])
            if part.startswith("mc_") and array.ndim == 3:
                array = array.swapaxes(0, 1)
        digits: int | None = None
        if part == "probs" and array.ndim == 2 and array.shape[1] > 1:
            off = np.abs(array.sum(axis=1) - 1)
            if (off > ROW_SUM_TOLERANCE[8]).any():
                known = [cells.count_digits(column.cells) for column in columns]
                if None not in known:
                    digits = max(filter(None, known), default=None)
        if self.options.narrow:
            array = cells.narrow_floats(array, half=part.endswith("probs"))
        return _LoadedPart(array, names, digits)

    def _fill_silent_rows(self, part: str, column: TextColumn) -> TextColumn:
        """The column with something in the empty cells of rows without an answer, so that they are
        not reported: these rows are left out later.
        """
        silent = self.silent
        if not silent or part == "no_answer":
            return column
        spoken = (cell for row, cell in enumerate(column.cells) if row not in silent)
        filler = next(spoken, "0")
        filled = list(column.cells)
        for row in silent:
            if filled[row] in ("", None):
                filled[row] = filler
        return replace(column, cells=filled)


# Which rows count: those of the wanted split, and those with an answer
#
# Rows come in runs, one after the other. Rows without an answer are told apart by `no_answer`,
# counted by their reason, and left out or counted as wrong.


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
    digits = max((run.digits for run in runs if run.digits is not None), default=None)
    return replace(first, arrays=arrays, lines=lines, digits=digits)


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
        share = data.arrays["confidence"]
        # 99 in 100 such values would be below one percent: they are shares already.
        if (share <= 0.01).mean() >= MOSTLY_SHARES and share.max() > 0:
            got = f"has {int((share > 0.01).sum()):,} of {len(share):,} values above 1"
            need = "so it is not in percent"
            hint = "leave out percent (--percent); --drop-outside leaves out the others"
            raise InputError("confidence", where=data.path.name, got=got, need=need, hint=hint)
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
    times = np.ones(len(value))
    if "count" in arrays:
        times = checks.counts(arrays["count"], len(value)).astype(np.float64)
    right = arrays.get("correct", arrays.get("grade"))
    unstated_right = 0.0
    if right is not None:
        unstated_right = float((np.asarray(right, dtype=np.float64) * times)[unstated].sum())
    counts: dict[str, int] = {}
    for reason in NO_ANSWER_REASONS:
        counts[reason] = int(times[(reasons == reason) & ~keep].sum())
    return replace(
        data,
        arrays={part: a[keep] for part, a in arrays.items()},
        lines=None if data.lines is None else data.lines[keep],
        unanswered=Unanswered(
            **counts, unstated=int(times[unstated].sum()), unstated_right=unstated_right
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
    counts = Counter(map(simplify_text, samples))
    best = min(counts, key=lambda answer: (-counts[answer], answer))
    return min(s.strip() for s in samples if simplify_text(s) == best)


def agreement(samples: Sequence[Sequence[str]], answers: Sequence[str]) -> Floats:
    """The share of each row's samples that are the same as the row's answer.

    >>> agreement([["Paris", "paris ", "Lyon"], ["b", "a"]], ["Paris", "c"])
    array([0.66666667, 0. ])
    """
    shares = [
        sum(simplify_text(s) == simplify_text(a) for s in row) / len(row)
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
    return np.array(
        [simplify_text(str(a)) == simplify_text(str(b)) for a, b in pairs], dtype=np.bool_
    )
