"""Which correction to trust: calibrators judged on samples they have not seen, and each metric
before and after.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial, wraps
from inspect import signature
from math import isfinite, isinf, nan, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtri, stdtrit

from howsure import losses, metrics
from howsure._core import checks
from howsure._core.checks import Floats, InputError, Ints, wrap_preformatted
from howsure._core.checks import build_frame as frame
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure._core.text import StagedJob
from howsure.calibrators.calibrator import Calibrator, Identity, compute_shares
from howsure.calibrators.linear import (
    Dirichlet,
    MatrixScaling,
    StructuredScaling,
    VectorScaling,
)
from howsure.calibrators.logistic import Beta, Platt
from howsure.calibrators.per_label import apply_per_label
from howsure.calibrators.step_functions import HistogramBinning, Isotonic
from howsure.calibrators.temperature import TEMPERATURE_BOUNDS, Temperature
from howsure.metrics.metric_facts import Metric
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes
from howsure.uncertainty.intervals import (
    each_interval,
    each_paired_difference,
    interval,
    paired_difference,
)
from howsure.uncertainty.means import standard_error

__all__ = ["CALIBRATORS", "Choice", "Contender", "choose_calibrator"]

Fit: TypeAlias = Callable[[Predictions], Calibrator]
SampleLoss: TypeAlias = Callable[[Predictions], Floats]  # the loss of each sample
LimitedNumber: TypeAlias = tuple[float, float, float]  # value and limits, nan where it has none


def fit_inside(fit: Callable[..., Calibrator]) -> Fit:
    """`fit`, refused where its temperature is at a bound: it would make all answers alike."""

    @wraps(fit)
    def fit_or_refuse(preds: Predictions, **options: Any) -> Calibrator:
        made = fit(preds, **options)
        assert isinstance(made, (Temperature, StructuredScaling))
        ends = made.fitted is not None and made.fitted.status in ("lower", "upper")
        if ends or made.temperature in TEMPERATURE_BOUNDS:
            raise InputError(
                f"its temperature is at a bound ({made.temperature:g}): all answers are right, "
                "or they are worse than chance."
            )
        return made

    return fit_or_refuse


CALIBRATORS: dict[str, Fit] = {  # by name; the simplest first
    "none": Identity.fit,
    "temperature": Temperature.fit,
    "diagonal": partial(StructuredScaling.fit, matrix="diagonal"),
    "vector": VectorScaling.fit,
    "platt": Platt.fit,
    "beta": Beta.fit,
    "full": StructuredScaling.fit,
    "matrix": MatrixScaling.fit,
    "dirichlet": Dirichlet.fit,
    "histogram": HistogramBinning.fit,
    "isotonic": Isotonic.fit,
}
# Those that are tried: none of them can answer with a probability of 0, which would be judged by
# the one sample where it is wrong.
CANDIDATES: dict[str, Fit] = {
    "none": Identity.fit,
    "temperature": fit_inside(partial(Temperature.fit, mixed=True)),
    "diagonal": fit_inside(CALIBRATORS["diagonal"]),
    "platt": Platt.fit,
    "beta": Beta.fit,
    "full": fit_inside(StructuredScaling.fit),
    "isotonic": partial(Isotonic.fit, floor=0.5),  # half a sample
}
TOP_LABEL_CANDIDATES = ("none", "platt", "beta", "isotonic")
REACHED_MINIMUM = ("converged", "interior")
MOST_FULL_CLASSES, LEAST_FULL_SAMPLES = 100, 250


@frozen
class Contender:
    """One calibrator on samples it has not seen: the criterion and how it differs from doing
    nothing.

    `low`, `high` and the limits of the gain are nan where there are none; `gain` below 0 is better
    where lower is better. `real` says that the limits of the gain exclude 0 on the better side,
    `behind` that those of the difference from the best contender exclude 0 on the worse side.
    `changed` counts the answers that are not those of "none". `note` says why a calibrator was left
    out or not fitted.
    """

    name: str
    value: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    real: bool
    note: str = ""
    changed: int = 0
    behind: bool = False


@frozen
class Choice:
    """The outcome of `choose_calibrator`: the table, the winner's name and the winner fitted on all
    samples.

    `fitted` has every contender fitted on all samples.

    >>> preds = Predictions.from_confidence([0.9, 0.9, 0.9, 0.6] * 50, [1, 0, 1, 0] * 50)
    >>> choice = choose_calibrator(preds)
    >>> [row.name for row in choice.table], choice.winner
    (['none', 'platt', 'beta', 'isotonic'], 'platt')
    """

    criterion: str
    folds: int
    level: float
    seed: int
    n: int
    table: tuple[Contender, ...]
    winner: str
    calibrator: Calibrator
    fitted: Mapping[str, Calibrator]

    def __str__(self) -> str:
        head = (
            f"{'calibrator':<12} {self.criterion:>9}   {self.level:.0%} interval      against none"
        )
        lines = [f"{head:<66}  changed"]
        for row in self.table:
            mark = "  <- chosen" if row.name == self.winner else ""
            if row.note and not isfinite(row.value):
                lines.append(f"{row.name:<12} {'':9}   {'':<16}  {row.note}{mark}")
                continue
            gain = changed = ""
            if row.name != "none":
                gain = f"{row.gain:+.4f} {_format_limits(row.gain_low, row.gain_high)}"
                changed = f"{row.changed:,}"
            limits = _format_limits(row.low, row.high)
            left = f"{row.name:<12} {row.value:9.4f}   {limits:<16}  {gain}"
            lines.append(f"{left:<66}  {changed:>7}{mark}".rstrip())
        return "\n".join(lines)

    def to_text(self) -> str:
        """The table as text, the chosen one marked."""
        return f"{self}\n"

    def _repr_html_(self) -> str:
        return wrap_preformatted(str(self))

    def frame(self, library: str = "pandas") -> Any:
        """The table as a data frame of pandas or polars, one row for each calibrator."""
        rows = [asdict(row) | {"chosen": row.name == self.winner} for row in self.table]
        return frame(rows, library)


def _format_limits(low: float, high: float) -> str:
    if isfinite(low) and isfinite(high):
        return f"[{low:.4f}, {high:.4f}]"
    return ""


def choose_calibrator(
    val: Predictions,
    *,
    criterion: Metric | None = None,
    calibrators: Mapping[str, Fit] | None = None,
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
) -> Choice:
    """Fit every calibrator on all folds but one, judge it on the one left out, and take the
    simplest of the best.

    Each sample is judged by a fit that has not seen it. A calibrator beats "none" only if the
    paired interval of the difference excludes 0, at a level shared among the calibrators (1 − (1 −
    level)/m for m of them), so that trying many does not make a gain. Of those, the best value sets
    the mark, and the simplest wins whose difference from it, judged in the same way, does not
    exclude 0; none of them: "none". The order of `calibrators` is that of simplicity, simplest
    first. `criterion` is any metric, by default `nll` (`correctness_nll` for top labels), whose
    differences have Student's limits; `ece`, `aece` and `aurc` are usual too. Folds keep whole
    groups together, else they spread each class evenly.

    All calibrators are fitted on all samples as well: a fit that takes `start=` begins from there
    in every fold. Its minimum is the same; where there is none it begins anew, so that nothing of
    the fold left out stays in it.

    Tried are a temperature, structured scaling with a diagonal and with a full matrix (3 to 100
    classes, 250 samples), Platt's and the beta map, and isotonic regression; of a confidence the
    last three. None of them claims 0: the temperature is mixed with the uniform distribution
    (`mixed`), isotonic maps stay half a sample away from 0 and 1 (`floor`). A temperature at its
    bound is not fitted, for it would make all answers alike. The protocol of Vemuri 2020, figure
    6.3, made robust; the candidates of Berta et al. 2025.

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 600)
    >>> logits = 4 * (rng.normal(size=(600, 3)) + 2 * np.eye(3)[labels])
    >>> choice = choose_calibrator(Predictions.from_logits(logits, labels), folds=3)
    >>> choice.winner
    'temperature'
    """
    needs_predictions(val, "choose_calibrator")
    if criterion is None:
        criterion = metrics.nll if val.vectors else metrics.correctness_nll
    fits = {"none": Identity.fit} | dict(calibrators or list_contenders(val))
    fold = deal_folds(val, checks.at_least(folds, 2, "folds"), seed)
    shared = 1 - (1 - level) / max(1, len(fits) - 1)
    judge = ContenderJudge(metric=criterion, val=val, level=level, shared=shared, seed=seed)
    job = StagedJob("fitting", fits)
    trials: dict[str, Trial] = {}
    for name, fit in fits.items():
        job.stage(name)
        trials[name] = judge.try_fit(fit, fold)
    rows = [judge.build_row(name, trial, trials["none"]) for name, trial in trials.items()]
    rows = [replace(row, behind=judge.is_behind(row, rows, trials)) for row in rows]
    winner = next((row.name for row in rows if row.real and not row.behind), "none")
    if not calibrators:
        rows += [_build_missing_row(name, note) for name, note in list_left_out(val).items()]
    made = {name: trial.whole for name, trial in trials.items() if trial.whole is not None}
    return Choice(
        criterion=getattr(criterion, "__name__", "criterion"),
        folds=folds,
        level=level,
        seed=seed,
        n=val.n,
        table=tuple(rows),
        winner=winner,
        calibrator=made[winner],
        fitted=made,
    )


def list_contenders(preds: Predictions) -> dict[str, Fit]:
    """The calibrators that can be fitted on such predictions, by name, the simplest first."""
    names = TOP_LABEL_CANDIDATES
    if preds.vectors:
        left_out = list_left_out(preds)
        names = [name for name in CANDIDATES if name not in left_out]
    fits = {name: CANDIDATES[name] for name in names}
    if preds.layout is not None and preds.layout.parts == "labels":
        for name in names:
            if name != "none":
                fits[name] = apply_per_label(fits[name])
    return fits


def list_left_out(preds: Predictions) -> dict[str, str]:
    """The candidates for all classes that these predictions are not tried with, each with the
    reason.
    """
    k = preds.k or 0
    if not preds.vectors:
        return {}
    if k <= 2:
        return {"full": "left out: of two classes the diagonal is all there is"}
    if k > MOST_FULL_CLASSES:
        return {"full": f"left out: {k:,} classes, at most {MOST_FULL_CLASSES} are tried"}
    if preds.n < LEAST_FULL_SAMPLES:
        return {"full": f"left out: {preds.n:,} samples, at least {LEAST_FULL_SAMPLES} are needed"}
    return {}


def deal_folds(val: Predictions, folds: int, seed: int) -> Ints:
    """The fold of each sample: groups stay together, else each class is dealt out evenly."""
    rng = np.random.default_rng(seed)
    if val.group is not None:
        names, where = np.unique(val.group, return_inverse=True)
        _check_enough(len(names), folds, "groups")
        return (rng.permutation(len(names)) % folds)[where]
    _check_enough(val.n, folds, "samples")
    kind = val.labels if val.vectors else val.correct
    order = np.lexsort((rng.permutation(val.n), kind))
    fold = np.empty(val.n, dtype=np.int64)
    fold[order] = np.arange(val.n) % folds
    return fold


def _check_enough(n: int, folds: int, what: str) -> None:
    if n < folds:
        raise InputError(
            f"{n} {what} cannot be dealt into {folds} folds; take fewer folds or more {what}."
        )


# ---- one contender


class Trial(NamedTuple):
    """A calibrator fitted on all samples, and what it made of samples it had not seen; or why there
    is neither.
    """

    whole: Calibrator | None
    value: float
    kept: Predictions | Floats | None  # the losses of the samples, or predictions for other metrics
    changed: int = 0
    note: str = ""


def _predict_unseen(val: Predictions, fit: Fit, whole: Calibrator, fold: Ints) -> Predictions:
    """Predictions of every sample by a fit without its fold."""
    parts: list[Predictions] = []
    offered = {"start": whole, "measured": False}
    options = {name: offered[name] for name in signature(fit).parameters if name in offered}
    refit: Callable[..., Calibrator] = fit
    for j in range(int(fold.max()) + 1):
        others = val[fold != j]
        calibrator = refit(others, **options)
        reached = calibrator.fitted is not None and calibrator.fitted.status in REACHED_MINIMUM
        # Without a minimum to go to, a fit may stay near its start, which has seen the fold.
        if "start" in options and not reached:
            calibrator = fit(others)
        parts.append(calibrator(val[fold == j]))
    axis = -2 if val.vectors else 0
    # Values come fold by fold; the rank of each sample in that order puts them back.
    by_fold = np.argsort(fold, kind="stable")
    place = np.argsort(by_fold, kind="stable")
    values = np.concatenate([part.values for part in parts], axis=axis)
    return replace(val, kind=parts[0].kind, values=np.take(values, place, axis=axis))


@frozen(eq=False)
class ContenderJudge:
    """How contenders are compared: a mean loss by the losses of the samples, other criteria by
    their predictions. Differences are judged at the level `shared` among the contenders.
    """

    metric: Metric
    val: Predictions
    level: float
    shared: float
    seed: int

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower criterion is better."""
        return getattr(self.metric, "better", "lower") == "lower"

    def try_fit(self, fit: Fit, fold: Ints) -> Trial:
        """Fit on all samples and, fold by fold, on the others."""
        val = self.val
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a fit that is too sure shows in the criterion
                whole = fit(val)
                made = val
                if not isinstance(whole, Identity):
                    made = _predict_unseen(val, fit, whole, fold)
        except InputError as e:
            return Trial(whole=None, value=nan, kept=None, note=f"not fitted: {e}")
        changed = 0
        if val.vectors:
            changed = int((made.prediction != val.prediction).sum())
        loss = MEAN_LOSSES.get(self.metric)
        kept = made if loss is None else loss(made)
        value = evaluate_metric(self.metric, made)
        return Trial(whole=whole, value=value, kept=kept, changed=changed)

    def build_row(self, name: str, trial: Trial, none: Trial) -> Contender:
        """One row of the table."""
        if trial.note:
            return _build_missing_row(name, trial.note)
        low = high = nan
        kept = None
        if isfinite(trial.value):
            kept = trial.kept
        if isinstance(kept, Predictions):
            low, high = interval(self.metric, kept, self.level, self.seed)
        elif kept is not None:
            low, high = _compute_mean_limits(kept, self.val, self.level)
        gain, real = (0.0, nan, nan), False
        if name != "none":
            gain = self._compute_difference(trial, none)
            real = is_clearly_better(gain, self.lower_is_better)
        return Contender(
            name=name,
            value=trial.value,
            low=low,
            high=high,
            gain=gain[0],
            gain_low=gain[1],
            gain_high=gain[2],
            real=real,
            changed=trial.changed,
        )

    def is_behind(self, row: Contender, rows: list[Contender], trials: Mapping[str, Trial]) -> bool:
        """Whether a contender is clearly worse than the best of those that are truly better than
        none.
        """
        real = [r for r in rows if r.real]
        if not row.real:
            return bool(real)
        sign = 1 if self.lower_is_better else -1
        best = min(real, key=lambda r: sign * r.value)
        if row.name == best.name:
            return False
        difference = self._compute_difference(trials[row.name], trials[best.name])
        return is_clearly_better(difference, not self.lower_is_better)

    def _compute_difference(self, one: Trial, other: Trial) -> LimitedNumber:
        """Paired, with limits; a difference with an infinite value has none."""
        difference = one.value - other.value
        if not isfinite(difference) or one.kept is None or other.kept is None:
            return difference, nan, nan
        if isinstance(one.kept, Predictions) or isinstance(other.kept, Predictions):
            return paired_difference(self.metric, one.kept, other.kept, self.shared, self.seed)
        low, high = _compute_mean_limits(one.kept - other.kept, self.val, self.shared)
        return difference, low, high


