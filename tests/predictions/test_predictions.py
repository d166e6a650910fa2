"""Predictions keep what they were given; Outcomes keep rows together."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import Predictions


def test_probabilities_stay_as_given() -> None:
    """0.1 + 0.2 and 0.3 are different probabilities; a detour through logs would merge them."""
    p = np.array([[0.30000000000000004, 0.5, 0.2], [0.3, 0.5, 0.2]])
    preds = Predictions.from_probs(p)
    assert preds.values is p or np.array_equal(preds.values, p)
    assert preds.probs.tolist() == p.tolist()


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_binary_models_give_one_column(shape: tuple[int, ...]) -> None:
    p = Predictions.from_probs(np.array([0.2, 0.9, 0.5]).reshape(shape), [0, 1, 1])
    assert (p.n, p.k) == (3, 2)
    assert p.prediction.tolist() == [0, 1, 0]
    np.testing.assert_allclose(p.confidence, [0.8, 0.9, 0.5])
    z = Predictions.from_logits(np.array([-2.0, 3.0, 0.0]).reshape(shape), [0, 1, 1])
    np.testing.assert_allclose(z.probs[:, 1], 1 / (1 + np.exp([2.0, -3.0, 0.0])))


def test_logits_have_a_samples_axis() -> None:
    one, many = (
        Predictions.from_logits(np.zeros((4, 3))),
        Predictions.from_samples(np.zeros((5, 4, 3))),
    )
    assert (one.logits.shape, many.logits.shape) == ((1, 4, 3), (5, 4, 3))
    assert (one.samples, many.samples) == (1, 5)
    assert one.probs.shape == many.probs.shape == (4, 3)


def test_mean_probability_decides() -> None:
    """One member is very sure of class 0, two lean to class 1: the mean probability says 0."""
    preds = Predictions.from_samples(np.array([[[9.0, 0.0]], [[0.0, 0.2]], [[0.0, 0.2]]]), [0])
    assert preds.prediction.tolist() == [0]


@pytest.mark.parametrize(
    "rows", [slice(1, 3), [1, 2], np.array([False, True, True])], ids=["slice", "list", "mask"]
)
def test_rows_can_be_chosen(rows: Any) -> None:
    columns = {"ids": ["a", "b", "c"], "group": [1, 1, 2], "weight": [1.0, 2.0, 3.0]}
    part = Predictions.from_logits(np.eye(3), [0, 1, 1], **columns)[rows]
    assert part.n == len(part) == 2
    assert part.ids.tolist() == ["b", "c"]
    assert part.group.tolist() == [1, 2]
    assert part.weight.tolist() == [2, 3]
    assert part.labels.tolist() == [1, 1]
    assert part.correct.tolist() == [True, False]
    sampled = Predictions.from_samples(np.zeros((4, 3, 2)), [0, 1, 1])[rows]
    assert sampled.values.shape == (4, 2, 2)


def test_top_label_only() -> None:
    preds = Predictions.from_confidence([0.9, 0.4], [1, 0], prediction=["cat", "dog"], k=10)
    assert preds.confidence.tolist() == [0.9, 0.4]
    assert preds.correct.tolist() == [True, False]
    assert preds.prediction.tolist() == ["cat", "dog"]
    assert hs.accuracy(preds) == 0.5
    assert hs.scores.log_max_prob(preds) == pytest.approx(np.log([0.9, 0.4]))


def test_labels_may_be_any_whole_numbers() -> None:
    for dtype in (np.int8, np.uint8, np.int16, np.uint64, bool):
        assert Predictions.from_logits(np.eye(2), np.array([0, 1], dtype=dtype)).correct.all()


def test_missing_classes_do_not_change_k() -> None:
    assert Predictions.from_logits(np.zeros((2, 5)), [0, 0]).k == 5


def test_float16_is_computed_in_float64() -> None:
    z = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float16)
    np.testing.assert_allclose(
        hs.losses.nll(Predictions.from_logits(z, [0] * 50)),
        hs.losses.nll(Predictions.from_logits(z.astype(np.float64), [0] * 50)),
        rtol=1e-12,
    )


class Tensor:
    """Like a tensor that wants a gradient: an array only after detach()."""

    def __init__(self, values: Any):
        self.values = np.asarray(values)

    def detach(self) -> Any:
        return self.values


class Frame:
    """Like a column of a table: has `__array__`."""

    def __init__(self, values: Any):
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values.astype(dtype) if dtype else self.values


@pytest.mark.parametrize("wrap", [list, tuple, np.array, Tensor, Frame])
def test_anything_with_an_array_inside(wrap: Any) -> None:
    assert Predictions.from_logits(wrap([[1.0, 2.0]]), wrap([1])).correct.all()
    assert hs.auroc(hs.tally(wrap([0.2, 0.9]), correct=wrap([0, 1]))) == 1


@pytest.mark.parametrize(
    ("preds", "text"),
    [
        (
            Predictions.from_logits(np.eye(2), [0, 0]),
            "<Predictions: n=2, k=2, logits, accuracy 0.5>",
        ),
        (
            Predictions.from_samples(np.zeros((5, 1, 2))),
            "<Predictions: n=1, k=2, 5 samples of logits, no labels>",
        ),
        (
            Predictions.from_confidence([0.5] * 1200, [1] * 1200),
            "<Predictions: n=1,200, k=None, confidence, accuracy 1>",
        ),
    ],
    ids=["logits", "samples", "confidence"],
)
def test_repr(preds: Predictions, text: str) -> None:
    assert repr(preds) == text


class TestOutcomes:
    """Unsorted rows with identity."""

    def test_tally(self) -> None:
        o = hs.Outcomes([0.1, 0.9], loss=[2.0, 1.0], weight=[1.0, 3.0])
        assert o.tally().total == 2.5  # weights of mean 1
        assert len(o) == 2

    def test_rows_stay_aligned(self) -> None:
        o = hs.Outcomes([0.1, 0.9, 0.5], correct=[0, 1, 1], id=["x", "y", "z"], group=[1, 2, 2])
        part = o[o.group == 2]
        assert part.id.tolist() == ["y", "z"]
        assert part.score.tolist() == [0.9, 0.5]
        assert part.correct.tolist() == [True, True]


@pytest.mark.parametrize("k", [2, 10, 63, 64, 200])
@pytest.mark.parametrize("logits", [True, False])
def test_columns_of_few_and_of_many_classes(k: int, logits: bool) -> None:
    """Few classes are turned; ties go to the first class either way."""
    rng = np.random.default_rng(k)
    z, y = rng.normal(size=(500, k)).round(1), rng.integers(0, k, 500)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    c = (hs.Predictions.from_logits(z, y) if logits else hs.Predictions.from_probs(p, y)).columns
    row, rest = np.arange(500), np.sort(p, axis=1)
    assert c.prediction.tolist() == (z if logits else p).argmax(axis=1).tolist()
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    close(c.max_prob, p.max(axis=1))
    close(c.entropy, np.abs(-(p * np.log(p)).sum(axis=1)))
    close(c.margin, rest[:, -1] - rest[:, -2])
    close(c.nll, -np.log(p[row, y]))
    close(c.brier, ((p - np.eye(k)[y]) ** 2).sum(axis=1))


def test_one_pass_serves_all_scores_and_losses() -> None:
    preds = Predictions.from_logits([[2.0, 0.0], [0.0, 1.0]], [0, 0])
    columns = preds.columns
    assert hs.scores.entropy(preds) is not None
    assert hs.losses.nll(preds) is columns.nll
    assert hs.scores.max_prob(preds) is columns.max_prob


def test_predictions_load_neither_frames_nor_tallies() -> None:
    code = "import sys; from howsure.predictions import Predictions; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = ("howsure.tallies", "howsure.predictions.columns", "howsure.predictions.frames")
    assert not set(run.stdout.split()) & {*rooms, "howsure.predictions.images"}
