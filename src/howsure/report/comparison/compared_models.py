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

# A model, or a model with the score that is looked at.
ModelInput = Predictions | tuple[Predictions, Score]


@frozen(eq=False)
class ComparedModel:
    """One model and its samples with the score that is looked at."""

    name: str
    samples: Samples

    @classmethod
    def of(cls, name: str, preds: Predictions, score: Score) -> ComparedModel:
        """A model with its score computed."""
        return cls(name=str(name), samples=Samples.of(preds, [score]))

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


def join_models(
    given: Mapping[str, ModelInput], score: Score, *, common: bool = False
) -> list[ComparedModel]:
    """The models with their samples joined; a value is predictions, or (predictions, score)."""
    check_is_mapping(given)
    if len(given) < 2:
        raise InputError(f"there is {len(given)} model to compare; at least two are needed.")
    predictions: dict[str, Predictions] = {}
    scores: dict[str, Score] = {}
    for name, value in given.items():
        preds, own_score = value if isinstance(value, tuple) else (value, score)
        needs_predictions(preds, f"comparing {name!r}")
        predictions[name], scores[name] = preds, own_score
    joined = align(predictions, common=common)
    return [ComparedModel.of(name, joined[name], scores[name]) for name in given]


def check_is_mapping(given: object) -> None:
    """Raise where models come without names, as in a list."""
    if not isinstance(given, Mapping):
        got = f"needs names, this is a {type(given).__name__}"
        raise InputError("compare", got=got, need='write compare({"a": preds_a, "b": preds_b})')


def align(given: Mapping[str, Predictions], *, common: bool) -> dict[str, Predictions]:
    """The same samples in the same order: by ids where all have them, else row by row."""
    if all(p.ids is not None for p in given.values()):
        aligned = _join_by_ids(given, common=common)
    else:
        sizes = {name: p.n for name, p in given.items()}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
            raise InputError(
                f"these are not the same samples ({listed}); give ids, so that they can be joined."
            )
        aligned = dict(given)
    _check_same_labels(aligned)
    return aligned


def _join_by_ids(given: Mapping[str, Predictions], *, common: bool) -> dict[str, Predictions]:
    ids: dict[str, Array] = {name: np.asarray(p.ids) for name, p in given.items()}
    for name, column in ids.items():
        if len(np.unique(column)) < len(column):
            raise InputError(f"{name}: an id occurs twice; ids must be unique to join by them.")
    # Sorted, so that all models get the same order.
    shared = reduce(np.intersect1d, ids.values())
    longer = [name for name, column in ids.items() if len(column) > len(shared)]
    if not len(shared) or (longer and not common):
        raise InputError(
            f"only {len(shared):,} ids are in all models ({longer[0]} has {len(ids[longer[0]]):,}); "
            "common=True (--common) compares on those."
        )
    joined: dict[str, Predictions] = {}
    for name, preds in given.items():
        order = np.argsort(ids[name], kind="stable")
        rows = order[np.searchsorted(ids[name][order], shared)]
        joined[name] = preds[rows]
    return joined


def _check_same_labels(given: Mapping[str, Predictions]) -> None:
    """Raise where labels differ: then these are not the same samples."""
    known = {name: p.known_labels for name, p in given.items() if p.known_labels is not None}
    for name, labels in known.items():
        first = next(iter(known))
        differ = np.flatnonzero(labels != known[first])
        if len(differ):
            row = differ[0]
            raise InputError(
                f"row {row} has label {known[first][row]} in {first} and {labels[row]} in {name} "
                f"({len(differ):,} such rows); these are not the same samples in the same order. Give ids."
            )
