"""Mixup: training on samples between samples."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from howsure._core.check import InputError


def mixup(
    inputs: Tensor, labels: Tensor, *, classes: int, rng: np.random.Generator, alpha: float = 0.2
) -> tuple[Tensor, Tensor]:
    r"""A batch mixed with itself in another order, and its soft labels for `F.cross_entropy`.

    .. math:: \tilde x = \lambda x_i + (1 - \lambda) x_j, \quad \tilde y = \lambda y_i + (1 - \lambda) y_j, \quad
        \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    One lambda for the batch, as in the paper. All randomness comes from `rng`. Zhang et al. 2018; it calibrates too:
    Thulasidasan et al. 2019.

    >>> x, y = mixup(torch.eye(2), torch.tensor([0, 1]), classes=2, rng=np.random.default_rng(1))
    >>> x.shape, torch.equal(x, y)
    (torch.Size([2, 2]), True)
    """
    if not alpha > 0:
        raise InputError(f"alpha is {alpha:g}; a number above 0 is needed.")
    if len(inputs) != len(labels):
        raise InputError(f"inputs has {len(inputs):,} rows, labels has {len(labels):,}; they must belong together.")
    share = float(rng.beta(alpha, alpha))
    other = torch.as_tensor(rng.permutation(len(labels)), device=inputs.device)
    soft = F.one_hot(labels, classes).to(inputs.dtype)
    return share * inputs + (1 - share) * inputs[other], share * soft + (1 - share) * soft[other.to(soft.device)]
