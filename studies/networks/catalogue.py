"""From a name in a run list to a network."""

import re

from torch import nn

from .cifar_resnet import cifar_resnet
from .cnn import cnn
from .densenet import densenet, wide_input_densenet
from .resnet import resnet
from .unet import unet
from .wide_resnet import wide_resnet

FORMS = "cnn, resnet-20, resnet-18, densenet-40, densenet-bc-100, densenet-121, wrn-16-2, unet-16"
WIDE_INPUT = {"resnet-18", "resnet-101", "densenet-121", "densenet-169"}


def build(
    name: str, *, classes: int, channels: int, dropout: float = 0.0, block_dropout: float = 0.0
) -> nn.Module:
    """A network by its name: `resnet-20`, `densenet-22`, `densenet-bc-100`, `wrn-28-10`, `unet-16`,
    `cnn`. Dropout inside every block is known for the CIFAR residual networks."""
    if block_dropout and (not name.startswith("resnet-") or name in WIDE_INPUT):
        raise ValueError(
            f"dropout inside the blocks is made for CIFAR ResNets such as resnet-14, not for {name}."
        )
    match = re.fullmatch(r"(cnn|resnet|densenet-bc|densenet|wrn|unet)((?:-\d+)*)", name)
    kind, sizes = (match[1], [int(s) for s in match[2].split("-")[1:]]) if match else ("", [])
    options = {"classes": classes, "channels": channels, "dropout": dropout}
    match kind, sizes:
        case "cnn", []:
            return cnn(**options)
        case "resnet", [depth]:
            if name in WIDE_INPUT:
                return resnet(depth, **options)
            return cifar_resnet(depth, block_dropout=block_dropout, **options)
        case "densenet", [depth]:
            return (wide_input_densenet if name in WIDE_INPUT else densenet)(depth, **options)
        case "densenet-bc", [depth]:
            return densenet(depth, bc=True, **options)
        case "wrn", [depth, factor]:
            return wide_resnet(depth, factor, **options)
        case "unet", [width]:
            return unet(width, classes=classes, channels=channels)
    raise ValueError(f"network {name!r} is unknown; names look like {FORMS}.")
