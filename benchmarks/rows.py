"""One line of the table: what was measured, against which limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`value` in `unit`; `must` and `moonshot` are upper limits, or lower ones where more is
    better.
    """

    job: str
    value: float | None
    unit: str
    must: float | None = None
    moonshot: float | None = None
    more_is_better: bool = False
    detail: str = ""

    @property
    def verdict(self) -> str:
        if self.value is None or self.must is None:
            return ""
        if self.moonshot is not None and self.reaches(self.moonshot):
            return "moonshot"
        return "reached" if self.reaches(self.must) else "missed"

    def reaches(self, limit: float) -> bool:
        assert self.value is not None
        return self.value >= limit if self.more_is_better else self.value <= limit
