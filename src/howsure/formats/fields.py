"""The parts of a file as typed arrays; and where their names say nothing, what they may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote

import numpy as np

from howsure._core.checks import Array, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.text import make_text_array
from howsure.formats import cells, row_selection
from howsure.formats.cells import TextColumn, replace_commas_of_numbers
from howsure.formats.column_names import (
    ATTRIBUTE,
    NUMBERS,
    VECTORS,
    Plan,
    choose_values,
    get_given_classes,
    infer_classes,
    plan_attributes,
    plan_parts,
)
from howsure.formats.contents import Cells, Contents, FileEntry, Report, refuse
from howsure.predictions.input_shapes import Unanswered
from howsure.predictions.read_options import ReadOptions

MAX_COLUMNS_WITH_GAPS = 20  # more columns with empty values than this: the table is given up
PARSERS: dict[str, Callable[[TextColumn], Array]] = {
    "confidence": cells.parse_confidences,
    "logprob": cells.parse_numbers,
    "weight": cells.parse_numbers,
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


def load_fields(contents: Contents, options: ReadOptions, report: Report = refuse) -> Fields:
    """Find the parts by name and load them; `report` is called with each cell that does not fit."""
    plan = plan_parts(contents, options)
    kind = choose_values(plan, options)
    wanted: Plan = {}
    for part in (kind, *options.beside, "class_names"):
        # Arrays have splits by name; a table has a column of them.
        if part in plan and (part != "split" or contents.table):
            wanted[part] = plan[part]
    wanted |= plan_attributes(contents, options)

    silent = _find_silent_rows(wanted, contents)
    loader = _PartLoader(contents=contents, options=options, report=report, silent=silent)
    loaded: dict[str, _LoadedPart] = {}
    for part, names in wanted.items():
        if part != "samples":
            loaded[part] = loader.load(part, names)
    if kind == "samples":
        loaded |= loader.load_agreement(wanted[kind][0], loaded.get("prediction"))
        kind = "confidence"

    classes = get_given_classes(options) or _find_classes(loaded, wanted, contents)
    loaded.pop("class_names", None)
    return Fields(
        path=contents.path,
        kind=kind,
        arrays={part: one.array for part, one in loaded.items()},
        class_names=classes,
        lines=contents.lines,
        first=contents.first,
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
        if part in VECTORS:
            return infer_classes(columns)
    return None


@frozen
class _LoadedPart:
    """An array and the class names that its cells carry."""

    array: Array
    names: tuple[str, ...] | None = None


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
            answers = [row_selection.majority(row) for row in samples]
            prediction = _LoadedPart(make_text_array(answers))
        else:
            answers = [str(answer) for answer in prediction.array.tolist()]
        if len(answers) != len(samples):
            what = "prediction and samples"
            raise InputError(what, where=self.contents.path.name, got="have different lengths")
        share = _LoadedPart(row_selection.agreement(samples, answers))
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
        if self.options.narrow:
            array = cells.narrow_floats(array, half=part.endswith("probs"))
        return _LoadedPart(array, names)

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


# What columns may be whose names say nothing: suggestions for the caller, never taken by themselves

SUGGESTION_ROWS = 1000  # rows that are looked at
SUGGESTION_COLUMNS = 200  # columns that are looked at
LISTED_COLUMNS = 6
NAME_LETTERS = 60
CLASS_LIST_LETTERS = 200
ROW_SUM_SLACK = 0.02  # by so much rows of rounded probabilities may miss 1
WHOLE_DTYPES = ("int", "uint", "bool")  # how the names of these types begin


def suggest_names(contents: Contents) -> str:
    """Options of a command that may make a table readable; "" where nothing comes to mind.

    >>> from pathlib import Path
    >>> from howsure.formats.contents import make_text_entry
    >>> cells = {"animal": ["cat", "dog"], "cat": ["0.9", "0.2"], "dog": ["0.1", "0.8"]}
    >>> entries = {name: make_text_entry(c) for name, c in cells.items()}
    >>> suggest_names(Contents(Path("a.csv"), entries, table=True))
    "The texts of 'animal' are names of columns: try --name probs=cat,dog --name labels=animal"
    """
    if not contents.table:
        return ""
    entries = dict(list(contents.entries.items())[:SUGGESTION_COLUMNS])
    numbers: dict[str, Floats] = {}
    shares: list[str] = []  # between 0 and 1, and not right or wrong
    for name, entry in entries.items():
        column = _read_numbers(entry, contents.commas)
        if column is not None:
            numbers[name] = column
            inside = column.min() >= 0 and column.max() <= 1
            if inside and not np.isin(column, (0, 1)).all():
                shares.append(name)
    for name, entry in entries.items():
        if name in numbers or len(entry.shape) != 1:
            continue
        # Every text of a column of labels names a column of numbers.
        texts = _list_texts(entry)
        classes = [column for column in numbers if column.strip() in texts]
        if len(classes) == len(texts) > 1:
            return _suggest_classes(name[:NAME_LETTERS], classes, shares, numbers)
    if not shares:
        return ""
    short = [name[:NAME_LETTERS] for name in shares]
    listed = ", ".join(map(repr, short[:LISTED_COLUMNS]))
    verb = "holds" if len(short) == 1 else "hold"
    probs = quote(f"probs={short[0]}")
    confidence = quote(f"confidence={short[0]}")
    return (
        f"{listed} {verb} numbers between 0 and 1: try --name {probs} if that is the probability of class 1, "
        f"--name {confidence} if it says how sure the answer is"
    )


def _suggest_classes(
    labels: str, classes: list[str], shares: list[str], numbers: dict[str, Floats]
) -> str:
    """Which option makes columns called like the classes readable."""
    part = "logits"
    if set(classes) <= set(shares):
        part = "probs"
        # A class without a label in these rows has a column too: together they sum to 1.
        if np.allclose(sum(numbers[name] for name in shares), 1, atol=ROW_SUM_SLACK):
            classes = shares
    listed = ",".join(classes)
    if len(listed) > CLASS_LIST_LETTERS:
        listed = f"{classes[0][:NAME_LETTERS]},…,{classes[-1][:NAME_LETTERS]}"
    words = f"--name {quote(f'{part}={listed}')} --name {quote(f'labels={labels}')}"
    return f"The texts of {labels!r} are names of columns: try {words}"


def _read_numbers(entry: FileEntry, commas: bool) -> Floats | None:
    """The first numbers of a column; None where some are none."""
    if len(entry.shape) != 1 or entry.rows < 2:
        return None
    try:
        cells = entry.load()[:SUGGESTION_ROWS]
        if commas and not isinstance(cells, np.ndarray):
            cells = replace_commas_of_numbers(cells)
        numbers = np.array(cells, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def find_label_columns(contents: Contents, k: int, n: int) -> list[str]:
    """What may hold the labels of n samples: columns with two to k different values, arrays of
    whole numbers.

    >>> from pathlib import Path
    >>> from howsure.formats.contents import make_array_entry, make_text_entry
    >>> cells = {"age": ["41", "57", "63"], "sick": ["1", "0", "1"], "ward": ["a", "a", "a"]}
    >>> entries = {name: make_text_entry(c) for name, c in cells.items()}
    >>> find_label_columns(Contents(Path("a.csv"), entries, table=True), 2, 3)
    ['sick']
    >>> arrays = {"Y": make_array_entry(np.arange(3)), "X": make_array_entry(np.ones(3))}
    >>> find_label_columns(Contents(Path("a.npz"), arrays), 9, 3)
    ['Y']
    """
    names: list[str] = []
    for name, entry in list(contents.entries.items())[:SUGGESTION_COLUMNS]:
        if contents.table:
            fits = len(entry.shape) == 1 and 2 <= len(_list_texts(entry)) <= k
        else:
            one_each = entry.shape[:1] == (n,) and len(entry.shape) <= 2
            fits = one_each and entry.dtype.startswith(WHOLE_DTYPES)
        if fits:
            names.append(name)
    return names


def _list_texts(entry: FileEntry) -> set[str]:
    return {str(cell).strip() for cell in entry.load()[:SUGGESTION_ROWS]}
