"""How sure is your classifier, and should you believe it?

Names are resolved when they are first used, so `import howsure` costs little more than `import
numpy`.
"""

# pyright: reportUnusedImport=false, reportWildcardImportFromLibrary=false

from importlib import import_module
from typing import TYPE_CHECKING, Any

from howsure._core.version import __version__

_NAMES = {
    "tallies.building": ["SetTally", "dice_tally", "set_tally", "tally"],
    "_core.checks": ["InputError"],
    "tallies.tally": ["Tally"],
    "report.calibration_report": ["CalibrationReport", "calibration_report"],
    "binning": ["adaptive", "adaptive_reference", "equal_range", "equal_size", "unique"],
    "metrics.compact_bounds": ["certified"],
    "report.comparing": ["Comparison", "compare"],
    "curves": [
        "BinTable",
        "Corp",
        "Curve",
        "bin_table",
        "corp",
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
    "curves.curve": ["Histogram", "histogram", "refine"],
    "uncertainty.calibration_testing": ["CalibrationTest", "calibration_test"],
    "uncertainty.class_limits": ["flexible_calibration"],
    "uncertainty.intervals": [
        "Interval",
        "each_interval",
        "interval",
        "net_benefit_difference",
        "paired_difference",
    ],
    "metrics": [
        "Bands",
        "BrierParts",
        "CalibrationDistance",
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
        "calibration_distance",
        "calibration_in_the_large",
        "calibration_intercept",
        "calibration_slope",
        "class_auroc",
        "classwise_ece",
        "conditional_entropy",
        "correctness_brier",
        "correctness_nll",
        "coverage_at_risk",
        "debiased_ece",
        "dice_loss",
        "distance_floor",
        "dominates",
        "e_aurc",
        "ece",
        "eor",
        "exact_match",
        "expected_score",
        "fpr_at_tpr",
        "hamming_loss",
        "histogram_auroc",
        "histogram_brier",
        "image_aurc",
        "macro_auroc",
        "mce",
        "muce",
        "net_benefit",
        "nll",
        "npv",
        "observed_expected",
        "optimal_aurc",
        "optimal_aurc_asymptotic",
        "oracle_accuracy",
        "over_confidence",
        "positive_class",
        "positive_outcomes",
        "positive_tally",
        "ppv",
        "ranked_probability_score",
        "recalibration",
        "risk_at_coverage",
        "rms_calibration_error",
        "sensitivity",
        "signed_calibration_error",
        "skill",
        "smooth_ece",
        "specificity",
        "spiegelhalter_z",
        "top_k_accuracy",
        "uce",
        "under_confidence",
    ],
    "predictions.images": ["Images", "image_tally", "images_of", "without_masked"],
    "predictions.outcomes": ["Outcomes"],
    "predictions.predictions": ["Predictions"],
    "report.evaluation": ["evaluate"],
    "report.report": ["Report"],
    "report.summary": ["Summary"],
    "report.estimation": ["Estimate", "estimate"],
    "report.monitoring": ["Monitor", "monitor"],
    "_core.saving": ["load", "save"],
    "calibrators.choice": ["Choice", "choose_calibrator"],
    "scale.many_files": ["evaluate_files"],
}
_MODULES = [
    "binning",
    "bounds",
    "calibrators",
    "curves",
    "figures",
    "formats",
    "losses",
    "metrics",
    "policies",
    "scores",
    "serving",
    "workers",
]
_EXTRAS = [
    "torch"
]  # modules that need an optional package: found here, but not what a star import brings
_WHERE = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_WHERE, *_MODULES, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from howsure import (
        binning,
        bounds,
        calibrators,
        curves,
        figures,
        formats,
        losses,
        metrics,
        policies,
        scores,
        serving,
        torch,
        workers,
    )
    from howsure._core.checks import InputError
    from howsure._core.saving import load, save
    from howsure.binning import adaptive, adaptive_reference, equal_range, equal_size, unique
    from howsure.calibrators.choice import Choice, choose_calibrator
    from howsure.curves import *
    from howsure.curves.curve import Histogram, histogram, refine
    from howsure.formats import read, scan, write
    from howsure.metrics import *
    from howsure.metrics.compact_bounds import certified
    from howsure.predictions import Predictions
    from howsure.predictions.images import Images, image_tally, images_of, without_masked
    from howsure.predictions.outcomes import Outcomes
    from howsure.report.calibration_report import CalibrationReport, calibration_report
    from howsure.report.comparing import Comparison, compare
    from howsure.report.estimation import Estimate, estimate
    from howsure.report.evaluation import evaluate
    from howsure.report.monitoring import Monitor, monitor
    from howsure.report.report import Report
    from howsure.report.summary import Summary
    from howsure.scale import evaluate_files
    from howsure.tallies.building import SetTally, dice_tally, set_tally, tally
    from howsure.tallies.tally import Tally
    from howsure.uncertainty.calibration_testing import CalibrationTest, calibration_test
    from howsure.uncertainty.class_limits import flexible_calibration
    from howsure.uncertainty.intervals import (
        Interval,
        each_interval,
        interval,
        net_benefit_difference,
        paired_difference,
    )
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
