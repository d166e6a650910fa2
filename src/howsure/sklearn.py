"""For scikit-learn: any classifier with any calibrator as one estimator, and scorers. Needs the extra `sklearn`."""

# pyright: basic, reportIncompatibleMethodOverride=false, reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from howsure._core.check import Array, Floats, InputError
from howsure._core.optional import need
from howsure.calibrators import Calibrator, Identity
from howsure.calibrators.choice import CALIBRATORS, value_of
from howsure.predictions import Predictions

need("sklearn", for_="howsure.sklearn", extra="sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import LeaveOneOut, check_cv  # noqa: E402
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.parallel import Parallel, delayed  # noqa: E402
from sklearn.utils.validation import (  # noqa: E402
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
)

__all__ = ["CalibratedClassifier", "Scorer", "scorers"]


class Calibrated(NamedTuple):
    """A fitted classifier with the calibrator of its classes; `classes` are all that there are."""

    estimator: Any
    calibrator: Calibrator
    classes: Array

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, one column for each of `classes`; 0 for one that the classifier has not seen."""
        p = self.calibrator(_predictions(self.estimator, _answers(self.estimator, X))).probs
        return _spread(p, _columns(self.estimator, self.classes), len(self.classes), 0.0)


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated on samples that it has not seen.

    `fit` predicts each sample by a copy of `estimator` fitted without its fold (`cv` folds, each class spread evenly),
    fits `calibrator` on these predictions, and then fits `estimator` on everything. `calibrator` is a name
    ("temperature", "vector", "matrix", "dirichlet", "histogram", "isotonic", "platt", "beta", "none") or any
    function of Predictions that returns a calibrator, such as `functools.partial(MatrixScaling.fit, l2=0.01)`. Without
    `predict_proba` the decision function counts as logits. `ensemble=True` keeps the copies instead, each with a
    calibrator of its own fold, and averages them. `cv="prefit"`, or a `FrozenEstimator`, takes a fitted `estimator` as
    it is and fits the calibrator alone, on samples that must be new to it.

    `X` is handed on as it is: arrays, frames with named columns, sparse matrices, texts, images. `sample_weight` goes
    to the estimator, where it takes weights, and to the calibrator; other fit parameters go to the estimator.
    """

    def __init__(
        self,
        estimator: Any = None,
        calibrator: str | Callable[[Predictions], Calibrator] = "temperature",
        cv: Any = 5,
        *,
        n_jobs: int | None = None,
        ensemble: bool = False,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs
        self.ensemble = ensemble

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> CalibratedClassifier:
        """Fit the estimator and, on predictions of unseen samples, the calibrator."""
        X, y = indexable(X, y)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("a classifier needs samples of at least two classes; y holds one class.")
        self.calibrated_classifiers_ = self._fitted(X, y, _Truth(labels, weight), fit_params)
        self.estimator_, self.calibrator_, _ = self.calibrated_classifiers_[0]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _fitted(self, X: Any, y: Array, truth: _Truth, params: dict[str, Any]) -> list[Calibrated]:
        plain = LogisticRegression() if self.estimator is None else self.estimator
        if isinstance(self.cv, str) or isinstance(plain, FrozenEstimator):
            return [self._of_fold(plain, _answers(plain, X), truth)]
        params = params | _accepted(plain, truth.weight)
        folds = list(_folds(self.cv, y, truth.labels).split(X, y))
        jobs = (delayed(_out_of_fold)(plain, X, y, params, train, test) for train, test in folds)
        copies = Parallel(n_jobs=self.n_jobs)(jobs)
        if self.ensemble:
            pairs = zip(copies, folds, strict=True)
            return [self._of_fold(copy, answers, truth[test]) for (copy, answers), (_, test) in pairs]
        fitted = clone(plain).fit(X, y, **params)
        return [Calibrated(fitted, self._made(self._unseen(copies, folds, truth)), self.classes_)]

    def _unseen(self, copies: list[tuple[Any, Array]], folds: list[tuple[Array, Array]], truth: _Truth) -> Predictions:
        """What the copies said of the samples that they had not seen, put together."""
        k = len(self.classes_)
        held = np.zeros(len(truth.labels), dtype=np.bool_)
        said = np.zeros((len(truth.labels), k))
        for (copy, answers), (_, test) in zip(copies, folds, strict=True):
            least = 0.0 if hasattr(copy, "predict_proba") else float(np.min(answers))
            said[test] = _spread(_two_columns(copy, answers), _columns(copy, self.classes_), k, least)
            held[test] = True
        known = truth[np.flatnonzero(held)]
        return _predictions(copies[0][0], said[held], known.labels, known.weight)

    def _of_fold(self, fitted: Any, answers: Array, truth: _Truth) -> Calibrated:
        """A fitted copy, calibrated on samples of the classes that it knows."""
        columns = _columns(fitted, self.classes_)
        number = np.searchsorted(columns, truth.labels).clip(max=len(columns) - 1)
        rows = np.flatnonzero(columns[number] == truth.labels)
        known = _Truth(number, truth.weight)[rows]
        if len(np.unique(known.labels)) < 2:
            warnings.warn("a fold holds one class only; the copy of that fold is not calibrated.", stacklevel=4)
            return Calibrated(fitted, Identity(), self.classes_)
        return Calibrated(
            fitted, self._made(_predictions(fitted, answers[rows], known.labels, known.weight)), self.classes_
        )

    def _made(self, unseen: Predictions) -> Calibrator:
        if not isinstance(self.calibrator, str):
            return self.calibrator(unseen)
        if self.calibrator not in CALIBRATORS:
            raise InputError(f"there is no calibrator {self.calibrator!r}; known: {', '.join(CALIBRATORS)}.")
        return CALIBRATORS[self.calibrator](unseen)

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, one column for each of `classes_`."""
        check_is_fitted(self)
        return np.mean([pair.predict_proba(X) for pair in self.calibrated_classifiers_], axis=0)

    def predict(self, X: Any) -> Array:
        """The most probable class."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        plain = LogisticRegression() if self.estimator is None else self.estimator
        tags.input_tags.sparse = get_tags(plain).input_tags.sparse
        return tags


class _Truth(NamedTuple):
    """Numbers of the true classes, and weights where there are any."""

    labels: Array
    weight: Array | None

    def __getitem__(self, rows: Any) -> Any:
        return _Truth(self.labels[rows], None if self.weight is None else self.weight[rows])


def _out_of_fold(plain: Any, X: Any, y: Array, params: dict[str, Any], train: Array, test: Array) -> tuple[Any, Array]:
    """A copy fitted on one part of the samples, and what it says of the rest."""
    aligned = {name: value for name, value in params.items() if _num_samples_or_none(value) == len(y)}
    mine = params | {name: _safe_indexing(value, train) for name, value in aligned.items()}
    fitted = clone(plain).fit(_safe_indexing(X, train), y[train], **mine)
    return fitted, _answers(fitted, _safe_indexing(X, test))


def _num_samples_or_none(value: Any) -> int | None:
    return len(value) if hasattr(value, "__len__") and not isinstance(value, str) else None


def _accepted(estimator: Any, weight: Any) -> dict[str, Any]:
    """The weights as a fit parameter, where the estimator takes them."""
    if weight is None:
        return {}
    if has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": weight}
    name = type(estimator).__name__
    warnings.warn(f"{name} takes no sample_weight; the weights count in the calibration alone.", stacklevel=4)
    return {}


def _folds(cv: Any, y: Array, labels: Array) -> Any:
    """The splitter; every class must have enough samples for its folds."""
    if isinstance(cv, LeaveOneOut):
        raise InputError(
            "LeaveOneOut cross-validation does not give a calibrator samples of every class; use stratified folds."
        )
    splits = cv if isinstance(cv, int) else getattr(cv, "n_splits", None)
    rarest = int(np.bincount(labels).min())
    if splits is not None and (splits > len(labels) // 2 or (rarest < 2 and isinstance(cv, int))):
        raise InputError(
            f"Requesting {splits}-fold cross-validation but a class has {rarest} samples; at least two of each class "
            "are needed to hold some out, and two samples for each fold."
        )
    if isinstance(cv, int) and rarest < cv:
        warnings.warn(f"a class has {rarest} samples, so {rarest} folds are used instead of {cv}.", stacklevel=4)
        cv = rarest
    return check_cv(cv, y, classifier=True)


def _answers(estimator: Any, X: Any) -> Array:
    return estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else estimator.decision_function(X)


def _columns(estimator: Any, classes: Array) -> Array:
    """Which of all classes each column of an estimator's answers is about."""
    known = getattr(estimator, "classes_", classes)
    return np.searchsorted(classes, known)


def _two_columns(estimator: Any, answers: Array) -> Array:
    """A decision function of two classes as two logits."""
    return answers if hasattr(estimator, "predict_proba") or answers.ndim == 2 else np.stack((0 * answers, answers), 1)


def _spread(answers: Array, columns: Array, k: int, least: float) -> Array:
    """Answers over all classes; those that an estimator has not seen get `least`."""
    if answers.shape[1] == k:
        return answers
    out = np.full((len(answers), k), least, dtype=answers.dtype)
    out[:, columns] = answers
    return out


def _predictions(estimator: Any, answers: Array, labels: Array | None = None, weight: Any = None) -> Predictions:
    if not hasattr(estimator, "predict_proba"):
        return Predictions.from_logits(answers, labels, weight=weight)
    return Predictions.from_probs(answers, labels, weight=weight, renormalise=True)


@dataclass(frozen=True)
class Scorer:
    """A metric of howsure as `scoring=` of `cross_validate`, `GridSearchCV` and the like.

    Larger is better there, so metrics that are best when small change their sign, as scikit-learn's `neg_log_loss`
    does, and of those that are best at 0 the distance counts, negative. `functools.partial` sets options of the metric.
    Labels may be of any type. Without `predict_proba` the decision function counts as logits.

    >>> from sklearn.datasets import load_iris
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
        plain = _plain(self.metric).__name__
        return plain if self.better == "higher" else f"neg_{plain}"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of a fitted classifier on these samples."""
        value = value_of(self.metric, _judged(estimator, X, y, sample_weight))
        return value if self.better == "higher" else -(abs(value) if self.better == "zero" else value)


def scorers(*metrics: Callable[..., float]) -> dict[str, Scorer]:
    """Several metrics as `scoring=`, by name.

    >>> from howsure import accuracy, nll
    >>> list(scorers(accuracy, nll))
    ['accuracy', 'neg_nll']
    """
    made = [Scorer(metric) for metric in metrics]
    return {scorer.name: scorer for scorer in made}


def _plain(metric: Callable[..., float]) -> Any:
    return getattr(metric, "func", metric)


def _judged(estimator: Any, X: Any, y: Any, weight: Any) -> Predictions:
    """Predictions of a fitted classifier, with labels as numbers of its classes."""
    classes = np.asarray(estimator.classes_)
    labels = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    if (classes[labels] != np.asarray(y)).any():
        raise InputError("y holds a label that the classifier has never seen; remove these samples.")
    return _predictions(estimator, _answers(estimator, X), labels, weight)
