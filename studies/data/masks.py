"""Grey images with two-class masks, for segmentation: one npz file, or a folder with images/ and
masks/.
"""

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from PIL import Image

from .dataset import Dataset
from .digits import digits
from .files import DataError

TEST_IMAGES = 5
CLASS_NAMES = ("membrane", "interior")
NPZ = "membrane_images.npz"
STEP = 16
SOURCE = (
    f"Segmentation: a file {NPZ} with arrays images and masks (n, height, width), or a folder with images/NAME.png "
    "and masks/NAME.png. The ISBI-2012 membrane images, 30 slices, are such a set."
)


@dataclass(frozen=True)
class MaskedImages:
    """Images and masks as uint8 (n, height, width); masks are 0 or 1."""

    images: np.ndarray
    masks: np.ndarray

    def __post_init__(self) -> None:
        if self.images.ndim != 3 or self.images.shape != self.masks.shape:
            raise DataError(
                f"images {self.images.shape} and masks {self.masks.shape} differ or are not 3-D. {SOURCE}"
            )
        if self.images.shape[1] % STEP or self.images.shape[2] % STEP:
            size = "images are {} x {}; a U-Net needs sides that are multiples".format(
                *self.images.shape[1:]
            )
            raise DataError(f"{size} of {STEP}: crop or scale them. {SOURCE}")
        if len(found := np.unique(self.masks)) > 2 or found.max(initial=0) > 1:
            raise DataError(
                f"masks hold the values {found[:5].tolist()}, expected 0 and 1. {SOURCE}"
            )


def membrane(root: Path) -> Dataset:
    """A segmentation task: the last five images for the test, the others for training and
    validation.
    """
    return segmentation("membrane", masked_images(root), CLASS_NAMES, keep_every=2)


def digit_masks(count: int = 30) -> Dataset:
    """Pages of 4 x 4 real digits with the ink as mask: a segmentation task that needs no download."""
    pages = (
        digits()
        .train_x[: count * 16]
        .reshape(count, 4, 4, 8, 8)
        .swapaxes(2, 3)
        .reshape(count, 32, 32)
    )
    return segmentation(
        "digit_masks", MaskedImages(pages, (pages > 127).astype(np.uint8)), ("paper", "ink")
    )


def segmentation(
    name: str, found: MaskedImages, class_names: tuple[str, ...], keep_every: int = 1
) -> Dataset:
    if len(found.images) <= TEST_IMAGES:
        raise DataError(
            f"{len(found.images)} images are too few; {TEST_IMAGES} are kept for the test. {SOURCE}"
        )
    x, y = found.images[:, None], found.masks
    cut = len(y) - TEST_IMAGES
    return Dataset(name, x[:cut], y[:cut], x[cut:], y[cut:], class_names, keep_every)


def masked_images(root: Path) -> MaskedImages:
    """The npz file where there is one, else the folder."""
    if not root.is_dir():
        raise DataError(f"data folder {str(root)!r} does not exist. {SOURCE}")
    for path in sorted((*root.glob(NPZ), *root.glob(f"*/{NPZ}"))):
        return read_npz(path)
    for folder in (root, *sorted(p for p in root.iterdir() if p.is_dir())):
        if (folder / "images").is_dir() and (folder / "masks").is_dir():
            return read_folder(folder)
    raise DataError(f"no {NPZ} and no images/ with masks/ in {str(root)!r}. {SOURCE}")


def read_npz(path: Path) -> MaskedImages:
    try:
        return parse_npz(path)
    except (BadZipFile, EOFError, OSError) as error:
        raise DataError(f"{path.name} is damaged or not an npz file ({error}). {SOURCE}") from error


def parse_npz(path: Path) -> MaskedImages:
    with np.load(path, allow_pickle=False) as file:
        missing = {"images", "masks"} - set(file.files)
        if missing:
            raise DataError(
                f"{path.name} has no array {sorted(missing)[0]!r}; it holds {sorted(file.files)}. {SOURCE}"
            )
        return MaskedImages(images=file["images"], masks=file["masks"])


def read_folder(folder: Path) -> MaskedImages:
    """Files of the same name in images/ and masks/; any mask value above 127 is class 1."""
    names = sorted(
        p.name
        for p in (folder / "images").iterdir()
        if p.suffix.lower() in (".png", ".tif", ".tiff")
    )
    lost = [name for name in names if not (folder / "masks" / name).exists()]
    if lost or not names:
        what = f"{lost[0]!r} has no mask" if lost else f"{folder.name}/images holds no png or tif"
        raise DataError(f"{what}. {SOURCE}")
    pictures = [grey(folder / "images" / name) for name in names]
    masks = [grey(folder / "masks" / name) > 127 for name in names]
    if len({p.shape for p in (*pictures, *masks)}) > 1:
        raise DataError(
            f"the images and masks are not all of one size; crop or scale them first. {SOURCE}"
        )
    return MaskedImages(images=np.stack(pictures), masks=np.stack(masks).astype(np.uint8))


def grey(path: Path) -> np.ndarray:
    try:
        return np.asarray(Image.open(path).convert("L"))
    except OSError as error:
        raise DataError(f"{path.name} cannot be read as a picture ({error}). {SOURCE}") from error
