"""For PyTorch: predictions, MC dropout passes and ensembles of networks, losses, calibration inside
the network.

Needs the extra `torch`.
"""

from howsure._core.check import need

need("torch", for_="howsure.torch", extra="torch")

from howsure.torch.boundary import boundary_distance  # noqa: E402
from howsure.torch.calibrated import CalibratedModule  # noqa: E402
from howsure.torch.collection import collect  # noqa: E402
from howsure.torch.dropout import mc_dropout  # noqa: E402
from howsure.torch.ensembles import ensemble, snapshot_ensemble  # noqa: E402
from howsure.torch.epochs import EpochLog  # noqa: E402
from howsure.torch.training import confidence_penalty, label_smoothing, mixup, selective_loss  # noqa: E402

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
