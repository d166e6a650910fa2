"""Before a threshold goes live: what to expect on new data, what it would defer, and the whole
plan that `howsure threshold` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from math import exp, inf, isnan, nan
from typing import NamedTuple, NotRequired, Protocol, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks, strict_json
from howsure._core.checks import Array, Bools, Floats, InputError
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, sort_distinct
from howsure.bounds import betting, clopper_pearson_interval, compute_proportion_limits
from howsure.policies.guarantee import Guaranteed
from howsure.policies.policy import CASE_SCORE, Decisions, Guarantee, Policy
from howsure.policies.thresholds import Threshold
from howsure.predictions import Predictions
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.building import count_cells
from howsure.tallies.tally import Tally
from howsure.uncertainty.means import Units, estimate_freedom, student_quantile, sum_by_unit

QUESTION = "question"  # the column of a decision model's log
TOP_TIE_SHARE = 0.25  # of the answers that share the highest confidence
FOLD_TAIL = 0.025  # tail at which the noise of a choice among few folds is widened


class ChosenThreshold(Protocol):
    """What a rule for choosing returns: `Threshold` or `Guaranteed`."""

    @property
    def threshold(self) -> float: ...


@frozen
class Share:
    """A proportion with its limits; nan with (0, 1) where there was nothing to count."""

    value: float
    low: float
    high: float


@frozen
class Expected:
    """Coverage and accuracy to expect, with intervals, and the counts behind them."""

    coverage: Share
    accuracy: Share
    kept: int
    n: int


def expected_on_new_data(
    o: Outcomes,
    choose: Callable[[Tally], ChosenThreshold],
    *,
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
) -> Expected:
    """Coverage and accuracy that a chosen threshold will have on data it has not seen, as
    prediction intervals.

    Choosing and judging on the same data flatters. Here each fold is judged by the threshold that
    the other folds chose, and the counts are pooled (clusters stay whole where `group` is given).
    The intervals are for a new sample of as many answers (and groups): they hold its own noise,
    that of these data, and that of the choice (the jackknife over folds), at an effective number of
    samples. docs/act.md shows how often they hold. Vemuri 2020, chapter 7, asks for it; Stone 1974
    for the method.

    >>> from howsure.policies import threshold_for_accuracy
    >>> rng = np.random.default_rng(0); s = rng.random(2000)
    >>> e = expected_on_new_data(Outcomes(s, rng.random(2000) < s), lambda t: threshold_for_accuracy(t, 0.8))
    >>> round(e.accuracy.value, 3), e.coverage.value
    (0.798, 0.414)
    """
    if o.correct is None or o.weight is not None:
        raise InputError(
            "expected_on_new_data counts right and wrong answers; give correct= and no weight."
        )
    checks.at_least(folds, 2, "folds")
    fold, score = assign_folds(len(o), o.group, folds, seed), np.asarray(o.score)
    kept = np.zeros(len(o), dtype=np.bool_)
    # Coverage and accuracy of every fold's threshold on all data: how much the choice varies.
    coverages: list[float] = []
    accuracies: list[float] = []
    for i in range(folds):
        mine = fold == i
        if mine.all() or not mine.any():
            continue
        # Chosen on the other folds, judged on this one.
        accepted = score >= choose(o[~mine].tally()).threshold
        kept[mine] = accepted[mine]
        coverages.append(float(accepted.mean()))
        accuracies.append(float(o.right[accepted].mean()) if accepted.any() else nan)
    units = Units.of(len(o), None, o.group)
    accepted, right = kept.astype(np.float64), (kept & o.right).astype(np.float64)
    n, k, hits = float(len(kept)), float(accepted.sum()), float(right.sum())
    accuracy = 0.0
    if k:
        accuracy = hits / k
    return Expected(
        coverage=_predict_share(
            count=k,
            n=n,
            noise=FoldNoise.of_rows(accepted - k / n, units, coverages),
            level=level,
        ),
        accuracy=_predict_share(
            count=hits,
            n=k,
            noise=FoldNoise.of_rows(right - accuracy * accepted, units, accuracies),
            level=level,
        ),
        kept=int(k),
        n=int(n),
    )


def expected_of_counts(
    t: Tally,
    choose: Callable[[Tally], ChosenThreshold],
    *,
    folds: int = 5,
    level: float = 0.95,
    seed: int = 0,
) -> Expected:
    """The same from a tally of right and wrong, whose answers are dealt to the folds by counts.

    >>> from howsure import tally
    >>> from howsure.policies import threshold_for_accuracy
    >>> t = tally([0.9, 0.5], correct=[1, 0], count=[8_000_000, 2_000_000])
    >>> expected_of_counts(t, lambda t: threshold_for_accuracy(t, 0.9)).coverage.value
    0.8
    """
    rng, share = np.random.default_rng(seed), np.full(folds, 1 / folds)
    right, wrong = t.count - t.loss, t.loss
    dealt_right, dealt_wrong = rng.multinomial(right, share).T, rng.multinomial(wrong, share).T
    both, is_right = np.tile(t.score, 2), np.arange(2 * len(t.score)) < len(t.score)
    k, hits, n = 0, 0, int(t.n)
    coverages: list[float] = []
    accuracies: list[float] = []
    for mine, mine_wrong in zip(dealt_right, dealt_wrong, strict=True):
        others = count_cells(both, is_right, np.concatenate((right - mine, wrong - mine_wrong)))
        accepted = t.score >= choose(others).threshold
        hits += int(mine[accepted].sum())
        k += int(mine[accepted].sum() + mine_wrong[accepted].sum())
        kept, kept_right = int(t.count[accepted].sum()), int(right[accepted].sum())
        coverages.append(kept / n)
        accuracies.append(kept_right / kept if kept else nan)
    return Expected(
        coverage=_predict_share(
            count=k, n=n, noise=FoldNoise.of_counts(k, n, n, coverages), level=level
        ),
        accuracy=_predict_share(
            count=hits, n=k, noise=FoldNoise.of_counts(hits, k, n, accuracies), level=level
        ),
        kept=k,
        n=n,
    )


class FoldNoise(NamedTuple):
    """How much a share may vary: the squared influence of each unit, how often it is there, units
    and samples, and the variance of the choice.
    """

    squares: Floats
    times: Floats | None
    units: int
    samples: int
    choice: float

    @classmethod
    def of_rows(cls, influence: Floats, units: Units, values: Sequence[float]) -> FoldNoise:
        """That of single samples; `values` are those of the folds' thresholds."""
        return cls(
            squares=sum_by_unit(influence, units) ** 2,
            times=None,
            units=units.many,
            samples=units.n,
            choice=compute_fold_variance(np.array(values)),
        )

    @classmethod
    def of_counts(cls, count: int, of: int, n: int, values: Sequence[float]) -> FoldNoise:
        """That of a share `count` of `of` among n independent samples."""
        value = count / of if of else 0.0
        return cls(
            squares=np.array([(1 - value) ** 2, value**2, 0.0]),
            times=np.array([count, of - count, n - of], dtype=np.float64),
            units=n,
            samples=n,
            choice=compute_fold_variance(np.array(values)),
        )


