"""The tables of each study by name."""

from collections.abc import Callable

from ..store import Store
from .calibration import calibration
from .complexity import complexity
from .densenet_m import densenet_m
from .mc_temperature import mc_temperature
from .odds import odds
from .precision import precision
from .promise import promise
from .regularisation import regularisation
from .segmentation import nuclei, segmentation
from .selective import selective
from .shift import shift
from .table import Table

TABLES: dict[str, Callable[[Store, str], list[Table]]] = {
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
