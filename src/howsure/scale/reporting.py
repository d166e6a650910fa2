"""A summary → the report that `evaluate` would have made of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, sqrt
from pathlib import PurePosixPath
from statistics import NormalDist
from typing import Any

import numpy as np

from howsure import curves, metrics
from howsure._core.check import Floats
from howsure._core.exact import as_float, from_fixed
from howsure._core.version import __version__
from howsure.binning import equal_range
from howsure.render.model import curve_json
from howsure.report import Report, catalogue
from howsure.report.catalogue import Item
from howsure.report.findings import Case, Finding, findings, verdict
from howsure.report.findings.case import Answers, claims
from howsure.report.provenance import versions
from howsure.report.report import SCHEMA, entry, value_of
from howsure.report.summary import UNCERTAINTY, Gathered, Summary
from howsure.report.vectors import BINS, Moments, Vectors
from howsure.report.views import BARS, band_rows, class_rows, points, rounded, span
from howsure.scale.drawing import drawn
from howsure.scale.parts import Job
from howsure.tallies.tally import Tally
from howsure.uncertainty.intervals import Interval, each_interval

GROUPED = "limits of grouped samples need whole groups, which a stream does not keep; evaluate in memory for them"
JUMPS = "jumps when single samples change, so resampling gives it no valid limits"
LEFT_OUT = {
    "views.operating.classes": "needs the scores of every class",
    "views.classes of a confidence": "needs the labels of all samples at once",
    "binary": "needs the probabilities of all samples at once",
}


@dataclass(frozen=True)
class Asked:
    """What a caller asks of the report."""

    level: float
    seed: int
    command: str | None
    resumed: int = 0  # parts that were there already


def report(g: Gathered, job: Job, asked: Asked) -> Report:
    """The report of all rows that were gathered."""
    s = g.summary
    assert s is not None
    (score, t), *others = [(name, t) for name, t in s.tallies.items() if name != UNCERTAINTY]
    measured = {**_of_predictions(s, t, asked), **_of_score(t, s, asked)}
    found = [*_notices(g, job), *_findings(s, t)]
    coarse = {"approximate": t.approximate} if t.approximate else {}
    return Report(
        {
            "howsure": __version__,
            "schema": SCHEMA,
            "provenance": _provenance(job, asked),
            "n": s.n,
            "k": s.shape.k,
            "kind": s.shape.kind,
            "samples": s.shape.samples,
            "class_names": None if s.shape.class_names is None else list(s.shape.class_names),
            "score": score,
            "verdict": verdict(measured, found),
            "metrics": measured,
            "scores": {name: _other(other, s, asked) for name, other in others},
            "curves": drawn(t, s.tallies),
            "views": _views(s, t, asked.level),
            "binary": None,
            "calibration": None,
            "findings": found,
            "streamed": _streamed(g, job, asked.resumed),
            **coarse,
        }
    )


def _of_score(t: Tally, s: Summary, asked: Asked) -> dict[str, Any]:
    items = [*catalogue.ranking(), *(catalogue.claims() if claims(t) else [])]
    return _measured(items, t, s, asked)


def _measured(items: Sequence[Item], t: Tally, s: Summary, asked: Asked) -> dict[str, Any]:
    values = {item.name: value_of(item, t) for item in items}
    here = [item for item in items if isinstance(values[item.name], float)]
    limits = [_none(GROUPED)] * len(here)
    if not s.shape.grouped:
        limits = each_interval([item.measure for item in here], t, asked.level, asked.seed)
    found = {item.name: entry(item, values[item.name], limit, t) for item, limit in zip(here, limits, strict=True)}
    return {item.name: found.get(item.name, values[item.name]) for item in items}


def _of_predictions(s: Summary, t: Tally, asked: Asked) -> dict[str, Any]:
    """Accuracy, and what the sums over all classes give."""
    of_loss = {item.name: item for item in catalogue.whole(s.shape)}
    accuracy = _measured([of_loss["accuracy"]], t, s, asked)
    v = s.vectors
    if v is None:
        return accuracy
    out = dict(accuracy)
    for name, item in of_loss.items():
        if name in ("nll", "brier") or name.startswith("top_"):
            out[name] = _of_moments(item, v.losses[name.removesuffix("_accuracy")], s, t, asked)
    uncertain = s.tallies[UNCERTAINTY]
    gaps = [Item("uce", partial(metrics.ece, bins=equal_range(BINS)), "lower")]
    gaps.append(Item("muce", partial(metrics.mce, bins=equal_range(BINS)), "lower"))
    out |= _measured(gaps, uncertain, s, asked)
    out["muce"]["why"] = f"muce {JUMPS}"
    out["classwise_ece"] = entry(of_loss["classwise_ece"], _classwise(v, s.n), _none(f"classwise_ece {JUMPS}"), t)
    return out


def _none(why: str) -> Interval:
    return Interval(np.nan, np.nan, why)


def _of_moments(item: Item, m: Moments, s: Summary, t: Tally, asked: Asked) -> dict[str, Any]:
    """A mean with its normal limits, to which those of the bootstrap tend with many samples."""
    mean = inf if m.infinite else as_float(m.first) / s.n
    value = 1.0 - mean if item.better == "higher" else mean
    if m.infinite:
        return entry(item, value, _none("its value is infinite"), t)
    spread = sqrt(max(0.0, as_float(m.second) / s.n - mean * mean) / s.n)
    reach = NormalDist().inv_cdf(0.5 + asked.level / 2) * spread
    limits = _none(GROUPED) if s.shape.grouped else Interval(value - reach, value + reach)
    return entry(item, value, limits, t)


def _classwise(v: Vectors, n: int) -> float:
    gap = from_fixed(v.bins) - v.true
    return float(np.abs(gap).sum() / n / len(v.count))


def _other(t: Tally, s: Summary, asked: Asked) -> dict[str, Any]:
    odds = curve_json(curves.odds_by_quantile(t))
    return {"metrics": _measured(catalogue.ranking(), t, s, asked), "bands": band_rows(t), "odds_by_quantile": odds}


def _findings(s: Summary, t: Tally) -> list[dict[str, Any]]:
    """Findings assume that samples are independent, so groups leave none."""
    if s.shape.grouped:
        return []
    v = s.vectors
    answers = None
    if v is not None:  # a right answer is an answer of its true class, so hits count by either
        answers = Answers(v.given.astype(np.float64), v.given - v.hits, from_fixed(v.claim))
    return findings(Case(t, names=_names(s), answers=answers))


def _names(s: Summary) -> tuple[str, ...]:
    return tuple(s.shape.class_names or (str(c) for c in range(s.shape.k or 0)))


def _notices(g: Gathered, job: Job) -> list[dict[str, Any]]:
    """What keeps the report from being about all rows, before anything else."""
    out: list[Finding] = []
    if len(g.parts) < len(job.parts):
        text = f"Partial: {len(g.parts):,} of {len(job.parts):,} parts of the data were read before it was interrupted."
        out.append(Finding("partial", text, {"parts": len(g.parts), "of": len(job.parts)}, ""))
    skipped = [*job.skipped, *g.skipped]
    if skipped:
        text = f"Left out because it cannot be read: {'; '.join(skipped)}"
        out.append(Finding("skipped", text, {"skipped": len(skipped)}, ""))
    return [finding.json() for finding in out]


def _streamed(g: Gathered, job: Job, resumed: int) -> dict[str, Any]:
    return {
        "files": len(job.files),
        "parts": len(g.parts),
        "of": len(job.parts),
        "resumed": resumed,
        "partial": len(g.parts) < len(job.parts),
        "skipped": [*job.skipped, *g.skipped],
        "left_out": LEFT_OUT,
    }


def _provenance(job: Job, asked: Asked) -> dict[str, Any]:
    state = {part.path: (part.size, part.stamp) for part in job.parts}
    inputs = [
        {"file": PurePosixPath(path).name, "bytes": state[path][0], "modified": state[path][1]}
        for path in job.files
        if path in state
    ]
    return {
        "inputs": inputs,
        "command": asked.command,
        "seed": asked.seed,
        "level": asked.level,
        "versions": versions(),
    }


def _views(s: Summary, t: Tally, level: float) -> dict[str, Any]:
    operating, _ = points(t, level, unsure=s.shape.grouped)
    v = s.vectors
    return {
        "operating": {**operating, "classes": []},
        "histogram": _histogram(t, None if v is None else v.near),
        "scatter": None if v is None else _scatter(v.sample, s.n),
        "label_errors": _label_errors(s),
        "classes": [] if v is None else class_rows(v.count, v.given, v.hits, from_fixed(v.claim), _names(s), level),
        "bands": band_rows(t),
    }


def _histogram(t: Tally, near: Any) -> dict[str, Any]:
    """As `views.histogram`; wrong answers near the truth are told apart for scores in [0, 1] alone."""
    finite = np.isfinite(t.score)
    s = t.score[finite]
    low, high = span(s)
    right, wrong = (np.histogram(s, BARS, (low, high), weights=c[finite])[0] for c in (t.count - t.loss, t.loss))
    top = np.zeros(BARS, np.int64) if near is None or not claims(t) else near
    return {"low": low, "high": high, "right": rounded(right), "top_5": rounded(top), "wrong": rounded(wrong - top)}


def _scatter(sample: Floats, n: int) -> dict[str, Any]:
    _, score, loss, fate = sample.T
    return {
        "score": rounded(score, 4),
        "loss": rounded(loss, 4),
        "fate": fate.astype(int).tolist(),
        "of": n,
    }


def _label_errors(s: Summary) -> list[dict[str, Any]]:
    before = {file: sum(n for other, n in s.rows.items() if other < file) for file in s.rows}
    return [
        {
            "id": str(before[x.file] + x.row) if x.id is None else x.id,
            "row": before[x.file] + x.row,
            "score": rounded([-x.minus_score])[0],
            "prediction": x.prediction,
            "label": x.label,
        }
        for x in s.suspects
    ]
