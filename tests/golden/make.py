"""Writes report.json, the stored report from which the renderers are tested: `python tests/golden/make.py`."""

from pathlib import Path

import numpy as np

from howsure.predictions import Predictions
from howsure.report import evaluate

HERE = Path(__file__).parent


def predictions() -> Predictions:
    """1,200 answers of an over-confident classifier of six animals, with ids."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 1200)
    logits = 5.0 * np.eye(6)[labels] + 2.6 * rng.standard_normal((1200, 6))
    names = ["ant", "bee", "cat", "dog", "eel & fox", "gnu"]
    return Predictions.from_logits(logits, labels, class_names=names, ids=[f"image-{i:04d}" for i in range(1200)])


if __name__ == "__main__":
    report = evaluate(predictions(), ["max_prob", "energy"])
    report.data["provenance"].update(versions={"python": "3", "numpy": "2"}, command="howsure evaluate animals.npz")
    report.data["provenance"]["inputs"] = [{"file": "animals.npz", "sha256": "0" * 64}]
    report.to_json(HERE / "report.json")
