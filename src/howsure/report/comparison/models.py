"""Several models or scores on the same samples, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from howsure._core.check import Array, Floats, InputError
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.report import catalogue
from howsure.tallies.tally import Tally

Score = str | Callable[[Predictions], Any]


@dataclass(frozen=True, eq=False)
class Model:
    """One model with the score that is looked at."""

    name: str
    preds: Predictions
    score: Floats
    score_name: str

    @property
    def outcomes(self) -> Outcomes:
        """Score and correctness, sample by sample."""
        p = self.preds
        return Outcomes(self.score, correct=p.correct, weight=p.weight, id=p.ids, group=p.group)

    @property
    def tally(self) -> Tally:
        """The sorted table of the score."""
        return self.outcomes.tally()


def models(given: Mapping[str, Any], score: Score, *, common: bool = False) -> list[Model]:
    """The models with their samples joined; a value is predictions, or (predictions, score)."""
    if len(given) < 2:
        raise InputError(f"there is {len(given)} model to compare; at least two are needed.")
    pairs = {name: v if isinstance(v, tuple) else (v, score) for name, v in given.items()}
    joined = align({name: preds for name, (preds, _) in pairs.items()}, common=common)
    return [model(name, joined[name], pairs[name][1]) for name in pairs]


def model(name: str, preds: Predictions, score: Score) -> Model:
    """A model with its score computed."""
    f = score if callable(score) else catalogue.score_named(score)
    return Model(str(name), preds, np.asarray(f(preds)), getattr(f, "__name__", "score"))


def align(given: Mapping[str, Predictions], *, common: bool) -> dict[str, Predictions]:
    """The same samples in the same order: by ids where all have them, else row by row."""
    if all(p.ids is not None for p in given.values()):
        return _by_ids(given, common=common)
    sizes = {name: p.n for name, p in given.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
        raise InputError(f"these are not the same samples ({listed}); give ids, so that they can be joined.")
    return _same_labels(dict(given))


def _by_ids(given: Mapping[str, Predictions], *, common: bool) -> dict[str, Predictions]:
    ids: dict[str, Array] = {name: np.asarray(p.ids) for name, p in given.items()}
    for name, column in ids.items():
        if len(np.unique(column)) < len(column):
            raise InputError(f"{name}: an id occurs twice; ids must be unique to join by them.")
    shared = reduce(np.intersect1d, ids.values())
    short = [name for name, column in ids.items() if len(column) > len(shared)]
    if not len(shared) or (short and not common):
        raise InputError(
            f"only {len(shared):,} ids are in all models ({short[0]} has {len(ids[short[0]]):,}); "
            "common=True (--common) compares on those."
        )
    return _same_labels({name: p[_positions(ids[name], shared)] for name, p in given.items()})


def _positions(ids: Array, wanted: Array) -> Array:
    order = np.argsort(ids, kind="stable")
    return order[np.searchsorted(ids[order], wanted)]


def _same_labels(given: dict[str, Predictions]) -> dict[str, Predictions]:
    """Refuse samples whose labels differ: they are not the same samples."""
    known = {name: p.known_labels for name, p in given.items() if p.known_labels is not None}
    for name, labels in known.items():
        first = next(iter(known))
        differ = np.flatnonzero(labels != known[first])
        if len(differ):
            raise InputError(
                f"row {differ[0]} has label {known[first][differ[0]]} in {first} and {labels[differ[0]]} in {name} "
                f"({len(differ):,} such rows); these are not the same samples in the same order. Give ids."
            )
    return given
