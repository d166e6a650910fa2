"""Ding 2020, section 4.1 (iv): AURC as an objective. `howsure.torch.selective_loss` against plain cross entropy."""

from dataclasses import replace

from ..runs import Run
from .complexity import complexity

NETWORK = "resnet-8"


def selective(scale: str) -> list[Run]:
    """The ResNet-8 of `complexity`, and the same with the selective loss added to cross entropy."""
    plain = [run for run in complexity(scale) if run.settings.network == NETWORK]
    return [
        *(replace(run, label="cross entropy") for run in plain),
        *(Run("selective loss added", replace(run.settings, loss="selective"), (), 2) for run in plain),
    ]
