"""The same numbers as torchmetrics where it is right, and why where it differs."""

from typing import Any

import numpy as np
import pytest

import howsure as hs

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
theirs = pytest.importorskip("torchmetrics.functional.classification")


def data(n: int = 2000) -> tuple[Any, Any, hs.Predictions]:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(n, 5)) * 2, rng.integers(0, 5, n)
    preds = hs.Predictions.from_logits(z, y)
    return torch.tensor(preds.probs), torch.tensor(y), preds


@pytest.mark.parametrize(("norm", "metric"), [("l1", hs.ece), ("max", hs.mce)])
@pytest.mark.parametrize("m", [10, 15])
def test_calibration_error(norm: Any, metric: Any, m: int) -> None:
    p, y, preds = data()
    expected = theirs.multiclass_calibration_error(p, y, num_classes=5, n_bins=m, norm=norm).item()
    t = hs.tally(preds.confidence, correct=preds.correct)
    assert metric(t, hs.equal_range(m)) == pytest.approx(
        expected, abs=1e-6
    )  # they keep sums in float32


def test_auroc_and_average_precision() -> None:
    _, _, preds = data()
    right, score = torch.tensor(preds.correct.astype(int)), torch.tensor(preds.confidence)
    t = hs.tally(preds.confidence, correct=preds.correct)
    assert hs.auroc(t) == pytest.approx(theirs.binary_auroc(score, right).item(), abs=1e-6)
    assert hs.aupr(t, "success") == pytest.approx(
        theirs.binary_average_precision(score, right).item(), abs=1e-6
    )


def test_accuracy() -> None:
    p, y, preds = data()
    expected = theirs.multiclass_accuracy(p, y, num_classes=5, average="micro").item()
    assert hs.accuracy(preds) == pytest.approx(expected, abs=1e-6)


def test_edges_differ() -> None:
    """A confidence on an edge, 0.5 of two bins: theirs is [lo, hi), ours is (lo, hi] as in the
    papers.
    """
    p, y = torch.tensor([[0.5, 0.5, 0.0]] * 2 + [[0.75, 0.25, 0.0]]), torch.tensor([0, 0, 0])
    expected = theirs.multiclass_calibration_error(p, y, num_classes=3, n_bins=2, norm="max").item()
    t = hs.tally([0.5, 0.5, 0.75], correct=[1, 1, 1])
    assert hs.mce(t, hs.equal_range(2)) == pytest.approx(0.5)  # 0.5 alone in the first bin
    assert expected == pytest.approx(1 - (0.5 + 0.5 + 0.75) / 3)  # all three in the second


def test_values_outside_0_1_are_guessed_to_be_logits_there() -> None:
    """One value outside [0, 1] changes what all others mean; we ask which of the two they are."""
    score, right = torch.tensor([0.2, 0.8, 1.5]), torch.tensor([0, 1, 1])
    assert 0 < theirs.binary_calibration_error(score, right, n_bins=2).item() < 1
    with pytest.raises(hs.InputError, match="outside"):
        hs.Predictions.from_probs(score.numpy(), right.numpy())
