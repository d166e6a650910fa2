"""Limits on metrics: a gate that a model passes or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from howsure import metrics
from howsure._core.check import InputError
from howsure.predictions import Predictions
from howsure.render.catalogue import RANK, Item, item
from howsure.render.model import Entry, ReportData
from howsure.report import catalogue
from howsure.report.measurement import Sureness, measured
from howsure.report.samples import Samples

WITH_ARGUMENT = {"coverage_at_risk": "risk", "risk_at_coverage": "coverage"}
WATCHED = ("accuracy", "aurc", "ece")


@dataclass(frozen=True)
class Limit:
    """`name` must stay below (`max`) or above (`min`) `limit`; an argument such as the risk where it needs one."""

    name: str
    side: Literal["max", "min"]
    limit: float
    argument: float | None = None

    @property
    def key(self) -> str:
        """The metric's name in a report."""
        return self.name if self.argument is None else f"{self.name}_{self.argument:g}"


@dataclass(frozen=True)
class Verdict:
    """What was asked, what was found, and whether it is good enough."""

    what: str
    value: float | None
    compared: float | None
    limit: float
    passed: bool
    note: str = ""


def limitable(preds: Predictions) -> dict[str, Item]:
    """Every metric that can be limited on these predictions, by name."""
    return {i.name: i for i in (*catalogue.whole(preds), *catalogue.ranking(), *catalogue.claims())}


def check(
    preds: Predictions,
    limits: Sequence[Limit],
    *,
    baseline: ReportData | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> list[Verdict]:
    """Compare each limit with the unfavourable end of the metric's interval.

    The upper end counts for a maximum, the lower end for a minimum, the value itself where there is no interval.
    With a `baseline` (the JSON of an earlier report) accuracy, AURC and ECE must not be worse than its values
    by more than chance: the whole interval on the worse side fails.

    >>> preds = Predictions.from_confidence([0.9, 0.8, 0.7], [1, 1, 0])
    >>> [v.passed for v in check(preds, [Limit("accuracy", "min", 0.99)])]
    [False]
    """
    if not limits and baseline is None:
        raise InputError("there is nothing to check; give a limit such as --max-ece 0.05, or a baseline.")
    samples = Samples.of(preds, ["max_prob"])
    known = limitable(preds)
    items = {limit.key: _item(limit, known) for limit in limits}
    watched = {name: known[name] for name in WATCHED} if baseline is not None else {}
    found = measured([*{**items, **watched}.values()], samples, samples.first, Sureness(level, seed).check())
    verdicts = [_limit_verdict(limit, found[limit.key]) for limit in limits]
    return verdicts + [_baseline_verdict(name, found[name], baseline) for name in watched if baseline is not None]


def _item(limit: Limit, known: Mapping[str, Item]) -> Item:
    if limit.name in WITH_ARGUMENT:
        metric = getattr(metrics, limit.name)
        how = partial(metric, **{WITH_ARGUMENT[limit.name]: limit.argument})
        return item(limit.key, RANK, limit.key, "", "order", metric, measure=how)
    if limit.name not in known:
        raise InputError(f"{limit.name} cannot be measured on these predictions; possible: {', '.join(known)}.")
    return known[limit.name]


def _limit_verdict(limit: Limit, entry: Entry) -> Verdict:
    what = f"{limit.key} {'≤' if limit.side == 'max' else '≥'} {limit.limit:g}"
    if entry["value"] is None:
        return Verdict(what, None, None, limit.limit, False, entry.get("why", ""))
    end = entry.get("high") if limit.side == "max" else entry.get("low")
    compared = entry["value"] if end is None else end
    good = compared <= limit.limit if limit.side == "max" else compared >= limit.limit
    note = "value, there is no interval" if end is None else f"{'upper' if limit.side == 'max' else 'lower'} end"
    return Verdict(what, entry["value"], compared, limit.limit, good, note)


def _baseline_verdict(name: str, entry: Entry, baseline: ReportData) -> Verdict:
    """The most favourable of value and limits must reach the baseline; the limits of a biased metric, such as a
    small ECE, may lie on one side of its value."""
    old = baseline["metrics"].get(name)
    before = None if old is None else old["value"]
    what = f"{name} not worse than the baseline"
    if before is None or entry["value"] is None:
        raise InputError(f"{name} has no value in the baseline or here, so the two cannot be compared.")
    higher = entry["better"] == "higher"
    limits = (entry.get("low"), entry.get("high"))
    ends = [entry["value"], *(end for end in limits if end is not None)]
    best = max(ends) if higher else min(ends)
    return Verdict(what, entry["value"], best, before, best >= before if higher else best <= before, "favourable end")
