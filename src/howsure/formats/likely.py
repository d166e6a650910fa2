"""What the columns of a table may be, for the sentence that says why it cannot be read: a proposal,
never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import numpy as np

from howsure._core.check import Floats
from howsure.formats.cells import all_with_points
from howsure.formats.contents import Contents, Entry

COLUMNS, ROWS = 200, 1000  # that are looked at
ROUNDED = 0.02  # by so much rows of probabilities may miss 1
WHOLE = ("int", "uint", "bool")  # as types of arrays begin
SHOWN = 6  # columns of a proposal
LETTERS, LONGEST = 60, 200  # of a name, of the names of the classes


def proposal(contents: Contents) -> str:
    """Options of a command that may make a table readable; "" where nothing comes to mind.

    >>> from pathlib import Path
    >>> from howsure.formats.contents import in_cells
    >>> cells = {"animal": ["cat", "dog"], "cat": ["0.9", "0.2"], "dog": ["0.1", "0.8"]}
    >>> proposal(Contents(Path("a.csv"), {name: in_cells(c) for name, c in cells.items()}, table=True))
    "The texts of 'animal' are names of columns: try --name probs=cat,dog --name labels=animal"
    """
    few = dict(list(contents.entries.items())[:COLUMNS]) if contents.table else {}
    found = {
        name: numbers
        for name, entry in few.items()
        if (numbers := _numbers(entry, contents.commas)) is not None
    }
    shares = [name for name, numbers in found.items() if _is_share(numbers)]
    for name in (name for name in few if name not in found):
        if classes := _named(few[name], list(found)):
            likely = set(classes) <= set(shares)
            whole = likely and np.allclose(sum(found[share] for share in shares), 1, atol=ROUNDED)
            values = f"{'probs' if likely else 'logits'}={_joined(shares if whole else classes)}"
            return _by_class(name[:LETTERS], values)
    return _one_of([name[:LETTERS] for name in shares]) if shares else ""


def _joined(classes: Sequence[str]) -> str:
    """Names with commas between, the middle ones left out where there are many."""
    listed = ",".join(classes)
    return listed if len(listed) <= LONGEST else f"{classes[0][:LETTERS]},…,{classes[-1][:LETTERS]}"


def _by_class(labels: str, values: str) -> str:
    words = f"--name {quote(values)} --name {quote(f'labels={labels}')}"
    return f"The texts of {labels!r} are names of columns: try {words}"


def _one_of(shares: Sequence[str]) -> str:
    listed, verb = ", ".join(map(repr, shares[:SHOWN])), "holds" if len(shares) == 1 else "hold"
    probs, confidence = (quote(f"{part}={shares[0]}") for part in ("probs", "confidence"))
    return (
        f"{listed} {verb} numbers between 0 and 1: try --name {probs} if that is the probability of class 1, "
        f"--name {confidence} if it says how sure the answer is"
    )


def _numbers(entry: Entry, commas: bool) -> Floats | None:
    """The first numbers of a column; None where some are none."""
    if len(entry.shape) != 1 or entry.rows < 2:
        return None
    try:
        cells = entry.load()[:ROWS]
        found = np.array(
            cells if isinstance(cells, np.ndarray) or not commas else all_with_points(cells),
            dtype=np.float64,
        )
    except (ValueError, TypeError, OverflowError):
        return None
    return found if np.isfinite(found).all() else None


def _is_share(numbers: Floats) -> bool:
    """Between 0 and 1, and not right or wrong."""
    inside = bool(numbers.min() >= 0) and bool(numbers.max() <= 1)
    return inside and not bool(np.isin(numbers, (0, 1)).all())


def _named(entry: Entry, columns: Sequence[str]) -> list[str]:
    """The columns of numbers that the texts of a column name, in the order of the table; all of its
    texts must.
    """
    texts = _values(entry) if len(entry.shape) == 1 else set[str]()
    known = [name for name in columns if name.strip() in texts]
    return known if len(known) == len(texts) > 1 else []


def may_be_labels(contents: Contents, k: int, n: int) -> list[str]:
    """What may hold the labels of n samples: columns with two to k different values, arrays of
    whole numbers.

    >>> from pathlib import Path
    >>> from howsure.formats.contents import in_cells, in_memory
    >>> cells = {"age": ["41", "57", "63"], "sick": ["1", "0", "1"], "ward": ["a", "a", "a"]}
    >>> may_be_labels(Contents(Path("a.csv"), {name: in_cells(c) for name, c in cells.items()}, table=True), 2, 3)
    ['sick']
    >>> may_be_labels(Contents(Path("a.npz"), {"Y": in_memory(np.arange(3)), "X": in_memory(np.ones(3))}), 9, 3)
    ['Y']
    """
    few = list(contents.entries.items())[:COLUMNS]
    if contents.table:
        return [
            name for name, entry in few if len(entry.shape) == 1 and 2 <= len(_values(entry)) <= k
        ]
    return [
        name
        for name, e in few
        if e.shape[:1] == (n,) and len(e.shape) <= 2 and e.dtype.startswith(WHOLE)
    ]


def _values(entry: Entry) -> set[str]:
    return {str(cell).strip() for cell in entry.load()[:ROWS]}
