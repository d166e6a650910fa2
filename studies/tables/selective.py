"""Ding 2020, section 4.1 (iv): does a loss made after AURC give a better AURC?"""

from dataclasses import replace

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from .results import finished, predictions, progress, tally
from .table import Table, percent

HEADER = ["training", "seed", "error", "AURC", "E-AURC", "AUROC", "ECE"]


def selective(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["selective"], scale)
    rows = [
        row(store, run)
        for run in sorted(finished(store, runs), key=lambda run: (run.settings.seed, run.label))
    ]
    about = (
        "Trainings of a seed start from the same weights; late: in the second half of the epochs."
    )
    note = f"{progress(store, runs)} In per cent. {about} AUROC is that of finding errors."
    return [Table("With and without the selective loss", HEADER, rows, note)]


def row(store: Store, run: Run) -> list[str]:
    t = tally(predictions(store, run))
    values = (t.total / t.n, hs.aurc(t), hs.e_aurc(t), hs.auroc(t), hs.ece(t))
    return [run.label, str(run.settings.seed), *(percent(v) for v in values)]


def pairs(store: Store, scale: str, loss: str) -> list[tuple[Run, Run]]:
    """The run with this form of the selective loss and its partner, seed by seed."""
    done = finished(store, runs_of(["selective"], scale))
    plain = {run.settings: run for run in done if run.settings.loss == "cross_entropy"}
    added = {
        run: replace(run.settings, loss="cross_entropy")
        for run in done
        if run.settings.loss == loss
    }
    return [(run, plain[partner]) for run, partner in added.items() if partner in plain]
