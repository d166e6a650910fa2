"""evaluate(): predictions → summary → report; `build_report` is the one builder, of loaded and of
streamed data.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from numpy.typing import ArrayLike

from howsure import curves, metrics
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure._core.text import StagedJob
from howsure._core.version import __version__
from howsure.predictions import Predictions
from howsure.predictions.frames import is_frame
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import combine_arrays
from howsure.report.catalogue import Score, list_possible_items, list_ranking_items
from howsure.report.focus import By, Focus, attach_slices
from howsure.report.focus_sections import THRESHOLDS, build_binary, build_slices
from howsure.report.label_sections import build_label_section
from howsure.report.masks import build_image_section, write_image_verdict
from howsure.report.measurement import Sureness, build_claims_test, measure_items
from howsure.report.report import Report, build_provenance
from howsure.report.report_types import (
    SCHEMA,
    FindingData,
    Provenance,
    ReportData,
    ScoreData,
    Streamed,
    build_curve_data,
)
from howsure.report.score_findings import find_all
from howsure.report.summary import Summary
from howsure.report.verdict import build_case, compute_guarantees
from howsure.report.verdict_text import measure_base_rate, qualify_guarantees, write_verdict
from howsure.report.views import build_views, draw_curves, draw_curves_before, list_bands
from howsure.tallies.tally import is_tally, needs_zero_one

FROM_ARRAYS = "hs.evaluate(probs=P, labels=y)"


@frozen(eq=False)
class ReportRequest:
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
    preds: Predictions | object = None,
    scores: Sequence[Score] | None = None,
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    correct: ArrayLike | None = None,
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

    Arrays go by name: `probs=` or `logits=` with `labels=`, or `confidence=` with `correct=`. A
    table of pandas, polars or arrow whose columns are called as in files is taken as it is
    (`Predictions.from_frame`). Of a tally everything is reported that a tally knows.

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
    >>> evaluate(confidence=[0.9, 0.8, 0.7], correct=[1, 1, 0])
    <Report: n=3, k=None, 22 metrics>
    """
    sure = Sureness(level, seed).check()
    values = {"probs": probs, "logits": logits, "confidence": confidence}
    if any(array is not None for array in (*values.values(), labels, correct)):
        if preds is not None:
            raise InputError("there are predictions and arrays; give one of them.")
        preds = combine_arrays(values, labels, correct, "evaluate")
    if is_tally(preds):
        if any(option is not None for option in (scores, positive, by, loss, images, before)):
            raise InputError(
                "a tally knows scores and losses only; classes, columns and images need predictions."
            )
        needs_zero_one(preds, "evaluate")
        origin = build_provenance(preds, files, command, seed=seed, level=level)
        return build_report(Summary.of_tally(preds), ReportRequest(sure=sure, origin=origin))
    preds = to_predictions(preds, scores)
    # Before columns are attached: the hash is that of what the caller gave.
    origin = build_provenance(preds, files, command, seed=seed, level=level)
    preds, cuts = attach_slices(preds, by)
    focus = Focus(positive=positive, by=cuts, loss=loss, image_score=image_score)
    request = ReportRequest(
        sure=sure,
        origin=origin,
        images=images,
        before=before,
        score=scores[0] if scores else "max_prob",
        after=preds,
        thresholds=thresholds,
        threshold=threshold,
    )
    return build_report(Summary.of(preds, scores, focus), request)


def to_predictions(data: object, second: object = None) -> Predictions:
    """Predictions as they are, those of a table; of anything else an `InputError` says what to
    write.

    >>> to_predictions({"prob_0": [0.9], "prob_1": [0.1], "label": [0]})
    <Predictions: n=1, k=2, probs, accuracy 1>
    """
    if isinstance(data, Predictions):
        if _is_array(second):
            raise InputError(
                f"the second argument is a {type(second).__name__}; scores are names or functions."
            )
        return data
    if isinstance(data, str | os.PathLike):
        raise InputError(f"a file is read first: hs.evaluate(hs.read({os.fspath(data)!r})).")
    if hasattr(data, "predict_proba") or hasattr(data, "decision_function"):
        raise InputError(
            "a classifier is asked first: hs.evaluate(hs.Predictions.from_estimator(model, X, y))."
        )
    if _is_array(second) or isinstance(data, tuple):
        raise InputError(
            f"labels y and probabilities P alone do not say which is which; write {FROM_ARRAYS}."
        )
    if is_frame(data):
        return Predictions.from_frame(data)
    raise InputError(
        f"a {type(data).__name__} does not say whether it holds logits or probabilities; "
        f"write {FROM_ARRAYS}, or logits=P."
    )


