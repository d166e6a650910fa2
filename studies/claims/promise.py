"""Vemuri 2020, chapters 4 and 7: a threshold chosen beforehand, and the accuracy that one gets."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

import howsure as hs

from ..store import Store
from ..tables.promise import DELTA, DRAWS, DrawnAgain, Promised, drawn_again, own, published
from ..tables.table import percent
from . import estimates
from .claim import AGREES, NOT, OPEN, PUBLISHED, SMALL, Claim, Evidence, rest_on

OFTEN = 0.9
NOISE = (
    "That the error on a test sample lies above the promise more often than in 5 % breaks no guarantee: it is of the "
    "true error, and a test sample strays from that."
)


def promise(store: Store, scale: str) -> list[Claim]:
    """Our networks share their images, so that no interval can be given for them; they decide only
    where nothing else is at hand, and are in the table in any case."""
    found = {"published sets": published()} if published() else {"our networks": own(store, scale)}
    cases = {name: tuple(p for p in some if p.plain.count) for name, some in found.items() if some}
    regime = PUBLISHED if published() else SMALL
    judge = lambda of: rest_on([of(name, some) for name, some in cases.items()], regime)
    again = rest_on([kept_when_drawn_again(drawn)], regime) if (drawn := drawn_again()) else []
    return [
        Claim("The accuracy that a threshold had on validation is not what one gets at test time (missed in more than "
              "5 % of the sets)", "not necessarily equivalent (chapter 7)", judge(missed)),
        Claim("A prediction interval from validation holds the error on test (in 90 % of the sets or more, 95 % meant)",
              "further work (chapter 7)", judge(held), own=True),
        Claim("A guaranteed threshold keeps its promise (true error above it in at most 5 % of the samples)",
              "further work (chapter 7)", [*again, *(replace(e, counts=not again) for e in judge(kept))],
              {AGREES: NOISE}, own=True),
    ]  # fmt: skip


def share(
    found: tuple[Promised, ...], true: Callable[[Promised], bool]
) -> tuple[int, float, float]:
    """How many, with the exact 95 % limits of their share."""
    k, n = sum(map(true, found)), len(found)
    half = DELTA / 2
    return k, 1 - hs.bounds.clopper_pearson(n - k, n, half), hs.bounds.clopper_pearson(k, n, half)


def missed(case: str, found: tuple[Promised, ...]) -> Evidence:
    k, low, high = share(found, lambda p: p.plain.risk > p.risk)
    word = AGREES if low > DELTA else NOT if high < DELTA else OPEN
    return Evidence(
        case,
        f"the error on test is above the promise in {k} of {len(found)}",
        low,
        high,
        word,
        digits=0,
    )


def held(case: str, found: tuple[Promised, ...]) -> Evidence:
    k, low, high = share(found, lambda p: p.inside)
    word = NOT if high < 1 - DELTA else AGREES if k / len(found) >= OFTEN else OPEN
    return Evidence(case, f"inside the interval in {k} of {len(found)}", low, high, word, digits=0)


def kept(case: str, found: tuple[Promised, ...]) -> Evidence:
    made = tuple(p for p in found if p.guaranteed.count)
    k, low, high = share(made, lambda p: p.guaranteed.shown_above(p.risk))
    word = NOT if low > DELTA else AGREES if k <= DELTA * len(made) else OPEN
    text = f"shown to be broken in {k} of {len(made)}; in {len(found) - len(made)} nothing could be promised"
    return Evidence(case, text, low, high, word, digits=0)


def kept_when_drawn_again(drawn: Mapping[str, tuple[DrawnAgain, ...]]) -> Evidence:
    """Validation and test are drawn again from all rows of a set, which are then all there is: the
    true error of a threshold is known, and what the test part adds is noise."""
    made = [[d for d in some if d.made] for some in drawn.values()]
    shares = np.array([np.mean([d.true_above for d in some]) for some in made if some])
    seen = np.mean([np.mean([d.test_above for d in some]) for some in made if some])
    middle, low, high = estimates.mean(shares)
    text = (
        f"true error above the promise in {percent(middle, 1)} % of the samples ({percent(shares.max(), 0)} % in the "
        f"worst set); error on a test sample above it in {percent(float(seen), 1)} %, so that test noise explains the rest"
    )
    word = AGREES if high <= DELTA else NOT if low > DELTA else OPEN
    return Evidence(f"{len(shares)} sets, {DRAWS} samples each", text, low, high, word, digits=1)