def compute_fold_variance(values: Floats) -> float:
    """Variance of a number that depends on a choice, from the choices without one fold each,
    widened by Student's t: the jackknife.
    """
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return 0.0
    wider = (student_quantile(len(known) - 1, FOLD_TAIL) / student_quantile(inf, FOLD_TAIL)) ** 2
    return float(((known - known.mean()) ** 2).sum()) * (1 - 1 / len(known)) * wider


def _predict_share(*, count: float, n: float, noise: FoldNoise, level: float) -> Share:
    """count / n with the limits of what another sample of the same size will show."""
    if n == 0:
        return Share(value=nan, low=0.0, high=1.0)
    value, half = count / n, (1 - level) / 2
    squares, times = noise.squares, noise.times
    total = float(squares.sum()) if times is None else float(np.dot(times, squares))
    # Clusters widen the variance; it is never below that of independent samples.
    own = max(total, value * (1 - value) * n) / n**2
    wider = (
        student_quantile(estimate_freedom(squares, noise.units - 1, times), half)
        / student_quantile(inf, half)
    ) ** 2
    # Twice: these data are noisy, and the new sample will be.
    variance = 2 * own * wider + noise.choice
    # The binomial sample with this variance; its limits stay inside [0, 1].
    size = n / 2 * noise.units / noise.samples
    if variance > 0:
        size = value * (1 - value) / variance
    low, high = compute_proportion_limits(value * size, size, half)
    return Share(value=value, low=float(low), high=float(high))


