"""Predictions: what a classifier said, kept as it was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.frozen import frozen
from howsure._core.indices import repeat_values
from howsure.predictions.class_labels import number_classes
from howsure.predictions.input_shapes import (
    InputLayout,
    Unanswered,
    check_distributions,
    check_label_names,
    check_label_values,
    check_matrix,
    check_present,
    find_tolerance,
    lay_out_units,
    pick_rows,
)

# Columns and frames are imported where they are used: deciding what to accept needs neither.
if TYPE_CHECKING:
    from howsure.predictions.columns import RawValues, ScoreColumns
    from howsure.predictions.read_options import Answers, Receipt

ValueKind = Literal["logits", "probs", "confidence", "score"]
VECTOR_KINDS = ("logits", "probs")  # a number for each class
ROW_BYTES = 64  # of what stands beside the values of a sample
SCORE_OPTION = "--name score=…"  # a reader puts in the column
NO_CLAIM = "the score is no probability of being right"
NO_LABELS = "these predictions have no labels. Give labels=, or estimate(reference, new) says how accurate they may be."


class GivenColumns(TypedDict, total=False):
    """Optional columns, and the names of the classes."""

    ids: ArrayLike | None
    group: ArrayLike | None
    weight: ArrayLike | None
    count: ArrayLike | None
    class_names: Iterable[object] | None
    attributes: Mapping[str, ArrayLike] | None


class CheckedColumns(TypedDict):
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

    kind: ValueKind
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
    layout: InputLayout | None = None  # where rows are the labels of cases or the pixels of images
    rounded: bool = False  # rows of probabilities may miss 1 by what their digits allow
    receipt: Receipt | None = None  # what the columns of a file were taken for

    @classmethod
    def from_logits(
        cls, logits: ArrayLike, labels: ArrayLike | None = None, **columns: Unpack[GivenColumns]
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
        z = checks.logits(checks.floats(logits, "logits"), "logits")
        if z.ndim == 1 or (z.ndim == 2 and z.shape[1] == 1):
            z = np.stack((np.zeros_like(z.reshape(-1)), z.reshape(-1)), axis=1)
        if z.ndim == 3 and len(z) > 1:
            return cls.from_samples(z, labels, **columns)
        if z.ndim == 3 and len(z) == 1:
            z = z[0]
        return cls._make("logits", check_matrix(z, "logits"), labels, **columns)

    @classmethod
    def from_probs(
        cls,
        probs: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        renormalise: bool = False,
        digits: int | None = None,
        **columns: Unpack[GivenColumns],
    ) -> Predictions:
        """Probabilities of shape (n, k) whose rows sum to 1; a binary model may give P(y=1) as (n,)
        or (n, 1).

        Of two columns the first is checked and then dropped: it is 1 − P(y=1), so that one column
        and two give the same numbers to the last bit. The answer is 1 where P(y=1) > 1/2.

        `renormalise=True` divides each row by its sum instead of refusing rows that do not sum to
        1. `digits` says with how many digits they were written: rows may then miss 1 by what this
        rounding allows, min(k/2 · 10⁻ᵈ, .02 · max(1, k/10), .1); scores are those of the numbers
        as given, NLL, Brier and class-wise numbers those of the divided row.
        """
        p = checks.no_nan(checks.floats(probs, "probs"), "probs")
        if p.ndim == 1 or (p.ndim == 2 and p.shape[1] == 1):
            p = p.reshape(-1)
            p = np.stack((1 - p, p), axis=1)
        # A matrix of labels is judged before the sums of rows are: many labels per case shall be
        # named as such.
        if labels is not None and p.ndim == 2 and np.shape(labels) == p.shape:
            number_classes(labels, p.shape[1])
        p = check_distributions(p, probs, renormalise, digits)
        rounded = False
        if digits is not None and not renormalise:
            off = np.abs(p.sum(axis=1, dtype=np.float64) - 1)
            rounded = bool((off > find_tolerance(probs)).any())
        if p.shape[1] == 2:
            from howsure.predictions.columns import are_complements

            complement = are_complements(p, axis=1)
            p = p.astype(np.float64)
            p[complement, 1] = np.clip(p[complement, 1], 0.0, 1.0)
            p[complement, 0] = 1 - p[complement, 1]
        made = cls._make("probs", p, labels, **columns)
        if rounded:
            made = replace(made, rounded=True)
        return made

    @classmethod
    def from_samples(
        cls,
        logits: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        *,
        probs: ArrayLike | None = None,
        renormalise: bool = False,
        **columns: Unpack[GivenColumns],
    ) -> Predictions:
        """Several answers to each sample, shape (s, n, k): MC-dropout passes or ensemble members.

        The prediction is that of the mean probability over the s answers.
        """
        if (logits is None) == (probs is None):
            raise InputError(
                "give either logits= or probs= of shape (samples, n, k), exactly one of them."
            )
        if probs is None:
            kind: ValueKind = "logits"
            v = checks.logits(checks.floats(logits, kind), kind)
        else:
            kind = "probs"
            v = checks.finite(checks.floats(probs, kind), kind)
        if v.ndim != 3 or v.shape[0] == 0:
            raise InputError(kind, got=f"has shape {v.shape}", need="samples need (samples, n, k)")
        check_matrix(v[0], kind)
        if kind == "probs":
            v = np.stack([check_distributions(member, probs, renormalise) for member in v])
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
        **columns: Unpack[GivenColumns],
    ) -> Predictions:
        """Only the confidence of the top answer is known, in [0, 1], and whether it was right.

        `prediction` and `labels` may be class numbers or text; where both are given and `correct`
        is not, an answer is right where they are equal. `loss` is a number for each answer, beside
        right and wrong or instead of it, as for graded answers (1 - grade).
        """
        c = checks.column(confidence, "confidence")
        bad = ~((c >= 0) & (c <= 1))
        if bad.any():
            raise describe_outside(c, bad)
        made = cls.from_score(
            c, correct, prediction=prediction, labels=labels, k=k, loss=loss, **columns
        )
        return replace(made, kind="confidence")

    @classmethod
    def from_score(
        cls,
        score: ArrayLike,
        correct: ArrayLike | None = None,
        *,
        prediction: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        k: int | None = None,
        loss: ArrayLike | None = None,
        **columns: Unpack[GivenColumns],
    ) -> Predictions:
        """Only a number is known that ranks the answers, higher = trust more: a largest logit, a
        log-probability, a margin. It need not lie in [0, 1] and is no probability, so calibration
        has no meaning; ranking, thresholds and decisions need none. The rest is as in
        `from_confidence`.

        >>> preds = Predictions.from_score([12.5, -3.0], [1, 0])
        >>> preds, preds.score
        (<Predictions: n=2, k=None, score, accuracy 0.5>, array([12.5, -3. ]))
        """
        c = checks.no_nan(checks.column(score, "score"), "score")
        n = len(c)
        answer = _align(prediction, "prediction", n)
        true = _align(labels, "labels", n)
        right = _align(correct, "correct", n)
        if right is None and answer is not None and true is not None:
            right = answer == true
        if right is not None:
            right = checks.zero_one(right, "correct")
        lost = None
        if loss is not None:
            lost = checks.same_length(checks.column(loss, "loss"), "loss", n, "the answers")
            lost = checks.finite(lost, "loss")
        made = cls(
            kind="score",
            values=c,
            k=k,
            known_labels=true,
            known_correct=right,
            known_prediction=answer,
            known_loss=lost,
            **_check_columns(n, k, **columns),
        )
        return _repeat_rows(made, columns.get("count"))

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
        **columns: Unpack[GivenColumns],
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
        kind: ValueKind = "logits" if probs is None else "probs"
        v = check_label_values(logits if probs is None else probs, kind, sums_to_one)
        y = None
        if labels is not None:
            y = check_present(labels, v.shape, kind)
        beside = _check_columns(len(v), None, **{**columns, "class_names": None})
        count = columns.get("count")
        if count is not None:
            rows = repeat_values(np.arange(len(v)), checks.counts(count, len(v)))
            v, y = v[rows], pick_rows(y, rows)
            beside = _check_columns(
                len(rows),
                None,
                ids=pick_rows(beside["ids"], rows),
                group=pick_rows(beside["group"], rows),
                weight=pick_rows(beside["weight"], rows),
                attributes=_pick_attributes(beside["attributes"], rows),
            )
        n, size = len(v), int(v.shape[1])
        names = check_label_names(label_names, size)
        absent = np.zeros_like(v) if kind == "logits" else 1 - v
        numbers = np.arange(first, first + n, dtype=np.int64)
        cases = numbers if beside["ids"] is None else beside["ids"]
        group = numbers if beside["group"] is None else beside["group"]
        # What belongs to a case belongs to each of its labels.
        row_case: Ints = repeat_values(np.arange(n), size)
        ids: list[str] = []
        for case in cases.tolist():
            ids.extend(f"{case} {name}" for name in names)
        return cls(
            kind=kind,
            values=np.stack((absent, v), axis=2).reshape(n * size, 2),
            k=2,
            known_labels=None if y is None else y.reshape(-1),
            ids=np.array(ids),
            group=group[row_case],
            weight=pick_rows(beside["weight"], row_case),
            class_names=("absent", "present"),
            attributes=_pick_attributes(beside["attributes"], row_case),
            layout=lay_out_units(
                "labels", n, (size,), first=first, names=names, alone=beside["group"] is None
            ),
        )

    def label(self, name: str | int) -> Predictions:
        """The cases of one label, by its name or number: two classes, absent and present, one row
        per case.

        >>> preds = Predictions.from_multilabel([[0.9, 0.2]], [[1, 0]], label_names=["cat", "dog"])
        >>> preds.label("dog").n
        1
        """
        layout = self.needs_labels("label()")
        number = name
        if isinstance(name, str) and name in layout.names:
            number = layout.names.index(name)
        if isinstance(number, str) or not 0 <= number < len(layout.names):
            raise InputError(
                f"there is no label {name!r}; they are {', '.join(layout.names[:20])}."
            )
        rows = self[layout.place == number]
        if layout.alone:  # the group is the case, of which one row is left
            rows = replace(rows, group=None)
        return replace(rows, layout=None)

    def needs_labels(self, what: str) -> InputLayout:
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
        **columns: Unpack[GivenColumns],
    ) -> Predictions:
        """What a fitted classifier of scikit-learn's kind says of the samples `X`, with the labels
        `y`.

        Probabilities where it has `predict_proba`, else the decision function as logits. Class
        names are its `classes_`, in their order; labels of any type are compared with them. A classifier
        of many labels gives what `from_multilabel` does, with `y` of one column per label.

        >>> from howsure.predictions.frames import FixedClassifier
        >>> Predictions.from_estimator(FixedClassifier(["ill", "well"], [[0.2, 0.8]]), ["a patient"], ["well"])
        <Predictions: n=1, k=2, probs, accuracy 1>
        """
        from howsure.predictions.frames import ask_classifier, ask_tagger, place_labels

        tags = ask_tagger(model, X)
        if tags is not None:
            names = [str(c) for c in tags.classes.tolist()]
            if tags.logits:
                return cls.from_multilabel(
                    labels=y, logits=tags.values, label_names=names, **columns
                )
            return cls.from_multilabel(
                tags.values, y, label_names=names, sums_to_one=True, **columns
            )
        answers = ask_classifier(model, X)
        labels = None
        if y is not None:
            labels = place_labels(y, answers.classes)
        columns.setdefault("class_names", [str(c) for c in answers.classes.tolist()])
        if answers.logits:
            return cls.from_logits(answers.values, labels, **columns)
        return cls.from_probs(answers.values, labels, renormalise=renormalise, **columns)

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
        answers: Answers | None = None,
    ) -> Predictions:
        """Predictions of a table of pandas, polars or arrow, or of a dictionary of columns.

        Each argument is the name of a column; those not given are found by the names that files
        use: `prob_well`, `prob_ill` (or one column of lists `probs`), `logit_…`, `confidence`,
        `label`, `correct`, `prediction`, `id`, `group`, `weight`, `count`. `probs="risk"` is the
        probability of class 1. All other columns are kept for slices. `multilabel=True` reads many labels per
        case, as `from_multilabel` does: each `prob_cat` has its `label_cat` of 0 and 1, or `label`
        names the columns in the order of `probs`; `class_names` are the names of the labels.
        A column `prediction` beside probabilities must hold the most probable class, unless
        `answers="file"` says that it counts, or `"argmax"` that it does not.

        >>> table = {"prob_well": [0.9, 0.2], "prob_ill": [0.1, 0.8], "label": ["well", "ill"], "site": ["a", "b"]}
        >>> preds = Predictions.from_frame(table)
        >>> preds, list(preds.attributes)
        (<Predictions: n=2, k=2, probs, accuracy 1>, ['site'])
        >>> tags = {"prob_cat": [0.9, 0.4], "prob_dog": [0.2, 0.7], "label_cat": [1, 1], "label_dog": [0, 1]}
        >>> Predictions.from_frame(tags, multilabel=True)
        <Predictions: n=4 (2 cases, 2 labels), k=2, probs, accuracy 0.75>
        """
        from howsure.predictions.frames import read_frame
        from howsure.predictions.given_answers import (
            check_ids,
            name_numbers,
            refuse_class_1_confidence,
            refuse_top_probability,
            take_answers,
        )

        names = {
            "labels": label,
            "probs": probs,
            "logits": logits,
            "confidence": confidence,
            "correct": correct,
            "prediction": prediction,
            "ids": id,
            "group": group,
            "weight": weight,
        }
        given = {part: name for part, name in names.items() if name is not None}
        t = read_frame(frame, given, multilabel=multilabel)
        labels = t.get("labels")
        check_ids(t.get("ids"))
        beside: GivenColumns = {
            "ids": t.get("ids"),
            "group": t.get("group"),
            "weight": t.get("weight"),
            "count": t.get("count"),
            "attributes": t.rest,
        }
        if multilabel:
            if t.kind == "confidence":
                raise InputError(
                    "many labels per case need a column of probabilities or logits for each label."
                )
            called = t.find_label_names() if class_names is None else class_names
            if t.kind == "logits":
                return cls.from_multilabel(
                    labels=labels, logits=t.values, label_names=called, **beside
                )
            return cls.from_multilabel(
                t.values, labels, label_names=called, sums_to_one=sums_to_one, **beside
            )
        if label is not None and not isinstance(label, str):
            raise InputError(
                "label names several columns; with many labels per case say multilabel=True."
            )
        said = t.get("prediction")
        if t.kind == "confidence":
            beside["class_names"] = class_names
            if said is not None and confidence is None:
                refuse_class_1_confidence(t.values, said, t.names[0])
            return cls.from_confidence(
                t.values, t.get("correct"), prediction=said, labels=labels, **beside
            )
        if said is not None and t.kind == "probs" and probs is None:
            refuse_top_probability(t.values, said, t.names[0])
        if class_names is None:
            called = t.find_class_names(labels)
        else:
            called = tuple(map(str, t.check_class_names(class_names)))
        beside["class_names"] = called
        if labels is not None and class_names is None:
            labels = name_numbers(labels, called)
        if t.kind == "logits":
            preds = cls.from_logits(t.values, labels, **beside)
        else:
            preds = cls.from_probs(t.values, labels, renormalise=renormalise, **beside)
        if said is None or answers == "argmax":
            return preds
        if class_names is None:
            said = name_numbers(said, called)
        return take_answers(preds, said, t.get("count"), answers)

    @classmethod
    def _make(
        cls,
        kind: ValueKind,
        values: Array,
        labels: ArrayLike | None,
        **columns: Unpack[GivenColumns],
    ) -> Predictions:
        """Predictions of checked values of all classes."""
        n, k = values.shape[-2:]
        beside = _check_columns(n, k, **columns)
        y = None
        if labels is not None:
            y = number_classes(labels, k, beside["class_names"])
            checks.same_length(y, "labels", n, kind)
        made = cls(kind=kind, values=values, k=k, known_labels=y, **beside)
        return _repeat_rows(made, columns.get("count"))

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.values.shape[1] if self.values.ndim == 3 else len(self.values)

    @property
    def samples(self) -> int:
        """Answers per sample: 1, or the number of MC passes or ensemble members."""
        return len(self.values) if self.values.ndim == 3 else 1

    @property
    def vectors(self) -> bool:
        """Whether there is a number for each class, not for the answer alone."""
        return self.kind in VECTOR_KINDS

    @property
    def score_name(self) -> str:
        """The score that ranks the answers unless another one is asked for."""
        return "score" if self.kind == "score" else "max_prob"

    @property
    def score(self) -> Floats:
        """What ranks the answers: the score where it is all that was given, else the confidence."""
        if self.kind == "score":
            return self.values.astype(np.float64)
        return self.confidence

    @property
    def labels(self) -> Array:
        """True classes."""
        if self.known_labels is None:
            if not self.vectors:
                raise InputError(_explain_top_only("labels"))
            raise InputError(NO_LABELS)
        return self.known_labels

    @property
    def logits(self) -> Array:
        """Logits with shape (s, n, k), s = 1 for a single pass."""
        if not self.vectors:
            raise InputError(_explain_top_only("logits"))
        if self.kind == "probs":
            raise InputError("only probabilities are known, not logits.")
        return self.values if self.values.ndim == 3 else self.values[None]

    @cached_property
    def probs(self) -> Floats:
        """Probabilities (n, k) in float64; the mean over samples where there are several."""
        from howsure.predictions.columns import average_probs

        self.needs_vector("probs")
        return average_probs(self.raw)

    @property
    def prediction(self) -> Array:
        """The answer: the most probable class, the smallest number among ties."""
        if self.vectors:
            return self.columns.prediction
        if self.known_prediction is None:
            raise InputError(
                "these predictions hold a confidence and right or wrong, not the predicted class."
            )
        return self.known_prediction

    @property
    def correct(self) -> Bools:
        """Whether the answer is the label."""
        if self.vectors:
            return self.prediction == self.labels
        if self.graded:
            raise InputError(
                "these predictions have a loss or grades between 0 and 1 instead of right and wrong, which this "
                "needs; howsure evaluate and threshold take them, in Python preds.loss has them."
            )
        if self.known_correct is None:
            raise InputError(
                "these predictions do not say which answers are right: add correct (0 or 1), or label and prediction. "
                "A score that is the probability of class 1 is read with --name probs=score (names={'probs': 'score'})."
            )
        return self.known_correct

    @property
    def graded(self) -> bool:
        """Whether the answers have a loss instead of right and wrong."""
        return self.known_loss is not None and self.known_correct is None

    @property
    def loss(self) -> Floats:
        """The loss of each answer: the one given, else 1 where it is wrong."""
        if self.known_loss is not None:
            return self.known_loss
        return (~self.correct).astype(np.float64)

    @property
    def answered(self) -> float:
        """The share of all questions that these answers are to; 1 where every question was
        answered.
        """
        if self.unanswered is None:
            return 1.0
        return self.n / (self.n + self.unanswered.total)

    @property
    def confidence(self) -> Floats:
        """Probability claimed for the answer."""
        if self.kind == "score":
            raise InputError(
                f"{NO_CLAIM}; only ranking, thresholds and decisions do without. "
                "Give a confidence in [0, 1]."
            )
        if self.kind == "confidence":
            return self.values.astype(np.float64)
        return self.columns.max_prob

    @cached_property
    def columns(self) -> ScoreColumns:
        """Everything one pass over the values gives."""
        from howsure.predictions.columns import compute_columns

        self.needs_vector("this number")
        return compute_columns(self.raw._replace(rounded=self.rounded), self.known_labels)

    def drop_equal_weights(self) -> Predictions:
        """The same predictions; weights that are all equal weigh nothing.

        >>> Predictions.from_confidence([0.9, 0.8], [1, 0], weight=[2, 2]).drop_equal_weights().weight is None
        True
        """
        if self.weight is None or np.ptp(self.weight) > 0:
            return self
        return replace(self, weight=None)

    def with_attributes(self, columns: Mapping[str, ArrayLike]) -> Predictions:
        """The same predictions with these further columns.

        >>> preds = Predictions.from_confidence([0.9, 0.8], [1, 0]).with_attributes({"hospital": ["a", "b"]})
        >>> list(preds.attributes)
        ['hospital']
        """
        further = _check_attributes(columns, self.n)
        return replace(self, attributes={**(self.attributes or {}), **further})

    @property
    def raw(self) -> RawValues:
        """The values with the kind they are."""
        from howsure.predictions.columns import RawValues

        return RawValues(self.values, self.kind == "logits")

    def needs_vector(self, what: str) -> int:
        """The number of classes; raise if only the top label is known."""
        if not self.vectors:
            raise InputError(_explain_top_only(what))
        return int(self.values.shape[-1])

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: slice | Sequence[int] | Ints | Bools) -> Predictions:
        values = self.values[:, rows] if self.values.ndim == 3 else self.values[rows]
        samples = values.shape[1] if values.ndim == 3 else len(values)
        if samples == 0:
            raise InputError("no sample is selected; at least one is needed.")
        return replace(
            self,
            values=values,
            known_labels=pick_rows(self.known_labels, rows),
            known_correct=pick_rows(self.known_correct, rows),
            known_prediction=pick_rows(self.known_prediction, rows),
            known_loss=pick_rows(self.known_loss, rows),
            ids=pick_rows(self.ids, rows),
            group=pick_rows(self.group, rows),
            weight=pick_rows(self.weight, rows),
            attributes=_pick_attributes(self.attributes, rows),
            layout=None if self.layout is None else self.layout[rows],
            unanswered=None,  # which questions the selection leaves out is not known
        )

    def __repr__(self) -> str:
        n = f"{self.n:,}"
        if self.layout is not None and self.layout.parts == "labels":
            n += f" ({len(np.unique(self.layout.unit)):,} cases, {self.layout.size} labels)"
        kind = self.kind
        if self.samples > 1:
            kind = f"{self.samples} samples of {self.kind}"
        has_labels = self.vectors and self.known_labels is not None
        if has_labels or self.known_correct is not None:
            note = f"accuracy {self.correct.mean():.4g}"
        elif self.known_loss is not None:
            note = f"mean loss {self.known_loss.mean():.4g}"
        else:
            note = "no labels"
        if self.unanswered is not None and self.unanswered.total:
            note += f", {self.unanswered}"
        return f"<Predictions: n={n}, k={self.k}, {kind}, {note}>"


def needs_predictions(x: object, what: str) -> None:
    """Raise if `x` is not Predictions, such as an array of probabilities.

    >>> needs_predictions([[0.9, 0.1]], "nll")
    Traceback (most recent call last):
    howsure.InputError: nll needs predictions, this is a list; make them with Predictions.from_probs(probs, labels) ...
    """
    if isinstance(x, Predictions):
        return
    from howsure.tallies.tally import is_tally

    kind = type(x).__name__
    make = "make them with Predictions.from_probs(probs, labels) or Predictions.from_logits(logits, labels)"
    if is_tally(x):
        kind = "tally"
        make = "a tally has forgotten them: give the predictions that it was made of"
    raise InputError(what, got=f"needs predictions, this is a {kind}", need=make)


def combine_arrays(
    values: Mapping[str, ArrayLike | None],
    labels: ArrayLike | None,
    correct: ArrayLike | None,
    what: str,
    class_names: Iterable[object] | None = None,
) -> Predictions:
    """Predictions of arrays by name: probs or logits with labels, or confidence with correct.

    >>> combine_arrays({"probs": [[0.9, 0.1]]}, labels=[0], correct=None, what="evaluate")
    <Predictions: n=1, k=2, probs, accuracy 1>
    """
    given = {name: array for name, array in values.items() if array is not None}
    if len(given) != 1:
        got = " and ".join(f"{name}=" for name in given) or "no probs=, logits= or confidence="
        raise InputError(what, got=f"got {got}", need="exactly one of the three is needed")
    ((name, array),) = given.items()
    needed, truth, other = "labels", labels, correct
    if name == "confidence":
        needed, truth, other = "correct", correct, labels
    if truth is None or other is not None:
        got = f"got {name}= without {needed}=" if truth is None else "got labels= and correct="
        need = f"{name}= goes with {needed}= alone"
        raise InputError(what, got=got, need=need)
    if name == "confidence":
        return Predictions.from_confidence(array, truth)
    if name == "probs":
        return Predictions.from_probs(array, truth, class_names=class_names)
    return Predictions.from_logits(array, truth, class_names=class_names)


def describe_outside(c: Array, bad: Bools) -> InputError:
    """The mistake of confidences outside [0, 1]: the first, the furthest, how many, what to do."""
    i, n = checks.find_first(bad), int(bad.sum())
    got = f"is {c[i]:g}"
    if n > 1:
        far = int(np.argmax(np.where(bad, np.maximum(-c, c - 1), -np.inf)))
        furthest = ""
        if far != i:
            furthest = f", the furthest {c[far]:.10g} in row {far}"
        got += f" ({n:,} such values{furthest})"
    way = "Repair or leave out such rows (--drop-outside)"
    most = len(c) > 1 and 2 * int((c > 1).sum()) > len(c)
    # Up to 10 it may be a scale of five or ten steps.
    if most and (c >= 0).all() and 10 < c.max() <= 100:
        way = "Divide percentages by 100 (--percent)"
    return InputError(
        "confidence",
        row=i,
        got=got,
        need="a confidence lies in [0, 1]",
        hint=f"{way}. A score that is no probability: {SCORE_OPTION} (Predictions.from_score)",
    )


def _explain_top_only(what: str) -> str:
    return f"only the top label is known, too little for {what}; give logits or probabilities of all classes."


def _check_columns(n: int, k: int | None, **given: Unpack[GivenColumns]) -> CheckedColumns:
    """The optional columns, checked."""
    names = None
    if (class_names := given.get("class_names")) is not None:
        names = tuple(str(c) for c in class_names)
        if k is not None and len(names) != k:
            raise InputError("class_names", got=f"has {len(names)} names for {k} classes")
    weight = None
    if (given_weight := given.get("weight")) is not None:
        weight = checks.weights(given_weight, n)
    ids = _align(given.get("ids"), "ids", n)
    group = _align(given.get("group"), "group", n)
    attributes = None
    if (further := given.get("attributes")) is not None:
        attributes = _check_attributes(further, n)
    return CheckedColumns(
        ids=ids, group=group, weight=weight, class_names=names, attributes=attributes
    )


def _check_attributes(columns: Mapping[str, ArrayLike], n: int) -> dict[str, Array]:
    checked: dict[str, Array] = {}
    for name, column in columns.items():
        a = np.asarray(checks.unmasked(column, str(name)))
        checked[str(name)] = checks.same_length(a, str(name), n, "the predictions")
    return checked


def _pick_attributes(
    columns: dict[str, Array] | None, rows: slice | Sequence[int] | Ints | Bools
) -> dict[str, Array] | None:
    if columns is None:
        return None
    return {name: a[rows] for name, a in columns.items()}


def _repeat_rows(preds: Predictions, count: ArrayLike | None) -> Predictions:
    """Every sample as often as `count` says."""
    if count is None:
        return preds
    from howsure._core.file_access import check_allocation

    times = checks.counts(count, preds.n)
    sample_bytes = preds.values.nbytes // preds.n + ROW_BYTES
    check_allocation(sample_bytes * sum(times.tolist()), "count")
    return preds[repeat_values(np.arange(preds.n), times)]


def _align(a: ArrayLike | None, name: str, n: int) -> Array | None:
    """A column that belongs to the n predictions, or None."""
    if a is None:
        return None
    return checks.same_length(np.asarray(checks.unmasked(a, name)), name, n, "the predictions")
