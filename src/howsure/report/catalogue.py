"""The one list of a report's numbers, and which of them (and which scores) fit which data.

Reports, terminal, Markdown, page, gate and docs read this list and nothing else. To add a number,
add its entry to `CATALOGUE`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, isnan
from typing import Literal, Protocol

from numpy.typing import ArrayLike

from howsure import losses, metrics, scores
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.binning import equal_range
from howsure.metrics.calibration_error import ClassBinSums
from howsure.metrics.proper_scores import mean_loss, other_brier, other_nll
from howsure.predictions import Predictions
from howsure.report.report_types import Better
from howsure.tallies.tally import Tally

QUESTIONS = ("What is it worth?", "Can I rank by it?", "Can I read it as a probability?")
WORTH, RANK, READ = range(3)  # places: the question that a number answers
TOP_K = 5
ENTROPY_BINS = equal_range(15)

Score = str | Callable[[Predictions], ArrayLike]
Needs = Literal[
    "answers", "many classes", "classes", "order", "claim", "labels", "images", "pixels"
]
On = Literal[
    "score",
    "uncertainty",
    "classes",
    "positive",
    "nll",
    "brier",
    "top_5",
    "cases",
    "exact",
    "macro",
    "images",
    "pixels",
]

# A terminal shows these unless asked for all.
TERMINAL_NUMBERS = (
    "accuracy",
    "nll",
    "brier",
    "aurc",
    "e_aurc",
    "auroc",
    "coverage_at_risk_0.01",
    "coverage_at_risk_0.05",
    "ece",
    "aece",
    "signed_calibration_error",
    "debiased_ece",
    "hamming_loss",
    "exact_match",
    "macro_auroc",
    "dice_loss",
    "image_aurc",
    "dice_pixels_aurc",
)
# In percent everywhere; all other numbers as they are, which is how options take them.
PERCENT_NUMBERS = (
    "accuracy",
    "exact_match",
    f"top_{TOP_K}_accuracy",
    "coverage_at_risk_0.01",
    "coverage_at_risk_0.05",
)
# Scores in [0, 1]: only these fall on the fixed grid of a compact tally, so that parts add up.
BOUNDED_SCORES = ("max_prob", "entropy", "margin", "top_k_mass")


@frozen
class CatalogueItem:
    """One number: its name in the JSON, the question it answers, its title and what it says in one
    line.

    `needs` says which data allow it. `measure` is applied `on` the tally of the score, the tally of
    the entropy, the sums per class, or the mean of a loss, and gives what `metric`, the public
    function, gives of the predictions.
    """

    name: str
    place: int
    title: str
    says: str
    needs: Needs
    metric: Callable[..., float]
    measure: Callable[..., float]
    better: Better
    on: On = "score"

    @property
    def limit_function(self) -> Callable[..., float]:
        """The function whose limits are computed."""
        # A metric that jumps has no limits. `measure` may not say so of itself (it may be a mean),
        # so the metric is asked for limits instead, and answers with the reason.
        if getattr(self.metric, "smooth", True):
            return self.measure
        return self.metric

    @property
    def option(self) -> str | None:
        """Its option in `howsure check`; None where neither side is better, or where it has an
        argument.
        """
        if self.better == "zero" or self.name.startswith("coverage_at_risk"):
            return None
        side = "max" if self.better == "lower" else "min"
        return f"--{side}-{self.name.replace('_', '-')}"


def make_item(
    name: str,
    place: int,
    title: str,
    says: str,
    needs: Needs,
    metric: Callable[..., float] | None = None,
    on: On = "score",
    measure: Callable[..., float] | None = None,
    **options: float | str,
) -> CatalogueItem:
    """The entry of a metric of the same name, unless given; `options` are those of the metric."""
    function: Callable[..., float] = metric or getattr(metrics, name)
    if measure is None:
        measure = partial(function, **options) if options else function
    return CatalogueItem(
        name=name,
        place=place,
        title=title,
        says=says,
        needs=needs,
        metric=function,
        measure=measure,
        better=getattr(function, "better", "higher"),
        on=on,
    )


_of_cases = partial(make_item, place=WORTH, needs="labels")
_of_classes = partial(make_item, needs="classes")
_of_order = partial(make_item, place=RANK, needs="order")
_of_claim = partial(make_item, place=READ, needs="claim")

CATALOGUE: tuple[CatalogueItem, ...] = (
    make_item(
        "accuracy", title="accuracy", says="share of right answers", place=WORTH, needs="answers"
    ),
    make_item(
        f"top_{TOP_K}_accuracy",
        title="top-5 accuracy",
        says="label among the five most probable classes",
        place=WORTH,
        needs="many classes",
        metric=metrics.top_k_accuracy,
        on="top_5",
        measure=metrics.accuracy,
    ),
    _of_cases(
        "hamming_loss",
        title="Hamming loss",
        says="share of wrong labels",
        on="cases",
        measure=mean_loss,
    ),
    _of_cases(
        "exact_match",
        title="exact match",
        says="share of cases with all labels right",
        on="exact",
        measure=metrics.accuracy,
    ),
    _of_cases(
        "macro_auroc",
        title="macro AUC",
        says="mean over labels of the AUC of each",
        on="macro",
        measure=mean_loss,
    ),
    make_item(
        "dice_loss",
        title="1 − Dice",
        says="mean over images; 0 is perfect",
        place=WORTH,
        needs="images",
        on="images",
        measure=mean_loss,
    ),
    make_item(
        "image_aurc",
        title="AURC of images",
        says="mean 1 − Dice over all shares of images kept",
        place=RANK,
        needs="images",
        on="images",
        measure=metrics.aurc,
    ),
    make_item(
        "dice_pixels_aurc",
        title="Dice AURC of pixels",
        says="1 − Dice of the kept pixels over all coverages",
        place=RANK,
        needs="pixels",
        on="pixels",
        metric=metrics.aurc,
    ),
    _of_classes(
        "nll",
        title="NLL",
        says="mean -log probability of the label, nats",
        place=WORTH,
        on="nll",
        measure=partial(mean_loss, other=other_nll),
    ),
    _of_classes(
        "brier",
        title="Brier",
        says="squared distance to the truth, all classes",
        place=WORTH,
        on="brier",
        measure=partial(mean_loss, other=other_brier),
    ),
    _of_classes(
        "uce",
        title="UCE",
        says="gap of error rate and scaled entropy",
        place=READ,
        on="uncertainty",
        measure=partial(metrics.ece, bins=ENTROPY_BINS),
    ),
    _of_classes(
        "muce",
        title="MUCE",
        says="largest such gap",
        place=READ,
        on="uncertainty",
        measure=partial(metrics.mce, bins=ENTROPY_BINS),
    ),
    _of_classes(
        "classwise_ece",
        title="class-wise ECE",
        says="mean ECE of every class's probability",
        place=READ,
        on="classes",
        measure=ClassBinSums.mean_gap,
    ),
    _of_order(
        "aurc",
        title="AURC",
        says="error rate averaged over all shares automated",
    ),
    _of_order("e_aurc", title="E-AURC", says="above the best possible order; one model"),
    _of_order("augrc", title="AUGRC", says="mean share of accepted errors"),
    _of_order(
        "auroc",
        title="AUROC of spotting errors",
        says="a right answer outranks a wrong one; one model",
    ),
    _of_order(
        "aupr_error",
        title="AUPR (errors)",
        says="precision of finding errors; one model",
        metric=metrics.aupr,
        positive="error",
    ),
    _of_order(
        "aupr_success",
        title="AUPR (successes)",
        says="precision of finding right answers; one model",
        metric=metrics.aupr,
        positive="success",
    ),
    _of_order(
        "coverage_at_risk_0.01",
        title="coverage at 1 % risk",
        says="observed share with at most 1 % wrong",
        metric=metrics.coverage_at_risk,
        risk=0.01,
    ),
    _of_order(
        "coverage_at_risk_0.05",
        title="coverage at 5 % risk",
        says="observed share with at most 5 % wrong",
        metric=metrics.coverage_at_risk,
        risk=0.05,
    ),
    _of_order("eor", title="EOR", says="odds gained by knowing the confidence"),
    _of_order(
        "eor_smooth",
        title="EOR (smoothed)",
        says="the same with error-free bins corrected",
        metric=metrics.eor,
        degenerate="smooth",
    ),
    _of_order(
        "eor_pool",
        title="EOR (pooled)",
        says="the same with error-free bins pooled, as its paper",
        metric=metrics.eor,
        degenerate="pool",
    ),
    _of_claim("ece", title="ECE", says="gap of confidence and accuracy, 15 bins"),
    _of_claim("aece", title="adaptive ECE", says="the same, bins as narrow as data allow"),
    _of_claim("mce", title="MCE", says="largest gap, 15 bins"),
    _of_claim("amce", title="adaptive MCE", says="largest gap, adaptive bins"),
    _of_claim(
        "signed_calibration_error", title="confidence − accuracy", says="positive: overconfident"
    ),
    _of_claim(
        "over_confidence", title="overconfidence", says="part of the ECE that claims too much"
    ),
    _of_claim(
        "under_confidence", title="underconfidence", says="part of the ECE that claims too little"
    ),
    _of_claim(
        "debiased_ece", title="debiased ECE (L2)", says="squared gap, sampling noise removed"
    ),
    _of_claim("smooth_ece", title="smooth ECE", says="calibration error without bins"),
    _of_claim(
        "correctness_brier",
        title="Brier of the confidence",
        says="squared distance, claim and outcome",
    ),
    _of_claim(
        "correctness_nll", title="NLL of the confidence", says="log loss of claim and outcome, nats"
    ),
)
BY_NAME = {item.name: item for item in CATALOGUE}


class Described(Protocol):
    """Predictions, or what is known about them."""

    @property
    def kind(self) -> str:
        """logits, probs, confidence or score."""
        ...

    @property
    def vectors(self) -> bool:
        """Whether there is a number for each class."""
        ...

    @property
    def k(self) -> int | None:
        """Number of classes."""
        ...


def list_ranking_items() -> list[CatalogueItem]:
    """Numbers of any score: can I rank by it?"""
    return [item for item in CATALOGUE if item.needs == "order"]


def list_claim_items() -> list[CatalogueItem]:
    """Numbers of a score in [0, 1] that claims to be a probability: can I read it as one?"""
    return [item for item in CATALOGUE if item.needs == "claim"]


def list_answer_items(preds: Described) -> list[CatalogueItem]:
    """Numbers of the predictions themselves: what are they worth?"""
    needs = {"answers"}
    if preds.vectors:
        needs.add("classes")
        if preds.k is not None and preds.k > TOP_K:
            needs.add("many classes")
    return [item for item in CATALOGUE if item.needs in needs]


def list_possible_items(
    preds: Described,
    t: Tally,
    *,
    many_labels: bool = False,
    images: bool = False,
    pixels: bool = False,
) -> list[CatalogueItem]:
    """Every number that the predictions and a score of them allow, in report order."""
    units: set[Needs] = set()
    if many_labels:
        units.add("labels")
    if images:
        units.add("images")
    if pixels:
        units.add("pixels")
    items = [item for item in CATALOGUE if item.needs in units]
    items += list_answer_items(preds) + list_ranking_items()
    if is_claim(t, preds.kind):
        items += list_claim_items()
    return items


def is_claim(t: Tally, kind: str) -> bool:
    """Whether the scores of such predictions can be read as probabilities of being right: all lie
    in [0, 1], and they were not given as mere scores.
    """
    low, high = t.score_range()
    return kind != "score" and low >= 0 and high <= 1


def choose_scores(preds: Predictions, compact: bool = False) -> list[str]:
    """The scores worth comparing on this kind of predictions; the first is the one that a report is
    about. Compact tallies hold only scores in [0, 1].
    """
    names = [preds.score_name]
    if not preds.vectors:
        return names
    if preds.samples > 1:
        names += ["predictive_entropy", "expected_entropy", "mutual_information", "variance"]
    else:
        # With two classes these rank as max_prob does.
        if preds.k != 2:
            names += ["entropy", "margin"]
        if preds.kind == "logits":
            names += ["max_logit", "energy"]
    if compact:
        return [name for name in names if name in BOUNDED_SCORES]
    return names


def resolve_score(score: Score) -> tuple[str, Callable[[Predictions], ArrayLike]]:
    """A score's name and function, given either of them."""
    if callable(score):
        return getattr(score, "__name__", "score"), score
    return score, find_score(score)


def find_score(name: str) -> Callable[[Predictions], ArrayLike]:
    """A score by its name; raise with a suggestion where there is none."""
    if name in scores.__all__:
        return getattr(scores, name)
    if name == "loss":
        # What a score could know at best: it needs the label, so no policy can use it.
        return lambda preds: -losses.nll(preds)
    from difflib import get_close_matches

    near = get_close_matches(name, scores.__all__, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise InputError(f"there is no score {name!r}; known: {', '.join(scores.__all__)}.{hint}")


def explain_undefined(name: str, value: float, t: Tally) -> str:
    """The reason why a number is nan or infinite."""
    if isnan(value) and t.total == 0:
        return "undefined: every answer is right"
    if isnan(value) and t.total == t.n:
        return "undefined: every answer is wrong"
    if name.startswith("eor") and value == inf:
        return "infinite: some bin has no errors; EOR (smoothed) counts them"
    if value == inf:
        return "infinite: a claim of 0 or 1 was wrong"
    return "undefined for these data"
