"""One decision at a time: what `Policy.decide` says of a row among many, without predictions around
it.

`OneByOne` is made once for each policy and knows by heart what does not change. A row that it does
not know how to read (several members, costs, a class that is ruled out, probabilities that do not
sum to 1) goes through `Policy.decide`, which decides or refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isnan, nan
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from howsure._core.checks import LARGEST_NUMBER, Floats, InputError
from howsure.policies.policy import PERSON
from howsure.predictions import Predictions
from howsure.predictions.columns import (
    COMPLEMENT_DECIMALS,
    COMPLEMENT_LIMIT,
    TRUE_COMPLEMENT,
    TURNED_CLASSES,
    compute_entropy,
)
from howsure.predictions.input_shapes import ROW_SUM_TOLERANCE

if TYPE_CHECKING:
    from howsure.calibrators.one_row import RowMap
    from howsure.policies.policy import Policy

Answer: TypeAlias = int | str | None
SegmentValue: TypeAlias = str | int | float | None
Segment: TypeAlias = SegmentValue | Mapping[str, SegmentValue]
LOGIT_SCORES = (
    "max_prob",
    "log_max_prob",
    "margin",
    "entropy",
    "neg_entropy",
    "max_logit",
    "energy",
)
PROBABILITY_SCORES = LOGIT_SCORES[:5]


class OneDecision(NamedTuple):
    """What a policy says about one answer. Use `answer` where `accept` is true; else somebody else
    decides, with `suggestions` where the policy has any.
    """

    accept: bool
    answer: Answer  # the class by its name, or its number; None where it is not known
    confidence: float  # nan where only a score is known
    threshold: float
    reason: str
    suggestions: tuple[str | int, ...] = ()
    score: float = nan
    segment: str | None = None
    known: bool = True  # whether the segment has a threshold of its own
    next: str | None = None  # in a cascade: who decides what is deferred


class DecisionObserver(Protocol):
    """Whoever is shown each decision, such as `serving.LiveMonitors`."""

    def see(self, decision: OneDecision) -> None:
        """Take note of a decision."""
        ...


class Scored(NamedTuple):
    """An answer with its confidence and the score of the policy."""

    answer: int | str | None
    confidence: float
    score: float


class OneByOne:
    """A policy that is asked about one row at a time. Nothing in it changes after it is made, so
    threads may share it.
    """

    def __init__(self, policy: Policy):
        if policy.by in ("label", "image"):
            raise InputError(
                f"this policy decides about the {policy.by}s of whole cases; "
                "use decide, which sees a case as a whole."
            )
        self.policy = policy
        self.own = dict(zip(policy.keys, policy.thresholds, strict=True))
        self.following = dict(zip(policy.keys, policy.following, strict=False))
        self.maps: dict[tuple[str, int | None], tuple[RowMap | None, str]] = {}
        self.reached = f"{policy.score} reaches its threshold"
        self.below = f"{policy.score} is below its threshold"
        if policy.threshold == inf:
            self.below = "nothing is accepted: the threshold is infinite"

    def decide(
        self,
        kind: str,
        values: ArrayLike,
        prediction: Answer,
        segment: Segment,
    ) -> OneDecision:
        """Accept or defer one row."""
        policy = self.policy
        if kind == "score":
            scored = self._take_score(values, prediction)
        elif kind == "confidence":
            scored = self._read_confidence(values, prediction)
        elif prediction is not None:
            raise InputError(f"{kind}= say the prediction themselves; leave out prediction=.")
        else:
            scored = self._read_classes(kind, values)
        answer = scored.answer
        threshold, name, known = policy.threshold, None, True
        if policy.by is not None:
            name = self._name_segment(segment, answer)
            known = name in self.own
            threshold = self.own.get(name, threshold)
        elif segment is not None:
            raise InputError("this policy has one threshold for all; leave out segment=.")
        if isinstance(answer, int) and policy.class_names is not None:
            answer = policy.class_names[answer]
        shown = None if name is None else policy.name_key(name)
        accept = scored.score >= threshold
        reason = self.reached if accept else self.below
        if name is not None:
            if not known:
                reason = f"segment {shown!r} has no threshold of its own"
            elif threshold == inf:
                reason = f"segment {shown!r} has no guarantee"
        follower: str | None = None
        if policy.following and not accept:
            follower = self.following.get(name or "", PERSON)
        suggestions: tuple[str | int, ...] = ()
        if policy.suggestions is not None and not accept and kind in ("logits", "probs"):
            suggestions = self._suggest(kind, values, scored.answer)
        return OneDecision(
            accept=accept,
            answer=answer,
            confidence=scored.confidence,
            threshold=threshold,
            reason=reason,
            suggestions=suggestions,
            score=scored.score,
            segment=shown,
            known=known,
            next=follower,
        )

    def _take_score(self, value: ArrayLike, prediction: Answer) -> Scored:
        policy = self.policy
        if policy.calibrator is not None or policy.costs is not None:
            raise InputError(
                "this policy calibrates or weighs costs before it scores; "
                "give logits=, probs= or confidence=."
            )
        score = _take_number(value, "score")
        if policy.score == "max_prob" and not 0 <= score <= 1:
            raise InputError(f"score is {score:g}; max_prob lies in [0, 1].")
        return Scored(prediction, score if policy.score == "max_prob" else nan, score)

    def _read_confidence(self, value: ArrayLike, prediction: Answer) -> Scored:
        confidence = _take_number(value, "confidence")
        simple = self.policy.score == "max_prob" and 0 <= confidence <= 1
        if simple and self.policy.calibrator is not None:
            apply, _ = self._find_map("confidence", None)
            simple = apply is not None
            if apply is not None:
                confidence = float(apply(np.array([confidence]))[0])
        if simple:
            return Scored(prediction, confidence, confidence)
        known = None if prediction is None else [prediction]
        preds = Predictions.from_confidence([confidence], prediction=known)
        return self._ask_policy(preds)._replace(answer=prediction)

    def _read_classes(self, kind: str, values: ArrayLike) -> Scored:
        v = np.asarray(values)
        tolerance = ROW_SUM_TOLERANCE.get(v.dtype.itemsize, 1e-6)
        if v.dtype != np.float64:
            if v.dtype.kind not in "fiu":
                raise InputError(f"{kind} holds {v.dtype} values; numbers are needed.")
            v = v.astype(np.float64)
        if v.size == 1:  # a binary model may give class 1 alone
            one = float(v.reshape(()))
            v = np.array((0.0 if kind == "logits" else 1.0 - one, one))
        policy, k = self.policy, len(v)
        if v.ndim == 1 and policy.k not in (None, k):
            raise InputError(
                f"this policy was made for {policy.k} classes, these {kind} are of {k}."
            )
        if not self._is_simple(kind, v, tolerance):
            # The constructors refuse what is wrong in their own words; rows of their own type keep
            # their own tolerance.
            row = np.expand_dims(v, -2)
            if kind == "probs" and v.ndim == 1:
                row = row.astype(np.asarray(values).dtype)
            if v.ndim > 1:
                logits, probs = (row, None) if kind == "logits" else (None, row)
                return self._ask_policy(Predictions.from_samples(logits, probs=probs))
            make = Predictions.from_logits if kind == "logits" else Predictions.from_probs
            return self._ask_policy(make(row))
        if kind == "probs" and k == 2 and abs(float(v.sum()) - 1) <= TRUE_COMPLEMENT:
            v = np.array((1.0 - v[1], v[1]))  # as P(class 1) says them
        if policy.calibrator is not None:
            apply, kind = self._find_map(kind, k)
            if apply is None:
                make = Predictions.from_logits if kind == "logits" else Predictions.from_probs
                return self._ask_policy(make(v[None]))
            v = apply(v)
        if kind == "logits":
            return score_logits(v, policy.score)
        return score_probabilities(v, policy.score)

    def _is_simple(self, kind: str, v: Floats, tolerance: float) -> bool:
        """Whether a row is one that needs no further checks: finite logits, or a distribution."""
        policy = self.policy
        known = LOGIT_SCORES if kind == "logits" else PROBABILITY_SCORES
        if v.ndim != 1 or len(v) < 2 or policy.score not in known or policy.costs is not None:
            return False
        low, high = float(v.min()), float(v.max())
        if kind == "logits":  # nan fails every comparison
            return low >= -LARGEST_NUMBER and high <= LARGEST_NUMBER
        return low >= 0 and high <= 1 and abs(float(v.sum()) - 1) <= tolerance

    def _find_map(self, kind: str, k: int | None) -> tuple[RowMap | None, str]:
        if (kind, k) not in self.maps:
            from howsure.calibrators.one_row import find_row_map

            assert self.policy.calibrator is not None
            self.maps[kind, k] = find_row_map(self.policy.calibrator, kind, k) or (None, kind)
        return self.maps[kind, k]

    def _suggest(self, kind: str, values: ArrayLike, answer: Answer) -> tuple[str | int, ...]:
        """The classes that a deferred answer may be."""
        policy, made = self.policy, self.policy.suggestions
        row = np.asarray(values).reshape(1, -1)
        make = Predictions.from_logits if kind == "logits" else Predictions.from_probs
        preds = make(row) if policy.calibrator is None else policy.calibrator(make(row))
        assert made is not None
        listed: list[int] = made.suggest(preds.probs, np.array([answer]))[0].tolist()
        names = policy.class_names
        return tuple(i if names is None else names[i] for i in listed if i >= 0)

    def _ask_policy(self, preds: Predictions) -> Scored:
        """One row, as the policy scores it."""
        from dataclasses import replace

        whole = replace(self.policy, by=None, keys=(), thresholds=(), guarantees=())
        made = whole.decide(preds)
        answer: int | str = made.prediction[0].item()
        return Scored(answer, float(made.confidence[0]), float(made.score[0]))

    def _name_segment(self, segment: Segment, answer: Answer) -> str:
        """The key of a segment: as given, or named by the columns of the policy."""
        from howsure.predictions.segments import PREDICTED, name_segments, parse_segments

        by = self.policy.by or ""
        if by == PREDICTED:
            if segment is not None:
                raise InputError("the segments of this policy are its answers; leave out segment=.")
            if answer is None:
                raise InputError("the segments of this policy are its answers; give prediction=.")
            return str(answer)
        if isinstance(segment, str) and segment in self.own:
            return segment
        columns = [cut.column for cut in parse_segments(by) if cut.column != PREDICTED]
        if not isinstance(segment, Mapping):
            if segment is None or len(columns) > 1 or PREDICTED in by.split(","):
                example = ", ".join(f"{column!r}: ..." for column in columns)
                raise InputError(
                    f"this policy has a threshold for each {by}; give segment={{{example}}}."
                )
            segment = {columns[0]: segment}
        missing = [column for column in columns if column not in segment]
        if missing:
            raise InputError(f"segment has no {missing[0]!r}; {', '.join(columns)} are needed.")
        beside = {column: np.array([segment[column]]) for column in columns}
        row = Predictions.from_confidence([1.0], attributes=beside)
        return str(name_segments(by, row, np.array([answer]))[0])


def _take_number(value: ArrayLike, name: str) -> float:
    try:
        number = float(np.asarray(value, dtype=np.float64).reshape(()))
    except (TypeError, ValueError):
        raise InputError(f"{name} must be one number; decide takes many.") from None
    if isnan(number):
        raise InputError(f"{name} is nan, which is not a number to compare.")
    return number


def score_logits(z: Floats, name: str) -> Scored:
    """Answer, confidence and score of the finite logits of one row."""
    top = int(z.argmax())
    peak = float(z[top])
    z = z - peak
    e = np.exp(z)
    e[top] = 0.0  # the top class counts 1 exactly
    # As among many rows: few classes are added one by one, many pairwise.
    turned = len(z) < TURNED_CLASSES
    rest = np.add.accumulate(e)[-1] if turned else e.sum()
    total = 1.0 + rest
    confidence = float(1.0 / total)
    score = confidence
    if name == "log_max_prob":
        score = -np.log1p(rest)
    elif name == "margin":
        score = (1.0 - e.max()) / total
    elif name == "max_logit":
        score = peak
    elif name == "energy":
        score = peak + np.log1p(rest)
    elif name != "max_prob":
        if turned:
            # Beside a copy of itself: a single line is summed in another order.
            both = np.empty((2, len(z), 2))
            both[0], both[1] = e[:, None], z[:, None]
            weighted = np.einsum("ij,ij->j", both[0], both[1])[0]
        else:
            weighted = np.vecdot(e, z)
        h = max(0.0, float(np.log1p(rest) - weighted / total))
        score = _negate_entropy(h, len(z), name)
    return Scored(top, confidence, float(score))


def score_probabilities(p: Floats, name: str) -> Scored:
    """The same of probabilities between 0 and 1."""
    turned, k = len(p) < TURNED_CLASSES, len(p)
    top = int(p.argmax())
    if k == 2 and abs(float(p.sum()) - 1) <= TRUE_COMPLEMENT:
        p = np.array((1.0 - p[1], p[1]))
        top = int(p[1] > 0.5)
        peak = float(p[top])
        if peak <= COMPLEMENT_LIMIT:
            peak = round(peak * COMPLEMENT_DECIMALS) / COMPLEMENT_DECIMALS
    else:
        peak = float(p[top])
    score = peak
    if name == "log_max_prob":
        score = float(np.log(peak)) if peak > 0 else -inf
    elif name == "margin":
        others = p.copy()
        others[top] = 0.0
        score = peak - float(others.max())
    elif name != "max_prob":
        if turned:
            both = np.empty((k, 2))
            both[:] = p[:, None]
            h = float(compute_entropy(both, 0)[0])
        else:
            h = float(compute_entropy(p))
        score = _negate_entropy(h, k, name)
    return Scored(top, peak, score)


def _negate_entropy(h: float, k: int, name: str) -> float:
    if name == "neg_entropy":
        return 0.0 - h
    return 1.0 - min(max(h / float(np.log(k)), 0.0), 1.0)
