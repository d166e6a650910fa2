"""Many labels per case: sums that add up, and the section of a report about each label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan

import numpy as np

from howsure import metrics
from howsure._core.check import Array, InputError, Ints
from howsure._core.frozen import frozen
from howsure.bounds import proportion_limits
from howsure.metrics.binary import positive_tally
from howsure.metrics.multilabel import mean_known, wrong_labels
from howsure.policies.guarantee import guaranteed_threshold
from howsure.predictions import Outcomes, Predictions
from howsure.render.model import LabelPair, LabelPromise, LabelRow, LabelsData, Number
from howsure.report.measurement import with_limits
from howsure.tallies.build import tally
from howsure.tallies.counted import counted, merged
from howsure.tallies.rows import of_moments
from howsure.tallies.tally import Tally
from howsure.uncertainty.intervals import Interval, each_interval

RISK = 0.05  # wrong among what a label decides alone
SHOWN = 20  # pairs of labels
LEAST = 5  # cases wrong on both, or a pair is not listed
ROUNDING = 1e-12  # of 1 - p
ALONE = "limits of cases with groups or weights need single cases, which are not held here"


@frozen(eq=False)
class LabelSums:
    """Of each label the tally of P(present) against the label, and of its confidence against right
    and wrong.

    `by_wrong` counts cases (or their weights) by the number of labels that are wrong, `both` those
    wrong on two labels. `a + b` has the cases of both.

    >>> preds = Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]])
    >>> LabelSums.of(preds).by_wrong
    array([1, 1, 0])
    """

    names: tuple[str, ...]
    present: tuple[Tally, ...]
    trusted: tuple[Tally, ...]
    by_wrong: Array
    both: Ints
    alone: bool = True  # cases are independent and count alike

    @classmethod
    def of(cls, preds: Predictions) -> LabelSums:
        """The sums of whole cases."""
        layout = preds.needs_labels("a report on labels")
        wrong = wrong_labels(preds)
        parts = [preds.label(i) for i in range(layout.size)]
        weight = None if preds.weight is None else preds.weight[:: layout.size]
        by_wrong = np.bincount(wrong.sum(axis=1), weight, layout.size + 1)
        both = wrong.T.astype(np.float64) @ wrong  # exact: counts far below 2^53
        return cls(
            layout.names,
            tuple(_present(p) for p in parts),
            tuple(_trusted(p) for p in parts),
            by_wrong,
            both.astype(np.int64),
            layout.alone and weight is None,
        )

    @property
    def cases(self) -> float:
        """How many cases there are, or their weight."""
        return float(self.by_wrong.sum())

    @property
    def size(self) -> int:
        """Rows of all tallies."""
        return sum(t.distinct for t in (*self.present, *self.trusted))

    def wrong_shares(self) -> Tally:
        """The share of wrong labels of each case as its loss."""
        share = np.arange(len(self.by_wrong)) / len(self.names)
        if self.by_wrong.dtype.kind == "i":
            return tally(-share, loss=share, count=self.by_wrong)
        return tally(-share, loss=share, weight=self.by_wrong)

    def single_cases(self) -> Outcomes:
        """The same case by case, for limits that see how skewed they are; cases that count alike
        only.
        """
        share = np.arange(len(self.by_wrong)) / len(self.names)
        return Outcomes(-share, loss=share, count=self.by_wrong)

    def all_right(self) -> Tally:
        """Right where all labels of a case are."""
        wrong = self.by_wrong[1:].sum().item()
        return of_moments(self.by_wrong.sum().item(), wrong, wrong, zero_one=True)

    def mean_auc(self) -> Tally:
        """One row whose mean loss is the mean AUC of the labels that have one."""
        value = mean_known([metrics.auroc(t) for t in self.present])
        return of_moments(self.cases, value * self.cases, value**2 * self.cases, zero_one=False)


def sum_labels(every: Sequence[LabelSums]) -> LabelSums:
    """All cases of all of them; they have the same labels."""
    first = every[0]
    return replace(
        first,
        present=tuple(merged(ts) for ts in zip(*(s.present for s in every), strict=True)),
        trusted=tuple(merged(ts) for ts in zip(*(s.trusted for s in every), strict=True)),
        by_wrong=np.sum([s.by_wrong for s in every], axis=0),
        both=np.sum([s.both for s in every], axis=0),
    )


def _present(preds: Predictions) -> Tally:
    if preds.weight is not None:
        return positive_tally(preds)
    return counted(np.clip(preds.probs[:, 1], 0.0, 1.0), preds.labels != 1)


def _trusted(preds: Predictions) -> Tally:
    return (
        Outcomes.of(preds).tally()
        if preds.weight is not None
        else counted(preds.confidence, ~preds.correct)
    )


def label_section(s: LabelSums, preds: Predictions | None, level: float) -> LabelsData:
    """Each label in its own right; `preds`, where they are in memory, give limits to cases with
    groups or weights.

    >>> preds = Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]], label_names=["cat", "dog"])
    >>> found = label_section(LabelSums.of(preds), preds, 0.95)
    >>> [(row["name"], row["positives"]) for row in found["rows"]]
    [('cat', 2), ('dog', 1)]
    """
    return {
        "cases": round(s.cases),
        "risk": RISK,
        "sure": level,
        "rows": [_row(s, i, preds, level) for i in range(len(s.names))],
        "together": together(s, level),
    }


def _row(s: LabelSums, i: int, preds: Predictions | None, level: float) -> LabelRow:
    present, trusted = s.present[i], s.trusted[i]
    of_class: Tally | Outcomes | str = present if s.alone else ALONE
    of_answer: Tally | Outcomes | str = trusted if s.alone else ALONE
    if preds is not None and not s.alone:
        rows = preds.label(i)
        of_class, of_answer = metrics.positive_outcomes(rows), Outcomes.of(rows)
    auc, ece = _numbers([metrics.auroc, metrics.ece], present, of_class, level)
    (right,) = _numbers([metrics.accuracy], trusted, of_answer, level)
    positives = float(present.n - present.total)
    if positives in (0, float(present.n)):
        auc = Number(
            value=None, why=f"undefined: no {'positive' if positives == 0 else 'negative'} case"
        )
    return {
        "name": s.names[i],
        "positives": round(positives),
        "auc": auc,
        "ece": ece,
        "accuracy": right,
        "promise": _promise(present, of_answer, (1 - level) / len(s.names)),
    }


def _numbers(
    wanted: Sequence[Callable[..., float]], t: Tally, source: Tally | Outcomes | str, level: float
) -> list[Number]:
    if isinstance(source, str):
        return [with_limits(f(t), Interval(nan, nan, source)) for f in wanted]
    return [
        with_limits(f(t), found)
        for f, found in zip(wanted, each_interval(wanted, source, level), strict=True)
    ]


def _promise(present: Tally, source: Tally | Outcomes | str, delta: float) -> LabelPromise:
    """What this label may decide alone, and which share of its positive cases that misses."""
    none: LabelPromise = {
        "threshold": None,
        "coverage": 0.0,
        "wrong": None,
        "bound": None,
        "missed": None,
    }
    if isinstance(source, str):
        return {**none, "why": source}
    try:
        found = guaranteed_threshold(source, risk=RISK, delta=delta)
    except InputError as e:  # weights: a promise counts independent labels
        return {**none, "why": str(e)}
    if not found.feasible:
        more = (
            ""
            if found.labels_needed is None
            else f", about {found.labels_needed:,} cases like these would do"
        )
        return {**none, "why": f"{found.n:,} cases do not allow it{more}"}
    absent = present.score <= np.minimum(0.5, 1 - found.threshold + ROUNDING)
    positive = present.count - present.loss
    missed = float(positive[absent].sum() / positive.sum()) if positive.sum() else None
    return {
        "threshold": found.threshold,
        "coverage": found.coverage,
        "wrong": found.observed,
        "bound": found.bound,
        "missed": missed,
    }


def together(s: LabelSums, level: float) -> list[LabelPair]:
    """Pairs of labels that are wrong together more often than apart, beyond chance, the clearest
    first.

    Listed where the lower limit of P(b wrong | a wrong), at a level shared by all pairs, lies above
    P(b wrong).
    """
    many = len(s.names)
    wrong = np.diag(s.both).astype(np.float64)
    if many < 2 or s.by_wrong.dtype.kind != "i":
        return []
    a, b = np.triu_indices(many, 1)
    low, high = proportion_limits(s.both[a, b], wrong[a], (1 - level) / 2 / len(a))
    base = wrong[b] / s.cases
    clear = np.flatnonzero((s.both[a, b] >= LEAST) & (low > base))
    order = clear[np.lexsort((b[clear], a[clear], -(low / np.maximum(base, 1e-300))[clear]))][
        :SHOWN
    ]
    return [
        {
            "a": s.names[a[i]],
            "b": s.names[b[i]],
            "cases": int(s.both[a[i], b[i]]),
            "share": float(s.both[a[i], b[i]] / wrong[a[i]]),
            "low": float(low[i]),
            "high": float(high[i]),
            "otherwise": float(base[i]),
        }
        for i in order.tolist()
    ]