def _is_array(value: object) -> bool:
    if not isinstance(value, list | tuple):
        return hasattr(value, "__array__")
    cells = cast("Sequence[object]", value)
    return len(cells) > 0 and isinstance(cells[0], int | float | list)


def build_report(s: Summary, request: ReportRequest) -> Report:
    """The report of a summary: of predictions in memory, or of all parts of a stream."""
    sure, t = request.sure, s.tally
    further = list(s.tallies)[1:]
    stages = ["numbers", "findings", "guarantees", *further, "pictures", "parts"]
    job = StagedJob("measuring", stages)

    job.stage("numbers")
    items = list_possible_items(
        s.shape, t, many_labels=s.labels is not None, images=s.images is not None
    )
    numbers = measure_items(items, s, s.first, sure)
    if numbers["aurc"]["value"] is not None:
        # What a random and what the best order of these answers would give.
        anchors = {"random": float(t.total / t.n), "best": metrics.optimal_aurc(t)}
        numbers["aurc"]["anchors"] = anchors

    job.stage("findings")
    listed = [*request.notices, *find_all(build_case(s, sure.level))]
    changes = None
    if request.before is not None and request.after is not None:
        from howsure.report.calibration_report import build_changes, find_changes

        listed += find_changes(request.before, request.after)
        changes = build_changes(request.before, request.after, sure.level, sure.seed)

    job.stage("guarantees")
    source = s.source("score", s.first)
    promised = compute_guarantees(source, s.n, sure.level)
    test = build_claims_test(source, sure.seed)
    base = measure_base_rate(s, numbers["accuracy"], sure.level)
    qualify_guarantees(promised, s, base)

    others: dict[str, ScoreData] = {}
    for score in further:
        job.stage(score)
        others[score] = {
            "metrics": measure_items(list_ranking_items(), s, score, sure),
            "bands": list_bands(s.tallies[score]),
            "odds_by_quantile": build_curve_data(curves.odds_by_quantile(s.tallies[score])),
        }

    job.stage("pictures")
    drawn, before = draw_curves(s), None
    if request.before is not None:
        before = Summary.of(request.before, [request.score])
        drawn |= draw_curves_before(before)
    # Pictures of whole images belong to the section of images, not to single pixels.
    pictures = None if s.images is not None else request.images
    names = s.shape.class_names
    data: ReportData = {
        "howsure": __version__,
        "schema": SCHEMA,
        "provenance": request.origin,
        "n": s.n,
        "k": s.shape.k,
        "kind": s.shape.kind,
        "samples": s.shape.samples,
        "class_names": None if names is None else list(names),
        "score": s.first,
        "verdict": [],  # written below, from the report itself
        "guarantees": promised,
        "metrics": numbers,
        "scores": others,
        "curves": drawn,
        "views": build_views(s, sure.level, pictures, before),
        "binary": build_binary(s, sure.level, sure.seed, request.thresholds),
        "calibration": changes,
        "findings": listed,
    }

    job.stage("parts")
    if test is not None:
        data["calibration_test"] = test
    if base is not None:
        data["base_rate"] = base
    if isinstance(source, Outcomes) and source.group is not None:
        data["groups"] = int(source.units.max()) + 1
    _add_sections(data, s, request)
    return Report(data)


def _add_sections(data: ReportData, s: Summary, request: ReportRequest) -> None:
    """Write the sections that only some reports have."""
    level = request.sure.level
    slices = build_slices(s, request.sure, request.threshold)
    if slices is not None:
        data["slices"] = slices
    if request.streamed is not None:
        data["streamed"] = request.streamed
    if s.tally.approximate is not None:
        data["approximate"] = s.tally.approximate
    if s.labels is not None:
        preds = None
        if s.details is not None and s.details.samples is not None:
            preds = s.details.samples.preds
        data["labels"] = build_label_section(s.labels, preds, level)
    data["verdict"] = write_verdict(data, None if s.shape.weighted else s.n)
    if s.images is not None:
        data["images"] = build_image_section(s.images, level, s.shape.names, request.images)
        # The verdict is about images; that of the pixels becomes its last sentence.
        pixels = data["verdict"][-1]
        data["verdict"] = [
            *write_image_verdict(data["metrics"]["dice_loss"], data["images"]),
            f"Pixels: {pixels[:1].lower()}{pixels[1:]}",
        ]