def estimate_coverage(accept: Bools, group: Array | None, level: float) -> Share:
    """The share that a fixed threshold accepts, with limits that clusters widen."""
    n, kept = len(accept), int(accept.sum())
    if group is None:
        return count_share(kept, n, level)
    value, units = kept / n, Units.of(n, None, group)
    squares = sum_by_unit(accept.astype(np.float64) - value, units) ** 2
    half = (1 - level) / 2
    wider = student_quantile(estimate_freedom(squares, units.many - 1), half)
    wider = (wider / student_quantile(inf, half)) ** 2
    variance = max(float(squares.sum()) / n**2 * wider, value * (1 - value) / n)
    size = float(units.many)
    if variance > 0:
        size = value * (1 - value) / variance
    low, high = compute_proportion_limits(value * size, size, half)
    return Share(value=value, low=float(low), high=float(high))


def assign_folds(n: int, group: Array | None, folds: int, seed: int) -> Array:
    """The fold of each of n samples; those of a group are in the same one."""
    rng = np.random.default_rng(seed)
    if group is None:
        return rng.permutation(n) % folds
    names, number = np.unique(group, return_inverse=True)
    return (rng.permutation(len(names)) % folds)[number.ravel()]


def count_share(count: int, n: int, level: float = 0.95) -> Share:
    """count / n with its interval."""
    low, high = clopper_pearson_interval(count, n, level)
    return Share(value=count / n if n else nan, low=low, high=high)


@frozen
class Deferral:
    """One class or group at the operating point: its size, share deferred, and accuracy of both
    sides.
    """

    name: str
    n: int
    deferred: Share
    accuracy_accepted: Share
    accuracy_deferred: Share


def deferral_table(
    accept: ArrayLike, correct: ArrayLike, key: ArrayLike, *, level: float = 0.95
) -> tuple[Deferral, ...]:
    """What would be deferred: rate and accuracy of each class or group, and of all together (first
    row).

    `key` is the predicted class, the true class or a group, one per sample. The most deferred come
    first. Vemuri 2020, chapter 7.

    >>> rows = deferral_table([1, 0, 1, 1], [1, 0, 1, 0], ["cat", "cat", "dog", "dog"])
    >>> [(r.name, r.deferred.value, round(r.accuracy_accepted.value, 3)) for r in rows]
    [('all', 0.25, 0.667), ('cat', 0.5, 1.0), ('dog', 0.0, 0.5)]
    """
    accepted, right = checks.zero_one(accept, "accept"), checks.zero_one(correct, "correct")
    keys = checks.same_length(np.asarray(key), "key", len(accepted), "accept")
    checks.same_length(right, "correct", len(accepted), "accept")

    def count_row(name: str, rows: Bools) -> Deferral:
        a, c = accepted[rows], right[rows]
        n, deferred = len(a), int((~a).sum())
        return Deferral(
            name=name,
            n=n,
            deferred=count_share(deferred, n, level),
            accuracy_accepted=count_share(int((a & c).sum()), n - deferred, level),
            accuracy_deferred=count_share(int((~a & c).sum()), deferred, level),
        )

    table = [count_row(str(name), keys == name) for name in sort_distinct(keys)]
    table.sort(key=lambda row: -row.deferred.value)
    return (count_row("all", np.ones(len(accepted), dtype=np.bool_)), *table)


