"""Ding 2020, section 5.2 and figure 7: the same for U-Nets."""

from dataclasses import replace

import numpy as np

from ..plans import runs_of
from ..store import Store
from ..tables.results import by_network, finished
from ..tables.segmentation import measures
from ..tables.table import percent, rank_correlation
from . import estimates
from .claim import OPEN, Claim, Evidence, sided, within
from .growth import Grown, flat, ordered, unsteady

NEARLY = 0.005
HALF = 0.5
FLAT = (("AECE", 0.01), ("AMCE", 0.05))


STUDIED = {"segmentation": "membranes", "nuclei": "nuclei"}


def segmentation(store: Store, scale: str) -> list[Claim]:
    """What the paper says of width, on both kinds of images."""
    found = {text: both(name, store, scale) for name, text in STUDIED.items()}
    done = {text: pair for text, pair in found.items() if pair[0].family}
    widths = max((len(raw.family) for raw, _ in done.values()), default=0)
    few = f"There are {widths} widths of one family, so that the interval is wide."
    return [
        Claim("The AURC of 1 - Dice falls as U-Nets widen", "falls (figure 7)",
              [named(text, ordered(raw, "AURC of 1 - Dice", "-")) for text, (raw, _) in done.items()], {OPEN: few}),
        Claim("Calibration after temperature scaling does not depend on the width", "no strong trend (figure 7)",
              [named(t, flat(scaled.single, *metric)) for t, (_, scaled) in done.items() for metric in FLAT],
              {OPEN: few}),
    ]  # fmt: skip


def nuclei(store: Store, scale: str) -> list[Claim]:
    """Here most pixels are easy background, as in the paper's hearts, and the loss is Dice;
    membranes have neither.
    """
    raw, scaled = both("nuclei", store, scale)
    if not raw.family:
        raw = scaled = None
    states = {"as trained": raw, "after temperature scaling": scaled} if raw else {}
    return [
        Claim("ECE and AECE differ by almost zero (less than half a point)", "almost zero",
              [near(grown, how) for how, grown in states.items()]),
        Claim("MCE is unstable, AMCE is not", "MCE still very unstable",
              [unsteady(grown, "MCE", "AMCE", how) for how, grown in states.items()]),
        Claim("Most pixels are answered with a confidence close to 1 (more than half above 0.99)",
              "confidence score close to 1", [mostly_sure(raw)] if raw else []),
        Claim("AUPR of finding errors tells less of which network segments better than AURC of 1 - Dice does",
              "AUPR is not meaningful in this case", [follows_dice(raw)] if raw else []),
    ]  # fmt: skip


def both(name: str, store: Store, scale: str) -> tuple[Grown, Grown]:
    """As trained and after temperature scaling."""
    groups = by_network(finished(store, runs_of([name], scale)))
    raw = Grown.of(groups, lambda run: measures(store, run))
    return raw, Grown.of(groups, lambda run: measures(store, run, scaled=True))


def named(text: str, evidence: Evidence) -> Evidence:
    return replace(evidence, case=f"{text}: {evidence.case}")


def mostly_sure(grown: Grown) -> Evidence:
    grown = grown.single
    middle, low, high = estimates.mean(grown.means("sure"))
    word = sided(low, high, "+", HALF)
    return Evidence(
        f"as trained, {grown.text}",
        f"{percent(middle, 1)} % of the pixels",
        low,
        high,
        word,
        digits=1,
        edges=(HALF,),
    )


def follows_dice(grown: Grown) -> Evidence:
    """Rank correlation with Dice over all trainings, of AURC and of AUPR; trainings are drawn
    again.
    """
    dice, aurc, aupr = (
        np.array(grown.every(name)) for name in ("1 - Dice", "AURC of 1 - Dice", "AUPR")
    )
    both = lambda rows: (
        rank_correlation(dice[rows], aurc[rows]),
        -rank_correlation(dice[rows], aupr[rows]),
    )
    value, low, high = estimates.resampled(len(dice), lambda rows: both(rows)[0] - both(rows)[1])
    one, two = both(np.arange(len(dice)))
    text = f"rank correlation with Dice {one:+.2f} for AURC of 1 - Dice, {two:+.2f} for AUPR: {value:+.2f}"
    return Evidence(
        f"{len(dice)} trainings", text, low, high, sided(low, high, "+"), scale=1, edges=(0.0,)
    )


def near(grown: Grown, case: str) -> Evidence:
    differences = [a - b for a, b in zip(grown.every("AECE"), grown.every("ECE"), strict=True)]
    middle, low, high = estimates.mean(differences)
    return Evidence(
        f"AECE - ECE, {case}",
        f"{100 * middle:+.2f} points",
        low,
        high,
        within(low, high, NEARLY),
        edges=(-NEARLY, NEARLY),
    )
