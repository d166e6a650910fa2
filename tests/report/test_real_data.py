"""Every set of real predictions: read as a file, evaluated, and right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.real_sets import SETS

import howsure as hs

NAMES = {
    "accuracy": "accuracy",
    "ece15": "ece",
    "mce15": "mce",
    "nll": "nll",
    "brier": "brier",
    "auroc_err": "auroc",
}
TOLERANCE = {
    "auroc": 5e-5
}  # the index ranks by 1 − p of renormalised rows, which merges a few near ties


def test_images_are_not_predictions(shared: Path) -> None:
    with pytest.raises(hs.InputError, match="no logits, probs or confidence"):
        hs.read(shared / "data" / "membrane_images.npz")


@pytest.mark.parametrize("name", SETS)
def test_evaluate(name: str, shared: Path, index: dict[str, Any]) -> None:
    known = index[name].get("recomputed_test") or {}
    report = hs.evaluate(hs.read(shared / "data" / f"{name}.npz", split="test"))
    assert report["accuracy"] is not None
    for theirs, ours in NAMES.items():
        if known.get(theirs) is not None:
            assert report[ours] == pytest.approx(known[theirs], abs=TOLERANCE.get(ours, 2e-6)), ours
