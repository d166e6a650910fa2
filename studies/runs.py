"""What a study asks for: networks to train, and what to keep of each."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .settings import Settings


@dataclass(frozen=True)
class Run:
    """One network of a study, what it is called there, and what is kept besides its logits (see
    `extras`).
    """

    label: str
    settings: Settings
    extras: tuple[str, ...] = ()
    turn: int = 0  # runs of a lower turn are trained first, whatever their length


def repeats(
    label: str, settings: Settings, count: int, extras: tuple[str, ...] = (), *, turn: int = 0
) -> list[Run]:
    """The same settings under seeds 0, 1, …"""
    return [Run(label, replace(settings, seed=seed), extras, turn) for seed in range(count)]


def merged(runs: Iterable[Run]) -> list[Run]:
    """Each network once, with all that any study wants of it, in the order of first mention."""
    found: dict[str, Run] = {}
    for run in runs:
        old = found.get(run.settings.name, run)
        extras = tuple(sorted({*old.extras, *run.extras}))
        found[run.settings.name] = replace(old, extras=extras, turn=min(old.turn, run.turn))
    return list(found.values())
