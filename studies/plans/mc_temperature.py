"""Laves 2019: temperature scaling inside MC dropout, against the confidence penalty, and both together."""

from dataclasses import replace

from ..runs import Run
from ..settings import Settings
from .scales import adam_recipe

PENALTY = 0.1
NETWORKS = {
    "smoke": (("digits", "resnet-8"),),
    "cpu": (("fashion_mnist", "cnn"), ("cifar10", "resnet-14"), ("cifar10", "densenet-10")),
    "paper": (("cifar10", "resnet-18"), ("cifar100", "resnet-101"), ("cifar100", "densenet-169")),
}
PENALISED = {"smoke": ("resnet-8",), "cpu": ("cnn", "resnet-14"), "paper": ("densenet-121",)}


def mc_temperature(scale: str) -> list[Run]:
    """Table 1 (and figures 1, 3, 4, 5), then figure 2: with and without penalty, no augmentation."""
    recipe = adam_recipe(scale)
    table = [one(recipe, data, network) for data, network in NETWORKS[scale]]
    pairs = [(data, n) for n in PENALISED[scale] for data in data_of(scale, n)]
    return table + [one(recipe, data, n, penalty) for data, n in pairs for penalty in (0.0, PENALTY)]


def data_of(scale: str, network: str) -> list[str]:
    """The data set on which the table has this network; CIFAR-10 for the paper's DenseNet-121, which is not in it."""
    return [data for data, n in NETWORKS[scale] if n == network] or ["cifar10"]


def one(recipe: Settings, data: str, network: str, penalty: float = 0.0) -> Run:
    label = f"{network} {data}" + (f" penalty {penalty}" if penalty else "")
    settings = replace(recipe, data=data, network=network, augment=False, confidence_penalty=penalty)
    return Run(label, settings, ("mc",))
