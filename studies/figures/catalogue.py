"""The figures of each study by name."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from ..store import Store
from .drawing import save
from .growth import complexity, nuclei, segmentation
from .kept import precision, promise, selective, shift
from .passes import mc_temperature
from .ranking import densenet_m, odds
from .sweeps import calibration, regularisation

FIGURES: dict[str, Callable[[Store, str], dict[str, Figure]]] = {
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


def write_figures(name: str, store: Store, scale: str, folder: Path) -> list[Path]:
    """SVG files named after the study and the figure."""
    written = []
    for title, figure in FIGURES[name](store, scale).items():
        path = folder / (f"{title}.svg" if title.startswith(name) else f"{name}_{title}.svg")
        save(figure, path)
        written.append(path)
    return written
