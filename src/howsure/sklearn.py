"""For scikit-learn: any classifier with any calibrator as one estimator, and scorers. Needs the extra `sklearn`."""

# pyright: basic, reportIncompatibleMethodOverride=false, reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from howsure._core.check import Array, Floats, InputError
from howsure._core.optional import need
from howsure.calibrators import Calibrator
from howsure.calibrators.choice import CALIBRATORS, value_of
from howsure.predictions import Predictions

need("sklearn", for_="howsure.sklearn", extra="sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import StratifiedKFold, cross_val_predict  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

__all__ = ["CalibratedClassifier", "Scorer", "scorers"]


class CalibratedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated on samples that it has not seen.

    `fit` predicts each sample by a copy of `estimator` fitted without its fold (`cv` folds, each class spread evenly),
    fits `calibrator` on these predictions, and then fits `estimator` on everything. `calibrator` is a name
    ("temperature", "vector", "matrix", "dirichlet", "histogram", "isotonic", "platt", "beta", "none") or any
    function of Predictions that returns a calibrator, such as `functools.partial(MatrixScaling.fit, l2=0.01)`. Without
    `predict_proba` the decision function counts as logits. `cv="prefit"` takes a fitted `estimator` as it is and
    fits the calibrator alone, on samples that must be new to it.
    """

    def __init__(
        self, estimator: Any = None, calibrator: str | Callable[[Predictions], Calibrator] = "temperature", cv: Any = 5
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv

    def fit(self, X: Any, y: Any) -> CalibratedClassifier:
        """Fit the estimator and, on predictions of unseen samples, the calibrator."""
        X, y = validate_data(self, X, y, accept_sparse=True, dtype=None, ensure_all_finite=False)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("a classifier needs samples of at least two classes; y holds one class.")
        self.estimator_, unseen = self._fitted(X, y, labels)
        made = CALIBRATORS[self.calibrator] if isinstance(self.calibrator, str) else self.calibrator
        self.calibrator_ = made(unseen)
        return self

    def _fitted(self, X: Any, y: Array, labels: Array) -> tuple[Any, Predictions]:
        """The estimator, and predictions of samples that it has not seen."""
        plain = LogisticRegression() if self.estimator is None else self.estimator
        if isinstance(self.cv, str):
            return plain, _predictions(plain, _answers(plain, X), labels)
        folds = self.cv
        if isinstance(folds, int):
            rarest = int(np.bincount(labels).min())
            if rarest < 2:
                raise InputError("a class has one sample only; at least two of each class are needed to hold some out.")
            folds = StratifiedKFold(min(folds, rarest), shuffle=True, random_state=0)
        method = "predict_proba" if hasattr(plain, "predict_proba") else "decision_function"
        unseen: Any = cross_val_predict(clone(plain), X, y, cv=folds, method=method)
        fresh: Any = clone(plain)
        fitted = fresh.fit(X, y)
        return fitted, _predictions(fitted, unseen, labels)

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, one column for each of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=True, dtype=None, ensure_all_finite=False, reset=False)
        return self.calibrator_(_predictions(self.estimator_, _answers(self.estimator_, X))).probs

    def predict(self, X: Any) -> Array:
        """The most probable class."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _answers(estimator: Any, X: Any) -> Array:
    return estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else estimator.decision_function(X)


def _predictions(estimator: Any, answers: Array, labels: Array | None = None, weight: Any = None) -> Predictions:
    make = Predictions.from_probs if hasattr(estimator, "predict_proba") else Predictions.from_logits
    return make(answers, labels, weight=weight)


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
