"""A small convolutional network for 28 x 28 images: three convolutions and a hidden layer."""

from torch import nn

from .classifier import Classifier


def cnn(*, classes: int, channels: int, dropout: float) -> nn.Module:
    """Two poolings bring 28 x 28 down to 7 x 7; the last one makes other sizes 7 x 7 as well."""
    features = nn.Sequential(
        *convolution(channels, 32), nn.MaxPool2d(2),
        *convolution(32, 64), nn.MaxPool2d(2),
        *convolution(64, 64), nn.AdaptiveAvgPool2d(7),
        nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(),
    )  # fmt: skip
    return Classifier(features, nn.Linear(128, classes), dropout)


def convolution(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()
