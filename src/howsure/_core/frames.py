"""Rows → a data frame of pandas or polars, and text → a piece of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal

from howsure._core.check import InputError
from howsure._core.optional import need

Library = Literal["pandas", "polars"]


def frame(rows: Sequence[Mapping[str, object]], library: str) -> Any:
    """A data frame with one row for each mapping; `library` is "pandas" or "polars"."""
    if library not in ("pandas", "polars"):
        raise InputError(f"library={library!r}; 'pandas' or 'polars' is needed.")
    made = need(library, for_="frame()", extra="interop")
    columns = {key: [row[key] for row in rows] for key in rows[0]} if rows else {}
    return made.DataFrame(columns)


def preformatted(text: str) -> str:
    """Text of a fixed width for a notebook.

    >>> preformatted("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(text.rstrip())}</pre>"
