"""Outcomes: one row per sample, unsorted; for everything that needs identity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from howsure._core import check
from howsure._core.check import Array, InputError
from howsure.predictions.predictions import Predictions
from howsure.tallies.build import tally
from howsure.tallies.tally import Tally


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Aligned columns: score, correct or loss, and where known weight, id and group.

    A tally forgets which sample was which. Paired comparisons, clusters (patient, image, question) and
    slices need to know, so they work on outcomes. `outcomes[rows]` selects rows.

    >>> o = Outcomes([0.9, 0.8, 0.7], correct=[1, 0, 1], group=["a", "a", "b"])
    >>> o.tally()
    <Tally: n=3, wrong=1, 3 distinct scores>
    >>> len(o[o.group == "a"])
    2
    """

    score: Any
    correct: Any = None
    loss: Any = None
    weight: Any = None
    id: Any = None
    group: Any = None

    def __post_init__(self) -> None:
        score = check.column(self.score, "score")
        if (self.correct is None) == (self.loss is None):
            raise InputError("give either correct= (0/1 per sample) or loss= (a number per sample), exactly one.")
        n = len(score)
        set_: Callable[[str, Any], None] = lambda name, a: object.__setattr__(self, name, a)
        set_("score", score)
        if self.correct is not None:
            set_("correct", check.same_length(check.zero_one(self.correct, "correct"), "correct", n, "score"))
        else:
            loss = check.finite(check.column(self.loss, "loss"), "loss")
            set_("loss", check.same_length(loss, "loss", n, "score"))
        if self.weight is not None:
            set_("weight", check.weights(self.weight, n))
        for name in ("id", "group"):
            if getattr(self, name) is not None:
                set_(name, check.same_length(np.asarray(getattr(self, name)), name, n, "score"))

    @classmethod
    def of(cls, preds: Predictions, score: Any = None, **outcome: Any) -> Outcomes:
        """The outcomes of predictions, with their weights, ids and groups.

        The score is the confidence unless given; `correct=` or `loss=` replaces right and wrong. Graded answers have
        their loss.

        >>> Outcomes.of(Predictions.from_probs([[0.7, 0.3]], [0], group=["a"])).group
        array(['a'], dtype='<U1')
        """
        given = outcome or ({"loss": preds.loss} if preds.graded else {"correct": preds.correct})
        score = preds.confidence if score is None else score
        return cls(score, **given, weight=preds.weight, id=preds.ids, group=preds.group)

    def tally(self) -> Tally:
        """The sorted reduction of these rows, made once."""
        return self._tally

    @cached_property
    def _tally(self) -> Tally:
        return tally(self.score, self.correct, loss=self.loss, weight=self.weight)

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, rows: Any) -> Outcomes:
        pick: Callable[[Array | None], Any] = lambda a: None if a is None else a[rows]
        names = ("score", "correct", "loss", "weight", "id", "group")
        return replace(self, **{name: pick(getattr(self, name)) for name in names})
