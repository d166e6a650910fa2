"""Outcomes: one row per sample, unsorted; for everything that needs identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import repeat_values
from howsure.predictions.input_shapes import pick_rows
from howsure.predictions.predictions import Predictions

# Tallies are imported where they are made: who only decides what to accept makes none.
if TYPE_CHECKING:
    from howsure.tallies.tally import Tally


class GivenOutcome(TypedDict, total=False):
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
        column = checks.column(score, "score")
        n = len(column)
        if (correct is None) == (loss is None):
            raise InputError(
                "give either correct= (0/1 per sample) or loss= (a number per sample), exactly one."
            )
        columns: dict[str, Array | None] = dict.fromkeys(
            ("correct", "loss", "weight", "id", "group")
        )
        columns["score"] = column
        if correct is not None:
            columns["correct"] = checks.zero_one(correct, "correct")
        if loss is not None:
            columns["loss"] = checks.finite(checks.column(loss, "loss"), "loss")
        if weight is not None:
            columns["weight"] = checks.weights(weight, n)
        if id is not None:
            columns["id"] = np.asarray(id)
        if group is not None:
            columns["group"] = np.asarray(group)
        rows: slice | Ints = slice(None)
        if count is not None:
            rows = repeat_values(np.arange(n), checks.counts(count, n))
        for name, values in columns.items():
            if values is not None:
                checks.same_length(values, name, n, "score")
            object.__setattr__(self, name, pick_rows(values, rows))

    @classmethod
    def of(
        cls, preds: Predictions, score: ArrayLike | None = None, **outcome: Unpack[GivenOutcome]
    ) -> Outcomes:
        """The outcomes of predictions, with their weights, ids and groups.

        The score is `preds.score` unless given; `correct=` or `loss=` replaces right and wrong.
        Graded answers have their loss.

        >>> Outcomes.of(Predictions.from_probs([[0.7, 0.3]], [0], group=["a"])).group
        array(['a'], dtype='<U1')
        """
        if score is None:
            score = preds.score
        correct, loss = outcome.get("correct"), outcome.get("loss")
        if not outcome and preds.graded:
            loss = preds.loss
        elif not outcome:
            correct = preds.correct
        return cls(
            score,
            correct=correct,
            loss=loss,
            weight=preds.weight,
            id=preds.ids,
            group=preds.group,
        )

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
        from howsure.tallies.building import tally

        return tally(self.score, self.correct, loss=self.loss, weight=self.weight)

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, rows: slice | Sequence[int] | Ints | Bools) -> Outcomes:
        names = ("score", "correct", "loss", "weight", "id", "group")
        return replace(self, **{name: pick_rows(getattr(self, name), rows) for name in names})


def needs_outcomes(x: object, what: str) -> None:
    """Raise if `x` is neither a tally nor Outcomes, such as an array or predictions.

    >>> needs_outcomes([0.9, 0.1], "a threshold")
    Traceback (most recent call last):
    howsure.InputError: a threshold needs a tally or Outcomes, this is a list; make one with tally(score, correct=...).
    """
    from howsure.tallies.tally import is_tally

    if is_tally(x) or isinstance(x, Outcomes):
        return
    make = "make one with tally(score, correct=...)"
    if isinstance(x, Predictions):
        make = "make one with tally(preds.confidence, correct=preds.correct), or Outcomes.of(preds), which keeps groups"
    raise InputError(
        what, got=f"needs a tally or Outcomes, this is a {type(x).__name__}", need=make
    )
