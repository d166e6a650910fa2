"""What other libraries have of the panel: for each metric the functions that compute it, ready to
be timed.

Tensors and arrays are prepared beforehand and argument checks are switched off where a library lets
us.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import version
from types import ModuleType
from typing import Any

from .timing import Job
from .workloads import Outcome

Jobs = dict[str, Job]  # metric → call
BINS = 15


def scikit_learn(data: Outcome) -> Jobs:
    from sklearn.metrics import average_precision_score, roc_auc_score

    wrong, doubt = ~data.correct, -data.score
    return {
        "auroc": lambda: roc_auc_score(wrong, doubt),
        "aupr": lambda: average_precision_score(wrong, doubt),
    }


def torchmetrics(data: Outcome) -> Jobs:
    import torch
    from torchmetrics.functional import classification as tm

    score, right = torch.from_numpy(data.score), torch.from_numpy(data.correct).long()
    doubt, wrong = 1 - score, 1 - right
    error = partial(tm.binary_calibration_error, score, right, n_bins=BINS, validate_args=False)
    return {
        "auroc": lambda: tm.binary_auroc(doubt, wrong, validate_args=False),
        "aupr": lambda: tm.binary_average_precision(doubt, wrong, validate_args=False),
        "ece": lambda: error(norm="l1"),
        "mce": lambda: error(norm="max"),
    }


def torch_uncertainty(data: Outcome) -> Jobs:
    import torch

    tu = without_parents("torch_uncertainty.metrics.classification")
    score, right = torch.from_numpy(data.score), torch.from_numpy(data.correct).long()

    def call(make: Callable[..., Any], **options: Any) -> Job:
        def job() -> Any:
            metric = make(**options)
            metric.update(score, right)
            return metric.compute()

        return job

    binned = partial(call, task="binary", num_bins=BINS, validate_args=False)
    return {
        "aurc": call(tu.AURC),
        "augrc": call(tu.AUGRC),
        "ece": binned(tu.CalibrationError, norm="l1"),
        "mce": binned(tu.CalibrationError, norm="max"),
        "aece": binned(tu.AdaptiveCalibrationError, norm="l1"),
    }


def without_parents(name: str) -> Any:
    """A subpackage without running the `__init__` of the packages above it, which wants lightning
    and torchvision.
    """
    parts = name.split(".")
    path = PathFinder.find_spec(parts[0])  # also where a part of it is loaded already
    if path is None or not path.submodule_search_locations:
        raise ImportError(f"No module named {parts[0]!r}")
    folder = path.submodule_search_locations[0]
    for i in range(1, len(parts)):
        package = ModuleType(".".join(parts[:i]))
        package.__path__ = ["/".join([folder, *parts[1:i]])]
        sys.modules.setdefault(package.__name__, package)
    return import_module(name)


def netcal(data: Outcome) -> Jobs:
    from netcal.metrics import ECE, MCE

    score, right = data.score, data.correct.astype(int)
    return {
        "ece": lambda: ECE(BINS).measure(score, right),
        "mce": lambda: MCE(BINS).measure(score, right),
    }


PEERS = {
    "scikit-learn": scikit_learn,
    "torchmetrics": torchmetrics,
    "torch-uncertainty": torch_uncertainty,
    "netcal": netcal,
}


def available(data: Outcome) -> tuple[dict[str, Jobs], dict[str, str]]:
    """The jobs of each peer that is here, and why another is not."""
    jobs: dict[str, Jobs] = {}
    absent: dict[str, str] = {}
    for name, make in PEERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                jobs[f"{name} {version(name)}"] = make(data)
        except (ImportError, OSError, RuntimeError) as error:
            absent[name] = str(error).splitlines()[0]
    return jobs, absent
