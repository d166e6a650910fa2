"""From stored images to the batches that a network sees."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

IN_ORDER = 500  # images in a batch that is only looked at


@dataclass(frozen=True)
class Normaliser:
    """Per-channel mean and standard deviation of the training images."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, images: np.ndarray) -> "Normaliser":
        pixels = images.astype(np.float64) / 255
        axes = (0, 2, 3)
        return cls(mean=as_channel(pixels.mean(axes)), std=as_channel(pixels.std(axes)))

    def __call__(self, images: Tensor) -> Tensor:
        scaled = (images.float() / 255 - self.mean) / self.std
        return scaled.contiguous(memory_format=torch.channels_last)


def as_channel(values: np.ndarray) -> Tensor:
    return torch.tensor(values, dtype=torch.float32).view(1, -1, 1, 1)


def augmented(images: Tensor, labels: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Labels per pixel must move with the image, so segmentation only turns and mirrors."""
    if labels.ndim == 1:
        return shift_and_flip(images, generator), labels
    return turn_and_flip(images, labels, generator)


def shift_and_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """The standard augmentation: zero padding by an eighth (4 of 32 pixels), a random crop of the
    old size, a mirror image half of the time."""
    n, _, height, width = images.shape
    border = height // 8
    padded = torch.nn.functional.pad(images, (border,) * 4)
    down = torch.randint(2 * border + 1, (n, 1), generator=generator) + torch.arange(height)
    right = torch.randint(2 * border + 1, (n, 1), generator=generator) + torch.arange(width)
    flip = torch.rand(n, generator=generator) < 0.5
    right[flip] = right[flip].flip(1)
    sample = torch.arange(n)[:, None, None]
    return padded.permute(0, 2, 3, 1)[sample, down[:, :, None], right[:, None, :]].permute(
        0, 3, 1, 2
    )


def turn_and_flip(
    images: Tensor, labels: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """One of the eight symmetries of the square, the same for image and mask."""
    turns, flip = (
        torch.randint(4, (1,), generator=generator).item(),
        torch.rand(1, generator=generator) < 0.5,
    )
    images, labels = torch.rot90(images, turns, (2, 3)), torch.rot90(labels, turns, (1, 2))
    return (images.flip(3), labels.flip(2)) if flip else (images, labels)


def in_order(
    images: np.ndarray, labels: np.ndarray, normalise: Callable[[Tensor], Tensor]
) -> Iterator[tuple[Tensor, Tensor]]:
    """What a DataLoader gives."""
    parts = (torch.from_numpy(a).split(IN_ORDER) for a in (images, labels))
    for x, y in zip(*parts, strict=True):
        yield normalise(x), y.long()


def shuffled_rows(n: int, batch: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Row numbers of each training batch; a last batch of one is left out, batch norm cannot use
    it.
    """
    for rows in torch.randperm(n, generator=generator).split(batch):
        if len(rows) > 1:
            yield rows
