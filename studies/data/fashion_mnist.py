"""Fashion-MNIST in its original idx files."""

from pathlib import Path

import numpy as np

from .dataset import Dataset
from .files import DataError, content, find

SOURCE = (
    "Fashion-MNIST: 'apt-get install dataset-fashion-mnist' (then --data /usr/share/datasets), "
    "or the four idx files from github.com/zalandoresearch/fashion-mnist."
)
CLASS_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
SHA256 = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
UNSIGNED_BYTE = 8


def fashion_mnist(root: Path) -> Dataset:
    """60,000 training and 10,000 test images, 28 x 28, grey."""
    part = {name: parse_idx(read(root, name), name) for name in SHA256}
    return Dataset(
        name="fashion_mnist",
        train_x=part["train-images-idx3-ubyte"][:, None],
        train_y=part["train-labels-idx1-ubyte"],
        test_x=part["t10k-images-idx3-ubyte"][:, None],
        test_y=part["t10k-labels-idx1-ubyte"],
        class_names=CLASS_NAMES,
    )


def read(root: Path, name: str) -> bytes:
    return content(find(root, name, source=SOURCE), source=SOURCE, sha256=SHA256[name])


def parse_idx(data: bytes, name: str) -> np.ndarray:
    """An idx file: two zero bytes, the type, the number of axes, their big-endian lengths, then the
    bytes.
    """
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != UNSIGNED_BYTE:
        raise DataError(f"{name} is not an idx file of unsigned bytes. {SOURCE}")
    axes = data[3]
    shape = tuple(int(s) for s in np.frombuffer(data, ">u4", count=axes, offset=4))
    if len(data) != 4 + 4 * axes + int(np.prod(shape)):
        raise DataError(f"{name} announces {shape} but holds {len(data):,} bytes. {SOURCE}")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()
