"""Image sizes, known before any file is read, so that a plan can be printed without data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    channels: int
    height: int
    width: int
    classes: int


SIZES = {
    "digits": Size(1, 8, 8, 10),
    "fashion_mnist": Size(1, 28, 28, 10),
    "cifar10": Size(3, 32, 32, 10),
    "cifar100": Size(3, 32, 32, 100),
    "digit_masks": Size(1, 32, 32, 2),
    "membrane": Size(1, 256, 256, 2),
    "nuclei": Size(1, 128, 128, 2),
}
