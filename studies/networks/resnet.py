"""The wide-input residual networks of He et al. 2016, table 1: ResNet-18 and ResNet-101."""

import torch
from torch import Tensor, nn

from .classifier import Classifier, conv1, conv3, he_initialised, norm_relu, pooled

WIDTHS = (64, 128, 256, 512)
BLOCKS = {18: (2, 2, 2, 2), 101: (3, 4, 23, 3)}
BOTTLENECK = {18: False, 101: True}


class Residual(nn.Module):
    """A branch and a shortcut, which is a 1 x 1 convolution where the shape changes."""

    def __init__(self, branch: nn.Module, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        same = inputs == outputs and stride == 1
        self.branch = branch
        self.shortcut = (
            nn.Identity()
            if same
            else nn.Sequential(conv1(inputs, outputs, stride), nn.BatchNorm2d(outputs))
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.branch(x) + self.shortcut(x))


def basic(inputs: int, width: int, stride: int) -> Residual:
    branch = nn.Sequential(
        conv3(inputs, width, stride), *norm_relu(width), conv3(width, width), nn.BatchNorm2d(width)
    )
    return Residual(branch, inputs, width, stride)


def bottleneck(inputs: int, width: int, stride: int) -> Residual:
    outputs = 4 * width
    branch = nn.Sequential(
        conv1(inputs, width), *norm_relu(width),
        conv3(width, width, stride), *norm_relu(width),
        conv1(width, outputs), nn.BatchNorm2d(outputs),
    )  # fmt: skip
    return Residual(branch, inputs, outputs, stride)


def resnet(depth: int, *, classes: int, channels: int, dropout: float) -> nn.Module:
    """Depths 18 and 101, with the 7 x 7 stem of the paper."""
    if depth not in BLOCKS:
        raise ValueError(f"ResNet-{depth} is not defined here; there are {sorted(BLOCKS)}.")
    block, growth = (bottleneck, 4) if BOTTLENECK[depth] else (basic, 1)
    stem = (
        nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False),
        *norm_relu(64),
        nn.MaxPool2d(3, 2, 1),
    )
    blocks, inputs = [], 64
    for number, (width, count) in enumerate(zip(WIDTHS, BLOCKS[depth], strict=True)):
        for i in range(count):
            blocks.append(block(inputs, width, 2 if number > 0 and i == 0 else 1))
            inputs = width * growth
    return he_initialised(
        Classifier(nn.Sequential(*stem, *blocks, *pooled()), nn.Linear(inputs, classes), dropout)
    )
