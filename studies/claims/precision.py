"""Not from a paper: what mixed precision changes, of which the larger networks make use."""

import howsure as hs

from ..store import Store
from ..tables.precision import pairs
from ..tables.results import predictions
from .claim import Claim
from .paired import alike_on_average

SAME = 0.01


def precision(store: Store, scale: str) -> list[Claim]:
    found = {
        name: (predictions(store, a), predictions(store, b))
        for name, (a, b) in pairs(store, scale).items()
    }
    metrics = (hs.accuracy, hs.aurc, hs.ece)
    return [
        Claim("Mixed precision changes accuracy, AURC and ECE by less than a point", "not from a paper",
              [e for metric in metrics for e in alike_on_average(metric.__name__, metric, found, SAME)], own=True),
    ]  # fmt: skip
