"""Densely connected networks (Huang et al. 2017): the CIFAR ones, plain and BC, and DenseNet-121
and -169.
"""

import torch
from torch import Tensor, nn

from .classifier import Classifier, conv1, conv3, he_initialised, norm_relu, pooled

GROWTH = 12
WIDE_BLOCKS = {121: (6, 12, 24, 16), 169: (6, 12, 32, 32)}
WIDE_GROWTH = 32


class Layer(nn.Module):
    """New features, concatenated to all earlier ones."""

    def __init__(self, inputs: int, growth: int, *, bottleneck: bool) -> None:
        super().__init__()
        inner = 4 * growth if bottleneck else inputs
        narrow = (*norm_relu(inputs), conv1(inputs, inner)) if bottleneck else ()
        self.branch = nn.Sequential(*narrow, *norm_relu(inner), conv3(inner, growth))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.branch(x)], 1)


def transition(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(*norm_relu(inputs), conv1(inputs, outputs), nn.AvgPool2d(2))


def dense_blocks(
    inputs: int, counts: tuple[int, ...], growth: int, *, bottleneck: bool, keep: float
) -> tuple[nn.Module, int]:
    """Blocks with transitions between them that keep a share of the channels; and the number of
    channels at the end.
    """
    parts: list[nn.Module] = []
    for number, count in enumerate(counts):
        if number:
            parts.append(transition(inputs, int(inputs * keep)))
            inputs = int(inputs * keep)
        for _ in range(count):
            parts.append(Layer(inputs, growth, bottleneck=bottleneck))
            inputs += growth
    return nn.Sequential(*parts, *norm_relu(inputs), *pooled()), inputs


def densenet(
    depth: int, *, bc: bool = False, classes: int, channels: int, dropout: float
) -> nn.Module:
    """The CIFAR networks of growth 12: three blocks; BC has bottlenecks and halves the channels in
    between.
    """
    per_layer = 2 if bc else 1
    if depth < 7 or (depth - 4) % (3 * per_layer):
        kind = "BC has 6n+4" if bc else "has 3n+4"
        raise ValueError(f"a DenseNet for CIFAR {kind} layers (10, 22, 40, 100, …), not {depth}.")
    width = 2 * GROWTH if bc else 16
    count = (depth - 4) // (3 * per_layer)
    body, outputs = dense_blocks(
        width, (count,) * 3, GROWTH, bottleneck=bc, keep=0.5 if bc else 1.0
    )
    features = nn.Sequential(conv3(channels, width), body)
    return he_initialised(Classifier(features, nn.Linear(outputs, classes), dropout))


def wide_input_densenet(depth: int, *, classes: int, channels: int, dropout: float) -> nn.Module:
    """DenseNet-121 and -169 of table 1, with the 7 x 7 stem."""
    if depth not in WIDE_BLOCKS:
        raise ValueError(f"DenseNet-{depth} is not defined here; there are {sorted(WIDE_BLOCKS)}.")
    stem = (
        nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False),
        *norm_relu(64),
        nn.MaxPool2d(3, 2, 1),
    )
    body, outputs = dense_blocks(64, WIDE_BLOCKS[depth], WIDE_GROWTH, bottleneck=True, keep=0.5)
    return he_initialised(
        Classifier(nn.Sequential(*stem, body), nn.Linear(outputs, classes), dropout)
    )
