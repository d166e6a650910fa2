"""For PyTorch: predictions, MC dropout passes and ensembles of networks, losses, calibration inside
the network.

Needs the extra `torch`.
"""

from howsure._core.checks import need

need("torch", for_="howsure.torch", extra="torch")

from howsure.torch.calibrated import CalibratedModule  # noqa: E402
from howsure.torch.collection import boundary_distance, collect  # noqa: E402
from howsure.torch.sampling import (  # noqa: E402
    ensemble,
    mc_dropout,
    snapshot_ensemble,
)
from howsure.torch.training import (  # noqa: E402
    EpochLog,
    confidence_penalty,
    label_smoothing,
    mixup,
    selective_loss,
)

__all__ = [
    "CalibratedModule",
    "EpochLog",
    "boundary_distance",
    "collect",
    "confidence_penalty",
    "ensemble",
    "label_smoothing",
    "mc_dropout",
    "mixup",
    "selective_loss",
    "snapshot_ensemble",
]
