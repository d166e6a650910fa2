"""Limits on metrics: a gate that a model passes or not; no limits of chance, no pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import Literal, NamedTuple

from howsure import metrics
from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.predictions import Predictions
from howsure.render.catalogue import RANK, Item, item
from howsure.render.model import Entry, ReportData
from howsure.report import catalogue
from howsure.report.comparison.models import align
from howsure.report.measurement import Sureness, measured
from howsure.report.samples import Samples
from howsure.uncertainty.clusters import few_groups
from howsure.uncertainty.differences import mover
from howsure.uncertainty.intervals import each_paired_difference

WITH_ARGUMENT = {"coverage_at_risk": "risk", "risk_at_coverage": "coverage"}
WATCHED = ("accuracy", "aurc", "ece")


@frozen
class Limit:
    """`name` must stay below (`max`) or above (`min`) `limit`; an argument such as the risk where
    it needs one.
    """

    name: str
    side: Literal["max", "min"]
    limit: float
    argument: float | None = None

    @property
    def key(self) -> str:
        """The metric's name in a report."""
        return self.name if self.argument is None else f"{self.name}_{self.argument:g}"


@frozen
class Verdict:
    """What was asked, what was found, and whether it is good enough; `other` is the number of the
    other side.

    `unsafe` says what makes the limits hold less often than they say.
    """

    what: str
    value: float | None
    compared: float | None
    limit: float
    passed: bool
    note: str = ""
    other: float | None = None
    unsafe: str = ""


def limitable(preds: Predictions) -> dict[str, Item]:
    """Every metric that can be limited on these predictions, by name."""
    return {i.name: i for i in (*catalogue.whole(preds), *catalogue.ranking(), *catalogue.claims())}


def check(
    preds: Predictions,
    limits: Sequence[Limit],
    *,
    baseline: ReportData | None = None,
    against: Predictions | None = None,
    point: bool = False,
    level: float = 0.95,
    seed: int = 0,
) -> list[Verdict]:
    """Compare each limit with the unfavourable end of the metric's interval; without an interval
    nothing passes.

    The upper end counts for a maximum, the lower end for a minimum, so a model that is not good
    enough passes with probability (1 − level)/2 at most. `point` compares the values instead and
    promises nothing.

    With a `baseline` (the JSON of an earlier report, of other samples) or `against` (another
    model's predictions of the same samples, joined by ids where both have them) accuracy, AURC and
    ECE must not be worse by more than chance: a number fails where the limits of the difference lie
    on the worse side of 0. The limits of the three are shared out, so that an equally good model
    fails in 1 − level of the cases at most.

    >>> preds = Predictions.from_confidence([0.9, 0.8, 0.7], [1, 1, 0])
    >>> [v.passed for v in check(preds, [Limit("accuracy", "min", 0.99)])]
    [False]
    >>> same = check(preds, [], against=preds)[0]
    >>> same.value == same.other, same.passed
    (True, True)
    """
    if not limits and baseline is None and against is None:
        raise InputError(
            "there is nothing to check; give a limit such as --max-ece 0.05, or a baseline."
        )
    sure = Sureness(level, seed).check()
    samples = Samples.of(preds, ["max_prob"])
    known = limitable(preds)
    items = {limit.key: _item(limit, known) for limit in limits}
    watched = {name: known[name] for name in WATCHED} if baseline is not None else {}
    found = measured([*{**items, **watched}.values()], samples, samples.first, sure)
    verdicts = [_limit_verdict(limit, found[limit.key], point=point) for limit in limits]
    if baseline is not None:
        verdicts += [
            _baseline_verdict(name, found[name], baseline, level, point=point) for name in watched
        ]
    return verdicts + ([] if against is None else _against(preds, against, sure, point=point))


def _item(limit: Limit, known: Mapping[str, Item]) -> Item:
    if limit.name in WITH_ARGUMENT:
        metric = getattr(metrics, limit.name)
        how = partial(metric, **{WITH_ARGUMENT[limit.name]: limit.argument})
        return item(limit.key, RANK, limit.key, "", "order", metric, measure=how)
    if limit.name not in known:
        raise InputError(
            f"{limit.name} cannot be measured on these predictions; possible: {', '.join(known)}."
        )
    return known[limit.name]


