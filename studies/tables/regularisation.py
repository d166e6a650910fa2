"""Vemuri 2020, chapters 3 and 5: regularisers against error, calibration and the threshold diagram."""

import numpy as np

import howsure as hs

from ..plans import STUDIES
from ..runs import Run
from ..store import Store
from .results import arrays, by_network, finished, predictions, progress, tally
from .table import Table, percent

HEADER = ["regulariser", "test error", "train ECE", "test ECE", "test AAC", "train NLL", "test NLL",
          "paper: train ECE", "test ECE"]  # fmt: skip
PAPER = {"standard": ("1.6", "16.8"), "augmentation": ("0.6", "8.0"), "dropout 0.7": ("0.8", "8.0"),
         "label smoothing 0.1": ("9.4", "4.5"), "weight decay 0.001": ("0.5", "5.9")}  # fmt: skip
COURSE_HEADER = ["epoch", "test error", "test ECE", "train NLL", "test NLL", "test AAC"]


def regularisation(store: Store, scale: str) -> list[Table]:
    """One table per network, then the course of training of its standard run."""
    runs = list(dict.fromkeys(STUDIES["regularisation"](scale)))
    note = progress(store, runs) + " ECE, AAC and error in per cent, 15 bins; the paper has ResNet-44 and 300 epochs."
    done = finished(store, runs)
    tables = [
        Table(f"{network} (figures 5.1 and 5.2)", HEADER, [row(store, run) for run in group], note)
        for network, group in by_network(done).items()
    ]
    tables += [course_table(store, run) for run in done if "course" in run.extras]
    return tables or [Table("Regularisers (figures 5.1 and 5.2)", HEADER, [], note)]


def row(store: Store, run: Run) -> list[str]:
    train, test = predictions(store, run, "train"), predictions(store, run)
    t = tally(test)
    values = (1 - hs.accuracy(test), hs.ece(tally(train)), hs.ece(t), hs.aac(t))
    losses = [f"{hs.nll(p):.3f}" for p in (train, test)]
    return [run.label, *(percent(v) for v in values), *losses, *PAPER.get(run.label, ("", ""))]


def course_table(store: Store, run: Run) -> Table:
    """Overfitting of the NLL but not of the error (figure 3.2), and early stopping (figure 5.1)."""
    found = arrays(store, run, "course")
    rows = [course_row(found, epoch) for epoch in range(len(found["test_correct"]))]
    note = "The standard run stopped after each epoch; the first 2,500 test images and 1,500 training images."
    return Table(f"{run.settings.network}: early stopping (figures 3.2 and 5.1)", COURSE_HEADER, rows, note)


def course_row(found: dict[str, np.ndarray], epoch: int) -> list[str]:
    t = at_epoch(found, epoch).tally()
    losses = [f"{found[f'{split}_nll'][epoch].astype(np.float64).mean():.3f}" for split in ("train", "test")]
    return [str(epoch + 1), percent(t.total / t.n), percent(hs.ece(t)), *losses, percent(hs.aac(t))]


def at_epoch(found: dict[str, np.ndarray], epoch: int) -> hs.Outcomes:
    return hs.Outcomes(found["test_confidence"][epoch].astype(np.float64), correct=found["test_correct"][epoch])
