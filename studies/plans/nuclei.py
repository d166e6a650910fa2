"""Ding 2020, figure 7 again, where background dominates as in the paper's hearts: U-Nets with the Dice loss."""

from dataclasses import replace

from ..runs import Run, repeats
from ..settings import Settings

WIDTHS = {"smoke": (2, 4), "cpu": (2, 3, 4, 6, 8), "paper": (4, 8, 16, 32, 64)}
RECIPES = {
    "smoke": Settings(data="digit_masks", network="", train_size=20, val_size=5, epochs=2, batch=4),
    "cpu": Settings(data="nuclei", network="", train_size=397, val_size=132, epochs=12, batch=8),
    "paper": Settings(data="nuclei", network="", train_size=397, val_size=132, epochs=200, batch=8),
}
REPEATS = {"smoke": 1, "cpu": 3, "paper": 5}


def nuclei(scale: str) -> list[Run]:
    """AdamW with a cosine schedule, mirrored and turned images, Dice loss."""
    recipe = replace(
        RECIPES[scale], optimiser="adamw", lr=0.002, weight_decay=0.01, schedule="cosine", loss="dice"
    )  # fmt: skip
    return [
        run
        for width in WIDTHS[scale]
        for run in repeats(f"unet-{width}", replace(recipe, network=f"unet-{width}"), REPEATS[scale], turn=1)
    ]
