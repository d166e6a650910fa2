"""The training loss: cross entropy, with the two regularisers of the label distribution."""

import torch.nn.functional as F
from torch import Tensor

from .settings import Settings


def objective(logits: Tensor, labels: Tensor, settings: Settings) -> Tensor:
    """Mean cross entropy with label smoothing, minus beta times the entropy (Laves eq. 10, Pereyra 2017)."""
    loss = F.cross_entropy(logits, labels, label_smoothing=settings.label_smoothing)
    if settings.confidence_penalty:
        loss = loss - settings.confidence_penalty * mean_entropy(logits)
    return loss


def mean_entropy(logits: Tensor) -> Tensor:
    log_p = F.log_softmax(logits, dim=1)
    return -(log_p.exp() * log_p).sum(1).mean()
