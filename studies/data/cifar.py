"""CIFAR-10 and CIFAR-100 in the official binary format: the downloaded archive, or the folder
unpacked from it.
"""

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .cifar_names import CIFAR10_NAMES, CIFAR100_NAMES
from .dataset import Dataset
from .files import DataError, check

SIDE = 32
PIXELS = 3 * SIDE * SIDE


@dataclass(frozen=True)
class Edition:
    """One of the two official archives; `label_bytes` come before each image and the last of them
    is the class.
    """

    name: str
    archive: str
    md5: str
    folder: str
    train_files: tuple[str, ...]
    test_file: str
    label_bytes: int
    class_names: tuple[str, ...]

    @property
    def source(self) -> str:
        return f"{self.name}: put {self.archive} from www.cs.toronto.edu/~kriz/cifar.html into the data folder."


CIFAR10 = Edition(
    name="cifar10", archive="cifar-10-binary.tar.gz", md5="c32a1d4ab5d03f1284b67883e8d87530",
    folder="cifar-10-batches-bin", train_files=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    test_file="test_batch.bin", label_bytes=1, class_names=CIFAR10_NAMES,
)  # fmt: skip
CIFAR100 = Edition(
    name="cifar100", archive="cifar-100-binary.tar.gz", md5="03b5dce01913d631647c71ecec9e9cb8",
    folder="cifar-100-binary", train_files=("train.bin",), test_file="test.bin",
    label_bytes=2, class_names=CIFAR100_NAMES,
)  # fmt: skip


def cifar(root: Path, edition: Edition) -> Dataset:
    """50,000 training and 10,000 test images, 32 x 32, colour."""
    files = read_files(root, edition)
    parts = [
        parse(files[name], name, edition) for name in (*edition.train_files, edition.test_file)
    ]
    *train, (test_x, test_y) = parts
    return Dataset(
        name=edition.name,
        train_x=np.concatenate([x for x, _ in train]),
        train_y=np.concatenate([y for _, y in train]),
        test_x=test_x,
        test_y=test_y,
        class_names=edition.class_names,
    )


def is_there(root: Path, edition: Edition) -> bool:
    return (root / edition.archive).exists() or (root / edition.folder).is_dir()


def read_files(root: Path, edition: Edition) -> dict[str, bytes]:
    names = (*edition.train_files, edition.test_file)
    if (root / edition.folder).is_dir():
        return {name: read_member(root / edition.folder / name, edition) for name in names}
    if (root / edition.archive).exists():
        return read_archive(root / edition.archive, edition, names)
    raise DataError(
        f"neither {edition.archive} nor {edition.folder}/ is in {str(root)!r}. {edition.source}"
    )


def read_member(path: Path, edition: Edition) -> bytes:
    if not path.exists():
        raise DataError(f"{path.name} is missing in {edition.folder}/. {edition.source}")
    return path.read_bytes()


def read_archive(path: Path, edition: Edition, names: tuple[str, ...]) -> dict[str, bytes]:
    """From the archive in memory, after its checksum, so that nothing is unpacked to disk."""
    raw = path.read_bytes()
    check(hashlib.md5(raw).hexdigest(), edition.md5, path=path, source=edition.source)
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        return {name: archive.extractfile(f"{edition.folder}/{name}").read() for name in names}


def parse(data: bytes, name: str, edition: Edition) -> tuple[np.ndarray, np.ndarray]:
    row = edition.label_bytes + PIXELS
    if not data or len(data) % row:
        raise DataError(
            f"{name} holds {len(data):,} bytes, not a multiple of {row:,}: these are not 32 x 32 images. "
            f"{edition.source}"
        )
    rows = np.frombuffer(data, np.uint8).reshape(-1, row)
    images = rows[:, edition.label_bytes :].reshape(-1, 3, SIDE, SIDE)
    return images.copy(), rows[:, edition.label_bytes - 1].copy()
