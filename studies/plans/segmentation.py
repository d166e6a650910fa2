"""Ding 2020, figure 7: U-Nets of growing width, on membranes, and with the Dice loss where
background dominates.
"""

from dataclasses import dataclass, replace

from ..runs import Run, repeats
from ..settings import Settings


@dataclass(frozen=True)
class Growth:
    """The widths of a study, how often each is trained, and the recipe of all."""

    widths: tuple[int, ...]
    count: int
    recipe: Settings


ADAM = Settings(
    "",
    "",
    20,
    2,
    val_size=5,
    batch=4,
    optimiser="adamw",
    lr=0.002,
    weight_decay=0.01,
    schedule="cosine",
)
SMOKE = replace(ADAM, data="digit_masks")
MEMBRANE = replace(ADAM, data="membrane", batch=2)
NUCLEI = replace(ADAM, data="nuclei", train_size=397, val_size=132, batch=8, loss="dice")
MEMBRANES = {
    "smoke": Growth((2, 4), 1, SMOKE),
    "cpu": Growth((2, 3, 4, 6, 8, 12, 16), 2, replace(MEMBRANE, epochs=100)),
    "paper": Growth((4, 8, 16, 32, 64), 5, replace(MEMBRANE, epochs=400)),
}
BACKGROUND = {
    "smoke": Growth((2, 4), 1, replace(SMOKE, loss="dice")),
    "cpu": Growth((2, 3, 4, 6, 8, 12), 3, replace(NUCLEI, epochs=12)),
    "paper": Growth((4, 8, 16, 32, 64), 5, replace(NUCLEI, epochs=200)),
}


def segmentation(scale: str) -> list[Run]:
    """AdamW with a cosine schedule, mirrored and turned images, cross entropy."""
    return grown(MEMBRANES[scale])


def nuclei(scale: str) -> list[Run]:
    """The same with the Dice loss."""
    return grown(BACKGROUND[scale], turn=1)


def grown(growth: Growth, *, turn: int = 0) -> list[Run]:
    networks = [f"unet-{width}" for width in growth.widths]
    return [
        run
        for n in networks
        for run in repeats(n, replace(growth.recipe, network=n), growth.count, turn=turn)
    ]
