"""A tally as named arrays and back, for files."""

from __future__ import annotations

from collections.abc import Mapping

from howsure._core.check import Array
from howsure.tallies.counted import CountedTally
from howsure.tallies.packed import PackedTally
from howsure.tallies.rows import RowTally, as_rows
from howsure.tallies.tally import Tally

COUNTED = ("bits", "times", "missed")
ROWS = ("score", "count", "loss", "claim", "square")


def columns_of(t: Tally) -> dict[str, Array]:
    """The arrays that a tally of right and wrong consists of.

    >>> from howsure import tally
    >>> list(columns_of(tally([-0.5], correct=[1])))
    ['score', 'count', 'loss', 'claim', 'square']
    """
    if isinstance(t, PackedTally) and t.signs is None:
        return {"keys": t.keys}
    if isinstance(t, CountedTally):
        return {name: getattr(t, name) for name in COUNTED}
    rows = as_rows(t)
    edges = {} if rows.edges is None else {"edges": rows.edges}
    return {name: getattr(rows, name) for name in ROWS} | edges


def from_columns(
    columns: Mapping[str, Array], approximate: str | None = None, *, weighted: bool = False
) -> Tally:
    """The tally of such arrays.

    >>> from howsure import tally
    >>> from_columns(columns_of(tally([0.5, 0.5], correct=[1, 0])))
    <Tally: n=2, wrong=1, 1 distinct scores>
    """
    if "keys" in columns:
        return PackedTally(columns["keys"])
    if "bits" in columns:
        return CountedTally(*(columns[name] for name in COUNTED))
    score, count, loss, claim, square = (columns[name] for name in ROWS)
    edges = columns.get("edges")
    return RowTally(
        score, count, loss, claim, square, approximate=approximate, edges=edges, weighted=weighted
    )
