"""The scikit-learn estimator: scikit-learn's own checks, and what it promises itself."""

from functools import partial

import numpy as np
import pytest

import howsure as hs

pytest.importorskip("sklearn")

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from howsure import InputError
from howsure.calibrators import MatrixScaling
from howsure.calibrators.logistic import fit_score_curves
from howsure.sklearn import CalibratedClassifier

EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(
    [CalibratedClassifier()], expected_failed_checks=lambda estimator: EXPECTED_FAILURES
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def hard(n=2000, seed=0):
    return make_classification(
        n, 20, n_informative=5, n_redundant=10, n_classes=3, flip_y=0.2, random_state=seed
    )


@pytest.mark.parametrize(
    "name",
    [
        "none",
        "temperature",
        "vector",
        "matrix",
        "histogram",
        "isotonic",
        "platt",
        "beta",
        "sigmoid",
    ],
)
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


def test_texts_are_handed_on():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    texts = ["good film", "bad film", "fine film", "poor film"] * 10
    y = ["good", "bad"] * 20
    made = CalibratedClassifier(make_pipeline(CountVectorizer(), LogisticRegression()), cv=2).fit(
        texts, y
    )
    assert made.predict(["good fine film"])[0] == "good"
    assert list(made.classes_) == ["bad", "good"]


def test_frames_keep_the_names_of_their_columns():
    pd = pytest.importorskip("pandas")
    X, y = hard(300)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    made = CalibratedClassifier(LogisticRegression(max_iter=1000), cv=3).fit(frame, pd.Series(y))
    assert list(made.feature_names_in_) == list(frame.columns)
    assert made.predict_proba(frame).shape == (300, 3)


def test_weights_reach_estimator_and_calibrator():
    X, y = hard(400)
    w = np.random.default_rng(0).random(400)
    plain, weighted = (CalibratedClassifier(GaussianNB(), cv=3).fit(X, y, v) for v in (None, w))
    assert plain.calibrator_.temperature != weighted.calibrator_.temperature
    assert not np.allclose(plain.estimator_.theta_, weighted.estimator_.theta_)


def test_weights_that_the_estimator_does_not_take_are_said():
    from sklearn.neighbors import KNeighborsClassifier

    X, y = hard(200)
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no sample_weight"):
        CalibratedClassifier(KNeighborsClassifier(), cv=2).fit(X, y, np.ones(200))


def test_an_ensemble_keeps_a_copy_of_every_fold():
    X, y = hard(300)
    made = CalibratedClassifier(GaussianNB(), cv=3, ensemble=True).fit(X, y)
    assert len(made.calibrated_classifiers_) == 3
    p = np.mean([pair.predict_proba(X) for pair in made.calibrated_classifiers_], axis=0)
    np.testing.assert_allclose(made.predict_proba(X), p)


def test_few_samples_of_a_class_give_fewer_folds_and_say_so():
    X, y = hard(60)
    y = np.where(np.arange(60) < 3, 1, 0)
    with pytest.warns(UserWarning, match="a class has 3 samples, so 3 folds"):
        CalibratedClassifier(GaussianNB()).fit(X, y)


def test_a_number_of_folds_that_a_class_cannot_fill_is_refused():
    X, y = hard(60)
    y = np.where(np.arange(60) < 3, 1, 0)
    with pytest.raises(
        InputError, match="Requesting 5-fold cross-validation but a class has 3 samples"
    ):
        CalibratedClassifier(GaussianNB(), cv=5).fit(X, y)


def test_the_default_estimator_is_scikit_learns():
    X, y = hard(200)
    assert isinstance(CalibratedClassifier().fit(X, y).estimator_, LinearSVC)


@pytest.mark.parametrize("name", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
@pytest.mark.parametrize("ensemble", [True, False])
def test_sigmoid_and_isotonic_are_scikit_learns(name, k, estimator, ensemble):
    X, y = hard(400)
    y = y % k
    weight = np.random.default_rng(0).uniform(0.5, 2, 400)
    ours = CalibratedClassifier(estimator, name, 3, ensemble=ensemble).fit(
        X, y, sample_weight=weight
    )
    theirs = CalibratedClassifierCV(estimator, method=name, cv=3, ensemble=ensemble).fit(
        X, y, sample_weight=weight
    )
    # their optimiser stops earlier than ours
    assert ours.predict_proba(X) == pytest.approx(
        theirs.predict_proba(X), abs=1e-12 if name == "isotonic" else 1e-5
    )


def test_whole_weights_are_repetitions_of_a_sigmoid():
    X, y = hard(100)
    times = np.arange(100) % 3 + 1
    scores = GaussianNB().fit(X, y).predict_proba(X).T.copy()
    repeated = fit_score_curves(np.repeat(scores, times, axis=1), np.repeat(y, times))
    assert fit_score_curves(scores, y, times.astype(float)) == pytest.approx(repeated, rel=1e-9)


@pytest.mark.parametrize("kind", ["forest", "one vs rest", "neighbours", "margins"])
def test_estimators_of_many_labels(kind: str) -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = (X[:, :3] + rng.normal(size=(120, 3)) > 0).astype(int)
    model = {
        "forest": RandomForestClassifier(10, random_state=0),
        "one vs rest": OneVsRestClassifier(LogisticRegression()),
        "neighbours": KNeighborsClassifier(),
        "margins": OneVsRestClassifier(LinearSVC()),
    }[kind].fit(X[:80], y[:80])
    preds = hs.Predictions.from_estimator(model, X[80:], y[80:])
    assert preds.n == 40 * 3
    said = model.predict(X[80:])
    assert preds.correct.mean() == pytest.approx((said == y[80:]).mean(), abs=0.02)


def test_an_estimator_of_several_questions_is_refused() -> None:
    from sklearn.tree import DecisionTreeClassifier

    X, y = np.arange(12.0)[:, None], np.arange(24).reshape(12, 2) % 3
    with pytest.raises(hs.InputError, match="answers several questions at once"):
        hs.Predictions.from_estimator(DecisionTreeClassifier().fit(X, y), X, y)
