"""Policy: a score, a threshold and what was promised; Decisions: accept or defer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, isnan, nan
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from howsure import scores
from howsure._core import check
from howsure._core.check import Array, Bools, Floats, InputError, Ints
from howsure._core.frames import frame, preformatted
from howsure._core.frozen import frozen
from howsure._core.text import array_of
from howsure.calibrators import Calibrator
from howsure.policies.costs import cheapest, cost_matrix, cost_outcomes
from howsure.policies.guarantee import Guaranteed
from howsure.policies.threshold import Threshold, rows_or_tally
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.images import SCORES, image_confidences, images_of
from howsure.predictions.outcomes import Outcomes
from howsure.tallies.tally import Tally

By = Literal["class", "group", "label", "image"]
DONT_KNOW = "I don't know"


@frozen
class Basis:
    """The data that a policy rests on, and what the threshold did there."""

    n: int
    coverage: float
    accuracy: float
    source: str = ""
    sha256: str = ""


@frozen
class Promise:
    """How the threshold was chosen. With `delta`: the risk exceeds `risk` with probability at most
    delta.
    """

    rule: str
    risk: float = nan
    delta: float = nan
    bound: float = nan
    feasible: bool = True
    labels_needed: int | None = None


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
    ticket: tuple[str, ...] | None = None  # by which a label of an online policy is known again

    @property
    def coverage(self) -> float:
        """Share of accepted answers."""
        return float(self.accept.mean())

    def answers(self, unknown: str | None = DONT_KNOW) -> list[str | int | None]:
        """The answers in words: a class where the model decides alone, `unknown` where it does not."""
        said: list[str | int] = self.prediction.tolist()
        if self.class_names is not None:
            said = [self.class_names[i] if isinstance(i, int) else i for i in said]
        return [a if ok else unknown for a, ok in zip(said, self.accept.tolist(), strict=True)]

    def __len__(self) -> int:
        return len(self.accept)

    def __getitem__(self, rows: slice | Sequence[int] | Ints | Bools) -> Decisions:
        pick: Callable[[Array | None], Array | None] = lambda a: None if a is None else a[rows]
        names = ("accept", "prediction", "confidence", "score", "ids", "audit")
        return replace(self, ticket=None, **{name: pick(getattr(self, name)) for name in names})


@frozen
class Policy:
    """When the model may decide alone: calibrate, score, accept where score >= threshold, else
    defer.

    `score` is the name of a score in `howsure.scores` (or, with `costs`, "cost": minus the least
    expected cost, whose class is then the answer). With `by`, the classes or groups in `keys` have
    `thresholds` of their own and all others take `threshold`. `promise` and `basis` say what was
    promised and on which data. Saved with `howsure.save`, read with `howsure.load`.

    >>> policy = Policy("max_prob", 0.75)
    >>> preds = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], class_names=["cat", "dog"])
    >>> policy.decide(preds).answers()
    ['cat', "I don't know"]
    """

    score: str
    threshold: float
    calibrator: Calibrator | None = None
    by: By | None = None
    keys: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    costs: tuple[tuple[float, ...], ...] | None = None
    k: int | None = None
    class_names: tuple[str, ...] | None = None
    promise: Promise | None = None
    basis: Basis | None = None

    def __post_init__(self) -> None:
        if isnan(self.threshold) or any(isnan(x) for x in self.thresholds):
            raise InputError("a threshold is nan; a number or inf (defer everything) is needed.")
        if (self.score == "cost") != (self.costs is not None):
            raise InputError(
                "the score 'cost' and a matrix costs= belong together; give both or none."
            )
        if self.score != "cost":
            score_named(self.score)
        if self.by not in (None, "class", "group", "label", "image"):
            raise InputError(
                f"by={self.by!r}; 'class', 'group', 'label', 'image' or None is needed."
            )
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
            check.within(self.k, 1, 2**31, "k")
        if self.class_names is not None and self.k is not None and len(self.class_names) != self.k:
            raise InputError(
                "class_names", got=f"has {len(self.class_names)} names for {self.k} classes"
            )
        if self.costs is not None:
            cost_matrix(self.costs, self.k)

    @classmethod
    def fit(
        cls,
        preds: Predictions,
        choose: Callable[[Tally | Outcomes], Threshold | Guaranteed],
        *,
        score: str = "max_prob",
        calibrator: Calibrator | None = None,
        by: By | None = None,
        costs: ArrayLike | None = None,
        minimum: int = 100,
        source: tuple[str, str] = ("", ""),
    ) -> Policy:
        """Choose thresholds on labelled predictions with a rule such as `lambda t:
        threshold_for_accuracy(t, 0.99)`.

        With `by` every predicted class or every group with at least `minimum` samples gets a
        threshold of its own (inf where the rule finds none); smaller and new ones take the
        threshold of all together. A guarantee then holds for each of them by itself; divide delta
        by their number for all at once. With `by="image"` whole images are accepted or deferred by
        the mean confidence of their pixels, with 1 − Dice as loss: `preds` are pixels with an image
        as group, or `Images.predictions`. `source` names the data and its hash.

        >>> from howsure.policies import guaranteed_threshold
        >>> p = np.repeat([[0.99, 0.01]], 200, axis=0)
        >>> policy = Policy.fit(Predictions.from_probs(p, [0] * 200),
        ...     lambda t: guaranteed_threshold(t, risk=0.05, delta=0.05))
        >>> policy.threshold, round(policy.promise.bound, 4)
        (0.99, 0.0149)
        """
        needs_predictions(preds, "Policy.fit")
        table = None if costs is None else cost_matrix(costs, preds.k)
        if calibrator is not None:
            preds = calibrator(preds)
        if by == "image" and preds.kind != "confidence":
            preds = images_of(preds).predictions()
        o = _outcomes(preds, score if table is None else "cost", table)
        found = choose(rows_or_tally(o))
        parts = (
            {}
            if by is None
            else {SCORES[0]: found.threshold}
            if by == "image"
            else _by_key(o, keys_of(preds, by, _said(preds, table)), choose, minimum)
        )
        return cls(
            score if table is None else "cost",
            found.threshold,
            calibrator,
            by,
            tuple(parts),
            tuple(parts.values()),
            None if table is None else tuple(tuple(row) for row in table.tolist()),
            preds.k,
            preds.class_names,
            _promise(found),
            Basis(len(o), found.coverage, found.accuracy, *source),
        )

    def to_text(self) -> str:
        """What it does, what is promised and on which data, line by line.

        >>> print(Policy("max_prob", 0.75).to_text(), end="")
        Accept where max_prob >= 0.75, defer the rest.
        """
        which = self.score if self.by != "image" else f"{self.keys[0]} of an image"
        where = (
            "Defer everything."
            if self.threshold == inf
            else f"Accept where {which} >= {self.threshold:.6g}, "
        )
        lines = [where if self.threshold == inf else f"{where}defer the rest."]
        if self.by not in (None, "image"):
            lines.append(
                f"Own thresholds by {self.by}: {len(self.keys):,}; all others take this one."
            )
        if self.calibrator is not None:
            lines.append(f"After {type(self.calibrator).__name__}.")
        if self.promise is not None:
            lines.append(f"Rule: {self.promise.rule}.")
            if not isnan(self.promise.bound):
                lines.append(f"Bound of the risk: {self.promise.bound * 100:.2f} %.")
        if self.basis is not None:
            b = self.basis
            right = "" if isnan(b.accuracy) else f", {b.accuracy * 100:.2f} % of these right"
            lines.append(f"On {b.n:,} labelled samples: {b.coverage * 100:.2f} % accepted{right}.")
        return "\n".join(lines) + "\n"

    def frame(self, library: str = "pandas") -> Any:
        """Its thresholds as a data frame of pandas or polars: that of all, then the own ones of
        classes or groups.
        """
        own = zip(self.keys, self.thresholds, strict=True)
        rows = [("all" if self.by is None else "others", self.threshold), *own]
        return frame(
            [{"key": key, "score": self.score, "threshold": at} for key, at in rows], library
        )

    def _repr_html_(self) -> str:
        return preformatted(self.to_text())

    def decide(self, preds: Predictions) -> Decisions:
        """Accept or defer each sample, or each image with `by="image"`; labels are not needed."""
        needs_predictions(preds, "Policy.decide")
        self.check_classes(preds)
        if self.calibrator is not None and not (self.by == "image" and preds.kind == "confidence"):
            preds = self.calibrator(preds)
        if self.by == "image" and preds.kind != "confidence":
            preds = image_confidences(preds, self.keys[0])
        said, score = self.read(preds)
        accept = score >= self.limits(preds, said)
        confidence = (
            preds.confidence if self.costs is None else preds.probs[np.arange(preds.n), said]
        )
        return Decisions(
            accept, said, confidence, score, preds.ids, preds.class_names or self.class_names
        )

    def read(self, preds: Predictions) -> tuple[Array, Floats]:
        """Answer and score of each (calibrated) sample."""
        if self.costs is not None:
            said, cost = cheapest(preds, self.costs)
            return said, -cost
        said = _said(preds, None)
        return said, score_named(self.score)(preds)

    def limits(self, preds: Predictions, said: Array) -> float | Floats:
        """The threshold of each sample."""
        if self.by in (None, "image"):
            return self.threshold
        if self.by == "label":
            here = preds.needs_labels("a threshold for each label").names
            if not set(here) & set(self.keys):
                got = f"this policy is for the labels {', '.join(self.keys[:20])}"
                raise InputError(f"{got}; these predictions have {', '.join(here[:20])}.")
        own = dict(zip(self.keys, self.thresholds, strict=True))
        return np.array(
            [own.get(key, self.threshold) for key in keys_of(preds, self.by, said).tolist()]
        )

    def check_classes(self, preds: Predictions) -> None:
        """Refuse predictions over other classes than the policy was made for."""
        if self.k is not None and preds.k is not None and preds.k != self.k:
            raise InputError(
                f"this policy was made for {self.k} classes, these predictions have {preds.k}."
            )
        if self.class_names and preds.class_names and self.class_names != preds.class_names:
            i = next(
                i
                for i, (a, b) in enumerate(zip(self.class_names, preds.class_names, strict=True))
                if a != b
            )
            raise InputError(
                f"this policy was made for other classes: class {i} is {self.class_names[i]!r} there and "
                f"{preds.class_names[i]!r} here."
            )


def score_named(name: str) -> Callable[[Predictions], Floats]:
    """The score of that name."""
    if name not in scores.__all__:
        raise InputError(f"{name!r} is not a score; one of {', '.join(scores.__all__)} is needed.")
    return getattr(scores, name)


def keys_of(preds: Predictions, by: By, said: Array) -> Array:
    """What a sample's own threshold is looked up by: its predicted class, its group or its label,
    as text.
    """
    if by == "group":
        if preds.group is None:
            raise InputError("thresholds by group need a group for each sample; give group=.")
        return array_of([str(one) for one in preds.group.tolist()])
    if by == "label":
        layout = preds.needs_labels("a threshold for each label")
        return np.array(layout.names)[layout.place]
    return said.astype(str)


def _said(preds: Predictions, costs: Floats | None) -> Array:
    if costs is not None:
        return cheapest(preds, costs)[0]
    if preds.kind == "confidence" and preds.known_prediction is None:
        return np.full(preds.n, -1)  # the class is not known; the decision does not need it
    return preds.prediction


def _outcomes(preds: Predictions, score: str, costs: Floats | None) -> Outcomes:
    if costs is not None:
        return cost_outcomes(preds, costs)
    return Outcomes.of(preds, score_named(score)(preds))


def _by_key(
    o: Outcomes,
    keys: Array,
    choose: Callable[[Tally | Outcomes], Threshold | Guaranteed],
    minimum: int,
) -> dict[str, float]:
    check.at_least(minimum, 1, "minimum")
    names, counts = np.unique(keys, return_counts=True)
    return {
        str(name): choose(rows_or_tally(o[keys == name])).threshold
        for name in names[counts >= minimum]
    }


def _promise(found: Threshold | Guaranteed) -> Promise:
    if isinstance(found, Threshold):
        return Promise(found.rule, feasible=found.feasible)
    return Promise(
        found.rule, found.risk, found.delta, found.bound, found.feasible, found.labels_needed
    )


__all__ = ["DONT_KNOW", "Basis", "Decisions", "Policy", "Promise"]
