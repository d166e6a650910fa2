"""A second opinion: how sure to be of an answer once another model was asked about it too."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np

from howsure._core.checks import Array, Floats, InputError, parameters
from howsure._core.frozen import frozen
from howsure.calibrators.calibrator import SMALLEST_PROBABILITY, Fitted
from howsure.predictions import Predictions, needs_predictions

OPINION_COLUMN = "second_opinion"  # the attribute that holds it
LEAST_ROWS, LEAST_OF_EACH = 100, 10  # labelled rows; wrong and right ones among them
OWN_ALONE = np.array([0.0, 1.0, 0.0])  # what the ridge pulls to: the own confidence as it is
MAX_OPINION_STEPS = 100
OPINION_GRADIENT_GOAL = 1e-12  # for each row


@frozen
class SecondOpinion:
    r"""The confidence of our answer after another model was asked, by a logistic curve of both.

    .. math:: s = \sigma(b_0 + b_1\, \mathrm{logit}\, s_1 + b_2\, \mathrm{logit}\, s_2)

    s₁ is the model's own confidence, s₂ the probability that the other model gives to the same answer; where only its
    top label is known, its confidence if it agrees and 1 minus it if not. Answers never change. It is `used` only where
    it orders right and wrong answers clearly better, judged on rows that its curve has not seen; else the confidence
    stays what it was. Policies and `howsure decide` need s₂ as the column `second_opinion`.

    >>> rng = np.random.default_rng(0)
    >>> correct = rng.random(600) < 0.8
    >>> own = Predictions.from_confidence(rng.beta(6 + 2 * correct, 2), correct, prediction=np.zeros(600, int))
    >>> other = Predictions.from_confidence(rng.beta(4, 1, 600), prediction=np.where(correct, 0, rng.integers(0, 2, 600)))
    >>> opinion = SecondOpinion.fit(own, other)
    >>> opinion.used, opinion.gain_high < 0
    (True, True)
    """

    intercept: float
    own: float
    second: float
    used: bool
    gain: float  # AURC with it minus without, on rows that the curve has not seen
    gain_low: float
    gain_high: float
    rows: str = ""  # a digest of the rows of the fit
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        parameters(np.array([self.intercept, self.own, self.second]), "the curve")

    @classmethod
    def fit(
        cls,
        preds: Predictions,
        other: Predictions | None = None,
        *,
        folds: int = 5,
        level: float = 0.95,
        seed: int = 0,
    ) -> SecondOpinion:
        """Ridge regression of right and wrong on both, pulled to the own confidence as it is.

        The penalty is that of one observation: ½|b − (0, 1, 0)|² beside the sum of the losses.
        `other` holds the answers of the other model to the same samples; without it, `preds` has
        them as the attribute `second_opinion`. Groups stay together in the folds.
        """
        from howsure.calibrators.choice import deal_folds
        from howsure.metrics import aurc
        from howsure.uncertainty.intervals import paired_difference

        needs_predictions(preds, "SecondOpinion.fit")
        x = _build_features(preds, other)
        correct = preds.correct
        wrong = int((~correct).sum())
        least = min(wrong, preds.n - wrong)
        if preds.n < LEAST_ROWS or least < LEAST_OF_EACH:
            raise InputError(
                f"a second opinion needs {LEAST_ROWS} labelled rows, {LEAST_OF_EACH} of them wrong and "
                f"{LEAST_OF_EACH} right; these are {preds.n:,} rows with {wrong:,} wrong."
            )
        weight = np.ones(preds.n)
        if preds.weight is not None:
            weight = preds.weight / preds.weight.mean()
        unseen = np.empty(preds.n)
        fold = deal_folds(_keep_own(preds), folds, seed)
        for j in range(folds):
            rest = fold != j
            b = solve_opinion(x[rest], correct[rest], weight[rest])
            unseen[~rest] = _apply_curve(x[~rest], b)
        alone = _keep_own(preds)
        gain, low, high = paired_difference(aurc, replace(alone, values=unseen), alone, level, seed)
        b = solve_opinion(x, correct, weight)
        score = _apply_curve(x, b)
        claimed = np.where(correct, score, 1 - score)
        fitted = Fitted(
            status="used" if high < 0 else "not used",
            n=preds.n,
            k=preds.k,
            class_names=preds.class_names,
            nll=float(-np.average(np.log(claimed), weights=weight)),
        )
        return cls(
            intercept=float(b[0]),
            own=float(b[1]),
            second=float(b[2]),
            used=bool(high < 0),
            gain=gain,
            gain_low=low,
            gain_high=high,
            rows=_compute_digest(x),
            fitted=fitted,
        )

    def __call__(self, preds: Predictions, other: Predictions | None = None) -> Predictions:
        """The same answers with the confidence after both; the class probabilities are left out."""
        needs_predictions(preds, "SecondOpinion")
        if not self.used:
            return _keep_own(preds)
        x = _build_features(preds, other)
        b = np.array([self.intercept, self.own, self.second])
        return replace(_keep_own(preds), values=_apply_curve(x, b))

    def was_fitted_on(self, preds: Predictions) -> bool:
        """Whether these are the rows of the fit: a guarantee needs others."""
        if not self.used:
            return False
        return self.rows == _compute_digest(_build_features(preds, None))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs beside the predictions."""
        return (OPINION_COLUMN,) if self.used else ()


