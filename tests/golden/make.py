"""Writes report.json and comparison.json, from which the renderers are tested: `python
tests/golden/make.py`.
"""

from pathlib import Path
from typing import Any

import numpy as np

from howsure.predictions import Predictions
from howsure.report.comparing import Comparison, compare
from howsure.report.evaluation import evaluate

HERE = Path(__file__).parent


def predictions() -> Predictions:
    """1,200 answers of an overconfident classifier of six animals, with ids."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 1200)
    logits = 5.0 * np.eye(6)[labels] + 2.6 * rng.standard_normal((1200, 6))
    names = ["ant", "bee", "cat", "dog", "eel & fox", "gnu"]
    return Predictions.from_logits(
        logits, labels, class_names=names, ids=[f"image-{i:04d}" for i in range(1200)]
    )


def comparison() -> dict[str, Any]:
    """Two networks on the same 300 samples with costs, groups, a shifted set and one from outside."""
    rng = np.random.default_rng(1)
    labels, ids = rng.integers(0, 3, 300), np.arange(300)
    made = {
        name: Predictions.from_logits(
            signal * np.eye(3)[labels] + rng.standard_normal((300, 3)), labels, ids=ids
        )
        for name, signal in (("small", 2.0), ("large", 3.5))
    }
    fog = {
        "small": Predictions.from_logits(np.eye(3)[labels] + rng.standard_normal((300, 3)), labels)
    }
    noise = {"large": Predictions.from_logits(rng.standard_normal((80, 3)))}
    cost, site = {"small": 1e6, "large": 25e6}, np.where(ids % 3, "north", "south & east")
    settings: dict[str, Any] = {
        "by": site,
        "cost": cost,
        "cost_name": "parameters",
        "command": "howsure compare small.npz large.npz",
    }
    return compare(made, shifted={"fog": fog}, outside={"noise": noise}, **settings).data


def stored(origin: dict[str, Any]) -> None:
    """What differs between machines is replaced."""
    origin.update(versions={"python": "3", "numpy": "2"})
    origin["reading"] = "animals.npz"
    origin["inputs"] = [{"file": "animals.npz", "sha256": "0" * 64}]


if __name__ == "__main__":
    report = evaluate(predictions(), ["max_prob", "energy"], command="howsure evaluate animals.npz")
    stored(report.data["provenance"])
    report.to_json(HERE / "report.json")
    compared = comparison()
    for origin in compared["provenance"].values():
        stored(origin)
    Comparison(compared).to_json(HERE / "comparison.json")