def _compute_mean_limits(values: Floats, preds: Predictions, level: float) -> tuple[float, float]:
    """Student's limits of a mean; samples of a group count as one, and unequal shares lower the
    degrees of freedom.
    """
    share, group = compute_shares(preds), preds.group
    counts = share > 0
    values, share = values[counts], share[counts]
    mean = float(share @ values)
    rest = share * (values - mean)
    if group is not None:
        where = np.unique(group[counts], return_inverse=True)[1].reshape(-1)
        rest, share = count_values(where, rest), count_values(where, share)
    units = len(rest)
    if units < 2:
        return nan, nan
    freedom = max(1.0, 1 / float(share @ share) - 1)
    error = sqrt(float(rest @ rest) * units / (units - 1))
    reach = float(stdtrit(freedom, (1 + level) / 2)) * error
    return mean - reach, mean + reach


def _build_missing_row(name: str, note: str) -> Contender:
    return Contender(
        name=name,
        value=nan,
        low=nan,
        high=nan,
        gain=nan,
        gain_low=nan,
        gain_high=nan,
        real=False,
        note=note,
    )


def _claim_for_outcome(preds: Predictions) -> Floats:
    """What was claimed for what happened to the top answer."""
    return np.where(preds.correct, preds.confidence, 1.0 - preds.confidence)


