"""Questions that a model did not answer, counted by reason."""

from __future__ import annotations

from dataclasses import fields

from howsure._core.frozen import frozen


@frozen
class Unanswered:
    """How many questions have no answer, and why; `+` merges two data sets.

    `unparseable`: text that is none of the possible answers. `refused`: the model declined.
    `missing`: nothing came back. `unstated`: answered, but without the confidence that is looked
    at; `unstated_right` of these are right (the sum of their grades). Metrics and curves are over
    the answered; coverage counts all questions.

    >>> both = Unanswered(refused=2) + Unanswered(refused=1, missing=4)
    >>> both.total, str(both)
    (7, '3 refused, 4 missing')
    """

    unparseable: int = 0
    refused: int = 0
    missing: int = 0
    unstated: int = 0
    unstated_right: float = 0.0

    @property
    def total(self) -> int:
        """All of them."""
        return self.unparseable + self.refused + self.missing + self.unstated

    def __add__(self, other: Unanswered) -> Unanswered:
        return Unanswered(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __str__(self) -> str:
        words = {
            "unparseable": "unparseable",
            "refused": "refused",
            "missing": "missing",
            "unstated": "without confidence",
        }
        return ", ".join(
            f"{getattr(self, name):,} {word}" for name, word in words.items() if getattr(self, name)
        )
