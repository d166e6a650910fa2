"""Policy: accept or defer each prediction, by a score and its threshold.

Everything that is needed to decide stands here, and nothing else: the rules that choose a threshold
(`thresholds`, `guarantee`) are imported when a policy is fitted, not when one is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from howsure import scores
from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import count_values
from howsure.calibrators import Calibrator
from howsure.policies.suggestions import Suggestions
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.read_options import Asked, ReadOptions

if TYPE_CHECKING:
    from howsure.policies.guarantee import Guaranteed
    from howsure.policies.one_decision import DecisionObserver, OneByOne, OneDecision, Segment
    from howsure.policies.thresholds import Threshold

Rest = Literal["defer", "common"]
Rule: TypeAlias = "Callable[..., Threshold | Guaranteed]"  # a tally or outcomes → a threshold
DONT_KNOW = "I don't know"
PERSON = "a person"  # who decides what no model of a cascade does
NO_ANSWER = ""  # what a decision model answers where it refused
CASE_SCORE = "case"  # the confidences of all answers of a case, together
SMALLEST_CONFIDENCE = 1e-300  # a confidence of 0 has no logarithm
LISTED_LABELS = 20  # labels that an error lists
SMALL_SEGMENT = 100  # samples below which a rule without a guarantee is not asked
# Columns of decisions that have a value for each row.
ROW_COLUMNS = (
    "accept",
    "prediction",
    "confidence",
    "score",
    "ids",
    "audit",
    "segment",
    "known",
    "suggested",
    "next",
)


@frozen
class Basis:
    """The data that a policy rests on, and what the threshold did there."""

    n: int
    coverage: float
    accuracy: float
    source: str = ""
    sha256: str = ""


@frozen
class Guarantee:
    """How the threshold was chosen. With `delta`: the risk exceeds `risk` with probability at most
    delta.
    """

    rule: str
    risk: float = nan
    delta: float = nan
    bound: float = nan
    feasible: bool = True
    labels_needed: int | None = None  # or groups, where there are any
    groups: int | None = None  # that it rests on
    why: str = ""  # what keeps it from being promised, beside too few labels
    tested: tuple[tuple[float, ...], ...] = ()  # thresholds, kept and errors that were looked at


@frozen(eq=False)
class Decisions:
    """One decision per sample. `accept` False is the answer "I don't know": the case goes to
    somebody else.
    """

    accept: Bools
    prediction: Array
    confidence: Floats
    score: Floats
    ids: Array | None = None
    class_names: tuple[str, ...] | None = None
    audit: Bools | None = None  # accepted answers whose label an online policy asks for
    ticket: tuple[str, ...] | None = None  # identifies a decision of an online policy
    segment: Array | None = None  # by which the threshold was looked up
    known: Bools | None = None  # whether this segment has a threshold of its own
    suggested: Ints | None = None  # classes for what is deferred, likeliest first, then -1
    next: Array | None = None  # in a cascade: who decides what is deferred, else ""

    @property
    def coverage(self) -> float:
        """Share of accepted answers."""
        return float(self.accept.mean())

    def answers(self, unknown: str | None = DONT_KNOW) -> list[str | int | None]:
        """The answers in words: a class where the model decides alone, `unknown` where it does not."""
        names: list[str | int] = self.prediction.tolist()
        if self.class_names is not None:
            names = [self.class_names[i] if isinstance(i, int) else i for i in names]
        pairs = zip(names, self.accept.tolist(), strict=True)
        return [name if accepted else unknown for name, accepted in pairs]

    def suggestions(self) -> list[list[str | int]]:
        """The classes to suggest for each sample, likeliest first; none for what is accepted, where
        the list would be long, and where the policy has no suggestions.
        """
        if self.suggested is None:
            return [[] for _ in self.accept]
        rows = [[k for k in row if k >= 0] for row in self.suggested.tolist()]
        if self.class_names is None:
            return rows
        return [[self.class_names[k] for k in row] for row in rows]

    def __len__(self) -> int:
        return len(self.accept)

    def __getitem__(self, rows: slice | Sequence[int] | Ints | Bools) -> Decisions:
        columns: dict[str, Any] = {}
        for name in ROW_COLUMNS:
            column: Array | None = getattr(self, name)
            if column is not None:
                columns[name] = column[rows]
        # A ticket belongs to a decision as it was made, with all others of its batch.
        return replace(self, ticket=None, **columns)


@frozen
class Policy:
    """When the model may decide alone: calibrate, score, accept where score >= threshold, else
    defer.

    `score` is the name of a score in `howsure.scores` (or, with `costs`, "cost": minus the least
    expected cost, whose class is then the answer). `by` names the columns whose values are segments
    ("hospital", "age:40,60", "hospital,age:40,60", "predicted" for the predicted class), or is
    "label" or "image". The segments in `keys` have `thresholds` and `guarantees` of their own, all
    others take `threshold`, which is inf where they are deferred. `guarantee` and `basis` say what
    is guaranteed and on which data, `read` how their file was read, and `suggestions` which classes
    a deferred answer may be (`fit_suggestions`). Saved with `howsure.save`, read with
    `howsure.load`.

    >>> policy = Policy("max_prob", 0.75)
    >>> preds = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], class_names=["cat", "dog"])
    >>> policy.decide(preds).answers()
    ['cat', "I don't know"]
    """

    score: str
    threshold: float
    calibrator: Calibrator | None = None
    by: str | None = None
    keys: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    costs: tuple[tuple[float, ...], ...] | None = None
    k: int | None = None
    class_names: tuple[str, ...] | None = None
    guarantee: Guarantee | None = None
    guarantees: tuple[Guarantee, ...] = ()
    basis: Basis | None = None
    read: ReadOptions | None = None
    asked: Asked | None = None  # of a decision model: its name and questions
    suggestions: Suggestions | None = None
    following: tuple[
        str, ...
    ] = ()  # of a cascade: who decides what is deferred, for each of `keys`

    def __post_init__(self) -> None:
        # A policy may come from a file that somebody edited: whatever decides is checked here.
        if isnan(self.threshold) or any(isnan(x) for x in self.thresholds):
            raise InputError("a threshold is nan; a number or inf (defer everything) is needed.")
        if (self.score == "cost") != (self.costs is not None):
            raise InputError(
                "the score 'cost' and a matrix costs= belong together; give both or none."
            )
        if self.score not in ("cost", CASE_SCORE):
            find_score(self.score)
        if self.segmented:
            from howsure.predictions.segments import parse_segments

            parse_segments(self.by or "")
        if self.guarantees and len(self.guarantees) != len(self.keys):
            raise InputError(f"{len(self.keys)} keys have {len(self.guarantees)} guarantees.")
        if self.following and len(self.following) != len(self.keys):
            raise InputError(f"{len(self.keys)} keys have {len(self.following)} followers.")
        if self.by == "image" and len(self.keys) != 1:
            raise InputError("by='image' needs one key, the score of an image.")
        if len(self.keys) != len(self.thresholds) or (self.keys and self.by is None):
            raise InputError(
                f"{len(self.keys)} keys have {len(self.thresholds)} thresholds with by={self.by!r}."
            )
        if self.calibrator is not None and not callable(self.calibrator):
            raise InputError(
                "calibrator",
                got=f"is a {type(self.calibrator).__name__}",
                need="a calibrator is needed",
            )
        if self.k is not None:
            checks.within(self.k, 1, 2**31, "k")
        if self.class_names is not None and self.k is not None and len(self.class_names) != self.k:
            raise InputError(
                "class_names", got=f"has {len(self.class_names)} names for {self.k} classes"
            )
        if self.costs is not None:
            check_costs(self.costs, self.k)

    @property
    def partial(self) -> bool:
        """Whether the guarantee is about the cases that single answers belong to."""
        return self.guarantee is not None and "automatic answer" in self.guarantee.rule

    @property
    def segmented(self) -> bool:
        """Whether columns of the data choose the threshold."""
        return self.by not in (None, "label", "image")

    @classmethod
    def of_choice(
        cls,
        chosen: Threshold | Guaranteed,
        n: int,
        *,
        score: str = "max_prob",
        source: tuple[str, str] = ("", ""),
    ) -> Policy:
        """The policy of a threshold that was chosen on n samples; `source` names them and their hash.

        >>> from howsure import tally
        >>> from howsure.policies import threshold_for_coverage
        >>> counts = tally([0.9, 0.8], correct=[1, 0], count=[10**9, 10**9])
        >>> Policy.of_choice(threshold_for_coverage(counts, 0.5), counts.n).threshold
        0.9
        """
        from howsure.policies.thresholds import as_guarantee

        basis = Basis(
            n=n,
            coverage=chosen.coverage,
            accuracy=chosen.accuracy,
            source=source[0],
            sha256=source[1],
        )
        return cls(
            score=score, threshold=chosen.threshold, guarantee=as_guarantee(chosen), basis=basis
        )

    @classmethod
    def fit(
        cls,
        preds: Predictions,
        choose: Rule,
        *,
        score: str | None = None,
        calibrator: Calibrator | None = None,
        by: str | None = None,
        together: bool = False,
        rest: Rest = "defer",
        costs: ArrayLike | None = None,
        minimum: int | None = None,
        source: tuple[str, str] = ("", ""),
    ) -> Policy:
        """Choose thresholds on labelled predictions with a rule such as `lambda t:
        threshold_for_accuracy(t, 0.99)`.

        With `by` each segment has a threshold that is chosen on its own rows, and a guarantee of its
        own; `together=True` makes these hold all at once, for as many of the largest segments as
        have enough labels (the rule must take `delta=`). A segment that is too small or not known
        here is deferred, or with `rest="common"` takes the threshold of all together, without a
        guarantee of its own. Too small are segments with fewer labels than any guarantee needs, and
        for other rules those below `minimum` (100). Clusters (`preds.group`) are the unit of a
        guarantee; where `by` is "group" each cluster is a segment, and its rows are taken as
        independent. With `by="image"` whole images are accepted or deferred by the mean confidence
        of their pixels, with 1 − Dice as loss: `preds` are pixels with an image as group, or
        `Images.predictions`. `source` names the data and its hash.

        >>> from howsure.policies import guaranteed_threshold
        >>> p = np.repeat([[0.99, 0.01]], 200, axis=0)
        >>> policy = Policy.fit(Predictions.from_probs(p, [0] * 200),
        ...     lambda t: guaranteed_threshold(t, risk=0.05, delta=0.05))
        >>> policy.threshold, round(policy.guarantee.bound, 4)
        (0.99, 0.0149)
        """
        from howsure.policies.thresholds import (
            choose_by_segment,
            cost_outcomes,
            rows_or_tally,
            summarise_segments,
        )
        from howsure.predictions.images import IMAGE_SCORES, images_of
        from howsure.predictions.outcomes import Outcomes
        from howsure.predictions.segments import fix_edges, name_segments

        needs_predictions(preds, "Policy.fit")
        if rest not in ("defer", "common"):
            raise InputError(f"rest={rest!r}; 'defer' or 'common' is needed.")
        preds = preds.drop_equal_weights()
        matrix = None if costs is None else check_costs(costs, preds.k)
        score = score or preds.score_name
        if calibrator is not None:
            was_fitted_on: Callable[[Predictions], bool] | None
            was_fitted_on = getattr(calibrator, "was_fitted_on", None)
            if was_fitted_on is not None and was_fitted_on(preds):
                raise InputError(
                    "the second opinion was fitted on these rows, so it is too sure of them; "
                    "choose the threshold on other labelled rows."
                )
            preds = calibrator(preds)
        if by == "image" and preds.vectors:
            preds = images_of(preds).predictions()
        if score == CASE_SCORE:
            from howsure.policies.cases import join_cases

            outcomes, preds = join_cases(preds, by)
            answer, cost_rows = np.full(preds.n, -1), None
        elif matrix is None:
            outcomes, answer = Outcomes.of(preds, find_score(score)(preds)), _find_answer(preds)
            cost_rows = None
        else:
            outcomes, answer = cost_outcomes(preds, matrix), find_cheapest(preds, matrix)[0]
            score, cost_rows = "cost", tuple(tuple(row) for row in matrix.tolist())
        common = choose(rows_or_tally(outcomes))
        policy = replace(
            cls.of_choice(common, len(outcomes), source=source),
            score=score,
            calibrator=calibrator,
            costs=cost_rows,
            k=preds.k,
            class_names=preds.class_names,
        )
        if by == "image":
            at = (common.threshold,)
            return replace(policy, by=by, keys=(IMAGE_SCORES[0],), thresholds=at)
        if by is None:
            return policy
        by = fix_edges(by, preds)
        segments = name_segments(by, preds, answer)
        if "group" in by.split(","):  # a segment is one cluster: its rows are the units
            outcomes = replace(outcomes, group=None)
        chosen = choose_by_segment(
            outcomes, segments, choose, common=common, together=together, minimum=minimum
        )
        return summarise_segments(
            replace(policy, by=by), outcomes, segments, chosen, rest=rest, together=together
        )

    def to_text(self) -> str:
        """What it does, what is guaranteed and on which data, line by line.

        >>> print(Policy("max_prob", 0.75).to_text(), end="")
        Accept where max_prob >= 0.75, defer the rest.
        """
        score = self.score
        if self.by == "image":
            score = f"{self.keys[0]} of an image"
        lines = [f"Accept where {score} >= {self.threshold:.6g}, defer the rest."]
        if self.threshold == inf:
            lines = ["Defer everything."]
        if self.by not in (None, "image"):
            others = "take this one"
            if self.threshold == inf:
                others = "are deferred"
                lines = [f"Accept where {score} reaches the threshold of its own {self.by}."]
            lines.append(f"Own thresholds by {self.by}: {len(self.keys):,}; all others {others}.")
        if self.calibrator is not None:
            lines.append(f"After {type(self.calibrator).__name__}.")
        if self.guarantee is not None:
            lines.append(f"Rule: {self.guarantee.rule}.")
            if not isnan(self.guarantee.bound):
                lines.append(f"Bound of the risk: {self.guarantee.bound * 100:.2f} %.")
        if self.basis is not None:
            n, coverage, accuracy = self.basis.n, self.basis.coverage, self.basis.accuracy
            right = "" if isnan(accuracy) else f", {accuracy * 100:.2f} % of these right"
            lines.append(f"On {n:,} labelled samples: {coverage * 100:.2f} % accepted{right}.")
        if self.suggestions is not None:
            lines.append(self.suggestions.to_text())
        return "\n".join(lines) + "\n"

    def frame(self, library: str = "pandas") -> Any:
        """Its thresholds as a data frame of pandas or polars: that of all, then the own ones of
        classes or groups.
        """
        from howsure._core.checks import build_frame as frame

        common = "all" if self.by is None else "others"
        rows = [(common, self.threshold), *zip(self.keys, self.thresholds, strict=True)]
        return frame(
            [{"key": key, "score": self.score, "threshold": at} for key, at in rows], library
        )

    def _repr_html_(self) -> str:
        from howsure._core.checks import wrap_preformatted

        return wrap_preformatted(self.to_text())

    def decide(self, preds: Predictions) -> Decisions:
        """Accept or defer each sample, or each image with `by="image"`; labels are not needed."""
        needs_predictions(preds, "Policy.decide")
        self.check_classes(preds)
        is_plain = self.by not in ("image", "label") and self.score != CASE_SCORE
        if preds.n == 1 and preds.vectors and is_plain:
            # NumPy adds the classes of a single row in another order. Beside a copy of itself it is
            # decided as among many, so that no decision depends on what arrived with it.
            return self.decide(preds[np.zeros(2, dtype=np.int64)])[:1]
        # Confidences of images were made from calibrated pixels; they are not calibrated twice.
        images_given = self.by == "image" and not preds.vectors
        if self.calibrator is not None and not images_given:
            preds = self.calibrator(preds)
        if self.by == "image" and not images_given:
            from howsure.predictions.images import image_confidences

            preds = image_confidences(preds, self.keys[0])
        if self.score == CASE_SCORE:
            answer, confidence = _find_answer(preds), preds.confidence
            if preds.group is None:
                raise InputError("the answers do not say which case they belong to; give group=.")
            cases, place = np.unique(preds.group, return_inverse=True)
            score = sum_cases(confidence, place, len(cases))[place]
        elif self.costs is None:
            answer, score = _find_answer(preds), find_score(self.score)(preds)
            confidence = np.full(preds.n, nan)  # of a mere score there is none
            if preds.kind != "score":
                confidence = preds.confidence
        else:  # the cheapest answer need not be the likeliest
            answer, cost = find_cheapest(preds, self.costs)
            score, confidence = -cost, preds.probs[np.arange(preds.n), answer]
        accept: Bools = score >= self.limits(preds, answer)
        if self.asked is not None and answer.dtype.kind not in "iu":
            # A refusal is no answer, however low the threshold is.
            refused: Bools = np.asarray(answer == NO_ANSWER)
            if self.score == CASE_SCORE and preds.group is not None:
                refused = np.isin(preds.group, preds.group[refused])
            accept = accept & ~refused
        decisions = Decisions(
            accept=accept,
            prediction=answer,
            confidence=confidence,
            score=score,
            ids=preds.ids,
            class_names=preds.class_names or self.class_names,
        )
        deferred = np.flatnonzero(~decisions.accept)
        if self.suggestions is not None and len(deferred):
            listed = self.suggestions.suggest(preds[deferred].probs, answer[deferred])
            suggested = np.full((preds.n, listed.shape[1]), -1)
            suggested[deferred] = listed
            decisions = replace(decisions, suggested=suggested)
        if not self.segmented:
            return decisions
        segment = self.find_keys(preds, answer)
        named = {key: self.name_key(key) for key in set(segment.tolist())}
        shown = np.array([named[key] for key in segment.tolist()])
        decisions = replace(decisions, segment=shown, known=np.isin(segment, self.keys))
        if not self.following:
            return decisions
        follower = dict(zip(self.keys, self.following, strict=True))
        names = [follower.get(key, PERSON) for key in segment.tolist()]
        return replace(decisions, next=np.where(decisions.accept, "", np.array(names)))

    def decide_one(
        self,
        *,
        logits: ArrayLike | None = None,
        probs: ArrayLike | None = None,
        confidence: ArrayLike | None = None,
        score: ArrayLike | None = None,
        prediction: int | str | None = None,
        segment: Segment = None,
        monitor: DecisionObserver | None = None,
    ) -> OneDecision:
        """Accept or defer one answer, given as exactly one of `logits`, `probs` (of all classes; of
        class 1 alone for two; (members, k) for samples), `confidence`, or `score`, the policy's own
        score where nothing is calibrated before it.

        The decision is that of `decide`, without the cost of predictions around a single row; threads
        may share a policy. `prediction` is the class beside a confidence or a score. `segment` is the
        value of the column in `by`, or a dictionary of the values of several; one without a
        threshold of its own is treated as `decide` does, and `reason` says so. `monitor`
        (`serving.LiveMonitors`) is shown the decision.

        >>> one = Policy("max_prob", 0.75, class_names=("cat", "dog")).decide_one(probs=[0.9, 0.1])
        >>> one.accept, one.answer, one.reason
        (True, 'cat', 'max_prob reaches its threshold')
        """
        kind, values, given = "", None, 0
        if logits is not None:
            kind, values, given = "logits", logits, given + 1
        if probs is not None:
            kind, values, given = "probs", probs, given + 1
        if confidence is not None:
            kind, values, given = "confidence", confidence, given + 1
        if score is not None:
            kind, values, given = "score", score, given + 1
        if given != 1 or values is None:
            raise InputError(
                f"decide_one got {given} of logits=, probs=, confidence= and score=; "
                "exactly one of them is needed."
            )
        made = self._one_by_one.decide(kind, values, prediction, segment)
        if monitor is not None:
            monitor.see(made)
        return made

    def __getstate__(self) -> dict[str, object]:
        # What decide_one knows by heart is made again where a policy goes to another process.
        return {name: value for name, value in vars(self).items() if name != "_one_by_one"}

    @cached_property
    def _one_by_one(self) -> OneByOne:
        from howsure.policies.one_decision import OneByOne

        return OneByOne(self)

    def limits(self, preds: Predictions, answer: Array) -> float | Floats:
        """The threshold of each sample."""
        if self.by in (None, "image"):
            return self.threshold
        if self.by == "label":
            names = preds.needs_labels("a threshold for each label").names
            if not set(names) & set(self.keys):
                ours = ", ".join(self.keys[:LISTED_LABELS])
                theirs = ", ".join(names[:LISTED_LABELS])
                raise InputError(
                    f"this policy is for the labels {ours}; these predictions have {theirs}."
                )
        own = dict(zip(self.keys, self.thresholds, strict=True))
        keys = self.find_keys(preds, answer).tolist()
        return np.array([own.get(key, self.threshold) for key in keys])

    def find_keys(self, preds: Predictions, answer: Array) -> Array:
        """What a sample's own threshold is looked up by, as text: its label or its segment."""
        if self.by == "label":
            layout = preds.needs_labels("a threshold for each label")
            return np.array(layout.names)[layout.place]
        from howsure.predictions.segments import name_segments

        return name_segments(self.by or "", preds, answer)

    def name_key(self, key: str) -> str:
        """What a segment is called: a predicted class by its name, where that is known."""
        from howsure.predictions.segments import PREDICTED, name_predicted

        if not self.segmented or self.class_names is None or PREDICTED not in (self.by or ""):
            return key
        return name_predicted(self.by or "", key, self.class_names)

    def check_classes(self, preds: Predictions) -> None:
        """Refuse predictions over other classes than the policy was made for."""
        if self.k is not None and preds.k is not None and preds.k != self.k:
            raise InputError(
                f"this policy was made for {self.k} classes, these predictions have {preds.k}."
            )
        if not self.class_names or not preds.class_names:
            return
        for i, (ours, theirs) in enumerate(zip(self.class_names, preds.class_names, strict=True)):
            if ours != theirs:
                raise InputError(
                    f"this policy was made for other classes: class {i} is {ours!r} there and "
                    f"{theirs!r} here."
                )


