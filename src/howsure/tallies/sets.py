"""Set losses: a risk that belongs to the whole kept set, such as 1 − Dice in segmentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.check import Array, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.tallies.row_tally import find_runs


@frozen(eq=False)
class SetTally:
    """One row per distinct score with additive `parts`; `risk_of` turns their running sums into the
    risk.

    Goes where a tally goes for risk–coverage curves and for the step and trapezoid AURC.

    >>> t = dice_tally([0.9, 0.8], [1, 1], [1, 0])
    >>> t + t
    <SetTally: n=4, 2 distinct scores>
    """

    score: Floats
    count: Ints
    parts: Array  # (rows, number of parts)
    risk_of: Callable[[Array], Floats]
    approximate: str | None = None

    @property
    def n(self) -> int:
        """Number of units, such as pixels."""
        return int(self.count.sum())

    @cached_property
    def risk(self) -> Floats:
        """Risk of the kept set at each row."""
        return self.risk_of(np.cumsum(self.parts, axis=0))

    def __add__(self, other: SetTally) -> SetTally:
        if self.risk_of != other.risk_of or self.parts.shape[1] != other.parts.shape[1]:
            raise InputError(
                "these tallies measure different set losses; only tallies of one kind add up."
            )
        return _sum_equal_scores(
            score=np.concatenate((self.score, other.score)),
            count=np.concatenate((self.count, other.count)),
            parts=np.concatenate((self.parts, other.parts)),
            risk_of=self.risk_of,
        )

    def __radd__(self, other: object) -> SetTally:
        # sum(tallies) starts from 0.
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"<SetTally: n={self.n:,}, {len(self.score):,} distinct scores>"


def set_tally(score: ArrayLike, parts: ArrayLike, risk_of: Callable[[Array], Floats]) -> SetTally:
    """A tally for any set loss that is a function of sums over the kept units.

    `parts` has one row per unit; `risk_of` maps running sums, one row per threshold, to risks.

    >>> t = set_tally([0.9, 0.5], [[1, 0], [0, 1]], lambda sums: sums[:, 1] / sums.sum(axis=1))
    >>> t.risk
    array([0. , 0.5])
    """
    s = check.column(score, "score").astype(np.float64) + 0.0  # -0.0 becomes 0.0
    p = check.finite(check.array(parts, "parts"), "parts")
    if p.ndim != 2:
        raise InputError(
            f"parts has shape {p.shape}; one row per unit and one column per sum is needed."
        )
    check.same_length(p, "parts", len(s), "score")
    ones = np.ones(len(s), dtype=np.int64)
    return _sum_equal_scores(score=s, count=ones, parts=p, risk_of=risk_of)


def _sum_equal_scores(
    score: Floats, count: Ints, parts: Array, risk_of: Callable[[Array], Floats]
) -> SetTally:
    order = np.argsort(-score, kind="stable")
    score = score[order]
    start = find_runs(score)
    total = np.add.reduceat(count[order], start)
    return SetTally(
        score=score[start],
        count=total.astype(np.int64),
        parts=np.add.reduceat(parts[order], start),
        risk_of=risk_of,
    )


def dice_tally(
    score: ArrayLike, prediction: ArrayLike, truth: ArrayLike, classes: Sequence[int] | None = None
) -> SetTally:
    r"""A tally whose risk is 1 − Dice on the kept pixels.

    .. math:: \mathrm{Dice} = \frac{2 |P \cap T|}{|P| + |T|}

    averaged over the foreground `classes`; both sets empty counts 1. With `classes=None` everything that is
    not 0 is one foreground. Arrays of any shape are flattened. Its `aurc` is the step variant by default.
    Ding et al. 2020, section 4.1.

    >>> dice_tally([0.9, 0.8, 0.7], [1, 1, 0], [1, 0, 1]).risk
    array([0.        , 0.33333333, 0.5       ])
    """
    s = check.floats(score, "score").ravel()
    p = _check_mask(prediction, "prediction", len(s))
    t = _check_mask(truth, "truth", len(s))
    if classes is None:
        p, t, classes = p != 0, t != 0, [1]
    if len(classes) == 0:
        raise InputError("classes is empty; name at least one foreground class.")
    parts: list[Array] = []
    for c in classes:
        in_p, in_t = p == c, t == c
        parts += [2 * (in_p & in_t), in_p.astype(int) + in_t]
    return set_tally(s, np.stack(parts, axis=1).astype(np.int64), dice_risk)


def dice_risk(sums: Array) -> Floats:
    """1 − mean Dice from columns 2|P∩T|, |P|+|T| per class."""
    overlap, size = sums[:, 0::2], sums[:, 1::2]
    dice = np.where(size > 0, overlap / np.maximum(size, 1), 1.0)
    return 1.0 - dice.mean(axis=1)


def _check_mask(a: ArrayLike, name: str, n: int) -> Array:
    mask = check.array(a, name).ravel()
    if mask.dtype.kind == "f":
        raise InputError(
            f"{name} has dtype {mask.dtype}; whole class numbers are needed. Use {name}.astype(int)."
        )
    return check.same_length(mask, name, n, "score")
