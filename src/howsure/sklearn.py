"""For scikit-learn: any classifier with any calibrator as one estimator, and scorers. Needs the
extra `sklearn`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from howsure._core.checks import Array, Floats, InputError, Ints, find_first, need
from howsure._core.indices import count_values
from howsure.calibrators import Calibrator, Identity
from howsure.calibrators.choice import CALIBRATORS, evaluate_metric
from howsure.calibrators.logistic import fit_score_curves
from howsure.calibrators.step_functions import fit_score_steps
from howsure.predictions import Predictions
from howsure.predictions.class_labels import find_missing

# scikit-learn has no types, so what its functions return is declared where it is used.
base, frozen, svm, model_selection, utils, multiclass, parallel, validation = (
    need(f"sklearn.{part}", for_="howsure.sklearn", extra="sklearn")
    for part in (
        *("base", "frozen", "svm", "model_selection"),
        *("utils", "utils.multiclass", "utils.parallel", "utils.validation"),
    )
)

__all__ = ["CalibratedClassifier", "Scorer", "scorers"]

DEFAULT_FOLDS = 5


class Classifier(Protocol):
    """What is asked of a classifier: probabilities where it has them, else a decision function."""

    @property
    def classes_(self) -> Array: ...

    def fit(self, X: object, y: Array, /, **params: object) -> Classifier: ...

    def predict_proba(self, X: object, /) -> Array: ...

    def decision_function(self, X: object, /) -> Array: ...


class Folds(Protocol):
    """A splitter of samples: training rows and test rows of each fold."""

    def split(self, X: object, y: Array, /) -> Iterator[tuple[Ints, Ints]]: ...


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """scikit-learn's "sigmoid": a logistic curve of each class's score, fitted to Platt's targets."""

    slope: Floats
    intercept: Floats

    @classmethod
    def fit(cls, scores: Floats, came: Ints, weight: Floats | None) -> Sigmoid:
        """`scores` have a row for each class, `came` says which of them came true; a weight is
        repetition.
        """
        found = fit_score_curves(scores, came, weight)
        return cls(found[:, 0], found[:, 1])

    def __call__(self, scores: Floats) -> Floats:
        """A probability for each score."""
        s = self.slope[:, None] * scores + self.intercept[:, None]
        return np.exp(-np.logaddexp(0.0, -s))


@dataclass(frozen=True, eq=False)
class IsotonicMaps:
    """scikit-learn's "isotonic": the best rising map of each class's score, linear between its
    points.
    """

    maps: list[tuple[Floats, Floats]]

    @classmethod
    def fit(cls, scores: Floats, came: Ints, weight: Floats | None) -> IsotonicMaps:
        """`scores` have a row for each class, `came` says which of them came true."""
        return cls(fit_score_steps(scores, came, weight))

    def __call__(self, scores: Floats) -> Floats:
        """A probability for each score."""
        found: list[Floats] = [
            np.interp(row, *points) for row, points in zip(scores, self.maps, strict=True)
        ]
        return np.stack(found)


SCORE_CALIBRATORS: dict[str, type[Sigmoid | IsotonicMaps]] = {
    "sigmoid": Sigmoid,
    "isotonic": IsotonicMaps,
}


class CalibratedFold(NamedTuple):
    """A fitted classifier with the calibrator of its classes; `classes` are all that there are."""

    estimator: Classifier
    calibrator: Calibrator | Sigmoid | IsotonicMaps
    classes: Array

    def predict_proba(self, X: object) -> Floats:
        """Calibrated probabilities, one column for each of `classes`; 0 for one that the classifier
        has not seen.
        """
        k = len(self.classes)
        if isinstance(self.calibrator, Sigmoid | IsotonicMaps):
            answers = _get_answers(self.estimator, X, raw=True)
            mapped = self.calibrator(_split_scores(answers, np.zeros(0, dtype=np.int64), k)[0]).T
            if k == 2:
                p = np.concatenate((1.0 - mapped, mapped), axis=1)
            else:
                # Rows divided by their sums; where that is 0, every class is as likely.
                total = mapped.sum(axis=1, keepdims=True)
                share = mapped / np.where(total > 0, total, 1.0)
                p = np.where(total > 0, share, 1 / mapped.shape[1])
        else:
            answers = _get_answers(self.estimator, X)
            p = self.calibrator(_make_predictions(self.estimator, answers)).probs
        return _spread(p, _match_columns(self.estimator, self.classes), k, 0.0)


