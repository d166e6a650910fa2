"""The gate behind `howsure check`: required limits on metrics, which a model meets or not.

A metric without confidence limits never passes, because a good value may be luck.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from math import isfinite, isnan
from statistics import NormalDist
from typing import Literal, NamedTuple

from howsure import metrics
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.predictions import Predictions
from howsure.report import catalogue
from howsure.report.catalogue import BY_NAME, RANK, CatalogueItem, Described, make_item
from howsure.report.evaluation import evaluate
from howsure.report.leaderboard import align
from howsure.report.measurement import Sureness, measure_items
from howsure.report.report_types import Entry, ReportData
from howsure.report.samples import Samples
from howsure.report.summary import Summary
from howsure.uncertainty.intervals import each_paired_difference
from howsure.uncertainty.means import describe_few_groups
from howsure.uncertainty.paired import combine_limits

ARGUMENT_NAMES = {"coverage_at_risk": "risk", "risk_at_coverage": "coverage"}
WATCHED_METRICS = ("accuracy", "aurc", "ece")  # compared with a baseline or another model
REQUIREMENT = re.compile(
    r"\s*(?P<name>[\w.]+)\s*(\(\s*(?P<argument>[^()]*?)\s*\))?\s*(?P<sign><=|>=|<|>)\s*(?P<limit>\S+)\s*"
)


@frozen
class Limit:
    """`name` must stay below (`max`) or above (`min`) `limit`; `argument` is the risk or the
    coverage where the metric takes one. A `strict` limit itself does not pass.
    """

    name: str
    side: Literal["max", "min"]
    limit: float
    argument: float | None = None
    strict: bool = False

    @property
    def key(self) -> str:
        """The metric's name in a report."""
        if self.argument is None:
            return self.name
        return f"{self.name}_{self.argument:g}"

    @property
    def sign(self) -> str:
        """The comparison as it is printed."""
        if self.side == "max":
            return "<" if self.strict else "≤"
        return ">" if self.strict else "≥"

    def is_met_by(self, value: float) -> bool:
        """Whether a number keeps the limit."""
        if value == self.limit:
            return not self.strict
        if self.side == "max":
            return value < self.limit
        return value > self.limit

    def judge(self, entry: Entry, *, point: bool) -> Verdict:
        """The verdict on a number: on its unfavourable limit, or with `point` on its value."""
        what = f"{self.key} {self.sign} {self.limit:g}"
        value = entry["value"]
        if value is None:
            return Verdict(
                what=what,
                value=None,
                compared=None,
                limit=self.limit,
                passed=False,
                note=entry.get("why", ""),
            )
        if point:
            end, note, unsafe = value, "value", ""
        elif self.side == "max":
            end, note, unsafe = entry.get("high"), "upper end", entry.get("note", "")
        else:
            end, note, unsafe = entry.get("low"), "lower end", entry.get("note", "")
        if end is None:
            why = entry.get("why", "there are none")
            note, unsafe = f"no limits, no pass: {why}; --point compares the value", ""
        return Verdict(
            what=what,
            value=value,
            compared=end,
            limit=self.limit,
            passed=end is not None and self.is_met_by(end),
            note=note,
            unsafe=unsafe,
        )


