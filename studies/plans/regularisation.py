"""Vemuri 2020, chapters 3 and 5: one regulariser at a time, against plain training without
augmentation.
"""

from dataclasses import replace

from ..runs import Run, repeats
from ..settings import Settings
from .full import full_plain
from .scales import cifar_recipe, mixed, smaller_steps

SMOOTHING = (0.02, 0.05, 0.1, 0.2, 0.4)
DROPOUT = (0.2, 0.5, 0.7)
WEIGHT_DECAY = (0.0, 5e-4, 1e-3, 5e-3)
STRONG_DECAY = (1e-2, 2e-2)
PLAIN_DECAY = 1e-4
SWEPT = {"label smoothing": "label_smoothing", "dropout": "dropout", "weight decay": "weight_decay"}
MAIN = {"smoke": "resnet-8", "cpu": "resnet-8", "paper": "resnet-44"}
EPOCHS = {"smoke": 2, "cpu": 20, "paper": 300}
LEARNT = ("train",)  # what the tables of one training for each setting show of training images
EXTRAS = ("boundary", "course", *LEARNT)
SEEDS = {"smoke": 2, "cpu": 5, "paper": 5}
LONG = {"smoke": ("resnet-8",), "cpu": ("resnet-14", "resnet-20"), "paper": ()}
LONG_TIMES = {"smoke": 1, "cpu": 2, "paper": 1}
LONG_EPOCHS = {"smoke": 5, "cpu": 100, "paper": 300}
LONG_EXTRAS = ("boundary", "boundary_softmax", *LEARNT)


def plain(scale: str, network: str) -> Settings:
    recipe = replace(cifar_recipe(scale), network=network, epochs=EPOCHS[scale])
    return replace(recipe, weight_decay=PLAIN_DECAY, augment=False)


def deep(scale: str) -> Settings:
    """The paper's network for fewer epochs, in smaller steps."""
    return smaller_steps(replace(plain(scale, "resnet-44"), epochs=10))


def long(scale: str) -> list[Run]:
    """Until the training images are known by heart, as in the paper: that is where networks become
    over-confident. The course of the first training of a network is kept."""
    found: list[Run] = []
    for turn, network in zip((1, 3), LONG[scale], strict=False):
        s = mixed(scale, replace(plain(scale, network), epochs=LONG_EPOCHS[scale]))
        first, *again = repeats(long_label(s), s, LONG_TIMES[scale], LONG_EXTRAS, turn=turn)
        found += [replace(first, extras=(*LONG_EXTRAS, "long_course")), *again]
    return found


def long_label(settings: Settings) -> str:
    return f"standard, {settings.epochs} epochs"


def regularisation(scale: str) -> list[Run]:
    """The sweeps on the main network; at the scale of a CPU also the key settings on larger ones."""
    standard = plain(scale, MAIN[scale])
    runs = [Run("standard", standard, EXTRAS), *key_runs(standard), *sweeps(standard), *long(scale)]
    runs += smoothing_again(scale, standard, SEEDS[scale])
    if scale == "cpu":
        larger = plain(scale, "resnet-14")
        runs += [Run("standard", larger, ("course", *LEARNT)), *key_runs(larger)]
        deepest = deep(scale)
        runs += [
            Run("standard", deepest, EXTRAS),
            Run("augmentation", replace(deepest, augment=True), LEARNT),
        ]
    return [*runs, *full_plain(scale)]


def smoothing_again(scale: str, standard: Settings, seeds: int) -> list[Run]:
    """Label smoothing under further seeds: one training for each point leaves open whether two
    optima differ. All settings of a seed have one precision."""
    again = [replace(standard, seed=seed) for seed in range(1, seeds)]
    recipes = [*again[:1], *(mixed(scale, recipe) for recipe in again[1:])]
    return [
        Run(
            f"label smoothing {value}",
            replace(recipe, label_smoothing=value),
            (),
            3 if recipe.seed < 3 else 4,
        )
        for recipe in recipes
        for value in (0.0, *SMOOTHING)
    ]


def key_runs(standard: Settings) -> list[Run]:
    """The rows of figure 5.2."""
    return [
        Run("augmentation", replace(standard, augment=True), LEARNT),
        Run("label smoothing 0.1", replace(standard, label_smoothing=0.1), LEARNT),
        Run("dropout 0.7", replace(standard, dropout=0.7), LEARNT),
        Run("weight decay 0.001", replace(standard, weight_decay=1e-3), LEARNT),
    ]


def sweeps(standard: Settings) -> list[Run]:
    """The points of figure 5.1; early stopping is read from the course of the standard run."""
    return [
        *(
            Run(f"label smoothing {s}", replace(standard, label_smoothing=s), LEARNT)
            for s in SMOOTHING
        ),
        *(Run(f"dropout {p}", replace(standard, dropout=p), LEARNT) for p in DROPOUT),
        *(
            Run(f"weight decay {w}", replace(standard, weight_decay=w), LEARNT)
            for w in WEIGHT_DECAY
        ),
        *(
            Run(f"weight decay {w}", replace(standard, weight_decay=w), LEARNT, turn=2)
            for w in STRONG_DECAY
        ),
    ]
