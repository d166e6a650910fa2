"""Suggestions: the few classes that a deferred answer may be, for whoever decides it.

What suggests at run time needs NumPy alone; what fits (`fit_suggestions`, `split_halves`) imports
the rest when it is called.
"""

from __future__ import annotations

from math import ceil, inf, nan
from typing import TYPE_CHECKING

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values

if TYPE_CHECKING:
    from howsure.policies.policy import Policy
    from howsure.predictions import Predictions

LONGEST_LIST = 5  # classes; whoever decides is not helped by more
SHORT_LIST = 3
OWN_CUT_ROWS = 100  # deferred rows of a class that give it a cut of its own
RANK_TOLERANCE = 1e-9  # of rounding: 0.95 of 20 rows are 19


@frozen
class Suggestions:
    """What to suggest where a policy defers: the answer, and every class k with 1 − p_k at most its
    cut.

    The classes in `keys` have `cuts` of their own, the others share `cut`; inf suggests a class
    always. `level` is the share of the deferred whose truth is among the suggestions, on average;
    a list longer than 5 is left out and counts as every class. `n` rows (or groups) are behind it,
    `short` is their share with at most 3 suggestions, `none` that without any.
    """

    level: float
    cut: float
    keys: tuple[int, ...] = ()
    cuts: tuple[float, ...] = ()
    n: int = 0
    short: float = nan
    none: float = nan

    def __post_init__(self) -> None:
        checks.within(self.level, 0, 1, "level")
        if len(self.keys) != len(self.cuts) or any(key < 0 for key in self.keys):
            raise InputError(f"{len(self.keys)} classes have {len(self.cuts)} cuts.")
        if not all(cut >= 0 for cut in (self.cut, *self.cuts)):
            raise InputError("a cut of suggestions is below 0 or nan.")

    def suggest(self, probs: Floats, answer: Ints) -> Ints:
        """The classes to suggest in each row of probabilities, likeliest first and filled up with
        -1; only -1 where they would be more than 5.

        >>> Suggestions(level=0.95, cut=0.8).suggest(np.array([[0.1, 0.6, 0.3]]), np.array([1]))
        array([[ 1,  2, -1]])
        """
        k = probs.shape[1]
        if max(self.keys, default=0) >= k:
            raise InputError(f"suggestions know class {max(self.keys)}; these rows have {k}.")
        cuts = np.full(k, self.cut)
        cuts[list(self.keys)] = self.cuts
        inside = 1 - probs <= cuts
        inside[np.arange(len(probs)), answer] = True
        # Classes inside come first, by probability; the smaller class among equals.
        order = np.argsort(np.where(inside, -probs, 1.0), axis=1, kind="stable")[:, :LONGEST_LIST]
        shown = np.take_along_axis(inside, order, axis=1)
        shown &= (inside.sum(axis=1) <= LONGEST_LIST)[:, None]
        return np.where(shown, order, -1)

    def to_text(self) -> str:
        """What the suggestions hold.

        >>> Suggestions(level=0.95, cut=0.8, n=40, short=0.7, none=0.0).to_text()
        'The right answer is among the suggestions in 95 % of the deferred, on average; 70 % get at most 3.'
        """
        text = "The right answer is among the suggestions in "
        text += f"{self.level * 100:g} % of the deferred, on average"
        if self.n == 0:
            return f"{text}; nothing was deferred where they were made."
        text += f"; {_write_share(self.short)} get at most {SHORT_LIST}"
        if self.none > 0:
            text += f", {_write_share(self.none)} get none, which counts as every class"
        return f"{text}."


def _write_share(share: float) -> str:
    """Whole percent; 0 and 100 only where that is exact."""
    if 0 < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1:
        return "over 99 %"
    return f"{share * 100:.0f} %"


def split_halves(
    preds: Predictions, by: str | None = None, seed: int = 0
) -> tuple[Predictions, Predictions]:
    """Two random halves, groups whole unless segments are groups: one for the threshold, one for
    suggestions.
    """
    from howsure.policies.deployment import assign_folds
    from howsure.predictions import needs_predictions

    needs_predictions(preds, "split_halves")
    half = assign_folds(preds.n, _find_clusters(preds, by), 2, seed)
    if half.all() or not half.any():
        raise InputError("suggestions need two halves; this is a single row or group.")
    return preds[half == 0], preds[half == 1]


def fit_suggestions(
    policy: Policy, preds: Predictions, level: float = 0.95, seed: int = 0
) -> Policy:
    """The policy with suggestions for what it defers, from labelled rows that did not choose its
    threshold.

    Split conformal prediction among the deferred: the cut is the ceil((m + 1) level)-th smallest
    1 − p of the true class over the m deferred rows (one of each group), inf where there are fewer.
    Classes with at least 100 deferred rows have a cut of their own. Vovk, Gammerman & Shafer 2005;
    by class: Vovk 2012.
    """
    from dataclasses import replace

    from howsure.predictions import needs_predictions

    needs_predictions(preds, "fit_suggestions")
    checks.fraction(level, "level")
    if level in (0, 1):
        raise InputError(f"level is {level:g}; a share between 0 and 1 is needed, such as 0.95.")
    if policy.by in ("label", "image"):
        raise InputError(
            "suggestions are classes for one answer; this policy is about labels or images."
        )
    if preds.weight is not None:
        raise InputError(
            "suggestions rest on equally likely rows, and these have weights; give rows without."
        )
    decisions = policy.decide(preds)
    if policy.calibrator is not None:
        preds = policy.calibrator(preds)
    preds.needs_vector("a list of suggestions")
    deferred = np.flatnonzero(~decisions.accept)
    if not len(deferred):
        return replace(policy, suggestions=Suggestions(level=level, cut=inf))
    group = _find_clusters(preds, policy.by)
    if group is not None:
        # One random row of each group: np.unique takes the first, so the rows are shuffled before.
        deferred = np.random.default_rng(seed).permutation(deferred)
        deferred = deferred[np.unique(group[deferred], return_index=True)[1]]
    probs, labels = preds[deferred].probs, np.asarray(preds.labels)[deferred]
    distance = 1 - probs[np.arange(len(labels)), labels]
    own = np.flatnonzero(count_values(labels) >= OWN_CUT_ROWS)
    suggestions = Suggestions(
        level=level,
        cut=_find_distance(distance[~np.isin(labels, own)], level),
        keys=tuple(own.tolist()),
        cuts=tuple(_find_distance(distance[labels == k], level) for k in own.tolist()),
        n=len(labels),
    )
    answer = np.asarray(decisions.prediction)[deferred]
    length = (suggestions.suggest(probs, answer) >= 0).sum(axis=1)
    short = float(((length > 0) & (length <= SHORT_LIST)).mean())
    suggestions = replace(suggestions, short=short, none=float((length == 0).mean()))
    return replace(policy, suggestions=suggestions)


def _find_clusters(preds: Predictions, by: str | None) -> Array | None:
    """The groups of the rows; none where a segment is a group, whose rows are the units then."""
    return None if by is not None and "group" in by.split(",") else preds.group


def _find_distance(distance: Floats, level: float) -> float:
    """The conformal quantile: at least this share of new distances is at most as large."""
    rank = ceil((len(distance) + 1) * level - RANK_TOLERANCE)
    return inf if rank > len(distance) else float(np.partition(distance, rank - 1)[rank - 1])
