"""What a calibrator changes on a test set: before, after, and where it does harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from howsure import losses, metrics
from howsure._core import checks
from howsure._core.checks import Floats, InputError
from howsure._core.checks import build_frame as frame
from howsure._core.frozen import frozen
from howsure._core.text import count_decimals
from howsure.calibrators import Calibrator, Identity, SecondOpinion, Temperature
from howsure.calibrators.choice import (
    CALIBRATORS,
    CalibrationChange,
    Choice,
    LimitedNumber,
    Metric,
    choose_calibrator,
    compare_before_after,
    evaluate_metric,
)
from howsure.calibrators.per_label import apply_per_label
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes
from howsure.predictions.read_options import BOUNDARY_DISTANCE
from howsure.report.render.sentences import format_percent, get_meaning
from howsure.report.report import save_text
from howsure.report.report_types import (
    CalibrationData,
    Candidate,
    ChangeData,
    Changes,
    ChoiceData,
    CurveData,
    FindingData,
    Value,
)
from howsure.report.report_types import Number as NumberData
from howsure.scores import entropy
from howsure.tallies.tally import Tally
from howsure.uncertainty.intervals import paired_difference
from howsure.uncertainty.means import describe_few_groups, standard_error

if TYPE_CHECKING:
    from howsure.report.render.text_tables import Sheet

__all__ = ["CalibrationReport", "calibration_report"]

SCALING_METHODS = {
    "temperature": "Temperature scaling",
    "diagonal": "Diagonal structured scaling",
    "full": "Structured scaling",
    "vector": "Vector scaling",
    "matrix": "Matrix scaling",
    "second opinion": "The second opinion",
}
PURPOSE_METRICS = ("ece", "nll", "correctness_nll")  # what calibration is for
WORSE_Z = 2.326  # one side of 99 %
LOSS_WORDS = {
    "nll": "NLL",
    "brier": "the Brier score",
    "correctness_brier": "the Brier score of the confidence",
}


@frozen
class CalibrationReport:
    """The outcome of `calibration_report`.

    `methods` has the value of every metric for every calibrator fitted on the validation set, on
    the test set, and the AURC of scores that only rank (entropy; `boundary_distance`, where the test
    set has such a column); `choice` says how the method was chosen, None where it was given; `findings` and
    `notes` say in words what changed. `rows()` is the table as text, `to_dict()` all of it as JSON.

    >>> preds = Predictions.from_confidence([0.9, 0.9, 0.9, 0.6] * 20, [1, 0, 1, 0] * 20)
    >>> report = calibration_report(preds, preds, "isotonic")
    >>> ece = report.changes[0]
    >>> ece.before[0], round(ece.after[0], 3), ece.verdict
    (0.325, 0.0, 'better')
    """

    method: str
    calibrator: Calibrator
    n_fit: int
    n_test: int
    level: float
    changes: tuple[CalibrationChange, ...]
    methods: dict[str, dict[str, float]]
    choice: Choice | None
    findings: tuple[FindingData, ...]
    notes: tuple[str, ...]
    changed: int = 0
    groups: int | None = None
    diagrams: Mapping[str, CurveData] = field(default_factory=dict[str, CurveData])

    @property
    def lead(self) -> list[str]:
        """What changed, in two sentences."""
        return write_lead(self.method, self.changes, self.changed, self.n_test)

    def to_text(self, path: str | Path | None = None, *, width: int = 110) -> str:
        """What `howsure calibrate` prints."""
        return save_text(self._build_sheet().text(width), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The same as Markdown."""
        return save_text(self._build_sheet().markdown(), path)

    def frame(self, library: str = "pandas") -> Any:
        """Every metric before and after as a data frame of pandas or polars."""
        rows: list[dict[str, Any]] = []
        for change in self.changes:
            difference, low, high = change.difference
            rows.append(
                {
                    "metric": change.metric,
                    "before": change.before[0],
                    "after": change.after[0],
                    "difference": difference,
                    "low": low,
                    "high": high,
                    "verdict": change.verdict,
                }
            )
        return frame(rows, library)

    def _repr_html_(self) -> str:
        from howsure.report.render.page import render_fragment

        return render_fragment(self._build_sheet())

    def _build_sheet(self) -> Sheet:
        from howsure.report.render.report_sheet import build_calibration_sheet

        return build_calibration_sheet(self.to_dict())

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Header and one row for each metric: name, before, after, difference, verdict."""
        rows = [("metric", "before", f"after {self.method}", "difference", "")]
        for change in self.changes:
            before, after = format_number_cell(change.before), format_number_cell(change.after)
            difference = format_number_cell(change.difference, "+")
            rows.append((change.metric, before, after, difference, change.verdict))
        return rows

    def to_dict(self) -> CalibrationData:
        """Strict JSON: nan and infinities are null."""
        methods: dict[str, dict[str, float | None]] = {}
        for method, values in self.methods.items():
            methods[method] = {name: _drop_infinite(value) for name, value in values.items()}
        choice: ChoiceData | None = None
        if self.choice is not None:
            table: dict[str, Candidate] = {}
            for row in self.choice.table:
                table[row.name] = {
                    "value": _drop_infinite(row.value),
                    "low": _drop_infinite(row.low),
                    "high": _drop_infinite(row.high),
                    "gain": build_number_data((row.gain, row.gain_low, row.gain_high)),
                    "real": row.real,
                    "behind": row.behind,
                    "changed": row.changed,
                    "note": row.note or None,
                }
            choice = {
                "criterion": self.choice.criterion,
                "folds": self.choice.folds,
                "seed": self.choice.seed,
                "winner": self.choice.winner,
                "table": table,
            }
        fitted = self.calibrator.fitted
        data: CalibrationData = {
            "method": self.method,
            "status": None if fitted is None else fitted.status,
            "n_fit": self.n_fit,
            "n_test": self.n_test,
            "level": self.level,
            "metrics": build_change_data(self.changes),
            "methods": methods,
            "choice": choice,
            "findings": list(self.findings),
            "notes": list(self.notes),
            "lead": self.lead,
            "changed": self.changed,
        }
        if self.groups is not None:
            data["groups"] = self.groups
        if self.diagrams:
            data["diagrams"] = dict(self.diagrams)
        return data


def calibration_report(
    val: Predictions,
    test: Predictions,
    method: str = "all",
    *,
    criterion: Metric | None = None,
    objective: Literal["averaged", "per_pass"] = "averaged",
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
    page: bool = True,
) -> CalibrationReport:
    """Fit on `val`, compare before and after on `test`, and say so where calibration does harm.

    `method` is the name of a calibrator in `calibrators.choice.CALIBRATORS`, or "all": then
    `choose_calibrator` chooses on `val` alone, with `criterion` and `folds`. `objective` is that of
    `Temperature.fit`, for samples. The test set is never fitted to. Without `page` the threshold
    diagrams, which text does not show, are left out.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 800)
    >>> preds = Predictions.from_logits(8 * (rng.normal(size=(800, 3)) + 2 * np.eye(3)[y]), y)
    >>> report = calibration_report(preds[:400], preds[400:], "temperature")
    >>> {c.metric: c.verdict for c in report.changes}["nll"]
    'better'
    """
    needs_predictions(val, "calibration_report")
    if method != "all" and method not in CALIBRATORS:
        raise InputError(
            f"there is no calibrator {method!r}; known: all, {', '.join(CALIBRATORS)}."
        )
    if objective != "averaged" and method != "temperature":
        raise InputError(f"objective {objective!r} is one of temperature; method is {method!r}.")
    if method == "all":
        choice = choose_calibrator(val, criterion=criterion, folds=folds, level=level, seed=seed)
        name, calibrator, candidates = choice.winner, choice.calibrator, choice.fitted
    else:
        choice, name = None, method
        fit = CALIBRATORS[method]
        if objective != "averaged":
            fit = partial(Temperature.fit, objective=objective)
        calibrator = apply_per_label(fit)(val)
        candidates = {"none": Identity(), name: calibrator}
    after = calibrator(test)
    changes = compare_before_after(test, after, level, seed)
    methods: dict[str, dict[str, float]] = {}
    tallies: dict[str, Tally] = {}
    # In the order of the list of calibrators, whatever the order of the candidates.
    for candidate in CALIBRATORS:
        if candidate in candidates:
            judged = after if candidate == name else candidates[candidate](test)
            methods[candidate] = {
                change.metric: evaluate_metric(getattr(metrics, change.metric), judged)
                for change in changes
            }
            tallies[candidate] = Outcomes.of(judged).tally()
    for score, values in list_ranking_scores(test).items():
        tallies[score] = Outcomes.of(test, values).tally()
        methods[score] = {"aurc": metrics.aurc(tallies[score])}
    diagrams: dict[str, CurveData] = {}
    if page:
        from howsure.report.views import draw_diagram

        diagrams = {name: draw_diagram(tally) for name, tally in tallies.items()}
    findings: list[FindingData] = []
    if not isinstance(calibrator, Identity):
        findings = find_changes(test, after)
    notes = _note_harm(name, changes, findings)
    if choice is not None and name == "none":
        notes.append(
            "No calibrator is clearly better than doing nothing on the validation set, so nothing is changed."
        )
    else:
        notes += _note_unlike_sets(changes, val, calibrator)
    groups = None
    if test.group is not None:
        groups = len(np.unique(np.asarray(test.group)))
    unsafe = describe_few_groups(groups)
    if unsafe is not None:
        notes.append(f"{unsafe}.")
    return CalibrationReport(
        method=name,
        calibrator=calibrator,
        n_fit=val.n,
        n_test=test.n,
        level=level,
        changes=changes,
        methods=methods,
        choice=choice,
        findings=tuple(findings),
        notes=tuple(notes),
        changed=count_changed_answers(test, after),
        groups=groups,
        diagrams=diagrams,
    )


def list_ranking_scores(test: Predictions) -> dict[str, Floats]:
    """The scores that rank the answers as they are and claim no probability (Vemuri 2020, chapter
    6): entropy, and the distance to the decision boundary where it was given.
    """
    scores: dict[str, Floats] = {}
    # With two classes the entropy has the order of the confidence.
    if test.k is not None and test.k > 2:
        scores["entropy"] = entropy(test)
    distance = (test.attributes or {}).get(BOUNDARY_DISTANCE)
    if distance is not None:
        column = checks.column(distance, BOUNDARY_DISTANCE).astype(np.float64)
        scores["boundary distance"] = checks.finite(column, BOUNDARY_DISTANCE)
    return scores


def opinion_report(
    val: tuple[Predictions, Predictions],
    test: tuple[Predictions, Predictions],
    *,
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
) -> CalibrationReport:
    """A second opinion, fitted on `val` and compared on `test` with the own confidence; each holds
    the predictions of both models, ours first.
    """
    opinion = SecondOpinion.fit(*val, folds=folds, level=level, seed=seed)
    after = opinion(*test)
    before = replace(after, values=test[0].confidence)
    name, calibrator = "none", Identity()
    if opinion.used:
        name, calibrator = "second opinion", opinion
    changes = compare_before_after(before, after, level, seed)
    methods: dict[str, dict[str, float]] = {}
    for method, judged in (("none", before), (name, after)):
        methods[method] = {
            change.metric: evaluate_metric(getattr(metrics, change.metric), judged)
            for change in changes
        }
    gain = format_number_cell((opinion.gain, opinion.gain_low, opinion.gain_high), "+")
    note = (
        f"AURC with the second opinion minus without, on rows that its curve has not seen: {gain}"
    )
    if opinion.used:
        note += "; a guarantee needs rows that were not used for it."
    else:
        note += ": the order of right and wrong answers is not clearly better, so it is not used."
    return CalibrationReport(
        method=name,
        calibrator=calibrator,
        n_fit=val[0].n,
        n_test=test[0].n,
        level=level,
        changes=changes,
        methods=methods,
        choice=None,
        findings=(),
        notes=(note, *_note_harm(name, changes, ())),
    )


def count_changed_answers(before: Predictions, after: Predictions) -> int:
    """How many answers a calibrator turned into others; with top labels only, none can change."""
    if not before.vectors:
        return 0
    return int((before.prediction != after.prediction).sum())


def write_lead(
    method: str, changes: Sequence[CalibrationChange], changed: int, n: int
) -> list[str]:
    """What a calibrator changed, for those who read nothing else."""
    if method == "none":
        return ["Nothing was corrected: no calibrator is clearly better than doing nothing."]
    who = SCALING_METHODS.get(method, method.capitalize())
    answers = f"none of {n:,} answers changed"
    if changed:
        answers = f"{changed:,} of {n:,} answers changed"
    by_metric = {change.metric: change for change in changes}
    ece, aurc = by_metric.get("ece"), by_metric.get("aurc")
    if ece is None:
        return [f"{who} was fitted; {answers}."]
    did = {"better": "cut", "worse": "raised"}.get(ece.verdict, "moved")
    text = f"from {ece.before[0]:.3f} to {ece.after[0]:.3f}"
    _, low, high = ece.difference
    if ece.verdict not in ("better", "worse"):
        text += ", which may be chance"
    elif isfinite(low) and isfinite(high):
        least, most = sorted((abs(low), abs(high)))
        text += f", by {least:.3f} to {most:.3f}"
    sentences = [f"{who} {did} the calibration error (ECE) {text}; {answers}."]
    if aurc is not None:
        what = "AURC, the error rate averaged over all shares automated,"
        before, after = f"{aurc.before[0]:.4g}", f"{aurc.after[0]:.4g}"
        if aurc.verdict == "unchanged":
            sentences.append(f"{what} stays {before}.")
        elif aurc.verdict in ("better", "worse"):
            moved = "fell" if aurc.verdict == "better" else "rose"
            sentences.append(f"{what} {moved} from {before} to {after}.")
        else:
            sentences.append(f"{what} moved from {before} to {after}, which may be chance.")
    return sentences


def _note_harm(
    name: str, changes: Sequence[CalibrationChange], findings: Sequence[FindingData]
) -> list[str]:
    """What calibration is for and did not achieve, and what became worse for certain where no
    finding says so.
    """
    # A finding about a loss says it with more care.
    in_findings = [finding["evidence"].get("loss") for finding in findings]
    not_lower: list[str] = []
    worse: list[str] = []
    for change in changes:
        number = get_meaning(change.metric).title
        values = f"{change.before[0]:.4g} became {change.after[0]:.4g}"
        is_purpose = change.metric in PURPOSE_METRICS
        if is_purpose and change.verdict == "unclear" and change.difference[0] > 0:
            not_lower.append(
                f"{name} did not lower {number} on the test set: {values}, "
                "though the limits of the difference include 0."
            )
        if change.verdict == "worse" and change.metric not in in_findings:
            difference = format_number_cell(change.difference, "+")
            worse.append(
                f"{name} made {number} worse on the test set: {values} (difference {difference})."
            )
    return not_lower + worse


def _note_unlike_sets(
    changes: Sequence[CalibrationChange], val: Predictions, calibrator: Calibrator
) -> list[str]:
    """A validation set on which the loss fell does not speak for a test set on which it rose."""
    for change in changes:
        if change.metric.endswith("nll") and change.verdict == "worse":
            metric = getattr(metrics, change.metric)
            if not evaluate_metric(metric, calibrator(val)) < evaluate_metric(metric, val):
                return []
            number = get_meaning(change.metric).title
            return [
                f"{number} fell on the validation set and rose on the test set: the two sets are not alike."
            ]
    return []


def build_changes(before: Predictions, after: Predictions, level: float, seed: int) -> Changes:
    """What calibration changed, as report JSON."""
    return {
        "metrics": build_change_data(compare_before_after(before, after, level, seed)),
        "changed": count_changed_answers(before, after),
    }


def build_change_data(changes: Sequence[CalibrationChange]) -> dict[str, ChangeData]:
    """Each metric before and after, as report JSON."""
    return {
        change.metric: {
            "before": build_number_data(change.before),
            "after": build_number_data(change.after),
            "difference": build_number_data(change.difference),
            "verdict": change.verdict,
        }
        for change in changes
    }


def build_number_data(number: LimitedNumber) -> NumberData:
    """A value and its limits, null where they are not finite."""
    value, low, high = map(_drop_infinite, number)
    return {"value": value, "low": low, "high": high}


def _drop_infinite(x: float) -> float | None:
    return x if isfinite(x) else None


def format_number_cell(number: LimitedNumber, sign: str = "") -> str:
    """A value with its limits in brackets; `sign` "+" shows the sign of each."""
    value, low, high = number
    if isnan(value):
        return ""
    text = f"{value:{sign}.4f}"
    if isfinite(low) and isfinite(high):
        text += f" [{low:{sign}.4f}, {high:{sign}.4f}]"
    return text


def find_changes(before: Predictions, after: Predictions) -> list[FindingData]:
    """What a calibrator did, as report JSON; both hold the same samples in the same order.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 0])
    >>> [f["name"] for f in find_changes(p, p)]
    ['ranking_unchanged']
    """
    found = (
        _find_higher_loss(before, after),
        _find_ranking_change(before, after),
        _find_changed_answers(before, after),
    )
    return [finding for finding in found if finding is not None]


def _find_higher_loss(before: Predictions, after: Predictions) -> FindingData | None:
    """The loss of the corrected predictions is higher, beyond chance."""
    if not before.vectors or not after.vectors:
        name = "correctness_brier"
        old = (before.confidence - before.correct) ** 2
        new = (after.confidence - after.correct) ** 2
    else:
        name, old, new = "nll", losses.nll(before), losses.nll(after)
        # A probability of 0 for the true class makes the NLL infinite.
        if not (np.isfinite(old).all() and np.isfinite(new).all()):
            name, old, new = "brier", losses.brier(before), losses.brier(after)
    rise = new - old
    spread = standard_error(rise, before.group)
    # Written so that nan counts as chance.
    is_chance = not rise.mean() > WORSE_Z * spread
    if is_chance or rise.mean() < 1e-3 * max(float(old.mean()), 1e-9):
        return None
    return FindingData(
        name="calibration_made_it_worse",
        text=(
            f"Calibration made it worse: {LOSS_WORDS[name]} rose from {old.mean():.4g} to {new.mean():.4g} on "
            "these data."
        ),
        evidence={
            "loss": name,
            "before": float(old.mean()),
            "after": float(new.mean()),
            "standard_error": spread,
        },
        paper="Vemuri 2020, chapter 5",
    )


def _find_ranking_change(before: Predictions, after: Predictions) -> FindingData | None:
    """Whether the order of the samples is another one, and what that does to AURC."""
    old, new = (
        Outcomes(p.confidence, correct=p.correct, weight=p.weight, group=p.group)
        for p in (before, after)
    )
    old_aurc = metrics.aurc(old.tally())
    # Ranks, not scores, are compared, so that ties must be the same ties.
    old_rank = np.unique(before.confidence, return_inverse=True)[1].reshape(-1)
    new_rank = np.unique(after.confidence, return_inverse=True)[1].reshape(-1)
    if (old_rank == new_rank).all() and (before.correct == after.correct).all():
        return FindingData(
            name="ranking_unchanged",
            text=f"The ranking is unchanged by calibration: AURC stays {old_aurc:.4g}.",
            evidence={"aurc": old_aurc},
            paper="Ding et al. 2020, section 4.3",
        )
    difference, low, high = paired_difference(metrics.aurc, new, old, level=0.99)
    if not (low > 0 or high < 0):  # limits of a single sample are nan
        return None
    better_or_worse = "better" if difference < 0 else "worse"
    new_aurc = metrics.aurc(new.tally())
    decimals = count_decimals(low, high) if high > low else 4
    return FindingData(
        name="ranking_changed",
        text=(
            f"Calibration changed the ranking for the {better_or_worse}: AURC {old_aurc:.4g} became {new_aurc:.4g} "
            f"(difference {difference:+.{decimals}f}, 99 % interval {low:+.{decimals}f} to {high:+.{decimals}f})."
        ),
        evidence={"difference": difference, "low": low, "high": high},
        paper="Ding et al. 2020, section 4.3",
    )


def _find_changed_answers(before: Predictions, after: Predictions) -> FindingData | None:
    """Answers that changed, as those of averaged samples do when they are scaled."""
    if not before.vectors or not after.vectors:
        return None
    n = int((before.prediction != after.prediction).sum())
    if n == 0:
        return None
    old, new = float(before.correct.mean()), float(after.correct.mean())
    text = (
        f"{n:,} of {before.n:,} answers changed; accuracy went from {format_percent(old, 2)} to "
        f"{format_percent(new, 2)}."
    )
    paper = "Guo et al. 2017, section 4.2: a temperature of single passes changes no answer, other maps may"
    if before.samples > 1:
        text += " Scaling each pass before the mean is taken may change the largest mean."
        paper = "Laves et al. 2019, section 3 (whose claim does not hold for means)"
    evidence: dict[str, Value] = {
        "flips": n,
        "n": before.n,
        "accuracy_before": old,
        "accuracy_after": new,
    }
    return FindingData(name="predictions_flip", text=text, evidence=evidence, paper=paper)
