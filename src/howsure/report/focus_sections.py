"""What a report says of its focus: what a clinician asks of the probability of the positive class,
and the samples of each value of a column, the least accurate first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import cast

import numpy as np

from howsure import curves, metrics
from howsure._core import checks, strict_json
from howsure._core.checks import InputError
from howsure.binning import equal_size
from howsure.bounds import compute_proportion_limits
from howsure.metrics.binary import net_benefit
from howsure.metrics.class_calibration import (
    brier_decomposition,
    calibration_distance,
    distance_floor,
    spiegelhalter_z,
)
from howsure.policies.thresholds import threshold_for_accuracy, threshold_for_coverage
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import NO_CLAIM
from howsure.report.catalogue import On, is_claim
from howsure.report.measurement import (
    LimitSource,
    Sureness,
    build_claims_test,
    build_number,
    clean_counts,
    find_limits,
    list_counts,
)
from howsure.report.report_types import (
    THRESHOLDS,
    Binary,
    BrierData,
    Calling,
    CallRow,
    DistanceData,
    Number,
    PositiveSlice,
    Slice,
    Slices,
    build_curve_data,
)
from howsure.report.summary import Summary
from howsure.tallies.row_tally import of_moments
from howsure.tallies.tally import Tally, is_tally
from howsure.uncertainty.class_limits import (
    build_flexible_curve,
    compute_net_benefit_limits,
)
from howsure.uncertainty.intervals import Interval, each_interval

CLASS_METRICS: dict[str, Callable[..., float]] = {
    "class_auroc": metrics.auroc,
    "prevalence": metrics.accuracy,
    "brier": metrics.correctness_brier,
    "ece": metrics.ece,
    "observed_expected": metrics.observed_expected,
    "calibration_in_the_large": metrics.calibration_in_the_large,
    "calibration_intercept": metrics.calibration_intercept,
    "calibration_slope": metrics.calibration_slope,
}
SLICE_METRICS = (metrics.auroc, metrics.observed_expected, metrics.calibration_in_the_large)
# Why a share has no value: there is no case to take a share of.
NO_CASES = {
    "positive": "there are no positive cases",
    "negative": "there are no negative cases",
    "called": "no case is called positive",
    "cleared": "every case is called positive",
}
MIN_TESTED_SAMPLES = 20  # smaller slices are listed, not tested
MAX_LISTED_SLICES = 200
TARGET_ACCURACY = 0.95


def build_binary(
    s: Summary, level: float, seed: int = 0, thresholds: Sequence[float] = THRESHOLDS
) -> Binary | None:
    """What is asked of the probability of the positive class; None where there is no such class.

    >>> from howsure import Predictions
    >>> section = build_binary(Summary.of(Predictions.from_probs([0.9, 0.2, 0.6], [1, 0, 0])), 0.95)
    >>> section["positive_class"], round(section["prevalence"], 3)
    ('1', 0.333)
    """
    t = s.positive
    if t is None or s.shape.positive is None:
        return None
    source = s.source("positive", "")
    flexible = None if isinstance(source, str) else build_flexible_curve(source, level)
    numbers: dict[str, Number] = {}
    limits = find_limits(list(CLASS_METRICS.values()), source, Sureness(level, seed))
    for (name, metric), limit in zip(CLASS_METRICS.items(), limits, strict=True):
        numbers[name] = build_number(metric(t), limit)
    intercept, slope = numbers.pop("calibration_intercept"), numbers.pop("calibration_slope")
    z = spiegelhalter_z(t)
    test = build_claims_test(source, seed, s.shape.positive)
    section: Binary = {
        "positive_class": s.shape.names[s.shape.positive],
        "prevalence": float(1 - t.total / t.n),
        "ece": metrics.ece(t),
        "calibration_intercept": intercept,
        "calibration_slope": slope,
        "brier_decomposition": BrierData(**brier_decomposition(t)._asdict()),
        "reliability": build_curve_data(curves.reliability(t, equal_size(10))),
        "calling": count_calls(t),
        "net_benefit": build_curve_data(net_benefit(t)),
        "numbers": numbers,
        "thresholds": list_calls(t, source, thresholds, level),
        "flexible": None if flexible is None else build_curve_data(flexible),
        "distance": measure_distance(t, seed),
        "spiegelhalter_z": z if isfinite(z) else None,
    }
    if test is not None:
        section["calibration_test"] = test
    return section


def measure_distance(t: Tally, seed: int) -> DistanceData:
    """How far the smooth calibration curve is from the diagonal, and how far chance alone takes it.

    >>> from howsure import tally
    >>> measure_distance(tally([0.9, 0.2], correct=[1, 1]), 0)["ici"] is None
    True
    """
    found = calibration_distance(t)
    data = cast("DistanceData", strict_json.to_plain(found._asdict()))
    if t.equal_weights and isfinite(found.ici):
        floor = distance_floor(t, seed=seed)
        data["floor"] = cast("dict[str, float | None]", strict_json.to_plain(floor._asdict()))
    return data


def count_calls(t: Tally) -> Calling:
    """Counts where cases are called positive from each hundredth on; `t` is the tally of the
    positive probability.

    >>> from howsure import tally
    >>> calls = count_calls(tally([0.9, 0.6, 0.2], correct=[1, 0, 0]))
    >>> calls["true_positive"][49], calls["false_positive"][49]
    (1, 1)
    """
    thresholds = np.arange(1, 100) / 100
    rows = np.searchsorted(-t.score, -thresholds, side="right")
    positive, negative = clean_counts(t.count - t.loss), t.loss
    # Each side of a threshold is summed by itself: what is left of rounded sums of weights where
    # one is taken from the other may be below 0.
    called: list[list[float]] = []
    cleared: list[list[float]] = []
    for cases in (positive, negative):
        called.append(list_counts(np.concatenate(([0], np.cumsum(cases)))[rows]))
        from_below = np.concatenate(([0], np.cumsum(cases[::-1])))
        cleared.append(list_counts(from_below[len(cases) - rows]))
    return {
        "threshold": thresholds.tolist(),
        "true_positive": called[0],
        "false_positive": called[1],
        "false_negative": cleared[0],
        "true_negative": cleared[1],
    }


def list_calls(
    t: Tally, source: LimitSource, thresholds: Sequence[float], level: float
) -> list[CallRow]:
    """What happens where cases are called positive from each threshold on.

    >>> from howsure import tally
    >>> t = tally([0.9, 0.4, 0.3, 0.2], correct=[1, 0, 1, 0])
    >>> list_calls(t, t, [0.5], 0.95)[0]["sensitivity"]["value"]
    0.5
    """
    given = checks.floats(np.atleast_1d(np.asarray(thresholds)), "thresholds")
    sorted_thresholds = np.unique(given.astype(np.float64))
    for threshold in sorted_thresholds.tolist():
        if not 0 < threshold < 1:
            raise InputError(
                f"the threshold {threshold:g} is none; probabilities between 0 and 1 are needed."
            )
    curve = net_benefit(t, sorted_thresholds)
    treat_all = curve.y if curve.low is None else curve.low
    yes, no = clean_counts(t.count - t.loss), t.loss
    rows: list[CallRow] = []
    for i, threshold in enumerate(sorted_thresholds.tolist()):
        called = t.score >= threshold
        hits, missed = float(yes[called].sum()), float(yes[~called].sum())
        alarms, cleared = float(no[called].sum()), float(no[~called].sum())
        shares = {
            "positive": (hits, hits + missed),
            "negative": (cleared, cleared + alarms),
            "called": (hits, hits + alarms),
            "cleared": (cleared, cleared + missed),
        }
        numbers: dict[str, Number] = {}
        for part, (k, n) in shares.items():
            if n <= 0:
                numbers[part] = {"value": None, "why": NO_CASES[part]}
            else:
                limits = _limit_share(
                    k, n, part=part, source=source, threshold=threshold, level=level
                )
                numbers[part] = build_number(k / n, limits)
        row: CallRow = {
            "threshold": threshold,
            "called": (hits + alarms) / float(t.n),
            "sensitivity": numbers["positive"],
            "specificity": numbers["negative"],
            "ppv": numbers["called"],
            "npv": numbers["cleared"],
            "net_benefit": float(curve.y[i]),
            "treat_all": float(treat_all[i]),
        }
        if not isinstance(source, str):
            limits = compute_net_benefit_limits(source, threshold, level)
            if limits.why is None:
                row["net_benefit_limits"] = [limits.low, limits.high]
        rows.append(row)
    return rows


def _limit_share(
    k: float, n: float, *, part: str, source: LimitSource, threshold: float, level: float
) -> Interval:
    """Exact limits of k of n cases; groups and weights widen them."""
    if isinstance(source, str):
        return Interval(np.nan, np.nan, why=source)
    if is_tally(source):
        low, high = compute_proportion_limits(k, n, (1 - level) / 2)
        return Interval(float(low), float(high))
    # The share as an accuracy: a case is right where it is called what it is, among the cases of
    # this denominator.
    called = source.score >= threshold
    rows = {
        "positive": source.right,
        "negative": ~source.right,
        "called": called,
        "cleared": ~called,
    }
    cases = replace(source, correct=called == source.right)[rows[part]]
    return each_interval([metrics.accuracy], cases, level)[0]


def build_slices(s: Summary, sure: Sureness, threshold: float | None = None) -> Slices | None:
    """Every slice of every column; None where no column was asked for.

    With G slices each limit holds at 1 − (1 − level)/G, so that all hold together (Bonferroni).
    `worse` marks a slice of at least 20 samples whose upper limit of the accuracy is below the
    accuracy of all samples.

    >>> from howsure import Predictions
    >>> from howsure.report.focus import Focus
    >>> site = {"site": ["a", "b", "a"]}
    >>> p = Predictions.from_confidence([0.9, 0.8, 0.7], [1, 0, 1], attributes=site)
    >>> section = build_slices(Summary.of(p, focus=Focus.of(None, ["site"])), Sureness())
    >>> [(row["value"], row["accuracy"]["value"]) for row in section["rows"]]
    [('b', 0.0), ('a', 1.0)]
    """
    if not s.slices:
        return None
    rule = "given"
    if threshold is None:
        rule = "95 % of all accepted are right"
        chosen = threshold_for_accuracy(s.tally, TARGET_ACCURACY)
        if chosen.coverage == 0:
            rule = "half of all samples are accepted"
            chosen = threshold_for_coverage(s.tally, 0.5)
        threshold = chosen.threshold
    elif not np.isfinite(threshold):
        raise InputError(f"threshold is {threshold:g}; a finite score is needed.")
    many = sum(len(by_value) for by_value in s.slices.values())
    shared = Sureness(1 - (1 - sure.level) / many, sure.seed)
    rows: list[Slice] = []
    for column, by_value in s.slices.items():
        for value in by_value:
            rows.append(_measure_slice(s, column, value, threshold, shared))
    rows.sort(key=lambda r: (r["accuracy"]["value"] or 0.0, -r["n"], r["column"], r["value"]))
    return {
        "columns": list(s.slices),
        "threshold": float(threshold),
        "rule": rule,
        "level": sure.level,
        "of": many,
        "rows": rows[:MAX_LISTED_SLICES],
    }


def _measure_slice(s: Summary, column: str, value: str, threshold: float, sure: Sureness) -> Slice:
    t = s.slices[column][value]
    source = _find_slice_source(s, "score", t, column, value)
    asked: list[Callable[..., float]] = [metrics.accuracy, metrics.aurc]
    claims = is_claim(s.tally, s.shape.kind)
    if claims:
        asked.append(metrics.ece)
    limits = find_limits(asked, source, sure)
    ece: Number = {"value": None, "why": NO_CLAIM}
    if claims:
        ece = build_number(metrics.ece(t), limits[2])
    if isinstance(source, str):
        accepted, coverage_limits = _mark_accepted(t, threshold), limits[0]
    else:
        accepted = _mark_accepted(source, threshold)
        (coverage_limits,) = find_limits([metrics.accuracy], accepted, sure)
    accepted_tally = accepted if is_tally(accepted) else accepted.tally()
    # A tally of weights knows their sum only; single samples can be counted.
    n = len(source) if isinstance(source, Outcomes) else float(t.n)
    worse = limits[0].high < metrics.accuracy(s.tally) and n >= MIN_TESTED_SAMPLES
    row: Slice = {
        "column": column,
        "value": value,
        "n": round(n),
        "accuracy": build_number(metrics.accuracy(t), limits[0]),
        "aurc": build_number(metrics.aurc(t), limits[1]),
        "ece": ece,
        "coverage": build_number(metrics.accuracy(accepted_tally), coverage_limits),
        "worse": bool(worse),
    }
    if s.positive_slices:
        happened = s.positive_slices[column][value]
        source = _find_slice_source(s, "positive", happened, column, value)
        row["positive"] = measure_positive_slice(happened, source, sure)
    return row


def _find_slice_source(s: Summary, on: On, t: Tally, column: str, value: str) -> LimitSource:
    """What limits of numbers of a slice are made from: its tally, or its samples where these
    differ.
    """
    if s.shape.alike:
        return t
    source = s.source(on, s.first)
    columns = None if s.details is None else s.details.columns
    if isinstance(source, Outcomes) and columns is not None:
        return source[columns.slices[column] == value]
    return source if isinstance(source, str) else "single samples are not held here"


def measure_positive_slice(t: Tally, source: LimitSource, sure: Sureness) -> PositiveSlice:
    """What a clinician asks of a slice: `t` is the tally of the positive probability there.

    >>> from howsure import tally
    >>> t = tally([0.9, 0.4, 0.3, 0.2], correct=[1, 0, 1, 0])
    >>> found = measure_positive_slice(t, t, Sureness())
    >>> found["cases"], found["class_auroc"]["value"], found["sensitivity"]["value"]
    (2, 0.75, 0.5)
    """
    numbers: list[Number] = []
    for metric, limit in zip(SLICE_METRICS, find_limits(SLICE_METRICS, source, sure), strict=True):
        numbers.append(build_number(metric(t), limit))
    if isinstance(source, Outcomes):
        cases = int(source.right.sum())
    else:
        cases = round(float(t.n - t.total))
    return {
        "cases": cases,
        "class_auroc": numbers[0],
        "observed_expected": numbers[1],
        "calibration_in_the_large": numbers[2],
        "sensitivity": list_calls(t, source, [0.5], sure.level)[0]["sensitivity"],
    }


def _mark_accepted(source: Tally | Outcomes, threshold: float) -> Tally | Outcomes:
    """Accepted or not instead of right or wrong, so that the coverage is an accuracy."""
    if not is_tally(source):
        kept = source.score >= threshold
        return Outcomes(source.score, correct=kept, weight=source.weight, group=source.group)
    below = float(source.count[source.score < threshold].sum())
    total = source.n if isinstance(source.n, int) else float(source.n)
    return of_moments(total, below, below, zero_one=True)
