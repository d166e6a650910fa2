"""All studies by name."""

from collections.abc import Callable
from math import inf

from ..hours import predicted_hours
from ..runs import Run, merged
from .complexity import complexity
from .mc_temperature import mc_temperature
from .precision import precision
from .regularisation import regularisation
from .segmentation import nuclei, segmentation
from .selective import selective
from .shared import calibration, densenet_m, odds, promise
from .shift import shift

Study = Callable[[str], list[Run]]
STUDIES: dict[str, Study] = {
    "complexity": complexity,
    "segmentation": segmentation,
    "regularisation": regularisation,
    "calibration": calibration,
    "odds": odds,
    "mc_temperature": mc_temperature,
    "densenet_m": densenet_m,
    "nuclei": nuclei,
    "selective": selective,
    "shift": shift,
    "promise": promise,
    "precision": precision,
}


def runs_of(names: list[str], scale: str, *, at_most: float = inf) -> list[Run]:
    """The networks that these studies need, each once; within a turn small ones first, so that an
    interrupted study has the most of them."""
    wanted = merged(run for name in names for run in STUDIES[name](scale))
    runs = sorted(wanted, key=lambda run: (run.turn, predicted_hours(run)))
    return [run for run in runs if predicted_hours(run) <= at_most]
