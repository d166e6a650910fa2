"""Ding 2020, section 4.1 (iv): AURC as an objective."""

import howsure as hs

from ..store import Store
from ..tables.results import predictions
from ..tables.selective import pairs
from .claim import NOT, OPEN, Claim
from .paired import Pairs, on_average

PRICE = 0.01
OURS = "The paper proposes the objective and leaves its form open; this form, with soft ranks in the batch, is ours."
LESS = "The loss counts sure answers most, so that the network learns less from the others: it errs more."


def selective(store: Store, scale: str) -> list[Claim]:
    first, late = found(store, scale, "selective"), found(store, scale, "late_selective")
    of = "trainings"
    return [
        Claim("Training for AURC from the first epoch on lowers the AURC", "an alternative optimisation objective",
              on_average("AURC", hs.aurc, first, "-", of=of), {NOT: LESS}, own=True),
        Claim("Added when cross entropy has done its part, it costs no accuracy (less than a point)", "not said",
              on_average("accuracy", hs.accuracy, late, "+", -PRICE, of=of), own=True),
        Claim("Added so, it lowers the AURC", "an alternative optimisation objective",
              on_average("AURC", hs.aurc, late, "-", of=of), {NOT: OURS, OPEN: OURS}, own=True),
        Claim("Added so, it ranks better at its accuracy (E-AURC falls)", "an alternative optimisation objective",
              on_average("E-AURC", hs.e_aurc, late, "-", of=of), {NOT: OURS, OPEN: OURS}, own=True),
    ]  # fmt: skip


def found(store: Store, scale: str, loss: str) -> Pairs:
    """With the loss, and without it."""
    return {
        f"{a.settings.network}, seed {a.settings.seed}": (
            predictions(store, a),
            predictions(store, b),
        )
        for a, b in pairs(store, scale, loss)
    }
