"""Every number of a report, one entry each: function, side that is better, place, and what it says.

Reports, terminal, Markdown, page, gate and docs read this list and nothing else. It stands here,
below the reports, because renderers read its words. To add a number, add its entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from howsure import metrics
from howsure._core.frozen import frozen
from howsure.binning import equal_range
from howsure.metrics.mean_loss import mean_loss, other_brier, other_nll
from howsure.metrics.vectors import Cells
from howsure.render.model import Better

QUESTIONS = ("What is it worth?", "Can I rank by it?", "Can I read it as a probability?")
WORTH, RANK, READ = range(3)  # places: the question that a number answers
TOP_K = 5
UNCERTAINTY = equal_range(15)  # bins of the entropy

Needs = Literal["answers", "many classes", "classes", "order", "claim", "labels", "images"]
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
]
MAIN = (
    *(
        "accuracy",
        "nll",
        "brier",
        "aurc",
        "e_aurc",
        "auroc",
        "coverage_at_risk_0.01",
        "coverage_at_risk_0.05",
    ),
    *("ece", "aece", "signed_calibration_error", "debiased_ece"),
    *("hamming_loss", "exact_match", "macro_auroc", "dice_loss", "image_aurc"),
)  # the dozen that a terminal shows unless asked for all
# In percent everywhere; all other numbers as they are, which is how options take them.
SHARES = (
    "accuracy",
    "exact_match",
    f"top_{TOP_K}_accuracy",
    "coverage_at_risk_0.01",
    "coverage_at_risk_0.05",
)


@frozen
class Item:
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
    def limited(self) -> Callable[..., float]:
        """What limits are asked for: a metric that jumps has none, whatever it is measured on."""
        return self.measure if getattr(self.metric, "smooth", True) else self.metric

    @property
    def option(self) -> str | None:
        """Its option in `howsure check`; None where neither side is better, or where it has an
        argument.
        """
        if self.better == "zero" or self.name.startswith("coverage_at_risk"):
            return None
        return f"--{'max' if self.better == 'lower' else 'min'}-{self.name.replace('_', '-')}"


def item(
    name: str,
    place: int,
    title: str,
    says: str,
    needs: Needs,
    metric: Callable[..., float] | None = None,
    on: On = "score",
    measure: Callable[..., float] | None = None,
    **options: float | str,
) -> Item:
    """The entry of a metric of the same name, unless given; `options` are those of the metric."""
    f: Callable[..., float] = metric or getattr(metrics, name)
    how = measure or (partial(f, **options) if options else f)
    better: Better = getattr(f, "better", "higher")
    return Item(name, place, title, says, needs, f, how, better, on)


def _order(
    name: str,
    title: str,
    says: str,
    metric: Callable[..., float] | None = None,
    **options: float | str,
) -> Item:
    made = item(name, RANK, title, says, "order", metric)
    return replace(made, measure=partial(made.metric, **options)) if options else made


def _claim(name: str, title: str, says: str) -> Item:
    return item(name, READ, title, says, "claim")


def _classes(
    name: str, place: int, title: str, says: str, on: On, measure: Callable[..., float]
) -> Item:
    return item(name, place, title, says, "classes", on=on, measure=measure)


CATALOGUE: tuple[Item, ...] = (
    item("accuracy", WORTH, "accuracy", "share of right answers", "answers"),
    item(
        f"top_{TOP_K}_accuracy",
        WORTH,
        "top-5 accuracy",
        "label among the five most probable classes",
        "many classes",
        metrics.top_k_accuracy,
        on="top_5",
        measure=metrics.accuracy,
    ),
    item(
        "hamming_loss",
        WORTH,
        "Hamming loss",
        "share of wrong labels",
        "labels",
        on="cases",
        measure=mean_loss,
    ),
    item(
        "exact_match",
        WORTH,
        "exact match",
        "share of cases with all labels right",
        "labels",
        on="exact",
        measure=metrics.accuracy,
    ),
    item(
        "macro_auroc",
        WORTH,
        "macro AUC",
        "mean over labels of the AUC of each",
        "labels",
        on="macro",
        measure=mean_loss,
    ),
    item(
        "dice_loss",
        WORTH,
        "1 − Dice",
        "mean over images; 0 is perfect",
        "images",
        on="images",
        measure=mean_loss,
    ),
    item(
        "image_aurc",
        RANK,
        "AURC of images",
        "mean 1 − Dice over all shares of images kept",
        "images",
        on="images",
        measure=metrics.aurc,
    ),
    _classes(
        "nll",
        WORTH,
        "NLL",
        "mean -log probability of the label, nats",
        "nll",
        partial(mean_loss, other=other_nll),
    ),
    _classes(
        "brier",
        WORTH,
        "Brier",
        "squared distance to the truth, all classes",
        "brier",
        partial(mean_loss, other=other_brier),
    ),
    _classes(
        "uce",
        READ,
        "UCE",
        "gap of error rate and scaled entropy",
        "uncertainty",
        partial(metrics.ece, bins=UNCERTAINTY),
    ),
    _classes(
        "muce",
        READ,
        "MUCE",
        "largest such gap",
        "uncertainty",
        partial(metrics.mce, bins=UNCERTAINTY),
    ),
    _classes(
        "classwise_ece",
        READ,
        "class-wise ECE",
        "mean ECE of every class's probability",
        "classes",
        Cells.mean_gap,
    ),
    _order("aurc", "AURC", "mean error over all coverages; compares models"),
    _order("e_aurc", "E-AURC", "above the best possible order; one model"),
    _order("augrc", "AUGRC", "mean share of accepted errors"),
    _order("auroc", "AUROC of finding errors", "a right answer outranks a wrong one; one model"),
    _order(
        "aupr_error",
        "AUPR (errors)",
        "precision of finding errors; one model",
        metrics.aupr,
        positive="error",
    ),
    _order(
        "aupr_success",
        "AUPR (successes)",
        "precision of finding right answers; one model",
        metrics.aupr,
        positive="success",
    ),
    _order(
        "coverage_at_risk_0.01",
        "coverage at 1 % risk",
        "share acceptable with at most 1 % wrong",
        metrics.coverage_at_risk,
        risk=0.01,
    ),
    _order(
        "coverage_at_risk_0.05",
        "coverage at 5 % risk",
        "share acceptable with at most 5 % wrong",
        metrics.coverage_at_risk,
        risk=0.05,
    ),
    _order("eor", "EOR", "odds gained by knowing the confidence"),
    _order(
        "eor_smooth",
        "EOR (smoothed)",
        "the same with error-free bins corrected",
        metrics.eor,
        degenerate="smooth",
    ),
    _claim("ece", "ECE", "gap of confidence and accuracy, 15 bins"),
    _claim("aece", "adaptive ECE", "the same, bins as narrow as data allow"),
    _claim("mce", "MCE", "largest gap, 15 bins"),
    _claim("amce", "adaptive MCE", "largest gap, adaptive bins"),
    _claim("signed_calibration_error", "confidence − accuracy", "positive: over-confident"),
    _claim("over_confidence", "over-confidence", "part of the ECE that claims too much"),
    _claim("under_confidence", "under-confidence", "part of the ECE that claims too little"),
    _claim("debiased_ece", "debiased ECE (L2)", "squared gap, sampling noise removed"),
    _claim("smooth_ece", "smooth ECE", "calibration error without bins"),
    _claim("correctness_brier", "Brier of the confidence", "squared distance, claim and outcome"),
    _claim("correctness_nll", "NLL of the confidence", "log loss of claim and outcome, nats"),
)
BY_NAME = {item.name: item for item in CATALOGUE}