@frozen
class Verdict:
    """What was required, what was measured, and whether it is good enough; `other` is the number of
    the other side.

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


def parse_requirement(text: str) -> Limit:
    """The limit that a text such as `ece<=0.05` or `coverage_at_risk(0.01)>=0.8` requires.

    >>> parse_requirement("coverage_at_risk(0.01) >= 0.8")
    Limit(name='coverage_at_risk', side='min', limit=0.8, argument=0.01, strict=False)
    """
    parts = REQUIREMENT.fullmatch(text)
    if parts is None:
        raise InputError(
            f"--require {text!r} is not NAME<=NUMBER or NAME>=NUMBER, as in 'ece<=0.05' or "
            "'coverage_at_risk(0.01)>=0.8'."
        )
    name, sign = parts["name"], parts["sign"]
    if name not in BY_NAME and name not in ARGUMENT_NAMES:
        near = get_close_matches(name, [*BY_NAME, *ARGUMENT_NAMES], n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(BY_NAME)}."
        raise InputError(f"--require {text!r}: there is no number {name!r}. {hint}")
    argument = None
    if name in ARGUMENT_NAMES:
        what = ARGUMENT_NAMES[name]
        if not parts["argument"]:
            raise InputError(
                f"--require {text!r}: {name} needs a {what}, as in '{name}(0.05){sign}{parts['limit']}'."
            )
        argument = _parse_number(parts["argument"], text)
        if not 0 <= argument <= 1:
            raise InputError(f"--require {text!r}: a {what} between 0 and 1 is needed.")
        better = getattr(metrics, name).better
    else:
        if parts["argument"] is not None:
            raise InputError(f"--require {text!r}: {name} takes no argument.")
        better = BY_NAME[name].better
    # A limit on the wrong side would let every bad model pass and stop every good one.
    good_side = {"lower": "<", "higher": ">"}.get(better, sign[0])
    if sign[0] != good_side:
        raise InputError(
            f"--require {text!r}: {name} is better where it is {better}; write {name}{good_side}=…."
        )
    return Limit(
        name=name,
        side="max" if sign[0] == "<" else "min",
        limit=_parse_number(parts["limit"], text),
        argument=argument,
        strict=len(sign) == 1,
    )


def _parse_number(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise InputError(f"--require {text!r}: {number!r} is not a number.") from None
    if not isfinite(value):
        raise InputError(f"--require {text!r}: {number} is no limit; a finite number is needed.")
    return value


def list_limitable(preds: Described) -> dict[str, CatalogueItem]:
    """Every metric that can be limited on these predictions, by name."""
    items = [*catalogue.list_answer_items(preds), *catalogue.list_ranking_items()]
    if preds.kind != "score":
        items += catalogue.list_claim_items()
    return {entry.name: entry for entry in items}


def check(
    preds: Predictions | Summary,
    limits: Sequence[Limit],
    *,
    baseline: ReportData | None = None,
    against: Predictions | Summary | None = None,
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
    fails in 1 − level of the cases at most. Summaries do not say which answers are to the same
    sample, so those of two models are compared as of other samples.

    >>> preds = Predictions.from_confidence([0.9, 0.8, 0.7], [1, 1, 0])
    >>> [v.passed for v in check(preds, [Limit("accuracy", "min", 0.99)])]
    [False]
    >>> same = check(preds, [], against=preds)[0]
    >>> same.value == same.other, same.passed
    (True, True)
    """
    if not limits and baseline is None and against is None:
        raise InputError(
            "there is nothing to check; give a limit such as --require 'ece<=0.05', or a baseline."
        )
    sure = Sureness(level, seed).check()
    if isinstance(preds, Summary):
        samples, shape = preds, preds.shape
    else:
        samples, shape = Samples.of(preds, [preds.score_name]), preds
    others: dict[str, ReportData] = {}  # compared without pairs
    if baseline is not None:
        others["the baseline"] = baseline
    if against is not None and (isinstance(preds, Summary) or isinstance(against, Summary)):
        others["the other model"] = evaluate(against, level=level, seed=seed).data
    known = list_limitable(shape)
    watched = [name for name in WATCHED_METRICS if name in known]  # a mere score has no ECE
    items: dict[str, CatalogueItem] = {}
    for limit in limits:
        key, name = limit.key, limit.name
        if name in ARGUMENT_NAMES:
            # A metric at the argument that was asked for is not in the catalogue.
            metric = getattr(metrics, name)
            measure = partial(metric, **{ARGUMENT_NAMES[name]: limit.argument})
            items[key] = make_item(
                key, RANK, key, says="", needs="order", metric=metric, measure=measure
            )
        elif name in known:
            items[key] = known[name]
        else:
            raise InputError(
                f"{name} cannot be measured on these predictions; possible: {', '.join(known)}."
            )
    if others:
        for name in watched:
            items[name] = known[name]
    # One call, for metrics on the same data share what their limits are made from.
    entries = measure_items([*items.values()], samples, samples.first, sure)
    verdicts = [limit.judge(entries[limit.key], point=point) for limit in limits]
    for title, other in others.items():
        for name in watched:
            change = _compare_unpaired(name, entries[name], other, level)
            what = f"{name} not worse than {title}"
            verdicts.append(_judge_change(what, entries[name], change, point=point))
    if isinstance(preds, Predictions) and isinstance(against, Predictions):
        verdicts += _judge_against(preds, against, sure, point=point)
    return verdicts


