"""evaluate(): the one place where the parts meet, and Report, whose only stored form is JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from howsure import curves, metrics
from howsure._core import json
from howsure._core.atomic import write_text
from howsure._core.check import InputError
from howsure._core.version import __version__
from howsure.binning import adaptive, equal_range, equal_size
from howsure.calibrators.change import change_json, changes_of
from howsure.metrics.binary import brier_decomposition, net_benefit, positive_tally, recalibration
from howsure.metrics.certified import bounds_of
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.render.model import SCHEMA, curve_json, report_data
from howsure.report import catalogue
from howsure.report.catalogue import Item
from howsure.report.findings import case_of, changes, findings, verdict
from howsure.report.provenance import provenance
from howsure.report.views import band_rows, views
from howsure.tallies.tally import Tally
from howsure.uncertainty.intervals import Interval, each_interval

Score = str | Callable[[Predictions], Any]


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that was found about one set of predictions; `.data` is its JSON.

    >>> from howsure import Predictions
    >>> report = evaluate(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1]))
    >>> round(report["accuracy"], 3)
    0.667
    """

    data: Any

    def __getitem__(self, metric: str) -> float | None:
        """The value of a metric of the first score."""
        if metric not in self.data["metrics"]:
            raise KeyError(f"{metric} is not in this report; it has {', '.join(self.data['metrics'])}")
        return self.data["metrics"][metric]["value"]

    def to_json(self, path: str | Path | None = None) -> str:
        """The report as JSON text, strict (no NaN); written to `path` where given."""
        return _written(json.pretty(self.data), path)

    def to_text(self, path: str | Path | None = None, *, width: int = 110) -> str:
        """The table that the command line prints."""
        from howsure.render.sections import sheet

        return _written(sheet(self.data).text(width), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The table as Markdown."""
        from howsure.render.sections import sheet

        return _written(sheet(self.data).markdown(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The interactive page: one offline file."""
        from howsure.render.html import page

        return _written(page(self.data), path)

    def _repr_html_(self) -> str:
        """The page inside a notebook, in a frame of its own so that styles do not mix."""
        from howsure.render.html import frame

        return frame(self.to_html())

    def figure(self) -> Any:
        """The main curves as a matplotlib figure (extra `plot`)."""
        from howsure.render.figure import figure

        return figure(self.data)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """A report from its JSON text."""
        return cls(report_data(text))

    def __repr__(self) -> str:
        return f"<Report: n={self.data['n']:,}, k={self.data['k']}, {len(self.data['metrics'])} metrics>"


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(path, text)
    return text


def evaluate(
    preds: Predictions,
    scores: Sequence[Score] | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
    images: Any = None,
    before: Predictions | None = None,
    files: Sequence[str | Path] = (),
    command: str | None = None,
) -> Report:
    """Measure everything that the data allow, each number with an interval or the reason why not.

    The report is about the first score, `max_prob` unless told otherwise; further scores get the ranking
    metrics. `images`, one per sample, make thumbnails of likely label errors; `before`, the same samples before
    calibration, adds what changed. `files` and `command` are only recorded. Intervals are bootstrap percentile
    limits at `level`, drawn by whole groups where the predictions have a `group`.

    >>> from howsure import Predictions
    >>> evaluate(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1]))
    <Report: n=2, k=2, 27 metrics>
    """
    first, *others = _scored(preds, scores, level, seed)
    measured, score, t = first[1].all(), first[1].outcomes.score, first[1].tally
    found = findings(case_of(preds, score, t)) + (changes(before, preds) if before is not None else [])
    return Report(
        {
            **_facts(preds, provenance(preds, files, command, seed=seed, level=level)),
            "score": first[0],
            "verdict": verdict(measured, found),
            "metrics": measured,
            "scores": {name: scored.ranking() for name, scored in others},
            "curves": {**_curves(preds, t), **_curves_before(before)},
            "views": views(preds, score, t, level=level, seed=seed, images=images),
            "binary": _binary(preds) if preds.k == 2 and preds.kind != "confidence" else None,
            "calibration": _calibration(before, preds, level, seed),
            "findings": found,
        }
    )


def _scored(preds: Predictions, scores: Sequence[Score] | None, level: float, seed: int) -> list[tuple[str, Scored]]:
    """Each score by its name."""
    if not 0 < level < 1:
        raise InputError(f"level is {level:g}; a number between 0 and 1 is needed.")
    named = [_named(s) for s in (scores or catalogue.default_scores(preds))]
    return [(name, Scored(preds, score(preds), level, seed)) for name, score in named]


def _facts(preds: Predictions, origin: dict[str, Any]) -> dict[str, Any]:
    """What is said of the predictions before anything is measured."""
    names = None if preds.class_names is None else list(preds.class_names)
    shape = {"n": preds.n, "k": preds.k, "kind": preds.kind, "samples": preds.samples, "class_names": names}
    return {"howsure": __version__, "schema": SCHEMA, "provenance": origin, **shape}


def _calibration(before: Predictions | None, after: Predictions, level: float, seed: int) -> dict[str, Any] | None:
    return None if before is None else {"metrics": change_json(changes_of(before, after, level, seed))}


def _named(score: Score) -> tuple[str, Callable[[Predictions], Any]]:
    if callable(score):
        return getattr(score, "__name__", "score"), score
    return score, catalogue.score_named(score)


class Scored:
    """One score of the predictions, ready to be measured."""

    def __init__(self, preds: Predictions, score: Any, level: float, seed: int):
        self.preds, self.level, self.seed = preds, level, seed
        self.outcomes = Outcomes(score, correct=preds.correct, weight=preds.weight, group=preds.group)
        self.tally = self.outcomes.tally()

    def all(self) -> dict[str, Any]:
        """Metrics of the predictions, of the ranking and, for a claim, of its calibration."""
        low, high = self.tally.score_range()
        claims = catalogue.claims() if low >= 0 and high <= 1 else []
        return self.measure([*catalogue.whole(self.preds), *catalogue.ranking(), *claims])

    def ranking(self) -> dict[str, Any]:
        """What is said of the order alone."""
        odds = curve_json(curves.odds_by_quantile(self.tally))
        return {"metrics": self.measure(catalogue.ranking()), "bands": band_rows(self.tally), "odds_by_quantile": odds}

    def measure(self, items: Sequence[Item]) -> dict[str, Any]:
        """The JSON entry of each item; items on the same data share their bootstrap draws."""
        known = self.preds.group is not None or self.preds.weight is not None
        parts = (
            ("predictions", self.preds, self.preds),
            ("tally", self.tally, self.outcomes if known else self.tally),
        )
        found: dict[str, Any] = {}
        for takes, data, source in parts:
            values = {item.name: value_of(item, data) for item in items if item.takes == takes}
            here = [item for item in items if isinstance(values.get(item.name), float)]
            limits = each_interval([item.measure for item in here], source, self.level, self.seed)
            pairs = zip(here, limits, strict=True)
            found |= values | {item.name: entry(item, values[item.name], limit, self.tally) for item, limit in pairs}
        return {item.name: found[item.name] for item in items}


def value_of(item: Item, data: Any) -> Any:
    """The number, or the whole entry where these data do not allow it: adaptive bins of fractional weights, say."""
    try:
        return float(item.measure(data))
    except InputError as e:
        return {"value": None, "why": str(e), "better": item.better}


def entry(item: Item, value: float, limits: Interval, t: Tally) -> dict[str, Any]:
    bounds = bounds_of([item], t)[item.name] if item.takes == "tally" else {}
    if not isfinite(value):
        return {"value": None, "why": catalogue.why_undefined(item.name, value, t), "better": item.better, **bounds}
    if limits.why:
        return {"value": value, "low": None, "high": None, "better": item.better, "why": limits.why, **bounds}
    return {"value": value, "low": limits.low, "high": limits.high, "better": item.better, **bounds}


def _curves(preds: Predictions, t: Tally) -> dict[str, Any]:
    out = {
        "risk_coverage": curves.risk_coverage(t),
        "threshold_diagram": curves.threshold_diagram(t),
        "ideal_threshold_diagram": curves.threshold_diagram(t, ideal=True),
        "roc": curves.roc(t),
        "precision_recall": curves.precision_recall(t),
        "odds_by_quantile": curves.odds_by_quantile(t),
    }
    low, high = t.score_range()
    if low >= 0 and high <= 1:
        for name, bins in (("equal_range", equal_range(15)), ("equal_size", equal_size(15)), ("adaptive", adaptive())):
            if name != "adaptive" or not t.weighted:
                out[f"reliability_{name}"] = curves.reliability(t, bins, consistency=True)
    if preds.kind != "confidence":
        out["uncertainty_reliability"] = curves.uncertainty_reliability(preds)
        out["rejection"] = curves.rejection(preds)
    return {name: curve_json(c) for name, c in out.items()}


def _curves_before(before: Predictions | None) -> dict[str, Any]:
    if before is None or before.kind == "confidence":
        return {}
    return {"rejection_before": curve_json(curves.rejection(before))}


def _binary(preds: Predictions) -> dict[str, Any]:
    """What is asked of the probability of the positive class."""
    t = positive_tally(preds)
    fit = recalibration(preds)
    return {
        "positive_class": "1" if preds.class_names is None else preds.class_names[1],
        "prevalence": float(1 - t.total / t.n),
        "ece": metrics.ece(t),
        "calibration_intercept": _wald(fit.intercept, fit.intercept_error),
        "calibration_slope": _wald(fit.slope, fit.slope_error),
        "brier_decomposition": brier_decomposition(preds)._asdict(),
        "reliability": curve_json(curves.reliability(t, equal_size(10))),
        "net_benefit": curve_json(net_benefit(preds)),
    }


def _wald(value: float, error: float) -> dict[str, Any]:
    """A fitted coefficient with its normal 95 % limits."""
    if not isfinite(value):
        return {"value": None, "why": "one class is missing, the score is constant, or the classes separate"}
    return {"value": value, "low": value - 1.96 * error, "high": value + 1.96 * error}
