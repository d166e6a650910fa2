"""Ding 2020, section 4.1 (iv): AURC as an objective. `howsure.torch.selective_loss` against plain
cross entropy.
"""

from dataclasses import replace

from ..runs import Run, repeats
from .complexity import complexity

NETWORKS = {"smoke": "resnet-8", "cpu": "resnet-8", "paper": "densenet-40"}
SEEDS = {"smoke": 3, "cpu": 3, "paper": 5}


def selective(scale: str) -> list[Run]:
    """A network of `complexity`, and the same with the selective loss added to cross entropy: from
    the first epoch on, and only after the rate has fallen."""
    plain = [run for run in complexity(scale) if run.settings.network == NETWORKS[scale]]
    first, count = plain[0].settings, SEEDS[scale]
    return [
        *(replace(run, turn=2) for run in repeats("cross entropy", first, count)),
        *(
            Run("selective loss added", replace(run.settings, loss="selective"), (), 2)
            for run in plain
        ),
        *repeats("selective loss added late", replace(first, loss="late_selective"), count, turn=2),
    ]
