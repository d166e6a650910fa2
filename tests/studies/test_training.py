"""The loop: same numbers under the same seed, also after a kill."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("PIL")

from studies.batches import (  # noqa: E402
    Normaliser,
    augmented,
    shift_and_flip,
)
from studies.checkpoints import Checkpoints  # noqa: E402
from studies.data import load  # noqa: E402
from studies.extras import distances  # noqa: E402
from studies.objective import objective  # noqa: E402
from studies.optimisation import learning_rate, plateaus  # noqa: E402
from studies.runner import carry_out  # noqa: E402
from studies.runs import Run  # noqa: E402
from studies.settings import Settings  # noqa: E402
from studies.store import Store  # noqa: E402
from studies.training import Task, train  # noqa: E402

QUICK = Settings(data="digits", network="resnet-8", train_size=300, val_size=100, epochs=3, batch=64, dropout=0.3)


def weights(settings, folder, stop_after=None):
    """Train; raise after some epochs as a kill would."""

    def report(row):
        if row["epoch"] == stop_after:
            raise KeyboardInterrupt

    task = Task.of(settings, load("digits", Path()))
    network, _ = train(settings, task, Checkpoints(folder), report)
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def test_same_seed_same_weights_other_seed_other_weights(tmp_path):
    first, again = weights(QUICK, tmp_path / "a"), weights(QUICK, tmp_path / "b")
    assert torch.equal(first, again)
    assert not torch.equal(first, weights(replace(QUICK, seed=1), tmp_path / "c"))


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_an_interrupted_run_ends_with_the_same_weights(tmp_path, optimiser):
    settings = replace(QUICK, optimiser=optimiser, lr=0.01)
    with pytest.raises(KeyboardInterrupt):
        weights(settings, tmp_path / "a", stop_after=2)
    assert torch.equal(weights(settings, tmp_path / "a"), weights(settings, tmp_path / "b"))


def test_a_claimed_run_is_left_to_its_owner(tmp_path):
    run, store = Run("x", QUICK), Store(tmp_path)
    with store.claim(run) as mine, store.claim(run) as second:
        assert mine
        assert not second
    with store.claim(run) as free:
        assert free


def test_a_finished_run_leaves_its_files(tmp_path):
    store = Store(tmp_path)
    run = Run("x", QUICK, ("mc", "course", "boundary", "dropout_variance"))
    carry_out([run], Path(), store)
    assert store.finished(run)
    with np.load(store.predictions(QUICK), allow_pickle=False) as file:
        assert file["val_logits"].shape == (100, 10)
        assert file["test_logits"].dtype == np.float16
        assert Settings.from_json(str(file["settings"])) == QUICK
        assert len(file["history_val_nll"]) == QUICK.epochs
        final_error = (file["test_logits"].argmax(1) != file["test_labels"]).mean()
    with np.load(store.predictions(QUICK, "mc"), allow_pickle=False) as file:
        assert file["mc_test_logits"].shape == (25, 597, 10)
        assert file["mc_test_logits"].std(0).max() > 0
    with np.load(store.predictions(QUICK, "course"), allow_pickle=False) as file:
        assert 1 - file["test_correct"][-1].mean() == pytest.approx(final_error, abs=0.01)
    with np.load(store.predictions(QUICK, "dropout_variance"), allow_pickle=False) as file:
        small, large = (file[f"test_dropout_variance_{p}"].mean() for p in (0.002, 0.05))
        assert 0 < small < large


def test_distances_are_those_of_the_library_in_the_order_of_the_images():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    images = np.random.default_rng(0).integers(0, 256, (700, 3, 2, 2)).astype(np.uint8)
    normalise = Normaliser.of(images)
    found = distances(network, {"test": (images, np.zeros(700, int))}, normalise)["test_boundary_distance"]
    z, w = network(normalise(torch.from_numpy(images))).detach(), network[1].weight.detach()
    exact = (z[:, 0] - z[:, 1]).abs() / (w[0] - w[1]).norm()
    np.testing.assert_allclose(found, exact.numpy(), rtol=1e-5)


def test_augmentation_shifts_by_at_most_an_eighth_and_is_seeded():
    image = torch.zeros(100, 1, 32, 32)
    image[:, :, 16, 16] = 1
    moved = shift_and_flip(image, torch.Generator().manual_seed(0))
    row, column = (moved[:, 0].flatten(1).argmax(1) // 32, moved[:, 0].flatten(1).argmax(1) % 32)
    assert moved.sum() == 100
    assert (row - 16).abs().max() == 4
    assert set(column.tolist()) == set(range(11, 21))
    assert torch.equal(moved, shift_and_flip(image, torch.Generator().manual_seed(0)))


def test_masks_move_with_their_images():
    generator = torch.Generator().manual_seed(0)
    image = torch.arange(2 * 64).reshape(2, 1, 8, 8)
    for _ in range(10):
        x, y = augmented(image, image[:, 0], generator)
        assert torch.equal(x[:, 0], y)


def test_objective_by_hand():
    logits, label = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
    p = torch.softmax(logits, 1)[0]
    entropy = -(p * p.log()).sum()
    penalised = objective(logits, label, replace(QUICK, confidence_penalty=0.1))
    smoothed = objective(logits, label, replace(QUICK, label_smoothing=0.2))
    assert penalised.item() == pytest.approx((-p[0].log() - 0.1 * entropy).item())
    assert smoothed.item() == pytest.approx((-0.9 * p[0].log() - 0.1 * p[1].log()).item())


def test_rates_by_hand():
    steps = replace(QUICK, epochs=4, lr=0.1)
    assert [learning_rate(steps, e, []) for e in range(4)] == pytest.approx([0.1, 0.1, 0.01, 0.001])
    wide = replace(QUICK, epochs=10, lr=1.0, schedule="wide_steps")
    assert [learning_rate(wide, e, []) for e in (2, 3, 6, 8)] == pytest.approx([1, 0.2, 0.04, 0.008])
    assert plateaus([1.0] + [2.0] * 10) == 0
    assert plateaus([1.0] + [2.0] * 22) == 2
    with pytest.raises(ValueError, match="'linear' is unknown"):
        learning_rate(replace(QUICK, schedule="linear"), 0, [])
