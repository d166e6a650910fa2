"""Which numbers and scores belong to which data; the numbers themselves are listed in
`render.catalogue`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan
from typing import Protocol

from numpy.typing import ArrayLike

from howsure import scores
from howsure._core.check import InputError
from howsure.predictions import Predictions
from howsure.render.catalogue import CATALOGUE, TOP_K, Item
from howsure.tallies.tally import Tally

Score = str | Callable[[Predictions], ArrayLike]


class Described(Protocol):
    """Predictions, or what is known about them."""

    @property
    def kind(self) -> str:
        """logits, probs or confidence."""
        ...

    @property
    def k(self) -> int | None:
        """Number of classes."""
        ...


def ranking() -> list[Item]:
    """Numbers of any score: can I rank by it?"""
    return [item for item in CATALOGUE if item.needs == "order"]


def claims() -> list[Item]:
    """Numbers of a score in [0, 1] that claims to be a probability: can I read it as one?"""
    return [item for item in CATALOGUE if item.needs == "claim"]


def whole(preds: Described) -> list[Item]:
    """Numbers of the predictions themselves: what are they worth?"""
    needs = ["answers"]
    if preds.kind != "confidence":
        needs += (
            ["classes", "many classes"] if preds.k is not None and preds.k > TOP_K else ["classes"]
        )
    return [item for item in CATALOGUE if item.needs in needs]


def of_images() -> list[Item]:
    """Numbers of images with masks."""
    return [item for item in CATALOGUE if item.needs == "images"]


def of_cases() -> list[Item]:
    """Numbers of cases with many labels."""
    return [item for item in CATALOGUE if item.needs == "labels"]


def possible(
    preds: Described, t: Tally, *, many_labels: bool = False, images: bool = False
) -> list[Item]:
    """Every number that the predictions and a score of them allow."""
    units = [*(of_cases() if many_labels else []), *(of_images() if images else [])]
    return [*units, *whole(preds), *ranking(), *(claims() if is_claim(t) else [])]


def is_claim(t: Tally) -> bool:
    """Whether all scores lie in [0, 1], so that they can be read as probabilities of being right."""
    low, high = t.score_range()
    return low >= 0 and high <= 1


def default_scores(preds: Predictions) -> list[str]:
    """The scores worth comparing on this kind of predictions; the first is the one that a report is
    about.
    """
    if preds.kind == "confidence":
        return ["max_prob"]
    if preds.samples > 1:
        return [
            "max_prob",
            "predictive_entropy",
            "expected_entropy",
            "mutual_information",
            "variance",
        ]
    of_logits = ["max_logit", "energy"] if preds.kind == "logits" else []
    of_many = (
        ["entropy", "margin"] if preds.k != 2 else []
    )  # with two classes they rank as max_prob does
    return ["max_prob", *of_many, *of_logits]


def named(score: Score) -> tuple[str, Callable[[Predictions], ArrayLike]]:
    """A score with its name."""
    if callable(score):
        return getattr(score, "__name__", "score"), score
    return score, score_named(score)


def score_named(name: str) -> Callable[[Predictions], ArrayLike]:
    """A score by its name, with a suggestion where there is none."""
    if name in scores.__all__:
        return getattr(scores, name)
    from difflib import get_close_matches

    near = get_close_matches(name, scores.__all__, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise InputError(f"there is no score {name!r}; known: {', '.join(scores.__all__)}.{hint}")


def why_undefined(name: str, value: float, t: Tally) -> str:
    """The reason why a number is nan or infinite."""
    if isnan(value) and t.total == 0:
        return "undefined: every answer is right"
    if isnan(value) and t.total == t.n:
        return "undefined: every answer is wrong"
    if name.startswith("eor") and value == inf:
        return "infinite: some bin has no errors (see eor_smooth)"
    if value == inf:
        return "infinite: a claim of 0 or 1 was wrong"
    return "undefined for these data"
