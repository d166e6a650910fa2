"""Slices: the samples of each value of a column, the least accurate first, with limits that allow
for many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from howsure import metrics
from howsure._core.check import InputError
from howsure.policies.threshold import threshold_for_accuracy, threshold_for_coverage
from howsure.predictions.outcomes import Outcomes
from howsure.render.model import Slice, Slices
from howsure.report.catalogue import is_claim
from howsure.report.measurement import Sureness
from howsure.report.positive import number
from howsure.report.summary import Summary
from howsure.tallies.rows import of_moments
from howsure.tallies.tally import Tally, is_tally
from howsure.uncertainty.intervals import Interval, each_interval

LEAST = 20  # samples below which a slice is listed, not tested
SHOWN = 200
TARGET = 0.95


class Line(NamedTuple):
    """From which score on samples are accepted, and why from there."""

    threshold: float
    rule: str


def slices(s: Summary, sure: Sureness, threshold: float | None = None) -> Slices | None:
    """Every slice of every column; None where no column was asked for.

    With G slices each limit holds at 1 − (1 − level)/G, so that all hold together (Bonferroni).
    `worse` marks a slice of at least 20 samples whose upper limit of the accuracy is below the
    accuracy of all samples.

    >>> from howsure import Predictions
    >>> from howsure.report.focus import Focus
    >>> p = Predictions.from_confidence([0.9, 0.8, 0.7], [1, 0, 1], attributes={"site": ["a", "b", "a"]})
    >>> found = slices(Summary.of(p, focus=Focus.of(None, ["site"])), Sureness())
    >>> [(row["value"], row["accuracy"]["value"]) for row in found["rows"]]
    [('b', 0.0), ('a', 1.0)]
    """
    if not s.slices:
        return None
    line = _line(s.tally, threshold)
    every = [(column, value) for column, found in s.slices.items() for value in found]
    each = Sureness(1 - (1 - sure.level) / len(every), sure.seed)
    rows = [_slice(s, column, value, line.threshold, each) for column, value in every]
    rows.sort(key=lambda r: (r["accuracy"]["value"] or 0.0, -r["n"], r["column"], r["value"]))
    return {
        "columns": list(s.slices),
        "threshold": line.threshold,
        "rule": line.rule,
        "level": sure.level,
        "of": len(every),
        "rows": rows[:SHOWN],
    }


def _line(t: Tally, threshold: float | None) -> Line:
    """The threshold that was given; else where 95 % of all accepted are right; else the middle of
    the scores.
    """
    if threshold is not None:
        if not np.isfinite(threshold):
            raise InputError(f"threshold is {threshold:g}; a finite score is needed.")
        return Line(float(threshold), "given")
    found = threshold_for_accuracy(t, TARGET)
    if found.coverage > 0:
        return Line(found.threshold, "95 % of all accepted are right")
    return Line(threshold_for_coverage(t, 0.5).threshold, "half of all samples are accepted")


def _slice(s: Summary, column: str, value: str, threshold: float, sure: Sureness) -> Slice:
    t, whole = s.slices[column][value], s.tally
    source = _source(s, column, value)
    claims = is_claim(whole)
    asked = [metrics.accuracy, metrics.aurc, *([metrics.ece] if claims else [])]
    accepted = _accepted(source if not isinstance(source, str) else t, threshold)
    if isinstance(source, str):
        limits = [Interval(np.nan, np.nan, source)] * 3
        covered = limits[0]
    else:
        limits = each_interval(asked, source, sure.level, sure.seed)
        covered = each_interval([metrics.accuracy], accepted, sure.level, sure.seed)[0]
    n = float(t.n) if is_tally(source) or isinstance(source, str) else len(source)
    right = metrics.accuracy(t)
    return {
        "column": column,
        "value": value,
        "n": round(n),
        "accuracy": number(right, limits[0]),
        "aurc": number(metrics.aurc(t), limits[1]),
        "ece": number(metrics.ece(t), limits[2])
        if claims
        else {"value": None, "why": "the score is no probability: it leaves [0, 1]"},
        "coverage": number(
            metrics.accuracy(accepted if is_tally(accepted) else accepted.tally()), covered
        ),
        "worse": bool(limits[0].high < metrics.accuracy(whole) and n >= LEAST),
    }


def _source(s: Summary, column: str, value: str) -> Tally | Outcomes | str:
    """What limits of a slice are made from."""
    if s.shape.alike:
        return s.slices[column][value]
    source = s.source("score", s.first)
    columns = None if s.details is None else s.details.columns
    if isinstance(source, str) or is_tally(source) or columns is None:
        return source if isinstance(source, str) else "single samples are not held here"
    return source[columns.slices[column] == value]


def _accepted(source: Tally | Outcomes, threshold: float) -> Tally | Outcomes:
    """Accepted or not instead of right or wrong."""
    if not is_tally(source):
        kept = source.score >= threshold
        return Outcomes(source.score, correct=kept, weight=source.weight, group=source.group)
    below = source.count[source.score < threshold].sum()
    total = source.n if isinstance(source.n, int) else float(source.n)
    return of_moments(total, float(below), float(below), zero_one=True)
