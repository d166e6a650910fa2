"""Prediction files: what a finished run leaves, and all that the tables read."""

import os
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
from torch import nn

from .settings import Settings
from .training import Task, logits_of

THINNED_VAL = 44  # validation images of a segmentation that is kept thinned


def write(arrays: dict[str, np.ndarray], path: Path) -> None:
    """An npz file, through a temporary file, so that a kill never leaves half of one; equal arrays
    give equal bytes. Logits are deflated, as howsure reads them; what only the studies read is
    packed by bzip2, a fifth smaller."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    packing = ZIP_DEFLATED if any(name.endswith("logits") for name in arrays) else ZIP_BZIP2
    with ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            info = ZipInfo(f"{name}.npy")
            info.compress_type = packing
            with archive.open(info, "w") as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    os.replace(partial, path)


def split_arrays(network: nn.Module, task: Task) -> dict[str, np.ndarray]:
    """Outputs and labels of validation and test images: always the same ones, in one order."""
    data, rows = (
        task.dataset,
        task.split.val[: THINNED_VAL if task.dataset.keep_every > 1 else None],
    )
    val = logits_of(network, data.train_x[rows], task.normalise).numpy()
    test = logits_of(network, data.test_x, task.normalise).numpy()
    return {
        "class_names": np.array(data.class_names),
        **outputs("val", val, data.train_y[rows], data.keep_every),
        **outputs("test", test, data.test_y, data.keep_every),
    }


def outputs(
    split: str, logits: np.ndarray, labels: np.ndarray, every: int
) -> dict[str, np.ndarray]:
    """Logits; of a two-class segmentation only their difference, which is all that the softmax
    sees.
    """
    if labels.ndim == 1:
        return {f"{split}_labels": labels, f"{split}_logits": logits.astype(np.float16)}
    difference = (logits[:, 1] - logits[:, 0]).astype(np.float16)
    if every > 1:
        labels, difference = labels[:, ::every, ::every], rounded(difference[:, ::every, ::every])
    return {f"{split}_labels": labels, f"{split}_logit_difference": difference}


def rounded(values: np.ndarray) -> np.ndarray:
    """float16 with six binary digits instead of eleven, a relative error of at most 1/64: half the
    bytes.
    """
    bits = np.ascontiguousarray(values).view(np.uint16).astype(np.uint32)
    return ((bits + 0x10) & 0xFFE0).astype(np.uint16).view(np.float16)


def record(settings: Settings, history: list[dict[str, float]]) -> dict[str, np.ndarray]:
    """How the run was made: its settings as JSON, and one array per column of the history."""
    columns = {
        f"history_{key}": np.array([row[key] for row in history], np.float32) for key in history[0]
    }
    return {"settings": np.array(settings.to_json()), **columns}