def _limit_verdict(limit: Limit, entry: Entry, *, point: bool) -> Verdict:
    what = f"{limit.key} {'≤' if limit.side == 'max' else '≥'} {limit.limit:g}"
    value = entry["value"]
    if value is None:
        return Verdict(what, None, None, limit.limit, False, entry.get("why", ""))
    end = value if point else entry.get("high") if limit.side == "max" else entry.get("low")
    if end is None:
        note = (
            f"no limits, no pass: {entry.get('why', 'there are none')}; --point compares the value"
        )
        return Verdict(what, value, None, limit.limit, False, note)
    good = end <= limit.limit if limit.side == "max" else end >= limit.limit
    note = "value" if point else f"{'upper' if limit.side == 'max' else 'lower'} end"
    return Verdict(
        what, value, end, limit.limit, good, note, unsafe="" if point else entry.get("note", "")
    )


class Change(NamedTuple):
    """How far a number is from that of the other side: its difference, and the limits of it where
    there are some.
    """

    difference: float
    low: float | None
    high: float | None

    def worse(self, *, higher: bool) -> float | None:
        """The limit that must not lie on the worse side of 0: the favourable one."""
        return self.high if higher else self.low


def _changed(what: str, entry: Entry, other: float, change: Change, *, point: bool) -> Verdict:
    """Not worse beyond chance; without limits only `point` can pass."""
    value, higher = entry["value"], entry["better"] == "higher"
    end = change.difference if point else change.worse(higher=higher)
    if end is None:
        return Verdict(
            what, value, None, 0.0, False, "no limits, no pass; --point compares the values", other
        )
    good = end >= 0 if higher else end <= 0
    note = f"{change.difference:+.4g}" if point else f"{change.difference:+.4g}, at best {end:+.4g}"
    return Verdict(
        what,
        value,
        end,
        0.0,
        good,
        f"difference {note}",
        other,
        "" if point else entry.get("note", ""),
    )


def _baseline_verdict(
    name: str, entry: Entry, baseline: ReportData, level: float, *, point: bool
) -> Verdict:
    """Two independent samples: the limits of either side are combined (MOVER)."""
    old = baseline["metrics"].get(name)
    before, value = None if old is None else old["value"], entry["value"]
    if old is None or before is None or value is None:
        raise InputError(
            f"{name} has no value in the baseline or here, so the two cannot be compared."
        )
    here, there = _reach(entry, level, level), _reach(old, baseline["provenance"]["level"], level)
    limits = (
        (None, None) if here is None or there is None else mover(value, here, before, there, 0.0)
    )
    return _changed(
        f"{name} not worse than the baseline",
        entry,
        before,
        Change(value - before, *limits),
        point=point,
    )


def _reach(entry: Entry, at: float, level: float) -> tuple[float, float] | None:
    """Limits that hold at `at`, moved to a third of 1 − level at either end: three numbers are
    looked at.

    Limits of a biased number, such as a small ECE, may lie on one side of its value.
    """
    value, low, high = entry["value"], entry.get("low"), entry.get("high")
    if value is None or low is None or high is None:
        return None
    normal = NormalDist()
    wider = normal.inv_cdf(1 - (1 - level) / len(WATCHED)) / normal.inv_cdf(0.5 + at / 2)
    return value - wider * max(0.0, value - low), value + wider * max(0.0, high - value)


def _against(
    preds: Predictions, other: Predictions, sure: Sureness, *, point: bool
) -> list[Verdict]:
    """The same samples: paired differences."""
    mine, theirs = align({"the model": preds, "the other": other}, common=False).values()
    a, b = (Samples.of(p, ["max_prob"]) for p in (mine, theirs))
    items = [limitable(mine)[name] for name in WATCHED]
    shared = 1 - 2 * (1 - sure.level) / len(WATCHED)
    pair = a.outcomes("score", a.first), b.outcomes("score", b.first)
    unsafe = next(
        (
            said
            for o in pair
            if o.group is not None and (said := few_groups(int(o.units.max()) + 1))
        ),
        None,
    )
    found = each_paired_difference([i.metric for i in items], *pair, shared, sure.seed)
    out: list[Verdict] = []
    for i, (difference, low, high) in zip(items, found, strict=True):
        value, before = (float(i.measure(s.data("score", s.first))) for s in (a, b))
        limits = (low, high) if low == low and high == high else (None, None)
        entry: Entry = {"value": value, "better": i.better}
        if unsafe is not None:
            entry["note"] = unsafe
        what = f"{i.name} not worse than the other model"
        out.append(_changed(what, entry, before, Change(difference, *limits), point=point))
    return out
