"""The network behind docs/imaging.md, trained on four made-up images: the file it leaves reads as
masks of images.
"""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")
hs = pytest.importorskip("howsure")

from studies.data import load  # noqa: E402

from studies import scans  # noqa: E402


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Eight images with a bright square each, six to learn from, in the file that the data set is
    made of.
    """
    rng, where = np.random.default_rng(4), np.zeros((8, 128, 128), bool)
    for image, (row, column) in zip(where, rng.integers(0, 96, (8, 2)), strict=True):
        image[row : row + 32, column : column + 32] = True
    pictures = np.where(where, 200, 40).astype(np.uint8) + rng.integers(0, 20, where.shape).astype(
        np.uint8
    )
    np.savez(
        tmp_path / "dsb2018_nuclei_128.npz", images=pictures, masks=where, split=[0] * 6 + [2] * 2
    )
    tiny = replace(scans.SETTINGS, network="unet-2", train_size=4, val_size=2, epochs=1)
    monkeypatch.setattr(scans, "SETTINGS", tiny)
    return tmp_path


def test_the_file_reads_as_images_with_their_masks(images):
    path = scans.scans(images, images / "out")
    val = hs.read(path, split="val")
    assert (val.values.shape, list(val.class_names)) == (
        (2 * 32 * 32, 2),
        ["background", "nucleus"],
    )
    with np.load(path) as found:
        assert found["val_logits"].shape == (2, 2, 32, 32)
        assert not found["val_logits"][:, 0].any()
        truth = load("nuclei", images).test_y[:, ::4, ::4]
        assert np.array_equal(found["test_labels"], truth)


def test_the_difference_of_two_logits_keeps_the_softmax():
    logits = np.random.default_rng(1).normal(size=(3, 2, 8, 8)) * 4
    kept = scans.thinned(logits).astype(float)
    whole = (logits[:, 1] - logits[:, 0])[:, ::4, ::4]
    assert not kept[:, 0].any()
    assert np.allclose(kept[:, 1], whole, rtol=2**-6, atol=0)