class GateChange(NamedTuple):
    """How far a number is from that of the other side: the difference, and its limits where there
    are some.
    """

    other: float
    difference: float
    low: float | None = None
    high: float | None = None


def _judge_change(what: str, entry: Entry, change: GateChange, *, point: bool) -> Verdict:
    """Not worse beyond chance; without limits only `point` can pass."""
    is_higher_better = entry["better"] == "higher"
    note, unsafe = f"difference {change.difference:+.4g}", ""
    if point:
        end = change.difference
    else:
        # The favourable limit: where even this one is worse than 0, chance is no excuse.
        end = change.high if is_higher_better else change.low
        if end is None:
            note = "no limits, no pass; --point compares the values"
        else:
            note, unsafe = f"{note}, at best {end:+.4g}", entry.get("note", "")
    passed = False
    if end is not None:
        passed = end >= 0 if is_higher_better else end <= 0
    return Verdict(
        what=what,
        value=entry["value"],
        compared=end,
        limit=0.0,
        passed=passed,
        note=note,
        other=change.other,
        unsafe=unsafe,
    )


def _compare_unpaired(name: str, entry: Entry, baseline: ReportData, level: float) -> GateChange:
    """Two independent samples: the limits of both sides are combined (MOVER)."""
    old = baseline["metrics"].get(name)
    value = entry["value"]
    if old is None or old["value"] is None or value is None:
        raise InputError(
            f"{name} has no value in the baseline or here, so the two cannot be compared."
        )
    before = old["value"]
    change = GateChange(other=before, difference=value - before)
    here = _move_limits(entry, level, level)
    there = _move_limits(old, baseline["provenance"]["level"], level)
    if here is not None and there is not None:
        low, high = combine_limits(value, here, before, there, 0.0)
        change = change._replace(low=low, high=high)
    return change


def _move_limits(entry: Entry, own_level: float, level: float) -> tuple[float, float] | None:
    """Limits that hold at `own_level`, moved to a third of 1 − level at either end, for three
    metrics are compared.
    """
    value, low, high = entry["value"], entry.get("low"), entry.get("high")
    if value is None or low is None or high is None:
        return None
    normal = NormalDist()
    per_end = (1 - level) / len(WATCHED_METRICS)
    wider = normal.inv_cdf(1 - per_end) / normal.inv_cdf(0.5 + own_level / 2)
    # Both limits of a biased number, such as a small ECE, may lie on one side of its value.
    return value - wider * max(0.0, value - low), value + wider * max(0.0, high - value)


def _judge_against(
    preds: Predictions, other: Predictions, sure: Sureness, *, point: bool
) -> list[Verdict]:
    """The same samples: paired differences."""
    aligned = align({"the model": preds, "the other": other}, common=False)
    mine, theirs = (Samples.of(side, [side.score_name]) for side in aligned.values())
    pair = (mine.outcomes("score", mine.first), theirs.outcomes("score", theirs.first))
    unsafe = None
    for outcomes in pair:
        if outcomes.group is not None and unsafe is None:
            unsafe = describe_few_groups(int(outcomes.units.max()) + 1)
    known = list_limitable(aligned["the model"])
    if aligned["the other"].kind == "score":
        known = list_limitable(aligned["the other"])
    items = [known[name] for name in WATCHED_METRICS if name in known]
    # One side of each of three limits is looked at.
    shared_level = 1 - 2 * (1 - sure.level) / len(WATCHED_METRICS)
    differences = each_paired_difference(
        [entry.metric for entry in items], *pair, shared_level, sure.seed
    )
    verdicts: list[Verdict] = []
    for watched, (difference, low, high) in zip(items, differences, strict=True):
        value = float(watched.measure(mine.data("score", mine.first)))
        before = float(watched.measure(theirs.data("score", theirs.first)))
        change = GateChange(other=before, difference=difference)
        if not (isnan(low) or isnan(high)):
            change = change._replace(low=low, high=high)
        entry: Entry = {"value": value, "better": watched.better}
        if unsafe is not None:
            entry["note"] = unsafe
        what = f"{watched.name} not worse than the other model"
        verdicts.append(_judge_change(what, entry, change, point=point))
    return verdicts