def _lose_log(preds: Predictions) -> Floats:
    with np.errstate(divide="ignore"):
        return -np.log(_claim_for_outcome(preds))


CLASS_LOSSES: dict[Metric, SampleLoss] = {metrics.nll: losses.nll, metrics.brier: losses.brier}
MEAN_LOSSES: dict[Metric, SampleLoss] = {
    **CLASS_LOSSES,
    metrics.correctness_nll: _lose_log,
    metrics.correctness_brier: lambda preds: (1.0 - _claim_for_outcome(preds)) ** 2,
}


def evaluate_metric(metric: Metric, preds: Predictions) -> float:
    """The metric of predictions, whatever it takes."""
    takes = getattr(getattr(metric, "func", metric), "takes", "tally")  # also of functools.partial
    if takes == "predictions":
        return float(metric(preds))
    return float(metric(Outcomes.of(preds).tally()))


def is_clearly_better(difference: LimitedNumber, lower_is_better: bool) -> bool:
    """Whether a difference is on the better side for certain: its limits exclude 0, or it is
    infinite.
    """
    value, low, high = difference
    if isinf(value):
        # One side claims 0 for what happened: no resampling is needed to tell them apart.
        return (value < 0) == lower_is_better
    if lower_is_better:
        return high < 0
    return low > 0