def attach_opinion(preds: Predictions, other: Predictions) -> Predictions:
    """`preds` with what `other` says of each answer, as the attribute `second_opinion`.

    >>> own = Predictions.from_probs([[0.7, 0.3], [0.4, 0.6]])
    >>> other = Predictions.from_probs([[0.9, 0.1], [0.8, 0.2]])
    >>> attach_opinion(own, other).attributes["second_opinion"]
    array([0.9, 0.2])
    """
    needs_predictions(preds, "attach_opinion")
    needs_predictions(other, "attach_opinion")
    if other.n != preds.n:
        raise InputError(
            f"the other model answers {other.n:,} samples, these are {preds.n:,}; both must answer the same."
        )
    if preds.ids is not None and other.ids is not None and (preds.ids != other.ids).any():
        row = int(np.flatnonzero(preds.ids != other.ids)[0])
        raise InputError(
            "ids",
            row=row,
            got=f"is {preds.ids[row]}, and {other.ids[row]} of the other model",
            need="both must answer the same samples in the same order",
        )
    names = preds.class_names
    if names is not None and other.class_names is not None and names != other.class_names:
        raise InputError(
            "the two models have other classes, or in another order; bring them into one order."
        )
    answer: Array = preds.prediction
    if not other.vectors:
        theirs: Array = other.prediction
        if names is not None and theirs.dtype.kind == "U" and answer.dtype.kind != "U":
            answer = np.array(names)[answer]
        if (answer.dtype.kind == "U") != (theirs.dtype.kind == "U"):
            raise InputError(
                "the answers of one model are numbers and those of the other are names; "
                "give class_names, or names in both."
            )
        said = np.where(answer == theirs, other.confidence, 1 - other.confidence)
    elif answer.dtype.kind in "iu" and (preds.k is None or preds.k == other.k):
        said = other.probs[np.arange(preds.n), answer]
    else:
        raise InputError(
            f"the other model has probabilities of {other.k} classes, and which of them each answer is "
            "cannot be told; give its confidence and prediction."
        )
    return replace(preds, attributes=(preds.attributes or {}) | {OPINION_COLUMN: said})


def _build_features(preds: Predictions, other: Predictions | None) -> Floats:
    """1 and the logits of both, a row for each sample."""
    if other is not None:
        preds = attach_opinion(preds, other)
    second = (preds.attributes or {}).get(OPINION_COLUMN)
    if second is None:
        raise InputError(
            "a second opinion needs what the other model says: its probability of each answer, as the "
            f"column {OPINION_COLUMN!r} (in Python: attach_opinion(preds, other))."
        )
    try:
        said = second.astype(np.float64)
    except ValueError:
        said = np.full(preds.n, np.nan)
    bad = np.flatnonzero(~((said >= 0) & (said <= 1)))
    if len(bad):
        raise InputError(
            OPINION_COLUMN,
            row=int(bad[0]),
            got=f"is {second[bad[0]]}",
            need="a probability in [0, 1] is needed",
        )
    columns = [np.ones(preds.n)]
    for p in (preds.confidence, said):
        inside = np.clip(p, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
        columns.append(np.log(inside) - np.log1p(-inside))
    return np.stack(columns, axis=1)


def _keep_own(preds: Predictions) -> Predictions:
    """The answers with their own confidence, and right or wrong where that is known."""
    if not preds.vectors:
        return preds
    if preds.layout is not None:
        raise InputError(
            "a second opinion is about one answer per sample, not about labels or pixels."
        )
    known = None
    if preds.known_labels is not None:
        known = preds.correct
    return replace(
        preds,
        kind="confidence",
        values=preds.confidence,
        known_correct=known,
        known_prediction=preds.prediction,
    )


def _apply_curve(x: Floats, b: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(x @ b, -700, 700)))


def solve_opinion(x: Floats, correct: Array, weight: Floats) -> Floats:
    """The b with the least sum of losses and ½|b − (0, 1, 0)|², by Newton's method.

    >>> p = np.array([[0.6, 0.4], [0.7, 0.8], [0.8, 0.7], [0.9, 0.2]])
    >>> x = np.column_stack((np.ones(4), np.log(p / (1 - p))))
    >>> solve_opinion(x, np.array([0, 1, 1, 0]), np.ones(4)).round(3)
    array([-0.33 ,  0.529,  1.052])
    """
    target = correct.astype(np.float64)

    def measure(b: Floats) -> float:
        z = x @ b
        return float(weight @ (np.logaddexp(0, z) - target * z) + ((b - OWN_ALONE) ** 2).sum() / 2)

    b = OWN_ALONE
    for _ in range(MAX_OPINION_STEPS):
        p = _apply_curve(x, b)
        gradient = x.T @ (weight * (p - target)) + b - OWN_ALONE
        if np.abs(gradient).max() <= OPINION_GRADIENT_GOAL * len(x):
            break
        second = (x.T * (weight * p * (1 - p))) @ x + np.eye(3)
        step: Floats = np.linalg.solve(second, gradient).astype(np.float64)
        length, here = 1.0, measure(b)
        while measure(b - length * step) > here and length > 1e-10:
            length /= 2
        b = b - length * step
    return b


def _compute_digest(x: Floats) -> str:
    return sha256(np.ascontiguousarray(x).tobytes()).hexdigest()