class CalibratedClassifier(base.ClassifierMixin, base.MetaEstimatorMixin, base.BaseEstimator):
    """A classifier whose probabilities are calibrated on samples that it has not seen.

    `fit` predicts each sample by a copy of `estimator` fitted without its fold (`cv` folds, each
    class spread evenly), fits `calibrator` on these predictions, and then fits `estimator` on
    everything. `calibrator` is a name ("temperature", "diagonal", "full" (both structured scaling),
    "vector", "matrix", "dirichlet", "histogram", "platt", "beta", "none"; "sigmoid" and "isotonic",
    see below) or any function of Predictions that returns a calibrator, such as
    `functools.partial(MatrixScaling.fit, l2=0.01)`. Without `predict_proba` the decision function
    counts as logits. `ensemble=True` keeps the copies instead, each with a calibrator of its own
    fold, and averages them; "auto" does so unless the estimator is frozen. `cv="prefit"`, or a
    `FrozenEstimator`, takes a fitted `estimator` as it is and fits the calibrator alone, on samples
    that must be new to it. The default estimator is a linear support vector machine.

    "sigmoid" and "isotonic" are what `CalibratedClassifierCV` calls so: one map for each class of
    the decision function, or of the probability where there is no decision function; there a weight
    is repetition. `Platt.fit` and `Isotonic.fit` as `calibrator` are howsure's own, which map
    probabilities and can be saved.

    A class needs a sample for each of `cv` folds. Without a number (`cv=None`) there are five,
    fewer where a class is rarer, which a warning says. `X` is handed on as it is: arrays, frames
    with named columns, sparse matrices, texts, images. `sample_weight` goes to the estimator, where
    it takes weights, and to the calibrator; other fit parameters go to the estimator.
    """

    def __init__(
        self,
        estimator: Classifier | None = None,
        calibrator: str | Callable[[Predictions], Calibrator] = "temperature",
        cv: object = None,
        *,
        n_jobs: int | None = None,
        ensemble: bool | str = False,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs
        self.ensemble = ensemble

    def fit(
        self, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: object
    ) -> CalibratedClassifier:
        """Fit the estimator and, on predictions of unseen samples, the calibrator."""
        rows, target = utils.indexable(X, y)
        plain = np.asarray(target)
        absent = np.zeros(1, dtype=np.bool_)
        if plain.dtype.kind == "O" and plain.ndim == 1:  # scikit-learn refuses nan among numbers
            absent = find_missing(plain)
        if absent.any():
            raise InputError(
                "y",
                got=f"has {int(absent.sum()):,} missing values",
                first=find_first(absent),
                need="every sample needs its label",
            )
        multiclass.check_classification_targets(target)
        given: Array = utils.column_or_1d(target, warn=True)
        weight = None
        if sample_weight is not None:
            weight = validation._check_sample_weight(sample_weight, rows, ensure_non_negative=True)
        if self.ensemble not in (True, False, "auto"):
            raise InputError(f'ensemble is {self.ensemble!r}; True, False or "auto" is needed.')
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise InputError(
                f'cv is {self.cv!r}; a number of folds, a splitter or "prefit" is needed.'
            )
        self.classes_, labels = np.unique(given, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                "a classifier needs samples of at least two classes; y holds one class."
            )
        self.calibrated_classifiers_ = self._fit_classifiers(
            rows, given, _Truth(labels, weight), fit_params
        )
        self.estimator_, self.calibrator_, _ = self.calibrated_classifiers_[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _fit_classifiers(
        self, X: object, y: Array, truth: _Truth, params: dict[str, object]
    ) -> list[CalibratedFold]:
        plain, raw = self._plain(), self._takes_scores()
        still = isinstance(plain, frozen.FrozenEstimator)
        if isinstance(self.cv, str) or (still and self.ensemble is not True):
            return [self._calibrate_fold(plain, _get_answers(plain, X, raw), truth)]
        params = params | _accept_weights(plain, truth.weight)
        folds = list(_make_folds(self.cv, y, truth.labels).split(X, y))
        jobs = (
            parallel.delayed(_fit_out_of_fold)(
                plain, X=X, y=y, params=params, train=train, test=test, raw=raw
            )
            for train, test in folds
        )
        copies: list[tuple[Classifier, Array]] = parallel.Parallel(n_jobs=self.n_jobs)(jobs)
        if self.ensemble:
            pairs = zip(copies, folds, strict=True)
            return [
                self._calibrate_fold(copy, answers, truth[test])
                for (copy, answers), (_, test) in pairs
            ]
        fitted = _clone_estimator(plain).fit(X, y, **params)
        # The copies have seen other samples, so together they say what the whole one would of new ones.
        answers, unseen = self._concat_unseen(copies, folds, truth)
        calibrator = self._fit_calibrator(copies[0][0], answers, unseen)
        return [CalibratedFold(fitted, calibrator, self.classes_)]

    def _plain(self) -> Classifier:
        return svm.LinearSVC(random_state=0) if self.estimator is None else self.estimator

    def _takes_scores(self) -> bool:
        """Whether the calibrator is one of scores as they are."""
        return isinstance(self.calibrator, str) and self.calibrator in SCORE_CALIBRATORS

    def _concat_unseen(
        self, copies: list[tuple[Classifier, Array]], folds: list[tuple[Ints, Ints]], truth: _Truth
    ) -> tuple[Array, _Truth]:
        """What the copies said of the samples that they had not seen, put together."""
        k = len(self.classes_)
        held = np.zeros(len(truth.labels), dtype=np.bool_)
        said = np.zeros((len(truth.labels), k))
        for (copy, answers), (_, test) in zip(copies, folds, strict=True):
            least = 0.0
            if not _gives_probabilities(copy, self._takes_scores()):
                least = float(np.min(answers))
            if answers.ndim == 1:  # a decision function of two classes, as two logits
                answers = np.stack((0 * answers, answers), 1)
            said[test] = _spread(answers, _match_columns(copy, self.classes_), k, least)
            held[test] = True
        return said[held], truth[np.flatnonzero(held)]

    def _calibrate_fold(self, fitted: Classifier, answers: Array, truth: _Truth) -> CalibratedFold:
        """A fitted copy, calibrated on samples of the classes that it knows."""
        columns = _match_columns(fitted, self.classes_)
        if self._takes_scores():
            number = np.full(len(self.classes_), -1)
            number[columns] = np.arange(len(columns))
            return CalibratedFold(
                fitted, self._fit_calibrator(fitted, answers, truth.of(number)), self.classes_
            )
        number = np.searchsorted(columns, truth.labels).clip(max=len(columns) - 1)
        rows = np.flatnonzero(columns[number] == truth.labels)
        known = _Truth(number, truth.weight)[rows]
        if len(np.unique(known.labels)) < 2:
            warnings.warn(
                "a fold holds one class only; the copy of that fold is not calibrated.",
                stacklevel=4,
            )
            return CalibratedFold(fitted, Identity(), self.classes_)
        return CalibratedFold(
            fitted, self._fit_calibrator(fitted, answers[rows], known), self.classes_
        )

    def _fit_calibrator(
        self, fitted: Classifier, answers: Array, truth: _Truth
    ) -> Calibrator | Sigmoid | IsotonicMaps:
        """The calibrator of what `fitted`, or copies of it, said of samples that they had not seen."""
        if isinstance(self.calibrator, str) and self.calibrator in SCORE_CALIBRATORS:
            scores, came = _split_scores(answers, truth.labels, len(self.classes_))
            return SCORE_CALIBRATORS[self.calibrator].fit(scores, came, truth.weight)
        unseen = _make_predictions(fitted, answers, truth.labels, truth.weight)
        if not isinstance(self.calibrator, str):
            return self.calibrator(unseen)
        if self.calibrator not in CALIBRATORS:
            known = ", ".join((*CALIBRATORS, "sigmoid"))
            raise InputError(f"there is no calibrator {self.calibrator!r}; known: {known}.")
        return CALIBRATORS[self.calibrator](unseen)

    def predict_proba(self, X: object) -> Floats:
        """Calibrated probabilities, one column for each of `classes_`."""
        validation.check_is_fitted(self)
        return np.mean([pair.predict_proba(X) for pair in self.calibrated_classifiers_], axis=0)

    def predict(self, X: object) -> Array:
        """The most probable class."""
        validation.check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def __sklearn_tags__(self) -> object:
        tags = base.ClassifierMixin.__sklearn_tags__(self)
        tags.input_tags.sparse = utils.get_tags(self._plain()).input_tags.sparse
        return tags


@dataclass(frozen=True)
class _Truth:
    """Numbers of the true classes, and weights where there are any."""

    labels: Ints
    weight: Floats | None

    def __getitem__(self, rows: Ints) -> _Truth:
        return _Truth(self.labels[rows], None if self.weight is None else self.weight[rows])

    def of(self, number: Ints) -> _Truth:
        """The same with other numbers for the classes."""
        return _Truth(number[self.labels], self.weight)


def _clone_estimator(plain: Classifier) -> Classifier:
    return base.clone(plain)


def _fit_out_of_fold(
    plain: Classifier,
    *,
    X: object,
    y: Array,
    params: dict[str, object],
    train: Ints,
    test: Ints,
    raw: bool,
) -> tuple[Classifier, Array]:
    """A copy fitted on one part of the samples, and what it says of the rest."""
    rows: Callable[[object, Ints], object] = utils._safe_indexing
    own_params: dict[str, object] = {}
    for name, value in params.items():
        # A parameter as long as the samples belongs to them, such as weights or groups.
        per_sample = (
            isinstance(value, Sized) and not isinstance(value, str) and len(value) == len(y)
        )
        own_params[name] = rows(value, train) if per_sample else value
    fitted = _clone_estimator(plain).fit(rows(X, train), y[train], **own_params)
    return fitted, _get_answers(fitted, rows(X, test), raw)


def _accept_weights(estimator: Classifier, weight: Floats | None) -> dict[str, object]:
    """The weights as a fit parameter, where the estimator takes them."""
    if weight is None:
        return {}
    if validation.has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": weight}
    name = type(estimator).__name__
    warnings.warn(
        f"{name} takes no sample_weight; the weights count in the calibration alone.", stacklevel=4
    )
    return {}


def _make_folds(cv: object, y: Array, labels: Ints) -> Folds:
    """The splitter; every class must have enough samples for its folds."""
    if isinstance(cv, model_selection.LeaveOneOut):
        raise InputError(
            "LeaveOneOut cross-validation does not give a calibrator samples of every class; use stratified folds."
        )
    splits = cv if isinstance(cv, int) else getattr(cv, "n_splits", None)
    rarest = int(count_values(labels).min())
    if splits is not None and rarest < splits:
        raise InputError(
            f"Requesting {splits}-fold cross-validation but a class has {rarest} samples; each fold needs one of each "
            "class. Ask for fewer folds, or for none by name (cv=None), which takes as many as there can be."
        )
    if rarest < 2 and cv is None:
        raise InputError(
            "a class has one sample; at least two of each class are needed to hold some out."
        )
    if cv is None and rarest < DEFAULT_FOLDS:
        warnings.warn(
            f"a class has {rarest} samples, so {rarest} folds are used instead of {DEFAULT_FOLDS}.",
            stacklevel=4,
        )
        cv = rarest
    return model_selection.check_cv(cv, y, classifier=True)


def _gives_probabilities(estimator: Classifier, raw: bool) -> bool:
    """Which answer is taken: `raw` takes the decision function where there is one, as scikit-learn
    does.
    """
    return hasattr(estimator, "predict_proba") and not (
        raw and hasattr(estimator, "decision_function")
    )


def _get_answers(estimator: Classifier, X: object, raw: bool = False) -> Array:
    if _gives_probabilities(estimator, raw):
        return estimator.predict_proba(X)
    if not hasattr(estimator, "decision_function"):
        name = type(estimator).__name__
        raise InputError(
            f"{name} has neither predict_proba nor decision_function; a classifier is needed."
        )
    return estimator.decision_function(X)


def _match_columns(estimator: Classifier, classes: Array) -> Ints:
    """Which of all classes each column of an estimator's answers is about."""
    known = getattr(estimator, "classes_", classes)
    return np.searchsorted(classes, known)


def _split_scores(answers: Array, labels: Ints, k: int) -> tuple[Floats, Ints]:
    """A row of scores for each class, and the row that came true; of two classes the second one is
    enough.
    """
    rows = np.asarray(answers, dtype=np.float64)
    if k > 2:
        return rows.T.copy(), labels
    return (rows if rows.ndim == 1 else rows[:, -1])[None].copy(), labels - 1


def _spread(answers: Array, columns: Ints, k: int, least: float) -> Array:
    """Answers over all classes; those that an estimator has not seen get `least`."""
    if answers.shape[1] == k:
        return answers
    out = np.full((len(answers), k), least, dtype=answers.dtype)
    out[:, columns] = answers
    return out


def _make_predictions(
    estimator: Classifier,
    answers: Array,
    labels: Ints | None = None,
    weight: ArrayLike | None = None,
) -> Predictions:
    if not hasattr(estimator, "predict_proba"):
        return Predictions.from_logits(answers, labels, weight=weight)
    return Predictions.from_probs(answers, labels, weight=weight, renormalise=True)


@dataclass(frozen=True)
class Scorer:
    """A metric of howsure as `scoring=` of `cross_validate`, `GridSearchCV` and the like.

    Larger is better there, so metrics that are best when small change their sign, as scikit-learn's
    `neg_log_loss` does, and of those that are best at 0 the distance counts, negative.
    `functools.partial` sets options of the metric. Labels may be of any type. Without
    `predict_proba` the decision function counts as logits.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from howsure import ece
    >>> found = cross_val_score(LogisticRegression(max_iter=1000), *load_iris(return_X_y=True), scoring=Scorer(ece))
    >>> bool(-1 <= found.min() <= found.max() <= 0)
    True
    """

    metric: Callable[..., float]

    @property
    def better(self) -> str:
        """Where the metric is best: "higher", "lower" or "zero"."""
        return getattr(_plain(self.metric), "better", "higher")

    @property
    def name(self) -> str:
        """The name of the metric, after `neg_` where the sign is changed."""
        plain = getattr(_plain(self.metric), "__name__", "metric")
        return plain if self.better == "higher" else f"neg_{plain}"

    def __call__(
        self, estimator: Classifier, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """The score of a fitted classifier on these samples."""
        preds = Predictions.from_estimator(estimator, X, y, renormalise=True, weight=sample_weight)
        value = evaluate_metric(self.metric, preds)
        if self.better == "higher":
            return value
        return -abs(value) if self.better == "zero" else -value


def scorers(*metrics: Callable[..., float]) -> dict[str, Scorer]:
    """Several metrics as `scoring=`, by name.

    >>> from howsure import accuracy, nll
    >>> list(scorers(accuracy, nll))
    ['accuracy', 'neg_nll']
    """
    made = [Scorer(metric) for metric in metrics]
    return {scorer.name: scorer for scorer in made}


def _plain(metric: Callable[..., float]) -> Callable[..., float]:
    return getattr(metric, "func", metric)
