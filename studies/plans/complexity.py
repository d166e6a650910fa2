"""Ding 2019 and 2020, section 5: growing networks of one family, each trained several times."""

from dataclasses import replace

from ..runs import Run, repeats
from .scales import cifar_recipe

NETWORKS = {
    "smoke": ("resnet-8", "wrn-10-1"),
    "cpu": (
        "resnet-8", "densenet-10", "wrn-10-1", "resnet-14", "wrn-16-1", "densenet-13", "resnet-20", "densenet-16",
        "wrn-16-2", "densenet-22",
    ),
    "paper": (
        "densenet-10", "densenet-16", "densenet-22", "densenet-40", "densenet-70", "densenet-100",
        "wrn-16-1", "wrn-16-2", "wrn-16-4", "wrn-16-8", "wrn-28-1", "wrn-28-2", "wrn-28-4",
    ),
}  # fmt: skip
DATA = {"smoke": ("digits",), "cpu": ("cifar10",), "paper": ("cifar10", "cifar100")}
REPEATS = {"smoke": 2, "cpu": 2, "paper": 5}


def complexity(scale: str) -> list[Run]:
    """Every network on every data set, REPEATS times."""
    recipe = cifar_recipe(scale)
    return [
        run
        for network in NETWORKS[scale]
        for data in DATA[scale]
        for run in repeats(f"{network} {data}", replace(recipe, network=network, data=data), REPEATS[scale])
    ]
