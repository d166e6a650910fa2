"""choose_calibrator: which correction to trust, judged on samples that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from inspect import signature
from math import isfinite, isinf, nan, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import stdtrit

from howsure import losses
from howsure._core import check
from howsure._core.check import Floats, InputError, Ints
from howsure._core.frames import frame, preformatted
from howsure._core.frozen import frozen
from howsure._core.progress import StagedJob
from howsure.calibrators import (
    Beta,
    Calibrator,
    Dirichlet,
    HistogramBinning,
    Identity,
    Isotonic,
    MatrixScaling,
    Platt,
    Temperature,
    VectorScaling,
)
from howsure.calibrators.labels import per_label
from howsure.metrics import brier, correctness_brier, correctness_nll, nll
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes
from howsure.uncertainty.intervals import interval, paired_difference

__all__ = ["CALIBRATORS", "Choice", "Contender", "choose_calibrator", "contenders", "left_out"]

Fit: TypeAlias = Callable[[Predictions], Calibrator]
Metric: TypeAlias = Callable[[Any], float]

CALIBRATORS: dict[str, Fit] = {  # the simplest first
    "none": Identity.fit,
    "temperature": Temperature.fit,
    "vector": VectorScaling.fit,
    "platt": Platt.fit,
    "beta": Beta.fit,
    "matrix": MatrixScaling.fit,
    "dirichlet": Dirichlet.fit,
    "histogram": HistogramBinning.fit,
    "isotonic": Isotonic.fit,
}
TOP_LABEL = ("none", "platt", "beta", "isotonic")
SQUARE = ("matrix", "dirichlet")  # k² + k parameters
FLOOR = 0.5  # samples: a probability of 0 for what may happen would be judged by that sample alone
STEPPED: dict[str, Fit] = {
    "histogram": partial(HistogramBinning.fit, floor=FLOOR),
    "isotonic": partial(Isotonic.fit, floor=FLOOR),
}


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
        lines += [
            _line(row, "  <- chosen" if row.name == self.winner else "") for row in self.table
        ]
        return "\n".join(lines)

    def to_text(self) -> str:
        """The table as text, the chosen one marked."""
        return f"{self}\n"

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    def frame(self, library: str = "pandas") -> Any:
        """The table as a data frame of pandas or polars, one row for each calibrator."""
        return frame(
            [asdict(row) | {"chosen": row.name == self.winner} for row in self.table], library
        )


def _line(row: Contender, mark: str) -> str:
    pair: Callable[[float, float], str] = lambda a, b: (
        f"[{a:.4f}, {b:.4f}]" if isfinite(a) and isfinite(b) else ""
    )
    if row.note and not isfinite(row.value):
        return f"{row.name:<12} {'':9}   {'':<16}  {row.note}{mark}"
    gain = "" if row.name == "none" else f"{row.gain:+.4f} {pair(row.gain_low, row.gain_high)}"
    changed = "" if row.name == "none" else f"{row.changed:,}"
    left = f"{row.name:<12} {row.value:9.4f}   {pair(row.low, row.high):<16}  {gain}"
    return f"{left:<66}  {changed:>7}{mark}".rstrip()


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
    the fold left out stays in it. Histogram and isotonic maps are kept half a sample away from 0
    and 1 (`floor`). Calibrators with more parameters than samples are left out, with a note. The
    protocol of Vemuri 2020, figure 6.3, made robust.

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 600)
    >>> logits = 4 * (rng.normal(size=(600, 3)) + 2 * np.eye(3)[labels])
    >>> choice = choose_calibrator(Predictions.from_logits(logits, labels), folds=3)
    >>> choice.winner
    'temperature'
    """
    needs_predictions(val, "choose_calibrator")
    metric = criterion or (correctness_nll if val.kind == "confidence" else nll)
    fits = {"none": Identity.fit} | dict(calibrators or contenders(val))
    fold = _folds(val, check.at_least(folds, 2, "folds"), seed)
    judge = _Judge(metric, val, level, 1 - (1 - level) / max(1, len(fits) - 1), seed)
    job = StagedJob("fitting", fits)
    tried: dict[str, _Tried] = {}
    for name, fit in fits.items():
        job.stage(name)
        tried[name] = _tried(val, fit, fold, judge)
    rows = [judge.row(name, one, tried["none"]) for name, one in tried.items()]
    rows = [replace(row, behind=judge.behind(row, rows, tried)) for row in rows]
    winner = next((row.name for row in rows if row.real and not row.behind), "none")
    rows += [] if calibrators else [_missing(name, note) for name, note in left_out(val).items()]
    made = {name: one.whole for name, one in tried.items() if one.whole is not None}
    return Choice(_name(metric), folds, level, seed, val.n, tuple(rows), winner, made[winner], made)


