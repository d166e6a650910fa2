"""What the columns of a file may be, for the sentence that says why it cannot be read: a proposal,
never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import numpy as np

from howsure._core.check import Floats
from howsure.formats.cells import replace_commas_of_numbers
from howsure.formats.contents import Contents, FileEntry

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
    for name, entry in entries.items():
        column = _read_numbers(entry, contents.commas)
        if column is not None:
            numbers[name] = column
    shares = [name for name, column in numbers.items() if _is_share(column)]
    for name, entry in entries.items():
        if name in numbers:
            continue
        classes = _find_named_columns(entry, list(numbers))
        if classes:
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


def _is_share(numbers: Floats) -> bool:
    """Between 0 and 1, and not right or wrong."""
    inside = bool(numbers.min() >= 0) and bool(numbers.max() <= 1)
    return inside and not bool(np.isin(numbers, (0, 1)).all())


def _find_named_columns(entry: FileEntry, columns: Sequence[str]) -> list[str]:
    """The columns of numbers that the texts of a column name, in the order of the table; all of its
    texts must.
    """
    if len(entry.shape) != 1:
        return []
    texts = _list_texts(entry)
    named = [name for name in columns if name.strip() in texts]
    return named if len(named) == len(texts) > 1 else []


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
