"""evaluate(): predictions → summary → report; `build_report` is the one builder, of loaded and of
streamed data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from howsure import curves, losses, metrics
from howsure._core.checks import Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.text import StagedJob
from howsure._core.version import __version__
from howsure.formats.count_tables import CountTable
from howsure.predictions import Predictions
from howsure.predictions.frames import is_frame
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.predictions import NO_CLAIM, combine_arrays
from howsure.report.catalogue import (
    TOP_K,
    Score,
    choose_scores,
    list_claim_items,
    list_possible_items,
    resolve_score,
)
from howsure.report.focus import By, Focus, attach_slices
from howsure.report.focus_sections import build_binary, build_slices
from howsure.report.label_sections import build_label_section
from howsure.report.masks import build_image_section, write_image_verdict
from howsure.report.measurement import Sureness, build_claims_test, measure_items
from howsure.report.report import Report, build_provenance
from howsure.report.report_types import (
    SCHEMA,
    THRESHOLDS,
    CurveData,
    FindingData,
    Provenance,
    ReportData,
    ScoreData,
    Streamed,
    build_curve_data,
)
from howsure.report.score_findings import find_all
from howsure.report.summary import Summary
from howsure.report.verdict import build_case, choose_guarantee, compute_guarantees
from howsure.report.verdict_text import measure_base_rate, qualify_guarantees, write_verdict
from howsure.report.views import (
    build_suggestions,
    build_views,
    draw_curves,
    draw_curves_before,
    list_bands,
)
from howsure.scores import top_k_mass
from howsure.tallies.tally import is_tally, needs_zero_one

TOP_5 = "top-5"
FROM_ARRAYS = "hs.evaluate(probs=P, labels=y)"


class GradedAnswers(InputError):
    """No report can be written of these predictions, because their answers are graded."""

    answers: Predictions | CountTable

    @classmethod
    def of(cls, answers: Predictions | CountTable) -> GradedAnswers:
        """The refusal of a report, with the answers that it is about."""
        error = cls(
            "these answers are graded, and a report needs right or wrong; "
            "howsure evaluate without -o, --html and --calibrator prints the numbers that grades allow."
        )
        error.answers = answers
        return error


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
    page: bool = True  # whether a page may be made of it


def evaluate(
    preds: Predictions | object = None,
    scores: Sequence[Score] | None = None,
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    correct: ArrayLike | None = None,
    class_names: Iterable[object] | None = None,
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
    page: bool = True,
) -> Report:
    """Measure everything that the data allow, each number with an interval or the reason why not.

    Arrays go by name: `probs=` or `logits=` with `labels=` (texts need `class_names=`, in the
    order of the columns), or `confidence=` with `correct=`. A
    table of pandas, polars or arrow whose columns are called as in files is taken as it is
    (`Predictions.from_frame`). Of a tally, or of a `Summary`, everything is reported that it knows,
    and `streamed.left_out` says what it does not.

    The report is about the first score, `max_prob` unless told otherwise; further scores get the
    ranking metrics.

    `positive` names the class that a clinician asks about (class 1 of two unless given); its
    section says what happens where cases are called positive from each of `thresholds` on. `by`
    names columns whose values are compared: `"hospital"`, `["hospital", "age:40,60"]`, `["age:4"]`
    for four bins of equal size, or a mapping of names to values; `threshold` is the score from
    which on samples count as accepted there. `images`, one per sample, make thumbnails of likely
    label errors; `before`, the same samples before calibration, adds what changed. `files` and
    `command` are only recorded. Without `page` the report is for text: curves, and guarantees for
    all risks that a page offers, are left out.

    `loss` is what counts as wrong. `"top-5"`: the label is not among the five most probable
    classes, whose probability together is the claim. `"dice"` adds images as units to a report on
    pixels (`image_tally`), `images` being one picture for each, and `image_score` a column that
    orders them (`images_of`); `"dice-pixels"` the AURC of 1 − Dice of all kept pixels
    (`dice_tally`). Limits hold at `level`; where the predictions have a `group`, its samples
    count as one.

    >>> from howsure import Predictions
    >>> evaluate(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1]))
    <Report: n=2, k=2, 28 metrics>
    >>> evaluate(confidence=[0.9, 0.8, 0.7], correct=[1, 1, 0])
    <Report: n=3, k=None, 23 metrics>
    """
    sure = Sureness(level, seed).check()
    values = {"probs": probs, "logits": logits, "confidence": confidence}
    if any(array is not None for array in (*values.values(), labels, correct)):
        if preds is not None:
            raise InputError("there are predictions and arrays; give one of them.")
        preds = combine_arrays(values, labels, correct, "evaluate", class_names)
    elif class_names is not None:
        raise InputError("class_names= goes with probs= or logits=; a table names its own.")
    if is_tally(preds) or isinstance(preds, Summary):
        if any(option is not None for option in (scores, positive, by, loss, images, before)):
            raise InputError(
                "a tally or a summary knows sums alone; classes, columns and images need predictions."
            )
        summary = preds
        if is_tally(summary):
            needs_zero_one(summary, "evaluate")
            summary = Summary.of_tally(summary)
        files_read = len(summary.files)
        request = ReportRequest(
            sure=sure,
            origin=build_provenance(summary.tally, files, command, seed=seed, level=level),
            streamed={
                "files": files_read,
                "parts": files_read,
                "of": files_read,
                "resumed": 0,
                "partial": False,
                "skipped": [],
                "left_out": summary.left_out(),
            },
            thresholds=thresholds,
            threshold=threshold,
        )
        return build_report(summary, request)
    preds = to_predictions(preds, scores).drop_equal_weights()
    if preds.graded:
        raise GradedAnswers.of(preds)
    # Before columns are attached: the hash is that of what the caller gave.
    origin = build_provenance(preds, files, command, seed=seed, level=level)
    if loss == TOP_5:
        if before is not None:
            raise InputError("the calibrator is about the top answer; leave it out with top-5.")
        preds, scores = judge_by_top_5(preds, scores)
    preds, cuts = attach_slices(preds, by)
    focus_loss = None if loss == TOP_5 else loss
    focus = Focus(positive=positive, by=cuts, loss=focus_loss, image_score=image_score)
    request = ReportRequest(
        sure=sure,
        origin=origin,
        images=images,
        before=before,
        score=scores[0] if scores else preds.score_name,
        after=preds,
        thresholds=thresholds,
        threshold=threshold,
        page=page,
    )
    report = build_report(Summary.of(preds, scores, focus), request)
    if loss == TOP_5:
        meaning = "Right means here that the label is among the five most probable classes."
        report.data["verdict"].insert(0, meaning)
    return report


def judge_by_top_5(
    preds: Predictions, scores: Sequence[Score] | None
) -> tuple[Predictions, list[Score]]:
    """The same samples, right where the label is among the five most probable classes, with the
    probability of these as confidence; and the scores that they had.
    """
    if preds.needs_vector(TOP_5) <= TOP_K:
        raise InputError(f"there are {preds.k} classes; {TOP_5} needs more than {TOP_K}.")

    def keep(score: Score) -> Score:
        # A score is a function of predictions; this one knows those that these were made from.
        name, function = resolve_score(score)
        column = np.asarray(function(preds))
        if name == "top_k_mass":
            column = np.minimum(column, 1.0)  # sums of five may round up

        def known(_: Predictions) -> Floats:
            return column

        known.__name__ = name
        return known

    judged = replace(
        preds,
        kind="confidence",
        values=np.minimum(top_k_mass(preds, TOP_K), 1.0),
        k=None,
        class_names=None,
        known_labels=None,
        known_correct=losses.top_k(TOP_K)(preds) == 0,
    )
    return judged, [keep(score) for score in scores or ["top_k_mass", *choose_scores(preds)]]


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
    if hasattr(data, "predictions") and hasattr(data, "label_ids"):
        raise InputError(
            f"a {type(data).__name__} does not say whether it holds logits or probabilities; "
            "write hs.evaluate(logits=out.predictions, labels=out.label_ids), or probs=."
        )
    first = _get_first(data)
    if _is_pipeline_answer(_get_first(first)):
        raise InputError(
            "all scores of a pipeline stand in another order in each row; write rows = [sorted(one, "
            "key=lambda x: x['label']) for one in out] and hs.evaluate(probs=[[x['score'] for x in row] "
            "for row in rows], labels=y, class_names=[x['label'] for x in rows[0]])."
        )
    if _is_pipeline_answer(first):
        raise InputError(
            "labels and scores of a pipeline do not say which answers are right; write hs.evaluate("
            "{'confidence': [one['score'] for one in out], 'prediction': [one['label'] for one in out], 'label': y})."
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


def _get_first(value: object) -> object:
    cells = cast("list[object]", value) if isinstance(value, list) else []
    return cells[0] if cells else None


def _is_pipeline_answer(one: object) -> bool:
    """Whether this is what pipelines of Hugging Face say of a sample: a label and its score."""
    return isinstance(one, Mapping) and "label" in one and "score" in one


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
        s.shape,
        t,
        many_labels=s.labels is not None,
        images=s.images is not None,
        pixels=s.asks_pixels,
    )
    numbers = measure_items(items, s, s.first, sure)
    if s.shape.kind == "score":
        for item in list_claim_items():
            numbers[item.name] = {"value": None, "why": NO_CLAIM, "better": item.better}
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
    test = None
    if s.shape.kind != "score":
        test = build_claims_test(source, sure.seed)
    base = measure_base_rate(s, numbers["accuracy"], sure.level)
    qualify_guarantees(promised, s, base)

    others: dict[str, ScoreData] = {}
    ranking = [item for item in items if item.needs in ("order", "pixels")]
    for score in further:
        job.stage(score)
        others[score] = {
            "metrics": measure_items(ranking, s, score, sure),
            "bands": list_bands(s.tallies[score]),
            "odds_by_quantile": build_curve_data(curves.odds_by_quantile(s.tallies[score])),
        }

    job.stage("pictures")
    drawn, before = dict[str, CurveData](), None
    if request.before is not None:
        before = Summary.of(request.before, [request.score])
    if request.page:
        drawn = draw_curves(s)
        if before is not None:
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
        "views": build_views(s, sure.level, pictures, before, page=request.page),
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
    guarantee = choose_guarantee(data.get("guarantees", []))
    if guarantee is not None and request.page:
        suggested = build_suggestions(s, guarantee["risk"])
        if suggested is not None:
            data["suggestions"] = suggested
    data["verdict"] = write_verdict(data, None if s.shape.weighted else s.n)
    if s.images is not None:
        data["images"] = build_image_section(s.images, level, s.shape.names, request.images)
        # The verdict is about images; that of the pixels becomes its last sentence.
        pixels = data["verdict"][-1]
        data["verdict"] = [
            *write_image_verdict(data["metrics"]["dice_loss"], data["images"]),
            f"Pixels: {pixels[:1].lower()}{pixels[1:]}",
        ]
