"""Many labels per case: sums that add up, and the section of a report about each label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from howsure import metrics
from howsure._core.checks import Array, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure._core.text import format_rounded_up
from howsure.bounds import clopper_pearson, compute_proportion_limits
from howsure.metrics.binary import average_known, mark_wrong_labels, positive_tally
from howsure.policies.guarantee import guaranteed_threshold
from howsure.predictions import Outcomes, Predictions
from howsure.report.measurement import LimitSource, Sureness, build_number, find_limits
from howsure.report.report_types import LabelGuarantee, LabelPair, LabelRow, LabelsData, Number
from howsure.tallies.building import tally
from howsure.tallies.counted import count_scores as counted
from howsure.tallies.counted import merge_tallies
from howsure.tallies.row_tally import of_moments
from howsure.tallies.tally import Tally

PROMISED_RISK = 0.05  # wrong among what a label decides alone
MAX_LISTED_PAIRS = 20
MIN_CASES_OF_PAIR = 5  # cases wrong on both, or a pair is not listed
CLAIM_ROUNDING = 1e-12  # of 1 - p
NEEDS_SINGLE_CASES = (
    "limits of cases with groups or weights need single cases, which are not held here"
)


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
        wrong = mark_wrong_labels(preds)
        present: list[Tally] = []
        trusted: list[Tally] = []
        for i in range(layout.size):
            label = preds.label(i)
            if label.weight is not None:
                present.append(positive_tally(label))
                trusted.append(Outcomes.of(label).tally())
            else:
                chance = np.clip(label.probs[:, 1], 0.0, 1.0)
                present.append(counted(chance, label.labels != 1))
                trusted.append(counted(label.confidence, ~label.correct))
        # The rows of one case carry the same weight.
        weight = None if preds.weight is None else preds.weight[:: layout.size]
        both = wrong.T.astype(np.float64) @ wrong  # exact: counts far below 2^53
        return cls(
            names=layout.names,
            present=tuple(present),
            trusted=tuple(trusted),
            by_wrong=count_values(wrong.sum(axis=1), weight, layout.size + 1),
            both=both.astype(np.int64),
            alone=layout.alone and weight is None,
        )

    @property
    def cases(self) -> float:
        """How many cases there are, or their weight."""
        return float(self.by_wrong.sum())

    @property
    def counted(self) -> bool:
        """Whether cases are counted, not weighted."""
        return self.by_wrong.dtype.kind == "i"

    @property
    def size(self) -> int:
        """Rows of all tallies."""
        return sum(t.distinct for t in (*self.present, *self.trusted))

    def wrong_shares(self) -> Tally:
        """The share of wrong labels of each case as its loss."""
        share = np.arange(len(self.by_wrong)) / len(self.names)
        if self.counted:
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
        value = average_known([metrics.auroc(t) for t in self.present])
        return of_moments(self.cases, value * self.cases, value**2 * self.cases, zero_one=False)


def merge_label_sums(every: Sequence[LabelSums]) -> LabelSums:
    """All cases of all of them; they have the same labels."""
    labels = range(len(every[0].names))
    return replace(
        every[0],
        present=tuple(merge_tallies([s.present[i] for s in every]) for i in labels),
        trusted=tuple(merge_tallies([s.trusted[i] for s in every]) for i in labels),
        by_wrong=np.sum([s.by_wrong for s in every], axis=0),
        both=np.sum([s.both for s in every], axis=0),
    )


def build_label_section(s: LabelSums, preds: Predictions | None, level: float) -> LabelsData:
    """Each label in its own right; `preds`, where they are in memory, give limits to cases with
    groups or weights.

    >>> preds = Predictions.from_multilabel(
    ...     [[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]], label_names=["cat", "dog"]
    ... )
    >>> section = build_label_section(LabelSums.of(preds), preds, 0.95)
    >>> [(row["name"], row["positives"]) for row in section["rows"]]
    [('cat', 2), ('dog', 1)]
    """
    return {
        "cases": round(s.cases),
        "risk": PROMISED_RISK,
        "sure": level,
        "rows": [_build_row(s, i, preds, level) for i in range(len(s.names))],
        "together": list_pairs_wrong_together(s, level),
    }


def _build_row(s: LabelSums, i: int, preds: Predictions | None, level: float) -> LabelRow:
    present, trusted = s.present[i], s.trusted[i]
    of_class: LimitSource = NEEDS_SINGLE_CASES
    of_answer: LimitSource = NEEDS_SINGLE_CASES
    if s.alone:
        of_class, of_answer = present, trusted
    elif preds is not None:
        label = preds.label(i)
        of_class, of_answer = metrics.positive_outcomes(label), Outcomes.of(label)
    sure = Sureness(level)
    auc_limits, ece_limits = find_limits([metrics.auroc, metrics.ece], of_class, sure)
    (accuracy_limits,) = find_limits([metrics.accuracy], of_answer, sure)
    auc = build_number(metrics.auroc(present), auc_limits, with_note=True)
    positives = float(present.n - present.total)
    # Present is answered above one half; a right claim of the tally is a case that is positive.
    called = present.score > 0.5
    found = float((present.count - present.loss)[called].sum())
    if positives == 0:
        auc = Number(value=None, why="undefined: no positive case")
    elif positives == float(present.n):
        auc = Number(value=None, why="undefined: no negative case")
    return {
        "name": s.names[i],
        "positives": round(positives),
        "missed": round(positives - found),
        "auc": auc,
        "ece": build_number(metrics.ece(present), ece_limits, with_note=True),
        "accuracy": build_number(metrics.accuracy(trusted), accuracy_limits, with_note=True),
        # The guarantees of all labels hold at once: each gets its share of the chance to fail.
        "guarantee": _find_guarantee(present, of_answer, (1 - level) / len(s.names)),
    }


def _find_guarantee(present: Tally, source: LimitSource, delta: float) -> LabelGuarantee:
    """What this label may decide alone, and which share of its positive cases that misses."""
    none: LabelGuarantee = {
        "threshold": None,
        "coverage": 0.0,
        "wrong": None,
        "bound": None,
        "missed": None,
    }
    if isinstance(source, str):
        return {**none, "why": source}
    # A guarantee that always giving one answer keeps says nothing about the label.
    positives, total = float(present.n - present.total), float(present.n)
    for answer, wrong in (("absent", positives), ("present", total - positives)):
        if clopper_pearson(wrong, total, delta) < PROMISED_RISK:
            return {**none, "why": f'empty: always answering "{answer}" keeps it'}
    try:
        promise = guaranteed_threshold(source, risk=PROMISED_RISK, delta=delta)
    except InputError as e:  # weights: a promise counts independent labels
        return {**none, "why": str(e)}
    if not promise.feasible:
        why = f"{promise.n:,} cases do not allow it"
        if promise.groups is not None:
            why = f"{promise.groups:,} groups do not allow it"
        if promise.labels_needed is not None:
            needed = format_rounded_up(promise.labels_needed)
            why += f", about {needed} would usually be enough"
        if promise.why:
            why = promise.why
        return {**none, "why": why}
    # A label is called absent where its confidence 1 - p reaches the threshold.
    absent = present.score <= np.minimum(0.5, 1 - promise.threshold + CLAIM_ROUNDING)
    positive = present.count - present.loss
    missed = None
    if positive.sum():
        missed = float(positive[absent].sum() / positive.sum())
    return {
        "threshold": promise.threshold,
        "coverage": promise.coverage,
        "wrong": promise.observed,
        "bound": promise.bound,
        "missed": missed,
    }


def list_pairs_wrong_together(s: LabelSums, level: float) -> list[LabelPair]:
    """Pairs of labels that are wrong together more often than apart, beyond chance, the clearest
    first.

    Listed where the lower limit of P(b wrong | a wrong), at a level shared by all pairs, lies above
    P(b wrong).
    """
    if len(s.names) < 2 or not s.counted:
        return []
    a, b = np.triu_indices(len(s.names), 1)
    wrong = np.diag(s.both).astype(np.float64)
    together = s.both[a, b]
    low, high = compute_proportion_limits(together, wrong[a], (1 - level) / 2 / len(a))
    base = wrong[b] / s.cases
    clear = np.flatnonzero((together >= MIN_CASES_OF_PAIR) & (low > base))
    ratio = low / np.maximum(base, 1e-300)  # how much likelier, at least
    order = clear[np.lexsort((b[clear], a[clear], -ratio[clear]))]
    return [
        {
            "a": s.names[a[i]],
            "b": s.names[b[i]],
            "cases": int(together[i]),
            "share": float(together[i] / wrong[a[i]]),
            "low": float(low[i]),
            "high": float(high[i]),
            "otherwise": float(base[i]),
        }
        for i in order[:MAX_LISTED_PAIRS].tolist()
    ]
