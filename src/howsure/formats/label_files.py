"""Labels that stand in a file of their own, joined by a column of ids to predictions, or to decisions
while the file grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count, make_text_array
from howsure.formats.cells import TRUTH_WORDS
from howsure.formats.column_names import find_parts
from howsure.formats.contents import Contents, make_array_entry, make_text_entry
from howsure.formats.fields import load_cells
from howsure.formats.files import (
    FORMAT_BY_SUFFIX,
    get_suffix,
    list_columns,
    open_runs,
    read_column,
)
from howsure.formats.json_lines import (
    BYTE_ORDER_MARK,
    BadLine,
    JsonLinesParser,
    LineParser,
    NumberedLine,
    is_packed,
)
from howsure.predictions.class_labels import COLUMN_ALIASES
from howsure.predictions.read_options import ReadOptions

TRUTH_PARTS = ("labels", "correct", "grade")
NO_LABEL_WORDS = ("", "None", "nan")
LABEL_BLOCK_BYTES = 1 << 24  # bytes of a growing file that are looked at together
# What a line of `howsure decide` says; such a line with its label holds its own decision.
DECISION_COLUMNS = ("line", "decision", "prediction", "score", "audit", "ticket", "policy")


@frozen
class LabelColumns:
    """The columns of a file of labels: that of the ids, and what plays the `part` of the truth.
    `join` is what the other side calls the ids, and `name` what it shall call the truth.
    """

    join: str
    ids: str
    part: str
    truth: str
    name: str


@frozen(eq=False)
class LabelFile:
    """What a file says of each id: `part` is the part that it plays, `column` what it is called, and
    `join` the column of ids in the predictions that it belongs to.
    """

    path: Path
    join: str
    part: str
    column: str
    by_id: dict[str, str]

    def parse_right(self) -> dict[str, bool]:
        """Right or wrong, by id, where the file says that."""
        right: dict[str, bool] = {}
        for one, text in self.by_id.items():
            number = TRUTH_WORDS.get(text.lower())
            if number is None:
                got = f"says {text[:60]!r} of {one[:60]!r} in the column {self.column!r}"
                raise InputError(self.path.name, got=got, need="1 (right) or 0 (wrong) is needed")
            right[one] = number == 1
        return right

    def join_to(self, contents: Contents) -> Contents:
        """The run of rows with the truth of each of them."""
        parts = find_parts(contents)
        own = [name for name, part in parts.items() if part in TRUTH_PARTS]
        if own:
            got = f"has {own[0]!r} itself beside the labels of {self.path.name}"
            raise InputError(contents.path.name, got=got, hint="leave out one of them")
        name = self.join
        if name not in contents.entries and name in COLUMN_ALIASES["ids"]:
            name = next((one for one, part in parts.items() if part == "ids"), name)
        if name not in contents.entries:
            got = f"has no column {name!r} to join {self.path.name} by"
            need = f"it has {', '.join(map(repr, list(contents.entries)[:12]))}"
            hint = "say --join OURS=THEIRS (join=)"
            raise InputError(contents.path.name, got=got, need=need, hint=hint)
        ids = [str(cell).strip() for cell in load_cells(contents, name)]
        missing = [one for one in ids if one not in self.by_id]
        if missing:
            got = (
                f"has {len(missing):,} of {len(ids):,} rows whose {name} is not in {self.path.name}"
            )
            need = f"the first is {missing[0][:60]!r}; every row needs its label"
            raise InputError(contents.path.name, got=got, need=need)
        cells = [self.by_id[one] for one in ids]
        if all(map(is_count, cells)):
            entry = make_array_entry(np.array(cells, dtype=np.int64))
        elif contents.table:
            entry = make_text_entry(cells)
        else:
            entry = make_array_entry(make_text_array(cells))
        return replace(contents, entries={**contents.entries, self.column: entry})


def find_label_columns(
    path: Path, columns: Sequence[str], join: str, column: str | None = None
) -> LabelColumns:
    """Which of the columns are ids and labels; `join` is the column of ids, or OURS=THEIRS where
    predictions and labels call it differently. `column` is that of the labels where its name does
    not say so.
    """
    ours, sign, theirs = (word.strip() for word in join.partition("="))
    theirs = theirs if sign else ours
    if theirs not in columns and not sign:
        theirs = next((name for name in columns if name in COLUMN_ALIASES["ids"]), theirs)
    listed = ", ".join(map(repr, columns[:12])) or "nothing"
    if not ours or theirs not in columns:
        # A line of decisions says by itself what was decided; it may have no id.
        if "decision" not in columns:
            got = f"has no column {theirs!r} of ids (it has {listed})"
            raise InputError(path.name, got=got, hint="say --join OURS=THEIRS (join=)")
        theirs = ""
    others = [name for name in columns if name != theirs]
    part_of: dict[str, str] = {}
    for part in reversed(TRUTH_PARTS):  # of several the first part counts
        for name in others:
            if name.strip().lower() in COLUMN_ALIASES[part]:
                part_of[part] = name
    part, truth = next(((p, part_of[p]) for p in TRUTH_PARTS if p in part_of), ("labels", None))
    if column is not None and column in others:
        part, truth = "labels", column
    name = truth
    if truth is None and len(others) == 1:  # whatever it is called
        truth, name = others[0], part
    if truth is None or name is None:
        got = f"has no column of labels (it has {listed})"
        raise InputError(path.name, got=got, hint="name it with --name labels=COLUMN")
    return LabelColumns(join=ours, ids=theirs, part=part, truth=truth, name=name)


def read_label_file(path: str | Path, join: str, column: str | None = None) -> LabelFile:
    """The labels of a file with ids.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("item,gold\\n7,cat\\n8,dog\\n")
    >>> read_label_file(path, "id=item").by_id
    {'7': 'cat', '8': 'dog'}
    """
    path = Path(path)
    found = find_label_columns(path, list_columns(path), join, column)
    ids = [cell.strip() for cell in read_column(path, found.ids)]
    cells = [cell.strip() for cell in read_column(path, found.truth)]
    by_id = dict(zip(ids, cells, strict=True))
    if len(by_id) < len(ids):
        before = f"rows whose {found.ids} was there before"
        got = f"has {len(ids) - len(by_id):,} of {len(ids):,} {before}"
        raise InputError(path.name, got=got, need="one label for each is needed")
    empty = sum(cell in NO_LABEL_WORDS for cell in cells)
    if empty:
        got = f"has {empty:,} of {len(cells):,} rows without a label"
        raise InputError(path.name, got=got, hint="leave out these rows")
    return LabelFile(path=path, join=found.join, part=found.part, column=found.name, by_id=by_id)


# Labels that come while others are counted.


@frozen
class JoinedLabel:
    """What a row says of the answer with this id: its `part` is that of the truth, and `decision`
    what the row says of its own decision, where it is a line of `howsure decide`.
    """

    id: str
    part: str
    text: str
    where: str
    decision: dict[str, Any]


def make_label_row(record: Mapping[str, Any], found: LabelColumns, where: str) -> JoinedLabel:
    """The label of a row; one without is refused."""
    text = str(record.get(found.truth)).strip()
    if text in NO_LABEL_WORDS:
        raise InputError(where, got=f"has no {found.truth!r}", hint="leave out such rows")
    decision: dict[str, Any] = {}
    if record.get("decision") is not None:
        decision = {name: record.get(name) for name in DECISION_COLUMNS}
    row_id = ""
    if record.get(found.ids) is not None:
        row_id = str(record[found.ids]).strip()
    if not row_id and not decision:
        raise InputError(where, got=f"has no {found.ids!r}", need="labels are joined by ids")
    return JoinedLabel(id=row_id, part=found.part, text=text, where=where, decision=decision)


class LabelReader:
    """Reads labels of a file that may grow: lines of CSV or JSON. Of any other format the labels are
    read at once.
    """

    def __init__(self, path: Path, join: str = "id", column: str | None = None):
        self.path, self.join, self.column = path, join, column
        self._place = (0, 1)  # a number of bytes, and the number of the line that begins there

    def read_new(self, read: int) -> tuple[list[JoinedLabel | BadLine], int] | None:
        """The rows beyond the first `read` bytes, as far as they are complete, and how many bytes
        are read then; None where nothing is new.
        """
        suffix = get_suffix(self.path)
        form = FORMAT_BY_SUFFIX.get(suffix)
        lines = form is None or form.module in ("delimited", "json_lines")
        if not lines or is_packed(self.path) or suffix == ".json":
            return self._read_whole(read)
        data = read_new_lines(read, self.path)
        if data is None:
            return None
        if self._place[0] != read:
            with self.path.open("rb") as file:
                self._place = (read, 1 + file.read(read).count(b"\n"))
        numbered = list(enumerate(data.split(b"\n")[:-1], start=self._place[1]))
        parser = self._make_parser(numbered, is_new=read == 0)
        rows: list[JoinedLabel | BadLine] = []
        for run in parser.take_lines(numbered):
            rows += [run] if isinstance(run, BadLine) else self._read_run(run)
        # The lines of a quoted cell that is still open belong to a row that is not complete.
        whole = numbered[: len(numbered) - parser.open_lines]
        read += sum(len(line) + 1 for _, line in whole)
        self._place = (read, self._place[1] + len(whole))
        return (rows, read) if whole else None

    def _make_parser(self, lines: Sequence[NumberedLine], *, is_new: bool) -> LineParser:
        """By the suffix, else by what the first line begins with; a table knows its header."""
        form = FORMAT_BY_SUFFIX.get(get_suffix(self.path))
        first = next((line for _, line in lines if line.strip()), b"")
        is_json = first.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{")
        if form is not None:
            is_json = form.module == "json_lines"
        if is_json:
            return JsonLinesParser(self.path, frozenset)
        from howsure.formats.delimited import DelimitedTable

        table = DelimitedTable(self.path)
        if not is_new:
            with self.path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    list(table.take_lines([(number, line.rstrip(b"\n"))]))
                    if table.header:
                        break
        return table

    def _read_run(self, run: Contents) -> Iterator[JoinedLabel | BadLine]:
        try:
            found = find_label_columns(run.path, list(run.entries), self.join, self.column)
        except InputError as e:
            yield BadLine(number=run.get_line(0) or 0, error=e)
            return
        wanted = {found.ids, found.truth, *DECISION_COLUMNS} & run.entries.keys()
        columns = [load_cells(run, name) for name in wanted]
        for row, cells in enumerate(zip(*columns, strict=True)):
            where = f"{run.path.name}, {run.describe_place(row)}"
            try:
                yield make_label_row(dict(zip(wanted, cells, strict=True)), found, where)
            except InputError as e:
                yield BadLine(number=run.get_line(row) or row, error=e)

    def _read_whole(self, read: int) -> tuple[list[JoinedLabel | BadLine], int] | None:
        if not self.path.exists():
            return None
        size = self.path.stat().st_size
        if read == size:
            return None
        if read:
            got = "has changed since its labels were read"
            raise InputError(self.path.name, got=got, hint="append labels to CSV or JSON lines")
        rows: list[JoinedLabel | BadLine] = []
        for run in open_runs(self.path, ReadOptions(), None)[0]:
            rows += self._read_run(run)
        return rows, size


def read_new_lines(read: int, path: Path) -> bytes | None:
    """Complete lines beyond the first `read` bytes; None where there are none."""
    if not path.exists():
        return None
    if not path.is_file():
        raise InputError(
            str(path), got="is not a file", hint="labels are read from a file that may grow"
        )
    # A file that shrank is another file: what was read of it before is gone.
    size = path.stat().st_size
    if size < read:
        got = f"has {size:,} bytes, and {read:,} were read before, so it was cut or replaced"
        raise InputError(path.name, got=got, hint="append to the file, or begin with a new policy")
    with path.open("rb") as file:
        file.seek(read)
        data = file.read(LABEL_BLOCK_BYTES)
    # The last line may still be growing.
    whole = data[: data.rfind(b"\n") + 1]
    if not whole and len(data) == LABEL_BLOCK_BYTES:
        raise InputError(
            path.name,
            got=f"has a line of more than {LABEL_BLOCK_BYTES:,} bytes",
            hint="is this a text file?",
        )
    return whole or None
