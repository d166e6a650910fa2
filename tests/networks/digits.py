"""A small convolutional network, trained in seconds on real handwritten digits."""

from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

PARTS = {"train": slice(0, 300), "val": slice(300, 900), "test": slice(900, 1797)}


def sets() -> dict[str, TensorDataset]:
    """1,797 digits of 8 x 8 pixels in an order of their own."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    x = torch.tensor(digits.images[order] / 16, dtype=torch.float32)[:, None]
    y = torch.tensor(digits.target[order])
    return {name: TensorDataset(x[rows], y[rows]) for name, rows in PARTS.items()}


def build(seed: int = 0) -> torch.nn.Module:
    """Convolution, batch norm, dropout before the last layer: the shape of Laves' networks."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, padding=1),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(inplace=True),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 16, 32),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(32, 10),
        )


def fit(
    model: torch.nn.Module,
    data: TensorDataset,
    loss: Callable = F.cross_entropy,
    epochs: int = 12,
    seed: int = 0,
):
    """A few epochs of Adam; the random state outside is untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(epochs):
            for x, y in DataLoader(data, batch_size=50, shuffle=True):
                optimiser.zero_grad()
                loss(model.train()(x), y).backward()
                optimiser.step()
    return model
