"""Laves 2019, table 1 and figures 1 to 5: one pass against MC dropout, as trained and after temperature scaling."""

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from .contrast import HEADER as CONTRAST
from .contrast import Contrast
from .results import arrays, finished, progress, tally
from .table import Table, percent

HEADER = ["network", "accuracy", "one-pass ECE", "MC ECE", "MC UCE",
          "T", "scaled one-pass ECE", "MC T", "scaled MC ECE", "scaled MC UCE",
          "per-pass T", "its MC ECE", "its MC UCE"]  # fmt: skip
PAPER = (
    "The paper, without scaling: one-pass ECE 8.95, MC ECE 8.41, UCE 7.60 (ResNet-18, CIFAR-10); after scaling "
    "1.40, 0.47, 5.27. DenseNet-121 with confidence penalty: ECE 5.20 to 3.37."
)
OBJECTIVES = ("averaged", "per_pass")
PASSES = (1, 2, 5, 10, 15, 20, 25)
THRESHOLDS = np.arange(0.1, 1.01, 0.1)


def mc_temperature(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["mc_temperature"], scale)
    done = finished(store, runs)
    note = f"{progress(store, runs)} In per cent, 15 bins, 2,000 test images, 25 passes. {PAPER}"
    return [
        Table("Confidence and uncertainty (table 1, figure 2)", HEADER, [row(store, r) for r in done], note),
        passes_table(store, done),
        rejection_table(store, done),
        claims(store, done),
    ]


def claims(store: Store, runs: list[Run]) -> Table:
    """Scaling against none, on the same passes."""
    rows = [
        Contrast(f"{name} falls: {name_of(run)}", metric, scaled(store, run), passes(store, run), "-").row()
        for run in runs
        for name, metric in (("UCE", hs.uce), ("ECE", hs.ece))
    ]
    return Table("MC dropout after temperature scaling against before", CONTRAST, rows, "In per cent.")


def name_of(run: Run) -> str:
    penalty = run.settings.confidence_penalty
    return f"{run.settings.network} {run.settings.data}" + (f" penalty {penalty}" if penalty else "")


def one_pass(store: Store, run: Run, split: str = "test") -> hs.Predictions:
    found = arrays(store, run, "mc")
    return hs.Predictions.from_logits(found[f"{split}_logits"], found[f"{split}_labels"])


def passes(store: Store, run: Run, split: str = "test", count: int | None = None) -> hs.Predictions:
    found = arrays(store, run, "mc")
    return hs.Predictions.from_samples(logits=found[f"mc_{split}_logits"][:count], labels=found[f"{split}_labels"])


def row(store: Store, run: Run) -> list[str]:
    single, many = one_pass(store, run), passes(store, run)
    plain = [percent(v) for v in (hs.accuracy(single), hs.ece(tally(single)), hs.ece(tally(many)), hs.uce(many))]
    return [name_of(run), *plain, *scaled_cells(store, run)]


def scaled_cells(store: Store, run: Run) -> list[str]:
    """One temperature for the single pass; inside the average over passes that of the averaged likelihood, and
    that of the mean likelihood of the passes, which the paper's released code fits."""
    single = hs.calibrators.Temperature.fit(one_pass(store, run, "val"))
    cells = [f"{single.temperature:.2f}", percent(hs.ece(tally(single(one_pass(store, run)))))]
    for objective in OBJECTIVES:
        scaling = hs.calibrators.Temperature.fit(passes(store, run, "val"), objective=objective)
        many = scaling(passes(store, run))
        cells += [f"{scaling.temperature:.2f}", percent(hs.ece(tally(many))), percent(hs.uce(many))]
    return cells


def passes_table(store: Store, runs: list[Run]) -> Table:
    rows = [[name_of(run), *(percent(hs.uce(passes(store, run, count=n))) for n in PASSES)] for run in runs]
    return Table("UCE against the number of passes", ["network", *map(str, PASSES)], rows, "As trained, in per cent.")


def rejection_table(store: Store, runs: list[Run]) -> Table:
    """Figure 3: the error among what is kept when the normalised entropy may be at most this."""
    rows = [[name_of(run), *kept_errors(passes(store, run))] for run in runs]
    rows += [[f"{name_of(run)}, scaled", *kept_errors(scaled(store, run))] for run in runs]
    header = ["network", *(f"{h:.1f}" for h in THRESHOLDS)]
    return Table("Error after rejection by entropy (figure 3)", header, rows, "In per cent of the kept images.")


def scaled(store: Store, run: Run) -> hs.Predictions:
    return hs.calibrators.Temperature.fit(passes(store, run, "val"))(passes(store, run))


def kept_errors(preds: hs.Predictions) -> list[str]:
    return [percent(float(y)) for y in hs.rejection(preds, THRESHOLDS).y]
