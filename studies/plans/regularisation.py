"""Vemuri 2020, chapters 3 and 5: one regulariser at a time, against plain training without augmentation."""

from dataclasses import replace

from ..runs import Run
from ..settings import Settings
from .scales import cifar_recipe

SMOOTHING = (0.02, 0.05, 0.1, 0.2, 0.4)
DROPOUT = (0.2, 0.5, 0.7)
WEIGHT_DECAY = (0.0, 5e-4, 1e-3, 5e-3)
PLAIN_DECAY = 1e-4
SWEPT = {"label smoothing": "label_smoothing", "dropout": "dropout", "weight decay": "weight_decay"}
MAIN = {"smoke": "resnet-8", "cpu": "resnet-8", "paper": "resnet-44"}
EPOCHS = {"smoke": 2, "cpu": 20, "paper": 300}
EXTRAS = ("boundary", "course")


def plain(scale: str, network: str) -> Settings:
    recipe = replace(cifar_recipe(scale), network=network, epochs=EPOCHS[scale])
    return replace(recipe, weight_decay=PLAIN_DECAY, augment=False)


def deep(scale: str) -> Settings:
    """The paper's network for fewer epochs, in smaller steps: with batches of 128 so deep a network has not begun to
    learn after ten. The ratio of rate and batch, which sets the noise of SGD, is that of the others."""
    return replace(plain(scale, "resnet-44"), epochs=10, batch=32, lr=0.025)


def regularisation(scale: str) -> list[Run]:
    """The sweeps on the main network; at the scale of a CPU also the key settings on larger ones."""
    standard = plain(scale, MAIN[scale])
    runs = [Run("standard", standard, EXTRAS), *key_runs(standard), *sweeps(standard)]
    if scale == "cpu":
        larger = plain(scale, "resnet-14")
        runs += [Run("standard", larger, ("course",)), *key_runs(larger)]
        deepest = deep(scale)
        runs += [Run("standard", deepest, EXTRAS), Run("augmentation", replace(deepest, augment=True))]
    return runs


def key_runs(standard: Settings) -> list[Run]:
    """The rows of figure 5.2."""
    return [
        Run("augmentation", replace(standard, augment=True)),
        Run("label smoothing 0.1", replace(standard, label_smoothing=0.1)),
        Run("dropout 0.7", replace(standard, dropout=0.7)),
        Run("weight decay 0.001", replace(standard, weight_decay=1e-3)),
    ]


def sweeps(standard: Settings) -> list[Run]:
    """The points of figure 5.1; early stopping is read from the course of the standard run."""
    return [
        *(Run(f"label smoothing {s}", replace(standard, label_smoothing=s)) for s in SMOOTHING),
        *(Run(f"dropout {p}", replace(standard, dropout=p)) for p in DROPOUT),
        *(Run(f"weight decay {w}", replace(standard, weight_decay=w)) for w in WEIGHT_DECAY),
    ]