# The plan, as JSON. The keys are what `howsure threshold --json` prints.


class ShareData(TypedDict):
    """A proportion with its limits; null where there was nothing to count."""

    value: float | None
    low: float | None
    high: float | None


class PlannedGuarantee(TypedDict):
    """How the threshold was chosen, and what is promised of it."""

    rule: str
    risk: float | None
    delta: float | None
    bound: float | None
    feasible: bool
    labels_needed: int | None
    groups: int | None
    why: str


class SegmentData(TypedDict):
    """One segment: its threshold, null where all of it is deferred (of whole cases the product of
    their confidences), and what is promised of it.
    """

    name: str
    threshold: float | None
    guarantee: PlannedGuarantee


class ExpectedData(TypedDict):
    """Coverage and accuracy to expect on new data, and the counts behind them."""

    coverage: ShareData
    accuracy: ShareData
    kept: int
    n: int


class DeferralData(TypedDict):
    """One class or group: its size, the share deferred, and the accuracy of both sides."""

    name: str
    n: int
    deferred: ShareData
    accuracy_accepted: ShareData
    accuracy_deferred: ShareData


class TrialData(TypedDict):
    """How a policy did on data that chose nothing, and whether its promise is compatible with them."""

    coverage: ShareData
    accuracy: ShareData
    kept: int
    n: int
    risk_guaranteed: float | None
    observed_below: bool | None
    compatible: bool | None
    graded: bool  # accuracy is the mean of 1 − loss
    deferral: dict[str, list[DeferralData]]


class AllData(TypedDict):
    """All questions that were asked, those without an answer by reason, and the share of all that
    is accepted.
    """

    asked: int
    answered: float
    coverage: float
    unparseable: int
    refused: int
    missing: int
    unstated: int


class SuggestionsData(TypedDict):
    """What is suggested for the deferred: the share whose truth is listed, on how many deferred
    rows it rests, the shares of these with at most 3 suggestions and with none, and a sentence.
    """

    level: float
    n: int
    short: float | None
    none: float | None
    text: str


class AskedData(TypedDict):
    """A decision model's log: its cases, how many are automatic as a whole, which question sends how
    many of the others to people, the least probability of an accepted answer to each question, and
    what is guaranteed, in words.
    """

    cases: int
    automatic: int
    answers: int
    automatic_answers: int
    sent_by: dict[str, int]
    probability: dict[str, float]
    sentences: list[str]


class PlanData(TypedDict):
    """Everything to know before a threshold goes live; what is null does not exist or is infinite."""

    score: str
    threshold: float | None
    feasible: bool
    guarantee: NotRequired[PlannedGuarantee]
    n: NotRequired[int]
    coverage: NotRequired[float | None]
    accuracy: NotRequired[float | None]
    questions: NotRequired[AllData]
    asked: NotRequired[AskedData]
    case_confidence: NotRequired[float | None]
    by: str | None
    thresholds: dict[str, float | None]
    segments: NotRequired[list[SegmentData]]
    deferral: dict[str, list[DeferralData]]
    suggestions: NotRequired[SuggestionsData]
    expected: ExpectedData | None
    test: TrialData | None


