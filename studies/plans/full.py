"""Full-size trainings: all 45,000 images that are not held out, as the papers have it. They take
hours on one core, so that those which decide the most come first and not all are done.
"""

from dataclasses import replace

from ..runs import Run
from ..settings import Settings

IMAGES = 45_000
# Vemuri's point: no augmentation, so that the network is right about 80 % of the time and too sure.
PLAIN = Settings(
    data="cifar10",
    network="resnet-20",
    train_size=IMAGES,
    epochs=30,
    weight_decay=1e-4,
    augment=False,
    precision="bfloat16",
)
# Laves' recipe, with the rate of our small networks.
DROPPED = Settings(
    data="cifar10",
    network="resnet-14",
    train_size=IMAGES,
    epochs=24,
    optimiser="adamw",
    lr=0.002,
    weight_decay=0.01,
    dropout=0.5,
    augment=False,
    precision="bfloat16",
)
PLAIN_AGAIN = replace(PLAIN, seed=1)
PLAIN_EXTRAS = ("boundary", "boundary_softmax", "long_course", "train")
PENALISED = replace(DROPPED, confidence_penalty=0.1)
AUGMENTED = replace(PLAIN, augment=True, weight_decay=5e-4)
SEEDS = 3
# Those that are finished, whose predictions are kept: the studies ask for these.
TRAINED = frozenset({PLAIN.name, PLAIN_AGAIN.name, DROPPED.name, PENALISED.name})


def is_full(settings: Settings) -> bool:
    return settings.train_size >= IMAGES


def is_asked(settings: Settings, scale: str) -> bool:
    return scale == "cpu" and settings.name in TRAINED


def full_plain(scale: str) -> list[Run]:
    """What `regularisation` and `calibration` ask of them."""
    named = {"full size": PLAIN, "full size, again": PLAIN_AGAIN}
    return [Run(label, s, PLAIN_EXTRAS) for label, s in named.items() if is_asked(s, scale)]


def full_dropped(scale: str) -> list[Run]:
    """What `mc_temperature` asks of them."""
    named = {"full size": DROPPED, "full size, penalty 0.1": PENALISED}
    return [
        Run(f"resnet-14 cifar10, {label}", s, ("features",))
        for label, s in named.items()
        if is_asked(s, scale)
    ]


def wanted() -> list[Run]:
    """All that were meant to be trained, those of the studies first."""
    augmented = [
        Run("augmentation", replace(AUGMENTED, network=network, seed=seed))
        for network in ("resnet-14", "resnet-20")
        for seed in range(SEEDS)
    ]
    return [
        Run("plain", PLAIN, PLAIN_EXTRAS),
        Run("dropout 0.5, AdamW", DROPPED, ("features",)),
        Run("confidence penalty", PENALISED, ("features",)),
        Run("plain, again", PLAIN_AGAIN, PLAIN_EXTRAS),
        *augmented,
        Run("augmentation", replace(AUGMENTED, network="wrn-16-2")),
    ]
