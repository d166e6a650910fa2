"""Predictions of fully trained networks that others published; they are not part of the repository.

They are looked for in `data/` of the folder named by HOWSURE_SHARED, by default `shared` beside the
repository.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np

import howsure as hs

SHARED = Path(__file__).resolve().parents[2] / "shared"
NAMES = {
    "nn_resnet110_c10": "ResNet-110, CIFAR-10 (NN_calibration)",
    "nn_resnet110_c100_top": "ResNet-110, CIFAR-100 (NN_calibration)",
    "netcal_wideresnet_16_4_c10": "WideResNet-16-4, CIFAR-10 (netcal)",
    "netcal_densenet_bc_100_c100": "DenseNet-BC-100, CIFAR-100 (netcal)",
    "ak_resnet20_c10": "ResNet-20, CIFAR-10 (pytorch_resnet_cifar10)",
    "ak_resnet32_c10": "ResNet-32, CIFAR-10 (pytorch_resnet_cifar10)",
    "in1k_tv_resnext101_32x8d": "ResNeXt-101, ImageNet-1K (torchvision)",
    "in1k_timm_efficientnet_b3a": "EfficientNet-B3a, ImageNet-1K (timm)",
}
TEN = ("nn_resnet110_c10", "netcal_wideresnet_16_4_c10", "ak_resnet20_c10", "ak_resnet32_c10")
HUNDRED = ("nn_resnet110_c100_top", "netcal_densenet_bc_100_c100")
# Millions of parameters; the first six lie in a folder of their own.
IMAGENET = {
    "timm_mobilenetv3_large_100": 5.5,
    "timm_efficientnet_b1": 7.8,
    "timm_densenetblur121d": 8.0,
    "timm_resnet34": 21.8,
    "tv_densenet161": 28.7,
    "tv_resnet101": 44.5,
    "in1k_timm_efficientnet_b3a": 12.2,
    "in1k_tv_resnext101_32x8d": 88.8,
}
NOTE = (
    "CIFAR-100 and ImageNet images could not be had, so that nothing was trained on 100 classes or more. What is said "
    "about them, and about fully trained networks, rests on predictions that others published:"
)


def folder() -> Path:
    return Path(os.environ.get("HOWSURE_SHARED", SHARED)) / "data"


def weights_folder() -> Path:
    return Path(os.environ.get("HOWSURE_SHARED", SHARED)) / "weights"


def here(*names: str) -> bool:
    return all((folder() / f"{name}.npz").exists() for name in names)


@cache
def provided(name: str, split: str = "test") -> hs.Predictions:
    return hs.read(folder() / f"{name}.npz", split=split, renormalise=True)


@cache
def calibrated(name: str) -> tuple[hs.Predictions, str]:
    """Test predictions with the temperature fitted on validation; as published where only the top
    label is known.
    """
    if provided(name).kind == "confidence":
        return provided(name), "as published"
    return hs.calibrators.Temperature.fit(provided(name, "val"))(provided(name)), "after scaling"


def note() -> str:
    """What a reader must know about these sets, and which were not at hand when the page was made."""
    names = [text if here(name) else f"{text}: not at hand" for name, text in NAMES.items()]
    return f"{NOTE} {'; '.join(names)}."


@cache
def imagenet_sets() -> dict[str, hs.Predictions]:
    """All 50,000 validation images of each network, as far as they are at hand."""
    shared = Path(os.environ.get("HOWSURE_SHARED", SHARED))
    found: dict[str, hs.Predictions] = {}
    for name in IMAGENET:
        folder = shared / ("data" if name.startswith("in1k") else "imagenet_models")
        path = folder / f"{name}.npz"
        if path.exists():
            with np.load(path) as file:
                parts = [[file[f"{s}_{k}"] for s in ("val", "test")] for k in ("conf", "correct")]
            found[name] = hs.Predictions.from_confidence(*map(np.concatenate, parts))
    return found
