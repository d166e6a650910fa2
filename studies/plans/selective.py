"""Ding 2020, section 4.1 (iv): AURC as an objective. `howsure.torch.selective_loss` against plain cross entropy."""

from dataclasses import replace

from ..runs import Run
from .complexity import complexity

NETWORKS = {"smoke": "resnet-8", "cpu": "resnet-8", "paper": "densenet-40"}


def selective(scale: str) -> list[Run]:
    """A network of `complexity`, and the same with the selective loss added to cross entropy."""
    plain = [run for run in complexity(scale) if run.settings.network == NETWORKS[scale]]
    return [
        *(replace(run, label="cross entropy") for run in plain),
        *(Run("selective loss added", replace(run.settings, loss="selective"), (), 2) for run in plain),
    ]
