"""The objects of other libraries themselves, where these are installed; what they say is stored for
tests/formats/test_first_try.py.
"""

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, n)
    return np.eye(3)[labels] @ rng.normal(size=(3, 5)) + rng.normal(size=(n, 5)), labels


def test_xgboost() -> None:
    xgboost = pytest.importorskip("xgboost")
    samples, labels = draw(300)
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(samples[:200], labels[:200])
    preds = Predictions.from_estimator(model, samples[200:], labels[200:])
    right = float((model.predict(samples[200:]) == labels[200:]).mean())
    assert preds.correct.mean() == pytest.approx(right)
    booster = model.get_booster()
    with pytest.raises(InputError, match="no classifier of scikit-learn's kind"):
        Predictions.from_estimator(booster, samples[200:], labels[200:])
    probs = booster.predict(xgboost.DMatrix(samples[200:]))
    report = hs.evaluate(probs=probs, labels=labels[200:])
    assert report.data["metrics"]["accuracy"]["value"] == pytest.approx(right)


def test_the_output_of_a_trainer() -> None:
    utilities = pytest.importorskip("transformers.trainer_utils")
    _, labels = draw(50)
    logits = 3 * np.eye(3, dtype=np.float32)[labels]
    out = utilities.PredictionOutput(predictions=logits, label_ids=labels, metrics={})
    with pytest.raises(InputError, match=r"labels=out\.label_ids"):
        hs.evaluate(out)
    report = hs.evaluate(logits=out.predictions, labels=out.label_ids)
    assert report.data["metrics"]["accuracy"]["value"] == 1


def test_a_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    _, labels = draw(50)
    logits = (3 * np.eye(3)[labels]).tolist()
    table = datasets.Dataset.from_dict({"logits": logits, "label": labels.tolist()})
    assert Predictions.from_frame(table).correct.all()
