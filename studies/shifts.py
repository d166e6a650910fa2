"""Test images as they come back from the field: blurred, darkened and noised, in five strengths
each.
"""

import numpy as np
import torch
import torch.nn.functional as F

BLUR = (0.4, 0.6, 0.8, 1.1, 1.5)  # standard deviation of the Gaussian, in pixels
DARK = (0.8, 0.6, 0.45, 0.3, 0.2)  # share of the light that is left
NOISE = (4, 8, 14, 22, 32)  # standard deviation of the noise, in grey levels of 256
STRENGTHS = {"blur": BLUR, "dark": DARK, "noise": NOISE}
NAMES = tuple(f"{kind}_{level}" for kind in STRENGTHS for level in range(1, 6))
SEED = 2020
REACH = 5  # pixels of the blur on each side


def shifted(images: np.ndarray, name: str) -> np.ndarray:
    """The images under one of NAMES, rounded to whole grey levels as a camera would."""
    kind, level = name.split("_")
    strength = STRENGTHS[kind][int(level) - 1]
    return whole(CHANGES[kind](images.astype(np.float32), strength))


def whole(pixels: np.ndarray) -> np.ndarray:
    return np.rint(pixels).clip(0, 255).astype(np.uint8)


def blurred(images: np.ndarray, sigma: float) -> np.ndarray:
    """A Gaussian in both directions; beyond the border the picture is mirrored."""
    line = torch.exp(-0.5 * (torch.arange(-REACH, REACH + 1) / sigma) ** 2)
    line = (line / line.sum()).view(1, 1, -1)
    x = torch.from_numpy(images).flatten(0, 1)[:, None]
    x = F.conv2d(F.pad(x, (REACH, REACH, REACH, REACH), mode="reflect"), line[:, :, None])
    return F.conv2d(x, line[..., None])[:, 0].view(images.shape).numpy()


def darkened(images: np.ndarray, share: float) -> np.ndarray:
    return images * share


def noised(images: np.ndarray, sigma: float) -> np.ndarray:
    """Normal noise, every pixel and channel on its own, the same at each call."""
    return images + np.random.default_rng(SEED).normal(0, sigma, images.shape).astype(np.float32)


CHANGES = {"blur": blurred, "dark": darkened, "noise": noised}
