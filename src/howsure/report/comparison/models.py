"""Several models or scores on the same samples, in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np

from howsure._core.check import Array, Floats, InputError
from howsure._core.frozen import frozen
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import Score
from howsure.report.samples import Samples
from howsure.tallies.tally import Tally

Given = (
    Predictions | tuple[Predictions, Score]
)  # a model, or a model with the score that is looked at


@frozen(eq=False)
class Model:
    """One model and its samples with the score that is looked at."""

    name: str
    samples: Samples

    @property
    def preds(self) -> Predictions:
        """What it answered."""
        return self.samples.preds

    @property
    def score_name(self) -> str:
        """The score that is looked at."""
        return self.samples.first

    @property
    def score(self) -> Floats:
        """That score of each sample."""
        return self.samples.scores[self.score_name]

    @property
    def outcomes(self) -> Outcomes:
        """Score and correctness, sample by sample, in the order that all models share."""
        return self.samples.outcomes("score", self.score_name)

    @property
    def tally(self) -> Tally:
        """The sorted table of the score."""
        return self.outcomes.tally()


def models(given: Mapping[str, Given], score: Score, *, common: bool = False) -> list[Model]:
    """The models with their samples joined; a value is predictions, or (predictions, score)."""
    _needs_names(given)
    if len(given) < 2:
        raise InputError(f"there is {len(given)} model to compare; at least two are needed.")
    pairs = {name: v if isinstance(v, tuple) else (v, score) for name, v in given.items()}
    for name, (preds, _) in pairs.items():
        needs_predictions(preds, f"comparing {name!r}")
    joined = align({name: preds for name, (preds, _) in pairs.items()}, common=common)
    return [model(name, joined[name], pairs[name][1]) for name in pairs]


def _needs_names(given: object) -> None:
    if not isinstance(given, Mapping):
        got = f"needs names, this is a {type(given).__name__}"
        raise InputError("compare", got=got, need='write compare({"a": preds_a, "b": preds_b})')


def model(name: str, preds: Predictions, score: Score) -> Model:
    """A model with its score computed."""
    return Model(str(name), Samples.of(preds, [score]))


def align(given: Mapping[str, Predictions], *, common: bool) -> dict[str, Predictions]:
    """The same samples in the same order: by ids where all have them, else row by row."""
    if all(p.ids is not None for p in given.values()):
        return _by_ids(given, common=common)
    sizes = {name: p.n for name, p in given.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
        raise InputError(
            f"these are not the same samples ({listed}); give ids, so that they can be joined."
        )
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
