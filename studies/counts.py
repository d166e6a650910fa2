"""Counts of every network's answers by confidence: what is kept of all the predictions, in a
hundredth of their room. Accuracy, reliability diagrams and the errors of 10 or 15 equal bins follow
from them exactly; what needs the images one by one does not.
"""

from functools import cache
from pathlib import Path

import numpy as np

import howsure as hs

from .manifest import read_manifest
from .predictions import write
from .store import Store

FILE = "counts.npz"
LEVELS = 300  # a multiple of 10 and of 15, the numbers of bins in the papers


def keep_counts(store: Store) -> None:
    """Of every file of the manifest that has test logits."""
    found: dict[str, np.ndarray] = {}
    for name in sorted(read_manifest(store.root).files):
        preds = read_test(store.root / "predictions" / name)
        if preds is not None:
            found[name.removesuffix(".npz")] = count_levels(preds.confidence, preds.correct)
    if found:
        names, counts = np.array(list(found)), np.stack(list(found.values()))
        write({"names": names, "counts": counts}, store.root / "kept" / FILE)


def read_test(path: Path) -> hs.Predictions | None:
    """One answer for each image or pixel; None where the file has no answers of one pass."""
    with np.load(path, allow_pickle=False) as file:
        names = set(file.files)
        if "mc_test_logits" in names or not names & {"test_logits", "test_logit_difference"}:
            return None
        labels = file["test_labels"].ravel()
        if "test_logits" not in names:
            return hs.Predictions.from_logits(file["test_logit_difference"].ravel(), labels)
        by_class = np.moveaxis(file["test_logits"], 1, -1)
        return hs.Predictions.from_logits(by_class.reshape(len(labels), -1), labels)


def count_levels(confidence: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Images, right answers and the sum of confidences of each level; levels are closed above."""
    level = np.clip(np.ceil(confidence * LEVELS).astype(int) - 1, 0, LEVELS - 1)
    columns = (None, correct, confidence)
    return np.stack([np.bincount(level, weights=c, minlength=LEVELS) for c in columns], axis=1)


@cache
def read_counts(root: Path) -> dict[str, np.ndarray]:
    """By the name of the file, without its ending."""
    with np.load(root / "kept" / FILE) as file:
        return dict(zip(file["names"].tolist(), file["counts"], strict=True))


def ece_of_counts(counts: np.ndarray, bins: int) -> float:
    merged = counts.reshape(bins, -1, 3).sum(1)
    return float(np.abs(merged[:, 2] - merged[:, 1]).sum() / merged[:, 0].sum())
