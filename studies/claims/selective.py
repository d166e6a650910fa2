"""Ding 2020, section 4.1 (iv): AURC as an objective."""

import howsure as hs

from ..store import Store
from ..tables.results import predictions
from ..tables.selective import pairs
from .claim import NOT, OPEN, Claim
from .paired import alike, paired

EQUAL = 0.01
OURS = "The paper proposes the objective and leaves its form open; this form, with soft ranks in the batch, is ours."


def selective(store: Store, scale: str) -> list[Claim]:
    found = {f"{a.settings.network}, seed {a.settings.seed}": (predictions(store, a), predictions(store, b))
             for a, b in pairs(store, scale)}  # fmt: skip
    return [
        Claim("Training for AURC lowers the AURC", "an alternative optimisation objective",
              [paired(name, hs.aurc, *both, "-") for name, both in found.items()], {NOT: OURS, OPEN: OURS}),
        Claim("It does so by ranking, not by accuracy (the accuracy stays within a point)", "not said",
              [alike(name, hs.accuracy, *both, EQUAL) for name, both in found.items()]),
    ]  # fmt: skip
