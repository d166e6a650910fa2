"""Rules that choose a threshold on data: by accuracy, coverage, cost, uncertainty, or one per
label.

Nothing is guaranteed here but by `label_thresholds`, which asks `guarantee` for each label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isnan, log, log1p, nan

import numpy as np
from numpy.typing import ArrayLike

from howsure import bounds
from howsure._core import checks
from howsure._core.checks import Array, Bools, InputError
from howsure._core.frozen import frozen
from howsure.calibrators import Calibrator
from howsure.metrics.risk_coverage import find_widest_row
from howsure.policies.guarantee import Guaranteed, Method, guaranteed_threshold
from howsure.policies.policy import (
    SMALL_SEGMENT,
    Basis,
    Guarantee,
    Policy,
    Rest,
    Rule,
    check_costs,
    find_cheapest,
    find_score,
)
from howsure.predictions import Outcomes, Predictions, needs_outcomes, needs_predictions
from howsure.scores import normalised_entropy
from howsure.tallies.tally import Tally


@frozen
class Threshold:
    """Accept where score >= threshold, and what that gave on the data; (inf, 0, nan) accepts
    nothing.

    `risk` is the mean loss of the kept, `accuracy` 1 − risk where the loss is right or wrong (else
    nan), `rule` how the threshold was chosen, `cost` the mean cost per sample where costs were
    given.
    """

    threshold: float
    coverage: float
    accuracy: float
    risk: float
    kept: int | float
    n: int | float
    rule: str
    cost: float = nan

    @property
    def feasible(self) -> bool:
        """Whether anything is accepted."""
        return self.kept > 0


def as_tally(t: Tally | Outcomes) -> Tally:
    """The tally of rows, or the tally itself."""
    needs_outcomes(t, "a threshold")
    return t.tally() if isinstance(t, Outcomes) else t


def rows_or_tally(o: Outcomes) -> Tally | Outcomes:
    """What a rule for choosing is given: the rows where they come in groups or have losses, else
    their tally.
    """
    # A tally forgets which rows belong together and in which order losses came.
    return o if o.group is not None or o.loss is not None else o.tally()


def build_threshold(t: Tally, row: int | None, rule: str, cost: float = nan) -> Threshold:
    """The threshold at a row of the tally; None accepts nothing."""
    if row is None:
        return Threshold(
            threshold=inf,
            coverage=0.0,
            accuracy=nan,
            risk=nan,
            kept=0,
            n=t.n,
            rule=rule,
            cost=cost,
        )
    kept, loss = t.count[: row + 1].sum().item(), t.loss[: row + 1].sum().item()
    return Threshold(
        threshold=float(t.score[row]),
        coverage=kept / t.n,
        accuracy=(kept - loss) / kept if t.zero_one else nan,
        risk=loss / kept,
        kept=kept,
        n=t.n,
        rule=rule,
        cost=cost,
    )


def threshold_for_accuracy(t: Tally | Outcomes, accuracy: float) -> Threshold:
    r"""The threshold that keeps most among those whose kept answers reach this accuracy on the
    data.

    .. math:: \max \{ \mathrm{coverage}(\theta) : \mathrm{right}(\theta) \ge a \cdot \mathrm{kept}(\theta) \}

    Every distinct score is tried: the curve is not monotone, so the first crossing may be far from the best.
    Impossible: (inf, 0, nan). New data will do a little worse, for the threshold was chosen on these;
    `guaranteed_threshold` answers for that. Vemuri 2020, chapter 4. See also: `coverage_at_risk`.

    >>> from howsure import tally
    >>> t = tally([0.9, 0.8, 0.7, 0.6], correct=[1, 0, 1, 1])
    >>> threshold_for_accuracy(t, 0.75).coverage
    1.0
    """
    checks.fraction(accuracy, "accuracy")
    t = as_tally(t)
    rule = f"accuracy of the accepted at least {accuracy:g}"
    return build_threshold(t, find_widest_row(t, accuracy), rule)


def threshold_for_coverage(t: Tally | Outcomes, coverage: float) -> Threshold:
    """The highest threshold that accepts at least this share. Geifman & El-Yaniv 2017.

    Ties are accepted together, so the coverage may be larger than asked for.

    >>> from howsure import tally
    >>> threshold_for_coverage(tally([0.9, 0.8, 0.7], correct=[1, 1, 0]), 0.5).threshold
    0.8
    """
    checks.fraction(coverage, "coverage")
    t = as_tally(t)
    share = np.cumsum(t.count) / t.n
    # The tolerance keeps 0.3 of ten samples at three of them, whatever 3 / 10 rounds to.
    row = min(int(np.searchsorted(share, coverage - 1e-12)), len(share) - 1)
    return build_threshold(t, row, f"coverage at least {coverage:g}")


def threshold_for_cost(
    t: Tally | Outcomes, *, error: float, deferral: float, expert_error: float = 0.0
) -> Threshold:
    r"""The threshold with the least mean cost per sample.

    .. math:: \mathrm{error} \cdot \frac{\mathrm{loss\ kept}}{n}
        + (\mathrm{deferral} + \mathrm{error} \cdot \mathrm{expert\_error}) (1 - \mathrm{coverage})

    `error` is the cost of a wrong answer, `deferral` that of asking the expert, who is wrong with rate
    `expert_error`. Accepting nothing is tried too; among equal costs the larger coverage wins. For costs that
    depend on the class see `cost_outcomes`. Chow 1970.

    >>> from howsure import tally
    >>> best = threshold_for_cost(tally([0.9, 0.8, 0.7], correct=[1, 1, 0]), error=10, deferral=1)
    >>> best.threshold, round(best.cost, 3)
    (0.8, 0.333)
    """
    for value, name in ((error, "error"), (deferral, "deferral")):
        if not 0 <= value < inf:
            raise InputError(f"{name} is {value:g}; a cost must be finite and not negative.")
    if not 0 <= expert_error <= 1:
        raise InputError(f"expert_error is {expert_error:g}; an error rate lies in [0, 1].")
    t = as_tally(t)
    deferred_cost = deferral + error * expert_error
    cost = (error * np.cumsum(t.loss) + deferred_cost * (t.n - np.cumsum(t.count))) / t.n
    # Entry 0 accepts nothing, entry i + 1 accepts down to row i of the tally.
    cost = np.concatenate(([deferred_cost], cost))
    tolerance = 1e-12 * max(1.0, error, deferred_cost)
    best = int(np.flatnonzero(cost <= cost.min() + tolerance)[-1])
    row = best - 1 if best else None
    rule = f"least cost: error {error:g}, deferral {deferral:g}, expert wrong {expert_error:g}"
    return build_threshold(t, row, rule, float(cost[best]))


def threshold_at(t: Tally | Outcomes, value: float) -> Threshold:
    """A threshold given by hand, and what it gives on the data.

    >>> from howsure import tally
    >>> round(threshold_at(tally([0.9, 0.8, 0.7], correct=[1, 1, 0]), 0.75).coverage, 3)
    0.667
    """
    t = as_tally(t)
    # Scores fall, and searchsorted wants them to rise.
    accepted_rows = int(np.searchsorted(-t.score, -value, side="right"))
    row = accepted_rows - 1 if accepted_rows else None
    chosen = build_threshold(t, row, f"score at least {value:g}")
    return replace(chosen, threshold=float(value))


@frozen(eq=False)
class Rejection:
    """Which answers an uncertainty limit keeps, and the error of both sides (nan where a side is
    empty).
    """

    kept: Bools
    coverage: float
    error_kept: float
    error_rejected: float


def reject_uncertain(preds: Predictions, limit: float) -> Rejection:
    """Keep the answers whose normalised entropy is at most `limit`, reject the others.

    Laves et al. 2019, section 5. See also: `rejection`, the same over all limits. As a policy it is
    `Policy("entropy", 1 - limit)`.

    >>> r = reject_uncertain(Predictions.from_probs([[0.99, 0.01], [0.6, 0.4]], [0, 1]), 0.5)
    >>> r.coverage, r.error_kept, r.error_rejected
    (0.5, 0.0, 1.0)
    """
    needs_predictions(preds, "reject_uncertain")
    if not 0 <= limit <= 1:
        raise InputError(f"limit is {limit:g}; a normalised entropy lies in [0, 1].")
    kept = normalised_entropy(preds) <= limit
    wrong = (~preds.correct).astype(np.float64)
    return Rejection(
        kept=kept,
        coverage=float(kept.mean()),
        error_kept=float(wrong[kept].mean()) if kept.any() else nan,
        error_rejected=nan if kept.all() else float(wrong[~kept].mean()),
    )


def cost_outcomes(preds: Predictions, costs: ArrayLike) -> Outcomes:
    r"""Minus the expected cost of the cheapest answer as score, the cost it really had as loss.

    `costs[i][j]` is the cost of answering j when i is true.
    `threshold_for_cost(cost_outcomes(preds, costs) .tally(), error=1, deferral=d)` then finds from
    which expected cost on asking is cheaper, on data and not on faith in the probabilities. Elkan
    2001; Chow 1970.

    >>> preds = Predictions.from_probs([[0.8, 0.2], [0.1, 0.9]], [1, 1])
    >>> o = cost_outcomes(preds, [[0, 1], [10, 0]])  # missing a 1 costs ten times as much
    >>> o.score, o.loss
    (array([-0.8, -0.1]), array([0., 0.]))
    """
    needs_predictions(preds, "cost_outcomes")
    answer, expected = find_cheapest(preds, costs)
    paid = check_costs(costs, preds.k)[preds.labels, answer]
    return Outcomes(-expected, loss=paid, group=preds.group)


def choose_by_segment(
    o: Outcomes,
    segments: Array,
    choose: Rule,
    *,
    common: Threshold | Guaranteed,
    together: bool = False,
    minimum: int | None = None,
) -> dict[str, Threshold | Guaranteed | None]:
    """What a rule chooses for each segment on its own rows; None where it is too small.

    `common` is what it chose for all. `together`: with m the largest number such that the m-th
    largest segment has at least ln(d)/ln(1 − risk) labels at d = 1 − (1 − delta)^(1/m), the m
    largest segments have the level d, so that all their guarantees hold at once; delta/m where
    clusters span segments. Sizes count clusters where there are any.
    """
    if minimum is not None:
        checks.at_least(minimum, 1, "minimum")
    guaranteed = isinstance(common, Guaranteed)
    names, place, rows = np.unique(segments, return_inverse=True, return_counts=True)
    sizes: dict[str, int] = {}
    clusters: list[Array] = []
    for i, name in enumerate(names.tolist()):
        sizes[name] = int(rows[i])
        if o.group is not None:
            clusters.append(np.unique(o.group[place == i]))
            if guaranteed:
                sizes[name] = len(clusters[-1])
    spanned = False
    if clusters:
        spanned = len(np.concatenate(clusters)) > len(np.unique(np.concatenate(clusters)))
    # Sizes alone say which segments are asked, before any answer is looked at.
    least = float(minimum or SMALL_SEGMENT)
    level: dict[str, float] = {}
    if guaranteed:
        least = float(minimum or 1)
        if common.risk < 1:
            least = max(least, log(common.delta) / log1p(-common.risk))
    if together:
        if not guaranteed:
            raise InputError("together= is about guarantees; give a rule that makes one (--risk).")
        many, share = share_delta(list(sizes.values()), common.risk, common.delta, spanned)
        largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:many]
        level = dict.fromkeys(largest, share)
    chosen: dict[str, Threshold | Guaranteed | None] = {}
    for i, name in enumerate(names.tolist()):
        chosen[name] = None
        mine = rows_or_tally(o[place == i])
        if together and name in level:
            chosen[name] = choose(mine, delta=level[name])
        elif not together and sizes[name] >= least - 1e-9:
            chosen[name] = choose(mine)
    return chosen


def share_delta(
    sizes: Sequence[int], risk: float, delta: float, spanned: bool
) -> tuple[int, float]:
    """How many of the largest segments can have a guarantee at once, and the level of each.

    >>> many, share = share_delta([500, 200, 60], risk=0.05, delta=0.05, spanned=False)
    >>> many, round(share, 4)
    (2, 0.0253)
    """
    falling = sorted(sizes, reverse=True)
    for many in range(len(falling), 0, -1):
        share = delta / many
        if not spanned:
            share = 1 - (1 - delta) ** (1 / many)
        if risk >= 1 or falling[many - 1] >= log(share) / log1p(-risk) - 1e-9:
            return many, share
    return 0, delta


def summarise_segments(
    policy: Policy,
    o: Outcomes,
    segments: Array,
    chosen: Mapping[str, Threshold | Guaranteed | None],
    *,
    rest: Rest,
    together: bool,
) -> Policy:
    """The policy with the thresholds and guarantees of its segments, and what they give together."""
    guarantees: dict[str, Guarantee] = {}
    thresholds: dict[str, float] = {}
    for name, found in chosen.items():
        if found is not None:
            thresholds[name], guarantees[name] = found.threshold, as_guarantee(found)
        elif rest == "defer":
            why = "too few labels" if o.group is None else "too few groups"
            thresholds[name], guarantees[name] = inf, Guarantee(why, feasible=False, why=why)
    common = policy.guarantee or Guarantee("")
    known = [g for g in guarantees.values() if g.feasible]
    rule = common.rule
    if not isnan(common.risk):
        sure = 1 - common.delta
        rule = f"risk of the accepted at most {common.risk:g} with probability {sure:g}"
    rule += f", each segment of {policy.by} for itself"
    if together:
        asked = sum(found is not None for found in chosen.values())
        rule = rule.replace("each segment", f"{asked} segments").replace("for itself", "at once")
    reasons = {g.why for g in guarantees.values()}
    bounds_known = [g.bound for g in known if not isnan(g.bound)]
    needed = [g.labels_needed for g in guarantees.values() if g.labels_needed is not None]
    fallback = policy.threshold if rest == "common" else inf
    limits = np.array([thresholds.get(name, fallback) for name in segments.tolist()])
    accept = np.asarray(o.score) >= limits
    basis = policy.basis
    if basis is not None:
        accuracy = nan
        if o.correct is not None and accept.any():
            accuracy = float(o.correct[accept].mean())
        basis = replace(basis, coverage=float(accept.mean()), accuracy=accuracy)
    return replace(
        policy,
        threshold=fallback,
        keys=tuple(thresholds),
        thresholds=tuple(thresholds.values()),
        guarantees=tuple(guarantees.values()),
        guarantee=replace(
            common,
            rule=rule,
            bound=max(bounds_known, default=nan),
            feasible=bool(known),
            labels_needed=None if known else min(needed, default=None),
            groups=None if o.group is None else common.groups,
            why=reasons.pop() if not known and len(reasons) == 1 else "",
        ),
        basis=basis,
    )


def few_missed_policy(
    preds: Predictions,
    *,
    risk: float,
    max_missed: float,
    delta: float,
    positive: str | int | None = None,
    score: str = "max_prob",
    calibrator: Calibrator | None = None,
    source: tuple[str, str] = ("", ""),
) -> Policy:
    """A policy with two guarantees that hold together with probability 1 − `delta`: the risk of the
    accepted is at most `risk`, and at most `max_missed` of all positives are accepted as negative.

    Each step of a fixed sequence must pass both at delta / 2 (Clopper & Pearson): wrong among the
    accepted, and positives passed as negative among all positives. Two classes; rows are
    independent, so groups and weights are refused. Angelopoulos et al. 2021.

    >>> p = np.repeat([[0.99, 0.01], [0.02, 0.98]], 300, axis=0)
    >>> preds = Predictions.from_probs(p, [0] * 300 + [1] * 300)
    >>> few_missed_policy(preds, risk=0.05, max_missed=0.05, delta=0.05).threshold
    0.98
    """
    from howsure.metrics.binary import positive_class
    from howsure.policies.guarantee import (
        RiskTest,
        compute_upper_bound,
        count_accepted,
        find_sequence,
    )

    needs_predictions(preds, "few_missed_policy")
    checks.fraction(max_missed, "max_missed")
    if preds.needs_vector("the share of missed positives") != 2:
        raise InputError(f"missed positives are about two classes; these rows have {preds.k}.")
    if preds.group is not None or preds.weight is not None:
        raise InputError("missed positives are counted row by row; groups and weights are refused.")
    named = positive_class(preds, positive)
    shown = preds if calibrator is None else calibrator(preds)
    scores = find_score(score)(shown)
    counts = count_accepted(Outcomes(scores, correct=shown.correct))
    ill = preds.labels == named
    missed = np.sort(-scores[ill & (shown.prediction != named)])
    test = RiskTest(risk=risk, delta=delta / 2, bound="clopper_pearson")
    row = None
    for step in find_sequence(counts, test):
        bound = compute_upper_bound(counts, step, test.delta, test.bound)
        passed = int(np.searchsorted(missed, -float(counts.score[step]), side="right"))
        most = bounds.clopper_pearson(passed, int(ill.sum()), test.delta)
        if not (bound < risk and most < max_missed):
            break
        row = step
    t, at, upper = Outcomes(scores, correct=shown.correct).tally(), None, nan
    if row is not None:
        upper = compute_upper_bound(counts, row, delta, test.bound)  # of the risk alone
        at = int(np.searchsorted(-t.score, -float(counts.score[row])))
    chosen = build_threshold(t, at, "")
    result = Guaranteed(
        feasible=row is not None,
        threshold=chosen.threshold,
        coverage=chosen.coverage,
        accuracy=chosen.accuracy,
        observed=chosen.risk,
        bound=upper,
        kept=int(chosen.kept),
        n=int(chosen.n),
        risk=risk,
        delta=delta,
        method="fixed_sequence",
        loss_bound="clopper_pearson",
        max_missed=max_missed,
        why="" if row is not None else "no share of these answers shows both",
    )

    def give(_: object) -> Guaranteed:
        return result

    return Policy.fit(preds, give, score=score, calibrator=calibrator, source=source)


def as_guarantee(chosen: Threshold | Guaranteed) -> Guarantee:
    """What a policy keeps of how its threshold was chosen."""
    if isinstance(chosen, Threshold):
        return Guarantee(rule=chosen.rule, feasible=chosen.feasible)
    return Guarantee(
        rule=chosen.rule,
        risk=chosen.risk,
        delta=chosen.delta,
        bound=chosen.bound,
        feasible=chosen.feasible,
        labels_needed=chosen.labels_needed,
        groups=chosen.groups,
        why=chosen.why,
        tested=chosen.tested,
    )


def label_thresholds(
    preds: Predictions,
    *,
    risk: float,
    delta: float,
    method: Method | None = None,
    score: str = "max_prob",
) -> dict[str, Guaranteed]:
    r"""A guaranteed threshold for each label of multilabel predictions, all of them true with
    probability 1 − `delta`.

    .. math:: P\big( \exists\, l : R_l(\theta_l) > \mathrm{risk} \big) \le \delta

    Each of L labels has its share delta / L (Bonferroni), so that the promise is about all labels at once, however they
    depend on each other. A label is decided alone, present or absent, where its confidence reaches its threshold. Where
    a label is rare, nearly all that is decided is that it is absent: see how many positive cases that misses.

    >>> p = np.repeat([[0.99, 0.6]], 300, axis=0)
    >>> y = np.stack([np.ones(300), np.arange(300) % 2], axis=1)
    >>> found = label_thresholds(Predictions.from_multilabel(p, y, label_names=["cat", "dog"]), risk=0.05, delta=0.05)
    >>> found["cat"].threshold, found["cat"].delta, found["dog"].feasible
    (0.99, 0.025, False)
    """
    needs_predictions(preds, "label_thresholds")
    layout = preds.needs_labels("label_thresholds")
    bounds.check_proportion(delta, "delta")
    compute_score = find_score(score)
    share = delta / layout.size
    thresholds: dict[str, Guaranteed] = {}
    for name in layout.names:
        rows = preds.label(name)
        t = rows_or_tally(Outcomes.of(rows, compute_score(rows)))
        thresholds[name] = guaranteed_threshold(t, risk=risk, delta=share, method=method)
    return thresholds


def label_policy(
    preds: Predictions,
    *,
    risk: float,
    delta: float,
    method: Method | None = None,
    score: str = "max_prob",
    calibrator: Calibrator | None = None,
    source: tuple[str, str] = ("", ""),
) -> Policy:
    """The policy of `label_thresholds`: every label has a threshold of its own, and an unknown
    label is deferred.

    >>> p = np.repeat([[0.99, 0.6]], 300, axis=0)
    >>> preds = Predictions.from_multilabel(p, np.ones((300, 2)), label_names=["cat", "dog"])
    >>> label_policy(preds, risk=0.05, delta=0.05).thresholds
    (0.99, 0.6)
    """
    needs_predictions(preds, "label_policy")
    if calibrator is not None:
        preds = calibrator(preds)
    layout = preds.needs_labels("label_policy")
    chosen = label_thresholds(preds, risk=risk, delta=delta, method=method, score=score).values()
    thresholds = np.array([g.threshold for g in chosen])
    accept = find_score(score)(preds) >= thresholds[layout.place]
    right = preds.correct[accept]
    known_bounds = [g.bound for g in chosen if not isnan(g.bound)]
    # More labels are asked for only where no label at all can be decided.
    needed: int | None = None
    if not known_bounds:
        needed = min((g.labels_needed for g in chosen if g.labels_needed is not None), default=None)
    return Policy(
        score=score,
        threshold=inf,
        calibrator=calibrator,
        by="label",
        keys=layout.names,
        thresholds=tuple(thresholds.tolist()),
        k=preds.k,
        class_names=preds.class_names,
        guarantee=Guarantee(
            rule=f"risk of the accepted at most {risk:g} for every label, all {layout.size} with probability {1 - delta:g}",
            risk=risk,
            delta=delta,
            bound=max(known_bounds, default=nan),
            feasible=bool(known_bounds),
            labels_needed=needed,
        ),
        basis=Basis(
            n=preds.n,
            coverage=float(accept.mean()),
            accuracy=float(right.mean()) if len(right) else nan,
            source=source[0],
            sha256=source[1],
        ),
    )
