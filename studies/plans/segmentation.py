"""Ding 2020, figure 7: U-Nets of growing width."""

from dataclasses import replace

from ..runs import Run, repeats
from ..settings import Settings

WIDTHS = {"smoke": (2, 4), "cpu": (2, 4, 8, 12, 16), "paper": (4, 8, 16, 32, 64)}
RECIPES = {
    "smoke": Settings(data="digit_masks", network="", train_size=20, val_size=5, epochs=2, batch=4),
    "cpu": Settings(data="membrane", network="", train_size=20, val_size=5, epochs=100, batch=2),
    "paper": Settings(data="membrane", network="", train_size=20, val_size=5, epochs=400, batch=2),
}
REPEATS = {"smoke": 1, "cpu": 2, "paper": 5}


def segmentation(scale: str) -> list[Run]:
    """AdamW with a cosine schedule, mirrored and turned images."""
    recipe = replace(RECIPES[scale], optimiser="adamw", lr=0.002, weight_decay=0.01, schedule="cosine")
    return [
        run
        for width in WIDTHS[scale]
        for run in repeats(f"unet-{width}", replace(recipe, network=f"unet-{width}"), REPEATS[scale])
    ]