def contenders(preds: Predictions) -> dict[str, Fit]:
    """The calibrators that can be fitted on such predictions, by name, the simplest first."""
    names = (
        TOP_LABEL
        if preds.kind == "confidence"
        else [n for n in CALIBRATORS if n not in left_out(preds)]
    )
    found = {name: STEPPED.get(name, CALIBRATORS[name]) for name in names}
    many = preds.layout is not None and preds.layout.parts == "labels"
    return (
        {name: per_label(fit) if name != "none" else fit for name, fit in found.items()}
        if many
        else found
    )


def left_out(preds: Predictions) -> dict[str, str]:
    """The calibrators of all classes that these predictions are too few for, each with the reason."""
    k = preds.k or 0
    if preds.kind == "confidence" or k * k + k <= preds.n:
        return {}
    return dict.fromkeys(SQUARE, f"left out: {k * k + k:,} parameters for {preds.n:,} samples")


class _Tried(NamedTuple):
    """A calibrator fitted on all samples, and what it made of samples it had not seen; or why there
    is neither.
    """

    whole: Calibrator | None
    value: float
    kept: Any  # what the judge needs of the predictions
    changed: int
    note: str = ""


def _tried(val: Predictions, fit: Fit, fold: Ints, judge: _Judge) -> _Tried:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit that is too sure shows in the criterion
            whole = fit(val)
            made = val if isinstance(whole, Identity) else _unseen(val, fit, whole, fold)
    except InputError as e:
        return _Tried(None, nan, None, 0, f"not fitted: {e}")
    changed = 0 if val.kind == "confidence" else int((made.prediction != val.prediction).sum())
    return _Tried(whole, value_of(judge.metric, made), judge.kept(made), changed)


def _unseen(val: Predictions, fit: Fit, whole: Calibrator, fold: Ints) -> Predictions:
    """Predictions of every sample by a fit without its fold."""
    parts = [
        _refitted(fit, val[fold != j], whole)(val[fold == j]) for j in range(int(fold.max()) + 1)
    ]
    axis = 0 if val.kind == "confidence" else -2
    place = np.argsort(
        np.argsort(fold, kind="stable"), kind="stable"
    )  # folds in turn → the order of the samples
    values = np.take(np.concatenate([part.values for part in parts], axis=axis), place, axis=axis)
    return replace(val, kind=parts[0].kind, values=values)


def _refitted(fit: Fit, part: Predictions, whole: Calibrator) -> Calibrator:
    """A fit on some of the samples, from the fit on all of them where it can start there and has a
    minimum to go to.
    """
    if "start" in signature(fit).parameters:
        warm: Callable[..., Calibrator] = fit
        made = warm(part, start=whole)
        if made.fitted is not None and made.fitted.status == "converged":
            return made
    return fit(part)


@frozen(eq=False)
class _Judge:
    """How contenders are compared: a mean loss by the losses of the samples, other criteria by
    their predictions.
    """

    metric: Metric
    val: Predictions
    level: float
    shared: float
    seed: int

    @property
    def lower(self) -> bool:
        """Whether a lower criterion is better."""
        return getattr(self.metric, "better", "lower") == "lower"

    def kept(self, made: Predictions) -> Any:
        """Losses of the samples, or the predictions themselves."""
        loss = MEANS.get(self.metric)
        return made if loss is None else loss(made)

    def row(self, name: str, one: _Tried, none: _Tried) -> Contender:
        """One row of the table."""
        if one.note:
            return _missing(name, one.note)
        low, high = (nan, nan) if not isfinite(one.value) else self._limits(one.kept)
        if name == "none":
            return Contender(name, one.value, low, high, 0.0, nan, nan, False)
        gain = self._difference(one, none)
        return Contender(
            name, one.value, low, high, *gain, is_real(gain, self.lower), changed=one.changed
        )

    def behind(self, row: Contender, rows: list[Contender], tried: Mapping[str, _Tried]) -> bool:
        """Whether a contender is clearly worse than the best of those that are truly better than
        none.
        """
        real = [r for r in rows if r.real]
        if not row.real:
            return bool(real)
        best = min(real, key=lambda r: r.value if self.lower else -r.value)
        return row.name != best.name and is_real(
            self._difference(tried[row.name], tried[best.name]), not self.lower
        )

    def _limits(self, kept: Any) -> tuple[float, float]:
        if isinstance(kept, Predictions):
            return interval(self.metric, kept, self.level, self.seed)
        return _mean_limits(kept, self.val, self.level)

    def _difference(self, one: _Tried, other: _Tried) -> tuple[float, float, float]:
        """Paired, with limits; a difference with an infinite value has none."""
        difference = one.value - other.value
        if not isfinite(difference):
            return difference, nan, nan
        if isinstance(one.kept, Predictions):
            return paired_difference(self.metric, one.kept, other.kept, self.shared, self.seed)
        return difference, *_mean_limits(one.kept - other.kept, self.val, self.shared)


