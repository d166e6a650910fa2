"""A metric and its data come in; how sure the number is goes out: limits, differences, tests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Names are imported when first used: policies need the means of this folder and nothing else.
_WHERE = {
    "CalibrationTest": "calibration_testing",
    "Interval": "limits",
    "calibration_test": "calibration_testing",
    "each_interval": "intervals",
    "interval": "intervals",
    "net_benefit_difference": "intervals",
    "paired_difference": "intervals",
}

__all__ = [
    "CalibrationTest",
    "Interval",
    "calibration_test",
    "each_interval",
    "interval",
    "net_benefit_difference",
    "paired_difference",
]

if TYPE_CHECKING:
    from howsure.uncertainty.calibration_testing import CalibrationTest, calibration_test
    from howsure.uncertainty.intervals import (
        Interval,
        each_interval,
        interval,
        net_benefit_difference,
        paired_difference,
    )
else:

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            raise AttributeError(f"module 'howsure.uncertainty' has no attribute {name!r}")
        value = getattr(import_module(f"howsure.uncertainty.{_WHERE[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
