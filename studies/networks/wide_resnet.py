"""Wide residual networks (Zagoruyko & Komodakis 2016): 6n+4 layers, widths 16k, 32k, 64k, norm
before convolution.
"""

from torch import Tensor, nn

from .classifier import Classifier, conv1, conv3, he_initialised, norm_relu, pooled


class Block(nn.Module):
    """Pre-activation block; where the shape changes the shortcut starts after the first activation."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.start = nn.Sequential(*norm_relu(inputs))
        self.branch = nn.Sequential(
            conv3(inputs, outputs, stride), *norm_relu(outputs), conv3(outputs, outputs)
        )
        self.shortcut = None if inputs == outputs else conv1(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        active = self.start(x)
        return self.branch(active) + (x if self.shortcut is None else self.shortcut(active))


def wide_resnet(
    depth: int, factor: int, *, classes: int, channels: int, dropout: float
) -> nn.Module:
    """WRN-depth-factor, for example WRN-28-10."""
    if depth < 10 or (depth - 4) % 6:
        raise ValueError(f"a WideResNet has 6n+4 layers (10, 16, 28, 40, …), not {depth}.")
    inputs, blocks = 16, []
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for i in range((depth - 4) // 6):
            blocks.append(Block(inputs, width * factor, stride if i == 0 else 1))
            inputs = width * factor
    features = nn.Sequential(conv3(channels, 16), *blocks, *norm_relu(inputs), *pooled())
    return he_initialised(Classifier(features, nn.Linear(inputs, classes), dropout))
