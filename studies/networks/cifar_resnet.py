"""The residual networks of He et al. 2016, section 4.2: 6n+2 layers, widths 16, 32, 64, shortcuts
without weights.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .classifier import Classifier, conv3, he_initialised, norm_relu, pooled

WIDTHS = (16, 32, 64)


class Block(nn.Module):
    """Two convolutions and the identity; where the width grows, the identity is subsampled and
    padded with zeros.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.extra, self.stride = outputs - inputs, stride
        between = (nn.Dropout(dropout),) if dropout else ()
        self.branch = nn.Sequential(
            conv3(inputs, outputs, stride), *norm_relu(outputs), *between, conv3(outputs, outputs),
            nn.BatchNorm2d(outputs),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x[:, :, :: self.stride, :: self.stride] if self.extra else x
        if self.extra:
            shortcut = F.pad(shortcut, (0, 0, 0, 0, self.extra // 2, self.extra - self.extra // 2))
        return torch.relu(self.branch(x) + shortcut)


def cifar_resnet(
    depth: int, *, classes: int, channels: int, dropout: float, block_dropout: float = 0.0
) -> nn.Module:
    """Depths 8, 14, 20, 32, 44, 56, 110; `block_dropout` acts between the two convolutions of every
    block.
    """
    if depth < 8 or (depth - 2) % 6:
        raise ValueError(f"a CIFAR ResNet has 6n+2 layers (8, 14, 20, 32, 44, …), not {depth}.")
    stages = [
        stage(WIDTHS[max(i - 1, 0)], width, (depth - 2) // 6, 1 + (i > 0), block_dropout)
        for i, width in enumerate(WIDTHS)
    ]
    features = nn.Sequential(conv3(channels, WIDTHS[0]), *norm_relu(WIDTHS[0]), *stages, *pooled())
    return he_initialised(Classifier(features, nn.Linear(WIDTHS[-1], classes), dropout))


def stage(inputs: int, outputs: int, blocks: int, stride: int, dropout: float) -> nn.Module:
    rest = (Block(outputs, outputs, 1, dropout) for _ in range(blocks - 1))
    return nn.Sequential(Block(inputs, outputs, stride, dropout), *rest)
