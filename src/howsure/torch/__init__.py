"""For PyTorch: predictions, MC dropout passes and ensembles of networks, losses, calibration inside the network.

Needs the extra `torch`.
"""

from howsure._optional import need

need("torch", for_="howsure.torch", extra="torch")

from howsure.torch.boundary import boundary_distance  # noqa: E402
from howsure.torch.collecting import collect  # noqa: E402
from howsure.torch.ensembles import ensemble, snapshot_ensemble  # noqa: E402
from howsure.torch.sampling import mc_dropout  # noqa: E402

__all__ = ["boundary_distance", "collect", "ensemble", "mc_dropout", "snapshot_ensemble"]
