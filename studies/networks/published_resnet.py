"""The ResNets for CIFAR-10 whose weights others published, with dropout that is switched on when
the network is asked and was off while it was trained, as Finlay & Oberman have it.
"""

from collections.abc import Mapping
from math import log

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .classifier import conv3

WIDTHS = (16, 32, 64)
# Of the images that these networks were trained on, as their source has it.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class LateDropout(nn.Module):
    """Sets each value to zero with probability `rate`, whether the network is in training or not.

    Cells are hit by a Poisson number of draws with replacement, of mean -log(1 - rate) in each:
    every cell is then dropped with probability `rate`, independently of the others, and a small
    rate costs little.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rate = 0.0
        self.generator = torch.Generator()

    def forward(self, x: Tensor) -> Tensor:
        if not self.rate:
            return x
        mean = torch.tensor(-log(1 - self.rate) * x.numel())
        hits = int(torch.poisson(mean, generator=self.generator))
        cells = torch.randint(x.numel(), (hits,), generator=self.generator)
        dropped = (x / (1 - self.rate)).contiguous(memory_format=torch.channels_last)
        dropped.permute(0, 2, 3, 1).view(-1)[cells] = 0
        return dropped


class PublishedBlock(nn.Module):
    """The block of He et al. 2016 with dropout at the authors' four places: before and after each
    convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: LateDropout) -> None:
        super().__init__()
        self.conv1, self.bn1 = conv3(inputs, outputs, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv3(outputs, outputs), nn.BatchNorm2d(outputs)
        self.extra, self.stride, self.dropout = outputs - inputs, stride, dropout

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x
        if self.extra:
            shortcut = x[:, :, :: self.stride, :: self.stride]
            shortcut = F.pad(shortcut, (0, 0, 0, 0, self.extra // 2, self.extra // 2))
        out = self.dropout(self.conv1(self.dropout(x)))
        out = torch.relu(self.bn1(out))
        out = self.dropout(self.conv2(self.dropout(out)))
        return torch.relu(self.bn2(out) + shortcut)


class PublishedResNet(nn.Module):
    """The parameters have the names of the published files."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        blocks = (depth - 2) // 6
        self.dropout = LateDropout()
        self.conv1, self.bn1 = conv3(3, WIDTHS[0]), nn.BatchNorm2d(WIDTHS[0])
        self.layer1 = self.make_stage(16, 16, blocks, 1)
        self.layer2 = self.make_stage(16, 32, blocks, 2)
        self.layer3 = self.make_stage(32, 64, blocks, 2)
        self.linear = nn.Linear(WIDTHS[-1], 10)

    def make_stage(self, inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
        first = PublishedBlock(inputs, outputs, stride, self.dropout)
        rest = [PublishedBlock(outputs, outputs, 1, self.dropout) for _ in range(blocks - 1)]
        return nn.Sequential(first, *rest)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


def load_published(depth: int, weights: Mapping[str, np.ndarray]) -> PublishedResNet:
    network = PublishedResNet(depth)
    state = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    # Counts of batches belong to training; the files do not have them.
    missing, unknown = network.load_state_dict(state, strict=False)
    lacking = [name for name in missing if not name.endswith("num_batches_tracked")]
    if lacking or unknown:
        raise ValueError(f"not the weights of ResNet-{depth}: lacks {lacking}, has {unknown}.")
    return network.eval()


def normalise(images: np.ndarray) -> Tensor:
    """Bytes to the inputs that these networks expect."""
    x = torch.from_numpy(images).float() / 255
    scaled = (x - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(DEVIATION).view(3, 1, 1)
    return scaled.contiguous(memory_format=torch.channels_last)
