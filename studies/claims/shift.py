"""Vemuri 2020, chapter 7: a threshold set beforehand, and images that change afterwards."""

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..shifts import NAMES
from ..store import Store
from ..tables.results import finished
from ..tables.shift import Accepted, accepted, changed
from ..tables.table import percent, signed
from . import estimates
from .claim import Claim, Evidence, sided
from .paired import paired

STRONGEST = tuple(name for name in NAMES if name.endswith("5"))


def shift(store: Store, scale: str) -> list[Claim]:
    runs = finished(store, runs_of(["shift"], scale))
    cases = [(run, name) for run in runs for name in STRONGEST]
    return [
        Claim("On changed images the threshold of the validation images no longer keeps its accuracy",
              "would change the relative threshold (chapter 7)", [broken(store, *case) for case in cases]),
        Claim("On changed images the network is worse calibrated (ECE rises)", "assumes the same distribution",
              [paired(title(run, name), hs.ece, changed(store, run, name), changed(store, run), "+")
               for run, name in cases]),
    ]  # fmt: skip


def title(run: Run, name: str) -> str:
    return f"{run.settings.network}, {name.replace('_', ' ')}"


def broken(store: Store, run: Run, name: str) -> Evidence:
    """The error of what is accepted, against that on the images as they are; the same images are
    drawn again.
    """
    now, before = accepted(store, run, name), accepted(store, run)
    value, low, high = estimates.resampled(
        len(now.kept), lambda rows: risk(now, rows) - risk(before, rows)
    )
    text = (
        f"error of the accepted {percent(now.risk)} against {percent(before.risk)}: {signed(value)}"
    )
    return Evidence(title(run, name), text, low, high, sided(low, high, "+"))


def risk(found: Accepted, rows: np.ndarray) -> float:
    kept, wrong = found.kept[rows], found.wrong[rows]
    return float(wrong[kept].mean()) if kept.any() else float("nan")
