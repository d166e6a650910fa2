"""Three sizes of the same experiments: a check of the machinery, two cores for some hours, and the
papers' own.
"""

from dataclasses import replace

from ..settings import Settings

SCALES = ("smoke", "cpu", "paper")


def cifar_recipe(scale: str) -> Settings:
    """SGD with momentum, rate 0.1 divided by ten at half and at three quarters of the epochs."""
    match scale:
        case "smoke":
            return Settings(
                data="digits", network="", train_size=600, epochs=4, val_size=300, batch=64
            )
        case "cpu":
            return Settings(data="cifar10", network="", train_size=10_000, epochs=15)
        case "paper":
            return Settings(data="cifar10", network="", train_size=45_000, epochs=200)
    raise ValueError(f"scale {scale!r} is unknown; use {', '.join(SCALES)}.")


def smaller_steps(recipe: Settings) -> Settings:
    """With batches of 128 a deep network has not begun to learn after ten epochs. The ratio of rate
    and batch, which sets the noise of SGD, stays."""
    return replace(recipe, batch=32, lr=0.025)


def mixed(scale: str, recipe: Settings) -> Settings:
    """On a CPU, long trainings in half the time (`training.forward`)."""
    return replace(recipe, precision="bfloat16") if scale == "cpu" else recipe


def adam_recipe(scale: str) -> Settings:
    """AdamW, weight decay 0.01, dropout 0.5 (Laves A.3); only the paper's scale is long enough for
    a plateau.
    """
    recipe = replace(cifar_recipe(scale), optimiser="adamw", weight_decay=0.01, dropout=0.5)
    if scale == "paper":
        return replace(recipe, batch=256, lr=0.01, schedule="plateau")
    return replace(recipe, lr=0.002)