# ---- before and after

CLASS_CHANGES = ("ece", "aece", "mce", "nll", "brier", "uce", "aurc", "accuracy")
TOP_LABEL_CHANGES = (
    "ece",
    "aece",
    "mce",
    "correctness_nll",
    "correctness_brier",
    "aurc",
    "accuracy",
)
NORMAL_MEAN_SAMPLES = 100_000  # beyond, a mean of differences is normal and needs no resampling


@frozen
class CalibrationChange:
    """One metric on the test set before and after, each with its limits, and the paired difference
    after − before.

    Limits are nan where a number has none. `verdict` is "better" or "worse" where the limits of the
    difference exclude 0, "unchanged" where it is exactly 0, else "unclear".
    """

    metric: str
    before: LimitedNumber
    after: LimitedNumber
    difference: LimitedNumber
    verdict: str


def compare_before_after(
    before: Predictions, after: Predictions, level: float = 0.95, seed: int = 0
) -> tuple[CalibrationChange, ...]:
    """What became of each metric; both hold the same samples in the same order.

    >>> p = Predictions.from_confidence([0.9, 0.9, 0.6], [1, 0, 1])
    >>> compare_before_after(p, p)[-1].verdict
    'unchanged'
    """
    names = CLASS_CHANGES
    if "confidence" in (before.kind, after.kind):
        names = TOP_LABEL_CHANGES
    chosen: list[Metric] = [getattr(metrics, name) for name in names]
    numbers_before = _measure_metrics(chosen, before, level, seed)
    numbers_after = _measure_metrics(chosen, after, level, seed)
    differences = dict[Metric, LimitedNumber]()
    paired: list[Metric] = []
    many = before.n > NORMAL_MEAN_SAMPLES and before.weight is None
    for metric, one, two in zip(chosen, numbers_before, numbers_after, strict=True):
        differences[metric] = (two[0] - one[0], nan, nan)
        if not isfinite(two[0] - one[0]):
            continue
        if many and metric in CLASS_LOSSES:
            d = CLASS_LOSSES[metric](after) - CLASS_LOSSES[metric](before)
            reach = float(ndtri((1 + level) / 2)) * standard_error(d, after.group)
            mean = float(d.mean())
            differences[metric] = (mean, mean - reach, mean + reach)
        else:
            paired.append(metric)
    # Metrics are asked for together, because they share their draws.
    limited = each_paired_difference(paired, after, before, level, seed)
    differences.update(zip(paired, limited, strict=True))
    # The same predictions have the same numbers on any samples, so there is nothing to limit.
    if before.kind == after.kind and np.array_equal(before.values, after.values):
        differences = dict.fromkeys(chosen, (0.0, 0.0, 0.0))
    return tuple(
        CalibrationChange(
            metric=name,
            before=one,
            after=two,
            difference=differences[metric],
            verdict=_judge_change(metric, differences[metric]),
        )
        for name, metric, one, two in zip(names, chosen, numbers_before, numbers_after, strict=True)
    )


def _measure_metrics(
    chosen: list[Metric], preds: Predictions, level: float, seed: int
) -> list[LimitedNumber]:
    """Each metric with its limits, nan where it has none."""
    limits = each_interval(chosen, preds, level, seed)
    return [
        (evaluate_metric(metric, preds), of_metric.low, of_metric.high)
        for metric, of_metric in zip(chosen, limits, strict=True)
    ]


def _judge_change(metric: Metric, difference: LimitedNumber) -> str:
    lower_is_better = getattr(metric, "better", "lower") == "lower"
    if difference[0] == 0:
        return "unchanged"
    if is_clearly_better(difference, lower_is_better):
        return "better"
    if is_clearly_better(difference, not lower_is_better):
        return "worse"
    return "unclear"
