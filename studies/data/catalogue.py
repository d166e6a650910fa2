"""From the name in a run's settings to its images."""

from functools import cache
from pathlib import Path

from .cifar import CIFAR10, CIFAR100, cifar, is_there
from .cifar_png import SOURCE as PNG_SOURCE
from .cifar_png import cifar10_png
from .cifar_png import is_there as png_is_there
from .dataset import Dataset
from .digits import digits
from .fashion_mnist import fashion_mnist
from .files import DataError
from .masks import digit_masks, membrane
from .nuclei import nuclei

NAMES = ("digits", "fashion_mnist", "cifar10", "cifar100", "digit_masks", "membrane", "nuclei")


@cache
def load(name: str, root: Path) -> Dataset:
    """One of NAMES; read once per process."""
    match name:
        case "digits":
            return digits()
        case "fashion_mnist":
            return fashion_mnist(root)
        case "cifar10":
            return cifar10(root)
        case "cifar100":
            return cifar(root, CIFAR100)
        case "digit_masks":
            return digit_masks()
        case "membrane":
            return membrane(root)
        case "nuclei":
            return nuclei(root)
    raise DataError(f"data set {name!r} is unknown; there are {', '.join(NAMES)}.")


def cifar10(root: Path) -> Dataset:
    """The official files where they are, else the PNG edition."""
    if is_there(root, CIFAR10):
        return cifar(root, CIFAR10)
    if png_is_there(root):
        return cifar10_png(root)
    raise DataError(f"CIFAR-10 is not in {str(root)!r}. {CIFAR10.source} {PNG_SOURCE}")
