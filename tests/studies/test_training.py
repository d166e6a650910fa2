"""The loop: same numbers under the same seed, also after a kill."""

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("PIL")
hs = pytest.importorskip("howsure")

from studies.batches import (  # noqa: E402
    Normaliser,
    augmented,
    shift_and_flip,
)
from studies.checkpoints import Checkpoints  # noqa: E402
from studies.data import load  # noqa: E402
from studies.extras import EXTRAS, distances  # noqa: E402
from studies.objective import in_epoch, objective  # noqa: E402
from studies.optimisation import learning_rate, plateaus  # noqa: E402
from studies.predictions import rounded, write  # noqa: E402
from studies.runner import carry_out  # noqa: E402
from studies.runs import Run  # noqa: E402
from studies.settings import Settings  # noqa: E402
from studies.shifts import DARK, shifted  # noqa: E402
from studies.shifts import NAMES as SHIFTS  # noqa: E402
from studies.store import Store  # noqa: E402
from studies.tables.mc_temperature import mc_arrays  # noqa: E402
from studies.training import PRECISIONS, Task, logits_of, new_network, train  # noqa: E402

from studies import training  # noqa: E402

QUICK = Settings(
    data="digits", network="resnet-8", train_size=300, val_size=100, epochs=3, batch=64, dropout=0.3
)


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


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_a_run_killed_inside_an_epoch_ends_with_the_same_weights(tmp_path, monkeypatch, optimiser):
    """Saved after every batch and killed at the third of the second epoch; dropout and augmentation
    go on as before.
    """
    settings = replace(QUICK, optimiser=optimiser, lr=0.01)
    whole = weights(settings, tmp_path / "b")
    monkeypatch.setattr(training, "INSIDE", -1.0)
    monkeypatch.setattr(training, "objective", killed_at(len_of_epoch=5, batch=8))
    with pytest.raises(KeyboardInterrupt):
        weights(settings, tmp_path / "a")
    assert (tmp_path / "a" / "inside.pt").exists()
    monkeypatch.undo()
    seen: list[int] = []
    monkeypatch.setattr(training, "objective", lambda *args: seen.append(1) or objective(*args))
    assert torch.equal(weights(settings, tmp_path / "a"), whole)
    assert len(seen) == 15 - 7


