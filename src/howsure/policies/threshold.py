"""Choosing a threshold on data: by accuracy, coverage, cost or uncertainty. Nothing is guaranteed
here.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np

from howsure._core import check
from howsure._core.check import Bools, Floats, InputError
from howsure._core.frozen import frozen
from howsure.metrics.risk_coverage import widest_row
from howsure.predictions import Outcomes, Predictions, needs_outcomes, needs_predictions
from howsure.scores.softmax import normalised_entropy
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


def table(t: Tally | Outcomes) -> Tally:
    """The tally of rows, or the tally itself."""
    needs_outcomes(t, "a threshold")
    return t.tally() if isinstance(t, Outcomes) else t


def rows_or_tally(o: Outcomes) -> Tally | Outcomes:
    """What a rule for choosing is given: the rows where they come in groups or have losses, else
    their tally.
    """
    return o if o.group is not None or o.loss is not None else o.tally()


def at_row(t: Tally, row: int | None, rule: str, cost: float = nan) -> Threshold:
    """The threshold at a row of the tally; None accepts nothing."""
    if row is None:
        return Threshold(inf, 0.0, nan, nan, 0, t.n, rule, cost)
    kept, loss = t.count[: row + 1].sum().item(), t.loss[: row + 1].sum().item()
    risk = loss / kept
    accuracy = (kept - loss) / kept if t.zero_one else nan
    return Threshold(float(t.score[row]), kept / t.n, accuracy, risk, kept, t.n, rule, cost)


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
    check.fraction(accuracy, "accuracy")
    t = table(t)
    return at_row(t, widest_row(t, accuracy), f"accuracy of the accepted at least {accuracy:g}")


def threshold_for_coverage(t: Tally | Outcomes, coverage: float) -> Threshold:
    """The highest threshold that accepts at least this share. Geifman & El-Yaniv 2017.

    Ties are accepted together, so the coverage may be larger than asked for.

    >>> from howsure import tally
    >>> threshold_for_coverage(tally([0.9, 0.8, 0.7], correct=[1, 1, 0]), 0.5).threshold
    0.8
    """
    check.fraction(coverage, "coverage")
    t = table(t)
    share = np.cumsum(t.count) / t.n
    row = min(int(np.searchsorted(share, coverage - 1e-12)), len(share) - 1)
    return at_row(t, row, f"coverage at least {coverage:g}")


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
    t = table(t)
    asked = deferral + error * expert_error
    cost = (error * np.cumsum(t.loss) + asked * (t.n - np.cumsum(t.count))) / t.n
    cost = np.concatenate(([asked], cost))
    best = int(np.flatnonzero(cost <= cost.min() + 1e-12 * max(1.0, error, asked))[-1])
    rule = f"least cost: error {error:g}, deferral {deferral:g}, expert wrong {expert_error:g}"
    return at_row(t, best - 1 if best else None, rule, float(cost[best]))


def threshold_at(t: Tally | Outcomes, value: float) -> Threshold:
    """A threshold given by hand, and what it gives on the data.

    >>> from howsure import tally
    >>> round(threshold_at(tally([0.9, 0.8, 0.7], correct=[1, 1, 0]), 0.75).coverage, 3)
    0.667
    """
    t = table(t)
    row = int(np.searchsorted(-t.score, -value, side="right")) - 1
    return replace(
        at_row(t, row if row >= 0 else None, f"score at least {value:g}"), threshold=float(value)
    )


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
    return Rejection(kept, float(kept.mean()), _mean(wrong[kept]), _mean(wrong[~kept]))


def _mean(x: Floats) -> float:
    return float(x.mean()) if len(x) else nan
