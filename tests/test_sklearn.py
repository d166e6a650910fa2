"""The scikit-learn estimator: scikit-learn's own checks, and what it promises itself."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from howsure import InputError
from howsure.calibrators import MatrixScaling
from howsure.sklearn import CalibratedClassifier

EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks([CalibratedClassifier()], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def hard(n=2000, seed=0):
    return make_classification(n, 20, n_informative=5, n_redundant=10, n_classes=3, flip_y=0.2, random_state=seed)


@pytest.mark.parametrize("name", ["none", "temperature", "vector", "matrix", "histogram", "isotonic", "platt", "beta"])
def test_every_calibrator_by_name(name):
    X, y = hard(600)
    p = CalibratedClassifier(GaussianNB(), name, cv=3).fit(X, y).predict_proba(X)
    assert p.shape == (600, 3)
    assert p.sum(axis=1) == pytest.approx(1.0)


def test_naive_bayes_becomes_less_sure():
    X, y = hard()
    loss = lambda p: -np.log(np.maximum(p[np.arange(1000), y[1000:]], 1e-300)).mean()
    plain = GaussianNB().fit(X[:1000], y[:1000]).predict_proba(X[1000:])
    made = CalibratedClassifier(GaussianNB()).fit(X[:1000], y[:1000])
    assert made.calibrator_.temperature > 1.2
    assert loss(made.predict_proba(X[1000:])) < loss(plain)


def test_decision_function_counts_as_logits():
    X, y = load_iris(return_X_y=True)
    made = CalibratedClassifier(LinearSVC(), partial(MatrixScaling.fit, l2=0.01)).fit(X, y)
    assert (made.predict(X) == y).mean() > 0.9


def test_prefit_leaves_the_estimator_alone():
    X, y = hard()
    fitted = LogisticRegression().fit(X[:1000], y[:1000])
    made = CalibratedClassifier(fitted, cv="prefit").fit(X[1000:], y[1000:])
    assert made.estimator_ is fitted
    assert (made.predict(X) == fitted.predict(X)).all()


def test_one_class():
    with pytest.raises(InputError, match="at least two classes"):
        CalibratedClassifier().fit([[0.0], [1.0]], [1, 1])
