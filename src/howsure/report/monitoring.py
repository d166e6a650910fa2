"""monitor(): new data beside a labelled reference: estimate, drift, what the policy would do, and
stated limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks, strict_json
from howsure._core.checks import Array, Bools, Floats, InputError
from howsure._core.checks import build_frame as frame
from howsure._core.frozen import frozen
from howsure._core.version import __version__
from howsure.bounds import check_proportion, clopper_pearson_interval
from howsure.policies.policy import Policy
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.given_answers import is_right
from howsure.report.drift import (
    Drift,
    measure_number_drift,
    measure_share_drift,
    measure_value_drift,
)
from howsure.report.estimation import (
    LEAST_REFERENCE_ROWS,
    Estimate,
    build_number,
    estimate,
)
from howsure.report.report import build_provenance, save_text
from howsure.report.report_types import (
    SCHEMA,
    LabelledData,
    LimitData,
    MonitorData,
    MonthData,
    Number,
    PastData,
    Provenance,
    parse_monitor,
)

if TYPE_CHECKING:
    from howsure.report.render.pictures import Picture

HISTOGRAM_BARS = 40


@frozen(eq=False)
class Monitor:
    """New data beside a labelled reference; `.data` is its JSON.

    >>> rng = np.random.default_rng(0)
    >>> s = rng.beta(5, 1.2, 3000)
    >>> past = Predictions.from_confidence(s, rng.random(3000) < s)
    >>> monitor(past, Predictions.from_confidence(rng.beta(5, 1.2, 1000)))
    <Monitor: 1 month, passed>
    """

    data: MonitorData

    @property
    def passed(self) -> bool:
        """Whether all stated limits are met."""
        return self.data["passed"]

    def to_json(self, path: str | Path | None = None) -> str:
        """The monitor as strict JSON."""
        return save_text(strict_json.dump_pretty(self.data), path)

    def to_text(self, path: str | Path | None = None, *, width: int = 110) -> str:
        """The tables that the command line prints."""
        from howsure.report.render.monitor_page import build_monitor_sheet

        return save_text(build_monitor_sheet(self.data).text(width), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The tables as Markdown."""
        from howsure.report.render.monitor_page import build_monitor_sheet

        return save_text(build_monitor_sheet(self.data).markdown(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page: one offline file."""
        from howsure.report.render.monitor_page import render_monitor_page

        return save_text(render_monitor_page(self.data), path)

    def pictures(self) -> list[Picture]:
        """Every picture of the page."""
        from howsure.report.render.monitor_page import draw_monitor_pictures

        return draw_monitor_pictures(self.data)

    def frame(self, library: str = "pandas") -> Any:
        """One row for each month as a data frame of pandas or polars: estimate, policy, drift, and
        labels that came.
        """
        rows: list[dict[str, object]] = []
        for month in self.data["months"]:
            guess, labelled = month["estimate"], month["labelled"]
            row: dict[str, object] = {"month": month["name"], "n": month["n"]}
            row |= _build_number_columns("accuracy", guess["accuracy"])
            row["coverage"] = guess["coverage"]
            row |= _build_number_columns("risk", guess["risk"])
            row["outside"] = guess["outside"]
            row["drifted"] = ", ".join(d["column"] for d in month["drift"] if d["drifted"])
            accuracy: Number = {"value": None}
            row["labels"] = 0
            if labelled is not None:
                accuracy, row["labels"] = labelled["accuracy"], labelled["n"]
            rows.append(row | _build_number_columns("labelled_accuracy", accuracy))
        return frame(rows, library)

    def _repr_html_(self) -> str:
        from howsure.report.render.page import wrap_in_iframe as frame

        return frame(self.to_html())

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """A monitor from its JSON text."""
        return cls(parse_monitor(text))

    def __repr__(self) -> str:
        n = len(self.data["months"])
        months = "month" if n == 1 else "months"
        passed = "passed" if self.passed else "FAILED"
        return f"<Monitor: {n} {months}, {passed}>"


def _build_number_columns(name: str, n: Number) -> dict[str, float | None]:
    return {name: n["value"], f"{name}_low": n.get("low"), f"{name}_high": n.get("high")}


def monitor(
    reference: Predictions,
    new: Predictions | Mapping[str, Predictions],
    *,
    policy: Policy | None = None,
    labels: Mapping[str, object] | None = None,
    correct: Mapping[str, object] | None = None,
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    reference_by: ArrayLike | None = None,
    count: Mapping[str, ArrayLike] | None = None,
    reference_count: ArrayLike | None = None,
    max_drop: float | None = None,
    level: float = 0.95,
    drift_level: float = 0.01,
    seed: int = 0,
    files: Mapping[str, Sequence[str | Path]] | None = None,
    command: str | None = None,
) -> Monitor:
    """Compare new data, or a series of months by name, with a labelled reference of the same model.

    Each month gets its `estimate`, what the `policy` would accept, and tests for drift of score,
    answers, missing answers (where either side lacks some), coverage and of the groups in `by` (a
    value per row; by month where there are several). `drift_level` holds for all tests of the call
    together (Bonferroni); rows of a group count once. `reference_count` and, by month, `count` say
    how often each row is there. `labels` maps ids to labels where some have
    come, or `correct` to right (1) and wrong (0): they say how far the estimate was off, and count
    instead of it. With `max_drop` a month
    passes where the unfavourable limit of its accuracy is at most that far below the accuracy of
    the reference. Drift alone fails nothing.

    >>> rng = np.random.default_rng(0)
    >>> s = rng.beta(5, 1.2, 3000); later = rng.beta(4, 1.5, 1000)
    >>> past = Predictions.from_confidence(s, rng.random(3000) < s)
    >>> found = monitor(past, Predictions.from_confidence(later), max_drop=0.02)
    >>> found.passed, [d["column"] for d in found.data["months"][0]["drift"] if d["drifted"]]
    (False, ['score'])
    """
    needs_predictions(reference, "monitor")
    check_proportion(level, "level")
    check_proportion(drift_level, "drift_level")
    if max_drop is not None and not 0 <= max_drop < 1:
        raise InputError(
            "max_drop", got=f"is {max_drop:g}", need="a share from 0 to 1 is needed, 0.02 say"
        )
    if labels is not None and correct is not None:
        raise InputError("labels and correct say the same; give one of them.")
    sets = dict(new) if isinstance(new, Mapping) else {"new": new}
    if not sets:
        raise InputError("there is no new data; give at least one month.")
    slices = _split_by_month(by, sets)
    counts: Mapping[str, ArrayLike] = count or {}
    for name in counts:
        if name not in sets:
            raise InputError("count", got=f"has {name!r}", need="it is no name of a month")
    if labels is not None and (count is not None or reference_count is not None):
        raise InputError("labels are joined to single rows, and these are counts; leave one out.")
    past = MonitoredColumns.of(reference, policy, reference_by, reference_count)
    estimate_new = partial(
        estimate,
        reference,
        policy=policy,
        reference_count=reference_count,
        level=level,
        seed=seed,
    )
    estimates: list[Estimate] = []
    drifts: list[list[Drift]] = []
    months: list[MonthData] = []
    for name, preds in sets.items():
        column = slices.get(name)
        times = counts.get(name)
        now = MonitoredColumns.of(preds, policy, column, times)
        estimates.append(estimate_new(preds, by=column, reference_by=reference_by, count=times))
        drifts.append(measure_drifts(past, now, seed))
        months.append(
            MonthData(
                name=name,
                n=estimates[-1].n,
                unanswered=1 - preds.answered,
                estimate=estimates[-1].to_dict(),
                drift=[],  # judged below, when the tests of all months are counted
                labelled=_compare_with_labels(
                    preds, labels, correct, estimate_new=estimate_new, level=level
                ),
                bars=_compute_bars(now, past),
            )
        )
    if (labels is not None or correct is not None) and not any(
        month["labelled"] for month in months
    ):
        raise InputError("labels", got="hold no id of the new data", need="labels are joined by id")
    # The level of drift holds for all tests of all months together (Bonferroni).
    tests = sum(map(len, drifts))
    for month, measured in zip(months, drifts, strict=True):
        month["drift"] = [drift.judge(drift_level / tests) for drift in measured]
    first = estimates[0]  # all say the same of the reference
    limits: list[LimitData] = []
    if max_drop is not None:
        limits = [_judge_drop(month, first.reference_accuracy, max_drop) for month in months]
    threshold = None if policy is None or not isfinite(policy.threshold) else policy.threshold
    provenance: dict[str, Provenance] = {}
    for name, preds in {"reference": reference, **sets}.items():
        used = (files or {}).get(name, ())
        provenance[name] = build_provenance(preds, used, command, seed=seed, level=level)
    data: MonitorData = {
        "howsure": __version__,
        "schema": SCHEMA,
        "monitor": True,
        "provenance": provenance,
        "level": level,
        "drift_level": drift_level,
        "tests": tests,
        "score": past.score_name,
        "threshold": threshold,
        "low": float(past.score.min()),
        "high": float(past.score.max()),
        "reference": _build_past(reference, first, past),
        "months": months,
        "limits": limits,
        "passed": all(limit["passed"] for limit in limits),
    }
    return Monitor(data)


def _split_by_month(
    by: ArrayLike | Mapping[str, ArrayLike] | None, sets: Mapping[str, Predictions]
) -> Mapping[str, ArrayLike]:
    if by is None:
        return {}
    if isinstance(by, Mapping):
        for name in sets:
            if name not in by:
                raise InputError(
                    "by", got=f"has no column for {name!r}", need="one for each month is needed"
                )
        return by
    if len(sets) > 1:
        raise InputError(
            "by", got="is one column", need="with several months give a column for each, by name"
        )
    return {next(iter(sets)): by}


@frozen(eq=False)
class MonitoredColumns:
    """The columns of one data set whose drift is tested."""

    score_name: str
    score: Floats
    answer: Array | None
    accept: Bools | None
    by: Array | None
    unanswered: int
    asked: int  # rows, those without an answer too
    group: Array | None
    times: Floats | None  # how often each row is there

    @classmethod
    def of(
        cls,
        preds: Predictions,
        policy: Policy | None,
        by: ArrayLike | None,
        count: ArrayLike | None = None,
    ) -> MonitoredColumns:
        """What the policy sees of the predictions; without one their confidence and answers."""
        score_name, score, accept = preds.score_name, preds.score, None
        answer = None
        if preds.vectors or preds.known_prediction is not None:
            answer = preds.prediction
        if policy is not None:
            decided = policy.decide(preds)
            score_name, score, accept = policy.score, decided.score, decided.accept
            if answer is not None:
                answer = decided.prediction
        if answer is not None and preds.class_names is not None and answer.dtype.kind in "iu":
            answer = np.array(preds.class_names)[answer]
        unanswered = 0 if preds.unanswered is None else preds.unanswered.total
        times, rows = None, preds.n
        if count is not None:
            times = checks.counts(count, preds.n).astype(np.float64)
            rows = int(times.sum())
        return cls(
            score_name=score_name,
            score=score,
            answer=answer,
            accept=accept,
            by=None if by is None else np.asarray(by).astype(str),
            unanswered=unanswered,
            asked=rows + unanswered,
            group=preds.group,
            times=times,
        )

    def count_unanswered(self) -> tuple[int, int]:
        """Rows without an answer, and all rows; of grouped rows no more than there are groups."""
        if self.group is None:
            return self.unanswered, self.asked
        # Rows without an answer have no group here; they are taken to be as clustered as the others.
        scale = len(np.unique(self.group)) / len(self.group)
        return round(scale * self.unanswered), round(scale * self.asked)

    def pick_independent(self, column: Array, seed: int) -> Array:
        """One random row of each group; all rows where there are no groups."""
        if self.group is None:
            return column
        # np.unique takes the first row of a group, so the rows are shuffled first.
        order = np.random.default_rng(seed).permutation(len(column))
        first = np.unique(self.group[order], return_index=True)[1]
        return column[order[first]]


def measure_drifts(past: MonitoredColumns, now: MonitoredColumns, seed: int) -> list[Drift]:
    """The drift of each column that both sides have."""

    def pick(old: Array, new: Array) -> tuple[Array, Array]:
        return past.pick_independent(old, seed), now.pick_independent(new, seed)

    def count_rows(column: Array, side: MonitoredColumns) -> int:
        return int((column if side.times is None else column * side.times).sum())

    drifts = [
        measure_number_drift(
            "score",
            *pick(past.score, now.score),
            reference_times=past.times,
            times=now.times,
        )
    ]
    if past.answer is not None and now.answer is not None:
        old, new = pick(past.answer, now.answer)
        drifts.append(measure_value_drift("answer", old.astype(str), new.astype(str)))
    if past.unanswered or now.unanswered:
        (some, n), (later, m) = past.count_unanswered(), now.count_unanswered()
        drifts.append(measure_share_drift("no answer", some=some, n=n, later=later, m=m))
    if past.accept is not None and now.accept is not None:
        old, new = pick(past.accept, now.accept)
        drifts.append(
            measure_share_drift(
                "accepted",
                some=count_rows(old, past),
                n=count_rows(np.ones(len(old)), past),
                later=count_rows(new, now),
                m=count_rows(np.ones(len(new)), now),
            )
        )
    if past.by is not None and now.by is not None:
        drifts.append(measure_value_drift("group", *pick(past.by, now.by)))
    return drifts


def _compare_with_labels(
    preds: Predictions,
    labels: Mapping[str, object] | None,
    correct: Mapping[str, object] | None,
    *,
    estimate_new: Callable[[Predictions], Estimate],
    level: float,
) -> LabelledData | None:
    """What the labels that came say, beside the estimate for the very rows that they are of."""
    came = labels
    if labels is None:
        came = correct
    if came is None:
        return None
    if preds.ids is None:
        raise InputError(
            "the new data have no ids",
            need="labels are joined by id",
            hint="Name the column of ids",
        )
    are_numbers = preds.prediction.dtype.kind in "iu"
    answers = preds.prediction.tolist()
    rows: list[int] = []
    right: list[bool] = []
    for i, row_id in enumerate(preds.ids.tolist()):
        label = came.get(str(row_id))
        if label is None:
            continue
        rows.append(i)
        if labels is None:
            right.append(bool(checks.zero_one([label], "correct")[0]))
            continue
        if are_numbers:
            answer = int(answers[i])
        else:
            answer = str(answers[i])
        if answer == -1:
            raise InputError(
                "the new data have no answers", need="labels are compared with them; give correct"
            )
        right.append(is_right(answer, str(label), preds.k, preds.class_names))
    if not rows:
        return None
    guess = estimate_new(preds[np.array(rows)])
    share = sum(right) / len(right)
    low, high = clopper_pearson_interval(sum(right), len(right), level)
    off = guess.accuracy - share
    return LabelledData(
        n=len(right),
        accuracy=Number(value=share, low=low, high=high),
        estimate=build_number(guess.accuracy, guess.low, guess.high, "no estimate"),
        off=off if isfinite(off) else None,
        held=guess.low <= share <= guess.high,
    )


def _judge_drop(month: MonthData, reference: float, max_drop: float) -> LimitData:
    """The unfavourable limit of the accuracy: that of the labels where there are enough, else of
    the estimate.
    """
    accuracy, note = month["estimate"]["accuracy"], "lower limit, estimated"
    labelled = month["labelled"]
    if labelled is not None and labelled["n"] >= LEAST_REFERENCE_ROWS:
        accuracy, note = labelled["accuracy"], f"lower limit, from {labelled['n']:,} labels"
    low = accuracy.get("low")
    return LimitData(
        month=month["name"],
        what=f"accuracy may have dropped by more than {100 * max_drop:g} points",
        value=accuracy["value"],
        compared=low,
        limit=reference - max_drop,
        passed=low is not None and low >= reference - max_drop,
        note=note,
    )


def _build_past(reference: Predictions, guess: Estimate, past: MonitoredColumns) -> PastData:
    accuracy = Number(value=guess.reference_accuracy, low=None, high=None)
    if reference.group is None and reference.weight is None:
        right = round(guess.reference_accuracy * guess.reference_n)
        low, high = clopper_pearson_interval(right, guess.reference_n, guess.level)
        accuracy.update(low=low, high=high)
    else:
        accuracy["why"] = "rows are grouped or weighted"
    return PastData(
        n=guess.reference_n,
        accuracy=accuracy,
        coverage=guess.reference_coverage,
        risk=guess.reference_risk if isfinite(guess.reference_risk) else None,
        unanswered=past.unanswered / past.asked,
        bars=_compute_bars(past, past),
    )


def _compute_bars(now: MonitoredColumns, past: MonitoredColumns) -> list[float]:
    """Shares of the scores in bars of equal width, from the lowest to the highest score of the
    past; scores beyond the ends stand in the last bars.
    """
    low, high = float(past.score.min()), float(past.score.max())
    edges = np.linspace(low, high if high > low else low + 1.0, HISTOGRAM_BARS + 1)
    score = np.clip(now.score, edges[0], edges[-1])
    count = np.histogram(score, bins=edges, weights=now.times)[0]
    return [float(share) for share in (count / count.sum()).tolist()]