def plan(
    policy: Policy,
    choose: Callable[[Tally], Threshold | Guaranteed],
    preds: Predictions,
    *,
    test: Predictions | None = None,
    level: float = 0.95,
) -> PlanData:
    """What a fitted policy promises, what to expect of it, what it defers, and how it did on test
    data.

    Values are plain JSON types; nan and infinite ones are None. `expected` is cross-fitted on
    `preds` (`expected_on_new_data`) for a single threshold; `test` compares with data that chose
    nothing.

    >>> from howsure.policies import threshold_for_coverage
    >>> preds = Predictions.from_confidence(np.linspace(0.5, 1, 100), [1] * 100)
    >>> choose = lambda t: threshold_for_coverage(t, 0.5)
    >>> plan(Policy.fit(preds, choose), choose, preds)["coverage"]
    0.5
    """
    decisions = policy.decide(preds)
    out = _describe_policy(policy)
    if not preds.graded:
        out["deferral"] = _count_deferrals(policy, preds, level)
    if policy.suggestions is not None:
        made = policy.suggestions
        out["suggestions"] = {
            "level": made.level,
            "n": made.n,
            "short": made.short,
            "none": made.none,
            "text": made.to_text(),
        }
    if preds.unanswered is not None and preds.unanswered.total:
        counts = asdict(preds.unanswered)
        del counts["unstated_right"]
        out["questions"] = {
            "asked": preds.n + preds.unanswered.total,
            "answered": preds.answered,
            "coverage": decisions.coverage * preds.answered,
            **counts,
        }
    # Cross-fitting chooses anew on each fold: one threshold, right or wrong, equal weights.
    plain = policy.costs is None and preds.weight is None and not preds.graded
    plain = plain and policy.score != CASE_SCORE and not policy.partial
    if policy.score == CASE_SCORE:
        out["case_confidence"] = exp(policy.threshold) if policy.threshold < inf else nan
    if policy.asked is not None and not preds.graded:
        out["asked"] = describe_asked(policy, preds, decisions)
    if policy.by is None and plain and policy.threshold < inf:
        o = Outcomes(decisions.score, preds.correct, group=preds.group)
        expected = expected_on_new_data(o, choose, level=level)
        # The threshold is fixed by now: only the accuracy looks better than it will be.
        coverage = estimate_coverage(decisions.accept, preds.group, level)
        kept = int(decisions.accept.sum())
        out["expected"] = replace(expected, coverage=coverage, kept=kept)
    if test is not None:
        out["test"] = _judge_on_test(policy, test, level)
    return _order_plan(out)


def plan_counts(
    policy: Policy, choose: Callable[[Tally], Threshold | Guaranteed], t: Tally, level: float = 0.95
) -> PlanData:
    """The plan of a policy that was chosen on counts."""
    out = _describe_policy(policy)
    if t.zero_one and policy.threshold < inf:
        kept = int(t.count[t.score >= policy.threshold].sum())
        coverage = count_share(kept, int(t.n), level)
        expected = expected_of_counts(t, choose, level=level)
        out["expected"] = replace(expected, coverage=coverage, kept=kept)
    return _order_plan(out)


def _describe_policy(policy: Policy) -> dict[str, object]:
    own = dict(zip(map(policy.name_key, policy.keys), policy.thresholds, strict=True))
    feasible = min(policy.threshold, *own.values(), inf) < inf
    if policy.score == CASE_SCORE:  # people read a product, not the sum of logarithms
        own = {name: exp(at) if at < inf else inf for name, at in own.items()}
    out: dict[str, object] = {
        "score": policy.score,
        "threshold": policy.threshold,
        "feasible": feasible,
        "by": policy.by,
        "thresholds": own,
        "deferral": {},
        "expected": None,
        "test": None,
    }
    if policy.guarantee is not None:
        out["guarantee"] = _describe_guarantee(policy.guarantee)
    if policy.guarantees:
        pairs = zip(own.items(), policy.guarantees, strict=True)
        out["segments"] = [
            {"name": name, "threshold": at, "guarantee": _describe_guarantee(guarantee)}
            for (name, at), guarantee in pairs
        ]
    if policy.basis is not None:
        basis = policy.basis
        out |= {"n": basis.n, "coverage": basis.coverage, "accuracy": basis.accuracy}
    return out


def _order_plan(out: dict[str, object]) -> PlanData:
    # The order of the keys is part of the format.
    ordered = {name: out[name] for name in PlanData.__annotations__ if name in out}
    return strict_json.check_typed(strict_json.to_plain(ordered), PlanData)


