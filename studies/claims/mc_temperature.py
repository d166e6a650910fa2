"""Laves 2019: temperature scaling inside MC dropout, rejection, and the confidence penalty."""

from dataclasses import replace

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from ..tables.mc_temperature import name_of, one_pass, one_pass_scaled, passes, scaled, swept
from ..tables.results import finished
from . import estimates
from .claim import AGREES, MIXED, NOT, OPEN, Claim, Evidence, sided
from .paired import Metric, paired

STRAIGHT = 0.95
REGIME = 0.05
BELOW = np.arange(0.1, 0.81, 0.05)
DRAWS = 200
LITTLE = "A network that is hardly miscalibrated as trained has little to gain: its temperature is near 1."
Pair = tuple[Run, Run]


def mc_temperature(store: Store, scale: str) -> list[Claim]:
    everything = [run for run in finished(store, runs_of(["mc_temperature"], scale)) if not swept(run)]
    pairs = with_and_without(over_confident(store, everything))
    runs = [run for run in over_confident(store, everything) if not run.settings.confidence_penalty]
    return [
        Claim("Temperature scaling lowers the UCE of MC dropout", "7.60 to 5.27, 30.33 to 2.41, 29.62 to 2.69",
              [scaling(store, run, hs.uce) for run in runs], {OPEN: LITTLE, MIXED: LITTLE}),
        Claim("Temperature scaling lowers the ECE of MC dropout", "8.41 to 0.47, 24.62 to 1.92, 23.98 to 2.89",
              [scaling(store, run, hs.ece) for run in runs], {OPEN: LITTLE, MIXED: LITTLE}),
        Claim("MC dropout alone lowers the ECE of one pass", "8.95 to 8.41, 29.63 to 24.62, 30.62 to 23.98",
              [paired(name_of(run), hs.ece, passes(store, run), one_pass(store, run), "-") for run in runs],
              {NOT: UNDER, MIXED: UNDER, OPEN: UNDER}),
        Claim("After scaling, MC dropout has a lower ECE than one pass", "0.47 against 1.40, 1.92 against 3.50",
              [paired(name_of(run), hs.ece, scaled(store, run), one_pass_scaled(store, run), "-") for run in runs]),
        Claim("After scaling the error falls almost linearly with the entropy threshold (R² of a line above 0.95)",
              "almost linear below 0.8 (figure 3)", [straight(store, run) for run in everything]),
        Claim("Scaling makes that relation straighter", "figure 3", [straighter(store, run) for run in everything]),
        Claim("Scaling does not change the predicted class", "does not change the maximum",
              [flips(store, run) for run in everything],
              {NOT: "The mean over passes is taken after scaling, so that the maximum can move; see the definitions.",
               MIXED: "The mean over passes is taken after scaling, so that the maximum can move."}),
        Claim("The confidence penalty lowers the ECE", "5.20 to 3.37 (DenseNet-121)",
              [penalty(store, pair, hs.ece, how) for pair in pairs for how in (one_pass, passes)]),
        Claim("The penalty is less effective than temperature scaling", "less effective (figure 2)",
              [penalty_against_scaling(store, pair, metric) for pair in pairs for metric in (hs.ece, hs.uce)]),
        Claim("Penalty and temperature together are better than temperature alone", "left open by the paper",
              [together(store, pair, metric) for pair in pairs for metric in (hs.ece, hs.uce)]),
    ]  # fmt: skip


def over_confident(store: Store, runs: list[Run]) -> list[Run]:
    """Networks that trust themselves too much as the paper's do (ECE 9 % and more; here five points or more on
    validation images), with their penalised partners. A network that is calibrated as trained is no test."""
    plain = {r.settings for r in runs if not r.settings.confidence_penalty and too_sure(store, r) > REGIME}
    return [run for run in runs if replace(run.settings, confidence_penalty=0.0) in plain]


def too_sure(store: Store, run: Run) -> float:
    one = one_pass(store, run, "val")
    return float((one.confidence - one.correct).mean())


UNDER = "Averaging makes probabilities softer, which helps an over-confident network and hurts an under-confident one."


def with_and_without(runs: list[Run]) -> list[Pair]:
    """The penalised networks, each with its partner that differs in nothing else."""
    plain = {run.settings: run for run in runs}
    partners = [(run, plain.get(replace(run.settings, confidence_penalty=0.0))) for run in runs]
    return [(run, partner) for run, partner in partners if partner and run.settings.confidence_penalty]


def scaling(store: Store, run: Run, metric: Metric) -> Evidence:
    return paired(name_of(run), metric, scaled(store, run), passes(store, run), "-")


def penalty(store: Store, pair: Pair, metric: Metric, how: Metric) -> Evidence:
    case = f"{name_of(pair[1])}, {how.__name__.replace('_', ' ')}"
    return paired(case, metric, how(store, pair[0]), how(store, pair[1]), "-")


def penalty_against_scaling(store: Store, pair: Pair, metric: Metric) -> Evidence:
    case = f"{metric.__name__.upper()}, {name_of(pair[1])}: penalty alone against scaling alone"
    return paired(case, metric, passes(store, pair[0]), scaled(store, pair[1]), "+")


def together(store: Store, pair: Pair, metric: Metric) -> Evidence:
    case = f"{metric.__name__.upper()}, {name_of(pair[1])}: both against scaling alone"
    return paired(case, metric, scaled(store, pair[0]), scaled(store, pair[1]), "-")


def flips(store: Store, run: Run) -> Evidence:
    """One changed answer is enough against a claim without exception."""
    count = int((scaled(store, run).prediction != passes(store, run).prediction).sum())
    word = NOT if count else AGREES
    found = f"{count} of {passes(store, run).n:,} answers change"
    return Evidence(name_of(run), found, float("nan"), float("nan"), word)


def straight(store: Store, run: Run) -> Evidence:
    preds = scaled(store, run)
    entropy, wrong = columns(preds)
    value, low, high = estimates.resampled(preds.n, lambda rows: straightness(entropy[rows], wrong[rows]), DRAWS)
    word = AGREES if low > STRAIGHT else NOT if high < STRAIGHT else OPEN
    return Evidence(name_of(run), f"R² {value:.3f}", low, high, word, scale=1, digits=3)


def straighter(store: Store, run: Run) -> Evidence:
    after, before = columns(scaled(store, run)), columns(passes(store, run))
    of = lambda columns, rows: straightness(columns[0][rows], columns[1][rows])
    value, low, high = estimates.resampled(len(after[0]), lambda rows: of(after, rows) - of(before, rows), DRAWS)
    found = f"R² {straightness(*after):.3f} against {straightness(*before):.3f}: {value:+.3f}"
    return Evidence(name_of(run), found, low, high, sided(low, high, "+"), scale=1, digits=3)


def columns(preds: hs.Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Normalised entropy, and whether the answer is wrong."""
    return 1 - hs.scores.entropy(preds), ~preds.correct.astype(bool)


def straightness(entropy: np.ndarray, wrong: np.ndarray) -> float:
    """R² of the least-squares line through the error of what is kept, at thresholds up to the paper's 0.8."""
    order = np.argsort(entropy, kind="stable")
    kept = np.searchsorted(entropy[order], BELOW, side="right")
    some = kept > 0
    errors = np.cumsum(wrong[order])[kept[some] - 1] / kept[some]
    return estimates.correlation(BELOW[some], errors) ** 2
