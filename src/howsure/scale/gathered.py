"""What is known of some parts of a job; it adds up, whichever worker found it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.report.details import Details
from howsure.report.masks import in_file
from howsure.report.summary import Summary, total

LIMIT = 32_000_000  # distinct scores of all tallies together; about 400 MB of float32 scores


@frozen(eq=False)
class Gathered:
    """Which parts, their summary or, of a second reading, their details, and what of them could not
    be read.
    """

    parts: frozenset[int]
    summary: Summary | None
    skipped: tuple[str, ...] = ()
    details: Details | None = None

    @property
    def size(self) -> int:
        """Numbers that take memory and become fewer by adding up."""
        return (0 if self.summary is None else self.summary.size) + (
            0 if self.details is None else self.details.size
        )

    def __add__(self, other: Gathered) -> Gathered:
        return gathered([self, other])


def gathered(every: Sequence[Gathered]) -> Gathered:
    """All parts of all of them; a part that is in two of them is refused, for it would count twice."""
    parts = frozenset[int]().union(*(g.parts for g in every))
    if len(parts) < sum(len(g.parts) for g in every):
        raise InputError(
            "some part of the data is in two overlapping sums; run the evaluation again."
        )
    found = [g.summary for g in every if g.summary is not None]
    details = [g.details for g in every if g.details is not None]
    return Gathered(
        parts,
        within(total(found)) if found else None,
        tuple(note for g in every for note in g.skipped),
        reduce(Details.__add__, details) if details else None,
    )


def within(s: Summary) -> Summary:
    """Return `s`; raise if it has grown beyond what is kept exactly."""
    if s.size <= LIMIT:
        return s
    raise InputError(
        f"these data have more than {LIMIT:,} distinct scores, too many to keep exactly in bounded memory; "
        "ask for the compact tally, which gives certified bounds (compact=True, --compact), or for fewer scores."
    )


def moved(g: Gathered, part: int, file: int) -> Gathered:
    """One part under another number, as when files were added since it was stored."""
    if g.summary is None:
        return replace(g, parts=frozenset((part,)))
    images = None if g.summary.images is None else in_file(g.summary.images, file)
    listed = tuple(suspect._replace(file=file) for suspect in g.summary.suspects)
    there = replace(g.summary, files={file: g.summary.n}, suspects=listed, images=images)
    return replace(g, parts=frozenset((part,)), summary=there)
