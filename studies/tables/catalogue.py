"""The tables of each study by name."""

from collections.abc import Callable

from ..plans import runs_of
from ..store import Store
from .calibration import calibration
from .complexity import complexity
from .densenet_m import densenet_m
from .mc_temperature import mc_temperature
from .odds import odds
from .precision import precision
from .promise import promise
from .regularisation import regularisation
from .results import missing
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


def report(name: str, store: Store, scale: str) -> str:
    """All tables of one study as Markdown."""
    tables = [table.to_markdown() for table in TABLES[name](store, scale)]
    left = missing(store, runs_of([name], scale))
    return "\n".join([f"# {name}, scale {scale}\n", *([f"{left}\n"] if left else []), *tables])
