"""Ding 2020, table 1: a network made worse on purpose, which AUROC and AUPR of finding errors
reward.
"""

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..provided import NAMES, here, provided
from ..store import Store
from .results import finished, predictions, progress
from .table import Table, percent

FULLY_TRAINED = "nn_resnet110_c10"
CHANGED = (0, 20, 100, 300)
PAPER = {0: "95.30 / 93.71 / 43.36 / 0.438", 20: "95.10 / 94.17 / 52.36 / 0.439",
         100: "94.30 / 95.80 / 72.80 / 0.456", 300: "92.30 / 98.08 / 91.64 / 0.605"}  # fmt: skip
HEADER = ["network", "accuracy", "AUROC", "AUPR", "AURC", "E-AURC", "paper (without E-AURC)"]


def densenet_m(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["densenet_m"], scale)
    about = "In per cent; AUROC and AUPR of finding errors."
    note = f"{progress(store, runs)} {about} The paper's AUROC for m > 0 is above what its construction allows."
    found = {run.settings.network: predictions(store, run) for run in finished(store, runs)[::-1]}
    if here(FULLY_TRAINED):
        found[NAMES[FULLY_TRAINED]] = provided(FULLY_TRAINED)
    tables = [
        Table(f"{name}, made worse (table 1)", HEADER, rows(preds), note)
        for name, preds in found.items()
    ]
    return tables or [Table("DenseNet-m (table 1)", HEADER, [], note)]


def rows(preds: hs.Predictions) -> list[list[str]]:
    return [row(m, worsened(preds, m).tally()) for m in CHANGED]


def row(m: int, t: hs.Tally) -> list[str]:
    values = (1 - t.total / t.n, hs.auroc(t), hs.aupr(t))
    areas = (hs.aurc(t), hs.e_aurc(t))
    return [f"m = {m}", *(percent(v) for v in values), *(percent(v, 3) for v in areas), PAPER[m]]


def worsened(preds: hs.Predictions, m: int) -> hs.Outcomes:
    """The m least confident right answers count as wrong."""
    score, correct = hs.scores.max_prob(preds), preds.correct.copy()
    right = np.flatnonzero(correct)
    correct[right[np.argsort(score[right], kind="stable")[:m]]] = False
    return hs.Outcomes(score, correct=correct)
