"""Real data for real trainers: scikit-learn's digits as tensors."""

import torch
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset


def digits() -> tuple[TensorDataset, TensorDataset]:
    """1,200 images to train on and 597 to validate, each of 64 numbers in [0, 1]."""
    x, y = load_digits(return_X_y=True)
    data = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
    return TensorDataset(*(a[:1200] for a in data)), TensorDataset(*(a[1200:] for a in data))
