"""Ding 2020, table 1: AUROC and AUPR of finding errors reward a network made worse on purpose, AURC
does not.
"""

from dataclasses import replace

import howsure as hs

from ..plans import runs_of
from ..provided import NAMES, here, provided
from ..store import Store
from ..tables.densenet_m import CHANGED, FULLY_TRAINED, worsened
from ..tables.results import finished, predictions
from .claim import PUBLISHED, SMALL, Claim
from .paired import Metric, paired


def densenet_m(store: Store, scale: str) -> list[Claim]:
    cases = {
        run.settings.network: predictions(store, run)
        for run in finished(store, runs_of(["densenet_m"], scale))
    }
    if here(FULLY_TRAINED):
        cases[NAMES[FULLY_TRAINED]] = provided(FULLY_TRAINED)
    return [
        rises(
            "AUROC of finding errors rises as the network is made worse",
            "93.71 to 98.08",
            hs.auroc,
            cases,
        ),
        rises(
            "AUPR of finding errors rises as the network is made worse",
            "43.36 to 91.64",
            hs.aupr,
            cases,
        ),
        rises("AURC gets worse as the network does", "0.438 to 0.605", hs.aurc, cases),
        rises(
            "E-AURC improves as the network is made worse",
            "exactly the same problem (section 2)",
            hs.e_aurc,
            cases,
            sign="-",
        ),
    ]


def rises(
    text: str, paper: str, metric: Metric, cases: dict[str, hs.Predictions], *, sign: str = "+"
) -> Claim:
    most = max(CHANGED)
    return Claim(text, paper, [
        replace(
            paired(f"{name}, m = {most} against m = 0", metric, worsened(preds, most), worsened(preds, 0), sign),
            regime=PUBLISHED if name == NAMES[FULLY_TRAINED] else SMALL)
        for name, preds in cases.items()
    ])  # fmt: skip
