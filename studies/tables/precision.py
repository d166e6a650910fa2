"""Not from a paper: networks trained in float32 and in mixed precision, side by side."""

from dataclasses import replace

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from .results import finished, predictions, progress, tally
from .table import Table, percent

HEADER = ["network", "seed", "precision", "error", "AURC", "AUPR", "ECE"]


def precision(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["precision"], scale)
    order = sorted(
        finished(store, runs), key=lambda run: (run.settings.network, run.settings.seed, run.label)
    )
    note = f"{progress(store, runs)} In per cent; AUPR is that of finding errors."
    return [Table("Float32 and mixed precision", HEADER, [row(store, run) for run in order], note)]


def row(store: Store, run: Run) -> list[str]:
    t, s = tally(predictions(store, run)), run.settings
    values = (t.total / t.n, hs.aurc(t), hs.aupr(t), hs.ece(t))
    return [s.network, str(s.seed), s.precision, *(percent(v) for v in values)]


def pairs(store: Store, scale: str) -> dict[str, tuple[Run, Run]]:
    """Mixed precision and float32, by network and seed."""
    done = {run.settings: run for run in finished(store, runs_of(["precision"], scale))}
    mixed = [run for run in done.values() if run.settings.precision != "float32"]
    partners = {run: done.get(replace(run.settings, precision="float32")) for run in mixed}
    return {
        f"{a.settings.network}, seed {a.settings.seed}": (a, b) for a, b in partners.items() if b
    }