def _mean_limits(values: Floats, preds: Predictions, level: float) -> tuple[float, float]:
    """Student's limits of a mean; samples of a group count as one, and unequal shares lower the
    degrees of freedom.
    """
    share = (
        np.full(len(values), 1 / len(values))
        if preds.weight is None
        else preds.weight / preds.weight.sum()
    )
    values, share = values[share > 0], share[share > 0]
    mean = float(share @ values)
    rest = share * (values - mean)
    if preds.group is not None:
        where = np.unique(
            preds.group if preds.weight is None else preds.group[preds.weight > 0],
            return_inverse=True,
        )[1]
        rest, share = (np.bincount(where.reshape(-1), a) for a in (rest, share))
    units = len(rest)
    if units < 2:
        return nan, nan
    freedom = max(1.0, 1 / float(share @ share) - 1)
    reach = float(stdtrit(freedom, (1 + level) / 2)) * sqrt(
        float(rest @ rest) * units / (units - 1)
    )
    return mean - reach, mean + reach


def _correctness(of: Callable[[Floats], Floats]) -> Callable[[Predictions], Floats]:
    """The loss of claiming the confidence for the top answer."""
    return lambda preds: of(np.where(preds.correct, preds.confidence, 1.0 - preds.confidence))


def _surprise(claimed: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return -np.log(claimed)


MEANS: dict[Metric, Callable[[Predictions], Floats]] = {
    nll: losses.nll,
    brier: losses.brier,
    correctness_nll: _correctness(_surprise),
    correctness_brier: _correctness(lambda claimed: (1.0 - claimed) ** 2),
}


def _missing(name: str, note: str) -> Contender:
    return Contender(name, nan, nan, nan, nan, nan, nan, False, note)


def _folds(val: Predictions, folds: int, seed: int) -> Ints:
    """The fold of each sample: groups stay together, else each class is dealt out evenly."""
    rng = np.random.default_rng(seed)
    if val.group is not None:
        names, where = np.unique(val.group, return_inverse=True)
        _enough(len(names), folds, "groups")
        return (rng.permutation(len(names)) % folds)[where]
    _enough(val.n, folds, "samples")
    kind = val.correct if val.kind == "confidence" else val.labels
    order = np.lexsort((rng.permutation(val.n), kind))
    out = np.empty(val.n, dtype=np.int64)
    out[order] = np.arange(val.n) % folds
    return out


def _enough(n: int, folds: int, what: str) -> None:
    if n < folds:
        raise InputError(
            f"{n} {what} cannot be dealt into {folds} folds; take fewer folds or more {what}."
        )


def value_of(metric: Metric, preds: Predictions) -> float:
    """The metric of predictions, whatever it takes."""
    takes = getattr(getattr(metric, "func", metric), "takes", "tally")  # also of functools.partial
    return float(metric(preds if takes == "predictions" else Outcomes.of(preds).tally()))


def is_real(gain: tuple[float, float, float], lower: bool) -> bool:
    """Whether a difference is on the better side for certain: its limits exclude 0, or it is
    infinite.
    """
    difference, low, high = gain
    if isinf(
        difference
    ):  # one side claims 0 for what happened: no resampling is needed to tell them apart
        return (difference < 0) == lower
    return high < 0 if lower else low > 0


def _name(metric: Metric) -> str:
    return getattr(metric, "__name__", "criterion")
