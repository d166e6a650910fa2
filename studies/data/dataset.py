"""The one shape in which every classification data set reaches the networks, and its fixed split."""

from dataclasses import dataclass

import numpy as np

from .files import DataError

SPLIT_SEED = 2020


@dataclass(frozen=True)
class Dataset:
    """Images as uint8 (n, channels, height, width); labels as uint8, (n,) or one per pixel (n,
    height, width).
    """

    name: str
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    class_names: tuple[str, ...]
    keep_every: int = 1  # of segmented images, only each so-manieth pixel in both directions goes to a prediction file

    def __post_init__(self) -> None:
        for x, y, part in (
            (self.train_x, self.train_y, "train"),
            (self.test_x, self.test_y, "test"),
        ):
            check_part(x, y, len(self.class_names), f"{self.name} {part}")

    @property
    def channels(self) -> int:
        return int(self.train_x.shape[1])

    @property
    def size(self) -> tuple[int, int]:
        return int(self.train_x.shape[2]), int(self.train_x.shape[3])

    @property
    def per_pixel(self) -> bool:
        return self.train_y.ndim == 3

    @property
    def classes(self) -> int:
        return len(self.class_names)


def check_part(x: np.ndarray, y: np.ndarray, classes: int, what: str) -> None:
    """Stop at images or labels that a network would silently accept in the wrong shape."""
    if x.ndim != 4 or x.dtype != np.uint8:
        raise DataError(
            f"{what}: images are {x.dtype} {x.shape}, expected uint8 (n, channels, height, width)."
        )
    if y.shape not in ((len(x),), (len(x), *x.shape[2:])):
        raise DataError(f"{what}: images of shape {x.shape} but labels of shape {y.shape}.")
    if y.size and int(y.max()) >= classes:
        row = int(np.unravel_index(np.argmax(y), y.shape)[0])
        raise DataError(f"{what}: label {y.max()} at row {row}, but there are {classes} classes.")


@dataclass(frozen=True)
class Split:
    """Rows of the training file used for training and for validation."""

    train: np.ndarray
    val: np.ndarray


def fixed_split(n: int, *, train: int, val: int) -> Split:
    """The same validation rows for every run, and nested training sets: a smaller one is part of a
    larger one.
    """
    if train + val > n:
        raise DataError(
            f"{train:,} training and {val:,} validation images asked for, but there are only {n:,}."
        )
    rows = np.random.default_rng(SPLIT_SEED).permutation(n)
    return Split(train=np.sort(rows[val : val + train]), val=np.sort(rows[:val]))