def killed_at(*, len_of_epoch, batch):
    """The loss until a batch, counted from 1 over all epochs; a kill there. An epoch of QUICK has
    five batches.
    """
    count = 0

    def loss(*args):
        nonlocal count
        count += 1
        if count == batch:
            raise KeyboardInterrupt
        return objective(*args)

    assert -(-QUICK.train_size // QUICK.batch) == len_of_epoch
    return loss


def test_a_claimed_run_is_left_to_its_owner(tmp_path):
    run, store = Run("x", QUICK), Store(tmp_path)
    with store.claim(run) as mine, store.claim(run) as second:
        assert mine
        assert not second
    with store.claim(run) as free:
        assert free


def test_a_finished_run_leaves_its_files(tmp_path):
    store = Store(tmp_path)
    run = Run("x", QUICK, tuple(EXTRAS))
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


def test_passes_drawn_from_features_are_those_of_the_network(tmp_path):
    """One pass is what the network says; dropout passes scatter around it."""
    store, run = Store(tmp_path), Run("x", QUICK, ("features",))
    carry_out([run], Path(), store)
    with np.load(store.predictions(QUICK), allow_pickle=False) as file:
        logits = file["test_logits"].astype(float)
    found = mc_arrays(store, run)
    np.testing.assert_allclose(found["test_logits"].astype(float), logits, atol=0.1)
    assert found["mc_test_logits"].shape == (25, 597, 10)
    np.testing.assert_allclose(found["mc_test_logits"].astype(float).mean(0), logits, atol=1.5)
    assert found["mc_test_logits"].std(0).max() > 0.01


def test_files_are_packed_by_what_they_hold(tmp_path):
    """howsure reads logits, which are deflated; other arrays are packed by bzip2. Equal arrays give
    equal bytes.
    """
    logits, labels = np.eye(3, dtype=np.float16)[[0, 1, 2, 0]], np.array([0, 1, 2, 1])
    write({"test_logits": logits, "test_labels": labels}, tmp_path / "plain.npz")
    write({"test_features": logits}, tmp_path / "features.npz")
    write({"test_features": logits}, tmp_path / "again.npz")
    assert hs.accuracy(hs.read(tmp_path / "plain.npz", split="test")) == 0.75
    with zipfile.ZipFile(tmp_path / "features.npz") as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_BZIP2}
    with np.load(tmp_path / "features.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["test_features"], logits)
    assert (tmp_path / "features.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    assert not list(tmp_path.glob("*.partial.npz"))


def test_rounded_logits_keep_six_digits():
    values = np.array([0.1, -3.3, 17.7, 100.0, 0.0], np.float16)
    np.testing.assert_allclose(rounded(values).astype(float), values.astype(float), rtol=1 / 64)
    assert rounded(values).dtype == np.float16


def test_dice_loss_by_hand():
    """Two pixels, one foreground with p = 0.5 each: 1 - (2 * 0.5 + 1) / (1 + 1 + 1)."""
    logits, labels = torch.zeros(1, 2, 1, 2), torch.tensor([[[1, 0]]])
    assert objective(logits, labels, replace(QUICK, loss="dice")).item() == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="loss 'l2' is unknown"):
        objective(logits, labels, replace(QUICK, loss="l2"))


def test_the_late_selective_loss_begins_in_the_middle():
    late = replace(QUICK, loss="late_selective", epochs=5)
    assert [in_epoch(late, epoch).loss for epoch in range(5)] == ["cross_entropy"] * 3 + [
        "selective"
    ] * 2
    assert in_epoch(QUICK, 0) is QUICK
    assert late.name != replace(late, loss="selective").name


def test_the_selective_loss_is_added_to_cross_entropy():
    from howsure.torch import selective_loss

    logits, labels = (
        torch.randn(8, 3, generator=torch.Generator().manual_seed(0)),
        torch.arange(8) % 3,
    )
    both = objective(logits, labels, replace(QUICK, loss="selective"))
    assert both.item() == pytest.approx(
        (objective(logits, labels, QUICK) + selective_loss(logits, labels)).item()
    )


def test_dropout_in_blocks_is_for_cifar_residual_networks():
    network = new_network(replace(QUICK, block_dropout=0.1), load("digits", Path()))
    assert sum(isinstance(m, torch.nn.Dropout) and m.p == 0.1 for m in network.modules()) == 3
    with pytest.raises(ValueError, match="not for densenet-10"):
        new_network(
            replace(QUICK, network="densenet-10", block_dropout=0.1), load("digits", Path())
        )


@pytest.mark.parametrize("name", SHIFTS)
def test_changed_images(name):
    """Blur keeps the mean, darkness scales it, noise moves each pixel; strength grows with the
    number.
    """
    images = np.random.default_rng(0).integers(60, 180, (4, 3, 32, 32)).astype(np.uint8)
    found = shifted(images, name)
    assert found.shape == images.shape
    assert found.dtype == np.uint8
    assert np.array_equal(found, shifted(images, name))
    kind, level = name.split("_")
    expected = images.mean() * (DARK[int(level) - 1] if kind == "dark" else 1)
    assert found.mean() == pytest.approx(expected, abs=1)
    if level != "1":
        before = shifted(images, f"{kind}_{int(level) - 1}")
        change = lambda a: np.abs(a.astype(float) - images).mean()
        assert change(found) > change(before)


def test_distances_are_those_of_the_library_in_the_order_of_the_images():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    images = np.random.default_rng(0).integers(0, 256, (700, 3, 2, 2)).astype(np.uint8)
    normalise = Normaliser.of(images)
    found = distances(network, {"test": (images, np.zeros(700, int))}, normalise)[
        "test_boundary_distance"
    ]
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
    assert [learning_rate(wide, e, []) for e in (2, 3, 6, 8)] == pytest.approx(
        [1, 0.2, 0.04, 0.008]
    )
    assert plateaus([1.0] + [2.0] * 10) == 0
    assert plateaus([1.0] + [2.0] * 22) == 2
    with pytest.raises(ValueError, match="'linear' is unknown"):
        learning_rate(replace(QUICK, schedule="linear"), 0, [])


def test_mixed_precision_learns_nearly_the_same_and_predicts_in_float32(tmp_path):
    """Same seed, same batches: the losses of the two stay together, and are not equal."""
    task = Task.of(QUICK, load("digits", Path()))
    courses = {}
    for precision in PRECISIONS:
        settings = replace(QUICK, precision=precision)
        network, history = train(
            settings, task, Checkpoints(tmp_path / precision), lambda row: None
        )
        courses[precision] = [row["train_loss"] for row in history]
        assert logits_of(network, task.dataset.test_x[:8], task.normalise).dtype == torch.float32
        assert {p.dtype for p in network.parameters()} == {torch.float32}
    assert courses["bfloat16"] == pytest.approx(courses["float32"], abs=0.1)
    assert courses["bfloat16"] != courses["float32"]


def test_an_unknown_precision_is_refused(tmp_path):
    task = Task.of(QUICK, load("digits", Path()))
    with pytest.raises(
        ValueError, match="precision 'float8' is unknown; use 'float32' or 'bfloat16'"
    ):
        train(replace(QUICK, precision="float8"), task, Checkpoints(tmp_path), lambda row: None)
