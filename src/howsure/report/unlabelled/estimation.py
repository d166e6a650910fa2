"""estimate(): the accuracy of data without labels, from labelled data of the same model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite, nan, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from howsure._core.check import Array, Bools, Floats, InputError, Ints
from howsure._core.frames import frame
from howsure._core.frozen import frozen
from howsure.bounds import proportion
from howsure.calibrators import Isotonic, Platt
from howsure.policies.deployment import folds_of
from howsure.policies.policy import Policy
from howsure.predictions import Predictions, needs_predictions
from howsure.render.model import EstimateData, Number, PartData
from howsure.report.report import written
from howsure.report.unlabelled.shares import Cells, Shares, class_shares, summed
from howsure.uncertainty.means import student

if TYPE_CHECKING:
    from howsure.render.tables import Sheet

FOLDS = 5
BINS, IN_A_BIN = 20, 50  # bins of the score, and the reference rows that each should hold
COARSE = 5  # bins beside which answers are compared
SMOOTH = 1000  # reference rows from which claims are calibrated by isotonic regression
SMALLEST = 30  # rows of a reference, or of its part
ALLOWED = 5.0  # new rows beyond the reference's scores, per reference row, that are chance
REFUSED = 0.5  # share of new rows beyond what the reference has shown, above which nothing is said


@frozen
class Part:
    """The estimate for some of the new data: a class that was answered, a group, what a policy
    accepts.
    """

    name: str
    n: int
    accuracy: float
    low: float
    high: float
    reference: float  # accuracy of the same part of the reference; nan where it has no such rows
    reference_n: int
    borrowed: bool = (
        False  # estimated from all of the reference, which has too few rows of this part
    )
    error: float = nan


@frozen
class Estimate:
    """What to expect of data without labels; `low` and `high` are limits of the accuracy that
    labels would show.

    `coverage` and `risk` are those of the policy: the share that it accepts, and the expected share
    of wrong answers among them (without a policy everything is accepted). `cannot_see` says what no
    number here would show.

    >>> s = np.tile([0.55, 0.95], 500)
    >>> past = Predictions.from_confidence(s, np.arange(1000) % 20 != 0)
    >>> print(estimate(past, Predictions.from_confidence(s)).cannot_see[1])
    Changed class shares: labels of the reference and answers of both would be needed.
    """

    accuracy: float
    low: float
    high: float
    coverage: float
    risk: float
    cannot_see: tuple[str, ...]
    risk_low: float
    risk_high: float
    level: float
    n: int
    reference_n: int
    reference_accuracy: float
    reference_coverage: float
    reference_risk: float
    outside: float  # share of new rows beyond what the reference has shown
    effective: float  # reference rows that look like the new data
    shares: dict[
        str, float
    ]  # by which factor each class became likelier; empty where it is not known
    classes: tuple[Part, ...] = ()
    groups: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    error: float = nan  # standard error of the accuracy, that of the labels to come included

    def to_dict(self) -> EstimateData:
        """As it stands in a monitor's JSON; nan is null and says why."""
        why = self.notes[0] if self.notes else "nothing is accepted"
        return EstimateData(
            accuracy=number(self.accuracy, self.low, self.high, why),
            coverage=self.coverage,
            risk=number(self.risk, self.risk_low, self.risk_high, why),
            outside=self.outside,
            effective=self.effective,
            shares=dict(self.shares),
            classes=_most_changed(self.classes),
            groups=_most_changed(self.groups),
            cannot_see=list(self.cannot_see),
            notes=list(self.notes),
        )

    def to_text(self, path: str | Path | None = None, *, width: int = 110) -> str:
        """What is estimated, by class and group, and what cannot be seen."""
        return written(self._sheet().text(width), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The same as Markdown."""
        return written(self._sheet().markdown(), path)

    def frame(self, library: str = "pandas") -> Any:
        """All rows, each class and each group as a data frame of pandas or polars."""
        accuracy, reference = (
            (self.accuracy, self.low, self.high),
            (self.reference_accuracy, self.reference_n),
        )
        whole = Part("all", self.n, *accuracy, *reference, error=self.error)
        parts = [
            ("all", whole),
            *(("class", p) for p in self.classes),
            *(("group", p) for p in self.groups),
        ]
        return frame([{"part": kind} | asdict(p) for kind, p in parts], library)

    def _repr_html_(self) -> str:
        from howsure.render.html import fragment

        return fragment(self._sheet())

    def _sheet(self) -> Sheet:
        from howsure.render.monitor import estimated

        past = number(self.reference_accuracy, nan, nan, "")
        return estimated(self.to_dict(), self.n, self.reference_n, past["value"], self.level)


def estimate(
    reference: Predictions,
    new: Predictions,
    *,
    policy: Policy | None = None,
    by: ArrayLike | None = None,
    reference_by: ArrayLike | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    r"""The accuracy of data without labels, with limits that hold both samples' noise.

    Claims f are calibrated on the labelled reference by cross-fitting and averaged over the m new
    rows (CBPE); what the claims miss in each bin b of the confidence is added, with the reference
    weighted by the changed class shares w:

    .. math:: \hat A = \frac1m \sum_j f(s_j) + \sum_b \frac{m_b}{m}
        \frac{\sum_{i \in b} w_{y_i} (c_i - f_{-i}(s_i))}{\sum_{i \in b} w_{y_i}}

    So it is right where class shares, the mix of easy and hard cases, or both have changed, whatever f is. The limits
    are those of a beta distribution whose variance adds the noise of the reference, of w, and of the labels that the
    new rows would get; groups are drawn whole. New rows whose scores or answers the reference never showed count as
    anything between all right and all wrong; where they are more than half, nothing is said (nan, limits 0 and 1). With
    a `policy` (and its calibrator) the risk of what it accepts is estimated too; `by` and `reference_by` are columns to
    estimate by. Errors that became likelier at equal confidence cannot be seen. Garg et al. 2022 show that no method
    without labels can; Saerens et al. 2002 for w; NannyML's CBPE is the first term alone.

    >>> rng = np.random.default_rng(0)
    >>> draw = lambda n: np.round(rng.beta(5, 1.2, n), 3)
    >>> s = draw(5000); past = Predictions.from_confidence(s, rng.random(5000) < s)
    >>> found = estimate(past, Predictions.from_confidence(draw(2000)))
    >>> round(found.accuracy, 3), found.low, found.high
    (0.816, 0.7965, 0.834)
    """
    needs_predictions(reference, "estimate")
    proportion(level, "level")
    _comparable(reference, new)
    if policy is not None:
        policy.check_classes(reference)
        policy.check_classes(new)
    job = _Job.of(reference, new, policy, level, seed)
    whole = job.part("all", *_all(job))
    accept = (
        None if policy is None else (policy.decide(reference).accept, policy.decide(new).accept)
    )
    kept = whole if accept is None else job.part("accepted", *accept)
    refused = job.outside.mean() > REFUSED
    return Estimate(
        *((nan, 0.0, 1.0) if refused else (whole.accuracy, whole.low, whole.high)),
        1.0 if accept is None else float(np.average(accept[1], weights=job.new.weight)),
        *((nan,) if refused else (1 - kept.accuracy,)),
        _cannot_see(whole.accuracy, reference, new, job),
        *((0.0, 1.0) if refused else (1 - kept.high, 1 - kept.low)),
        level,
        new.n,
        reference.n,
        whole.reference,
        1.0 if accept is None else float(np.average(accept[0], weights=job.reference.weight)),
        1 - kept.reference,
        float(job.outside.mean()),
        job.effective(),
        job.factors(),
        () if refused else _classes(job),
        () if refused else _groups(job, by, reference_by),
        tuple(job.notes()),
        nan if refused else whole.error,
    )


def _comparable(reference: Predictions, new: Predictions) -> None:
    """Refuse data that are not from the same model in the same form."""
    if reference.kind != "confidence" and reference.known_labels is None:
        raise InputError(
            "reference",
            got="has no labels",
            need="the estimate rests on labelled data of the same model",
        )
    if reference.kind == "confidence" and reference.known_correct is None:
        raise InputError(
            "reference", got="does not say which answers are right", need="labelled data are needed"
        )
    if (reference.kind, reference.samples > 1) != (new.kind, new.samples > 1):
        kinds = [
            f"{p.samples} samples of {p.kind}" if p.samples > 1 else p.kind
            for p in (reference, new)
        ]
        raise InputError(
            f"the reference holds {kinds[0]}, the new data {kinds[1]}",
            need="both must come from the same model in the same form",
        )
    if reference.k is not None and new.k is not None and reference.k != new.k:
        raise InputError(
            f"the reference has {reference.k} classes, the new data {new.k}; they must be the same."
        )
    if reference.class_names and new.class_names and reference.class_names != new.class_names:
        pairs = enumerate(zip(reference.class_names, new.class_names, strict=True))
        i, (a, b) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        raise InputError(
            f"class {i} is {a!r} in the reference and {b!r} in the new data; they must be the same."
        )
    if reference.n < SMALLEST:
        raise InputError(
            "reference", got=f"has {reference.n} rows", need=f"at least {SMALLEST} are needed"
        )


class _Rows(NamedTuple):
    """One side: raw and calibrated claim of each row, its answer as a number, weight (mean 1) and
    group number.
    """

    raw: Floats
    claim: Floats
    answer: Ints | None
    weight: Floats
    group: Ints | None


@frozen(eq=False)
class _Job:
    """Both sides, and what all parts share."""

    reference: _Rows
    new: _Rows
    correct: Bools
    names: tuple[str, ...]  # of the answers
    shares: Shares | None
    cells: Cells | None  # of the new rows
    outside: Bools
    alike: float  # correlation of being right within a group
    level: float

    @classmethod
    def of(
        cls,
        reference: Predictions,
        new: Predictions,
        policy: Policy | None,
        level: float,
        seed: int,
    ) -> _Job:
        if policy is not None and policy.calibrator is not None:
            reference, new = policy.calibrator(reference), policy.calibrator(new)
        correct = np.asarray(reference.correct)
        claims = _claims(reference, correct, new, seed)
        names, answers, labels = _numbered(reference, new)
        sides = [
            _Rows(p.confidence, claim, answer, _weights(p), _group_numbers(p))
            for p, claim, answer in zip((reference, new), claims, answers, strict=True)
        ]
        beyond = (sides[1].raw < sides[0].raw.min()) | (sides[1].raw > sides[0].raw.max())
        if answers[0] is not None and answers[1] is not None:
            beyond = beyond | ~np.isin(answers[1], answers[0])
        shares, cells = None, None
        if labels is not None and answers[0] is not None and answers[1] is not None:
            edges = _edges(sides[0].raw, COARSE)
            at = [np.searchsorted(edges, side.raw) for side in sides]
            cells = Cells(np.zeros_like(answers[1]), answers[1], at[1], sides[1].weight)
            shares = class_shares(
                Cells(labels, answers[0], at[0], sides[0].weight), cells, len(names)
            )
        alike = _alike(sides[0], correct, sides[1])
        return cls(sides[0], sides[1], correct, names, shares, cells, beyond, alike, level)

    def part(self, name: str, mine: Bools, theirs: Bools) -> Part:
        """The estimate for some rows of the new data (`theirs`), from those rows of the reference
        (`mine`).
        """
        n, m = int(mine.sum()), int(theirs.sum())
        known = (
            float(np.average(self.correct[mine], weights=self.reference.weight[mine])) if n else nan
        )
        if m == 0:
            return Part(name, 0, nan, 0.0, 1.0, known, n)
        used = mine if n >= SMALLEST else np.ones_like(mine)
        value, variance, units = self._value(used, theirs)
        low, high = _limits(value, variance, min(int(used.sum()), m), units, self.level)
        low, high = round(low * m) / m, round(high * m) / m  # of m answers a whole number is right
        beyond = max(0.0, float(self.outside[theirs].mean()) - ALLOWED / int(used.sum()))
        if beyond:
            claim = float(self.new.claim[theirs & self.outside].mean())
            low, high = low - beyond * claim, high + beyond * (1 - claim)
        return Part(
            name, m, value, max(0.0, low), min(1.0, high), known, n, n < SMALLEST, sqrt(variance)
        )

    def _value(self, mine: Bools, theirs: Bools) -> tuple[float, float, int]:
        """Accuracy, the variance of its distance to the accuracy that labels would show, and
        independent units.
        """
        ref, new = self.reference, self.new
        edges = _edges(ref.raw[mine], min(BINS, max(1, int(mine.sum()) // IN_A_BIN)))
        b, at = np.searchsorted(edges, ref.raw), np.searchsorted(edges, new.raw)
        bins = len(edges) + 1
        factor = (
            ref.weight
            if self.shares is None
            else ref.weight * self.shares.factor[self.shares.reference.label]
        )
        w, v = np.where(mine, factor, 0.0), np.where(theirs, new.weight, 0.0)
        total, rest = summed(b, w, bins), self.correct - ref.claim
        missed = summed(b, w * rest, bins) / np.maximum(total, 1e-300)
        q = summed(at, v, bins) / v.sum()
        value = float(np.dot(v, new.claim) / v.sum() + np.dot(q, missed))
        pull = np.where(mine, q[b] * w / np.maximum(total[b], 1e-300), 0.0)
        alone = pull * (rest - missed[b]) / np.maximum(1 - w / np.maximum(total[b], 1e-300), 0.5)
        chance = np.clip(new.claim + missed[at], 0.5 / mine.sum(), 1 - 0.5 / mine.sum())
        through_ref, through_new, prior = self._through_shares(pull * (rest - missed[b]), len(v))
        wide, spread = (
            _together(alone + through_ref, ref.group),
            v / v.sum() * np.sqrt(chance * (1 - chance)),
        )
        labels = float((spread**2).sum()) + self.alike * _pairs(spread, new.group)
        own = (
            v / v.sum() * self._apart(at, b, w, missed[at])
        )  # a part of the labels' noise that the answers show
        shown = _together(through_new - own, new.group) - _together(own, new.group)
        units = int(mine.sum()) if ref.group is None else len(np.unique(ref.group[mine]))
        return min(1.0, max(0.0, value)), wide + max(0.0, labels + shown) + prior, units

    def _through_shares(self, slopes: Floats, new: int) -> tuple[Floats, Floats, float]:
        """What the estimate of the class shares adds: by reference row, by new row, and from the
        prior.
        """
        if self.shares is None or self.cells is None:
            return np.zeros(len(slopes)), np.zeros(new), 0.0
        s = self.shares
        slope = summed(s.reference.label, slopes, s.k)[s.free]
        return s.through_reference(slope), s.through_new(slope, self.cells), s.prior_variance(slope)

    def _apart(self, at: Ints, b: Ints, w: Floats, missed: Floats) -> Floats:
        """How far answers of one class are expected to be from their bin's accuracy, shrunk as by
        ten rows.
        """
        if self.shares is None or self.cells is None:
            return np.zeros(len(at))
        k, rest = self.shares.k, self.correct - self.reference.claim
        cell, size = b * k + self.shares.reference.answer, (int(max(b.max(), at.max())) + 1) * k
        total, lost = summed(cell, w, size), summed(cell, w * rest, size)
        mine = at * k + self.cells.answer
        return (lost[mine] - total[mine] * missed) / (total[mine] + 10.0)

    def effective(self) -> float:
        """How many reference rows the estimate rests on: fewer the less the new scores look like
        the reference's.
        """
        edges = _edges(self.reference.raw, min(BINS, max(1, len(self.correct) // IN_A_BIN)))
        n = np.bincount(np.searchsorted(edges, self.reference.raw), minlength=len(edges) + 1)
        q = summed(np.searchsorted(edges, self.new.raw), self.new.weight, len(edges) + 1)
        q = q / q.sum()
        return float(1 / (q**2 / np.maximum(n, 1)).sum())

    def factors(self) -> dict[str, float]:
        """By which factor each class became likelier, by name; the mean over the reference is 1."""
        if self.shares is None:
            return {}
        factor = self.shares.factor / np.average(self.shares.factor[self.shares.reference.label])
        return {self.names[i]: float(factor[i]) for i in self.shares.free.tolist()}

    def notes(self) -> list[str]:
        """What a reader should know of these data."""
        out: list[str] = []
        share = float(self.outside.mean())
        if share > REFUSED:
            out.append(
                f"{share:.0%} of the new rows have scores or answers that the reference never showed: no estimate."
            )
        elif share > ALLOWED / len(self.correct):
            out.append(
                f"{share:.1%} of the new rows have scores or answers that the reference never showed; the limits count "
                "them as anything between all right and all wrong."
            )
        if self.effective() < 0.1 * len(self.correct):
            out.append(
                f"The new scores look like only {self.effective():,.0f} of the {len(self.correct):,} reference rows."
            )
        return out


def _all(job: _Job) -> tuple[Bools, Bools]:
    return np.ones(len(job.correct), dtype=np.bool_), np.ones(len(job.new.raw), dtype=np.bool_)


def _claims(
    reference: Predictions, correct: Bools, new: Predictions, seed: int
) -> tuple[Floats, Floats]:
    """Calibrated claims: of each reference row by the other folds, of the new rows by the mean of
    all folds' maps.
    """
    fold = folds_of(reference.n, reference.group, FOLDS, seed)
    raw, later = reference.confidence, Predictions.from_confidence(new.confidence)
    mine, theirs = np.empty(reference.n), np.zeros(new.n)
    for i in range(FOLDS):
        rest = fold != i
        past = Predictions.from_confidence(
            raw[rest],
            correct[rest],
            weight=None if reference.weight is None else reference.weight[rest],
        )
        made = Isotonic.fit(past, floor=0.5) if past.n >= SMOOTH else Platt.fit(past)
        if not rest.all():
            mine[~rest] = made(Predictions.from_confidence(raw[~rest])).confidence
        theirs += made(later).confidence / FOLDS
    return mine, theirs


def _numbered(
    reference: Predictions, new: Predictions
) -> tuple[tuple[str, ...], list[Ints | None], Ints | None]:
    """Names of the classes, answers of both sides and labels of the reference as numbers; None
    where not known.
    """
    if reference.kind != "confidence" and reference.k is not None:
        names = (
            reference.class_names or new.class_names or tuple(str(i) for i in range(reference.k))
        )
        return names, [reference.prediction, new.prediction], reference.labels
    said = [p.known_prediction for p in (reference, new)]
    if said[0] is None or said[1] is None:
        return (), [None, None], None
    columns = [
        said[0],
        said[1],
        *([] if reference.known_labels is None else [reference.known_labels]),
    ]
    words, number = np.unique(np.concatenate([c.astype(str) for c in columns]), return_inverse=True)
    parts = np.split(number.reshape(-1), np.cumsum([len(c) for c in columns])[:-1])
    return tuple(words.tolist()), [parts[0], parts[1]], parts[2] if len(parts) == 3 else None


def _weights(preds: Predictions) -> Floats:
    return np.ones(preds.n) if preds.weight is None else preds.weight / preds.weight.mean()


def _group_numbers(preds: Predictions) -> Ints | None:
    return (
        None if preds.group is None else np.unique(preds.group, return_inverse=True)[1].reshape(-1)
    )


def _edges(score: Floats, bins: int) -> Floats:
    """Inner edges of bins that hold equally many of these scores; ties stay together."""
    return np.unique(np.quantile(score, np.arange(1, bins) / bins, method="inverted_cdf"))


def _together(influence: Floats, group: Ints | None) -> float:
    """The variance of a sum whose terms are independent between groups."""
    if group is None:
        return float((influence**2).sum())
    sums = np.bincount(group, influence)
    return float((sums**2).sum()) * len(sums) / max(1, len(sums) - 1)


def _pairs(x: Floats, group: Ints | None) -> float:
    """The sum of x·x over all ordered pairs of rows of one group."""
    return 0.0 if group is None else float((np.bincount(group, x) ** 2).sum() - (x**2).sum())


def _alike(ref: _Rows, correct: Bools, new: _Rows) -> float:
    """Correlation of being right between rows of a group, beyond their claims, at scores as common
    as the new ones.
    """
    if ref.group is None or new.group is None:
        return 0.0
    edges = _edges(ref.raw, min(BINS, max(1, len(correct) // IN_A_BIN)))
    b, bins = np.searchsorted(edges, ref.raw), len(edges) + 1
    q = summed(np.searchsorted(edges, new.raw), new.weight, bins) / np.maximum(
        summed(b, ref.weight, bins), 1e-300
    )
    weight = q[b] * ref.weight
    possible = _pairs(weight * np.sqrt(ref.claim * (1 - ref.claim)), ref.group)
    return min(
        1.0, max(0.0, _pairs(weight * (correct - ref.claim), ref.group) / max(possible, 1e-300))
    )


def _limits(value: float, variance: float, n: int, units: int, level: float) -> tuple[float, float]:
    """Quantiles of the beta distribution with this mean and variance, widened by Student's t."""
    from scipy.special import betaincinv

    half = (1 - level) / 2
    mean = min(max(value, 0.5 / (n + 1)), 1 - 0.5 / (n + 1))
    least = mean * (1 - mean) / (n + 1)
    wide = (student(max(1, units - 1), half) / student(float("inf"), half)) ** 2
    size = mean * (1 - mean) / (max(variance, least) * wide) - 1
    if size <= 0:
        return 0.0, 1.0
    low, high = (float(betaincinv(mean * size, (1 - mean) * size, p)) for p in (half, 1 - half))
    return min(low, value), max(high, value)


def _cannot_see(
    accuracy: float, reference: Predictions, new: Predictions, job: _Job
) -> tuple[str, ...]:
    wrong = 1 - accuracy
    out = [
        "Errors that became likelier at equal confidence: were they twice as likely, the accuracy would be "
        f"{max(0.0, 1 - 2 * wrong):.3f}; three times, {max(0.0, 1 - 3 * wrong):.3f}. Nothing here would show it; "
        "only labels do."
    ]
    if job.shares is None:
        out.append(
            "Changed class shares: labels of the reference and answers of both would be needed."
        )
    elif len(job.shares.free) < len(job.names):
        few = len(job.names) - len(job.shares.free)
        out.append(f"Changed shares of {few} classes with too few labels in the reference.")
    if new.group is not None and reference.group is None:
        out.append(
            "Rows of the new data that share their fate: the reference has no groups to learn it from."
        )
    return tuple(out)


def _classes(job: _Job) -> tuple[Part, ...]:
    """By answer: how many of the answers of each class are right."""
    if job.reference.answer is None or job.new.answer is None:
        return ()
    said, theirs = job.reference.answer, job.new.answer
    there = np.bincount(theirs, minlength=len(job.names)).tolist()
    return tuple(
        job.part(name, said == i, theirs == i) for i, name in enumerate(job.names) if there[i]
    )


def _groups(job: _Job, by: ArrayLike | None, reference_by: ArrayLike | None) -> tuple[Part, ...]:
    if by is None:
        return ()
    theirs = _column(by, len(job.new.raw), "by")
    mine = (
        np.full(len(job.correct), "")
        if reference_by is None
        else _column(reference_by, len(job.correct), "reference_by")
    )
    known = reference_by is not None
    names: list[str] = np.unique(theirs).tolist()
    return tuple(
        job.part(
            name, (mine == name) if known else np.zeros(len(mine), dtype=np.bool_), theirs == name
        )
        for name in names
    )


def _column(values: ArrayLike, n: int, name: str) -> Array:
    found = np.asarray(values).astype(str)
    if found.shape != (n,):
        raise InputError(
            name,
            got=f"has shape {found.shape}",
            need=f"one value for each of the {n:,} rows is needed",
        )
    return found


def number(value: float, low: float, high: float, why: str) -> Number:
    """A number with its limits, or why there is none."""
    return (
        Number(value=value, low=low, high=high) if isfinite(value) else Number(value=None, why=why)
    )


def _part(p: Part) -> PartData:
    return PartData(
        name=p.name,
        n=p.n,
        accuracy=number(p.accuracy, p.low, p.high, "no rows"),
        reference=p.reference if isfinite(p.reference) else None,
        reference_n=p.reference_n,
        borrowed=p.borrowed,
    )


def _most_changed(parts: Sequence[Part]) -> list[PartData]:
    """The parts whose accuracy fell most come first."""
    return [_part(p) for p in sorted(parts, key=_change)]


def _change(p: Part) -> float:
    change = p.accuracy - p.reference
    return change if isfinite(change) else 0.0
