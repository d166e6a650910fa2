"""How sure is your classifier, and should you believe it?

Names are resolved when they are first used, so `import howsure` costs little more than `import numpy`.
"""

# pyright: reportUnusedImport=false, reportWildcardImportFromLibrary=false

from importlib import import_module
from typing import TYPE_CHECKING, Any

from howsure._version import __version__

_NAMES = {
    "_build": ["tally"],
    "_check": ["InputError"],
    "_sets": ["SetTally", "dice_tally", "set_tally"],
    "_tally": ["Tally"],
    "before_after": ["CalibrationReport", "calibration_report"],
    "binning": ["adaptive", "adaptive_reference", "equal_range", "equal_size", "unique"],
    "compaction": ["certified"],
    "comparison": ["Comparison", "compare"],
    "curves": [
        "BinTable",
        "Curve",
        "bin_table",
        "odds_by_quantile",
        "odds_ratio",
        "precision_recall",
        "rejection",
        "reliability",
        "risk_coverage",
        "roc",
        "threshold_diagram",
        "uncertainty_reliability",
    ],
    "formats": ["read", "scan", "write"],
    "histograms": ["Histogram", "histogram", "refine"],
    "intervals": ["Interval", "each_interval", "interval", "paired_difference"],
    "metrics": [
        "Bands",
        "BrierParts",
        "Recalibration",
        "aac",
        "accuracy",
        "aece",
        "amce",
        "augrc",
        "aupr",
        "aurc",
        "auroc",
        "bands",
        "brier",
        "brier_decomposition",
        "calibration_intercept",
        "calibration_slope",
        "classwise_ece",
        "conditional_entropy",
        "correctness_brier",
        "correctness_nll",
        "coverage_at_risk",
        "debiased_ece",
        "dominates",
        "e_aurc",
        "ece",
        "eor",
        "expected_score",
        "histogram_auroc",
        "histogram_brier",
        "mce",
        "muce",
        "net_benefit",
        "nll",
        "optimal_aurc",
        "optimal_aurc_asymptotic",
        "over_confidence",
        "positive_tally",
        "recalibration",
        "risk_at_coverage",
        "signed_calibration_error",
        "smooth_ece",
        "top_k_accuracy",
        "uce",
        "under_confidence",
    ],
    "outcomes": ["Outcomes"],
    "predictions": ["Predictions"],
    "report": ["Report", "evaluate"],
    "saving": ["load", "save"],
    "selection": ["Choice", "choose_calibrator"],
    "streaming": ["evaluate_files"],
}
_MODULES = [
    "binning",
    "bounds",
    "calibrators",
    "curves",
    "formats",
    "losses",
    "metrics",
    "policies",
    "scores",
    "workers",
]
_EXTRAS = ["torch"]  # modules that need an optional package: found here, but not what a star import brings
_WHERE = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_WHERE, *_MODULES, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from howsure import binning, bounds, calibrators, curves, formats, losses, metrics, policies, scores, torch, workers
    from howsure._build import tally
    from howsure._check import InputError
    from howsure._sets import SetTally, dice_tally, set_tally
    from howsure._tally import Tally
    from howsure.before_after import CalibrationReport, calibration_report
    from howsure.binning import adaptive, adaptive_reference, equal_range, equal_size, unique
    from howsure.compaction import certified
    from howsure.comparison import Comparison, compare
    from howsure.curves import *
    from howsure.formats import read, scan, write
    from howsure.histograms import Histogram, histogram, refine
    from howsure.intervals import Interval, each_interval, interval, paired_difference
    from howsure.metrics import *
    from howsure.outcomes import Outcomes
    from howsure.predictions import Predictions
    from howsure.report import Report, evaluate
    from howsure.saving import load, save
    from howsure.selection import Choice, choose_calibrator
    from howsure.streaming import evaluate_files
else:

    def __getattr__(name: str) -> Any:
        if name in _WHERE:
            value = getattr(import_module(f"howsure.{_WHERE[name]}"), name)
        elif name in (*_MODULES, *_EXTRAS):
            value = import_module(f"howsure.{name}")
        else:
            raise AttributeError(f"module 'howsure' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
