"""Not from a paper: some networks are trained in mixed precision, which halves the time; does it
change the numbers?
"""

from dataclasses import replace

from ..runs import Run
from .complexity import complexity

NETWORKS = {"smoke": ("resnet-8",), "cpu": ("resnet-8", "resnet-14"), "paper": ("densenet-10",)}


def precision(scale: str) -> list[Run]:
    """Networks of `complexity`, and the same trained in mixed precision."""
    plain = [run for run in complexity(scale) if run.settings.network in NETWORKS[scale]]
    mixed = [
        replace(run, settings=replace(run.settings, precision="bfloat16"), turn=1) for run in plain
    ]
    return [*plain, *(replace(run, label=f"{run.label}, mixed precision") for run in mixed)]
