"""Predictions → better predictions: `X.fit(preds)` gives a frozen x, `x(preds)` applies it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Names are imported when first used: a policy that is loaded needs one calibrator only.
_WHERE = {
    "Beta": "logistic",
    "Calibrator": "calibrator",
    "Dirichlet": "linear",
    "Fitted": "calibrator",
    "HistogramBinning": "step_functions",
    "Identity": "calibrator",
    "Isotonic": "step_functions",
    "MatrixScaling": "linear",
    "PerLabel": "per_label",
    "Platt": "logistic",
    "SecondOpinion": "second_opinion",
    "StructuredScaling": "linear",
    "Temperature": "temperature",
    "VectorScaling": "linear",
    "attach_opinion": "second_opinion",
}

__all__ = [
    "Beta",
    "Calibrator",
    "Dirichlet",
    "Fitted",
    "HistogramBinning",
    "Identity",
    "Isotonic",
    "MatrixScaling",
    "PerLabel",
    "Platt",
    "SecondOpinion",
    "StructuredScaling",
    "Temperature",
    "VectorScaling",
    "attach_opinion",
]

if TYPE_CHECKING:
    from howsure.calibrators.calibrator import Calibrator, Fitted, Identity
    from howsure.calibrators.linear import (
        Dirichlet,
        MatrixScaling,
        StructuredScaling,
        VectorScaling,
    )
    from howsure.calibrators.logistic import Beta, Platt
    from howsure.calibrators.per_label import PerLabel
    from howsure.calibrators.second_opinion import SecondOpinion, attach_opinion
    from howsure.calibrators.step_functions import HistogramBinning, Isotonic
    from howsure.calibrators.temperature import Temperature
else:

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            raise AttributeError(f"module 'howsure.calibrators' has no attribute {name!r}")
        value = getattr(import_module(f"howsure.calibrators.{_WHERE[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
