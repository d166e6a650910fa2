"""Which numbers a report holds for which data: the name in the JSON, and how it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, isnan
from typing import Any, Literal, Protocol

from howsure import metrics, scores
from howsure._core.check import InputError
from howsure.binning import equal_range
from howsure.metrics.mean_loss import mean_loss
from howsure.metrics.vectors import Cells
from howsure.predictions import Predictions
from howsure.render.model import Better
from howsure.tallies.tally import Tally

Score = str | Callable[[Predictions], Any]
On = Literal["score", "uncertainty", "classes", "nll", "brier", "top_5"]
RISKS = (0.01, 0.05)  # the risks at which a report says how much can be accepted
TOP_K = 5


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


@dataclass(frozen=True)
class Item:
    """One number of a report: the public function behind it, and how it is measured `on` a part of the data.

    `on` is the tally of the score, the tally of the entropy, the sums per class, or the mean of a loss.
    """

    name: str
    metric: Callable[..., float]
    measure: Callable[[Any], float]
    better: Better
    on: On = "score"

    @property
    def limited(self) -> Callable[..., float]:
        """What limits are asked for: a metric that jumps has none, whatever it is measured on."""
        return self.measure if getattr(self.metric, "smooth", True) else self.metric


def item(
    name: str,
    metric: Callable[..., float] | None = None,
    *,
    on: On = "score",
    measure: Callable[[Any], float] | None = None,
    **options: float | str,
) -> Item:
    """The entry of a metric, by its own name or another."""
    f: Any = metric or getattr(metrics, name)
    return Item(name, f, measure or (partial(f, **options) if options else f), f.better, on)


def ranking() -> list[Item]:
    """Numbers of any score: can I rank by it?"""
    plain = [item(name) for name in ("aurc", "e_aurc", "augrc", "auroc")]
    split = [item(f"aupr_{side}", metrics.aupr, positive=side) for side in ("error", "success")]
    kept = [item(f"coverage_at_risk_{risk:g}", metrics.coverage_at_risk, risk=risk) for risk in RISKS]
    return [*plain, *split, *kept, item("eor"), item("eor_smooth", metrics.eor, degenerate="smooth")]


def claims() -> list[Item]:
    """Numbers of a score in [0, 1] that claims to be a probability: can I read it as one?"""
    names = (
        "ece",
        "aece",
        "mce",
        "amce",
        "signed_calibration_error",
        "over_confidence",
        "under_confidence",
        "debiased_ece",
        "smooth_ece",
        "correctness_brier",
        "correctness_nll",
    )
    return [item(name) for name in names]


def of_classes() -> list[Item]:
    """Numbers that need the probabilities of all classes."""
    bins = equal_range(15)
    return [
        item(f"top_{TOP_K}_accuracy", metrics.top_k_accuracy, on="top_5", measure=metrics.accuracy),
        item("nll", on="nll", measure=mean_loss),
        item("brier", on="brier", measure=mean_loss),
        item("uce", on="uncertainty", measure=partial(metrics.ece, bins=bins)),
        item("muce", on="uncertainty", measure=partial(metrics.mce, bins=bins)),
        item("classwise_ece", on="classes", measure=Cells.mean_gap),
    ]


def whole(preds: Described) -> list[Item]:
    """Numbers of the predictions themselves: what are they worth?"""
    if preds.kind == "confidence":
        return [item("accuracy")]
    few = preds.k is None or preds.k <= TOP_K
    return [item("accuracy"), *of_classes()[1 if few else 0 :]]


def possible(preds: Described, t: Tally) -> list[Item]:
    """Every number that the predictions and a score of them allow."""
    return [*whole(preds), *ranking(), *(claims() if is_claim(t) else [])]


def is_claim(t: Tally) -> bool:
    """Whether all scores lie in [0, 1], so that they can be read as probabilities of being right."""
    low, high = t.score_range()
    return low >= 0 and high <= 1


def catalogue() -> list[Item]:
    """Every number that a report may hold."""
    return [item("accuracy"), *of_classes(), *ranking(), *claims()]


def default_scores(preds: Predictions) -> list[str]:
    """The scores worth comparing on this kind of predictions; the first is the one that a report is about."""
    if preds.kind == "confidence":
        return ["max_prob"]
    if preds.samples > 1:
        return ["max_prob", "predictive_entropy", "expected_entropy", "mutual_information", "variance"]
    of_logits = ["max_logit", "energy"] if preds.kind == "logits" else []
    of_many = ["entropy", "margin"] if preds.k != 2 else []  # with two classes they rank as max_prob does
    return ["max_prob", *of_many, *of_logits]


def named(score: Score) -> tuple[str, Callable[[Predictions], Any]]:
    """A score with its name."""
    if callable(score):
        return getattr(score, "__name__", "score"), score
    return score, score_named(score)


def score_named(name: str) -> Callable[[Predictions], Any]:
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
