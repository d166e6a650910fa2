"""Fitting a temperature against scikit-learn's, and how far the fit is from the optimum."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

import howsure as hs

from .fits import peak
from .rows import Row
from .timing import Job, seconds
from .workloads import logits

N, K = 100_000, 100


def rows() -> Iterator[Row]:
    z, labels = logits(N, K)
    z *= np.float32(1.7)  # over-confident: the optimum is near 1.7
    preds = hs.Predictions.from_logits(z, labels)
    fitted: Any = hs.calibrators.Temperature.fit(preds)
    worse = hs.nll(fitted(preds)) - optimum(
        z, labels
    )  # below 0 where the search stopped a little earlier
    yield Row(f"temperature fit, {N:,} × {K}: NLL above the optimum", worse, "nats", 1e-9)
    try:
        theirs = scikit_learn(z, labels)
    except ImportError as error:
        yield Row(
            "peer scikit-learn's temperature",
            None,
            "",
            detail=f"left out, cannot be used here: {error}",
        )
        return
    ours, peer = seconds(lambda: hs.calibrators.Temperature.fit(preds), theirs, repeats=3)
    detail = f"{1e3 * ours:.0f} ms; scikit-learn {1e3 * peer:.0f} ms; "
    detail += peak(lambda: hs.calibrators.Temperature.fit(preds))
    yield Row(f"temperature fit, {N:,} × {K}", peer / ours, "× faster", 5, 15, True, detail)


def optimum(z: np.ndarray, labels: np.ndarray) -> float:
    """The smallest mean NLL over temperatures, by a bounded search over log T on the plain formula."""
    wide = z.astype(np.float64)
    own = wide[np.arange(len(z)), labels]
    top = wide.max(axis=1)

    def mean_nll(log_t: float) -> float:
        b = np.exp(-log_t)
        return float(
            np.mean(np.log(np.exp(b * (wide - top[:, None])).sum(axis=1)) - b * (own - top))
        )

    return float(
        minimize_scalar(mean_nll, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).fun
    )


def scikit_learn(z: np.ndarray, labels: np.ndarray) -> Job:
    """Its fit alone, which is private; CalibratedClassifierCV around it would only add to the time."""
    from sklearn.calibration import _TemperatureScaling

    def job() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _TemperatureScaling().fit(z, labels)

    return job
