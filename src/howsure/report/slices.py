"""Slices: the samples of each value of a column, the least accurate first, with limits that allow
for many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from howsure import metrics
from howsure._core.checks import InputError
from howsure.policies.thresholds import threshold_for_accuracy, threshold_for_coverage
from howsure.predictions.outcomes import Outcomes
from howsure.report.catalogue import is_claim
from howsure.report.measurement import LimitSource, Sureness, build_number, find_limits
from howsure.report.report_types import Number, Slice, Slices
from howsure.report.summary import Summary
from howsure.tallies.row_tally import of_moments
from howsure.tallies.tally import Tally, is_tally

MIN_TESTED_SAMPLES = 20  # smaller slices are listed, not tested
MAX_LISTED_SLICES = 200
TARGET_ACCURACY = 0.95


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
    # What limits of the slice are made from.
    source: LimitSource = t
    if not s.shape.alike:
        source = s.source("score", s.first)
        columns = None if s.details is None else s.details.columns
        if isinstance(source, Outcomes) and columns is not None:
            source = source[columns.slices[column] == value]
        elif not isinstance(source, str):
            source = "single samples are not held here"
    asked: list[Callable[..., float]] = [metrics.accuracy, metrics.aurc]
    claims = is_claim(s.tally)
    if claims:
        asked.append(metrics.ece)
    limits = find_limits(asked, source, sure)
    ece: Number = {"value": None, "why": "the score is no probability: it leaves [0, 1]"}
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
    return {
        "column": column,
        "value": value,
        "n": round(n),
        "accuracy": build_number(metrics.accuracy(t), limits[0]),
        "aurc": build_number(metrics.aurc(t), limits[1]),
        "ece": ece,
        "coverage": build_number(metrics.accuracy(accepted_tally), coverage_limits),
        "worse": bool(worse),
    }


def _mark_accepted(source: Tally | Outcomes, threshold: float) -> Tally | Outcomes:
    """Accepted or not instead of right or wrong, so that the coverage is an accuracy."""
    if not is_tally(source):
        kept = source.score >= threshold
        return Outcomes(source.score, correct=kept, weight=source.weight, group=source.group)
    below = float(source.count[source.score < threshold].sum())
    total = source.n if isinstance(source.n, int) else float(source.n)
    return of_moments(total, below, below, zero_one=True)
