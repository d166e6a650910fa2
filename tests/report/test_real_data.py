"""Every set of real predictions: read as a file, evaluated, and right."""

from __future__ import annotations

from typing import Any

import pytest

import howsure as hs
from conftest import SHARED, shared_or_skip

SETS = sorted(p.stem for p in (SHARED / "data").glob("*.npz")) or ["none"]
NAMES = {"accuracy": "accuracy", "ece15": "ece", "mce15": "mce", "nll": "nll", "brier": "brier", "auroc_err": "auroc"}
TOLERANCE = {"auroc": 5e-5}  # the index ranks by 1 − p of renormalised rows, which merges a few near ties


@pytest.mark.parametrize("name", SETS)
def test_evaluate(name: str, index: dict[str, Any]) -> None:
    path = shared_or_skip(f"data/{name}.npz")
    if name == "membrane_images":  # images to train on, not predictions
        with pytest.raises(hs.InputError, match="no logits, probs or confidence"):
            hs.read(path)
        return
    known = index[name].get("recomputed_test") or {}
    report = hs.evaluate(hs.read(path, split="test"))
    assert report["accuracy"] is not None
    for theirs, ours in NAMES.items():
        if known.get(theirs) is not None:
            assert report[ours] == pytest.approx(known[theirs], abs=TOLERANCE.get(ours, 2e-6)), ours
