"""The 1,797 handwritten digits that come with scikit-learn: real data that needs no download."""

import numpy as np

from .dataset import Dataset

TEST_SIZE = 597


def digits() -> Dataset:
    """1,200 training and 597 test images, 8 x 8, grey; sixteen levels stretched over a byte."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = (found.images * (255 / 16)).round().astype(np.uint8)[:, None]
    labels = found.target.astype(np.uint8)
    cut = len(labels) - TEST_SIZE
    names = tuple(str(d) for d in range(10))
    return Dataset("digits", images[:cut], labels[:cut], images[cut:], labels[cut:], names)
