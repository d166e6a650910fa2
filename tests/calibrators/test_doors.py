"""What every calibrator refuses, and what it says."""

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure.calibrators import (
    Beta,
    Dirichlet,
    HistogramBinning,
    Identity,
    Isotonic,
    MatrixScaling,
    Platt,
    StructuredScaling,
    Temperature,
    VectorScaling,
)

ALL = [
    Beta,
    Dirichlet,
    HistogramBinning,
    Isotonic,
    MatrixScaling,
    Platt,
    StructuredScaling,
    Temperature,
    VectorScaling,
]
BY_CLASS = [c for c in ALL if c is not Temperature]


def preds(n=60, k=3, **more):
    rng = np.random.default_rng(0)
    return Predictions.from_logits(rng.normal(size=(n, k)), np.arange(n) % k, **more)


@pytest.mark.parametrize("calibrator", ALL)
def test_one_class(calibrator):
    with pytest.raises(
        InputError, match="cannot be fitted with one class: its probability is always 1"
    ):
        calibrator.fit(Predictions.from_samples(np.ones((1, 5, 1)), np.zeros(5, dtype=int)))


@pytest.mark.parametrize("calibrator", ALL)
def test_labels_of_one_class(calibrator):
    with pytest.raises(InputError, match="all 60 labels are class 2"):
        calibrator.fit(Predictions.from_logits(preds().values, np.full(60, 2)))


@pytest.mark.parametrize("calibrator", BY_CLASS)
def test_fewer_samples_than_classes(calibrator):
    with pytest.raises(InputError, match="cannot be fitted on 4 samples of 5 classes"):
        calibrator.fit(preds(4, 5))


def test_temperature_has_one_parameter_and_may():
    assert Temperature.fit(preds(4, 5)).fitted.n == 4


@pytest.mark.parametrize("calibrator", ALL)
def test_other_number_of_classes(calibrator):
    made = calibrator.fit(preds())
    with pytest.raises(InputError, match="fitted for 3 classes, these predictions have 4"):
        made(preds(60, 4))


@pytest.mark.parametrize("calibrator", ALL)
def test_permuted_names(calibrator):
    made = calibrator.fit(preds(class_names=["cat", "dog", "owl"]))
    with pytest.raises(InputError, match="in another order: class 0 was 'cat', here it is 'dog'"):
        made(preds(class_names=["dog", "cat", "owl"]))


@pytest.mark.parametrize("calibrator", ALL)
def test_other_names(calibrator):
    made = calibrator.fit(preds(class_names=["cat", "dog", "owl"]))
    with pytest.raises(InputError, match="under other names: class 2 was 'owl', here it is 'bat'"):
        made(preds(class_names=["cat", "dog", "bat"]))


@pytest.mark.parametrize(
    "calibrator", [Dirichlet, HistogramBinning, MatrixScaling, Temperature, VectorScaling]
)
def test_top_labels_only(calibrator):
    top = Predictions.from_confidence([0.5, 0.9], [1, 0])
    with pytest.raises(InputError, match="only the top label is known"):
        calibrator.fit(top)
    with pytest.raises(InputError, match="only the top label is known"):
        calibrator.fit(preds())(top)


@pytest.mark.parametrize("calibrator", [Beta, Isotonic, Platt])
def test_maps_of_a_confidence_and_of_classes_do_not_mix(calibrator):
    top = Predictions.from_confidence([0.5, 0.9, 0.7], [1, 0, 1])
    with pytest.raises(InputError, match="fitted on 3 classes, here only the top label is known"):
        calibrator.fit(preds())(top)
    with pytest.raises(InputError, match="fitted on the confidence of top labels"):
        calibrator.fit(top)(preds())


@pytest.mark.parametrize("calibrator", ALL)
def test_no_labels(calibrator):
    with pytest.raises(InputError, match="these predictions have no labels"):
        calibrator.fit(Predictions.from_logits(preds().values))


def test_infinite_logits():
    with pytest.raises(InputError, match="logits has 1 infinite values"):
        Predictions.from_logits([[np.inf, 0.0]], [0])


@pytest.mark.parametrize("calibrator", [*ALL, Identity])
def test_everything_else_is_kept(calibrator):
    given = preds(ids=np.arange(60) + 7, group=np.arange(60) // 2, class_names=["a", "b", "c"])
    out = calibrator.fit(given)(given)
    assert (out.ids == given.ids).all()
    assert (out.group == given.group).all()
    assert out.class_names == given.class_names
    assert (out.labels == given.labels).all()
    assert hs.nll(out) > 0


@pytest.mark.parametrize("calibrator", [*ALL, Identity])
def test_arrays_by_name(calibrator):
    p = preds()
    made, same = calibrator.fit(p), calibrator.fit(logits=p.values, labels=p.labels)
    assert (made(p).values == same(p).values).all()
    q = Predictions.from_probs(p.probs, p.labels)
    made, same = calibrator.fit(q), calibrator.fit(probs=p.probs, labels=p.labels)
    assert (made(q).values == same(q).values).all()


def test_a_confidence_by_name_with_options():
    confidence, correct = [0.6, 0.7, 0.8, 0.9], [0, 1, 0, 1]
    top = Predictions.from_confidence(confidence, correct)
    same = Isotonic.fit(confidence=confidence, correct=correct, floor=0.5)
    assert (same(top).values == Isotonic.fit(top, floor=0.5)(top).values).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"logits": [[1.0, 0.0]]}, "Temperature.fit got logits= without labels="),
        ({"labels": [0]}, "got no probs=, logits= or confidence="),
        ({"logits": [[1.0, 0.0]], "probs": [[0.7, 0.3]], "labels": [0]}, "got logits= and probs="),
        ({"preds": [[1.0, 0.0]]}, "Temperature.fit needs predictions, this is a list"),
        ({"preds": [[1.0, 0.0]], "labels": [0]}, "got predictions and arrays; give one of them"),
        ({}, "Temperature.fit needs predictions, this is a NoneType"),
    ],
)
def test_arrays_that_do_not_go_together(arguments, message):
    with pytest.raises(InputError) as e:
        Temperature.fit(**arguments)
    assert message in str(e.value)
