"""Ding 2019 and 2020, section 5: growing networks of one family, each trained several times."""

from dataclasses import replace

from ..runs import Run, repeats
from ..settings import Settings
from .scales import cifar_recipe, mixed, smaller_steps

NETWORKS = {
    "smoke": ("resnet-8", "wrn-10-1"),
    "cpu": (
        "resnet-8", "densenet-10", "wrn-10-1", "resnet-14", "wrn-16-1", "densenet-13", "resnet-20", "densenet-16",
        "wrn-16-2", "resnet-44", "densenet-22",
    ),
    "paper": (
        "densenet-10", "densenet-16", "densenet-22", "densenet-40", "densenet-70", "densenet-100",
        "wrn-16-1", "wrn-16-2", "wrn-16-4", "wrn-16-8", "wrn-28-1", "wrn-28-2", "wrn-28-4",
    ),
}  # fmt: skip
DATA = {"smoke": ("digits",), "cpu": ("cifar10",), "paper": ("cifar10", "cifar100")}
REPEATS = {"smoke": 2, "cpu": 2, "paper": 5}
LARGE = ("wrn-16-2", "resnet-44", "densenet-22")
DEEP = ("resnet-44",)


def complexity(scale: str) -> list[Run]:
    """Every network on every data set, REPEATS times."""
    pairs = [(network, data) for network in NETWORKS[scale] for data in DATA[scale]]
    settings = [
        replace(recipe(scale, network), network=network, data=data) for network, data in pairs
    ]
    runs = [run for s in settings for run in repeats(f"{s.network} {s.data}", s, REPEATS[scale])]
    return [
        replace(run, turn=2 + run.settings.seed) if run.settings.network in LARGE else run
        for run in runs
    ]


def recipe(scale: str, network: str) -> Settings:
    """One recipe for all networks, but in smaller steps for deep ones (`scales.smaller_steps`) and
    in mixed precision for large ones (`precision` shows what that changes); at the paper's scale
    the one of each network's own paper."""
    common = mixed(scale, cifar_recipe(scale)) if network in LARGE else cifar_recipe(scale)
    if scale == "cpu" and network in DEEP:
        return smaller_steps(common)
    if scale != "paper":
        return common
    if network.startswith("wrn"):
        return replace(common, schedule="wide_steps", epochs=200)
    return replace(common, batch=64, weight_decay=1e-4, epochs=300)
