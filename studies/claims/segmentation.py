"""Ding 2020, section 5.2 and figure 7: the same for U-Nets."""

import numpy as np

from ..plans import runs_of
from ..store import Store
from ..tables.results import by_network, finished
from ..tables.segmentation import measures
from ..tables.table import percent
from . import estimates
from .claim import NOT, OPEN, Claim, Evidence, within
from .growth import Grown, flat, trend, unsteady

NEARLY = 0.005


def segmentation(store: Store, scale: str) -> list[Claim]:
    groups = by_network(finished(store, runs_of(["segmentation"], scale)))
    raw = Grown.of(groups, lambda run: measures(store, run))
    scaled = Grown.of(groups, lambda run: measures(store, run, scaled=True))
    few = f"There are {len(groups)} widths of one family, so that the interval is wide."
    spread_out = (
        f"Here {percent(float(np.mean(raw.means('pixel error'))), 0) if groups else '?'} % of the pixels are wrong and "
        "there is no easy background, so that confidences are spread out and no bin is thin."
    )
    return [
        Claim("The AURC of 1 - Dice falls as U-Nets widen", "falls (figure 7)", [trend(raw, "AURC of 1 - Dice", "-")],
              {OPEN: few}),
        Claim("Calibration after temperature scaling does not depend on the width", "no strong trend (figure 7)",
              [flat(scaled, "AECE", 0.01), flat(scaled, "AMCE", 0.05)], {OPEN: few}),
        Claim("ECE and AECE differ by almost zero (less than half a point)", "almost zero",
              [near(raw, "as trained"), near(scaled, "after temperature scaling")], {NOT: spread_out}),
        Claim("MCE is unstable, AMCE is not", "MCE still very unstable",
              [unsteady(raw, "MCE", "AMCE", "as trained"), unsteady(scaled, "MCE", "AMCE", "after scaling")],
              {NOT: spread_out, OPEN: spread_out}),
    ]  # fmt: skip


def near(grown: Grown, case: str) -> Evidence:
    differences = [a - b for a, b in zip(grown.means("AECE"), grown.means("ECE"), strict=True)]
    middle, low, high = estimates.mean(differences)
    return Evidence(f"AECE - ECE, {case}", f"{100 * middle:+.2f} points", low, high, within(low, high, NEARLY))
