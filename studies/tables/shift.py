"""What becomes of confidence and of a threshold when the images change after the threshold was set."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..shifts import NAMES, STRENGTHS
from ..store import Store
from .results import arrays, finished, predictions, progress, tally
from .table import Table, percent

HEADER = ["images", "accuracy", "mean confidence", "ECE", "AUROC", "AURC", "accepted", "error of the accepted"]
PROMISED = 0.10


@dataclass(frozen=True)
class Accepted:
    """Which test answers the threshold of the validation images keeps, and which of them are wrong."""

    kept: np.ndarray
    wrong: np.ndarray

    @property
    def risk(self) -> float:
        return float(self.wrong[self.kept].mean()) if self.kept.any() else float("nan")


def shift(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["shift"], scale)
    note = (
        f"{progress(store, runs)} In per cent; AUROC of finding errors. "
        "Accepted are answers above the temperature-scaled confidence at which "
        f"{percent(PROMISED, 0)} % of the validation images that are kept are wrong. Strength 1 to 5: {strengths()}."
    )
    return [table_of(store, run, note) for run in finished(store, runs)] or [Table("Changed images", HEADER, [], note)]


def strengths() -> str:
    units = {"blur": "Gaussian of {} pixels", "dark": "{} of the light", "noise": "noise of {} grey levels"}
    return "; ".join(units[kind].format(", ".join(f"{v:g}" for v in values)) for kind, values in STRENGTHS.items())


def table_of(store: Store, run: Run, note: str) -> Table:
    rows = [row("as they are", store, run), *(row(name.replace("_", " "), store, run, name) for name in NAMES)]
    return Table(f"{run.settings.network}: changed images", HEADER, rows, note)


@cache
def changed(store: Store, run: Run, name: str = "") -> hs.Predictions:
    """Temperature-scaled test predictions, after one of the changes where it is named."""
    scaling = hs.calibrators.Temperature.fit(predictions(store, run, "val"))
    if not name:
        return scaling(predictions(store, run))
    found = arrays(store, run, name)
    return scaling(hs.Predictions.from_logits(found["test_logits"], found["test_labels"]))


@cache
def threshold(store: Store, run: Run) -> float:
    val = predictions(store, run, "val")
    scaled = hs.calibrators.Temperature.fit(val)(val)
    return hs.policies.threshold_for_accuracy(tally(scaled), 1 - PROMISED).threshold


def accepted(store: Store, run: Run, name: str = "") -> Accepted:
    preds = changed(store, run, name)
    return Accepted(preds.confidence >= threshold(store, run), ~preds.correct.astype(bool))


def row(title: str, store: Store, run: Run, name: str = "") -> list[str]:
    preds, kept = changed(store, run, name), accepted(store, run, name)
    t = tally(preds)
    values = (
        hs.accuracy(preds),
        preds.confidence.mean(),
        hs.ece(t),
        hs.auroc(t),
        hs.aurc(t),
        kept.kept.mean(),
        kept.risk,
    )
    return [title, *(percent(float(v)) for v in values)]
