"""Outcomes: one row per sample, unsorted; for everything that needs identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.predictions.predictions import Predictions
from howsure.tallies.build import tally
from howsure.tallies.tally import Tally, is_tally


class Outcome(TypedDict, total=False):
    """What happened: right or wrong, or any loss."""

    correct: ArrayLike
    loss: ArrayLike


@frozen(eq=False)
class Outcomes:
    """Aligned columns: score, correct or loss, and where known weight, id and group.

    A `weight` is importance, of which only the ratios matter; a `count` is repetition, the same as
    that many rows. A tally forgets which sample was which. Paired comparisons, clusters (patient,
    image, question) and slices need to know, so they work on outcomes. `outcomes[rows]` selects
    rows.

    >>> o = Outcomes([0.9, 0.8, 0.7], correct=[1, 0, 1], group=["a", "a", "b"])
    >>> o.tally()
    <Tally: n=3, wrong=1, 3 distinct scores>
    >>> len(o[o.group == "a"])
    2
    """

    score: Array
    correct: Bools | None
    loss: Array | None
    weight: Floats | None
    id: Array | None
    group: Array | None

    def __init__(
        self,
        score: ArrayLike,
        correct: ArrayLike | None = None,
        loss: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        id: ArrayLike | None = None,
        group: ArrayLike | None = None,
        count: ArrayLike | None = None,
    ):
        given = check.column(score, "score")
        n = len(given)
        if (correct is None) == (loss is None):
            raise InputError(
                "give either correct= (0/1 per sample) or loss= (a number per sample), exactly one."
            )
        columns = {
            "score": given,
            "correct": None if correct is None else check.zero_one(correct, "correct"),
            "loss": None if loss is None else check.finite(check.column(loss, "loss"), "loss"),
            "weight": None if weight is None else check.weights(weight, n),
            "id": None if id is None else np.asarray(id),
            "group": None if group is None else np.asarray(group),
        }
        rows = slice(None) if count is None else np.repeat(np.arange(n), check.counts(count, n))
        for name, column in columns.items():
            held = None if column is None else check.same_length(column, name, n, "score")[rows]
            object.__setattr__(self, name, held)

    @classmethod
    def of(
        cls, preds: Predictions, score: ArrayLike | None = None, **outcome: Unpack[Outcome]
    ) -> Outcomes:
        """The outcomes of predictions, with their weights, ids and groups.

        The score is the confidence unless given; `correct=` or `loss=` replaces right and wrong.
        Graded answers have their loss.

        >>> Outcomes.of(Predictions.from_probs([[0.7, 0.3]], [0], group=["a"])).group
        array(['a'], dtype='<U1')
        """
        own: Outcome = {"loss": preds.loss} if preds.graded else {"correct": preds.correct}
        given = outcome or own
        score = preds.confidence if score is None else score
        return cls(score, **given, weight=preds.weight, id=preds.ids, group=preds.group)

    @property
    def right(self) -> Bools:
        """Which answers are right; raise where only a loss is known."""
        if self.correct is None:
            raise InputError(
                "these outcomes have a loss instead of right and wrong; give correct=."
            )
        return self.correct

    @property
    def units(self) -> Ints:
        """The number of each row's group, in sorted order of the groups; its own number where there
        are none.
        """
        if self.group is None:
            return np.arange(len(self))
        return np.unique(self.group, return_inverse=True)[1].reshape(-1)

    def tally(self) -> Tally:
        """The sorted reduction of these rows, made once."""
        return self._tally

    @cached_property
    def _tally(self) -> Tally:
        return tally(self.score, self.correct, loss=self.loss, weight=self.weight)

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, rows: slice | Sequence[int] | Ints | Bools) -> Outcomes:
        pick: Callable[[Array | None], Array | None] = lambda a: None if a is None else a[rows]
        names = ("score", "correct", "loss", "weight", "id", "group")
        return replace(self, **{name: pick(getattr(self, name)) for name in names})


def needs_outcomes(x: object, what: str) -> None:
    """Raise if `x` is neither a tally nor Outcomes, such as an array or predictions.

    >>> needs_outcomes([0.9, 0.1], "a threshold")
    Traceback (most recent call last):
    howsure.InputError: a threshold needs a tally or Outcomes, this is a list; make one with tally(score, correct=...).
    """
    if is_tally(x) or isinstance(x, Outcomes):
        return
    make = "make one with tally(score, correct=...)"
    if isinstance(x, Predictions):
        make = "make one with tally(preds.confidence, correct=preds.correct), or Outcomes.of(preds), which keeps groups"
    raise InputError(
        what, got=f"needs a tally or Outcomes, this is a {type(x).__name__}", need=make
    )
