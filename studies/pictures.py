"""The test images that our networks are surest of and wrong about: a few pictures, kept beside the
predictions.

`python -m studies pictures --data DIR` chooses them again; the pages read the file that it leaves.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .data import load
from .plans import runs_of
from .predictions import write
from .store import Store

COUNT = 10
FILE = "sure_and_wrong.npz"


@dataclass(frozen=True)
class Pictures:
    """Images as uint8 (n, 3, 32, 32), the class that was said, the label, and how sure the networks
    were.
    """

    images: np.ndarray
    said: list[str]
    label: list[str]
    confidence: np.ndarray
    rows: np.ndarray


def keep_pictures(data: Path, store: Store, scale: str = "cpu") -> Path:
    """Mean probability over all finished networks of `complexity`, which saw the same training
    images.
    """
    probs, labels = mean_probs(store, scale)
    wrong = np.flatnonzero(probs.argmax(1) != labels)
    rows = wrong[np.argsort(-probs[wrong].max(1), kind="stable")[:COUNT]]
    test_x = load("cifar10", data).test_x
    found = {
        "images": test_x[rows],
        "rows": rows,
        "said": probs[rows].argmax(1),
        "label": labels[rows],
    }
    path = store.root / "predictions" / FILE
    write({**found, "confidence": probs[rows].max(1)}, path)
    return path


def mean_probs(store: Store, scale: str) -> tuple[np.ndarray, np.ndarray]:
    runs = [run for run in runs_of(["complexity"], scale) if store.finished(run)]
    if not runs:
        raise ValueError(
            "no network of `complexity` is trained, so that none can be sure and wrong; train some first."
        )
    if store.elsewhere(runs):
        raise ValueError("the predictions are not here: `python -m studies fetch` brings them.")
    total: list[np.ndarray] = []
    for run in runs:
        with np.load(store.predictions(run.settings), allow_pickle=False) as file:
            z, labels = file["test_logits"].astype(np.float64), file["test_labels"]
        e = np.exp(z - z.max(1, keepdims=True))
        total.append(e / e.sum(1, keepdims=True))
    return np.mean(total, 0), labels


def kept_pictures(store: Store) -> Pictures | None:
    """None where they were not chosen yet."""
    from .data.cifar_names import CIFAR10_NAMES

    path = store.root / "predictions" / FILE
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        names = {key: [CIFAR10_NAMES[i] for i in file[key]] for key in ("said", "label")}
        return Pictures(
            file["images"], names["said"], names["label"], file["confidence"], file["rows"]
        )
