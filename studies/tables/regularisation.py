"""Vemuri 2020, chapters 3 and 5: regularisers against error, calibration and the threshold diagram."""

import numpy as np

import howsure as hs

from ..plans import STUDIES
from ..runs import Run
from ..store import Store
from .results import arrays, by_network, finished, predictions, progress, tally
from .table import Table, percent, spread

HEADER = ["regulariser", "test error", "train ECE", "test ECE", "test AAC", "train NLL", "test NLL",
          "paper: train ECE", "test ECE"]  # fmt: skip
PAPER = {"standard": ("1.6", "16.8"), "augmentation": ("0.6", "8.0"), "dropout 0.7": ("0.8", "8.0"),
         "label smoothing 0.1": ("9.4", "4.5"), "weight decay 0.001": ("0.5", "5.9")}  # fmt: skip
COURSE_HEADER = ["epoch", "test error", "test ECE", "train NLL", "test NLL", "test AAC"]


def regularisation(store: Store, scale: str) -> list[Table]:
    """One table per network, then the course of training of its standard run."""
    runs = list(dict.fromkeys(STUDIES["regularisation"](scale)))
    note = (
        progress(store, runs)
        + " ECE, AAC and error in per cent, 15 bins; the paper has ResNet-44 and 300 epochs."
    )
    done = finished(store, runs)
    tables = [
        Table(f"{network} (figures 5.1 and 5.2)", HEADER, [row(store, run) for run in group], note)
        for network, group in by_network(run for run in done if run.settings.seed == 0).items()
    ]
    tables += [smoothing_table(store, done)]
    tables += [
        course_table(store, run) for run in done if {"course", "long_course"} & set(run.extras)
    ]
    return tables if done else [Table("Regularisers (figures 5.1 and 5.2)", HEADER, [], note)]


def row(store: Store, run: Run) -> list[str]:
    train, test = predictions(store, run, "train"), predictions(store, run)
    t = tally(test)
    values = (1 - hs.accuracy(test), hs.ece(tally(train)), hs.ece(t), hs.aac(t))
    losses = [f"{hs.nll(p):.3f}" for p in (train, test)]
    return [run.label, *(percent(v) for v in values), *losses, *PAPER.get(run.label, ("", ""))]


def course_table(store: Store, run: Run) -> Table:
    """Overfitting of the NLL but not of the error (figure 3.2), and early stopping (figure 5.1)."""
    found = course_of(store, run)
    rows = [course_row(found, row) for row in range(len(found["test_correct"]))]
    sizes = [f"{found[f'{split}_correct'].shape[1]:,}" for split in ("test", "train")]
    note = f"The standard run stopped after an epoch; {sizes[0]} test images and {sizes[1]} training images."
    title = f"{run.settings.network}, {run.settings.epochs} epochs: early stopping (figures 3.2 and 5.1)"
    return Table(title, COURSE_HEADER, rows, note)


def course_of(store: Store, run: Run) -> dict[str, np.ndarray]:
    """The course of training with the epochs that it has; short trainings have all."""
    found = arrays(store, run, "long_course" if "long_course" in run.extras else "course")
    return {"epochs": np.arange(1, len(found["test_correct"]) + 1), **found}


def course_row(found: dict[str, np.ndarray], row: int) -> list[str]:
    t = at_epoch(found, row).tally()
    losses = [
        f"{found[f'{split}_nll'][row].astype(np.float64).mean():.3f}" for split in ("train", "test")
    ]
    return [
        str(found["epochs"][row]),
        percent(t.total / t.n),
        percent(hs.ece(t)),
        *losses,
        percent(hs.aac(t)),
    ]


def at_epoch(found: dict[str, np.ndarray], row: int) -> hs.Outcomes:
    return hs.Outcomes(
        found["test_confidence"][row].astype(np.float64), correct=found["test_correct"][row]
    )


def smoothing_table(store: Store, runs: list[Run]) -> Table:
    """Label smoothing over all seeds that are there; standard training is smoothing 0."""
    chosen = [
        run for run in runs if run.label == "standard" or run.label.startswith("label smoothing")
    ]
    groups: dict[tuple[str, float], dict[int, hs.Predictions]] = {}
    for run in chosen:
        key = (run.settings.network, run.settings.label_smoothing)
        groups.setdefault(key, {})[run.settings.seed] = predictions(store, run)
    rows = [
        smoothing_row(*key, list(found.values()))
        for key, found in sorted(groups.items())
        if len(found) > 1
    ]
    note = "Mean of the seeds ± half their range, in per cent."
    return Table(
        "Label smoothing again (figure 5.1)",
        ["network", "smoothing", "seeds", "error", "ECE", "AAC"],
        rows,
        note,
    )


def smoothing_row(network: str, value: float, found: list[hs.Predictions]) -> list[str]:
    tallies = [tally(p) for p in found]
    cells = [
        [t.total / t.n for t in tallies],
        [hs.ece(t) for t in tallies],
        [hs.aac(t) for t in tallies],
    ]
    return [network, f"{value:g}", str(len(found)), *(spread(c) for c in cells)]
