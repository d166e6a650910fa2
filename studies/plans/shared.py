"""Studies that train nothing of their own: they ask more of the networks of the others."""

from dataclasses import replace

from ..runs import Run, merged
from ..settings import Settings
from .complexity import complexity
from .full import full_plain
from .mc_temperature import mc_temperature
from .regularisation import EXTRAS, LEARNT, MAIN, deep, long, plain, regularisation
from .scales import mixed
from .shift import shift

ODDS_NETWORKS = {"smoke": "resnet-8", "cpu": "resnet-14", "paper": "wrn-28-4"}
MEMBERS = {"smoke": 2, "cpu": 5, "paper": 5}
BLOCK_RATES = (0.002, 0.01, 0.05)
DENSENETS = {"smoke": "wrn-10-1", "cpu": "densenet-", "paper": "densenet-100"}


def odds(scale: str) -> list[Run]:
    """Finlay & Oberman, tables 1-5: the repeats of one network are the ensemble."""
    chosen = [run for run in complexity(scale) if run.settings.network == ODDS_NETWORKS[scale]]
    recipe = mixed(scale, chosen[0].settings)
    members = [replace(recipe, seed=seed) for seed in range(len(chosen), MEMBERS[scale])]
    first = [replace(run, extras=("dropout_variance",)) for run in chosen]
    return [
        *first,
        *(replace(chosen[0], settings=s, turn=1) for s in members),
        *block_dropout(recipe),
    ]


def block_dropout(base: Settings) -> list[Run]:
    """One network for each rate, trained and asked with dropout in every block."""
    changed = {rate: replace(base, block_dropout=rate) for rate in BLOCK_RATES}
    return [
        Run(f"dropout {rate} in every block", s, ("block_passes",), 1)
        for rate, s in changed.items()
    ]


def promise(scale: str) -> list[Run]:
    """Every network that classifies: a threshold is set on validation images and judged on test
    images.
    """
    found = [*complexity(scale), *regularisation(scale), *mc_temperature(scale), *shift(scale)]
    return merged(replace(run, extras=()) for run in found)


def calibration(scale: str) -> list[Run]:
    """Vemuri, figures 6.1-6.3: over-confident networks trained without augmentation, the paper's
    own among them.
    """
    larger = [deep(scale)] if scale == "cpu" else []
    first = [plain(scale, MAIN[scale]), *larger]
    again = [
        replace(first[0], seed=1),
        *(replace(mixed(scale, settings), seed=1) for settings in larger),
    ]
    return [
        *(Run("standard", settings, EXTRAS) for settings in first),
        *(
            Run("standard, again", s, ("boundary", "boundary_softmax", *LEARNT), turn)
            for s, turn in zip(again, (0, 1), strict=False)
        ),
        *long(scale),
        *full_plain(scale),
    ]


def densenet_m(scale: str) -> list[Run]:
    """Ding, table 1: a DenseNet made worse on purpose; one repeat of each size where they are
    small.
    """
    chosen = [run for run in complexity(scale) if run.settings.network.startswith(DENSENETS[scale])]
    return [run for run in chosen if run.settings.seed == 0]
