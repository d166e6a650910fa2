"""Labels that stand in a file of their own, joined to predictions by a column of ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure._core.text import is_count, make_text_array
from howsure.formats.column_names import find_parts
from howsure.formats.contents import Contents, make_array_entry, make_text_entry
from howsure.formats.fields import load_cells
from howsure.formats.files import list_columns, read_column
from howsure.predictions.class_labels import COLUMN_ALIASES

TRUTH_PARTS = ("labels", "correct", "grade")


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


def read_label_file(path: str | Path, join: str, column: str | None = None) -> LabelFile:
    """The labels of a file with ids; `join` is the column of ids, or OURS=THEIRS where predictions
    and labels call it differently. `column` is that of the labels where its name does not say so.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("item,gold\\n7,cat\\n8,dog\\n")
    >>> read_label_file(path, "id=item").by_id
    {'7': 'cat', '8': 'dog'}
    """
    path = Path(path)
    ours, sign, theirs = (word.strip() for word in join.partition("="))
    theirs = theirs if sign else ours
    columns = list_columns(path)
    if theirs not in columns and not sign:
        theirs = next((name for name in columns if name in COLUMN_ALIASES["ids"]), theirs)
    listed = ", ".join(map(repr, columns[:12])) or "nothing"
    if not ours or theirs not in columns:
        got = f"has no column {theirs!r} of ids (it has {listed})"
        raise InputError(path.name, got=got, hint="say --join OURS=THEIRS (join=)")
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
    ids = [cell.strip() for cell in read_column(path, theirs)]
    cells = [cell.strip() for cell in read_column(path, truth)]
    by_id = dict(zip(ids, cells, strict=True))
    if len(by_id) < len(ids):
        got = f"has {len(ids) - len(by_id):,} of {len(ids):,} rows whose {theirs} was there before"
        raise InputError(path.name, got=got, need="one label for each is needed")
    empty = sum(cell in ("", "None", "nan") for cell in cells)
    if empty:
        got = f"has {empty:,} of {len(cells):,} rows without a label"
        raise InputError(path.name, got=got, hint="leave out these rows")
    return LabelFile(path=path, join=ours, part=part, column=name, by_id=by_id)
