"""The training loss: cross entropy with two regularisers of the label distribution, Dice, or the
selective loss.
"""

from dataclasses import replace

import torch.nn.functional as F
from torch import Tensor

from .settings import Settings

SMOOTH = 1.0  # pixel that keeps the Dice of an empty mask defined


def in_epoch(settings: Settings, epoch: int) -> Settings:
    """With the loss of this epoch (from 0): "late_selective" is cross entropy for the first half of
    the training, where the rate is high, and the selective loss added to it for the second."""
    if settings.loss != "late_selective":
        return settings
    return replace(settings, loss="cross_entropy" if 2 * epoch < settings.epochs else "selective")


def objective(logits: Tensor, labels: Tensor, settings: Settings) -> Tensor:
    """What `settings.loss` names."""
    match settings.loss:
        case "cross_entropy":
            return cross_entropy(logits, labels, settings)
        case "dice":
            return dice_loss(logits, labels)
        case "selective":
            return cross_entropy(logits, labels, settings) + selective(logits, labels)
    raise ValueError(
        f"loss {settings.loss!r} is unknown; use 'cross_entropy', 'dice', 'selective' or 'late_selective'."
    )


def cross_entropy(logits: Tensor, labels: Tensor, settings: Settings) -> Tensor:
    """Mean cross entropy with label smoothing, minus beta times the entropy (Laves eq. 10, Pereyra
    2017).
    """
    loss = F.cross_entropy(logits, labels, label_smoothing=settings.label_smoothing)
    if settings.confidence_penalty:
        loss = loss - settings.confidence_penalty * mean_entropy(logits)
    return loss


def mean_entropy(logits: Tensor) -> Tensor:
    log_p = F.log_softmax(logits, dim=1)
    return -(log_p.exp() * log_p).sum(1).mean()


def dice_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """1 - Dice of the foreground, class 1, with probabilities in place of answers; over all pixels
    of the batch.
    """
    p, y = logits.softmax(1)[:, 1], labels.float()
    return 1 - (2 * (p * y).sum() + SMOOTH) / (p.sum() + y.sum() + SMOOTH)


def selective(logits: Tensor, labels: Tensor) -> Tensor:
    from howsure.torch import selective_loss  # training alone needs no howsure

    return selective_loss(logits, labels)
