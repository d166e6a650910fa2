"""Not from a paper: one network whose test images are blurred, darkened and noised."""

from dataclasses import replace

from ..runs import Run
from ..shifts import NAMES
from .scales import cifar_recipe

NETWORKS = {"smoke": "resnet-8", "cpu": "resnet-20", "paper": "resnet-44"}
EPOCHS = {"smoke": 2, "cpu": 20, "paper": 200}


def shift(scale: str) -> list[Run]:
    """The usual recipe, and the logits under each change besides those of the images as they are."""
    settings = replace(cifar_recipe(scale), network=NETWORKS[scale], epochs=EPOCHS[scale])
    return [Run(f"{settings.network} {settings.data}", settings, NAMES)]
