"""Scorers in scikit-learn's own searches: the sign, any labels, weights, refusals."""

import pickle
from functools import partial

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import howsure as hs
from howsure import InputError
from howsure.sklearn import Scorer, scorers

NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_iris(return_X_y=True)
    return x, NAMES[y]  # labels are text


def test_accuracy_and_nll_are_scikit_learns(iris: tuple[np.ndarray, np.ndarray]) -> None:
    theirs = {"accuracy": get_scorer("accuracy"), "neg_nll": get_scorer("neg_log_loss")}
    model = LogisticRegression(max_iter=1000)
    found, expected = (
        cross_validate(model, *iris, scoring=s) for s in (scorers(hs.accuracy, hs.nll), theirs)
    )
    for name in ("test_accuracy", "test_neg_nll"):
        assert found[name] == pytest.approx(expected[name], abs=1e-12)


def test_a_search_prefers_the_better_calibrated() -> None:
    x, y = load_digits(return_X_y=True)
    grid = {"var_smoothing": [1e-9, 1e-1]}
    search = GridSearchCV(GaussianNB(), grid, scoring=Scorer(hs.ece), cv=3).fit(x[:900], y[:900])
    errors = -search.cv_results_["mean_test_score"]
    assert search.best_params_ == {"var_smoothing": grid["var_smoothing"][errors.argmin()]}
    assert errors.min() < 0.8 * errors.max()


def test_the_sign_follows_what_is_better(iris: tuple[np.ndarray, np.ndarray]) -> None:
    model = GaussianNB().fit(*iris)
    numbers = np.searchsorted(NAMES, iris[1])
    preds = hs.Predictions.from_probs(model.predict_proba(iris[0]), numbers)
    t = hs.tally(preds.confidence, correct=preds.correct)
    signed = hs.signed_calibration_error(t)
    assert Scorer(hs.auroc)(model, *iris) == pytest.approx(hs.auroc(t))
    assert Scorer(hs.aurc)(model, *iris) == pytest.approx(-hs.aurc(t))
    assert Scorer(hs.signed_calibration_error)(model, *iris) == pytest.approx(-abs(signed))
    assert Scorer(partial(hs.ece, bins=hs.equal_size(5)))(model, *iris) == pytest.approx(
        -hs.ece(t, hs.equal_size(5))
    )
    assert Scorer(partial(hs.nll, eps=0.1))(model, *iris) == pytest.approx(-hs.nll(preds, eps=0.1))
    assert list(scorers(hs.auroc, partial(hs.ece, bins=hs.equal_size(5)))) == ["auroc", "neg_ece"]


def test_decision_functions_weights_and_copies(iris: tuple[np.ndarray, np.ndarray]) -> None:
    two = iris[1] != "setosa"
    x, y = iris[0][two], iris[1][two]
    model = LinearSVC().fit(x, y)
    scorer = pickle.loads(pickle.dumps(Scorer(hs.accuracy)))
    assert scorer == Scorer(hs.accuracy)
    assert scorer(model, x, y) == pytest.approx(model.score(x, y))
    right = model.predict(x) == y
    assert scorer(model, x, y, sample_weight=1.0 + right) == pytest.approx(
        2 * right.sum() / (1 + right).sum()
    )


def test_an_unseen_label_is_refused(iris: tuple[np.ndarray, np.ndarray]) -> None:
    model = GaussianNB().fit(*iris)
    with pytest.raises(InputError, match="which the classifier has never seen"):
        Scorer(hs.ece)(model, iris[0], np.where(iris[1] == "setosa", "rosa", iris[1]))