def _describe_guarantee(guarantee: Guarantee) -> dict[str, object]:
    """A guarantee without the counts that it was derived from; the policy holds them."""
    facts = asdict(guarantee)
    del facts["tested"]
    return facts


def describe_asked(policy: Policy, preds: Predictions, decisions: Decisions) -> dict[str, object]:
    """What a policy does to the cases of a decision model's log."""
    from howsure.policies.cases import number_cases

    names = np.full(preds.n, "")
    if preds.attributes is not None and QUESTION in preds.attributes:
        names = preds.attributes[QUESTION].astype(str)
    elif policy.asked is not None and len(policy.asked.questions) == 1:
        names = np.full(preds.n, next(iter(policy.asked.questions)))
    group = np.arange(preds.n) if preds.group is None else preds.group
    cases, _, place = number_cases(group)
    deferred = count_values(place, weights=~decisions.accept, minlength=len(cases)) > 0
    # A case is sent by its least confident answer among those that are deferred.
    order = np.lexsort((names, decisions.confidence, decisions.accept, place))
    least = order[np.unique(place[order], return_index=True)[1]]
    sent, counts = np.unique(names[least[deferred]], return_counts=True)
    by_count = sorted(zip(sent.tolist(), counts.tolist(), strict=True), key=lambda one: -one[1])
    automatic = int((~deferred).sum())
    sentences = write_case_sentences(policy, len(cases), automatic, decisions)
    risk = 0.0 if policy.guarantee is None else policy.guarantee.risk
    # The field of a choice is no probability, so that of the accepted answers is given beside it.
    given = (preds.attributes or {}).get("probability")
    least_probability: dict[str, float] = {}
    for name in np.unique(names).tolist():
        mine = names == name
        accepted = mine & decisions.accept
        if given is not None and accepted.any():
            value = float(given[accepted].astype(np.float64).min())
            if not isnan(value):
                least_probability[name] = value
        if policy.score != CASE_SCORE and not decisions.accept[mine].any():
            tie = describe_top_tie(decisions.score[mine], preds.correct[mine], risk, name)
            if tie:
                sentences.append(tie)
    return {
        "cases": len(cases),
        "automatic": automatic,
        "answers": preds.n,
        "automatic_answers": int(decisions.accept.sum()),
        "sent_by": dict(by_count),
        "probability": least_probability,
        "sentences": sentences,
    }


def write_case_sentences(
    policy: Policy, cases: int, automatic: int, decisions: Decisions
) -> list[str]:
    """What is guaranteed of cases, in words; of questions, that it is not about cases."""
    share = f"{automatic:,} of {cases:,} cases ({automatic / cases:.1%})".replace("%", " %")
    guarantee = policy.guarantee
    if guarantee is None or isnan(guarantee.risk) or not guarantee.feasible:
        return []
    risk, sure = f"{guarantee.risk * 100:g} %", f"{(1 - guarantee.delta) * 100:g} % confidence"
    if policy.score == CASE_SCORE:
        return [
            f"Automate {share} as a whole: guaranteed at most {risk} of such cases contain a wrong "
            f"answer ({sure})."
        ]
    kept = int(decisions.accept.sum())
    if policy.partial:
        return [
            f"Automate {kept:,} of {len(decisions):,} answers: guaranteed at most {risk} of all cases "
            f"get a wrong automatic answer ({sure}); {share} need no person."
        ]
    asked = 0 if policy.asked is None else len(policy.asked.questions)
    if asked < 2:
        return []
    return [
        f"Each guarantee is about one question; they do not add up to one about a case of {asked} "
        "answers, which --case record gives."
    ]


