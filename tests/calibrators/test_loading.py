"""A process that applies a saved calibrator loads that calibrator, and nothing that fits."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.calibrators import (
    Isotonic,
    MatrixScaling,
    Platt,
    StructuredScaling,
    Temperature,
)

SAVED = [
    Temperature(2.0),
    MatrixScaling(weight=np.eye(3), intercept=np.zeros(3)),
    StructuredScaling(weight=np.zeros(3), intercept=np.zeros(3), temperature=1.0, samples=9),
    Platt(slope=np.ones(3), intercept=np.zeros(3)),
    Isotonic(x=np.linspace(0, 1, 3), y=np.linspace(0, 1, 3), start=np.arange(4)),
]
FITTING = ("choice", "descent", "linear_fit", "softmax_fit")
APPLY = """
import sys
import howsure as hs
calibrator = hs.load(sys.argv[1])
calibrator(hs.Predictions.from_probs([[0.5, 0.3, 0.2]], [0]))
print(*sys.modules)
"""


@pytest.mark.parametrize("calibrator", SAVED, ids=lambda c: type(c).__name__)
def test_applying_a_saved_calibrator_imports_no_fit(calibrator: object, tmp_path: Path) -> None:
    path = tmp_path / "calibrator.json"
    hs.save(calibrator, path)
    run = [sys.executable, "-c", APPLY, str(path)]
    loaded = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    fitting = {f"howsure.calibrators.{name}" for name in FITTING} | {"scipy.optimize"}
    assert not fitting & set(loaded)