def find_score(name: str) -> Callable[[Predictions], Floats]:
    """The score of that name."""
    if name not in scores.__all__:
        raise InputError(f"{name!r} is not a score; one of {', '.join(scores.__all__)} is needed.")
    return getattr(scores, name)


def sum_cases(confidence: Floats, place: Ints, cases: int) -> Floats:
    """The score of each case: the sum of the logarithms of its confidences, the least first.

    >>> sum_cases(np.array([0.5, 1.0, 0.5]), np.array([0, 1, 0]), 2).round(3)
    array([-1.386,  0.   ])
    """
    order = np.argsort(confidence, kind="stable")
    logs = np.log(np.maximum(confidence[order], SMALLEST_CONFIDENCE))
    # bincount adds in this order, so that the order of the answers does not change the last bit.
    return count_values(place[order], weights=logs, minlength=cases).astype(np.float64)


def _find_answer(preds: Predictions) -> Array:
    if not preds.vectors and preds.known_prediction is None:
        return np.full(preds.n, -1)  # the class is not known; the decision does not need it
    return preds.prediction


def check_costs(costs: ArrayLike, k: int | None) -> Floats:
    """A finite k × k matrix: row = truth, column = answer."""
    matrix = checks.finite(checks.floats(costs, "costs"), "costs").astype(np.float64)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not square or (k is not None and len(matrix) != k):
        raise InputError(
            f"costs has shape {matrix.shape}; one row per true class and one column per answer is needed."
        )
    return matrix


def find_cheapest(preds: Predictions, costs: ArrayLike) -> tuple[Ints, Floats]:
    r"""The answer with the least expected cost and that cost, :math:`\min_j \sum_i p_i C_{ij}`;
    ties: smaller class.
    """
    expected = preds.probs @ check_costs(costs, preds.k)
    answer = expected.argmin(axis=1)
    return answer, expected[np.arange(preds.n), answer]


__all__ = ["DONT_KNOW", "Basis", "Decisions", "Guarantee", "Policy"]
