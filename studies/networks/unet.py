"""U-Net (Ronneberger et al. 2015) with padded convolutions and a free width."""

import torch
from torch import Tensor, nn

from .classifier import he_initialised, norm_relu

LEVELS = 5


class UNet(nn.Module):
    """Down four times, up four times; each step up sees the features of the same size on the way
    down.
    """

    def __init__(self, width: int, *, classes: int, channels: int) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(LEVELS)]
        self.down = nn.ModuleList(
            double(i, o) for i, o in zip([channels, *widths], widths, strict=False)
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, stride=2) for i, o in pairs)
        self.up = nn.ModuleList(double(i, o) for i, o in pairs)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level, step in enumerate(self.down):
            x = step(self.pool(x) if level else x)
            skips.append(x)
        for widen, step, skip in zip(self.widen, self.up, skips[-2::-1], strict=True):
            x = step(torch.cat([skip, widen(x)], 1))
        return self.last(x)


def double(inputs: int, outputs: int) -> nn.Module:
    """Two convolutions; batch norm was not in the paper but is standard practice since."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), *norm_relu(outputs),
        nn.Conv2d(outputs, outputs, 3, padding=1), *norm_relu(outputs),
    )  # fmt: skip


def unet(width: int, *, classes: int, channels: int) -> nn.Module:
    """Width 64 is the paper's; image sides must be multiples of 16."""
    return he_initialised(UNet(width, classes=classes, channels=channels))
