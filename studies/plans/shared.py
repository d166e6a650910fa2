"""Studies that train nothing of their own: they ask more of the networks of the others."""

from dataclasses import replace

from ..runs import Run
from .complexity import complexity
from .regularisation import EXTRAS, MAIN, deep, plain

ODDS_NETWORKS = {"smoke": "resnet-8", "cpu": "resnet-14", "paper": "wrn-28-4"}
DENSENETS = {"smoke": "wrn-10-1", "cpu": "densenet-", "paper": "densenet-100"}


def odds(scale: str) -> list[Run]:
    """Finlay & Oberman, tables 1-5: the repeats of one network are the ensemble."""
    chosen = [run for run in complexity(scale) if run.settings.network == ODDS_NETWORKS[scale]]
    return [replace(run, extras=("dropout_variance",)) for run in chosen]


def calibration(scale: str) -> list[Run]:
    """Vemuri, figures 6.1-6.3: over-confident networks trained without augmentation, the paper's own among them."""
    larger = [deep(scale)] if scale == "cpu" else []
    return [Run("standard", settings, EXTRAS) for settings in (plain(scale, MAIN[scale]), *larger)]


def densenet_m(scale: str) -> list[Run]:
    """Ding, table 1: a DenseNet made worse on purpose; one repeat of each size where they are small."""
    chosen = [run for run in complexity(scale) if run.settings.network.startswith(DENSENETS[scale])]
    return [run for run in chosen if run.settings.seed == 0]
