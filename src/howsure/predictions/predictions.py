"""Predictions: what a classifier said, kept as it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import check
from howsure._core.budget import fits
from howsure._core.check import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure.predictions.classes import class_numbers
from howsure.predictions.columns import Columns, Values, columns, mean_probs
from howsure.predictions.layout import Layout, regular
from howsure.predictions.unanswered import Unanswered
from howsure.tallies.tally import is_tally

if TYPE_CHECKING:
    from howsure.predictions.frames import Parts

Kind = Literal["logits", "probs", "confidence"]
COLUMNS: tuple[Literal["ids", "group", "weight"], ...] = ("ids", "group", "weight")
ROW = 64  # bytes of what stands beside the values of a sample
ROW_SUM_TOLERANCE = {2: 1e-2, 4: 1e-3, 8: 1e-6}  # by width of the given floats


class Extras(TypedDict, total=False):
    """Optional columns, and the names of the classes."""

    ids: ArrayLike | None
    group: ArrayLike | None
    weight: ArrayLike | None
    count: ArrayLike | None
    class_names: Iterable[object] | None
    attributes: Mapping[str, ArrayLike] | None


class Checked(TypedDict):
    """The same, checked."""

    ids: Array | None
    group: Array | None
    weight: Floats | None
    class_names: tuple[str, ...] | None
    attributes: dict[str, Array] | None


@frozen(eq=False)
class Predictions:
    """One classifier's answers to n samples of k classes. Make it with one of the `from_`
    constructors.

    Nothing is guessed: the constructor says what the numbers are. They are kept as given
    (probabilities are never turned into logits and back) and computed with in float64. `labels` may
    be left out where only the answers matter, as when deciding what to accept. `preds[rows]`
    selects samples.

    >>> preds = Predictions.from_logits([[2.0, 0.0], [0.0, 1.0]], [0, 0])
    >>> preds
    <Predictions: n=2, k=2, logits, accuracy 0.5>
    >>> preds.confidence
    array([0.88079708, 0.73105858])
    """

    kind: Kind
    values: Array  # (n, k); (s, n, k) for samples; (n,) for a confidence
    k: int | None
    known_labels: Array | None = None
    known_correct: Bools | None = None
    known_prediction: Array | None = None
    ids: Array | None = None
    group: Array | None = None
    weight: Floats | None = None
    class_names: tuple[str, ...] | None = None
    known_loss: Floats | None = None
    unanswered: Unanswered | None = None
    attributes: dict[str, Array] | None = None  # further columns by name: hospital, age
    layout: Layout | None = None  # where rows are the labels of cases or the pixels of images

    @classmethod
    def from_logits(
        cls, logits: ArrayLike, labels: ArrayLike | None = None, **columns: Unpack[Extras]
    ) -> Predictions:
        """Logits of shape (n, k). A binary model may give the logit of class 1 as (n,) or (n, 1).

        What `.logits` gives is taken back: (s, n, k) are s samples, as in `from_samples`.

        Labels are class numbers (also as floats), true and false of two classes, texts with
        `class_names=` in the order of the columns, or one-hot rows; a missing one is refused.

        Optional columns: `ids`, `group` (patient, image, question), `weight` (importance: only
        ratios matter), `count` (repetition: whole numbers, the same as that many rows),
        `class_names`, `attributes` (further columns by name, for slices: `evaluate(preds,
        by="hospital")`).
        """
        z = check.logits(check.floats(logits, "logits"), "logits")
        if z.ndim == 1 or (z.ndim == 2 and z.shape[1] == 1):
            z = np.stack((np.zeros_like(z.reshape(-1)), z.reshape(-1)), axis=1)
        if z.ndim == 3 and len(z) > 1:
            return cls.from_samples(z, labels, **columns)
        return cls._make(
            "logits", _matrix(z[0] if z.ndim == 3 and len(z) else z, "logits"), labels, **columns
        )

    @classmethod
    def from_probs(
        cls,
        probs: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        renormalise: bool = False,
        **columns: Unpack[Extras],
    ) -> Predictions:
        """Probabilities of shape (n, k) whose rows sum to 1; a binary model may give P(y=1) as (n,)
        or (n, 1).

        `renormalise=True` divides each row by its sum instead of refusing rows that do not sum to
        1.
        """
        p = check.no_nan(check.floats(probs, "probs"), "probs")
        if p.ndim == 1 or (p.ndim == 2 and p.shape[1] == 1):
            p = p.reshape(-1)
            p = np.stack((1 - p, p), axis=1)
        if (
            labels is not None and p.ndim == 2 and np.shape(labels) == p.shape
        ):  # many labels per case are told as such, not by sums of rows
            class_numbers(labels, p.shape[1])
        return cls._make(
            "probs", _distribution(_matrix(p, "probs"), probs, renormalise), labels, **columns
        )

    @classmethod
    def from_samples(
        cls,
        logits: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        *,
        probs: ArrayLike | None = None,
        renormalise: bool = False,
        **columns: Unpack[Extras],
    ) -> Predictions:
        """Several answers to each sample, shape (s, n, k): MC-dropout passes or ensemble members.

        The prediction is that of the mean probability over the s answers.
        """
        if (logits is None) == (probs is None):
            raise InputError(
                "give either logits= or probs= of shape (samples, n, k), exactly one of them."
            )
        kind: Kind = "logits" if probs is None else "probs"
        v = check.floats(logits if probs is None else probs, kind)
        (check.logits if kind == "logits" else check.finite)(v, kind)
        if v.ndim != 3 or v.shape[0] == 0:
            raise InputError(kind, got=f"has shape {v.shape}", need="samples need (samples, n, k)")
        _matrix(v[0], kind)
        if kind == "probs":
            v = np.stack([_distribution(member, probs, renormalise) for member in v])
        return cls._make(kind, v, labels, **columns)

    @classmethod
    def from_confidence(
        cls,
        confidence: ArrayLike,
        correct: ArrayLike | None = None,
        *,
        prediction: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        k: int | None = None,
        loss: ArrayLike | None = None,
        **columns: Unpack[Extras],
    ) -> Predictions:
        """Only the confidence of the top answer is known, in [0, 1], and whether it was right.

        `prediction` and `labels` may be class numbers or text; where both are given and `correct`
        is not, an answer is right where they are equal. `loss` is a number for each answer, beside
        right and wrong or instead of it, as for graded answers (1 - grade).
        """
        c = check.column(confidence, "confidence")
        bad = ~((c >= 0) & (c <= 1))
        if bad.any():
            raise outside(c, bad)
        said, true = (
            _aligned(a, name, len(c))
            for a, name in ((prediction, "prediction"), (labels, "labels"))
        )
        right = _aligned(correct, "correct", len(c))
        if right is None and said is not None and true is not None:
            right = said == true
        right = None if right is None else check.zero_one(right, "correct")
        lost = None
        if loss is not None:
            lost = check.finite(
                check.same_length(check.column(loss, "loss"), "loss", len(c), "confidence"), "loss"
            )
        made = cls(
            "confidence",
            c,
            k,
            known_labels=true,
            known_correct=right,
            known_prediction=said,
            known_loss=lost,
            **_extra(len(c), k, **columns),
        )
        return _repeated(made, columns.get("count"))

    @classmethod
    def from_multilabel(
        cls,
        probs: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        *,
        logits: ArrayLike | None = None,
        label_names: Iterable[object] | None = None,
        sums_to_one: bool = False,
        first: int = 0,
        **columns: Unpack[Extras],
    ) -> Predictions:
        """Many labels per case: probabilities (n, labels), each by itself, and 0/1 labels of the
        same shape.

        Every pair of a case and a label becomes a row of two classes, absent and present, and the
        case is its group; so all numbers are those of all pairs (micro), with cases as clusters.
        `preds.label("cat")` has the rows of one label. `logits=` are those of independent sigmoids.
        The columns `ids`, `group`, `weight` are one per case, and cases are numbered from `first`.
        Rows that all sum to 1 look like the classes of one answer: they are refused unless
        `sums_to_one` says that they are meant.

        >>> preds = Predictions.from_multilabel([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]], label_names=["cat", "dog"])
        >>> preds
        <Predictions: n=4 (2 cases, 2 labels), k=2, probs, accuracy 0.75>
        >>> preds.label("dog").correct
        array([ True,  True])
        """
        if (logits is None) == (probs is None):
            raise InputError(
                "give either probs or logits= of shape (cases, labels), exactly one of them."
            )
        kind: Kind = "logits" if probs is None else "probs"
        v = _each_label(logits if probs is None else probs, kind, sums_to_one)
        y = None if labels is None else _present(labels, v.shape, kind)
        given, count = (
            _extra(len(v), None, **{**columns, "class_names": None}),
            columns.get("count"),
        )
        if count is not None:
            rows = np.repeat(np.arange(len(v)), check.counts(count, len(v)))
            pick: Callable[[Array | None], Array | None] = lambda a: None if a is None else a[rows]
            further = (
                None
                if given["attributes"] is None
                else {c: a[rows] for c, a in given["attributes"].items()}
            )
            kept = {c: pick(given[c]) for c in COLUMNS}
            v, y, given = v[rows], pick(y), _extra(len(rows), None, **kept, attributes=further)
        n, many = v.shape
        names = _label_names(label_names, many)
        other = v * 0 if kind == "logits" else 1 - v
        values = np.stack((other, v), axis=2).reshape(n * many, 2)
        alone = given["group"] is None
        numbers, beside = np.arange(first, first + n, dtype=np.int64), given["attributes"]
        cases: Array = numbers if given["ids"] is None else given["ids"]
        group: Array = numbers if given["group"] is None else given["group"]
        return cls(
            kind,
            values,
            2,
            known_labels=None if y is None else y.reshape(-1),
            ids=np.array([f"{case} {name}" for case in cases.tolist() for name in names]),
            group=np.repeat(group, many),
            weight=None if given["weight"] is None else np.repeat(given["weight"], many),
            class_names=("absent", "present"),
            attributes=None
            if beside is None
            else {c: np.repeat(a, many) for c, a in beside.items()},
            layout=regular("labels", n, (many,), first=first, names=names, alone=alone),
        )

    def label(self, name: str | int) -> Predictions:
        """The cases of one label, by its name or number: two classes, absent and present, one row
        per case.

        >>> preds = Predictions.from_multilabel([[0.9, 0.2]], [[1, 0]], label_names=["cat", "dog"])
        >>> preds.label("dog").n
        1
        """
        layout = self.needs_labels("label()")
        number = (
            layout.names.index(name) if isinstance(name, str) and name in layout.names else name
        )
        if isinstance(number, str) or not 0 <= number < len(layout.names):
            raise InputError(
                f"there is no label {name!r}; they are {', '.join(layout.names[:20])}."
            )
        rows = self[layout.place == number]
        return replace(rows, layout=None, group=None if layout.alone else rows.group)

    def needs_labels(self, what: str) -> Layout:
        """The layout of many labels per case; raise where there is one answer per sample."""
        if self.layout is None or self.layout.parts != "labels":
            raise InputError(
                f"{what} is about many labels per case; make predictions with from_multilabel."
            )
        return self.layout

    @classmethod
    def from_estimator(
        cls,
        model: object,
        X: object,
        y: ArrayLike | None = None,
        *,
        renormalise: bool = False,
        **columns: Unpack[Extras],
    ) -> Predictions:
        """What a fitted classifier of scikit-learn's kind says of the samples `X`, with the labels
        `y`.

        Probabilities where it has `predict_proba`, else the decision function as logits. Class
        names are its `classes_`, in their order; labels of any type are compared with them.

        >>> from howsure.predictions.frames import Known
        >>> Predictions.from_estimator(Known(["ill", "well"], [[0.2, 0.8]]), ["a patient"], ["well"])
        <Predictions: n=1, k=2, probs, accuracy 1>
        """
        from howsure.predictions.frames import (
            asked,
            known_classes,
        )  # only where a model or a table comes in

        said = asked(model, X)
        labels = None if y is None else known_classes(y, said.classes)
        columns.setdefault("class_names", [str(c) for c in said.classes.tolist()])
        if said.logits:
            return cls.from_logits(said.values, labels, **columns)
        return cls.from_probs(said.values, labels, renormalise=renormalise, **columns)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        label: str | Sequence[str] | None = None,
        probs: str | Sequence[str] | None = None,
        logits: str | Sequence[str] | None = None,
        confidence: str | None = None,
        correct: str | None = None,
        prediction: str | None = None,
        id: str | None = None,
        group: str | None = None,
        weight: str | None = None,
        class_names: Iterable[object] | None = None,
        renormalise: bool = False,
        multilabel: bool = False,
        sums_to_one: bool = False,
    ) -> Predictions:
        """Predictions of a table of pandas, polars or arrow, or of a dictionary of columns.

        Each argument is the name of a column; those not given are found by the names that files
        use: `prob_well`, `prob_ill` (or one column of lists `probs`), `logit_…`, `confidence`,
        `label`, `correct`, `prediction`, `id`, `group`, `weight`. `probs="risk"` is the probability
        of class 1. All other columns are kept for slices. `multilabel=True` reads many labels per
        case, as `from_multilabel` does: each `prob_cat` has its `label_cat` of 0 and 1, or `label`
        names the columns in the order of `probs`; `class_names` are the names of the labels.

        >>> table = {"prob_well": [0.9, 0.2], "prob_ill": [0.1, 0.8], "label": ["well", "ill"], "site": ["a", "b"]}
        >>> preds = Predictions.from_frame(table)
        >>> preds, list(preds.attributes)
        (<Predictions: n=2, k=2, probs, accuracy 1>, ['site'])
        >>> tags = {"prob_cat": [0.9, 0.4], "prob_dog": [0.2, 0.7], "label_cat": [1, 1], "label_dog": [0, 1]}
        >>> Predictions.from_frame(tags, multilabel=True)
        <Predictions: n=4 (2 cases, 2 labels), k=2, probs, accuracy 0.75>
        """
        names = {
            "labels": label,
            "probs": probs,
            "logits": logits,
            "confidence": confidence,
            "correct": correct,
        }
        names |= {"prediction": prediction, "ids": id, "group": group, "weight": weight}
        from howsure.predictions.frames import parts_of

        t = parts_of(
            frame,
            {part: given for part, given in names.items() if given is not None},
            many=multilabel,
        )
        beside: Extras = {"ids": t.one("ids"), "group": t.one("group"), "weight": t.one("weight")}
        beside["attributes"] = t.rest
        labels = t.one("labels")
        if multilabel:
            return cls._many_of(t, labels, class_names, sums_to_one, beside)
        if label is not None and not isinstance(label, str):
            raise InputError(
                "label names several columns; with many labels per case say multilabel=True."
            )
        if t.kind == "confidence":
            right, said = t.one("correct"), t.one("prediction")
            beside["class_names"] = class_names
            return cls.from_confidence(t.values, right, prediction=said, labels=labels, **beside)
        beside["class_names"] = (
            t.class_names(labels) if class_names is None else t.agreed(class_names)
        )
        if t.kind == "logits":
            return cls.from_logits(t.values, labels, **beside)
        return cls.from_probs(t.values, labels, renormalise=renormalise, **beside)

    @classmethod
    def _many_of(
        cls,
        t: Parts,
        labels: Array | None,
        names: Iterable[object] | None,
        sums_to_one: bool,
        beside: Extras,
    ) -> Predictions:
        """The columns of a table as many labels per case."""
        if t.kind == "confidence":
            raise InputError(
                "many labels per case need a column of probabilities or logits for each label."
            )
        called = t.label_names() if names is None else names
        if t.kind == "logits":
            return cls.from_multilabel(labels=labels, logits=t.values, label_names=called, **beside)
        return cls.from_multilabel(
            t.values, labels, label_names=called, sums_to_one=sums_to_one, **beside
        )

    @classmethod
    def _make(
        cls, kind: Kind, values: Array, labels: ArrayLike | None, **extra: Unpack[Extras]
    ) -> Predictions:
        n, k = values.shape[-2:]
        beside = _extra(n, k, **extra)
        numbers = None if labels is None else class_numbers(labels, k, beside["class_names"])
        y = None if numbers is None else check.same_length(numbers, "labels", n, kind)
        return _repeated(cls(kind, values, k, known_labels=y, **beside), extra.get("count"))

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.values.shape[1] if self.values.ndim == 3 else len(self.values)

    @property
    def samples(self) -> int:
        """Answers per sample: 1, or the number of MC passes or ensemble members."""
        return len(self.values) if self.values.ndim == 3 else 1

    @property
    def labels(self) -> Array:
        """True classes."""
        if self.known_labels is None:
            raise InputError(_only_top("labels") if self.kind == "confidence" else NO_LABELS)
        return self.known_labels

    @property
    def logits(self) -> Array:
        """Logits with shape (s, n, k), s = 1 for a single pass."""
        if self.kind != "logits":
            raise InputError(
                _only_top("logits")
                if self.kind == "confidence"
                else "only probabilities are known, not logits."
            )
        return self.values if self.values.ndim == 3 else self.values[None]

    @cached_property
    def probs(self) -> Floats:
        """Probabilities (n, k) in float64; the mean over samples where there are several."""
        self.needs_vector("probs")
        return mean_probs(self.raw)

    @property
    def prediction(self) -> Array:
        """The answer: the most probable class, the smallest number among ties."""
        if self.kind != "confidence":
            return self.columns.prediction
        if self.known_prediction is None:
            raise InputError(
                "these predictions hold a confidence and right or wrong, not the predicted class."
            )
        return self.known_prediction

    @property
    def correct(self) -> Bools:
        """Whether the answer is the label."""
        if self.kind != "confidence":
            return self.prediction == self.labels
        if self.known_correct is None:
            what = (
                "have a loss instead of right and wrong; use preds.loss"
                if self.graded
                else "do not say which answers are right: add correct (0 or 1), or label and prediction. "
                "A score that is the probability of class 1 is read with --name probs=score (names={'probs': 'score'})"
            )
            raise InputError(f"these predictions {what}.")
        return self.known_correct

    @property
    def graded(self) -> bool:
        """Whether the answers have a loss instead of right and wrong."""
        return self.known_loss is not None and self.known_correct is None

    @property
    def loss(self) -> Floats:
        """The loss of each answer: the one given, else 1 where it is wrong."""
        return (~self.correct).astype(np.float64) if self.known_loss is None else self.known_loss

    @property
    def answered(self) -> float:
        """The share of all questions that these answers are to; 1 where every question was
        answered.
        """
        return 1.0 if self.unanswered is None else self.n / (self.n + self.unanswered.total)

    @property
    def confidence(self) -> Floats:
        """Probability claimed for the answer."""
        if self.kind == "confidence":
            return self.values.astype(np.float64)
        return self.columns.max_prob

    @cached_property
    def columns(self) -> Columns:
        """Everything one pass over the values gives."""
        self.needs_vector("this number")
        return columns(self.raw, self.known_labels)

    def with_attributes(self, columns: Mapping[str, ArrayLike]) -> Predictions:
        """The same predictions with these further columns.

        >>> preds = Predictions.from_confidence([0.9, 0.8], [1, 0]).with_attributes({"hospital": ["a", "b"]})
        >>> list(preds.attributes)
        ['hospital']
        """
        return replace(self, attributes={**(self.attributes or {}), **_attributes(columns, self.n)})

    @property
    def raw(self) -> Values:
        """The values with the kind they are."""
        return Values(self.values, self.kind == "logits")

    def needs_vector(self, what: str) -> int:
        """The number of classes; raise if only the top label is known."""
        if self.kind == "confidence":
            raise InputError(_only_top(what))
        return int(self.values.shape[-1])

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: slice | Sequence[int] | Ints | Bools) -> Predictions:
        pick: Callable[[Array | None], Array | None] = lambda a: None if a is None else a[rows]
        values = self.values[:, rows] if self.values.ndim == 3 else self.values[rows]
        if values.shape[-2 if values.ndim > 1 else 0] == 0:
            raise InputError("no sample is selected; at least one is needed.")
        names = (
            "known_labels",
            "known_correct",
            "known_prediction",
            "known_loss",
            "ids",
            "group",
            "weight",
        )
        beside = (
            None
            if self.attributes is None
            else {name: a[rows] for name, a in self.attributes.items()}
        )
        picked = {name: pick(getattr(self, name)) for name in names}
        layout = None if self.layout is None else self.layout[rows]
        return replace(
            self, values=values, unanswered=None, attributes=beside, layout=layout, **picked
        )

    def __repr__(self) -> str:
        kind = self.kind if self.samples == 1 else f"{self.samples} samples of {self.kind}"
        known = self.known_correct is not None or (
            self.kind != "confidence" and self.known_labels is not None
        )
        note = f", accuracy {self.correct.mean():.4g}" if known else ", no labels"
        if not known and self.known_loss is not None:
            note = f", mean loss {self.known_loss.mean():.4g}"
        note += (
            f", {self.unanswered}" if self.unanswered is not None and self.unanswered.total else ""
        )
        of = self.layout
        many = (
            f" ({len(np.unique(of.unit)):,} cases, {of.size} labels)"
            if of is not None and of.parts == "labels"
            else ""
        )
        return f"<Predictions: n={self.n:,}{many}, k={self.k}, {kind}{note}>"


def outside(c: Array, bad: Bools) -> InputError:
    """Confidences that are none: the first, the furthest, how many, and what to do."""
    i, n = check.first(bad), int(bad.sum())
    far = int(np.argmax(np.where(bad, np.maximum(-c, c - 1), -np.inf)))
    furthest = f", the furthest {c[far]:.10g} in row {far}" if far != i else ""
    percent = bool((c >= 0).all() and (c <= 100).all())
    way = (
        "Divide percentages by 100 (--percent)"
        if percent
        else "Repair or leave out such rows (--drop-outside)"
    )
    return InputError(
        "confidence",
        row=i,
        got=f"is {c[i]:g}" + (f" ({n:,} such values{furthest})" if n > 1 else ""),
        need="a confidence lies in [0, 1]",
        hint=f"{way}. For any other score use tally(score, correct=...)",
    )


def needs_predictions(x: object, what: str) -> None:
    """Raise if `x` is not Predictions, such as an array of probabilities.

    >>> needs_predictions([[0.9, 0.1]], "nll")
    Traceback (most recent call last):
    howsure.InputError: nll needs predictions, this is a list; make them with Predictions.from_probs(probs, labels) ...
    """
    if isinstance(x, Predictions):
        return
    make = "make them with Predictions.from_probs(probs, labels) or Predictions.from_logits(logits, labels)"
    if is_tally(x):
        make = "a tally has forgotten them: give the predictions that it was made of"
    kind = "tally" if is_tally(x) else type(x).__name__
    raise InputError(what, got=f"needs predictions, this is a {kind}", need=make)


NO_LABELS = "these predictions have no labels. Give labels=, or estimate(reference, new) says how accurate they may be."


def _only_top(what: str) -> str:
    return f"only the top label is known, too little for {what}; give logits or probabilities of all classes."


def _extra(n: int, k: int | None, **given: Unpack[Extras]) -> Checked:
    """The optional columns, checked."""
    class_names, weight = given.get("class_names"), given.get("weight")
    names = None if class_names is None else tuple(str(c) for c in class_names)
    if names is not None and k is not None and len(names) != k:
        raise InputError("class_names", got=f"has {len(names)} names for {k} classes")
    w = None if weight is None else check.weights(weight, n)
    ids, group = _aligned(given.get("ids"), "ids", n), _aligned(given.get("group"), "group", n)
    further = given.get("attributes")
    beside = None if further is None else _attributes(further, n)
    return {"ids": ids, "group": group, "weight": w, "class_names": names, "attributes": beside}


def _attributes(columns: Mapping[str, ArrayLike], n: int) -> dict[str, Array]:
    return {
        str(name): check.same_length(
            np.asarray(check.unmasked(a, str(name))), str(name), n, "the predictions"
        )
        for name, a in columns.items()
    }


def _repeated(preds: Predictions, count: ArrayLike | None) -> Predictions:
    """Every sample as often as `count` says."""
    if count is None:
        return preds
    times = check.counts(count, preds.n)
    each = preds.values.nbytes // preds.n + ROW
    fits(each * sum(times.tolist()), "count")
    return preds[np.repeat(np.arange(preds.n), times)]


def _aligned(a: ArrayLike | None, name: str, n: int) -> Array | None:
    """A column that belongs to the n predictions, or None."""
    return (
        None
        if a is None
        else check.same_length(np.asarray(check.unmasked(a, name)), name, n, "the predictions")
    )


def _matrix(a: Array, name: str) -> Array:
    if a.ndim != 2:
        raise InputError(
            name,
            got=f"has shape {a.shape}",
            need="one row per sample and one column per class, (n, k), is needed",
        )
    if a.shape[0] == 0:
        raise InputError(name, got="is empty", need="at least one sample is needed")
    if a.shape[1] == 0:
        raise InputError(name, got=f"has shape {a.shape}", need="at least one class is needed")
    return a


FREE = 0.5  # where sums of most rows are wrong and differ by more than this, no rounding did it


def _distribution(p: Array, given: object, renormalise: bool) -> Array:
    """Rows that are distributions; the dtype of `given` sets the tolerance."""
    width = getattr(getattr(given, "dtype", None), "itemsize", 8)
    tolerance = ROW_SUM_TOLERANCE.get(width, 1e-6)
    total = _row_sums(p)
    if renormalise:
        return _renormalised(p, total)
    outside = np.maximum(-p.min(axis=1), p.max(axis=1) - 1)
    for wrong, what in (
        (outside > tolerance, "lies outside [0, 1]"),
        (np.abs(total - 1) > tolerance, ""),
    ):
        if wrong.any():
            i = check.first(wrong)
            found = what or f"sums to {total[i]:.6g}, expected 1"
            hint = (
                "Pass renormalise=True (--renormalise) to divide each row by its sum, "
                "or Predictions.from_logits for logits."
            )
            if (
                2 * wrong.sum() > len(wrong) and total.min() < total.max() - FREE
            ):  # also of infinite sums
                hint = (
                    "Are these many labels per case? Use Predictions.from_multilabel (--multilabel). "
                    + hint
                )
            if outside[i] > tolerance:
                hint = "Are these logits? Use Predictions.from_logits, or call them logits in the file."
                hint = (
                    "Are these percentages? Divide them by 100." if _percentages(p, total) else hint
                )
            raise InputError(
                "probs", row=i, got=f"{found} ({int(wrong.sum()):,} such rows)", hint=hint
            )
    return p


def _percentages(p: Array, total: Floats) -> bool:
    """Whether rows sum to 100, or a single column, whose complement was added, lies between 0 and
    100.
    """
    alone = p.shape[1] == 2 and p[:, 1].min() >= 0 and bool((np.abs(total - 1) < 1e-3).all())
    return bool(p.max() <= 100) and (
        alone or (p.min() >= 0 and bool((np.abs(total - 100) < 1).all()))
    )


def _each_label(given: ArrayLike | None, kind: Kind, sums_to_one: bool) -> Array:
    """Numbers (n, labels) of independent labels, in float64 so that p and 1 - p are complements to
    the last bit.
    """
    v = _matrix(check.finite(check.floats(given, kind), kind), kind)
    if kind == "logits":
        return v
    tolerance = ROW_SUM_TOLERANCE.get(getattr(getattr(given, "dtype", None), "itemsize", 8), 1e-6)
    outside = (v < -tolerance) | (v > 1 + tolerance)
    if outside.any():
        got = f"has {int(outside.sum()):,} values outside [0, 1]"
        hint = "Are these logits? Use from_multilabel(logits=...), or call them logits in the file"
        raise InputError("probs", got=got, first=check.first(outside), hint=hint)
    alike = np.abs(_row_sums(v) - 1) <= tolerance
    if v.shape[1] > 1 and len(v) > 1 and alike.all() and not sums_to_one:
        got = f"has {len(v):,} rows that all sum to 1, as the classes of one answer do"
        hint = "leave out multilabel, or say that they are meant: sums_to_one=True (--sums-to-one)"
        raise InputError("probs", got=got, need="labels of many are independent", hint=hint)
    return np.clip(v.astype(np.float64), 0.0, 1.0)


def _present(labels: ArrayLike, shape: tuple[int, ...], kind: str) -> Ints:
    """Labels 0 or 1 of every pair."""
    y = check.no_nan(check.array(labels, "labels"), "labels")
    if y.shape != shape:
        need = f"with many labels there is a 0 or 1 for each number of {kind}, {shape}"
        raise InputError("labels", got=f"has shape {y.shape}", need=need)
    bad = (y != 0) & (y != 1)
    if bad.any():
        i = check.first(bad)
        need = "with many labels each is 0 (absent) or 1 (present)"
        raise InputError("labels", row=i, got=f"holds {y[i][bad[i]][0]:g}", need=need)
    return y.astype(np.int64)


def _label_names(given: Iterable[object] | None, many: int) -> tuple[str, ...]:
    names = (
        tuple(str(i) for i in range(many)) if given is None else tuple(str(name) for name in given)
    )
    if len(names) != many:
        raise InputError("label_names", got=f"has {len(names)} names for {many} labels")
    if len(set(names)) < many:
        again = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(
            "label_names", got=f"has {again!r} twice", need="each label needs a name of its own"
        )
    return names


def _row_sums(p: Array) -> Floats:
    return p.sum(axis=1, dtype=np.float64)


def _renormalised(p: Array, total: Floats) -> Floats:
    bad = (p.min(axis=1) < 0) | ~(total > 0) | ~np.isfinite(total)
    if bad.any():
        i = check.first(bad)
        raise InputError(
            "probs",
            row=i,
            got=f"cannot be renormalised: it sums to {total[i]:g} or has negative values",
        )
    return p / total[:, None]
