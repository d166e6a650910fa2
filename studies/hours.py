"""How long a run will take, from its multiply-adds and the speed measured on one core."""

from functools import cache

import torch

from .data.sizes import SIZES
from .networks import build, multiply_adds
from .runs import Run

FORWARD_AND_BACKWARD = 3
MULTIPLY_ADDS_PER_SECOND = {
    "resnet": 24e9,
    "wrn": 26e9,
    "densenet": 12e9,
    "cnn": 24e9,
    "unet": 20e9,
}
FASTER = {"float32": 1.0, "bfloat16": 1.8}
SECONDS_PER_PIXEL = {"unet": 1e-6}  # thin layers on large images wait for memory


@cache
def cost_per_image(network: str, data: str) -> int:
    """Counted on the meta device, which knows shapes and computes nothing."""
    size = SIZES[data]
    with torch.device("meta"):
        net = build(network, classes=size.classes, channels=size.channels)
    return multiply_adds(net, size.channels, size.height, size.width)


def predicted_hours(run: Run) -> float:
    """Training only, on one core; reading images and writing predictions add some per cent."""
    s = run.settings
    family, size = s.network.split("-")[0], SIZES[s.data]
    seconds = (
        cost_per_image(s.network, s.data) * FORWARD_AND_BACKWARD / MULTIPLY_ADDS_PER_SECOND[family]
    )
    seconds += SECONDS_PER_PIXEL.get(family, 0.0) * size.height * size.width
    return seconds / FASTER[s.precision] * s.train_size * s.epochs / 3600


def plan_text(runs: list[Run], finished: set[str]) -> str:
    """One line per network, and the hours that are left."""
    lines = [plan_line(run, run.settings.name in finished) for run in runs]
    left = sum(predicted_hours(run) for run in runs if run.settings.name not in finished)
    return "\n".join(
        [
            *lines,
            f"{len(runs)} networks, {len(finished)} finished, about {left:.1f} hours left on one core",
        ]
    )


def plan_line(run: Run, done: bool) -> str:
    s = run.settings
    state = "done" if done else f"{predicted_hours(run):6.2f} h"
    return f"{state:>9}  {s.name:40} {run.label:36} {s.train_size:>6,} images x {s.epochs} epochs"
