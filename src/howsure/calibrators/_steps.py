"""Calibrators as a few operators on the logits, for whatever runs a network."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from howsure._core.check import Floats, InputError
from howsure.calibrators.identity import Identity
from howsure.calibrators.linear import MatrixScaling, VectorScaling
from howsure.calibrators.temperature import Temperature

Step: TypeAlias = tuple[Literal["Div", "Mul", "MatMul", "Add"], Floats]


def steps(calibrator: object, where: str) -> list[Step]:
    """Operators, by their ONNX names, with one constant each; a softmax follows them. `where` is
    for the error.
    """
    if isinstance(calibrator, Identity):
        return []
    if isinstance(calibrator, Temperature):
        return [("Div", np.asarray(calibrator.temperature))]
    if isinstance(calibrator, VectorScaling):
        return [("Mul", calibrator.weight), ("Add", calibrator.intercept)]
    if isinstance(calibrator, MatrixScaling):
        return [
            ("MatMul", np.ascontiguousarray(calibrator.weight.T)),
            ("Add", calibrator.intercept),
        ]
    raise InputError(
        f"{type(calibrator).__name__} cannot be put into {where}; "
        "Temperature, VectorScaling, MatrixScaling and Identity can."
    )