def describe_top_tie(score: Floats, right: Bools, risk: float, name: str) -> str:
    """A sentence where many answers share the highest confidence and too many of them are wrong; ""
    where that is not so.

    >>> describe_top_tie(np.ones(100), np.arange(100) >= 9, 0.05, "team")
    "100 of 100 answers to 'team' stand at confidence 1.00, 9 of them wrong (9.0 %): ..."
    """
    top = score == score.max()
    count, wrong = int(top.sum()), int((~right[top]).sum())
    if count < TOP_TIE_SHARE * len(score) or wrong <= risk * count:
        return ""
    return (
        f"{count:,} of {len(score):,} answers to {name!r} stand at confidence {score.max():.2f}, "
        f"{wrong:,} of them wrong ({wrong / count * 100:.1f} %): no threshold tells these apart, so "
        f"none keeps the risk at {risk * 100:g} %."
    )


def _decide_and_judge(policy: Policy, preds: Predictions) -> tuple[Decisions, Bools]:
    """The decisions, and which are right as the policy answers."""
    decisions = policy.decide(preds)
    if not preds.vectors:
        return decisions, preds.correct
    return decisions, decisions.prediction == preds.labels


def _count_deferrals(
    policy: Policy, preds: Predictions, level: float
) -> dict[str, tuple[Deferral, ...]]:
    """What is deferred by predicted class, and by label or group."""
    decisions, right = _decide_and_judge(policy, preds)
    keys: dict[str, Array] = {}
    if preds.vectors or preds.known_prediction is not None:
        numbered = decisions.prediction.dtype.kind in "iu"
        if numbered and decisions.class_names is not None:
            keys["predicted class"] = np.array(decisions.class_names)[decisions.prediction]
        else:
            keys["predicted class"] = decisions.prediction.astype(str)
    if preds.attributes is not None and QUESTION in preds.attributes:
        # Answers to different questions are different classes.
        keys = {QUESTION: preds.attributes[QUESTION]}
    if preds.layout is not None and preds.layout.parts == "labels":
        keys["label"] = np.array(preds.layout.names)[preds.layout.place]
    elif preds.group is not None and policy.asked is None:
        keys["group"] = preds.group
    if decisions.segment is not None and policy.by not in ("predicted", "group", QUESTION):
        keys[str(policy.by)] = decisions.segment
    return {
        name: deferral_table(decisions.accept, right, key, level=level)
        for name, key in keys.items()
    }


def _judge_on_test(policy: Policy, test: Predictions, level: float) -> dict[str, object]:
    """Coverage and accuracy on test data, and whether the promised risk is compatible with them."""
    deferral: dict[str, tuple[Deferral, ...]] = {}
    if test.graded:
        decisions = policy.decide(test)
        accuracy = _average_grades(test, decisions.accept, level)
    else:
        decisions, right = _decide_and_judge(policy, test)
        accepted_right = int((decisions.accept & right).sum())
        accuracy = count_share(accepted_right, int(decisions.accept.sum()), level)
        deferral = _count_deferrals(policy, test, level)
    n, kept = len(decisions), int(decisions.accept.sum())
    risk = nan if policy.guarantee is None else policy.guarantee.risk
    below = compatible = None
    if kept and not isnan(risk):
        below = bool(1 - accuracy.value <= risk)
        compatible = bool(1 - accuracy.high <= risk)
    return {
        "coverage": count_share(kept, n, level),
        "accuracy": accuracy,
        "kept": kept,
        "n": n,
        "risk_guaranteed": risk,
        "observed_below": below,
        "compatible": compatible,
        "graded": test.graded,
        "deferral": deferral,
    }


def _average_grades(test: Predictions, accept: Bools, level: float) -> Share:
    """The mean of 1 − loss over accepted answers. Where several of them belong together, its limits
    are not known.
    """
    loss = test.loss[accept]
    if not len(loss):
        return Share(nan, 0.0, 1.0)
    low, high = 0.0, 1.0
    half = (1 - level) / 2
    if test.group is None or len(np.unique(test.group)) == test.n:
        low, high = 1 - betting(loss, half), betting(1 - loss, half)
    return Share(float(1 - loss.mean()), low, high)
