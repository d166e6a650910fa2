"""Lines that arrive one after the other → predictions, by the same rules as a file; a line at fault
is set apart.

What a line means does not depend on the lines that happened to arrive with it: numbers are float64,
ids and answers stay what they were, and lines with other fields go apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.formats.assembly import build_predictions
from howsure.formats.cells import TextColumn, describe_list
from howsure.formats.column_names import (
    Plan,
    choose_values,
    find_parts,
    has_part,
    make_no_split_error,
    make_several_splits_error,
    plan_parts,
)
from howsure.formats.contents import Cells, Contents, FileEntry, refuse
from howsure.formats.fields import Fields, convert_percent, load_cells, load_fields
from howsure.formats.files import FORMAT_BY_SUFFIX, get_suffix
from howsure.formats.json_lines import (
    BYTE_ORDER_MARK,
    BadLine,
    LineParser,
    NumberedLine,
    number_lines,
)
from howsure.formats.receipts import add_receipt, build_receipt
from howsure.predictions import Predictions
from howsure.predictions.read_options import ReadOptions

MAX_REMEMBERED_KEYS = 1 << 10  # sets of keys whose parts are remembered
ID_TYPES = {str, int, NoneType}


@frozen
class StreamBatch:
    """The predictions of some lines, the numbers of those lines, and their ids as they were given.

    A line has one prediction, or one for each of many labels.
    """

    preds: Predictions
    lines: Sequence[int]
    ids: Sequence[Any] | None

    @property
    def names(self) -> tuple[str, ...]:
        """What many labels are called; none where a line has one prediction."""
        layout = self.preds.layout
        return layout.names if layout is not None and layout.parts == "labels" else ()

    @property
    def each(self) -> int:
        """Predictions of a line."""
        return count_case_rows(self.preds)

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, keep: Sequence[int]) -> StreamBatch:
        """Some of the lines."""
        if len(keep) == len(self):
            return self
        rows = np.array(keep)[:, None] * self.each + np.arange(self.each)
        return StreamBatch(
            preds=self.preds[rows.reshape(-1)],
            lines=[self.lines[i] for i in keep],
            ids=None if self.ids is None else [self.ids[i] for i in keep],
        )


def count_case_rows(preds: Predictions) -> int:
    """How many rows belong together: the labels of a case, else 1."""
    layout = preds.layout
    return layout.size if layout is not None and layout.parts == "labels" else 1


def is_line_format(path: Path) -> bool:
    """Whether a file holds a row on every line."""
    form = FORMAT_BY_SUFFIX.get(get_suffix(path))
    return form is not None and form.module in ("delimited", "json_lines")


def read_batches(
    blocks: Iterable[bytes], path: Path, options: ReadOptions
) -> Iterator[StreamBatch | BadLine]:
    """Predictions of lines as the blocks bring them, and bad lines, in order.

    The suffix of `path` says the format; without one the first line does: JSON begins with a brace.
    A header that makes no sense is refused at once.
    """
    builder = _BatchBuilder(options)
    splits: dict[str, None] = {}  # an ordered set of those that were seen
    row = 0
    for run in _parse_blocks(blocks, path, options):
        if isinstance(run, BadLine):
            row += 1
            yield run
            continue
        rows = replace(run, first=row)
        row += 0 if run.lines is None else len(run.lines)
        columns = [name for name, part in find_parts(run).items() if part == "split"]
        if columns:
            words = [str(cell).strip() for cell in run.entries[columns[0]].load()]
            splits |= dict.fromkeys(words)
            if options.split is None and len(splits) > 1:
                raise make_several_splits_error(run.path, sorted(splits))
            keep = [i for i, word in enumerate(words) if options.split in (None, word)]
            if not keep:
                continue
            rows = _select_rows(rows, keep)
        yield from builder.build_batches(rows)
    if options.split is not None and splits and options.split not in splits:
        raise make_no_split_error(options.split, sorted(splits), path)


def _parse_blocks(
    blocks: Iterable[bytes], path: Path, options: ReadOptions
) -> Iterator[Contents | BadLine]:
    """Runs of rows and bad lines; a header is checked before the first of them."""
    parser = _make_parser(path, (), options)
    empty = True
    for lines in number_lines(blocks, path.name):
        parser = parser or _make_parser(path, lines, options)
        if parser is None:
            continue
        for run in parser.take_lines(lines):
            if empty:
                _check_header(parser, options)
            empty = False
            yield run
        if empty:  # a header may have come alone
            _check_header(parser, options)
    if parser is None:
        return
    for run in parser.close():
        if empty:
            _check_header(parser, options)
        empty = False
        yield run
    if path.suffix and empty:  # a pipe may be empty, a file may not
        raise parser.make_empty_error()


def _check_header(parser: LineParser, options: ReadOptions) -> None:
    if parser.columns is not None:
        plan_parts(parser.columns, options)


def _make_parser(
    path: Path, lines: Sequence[NumberedLine], options: ReadOptions
) -> LineParser | None:
    """By the suffix, or else by the first line that is not blank; None where there is none yet."""
    if path.suffix:
        is_json = FORMAT_BY_SUFFIX[get_suffix(path)].module == "json_lines"
    else:
        first = next((raw for _, raw in lines if raw.strip()), None)
        if first is None:
            return None
        is_json = first.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{")
    if is_json:
        from howsure.formats.json_lines import JsonLinesParser

        known: dict[tuple[str, ...], frozenset[str]] = {}

        def group_keys(keys: tuple[str, ...]) -> frozenset[str]:
            """The keys that play a part: lines that differ in these are not read together."""
            parts = known.get(keys)
            if parts is None:
                # A new key on every line must not fill the memory.
                if len(known) >= MAX_REMEMBERED_KEYS:
                    known.clear()
                parts = frozenset(key for key in keys if has_part(key, options))
                known[keys] = parts
            return parts

        return JsonLinesParser(path, group_keys)
    from howsure.formats.delimited import DelimitedTable

    return DelimitedTable(path)


def _select_rows(run: Contents, keep: Sequence[int]) -> Contents:
    """Some rows of a run."""
    if run.lines is None or len(keep) == len(run.lines):
        return run

    def load(entry: FileEntry) -> Cells:
        cells = entry.load()
        return [cells[i] for i in keep]

    entries: dict[str, FileEntry] = {}
    for name, entry in run.entries.items():
        entries[name] = FileEntry(
            shape=(len(keep),),
            dtype=entry.dtype,
            load=partial(load, entry),
        )
    return replace(
        run,
        entries=entries,
        lines=run.lines[list(keep)],
        first=run.first + keep[0],
    )


class _BatchBuilder:
    """Makes batches of runs, and remembers what the first good line of each kind looks like: how
    many numbers, and for which classes in which order. All later lines must look the same.
    """

    def __init__(self, options: ReadOptions):
        # Ids stay as they were given, and a line with a confidence has an answer.
        beside = tuple(part for part in options.beside if part not in ("ids", "no_answer"))
        self.options = replace(options, narrow=False, beside=beside)
        self.first: dict[str, tuple[tuple[int, ...], tuple[str, ...] | None]] = {}

    def build_batches(self, run: Contents) -> Iterator[StreamBatch | BadLine]:
        """One batch where all lines are good; else halves of it, down to the lines at fault."""
        lines: list[int] = [] if run.lines is None else run.lines.tolist()
        try:
            yield self._build_batch(run, lines)
        except InputError as e:
            if len(lines) == 1:
                error = e if e.line is not None else e.at(f"line {lines[0]}")
                yield BadLine(number=lines[0], error=error)
                return
            middle = len(lines) // 2
            for half in (range(middle), range(middle, len(lines))):
                yield from self.build_batches(_select_rows(run, half))

    def _build_batch(self, run: Contents, lines: list[int]) -> StreamBatch:
        plan = plan_parts(run, self.options)
        kind = choose_values(plan, self.options)
        ids: Cells | None = None
        if "ids" in plan:
            # As they were given: texts, whole numbers, or nothing.
            ids = load_cells(run, plan["ids"][0])
            if not set(map(type, ids)) <= ID_TYPES:
                bad = next(row for row, cell in enumerate(ids) if type(cell) not in ID_TYPES)
                _refuse_cell(run, plan["ids"][0], bad, "a whole number or a text")
        try:
            preds, data = self._build_predictions(run, plan, self.options)
        except InputError:
            if not kind.endswith("probs"):
                raise
            # Rows of half precision may miss 1 by more.
            half = replace(self.options, narrow=True)
            preds, data = self._build_predictions(run, plan, half)
            preds = replace(preds, values=preds.values.astype(np.float64))
        if preds.n != len(lines) * count_case_rows(preds):
            got = f"gives {preds.n:,} samples"
            error = InputError(kind, got=got, need="one sample per line is needed")
            raise error.at(run.path.name)
        if data.kind not in self.first:
            self.first[data.kind] = (data.arrays[data.kind].shape[1:], data.class_names)
            preds = add_receipt(preds, build_receipt(run, self.options))
        return StreamBatch(preds=preds, lines=lines, ids=ids)

    def _build_predictions(
        self, run: Contents, plan: Plan, options: ReadOptions
    ) -> tuple[Predictions, Fields]:
        data = load_fields(run, options)
        if options.percent:
            data = convert_percent(data)
        data = self._align_classes(data, run, plan[choose_values(plan, options)][0])
        if "prediction" in data.arrays and "prediction" in plan:
            answers = np.empty(len(data.arrays["prediction"]), dtype=object)
            answers[:] = run.entries[plan["prediction"][0]].load()  # 1 beside "cat" stays 1
            data = replace(data, arrays=data.arrays | {"prediction": answers})
        return build_predictions(data, options), data

    def _align_classes(self, data: Fields, run: Contents, name: str) -> Fields:
        """Rows like the first one, their classes in the same order; else their first row is
        refused.
        """
        values = data.arrays[data.kind]
        shape, classes = self.first.get(data.kind, (values.shape[1:], data.class_names))
        if values.shape[1:] != shape or sorted(data.class_names or ()) != sorted(classes or ()):
            _refuse_cell(run, name, 0, describe_list(name, shape))
        if data.class_names is None or classes is None or data.class_names == classes:
            return data
        order = [data.class_names.index(one) for one in classes]
        arrays = data.arrays | {data.kind: values[..., order]}
        return replace(data, arrays=arrays, class_names=classes)


def _refuse_cell(run: Contents, name: str, row: int, need: str) -> None:
    column = TextColumn(cells=load_cells(run, name), name=name, contents=run, report=refuse)
    column.report_cell(row, need)
