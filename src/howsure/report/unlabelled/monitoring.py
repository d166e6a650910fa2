"""monitor(): new data beside a labelled reference: estimate, drift, what the policy would do, and
stated limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import json
from howsure._core.atomic import write_text
from howsure._core.check import Array, Bools, Floats, InputError
from howsure._core.frames import frame
from howsure._core.frozen import frozen
from howsure._core.version import __version__
from howsure.bounds import clopper_pearson_interval, proportion
from howsure.policies.policy import Policy
from howsure.predictions import Predictions, needs_predictions
from howsure.render.model import (
    SCHEMA,
    DriftData,
    LabelledData,
    LimitData,
    MonitorData,
    MonthData,
    Moved,
    Number,
    PastData,
    monitor_data,
)
from howsure.report.provenance import provenance
from howsure.report.unlabelled.drift import Drift, numbers_drift, share_drift, values_drift
from howsure.report.unlabelled.estimation import SMALLEST, Estimate, estimate, number

BARS = 40


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
        return _written(json.pretty(self.data), path)

    def to_text(self, path: str | Path | None = None, *, width: int = 110) -> str:
        """The tables that the command line prints."""
        from howsure.render.monitor import sheet

        return _written(sheet(self.data).text(width), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The tables as Markdown."""
        from howsure.render.monitor import sheet

        return _written(sheet(self.data).markdown(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page: one offline file."""
        from howsure.render.monitor import page

        return _written(page(self.data), path)

    def frame(self, library: str = "pandas") -> Any:
        """One row for each month as a data frame of pandas or polars: estimate, policy, drift, and
        labels that came.
        """
        return frame([_row(m) for m in self.data["months"]], library)

    def _repr_html_(self) -> str:
        from howsure.render.html import frame

        return frame(self.to_html())

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """A monitor from its JSON text."""
        return cls(monitor_data(text))

    def __repr__(self) -> str:
        months = len(self.data["months"])
        return f"<Monitor: {months} month{'s' if months > 1 else ''}, {'passed' if self.passed else 'NOT PASSED'}>"


def _row(m: MonthData) -> dict[str, object]:
    """A month as a row of a table."""
    guess, come = m["estimate"], m["labelled"]
    known: Number = {"value": None} if come is None else come["accuracy"]
    return {
        "month": m["name"],
        "n": m["n"],
        **_columns("accuracy", guess["accuracy"]),
        "coverage": guess["coverage"],
        **_columns("risk", guess["risk"]),
        "outside": guess["outside"],
        "drifted": ", ".join(d["column"] for d in m["drift"] if d["drifted"]),
        "labels": 0 if come is None else come["n"],
        **_columns("labelled_accuracy", known),
    }


def _columns(name: str, n: Number) -> dict[str, float | None]:
    return {name: n["value"], f"{name}_low": n.get("low"), f"{name}_high": n.get("high")}


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(path, text)
    return text


def monitor(
    reference: Predictions,
    new: Predictions | Mapping[str, Predictions],
    *,
    policy: Policy | None = None,
    labels: Mapping[str, object] | None = None,
    by: ArrayLike | Mapping[str, ArrayLike] | None = None,
    reference_by: ArrayLike | None = None,
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
    together (Bonferroni); rows of a group count once. `labels` maps ids to labels where some have
    come: they say how far the estimate was off, and count instead of it. With `max_drop` a month
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
    proportion(level, "level")
    proportion(drift_level, "drift_level")
    if max_drop is not None and not 0 <= max_drop < 1:
        raise InputError(
            "max_drop", got=f"is {max_drop:g}", need="a share from 0 to 1 is needed, 0.02 say"
        )
    months = dict(new) if isinstance(new, Mapping) else {"new": new}
    if not months:
        raise InputError("there is no new data; give at least one month.")
    slices = _by_month(by, months)
    found = {
        name: estimate(
            reference,
            p,
            policy=policy,
            by=slices.get(name),
            reference_by=reference_by,
            level=level,
            seed=seed,
        )
        for name, p in months.items()
    }
    side = _Side.of(reference, policy, reference_by)
    drifts = {
        name: _drifts(side, _Side.of(p, policy, slices.get(name)), seed)
        for name, p in months.items()
    }
    tests = sum(map(len, drifts.values()))
    low, high = (float(end(side.score)) for end in (np.min, np.max))
    truths = {name: _truth(p, labels) for name, p in months.items()}
    if labels is not None and not any(known.any() for known, _ in truths.values()):
        raise InputError("labels", got="hold no id of the new data", need="labels are joined by id")
    made = [
        MonthData(
            name=name,
            n=p.n,
            unanswered=1 - p.answered,
            estimate=found[name].to_dict(),
            drift=[_drift_data(d, drift_level / tests) for d in drifts[name]],
            labelled=_labelled(reference, p, truths[name], policy, level, seed),
            bars=_bars(_Side.of(p, policy, None).score, low, high),
        )
        for name, p in months.items()
    ]
    first = next(iter(found.values()))
    limits = (
        []
        if max_drop is None
        else [_limit(month, first.reference_accuracy, max_drop) for month in made]
    )
    sources = {"reference": reference, **months}
    return Monitor(
        MonitorData(
            howsure=__version__,
            schema=SCHEMA,
            monitor=True,
            provenance={
                name: provenance(p, (files or {}).get(name, ()), command, seed=seed, level=level)
                for name, p in sources.items()
            },
            level=level,
            drift_level=drift_level,
            tests=tests,
            score=side.name,
            threshold=None
            if policy is None or not isfinite(policy.threshold)
            else policy.threshold,
            low=low,
            high=high,
            reference=_past(reference, first, side, low, high, level),
            months=made,
            limits=limits,
            passed=all(limit["passed"] for limit in limits),
        )
    )


@frozen(eq=False)
class _Side:
    """The columns that are looked at."""

    name: str
    score: Floats
    answer: Array | None
    accept: Bools | None
    by: Array | None
    unanswered: int
    asked: int  # rows, those without an answer too
    group: Array | None

    @classmethod
    def of(cls, preds: Predictions, policy: Policy | None, by: ArrayLike | None) -> _Side:
        made = None if policy is None else policy.decide(preds)
        silent = 0 if preds.unanswered is None else preds.unanswered.total
        known = preds.kind != "confidence" or preds.known_prediction is not None
        answer = None if not known else preds.prediction if made is None else made.prediction
        if answer is not None and preds.class_names is not None and answer.dtype.kind in "iu":
            answer = np.array(preds.class_names)[answer]
        return cls(
            "max_prob" if policy is None else policy.score,
            preds.confidence if made is None else made.score,
            answer,
            None if made is None else made.accept,
            None if by is None else np.asarray(by).astype(str),
            silent,
            preds.n + silent,
            preds.group,
        )

    def silent(self) -> tuple[int, int]:
        """Rows without an answer, and all rows; of grouped rows no more than there are groups."""
        scale = 1.0 if self.group is None else len(np.unique(self.group)) / len(self.group)
        return round(scale * self.unanswered), round(scale * self.asked)

    def one_of_each(self, a: Array, seed: int) -> Array:
        """One random row of each group; all rows where there are no groups."""
        if self.group is None:
            return a
        order = np.random.default_rng(seed).permutation(len(a))
        first = np.unique(self.group[order], return_index=True)[1]
        return a[order[first]]


def _drifts(reference: _Side, new: _Side, seed: int) -> list[Drift]:
    pick: Callable[[_Side, Array], Array] = lambda side, a: side.one_of_each(a, seed)
    out = [numbers_drift("score", pick(reference, reference.score), pick(new, new.score))]
    if reference.answer is not None and new.answer is not None:
        a, b = pick(reference, reference.answer), pick(new, new.answer)
        out.append(values_drift("answer", a.astype(str), b.astype(str)))
    if reference.unanswered or new.unanswered:
        out.append(share_drift("no answer", *reference.silent(), *new.silent()))
    if reference.accept is not None and new.accept is not None:
        a, b = pick(reference, reference.accept), pick(new, new.accept)
        out.append(share_drift("accepted", int(a.sum()), len(a), int(b.sum()), len(b)))
    if reference.by is not None and new.by is not None:
        out.append(values_drift("group", pick(reference, reference.by), pick(new, new.by)))
    return out


def _by_month(
    by: ArrayLike | Mapping[str, ArrayLike] | None, months: Mapping[str, Predictions]
) -> Mapping[str, ArrayLike]:
    if by is None:
        return {}
    if isinstance(by, Mapping):
        missing = [name for name in months if name not in by]
        if missing:
            raise InputError(
                "by", got=f"has no column for {missing[0]!r}", need="one for each month is needed"
            )
        return by
    if len(months) > 1:
        raise InputError(
            "by", got="is one column", need="with several months give a column for each, by name"
        )
    return {next(iter(months)): by}


def _truth(preds: Predictions, labels: Mapping[str, object] | None) -> tuple[Bools, Bools]:
    """Which rows have a label, and which of those are right."""
    none = np.zeros(preds.n, dtype=np.bool_)
    if labels is None:
        return none, none
    if preds.ids is None:
        raise InputError(
            "the new data have no ids",
            need="labels are joined by id",
            hint="Name the column of ids",
        )
    given = [labels.get(str(i)) for i in preds.ids.tolist()]
    known = np.array([label is not None for label in given], dtype=np.bool_)
    said = preds.prediction
    right = none.copy()
    for i in np.flatnonzero(known).tolist():
        right[i] = _class(given[i], preds) == (
            str(said[i]) if said.dtype.kind not in "iu" else int(said[i])
        )
    return known, right


def _class(label: object, preds: Predictions) -> int | str:
    """A label as a class number, or as text where answers are text."""
    text = str(label)
    if preds.class_names is not None and text in preds.class_names:
        return preds.class_names.index(text)
    if preds.kind == "confidence" and preds.prediction.dtype.kind not in "iu":
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if number != int(number) or number < 0 or (preds.k is not None and number >= preds.k):
        raise InputError(
            "labels", got=f"hold {text!r}", need="class numbers or class names are needed"
        )
    return int(number)


def _labelled(
    reference: Predictions,
    preds: Predictions,
    truth: tuple[Bools, Bools],
    policy: Policy | None,
    level: float,
    seed: int,
) -> LabelledData | None:
    known, right = truth
    n = int(known.sum())
    if n == 0:
        return None
    share = float(right[known].mean())
    low, high = clopper_pearson_interval(int(right.sum()), n, level)
    guess = estimate(reference, preds[known], policy=policy, level=level, seed=seed)
    off = guess.accuracy - share
    return LabelledData(
        n=n,
        accuracy=Number(value=share, low=low, high=high),
        estimate=number(guess.accuracy, guess.low, guess.high, "no estimate"),
        off=off if isfinite(off) else None,
        held=guess.low <= share <= guess.high,
    )


def _limit(month: MonthData, reference: float, most: float) -> LimitData:
    """The unfavourable limit of the accuracy: that of the labels where there are enough, else of
    the estimate.
    """
    come = month["labelled"]
    found = (
        come["accuracy"]
        if come is not None and come["n"] >= SMALLEST
        else month["estimate"]["accuracy"]
    )
    low = found.get("low")
    note = (
        f"lower limit, from {come['n']:,} labels"
        if come and found is come["accuracy"]
        else "lower limit, estimated"
    )
    return LimitData(
        month=month["name"],
        what=f"accuracy at most {most:g} below {reference:.4f}",
        value=found["value"],
        compared=low,
        limit=reference - most,
        passed=low is not None and low >= reference - most,
        note=note,
    )


def _drift_data(d: Drift, level: float) -> DriftData:
    moved = [Moved(name=name, reference=a, new=b) for name, a, b in d.moved]
    return DriftData(
        column=d.column, effect=d.effect, measure=d.measure, p=d.p, drifted=d.p < level, moved=moved
    )


def _bars(score: Floats, low: float, high: float) -> list[float]:
    """Shares of the scores in bars of equal width; scores beyond the ends stand in the last bars."""
    edges = np.linspace(low, high if high > low else low + 1.0, BARS + 1)
    count = np.histogram(np.clip(score, edges[0], edges[-1]), bins=edges)[0]
    return [float(x) for x in (count / len(score)).tolist()]


def _past(
    reference: Predictions, e: Estimate, side: _Side, low: float, high: float, level: float
) -> PastData:
    right, n = int(reference.correct.sum()), reference.n
    ends = (
        clopper_pearson_interval(right, n, level)
        if reference.group is None and reference.weight is None
        else None
    )
    return PastData(
        n=n,
        accuracy=Number(value=e.reference_accuracy, low=ends[0], high=ends[1])
        if ends
        else Number(
            value=e.reference_accuracy, low=None, high=None, why="rows are grouped or weighted"
        ),
        coverage=e.reference_coverage,
        risk=e.reference_risk if isfinite(e.reference_risk) else None,
        unanswered=side.unanswered / side.asked,
        bars=_bars(side.score, low, high),
    )
