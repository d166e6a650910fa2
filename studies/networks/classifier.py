"""The last part that all classifiers share, and the words they are built from."""

import torch
from torch import nn


class Classifier(nn.Module):
    """Features, dropout, last layer: the shape that lets MC dropout run the features only once."""

    def __init__(self, features: nn.Module, last: nn.Linear, dropout: float) -> None:
        super().__init__()
        self.features = features
        self.dropout = nn.Dropout(dropout)
        self.last = last

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.last(self.dropout(self.features(images)))


def conv3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


def conv1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)


def norm_relu(channels: int) -> tuple[nn.Module, nn.Module]:
    return nn.BatchNorm2d(channels), nn.ReLU(inplace=True)


def pooled() -> tuple[nn.Module, nn.Module]:
    """Mean over the whole image."""
    return nn.AdaptiveAvgPool2d(1), nn.Flatten()


def he_initialised(network: nn.Module) -> nn.Module:
    """Normal weights of variance 2 / fan-out for the convolutions (He 2015); the rest as PyTorch
    does.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network
