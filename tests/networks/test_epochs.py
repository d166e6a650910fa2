"""The epoch log: right numbers, whole files, and no trace in the training."""

import csv
import json

import numpy as np
import pytest

import howsure as hs
from howsure import InputError

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402


def train(digits, data, watch, epochs=3):
    """Training with whatever looks on; the random state is the global one."""
    torch.manual_seed(5)
    model = digits.build()
    log = watch(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for x, y in torch.utils.data.DataLoader(data["train"], batch_size=50, shuffle=True):
            optimiser.zero_grad()
            F.cross_entropy(model.train()(x), y).backward()
            optimiser.step()
        if log is not None:
            log.record(rate=0.1)
    return model, log


def loaders(data):
    return {
        name: torch.utils.data.DataLoader(data[name], 100, shuffle=True)
        for name in ("train", "val")
    }


def test_a_watched_training_is_the_same_training(digits, data):
    with torch.random.fork_rng(devices=[]):
        alone, _ = train(digits, data, lambda _: None)
        show_progress, log = train(
            digits, data, lambda model: hs.torch.EpochLog(model, loaders(data))
        )
    assert all(
        torch.equal(a, b)
        for a, b in zip(alone.parameters(), show_progress.parameters(), strict=True)
    )
    assert [(row["epoch"], row["split"]) for row in log.rows] == [
        (e, s) for e in (1, 2, 3) for s in ("train", "val")
    ]
    assert log.rows[-1]["nll"] < log.rows[1]["nll"]


def test_rows_are_the_metrics(trained, data, loader):
    log = hs.torch.EpochLog(trained, {"test": loader})
    (row,) = log.record(rate=0.5)
    preds = hs.torch.collect(trained, loader)
    t = hs.tally(hs.scores.max_prob(preds), correct=preds.correct)
    expected = {
        "n": preds.n,
        "accuracy": hs.accuracy(preds),
        "nll": hs.nll(preds),
        "ece": hs.ece(t),
        "aurc": hs.aurc(t),
    }
    assert row == {"epoch": 1, "split": "test", "rate": 0.5, **expected}


def test_files_hold_all_rows(trained, loader, tmp_path):
    for name in ("log.csv", "log.json"):
        log = hs.torch.EpochLog(trained, {"test": loader}, path=tmp_path / name)
        log.record()
        log.record(note="last")
    rows = json.loads((tmp_path / "log.json").read_text())
    assert [row["epoch"] for row in rows] == [1, 2]
    assert rows[1]["note"] == "last"
    with (tmp_path / "log.csv").open() as file:
        table = list(csv.DictReader(file))
    assert float(table[1]["aurc"]) == rows[1]["aurc"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv", "log.json"]


def test_infinity_is_null_in_json(tmp_path):
    log = hs.torch.EpochLog(torch.nn.Linear(2, 2), {}, path=tmp_path / "a.json")
    log.add({"val": hs.Predictions.from_probs(np.array([[1.0, 0.0]]), [1])})
    assert json.loads((tmp_path / "a.json").read_text())[0]["nll"] is None


def test_a_path_that_cannot_be(tmp_path):
    with pytest.raises(InputError, match=r"log\.txt must end in \.csv or \.json"):
        hs.torch.EpochLog(torch.nn.Linear(2, 2), {}, path=tmp_path / "log.txt")
    with pytest.raises(InputError, match="does not exist; make it first"):
        hs.torch.EpochLog(torch.nn.Linear(2, 2), {}, path=tmp_path / "no" / "log.csv")
