"""Every set of real predictions is read as it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.real_sets import SETS

from howsure import read, scan
from howsure.formats import problems


def test_all_sets_are_listed(index: dict[str, Any]) -> None:
    assert sorted(index) == SETS


@pytest.mark.parametrize("name", SETS)
def test_real_set(name: str, shared: Path, arrays: Callable[[str], dict[str, Any]]) -> None:
    path, by_hand = shared / "data" / f"{name}.npz", arrays(name)
    preds = read(path, split="test")
    values = next(
        by_hand[f"test_{part}"] for part in ("logits", "probs", "conf") if f"test_{part}" in by_hand
    )
    if values.ndim == 4:
        values = np.moveaxis(values, 1, -1).reshape(-1, values.shape[1])
        assert sorted(set(preds.group.tolist())) == sorted(by_hand["test_image_ids"].tolist())
    assert np.array_equal(preds.values, values)
    if "test_labels" in by_hand:
        assert np.array_equal(preds.known_labels, by_hand["test_labels"].reshape(-1))
    if "test_correct" in by_hand:
        assert np.array_equal(preds.correct, by_hand["test_correct"].astype(bool))
    if "test_idx" in by_hand:
        assert np.array_equal(preds.ids, by_hand["test_idx"])
    parts = [part.values for part in scan(path, split="test", rows=3000)]
    assert np.array_equal(np.concatenate(parts), values)
    assert problems(path) == []


@pytest.mark.parametrize("name", ["mc_fashion_cnn", "seg_unet_membrane"])
def test_real_samples(name: str, shared: Path, arrays: Callable[[str], dict[str, Any]]) -> None:
    mc = arrays(name)["mc_test_logits"]
    preds = read(shared / "data" / f"{name}.npz", split="test", mc=True)
    by_hand = mc if mc.ndim == 3 else np.moveaxis(mc, 2, -1).reshape(len(mc), -1, mc.shape[2])
    assert np.array_equal(preds.values, by_hand)
