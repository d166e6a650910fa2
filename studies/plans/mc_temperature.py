"""Laves 2019: temperature scaling inside MC dropout, against the confidence penalty, and both
together.
"""

from dataclasses import replace

from ..runs import Run
from ..settings import Settings
from .full import full_dropped
from .scales import adam_recipe, mixed

PENALTY = 0.1
NETWORKS = {
    "smoke": (("digits", "resnet-8"),),
    "cpu": (("fashion_mnist", "cnn"), ("cifar10", "resnet-14"), ("cifar10", "densenet-10")),
    "paper": (("cifar10", "resnet-18"), ("cifar100", "resnet-101"), ("cifar100", "densenet-169")),
}
OVERFITTED = {
    "smoke": (("digits", "resnet-8"),),
    "cpu": (("fashion_mnist", "cnn"), ("cifar10", "resnet-14")),
    "paper": (),
}
OVERFITTED_EPOCHS = {"smoke": 4, "cpu": 60, "paper": 200}
OVERFITTED_SEEDS = {"smoke": 1, "cpu": 5, "paper": 5}
DROPOUTS, DECAYS = (0.2, 0.5, 0.8), (0.001, 0.01, 0.1)
PENALISED = {"smoke": ("resnet-8",), "cpu": ("cnn", "resnet-14"), "paper": ("densenet-121",)}


def mc_temperature(scale: str) -> list[Run]:
    """Table 1 (and figures 1, 3, 4, 5), then figure 2: with and without penalty, no augmentation."""
    recipe = adam_recipe(scale)
    table = [one(recipe, data, network) for data, network in NETWORKS[scale]]
    pairs = [(data, n) for n in PENALISED[scale] for data in data_of(scale, n)]
    runs = table + [
        one(recipe, data, n, penalty) for data, n in pairs for penalty in (0.0, PENALTY)
    ]
    return [*runs, *overfitted(scale), *full_dropped(scale), *dropout_decay(scale)]


def overfitted(scale: str) -> list[Run]:
    """Longer, so that the networks become as over-confident as the paper's; several seeds, all test
    images.
    """
    cases = [(turn + (turn > 0 and seed > 1), seed, penalty, pair)
             for turn, pair in zip((0, 2), OVERFITTED[scale], strict=False)
             for seed in range(OVERFITTED_SEEDS[scale]) for penalty in (0.0, PENALTY)]  # fmt: skip
    return [
        long(scale, data, network, turn, seed=seed, confidence_penalty=p)
        for turn, seed, p, (data, network) in cases
    ]


def dropout_decay(scale: str) -> list[Run]:
    """The paper's future work: how dropout rate and weight decay act together on the uncertainty."""
    data, network = (OVERFITTED[scale] or NETWORKS[scale])[0]
    pairs = [(dropout, decay) for dropout in DROPOUTS for decay in DECAYS]
    return [
        long(scale, data, network, 4, dropout=dropout, weight_decay=decay)
        for dropout, decay in pairs
    ]


def long(scale: str, data: str, network: str, turn: int, **changes: float) -> Run:
    base = replace(
        adam_recipe(scale),
        data=data,
        network=network,
        augment=False,
        epochs=OVERFITTED_EPOCHS[scale],
    )
    settings = replace(base if network == "cnn" else mixed(scale, base), **changes)
    return Run(f"{network} {data}, {settings.epochs} epochs", settings, ("features",), turn)


def data_of(scale: str, network: str) -> list[str]:
    """The data set on which the table has this network; CIFAR-10 for the paper's DenseNet-121,
    which is not in it.
    """
    return [data for data, n in NETWORKS[scale] if n == network] or ["cifar10"]


def one(recipe: Settings, data: str, network: str, penalty: float = 0.0) -> Run:
    label = f"{network} {data}" + (f" penalty {penalty}" if penalty else "")
    settings = replace(
        recipe, data=data, network=network, augment=False, confidence_penalty=penalty
    )
    return Run(label, settings, ("mc",))
