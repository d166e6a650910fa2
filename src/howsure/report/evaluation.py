"""evaluate(): predictions → summary → report; `report` is the one builder, of loaded and of
streamed data.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from howsure import curves
from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure._core.stages import told
from howsure._core.version import __version__
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.render.model import (
    SCHEMA,
    Changes,
    ClaimsTest,
    CurveData,
    FindingData,
    Provenance,
    ReportData,
    ScoreData,
    Streamed,
    curve_json,
)
from howsure.report import catalogue
from howsure.report.catalogue import Score, is_claim
from howsure.report.curves import drawn
from howsure.report.deciding import anchored
from howsure.report.doors import predictions_in
from howsure.report.findings import case_of, changes, findings, guarantees, verdict
from howsure.report.focus import By, Focus, cuts_known, focused, sliced
from howsure.report.labels import label_section
from howsure.report.masks import image_section, image_verdict
from howsure.report.measurement import Sureness, measured
from howsure.report.positive import THRESHOLDS, binary
from howsure.report.provenance import provenance
from howsure.report.report import Report
from howsure.report.slices import slices
from howsure.report.summary import Summary
from howsure.report.views import band_rows, histogram, scatter, views
from howsure.tallies.tally import Tally
from howsure.uncertainty.claims import calibration_test


@frozen(eq=False)
class Asked:
    """What a caller asks of a report beside the numbers: limits, and what it says of where the data
    come from.
    """

    sure: Sureness
    origin: Provenance
    images: Any = None
    before: Predictions | None = None  # the same samples before calibration ...
    score: Score = "max_prob"  # by which they are shown
    after: Predictions | None = None  # ... and after it
    notices: Sequence[FindingData] = ()  # what keeps the report from being about all rows
    streamed: Streamed | None = None
    thresholds: Sequence[float] = THRESHOLDS  # at which the positive class is called
    threshold: float | None = None  # of the score, at which slices are accepted


def evaluate(
    preds: Predictions | object,
    scores: Sequence[Score] | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
    positive: str | int | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    by: By | None = None,
    threshold: float | None = None,
    loss: str | None = None,
    image_score: str | None = None,
    images: Any = None,
    before: Predictions | None = None,
    files: Sequence[str | Path] = (),
    command: str | None = None,
) -> Report:
    """Measure everything that the data allow, each number with an interval or the reason why not.

    A table of pandas, polars or arrow whose columns are called as in files is taken as it is
    (`Predictions.from_frame`).

    The report is about the first score, `max_prob` unless told otherwise; further scores get the
    ranking metrics.

    `positive` names the class that a clinician asks about (class 1 of two unless given); its
    section says what happens where cases are called positive from each of `thresholds` on. `by`
    names columns whose values are compared: `"hospital"`, `["hospital", "age:40,60"]`, `["age:4"]`
    for four bins of equal size, or a mapping of names to values; `threshold` is the score from
    which on samples count as accepted there. `images`, one per sample, make thumbnails of likely
    label errors; `before`, the same samples before calibration, adds what changed. `files` and
    `command` are only recorded. `loss="dice"` adds images as units to a report on pixels
    (`image_tally`), `images` being one picture for each, and `image_score` a column that orders
    them (`images_of`). Limits hold at `level`; where the predictions have a `group`, its samples
    count as one.

    >>> from howsure import Predictions
    >>> evaluate(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1]))
    <Report: n=2, k=2, 27 metrics>
    """
    preds = predictions_in(preds, scores)
    sure = Sureness(level, seed).check()
    origin = provenance(preds, files, command, seed=seed, level=level)
    preds, columns = sliced(preds, by)
    focus = focused(Focus(positive, loss=loss, image_score=image_score), cuts_known(preds, columns))
    first: Score = scores[0] if scores else "max_prob"
    asked = Asked(
        sure, origin, images, before, first, preds, thresholds=thresholds, threshold=threshold
    )
    return report(Summary.of(preds, scores, focus), asked)


def report(s: Summary, asked: Asked) -> Report:
    """The report of a summary: of predictions in memory, or of all parts of a stream."""
    sure, t, further = asked.sure, s.tally, list(s.tallies)[1:]
    part = told("measuring", ["numbers", "findings", "promises", *further, "pictures", "parts"])
    next(part)
    items = catalogue.possible(
        s.shape, t, many_labels=s.labels is not None, images=s.images is not None
    )
    numbers = anchored(measured(items, s, s.first, sure), t)
    next(part)
    found = [*asked.notices, *findings(case_of(s)), *_changes(asked)]
    names, source = s.shape.class_names, s.source("score", s.first)
    next(part)
    promised, test = guarantees(source, s.n, sure.level), _claims_test(source, sure.seed)
    past = None if asked.before is None else Summary.of(asked.before, [asked.score])
    others = {name: _further(s, name, sure) for name in islice(part, len(further))}
    next(part)
    data: ReportData = {
        "howsure": __version__,
        "schema": SCHEMA,
        "provenance": asked.origin,
        "n": s.n,
        "k": s.shape.k,
        "kind": s.shape.kind,
        "samples": s.shape.samples,
        "class_names": None if names is None else list(names),
        "score": s.first,
        "verdict": verdict(
            numbers,
            found,
            promised,
            test,
            None if s.shape.weighted else s.n,
            calibrated=asked.before is not None,
        ),
        "guarantees": promised,
        "metrics": numbers,
        "scores": others,
        "curves": {**drawn(s), **_curves_before(past)},
        "views": views(s, sure.level, None if s.images is not None else asked.images),
        "binary": binary(s, sure.level, sure.seed, asked.thresholds),
        "calibration": _calibration(asked),
        "findings": found,
    }
    next(part)
    if past is not None:
        data["views"]["before"] = {"histogram": histogram(past), "scatter": scatter(past)}
    if test is not None:
        data["calibration_test"] = test
    if isinstance(source, Outcomes) and source.group is not None:
        data["groups"] = int(source.units.max()) + 1
    if (by := slices(s, sure, asked.threshold)) is not None:
        data["slices"] = by
    if asked.streamed is not None:
        data["streamed"] = asked.streamed
    if t.approximate is not None:
        data["approximate"] = t.approximate
    if s.labels is not None:
        samples = None if s.details is None else s.details.samples
        data["labels"] = label_section(
            s.labels, None if samples is None else samples.preds, sure.level
        )
    if s.images is not None:
        data["images"] = image_section(s.images, sure.level, s.shape.names, asked.images)
        last = data["verdict"][-1]
        data["verdict"] = [
            *image_verdict(numbers["dice_loss"], data["images"]),
            f"Pixels: {last[:1].lower()}{last[1:]}",
        ]
    return Report(data)


def _claims_test(source: Tally | Outcomes | str, seed: int) -> ClaimsTest | None:
    """The test of calibration; None where the score is no claim, or where the test has no null
    distribution.
    """
    if isinstance(source, str):
        return None
    try:
        return ClaimsTest(**calibration_test(source, seed)._asdict())
    except InputError:  # a score outside [0, 1], unequal weights, one group
        return None


def _further(s: Summary, score: str, sure: Sureness) -> ScoreData:
    """What is said of the order of a further score."""
    t = s.tallies[score]
    odds = curve_json(curves.odds_by_quantile(t))
    return {
        "metrics": measured(catalogue.ranking(), s, score, sure),
        "bands": band_rows(t),
        "odds_by_quantile": odds,
    }


def _changes(asked: Asked) -> list[FindingData]:
    return [] if asked.before is None or asked.after is None else changes(asked.before, asked.after)


def _calibration(asked: Asked) -> Changes | None:
    if asked.before is None or asked.after is None:
        return None
    from howsure.calibrators.change import changes_of  # calibrators, which most reports do without
    from howsure.report.calibration import answers_changed, change_data

    found = changes_of(asked.before, asked.after, asked.sure.level, asked.sure.seed)
    return {"metrics": change_data(found), "changed": answers_changed(asked.before, asked.after)}


def _curves_before(past: Summary | None) -> dict[str, CurveData]:
    """Every curve before calibration."""
    if past is None:
        return {}
    found = {
        f"{name}_before": c for name, c in drawn(past).items() if name != "ideal_threshold_diagram"
    }
    if is_claim(past.tally):
        found["reliability_before"] = curve_json(curves.corp(past.tally, band=False).curve)
    return found
