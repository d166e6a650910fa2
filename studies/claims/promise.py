"""Vemuri 2020, chapters 4 and 7: a threshold chosen beforehand, and the accuracy that one gets."""

from collections.abc import Callable

import howsure as hs

from ..store import Store
from ..tables.promise import DELTA, Promised, own, published
from .claim import AGREES, NOT, OPEN, Claim, Evidence

OFTEN = 0.9


def promise(store: Store, scale: str) -> list[Claim]:
    """Our networks share their images, so that no interval can be given for them; they decide only
    where nothing else is at hand, and are in the table in any case."""
    found = {"published sets": published()} if published() else {"our networks": own(store, scale)}
    cases = {name: tuple(p for p in some if p.plain.count) for name, some in found.items() if some}
    return [
        Claim("The accuracy that a threshold had on validation is not what one gets at test time (missed in more than "
              "5 % of the sets)", "not necessarily equivalent (chapter 7)",
              [missed(name, found) for name, found in cases.items()]),
        Claim("A prediction interval from validation holds the error on test (in 90 % of the sets or more, 95 % meant)",
              "further work (chapter 7)", [held(name, found) for name, found in cases.items()]),
        Claim("A guaranteed threshold keeps its promise (shown to be broken in at most 5 % of the sets)",
              "further work (chapter 7)", [kept(name, found) for name, found in cases.items()]),
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
