"""Ensembles of networks and of states of one network."""

import copy

import numpy as np
import pytest

import howsure as hs
from howsure import InputError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

X, Y = (
    torch.randn(6, 4, generator=torch.Generator().manual_seed(0)),
    torch.tensor([0, 1, 2, 0, 1, 2]),
)


def networks(n=3):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return [nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)) for _ in range(n)]


def test_members_are_the_single_answers():
    models = networks()
    preds = hs.torch.ensemble(models, [(X, Y), (X, Y)])
    single = [hs.torch.collect(model, [(X, Y), (X, Y)]).values for model in models]
    assert np.array_equal(preds.values, single)
    assert all(model.training for model in models)


def test_the_loader_is_run_once():
    assert hs.torch.ensemble(networks(), iter([(X, Y), (X, Y)])).n == 12


def test_probabilities():
    models = [nn.Sequential(model, nn.Softmax(1)) for model in networks()]
    assert hs.torch.ensemble(models, [(X, Y)], outputs="probs").kind == "probs"


def test_members_must_know_the_same_classes():
    with pytest.raises(InputError, match=r"different shapes, \[\(6, 2\), \(6, 3\)\]"):
        hs.torch.ensemble([nn.Linear(4, 3), nn.Linear(4, 2)], [(X, Y)])


@pytest.mark.parametrize("models", [[], nn.Linear(4, 3)])
def test_no_list_of_models(models):
    with pytest.raises(InputError, match="at least one"):
        hs.torch.ensemble(models, [(X, Y)])


def save(models, folder, suffix):
    paths = [folder / f"{i}{suffix}" for i in range(len(models))]
    for model, path in zip(models, paths, strict=True):
        if suffix == ".safetensors":
            pytest.importorskip("safetensors.torch").save_file(model.state_dict(), path)
        else:
            torch.save(model.state_dict(), path)
    return paths


@pytest.mark.parametrize("suffix", ["", ".pt", ".safetensors"])
def test_states_are_the_members_and_the_model_stays(tmp_path, suffix):
    models = networks()
    states = save(models, tmp_path, suffix) if suffix else [m.state_dict() for m in models]
    model = networks(1)[0]
    before = copy.deepcopy(model.state_dict())
    preds = hs.torch.snapshot_ensemble(model, states, [(X, Y), (X, Y)])
    assert np.array_equal(preds.values, hs.torch.ensemble(models, [(X, Y), (X, Y)]).values)
    assert np.array_equal(preds.labels, np.tile(Y, 2))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.training


def test_a_checkpoint_with_more_in_it(tmp_path):
    model = networks(1)[0]
    torch.save({"epoch": 3, "model": model.state_dict()}, tmp_path / "a.pt")
    preds = hs.torch.snapshot_ensemble(model, [tmp_path / "a.pt"], [(X, Y)], key="model")
    assert np.array_equal(preds.values[0], hs.torch.collect(model, [(X, Y)]).values)


def test_states_are_mapped_and_written(tmp_path):
    models = networks()
    states = [m.state_dict() for m in models]
    preds = hs.torch.snapshot_ensemble(
        models[0], states, [(X, Y)], memory=1, path=tmp_path / "s.npz"
    )
    assert np.array_equal(hs.read(tmp_path / "s.npz", mc=True).values, preds.values)


def test_a_loader_that_shuffles_is_found_out():
    data = torch.utils.data.TensorDataset(X.repeat(10, 1), Y.repeat(10))
    shuffled = torch.utils.data.DataLoader(
        data, batch_size=6, shuffle=True, generator=torch.Generator().manual_seed(0)
    )
    model = networks(1)[0]
    with pytest.raises(InputError, match="another order, the second time; use shuffle=False"):
        hs.torch.snapshot_ensemble(model, [model.state_dict()] * 2, shuffled)


class Strange:
    """What a pickle could smuggle in."""


@pytest.mark.parametrize(
    ("content", "key", "message"),
    [
        (Strange(), None, "a.pt is not a checkpoint of tensors"),
        (
            {"epoch": 3, "model": {}},
            None,
            "a.pt holds the keys 'epoch', 'model'; a state dict of tensors is needed",
        ),
        ({"epoch": 3}, "model", "a.pt has no entry 'model'; there is 'epoch'"),
        ({"0.weight": torch.zeros(3, 4)}, None, "a.pt does not fit the model: "),
        (torch.zeros(3), None, "a.pt holds Tensor"),
    ],
)
def test_files_that_are_no_checkpoints(tmp_path, content, key, message):
    torch.save(content, tmp_path / "a.pt")
    model = networks(1)[0]
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(InputError) as e:
        hs.torch.snapshot_ensemble(model, [tmp_path / "a.pt"], [(X, Y)], key=key)
    assert message in str(e.value)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_other_bad_input(tmp_path):
    model = networks(1)[0]
    with pytest.raises(InputError, match="checkpoints is empty"):
        hs.torch.snapshot_ensemble(model, [], [(X, Y)])
    with pytest.raises(InputError, match="loader is an iterator, which can be run once only"):
        hs.torch.snapshot_ensemble(model, [model.state_dict()], iter([(X, Y)]))
    with pytest.raises(InputError, match=r"none\.pt is not a checkpoint"):
        hs.torch.snapshot_ensemble(model, [tmp_path / "none.pt"], [(X, Y)])
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    pytest.importorskip("safetensors")
    with pytest.raises(InputError, match=r"bad\.safetensors is not a checkpoint"):
        hs.torch.snapshot_ensemble(model, [tmp_path / "bad.safetensors"], [(X, Y)])
