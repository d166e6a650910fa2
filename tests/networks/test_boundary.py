"""Distance to the decision boundary: exact where that is known."""

from math import inf

import numpy as np
import pytest

import howsure as hs
from howsure import InputError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

DUAL = {1: inf, 2: 2, 3: 1.5, inf: 1}


def linear(k=5, d=7):
    generator = torch.Generator().manual_seed(1)
    model = nn.Linear(d, k, dtype=torch.float64)
    with torch.no_grad():
        model.weight.copy_(torch.randn(k, d, generator=generator, dtype=torch.float64))
        model.bias.copy_(torch.randn(k, generator=generator, dtype=torch.float64))
    return model, torch.randn(30, d, generator=generator, dtype=torch.float64)


def top_two(z):
    order = np.argsort(-z, axis=1, kind="stable")
    return order[:, 0], order[:, 1]


@pytest.mark.parametrize("norm", DUAL)
def test_closed_form_of_a_linear_model(norm):
    model, x = linear()
    w, z = model.weight.detach().numpy(), model(x).detach().numpy()
    i, j = top_two(z)
    row = np.arange(len(z))
    expected = (z[row, i] - z[row, j]) / np.linalg.norm(w[i] - w[j], ord=DUAL[norm], axis=1)
    assert hs.torch.boundary_distance(model, [x[:12], x[12:]], norm=norm) == pytest.approx(
        expected, abs=1e-9
    )


def test_a_step_of_that_length_reaches_the_boundary():
    model, x = linear()
    d = torch.as_tensor(hs.torch.boundary_distance(model, [x]))
    i, j = map(torch.as_tensor, top_two(model(x).detach().numpy()))
    way = (model.weight[j] - model.weight[i]).detach()
    there = model(x + way / way.norm(dim=1, keepdim=True) * d[:, None])
    assert there.gather(1, i[:, None]).detach().numpy() == pytest.approx(
        there.gather(1, j[:, None]).detach().numpy()
    )


def test_softmax_outputs():
    """grad p_i = p_i (w_i - Σ p_k w_k), whether the model or the option makes the probabilities."""
    model, x = linear()
    w, p = model.weight.detach().numpy(), model(x).softmax(1).detach().numpy()
    i, j = top_two(p)
    row = np.arange(len(p))
    grad = lambda c: p[row, c][:, None] * (w[c] - p @ w)
    expected = (p[row, i] - p[row, j]) / np.linalg.norm(grad(i) - grad(j), axis=1)
    assert hs.torch.boundary_distance(model, [x], outputs="probs") == pytest.approx(
        expected, rel=1e-9
    )
    made = nn.Sequential(model, nn.Softmax(1))
    assert hs.torch.boundary_distance(made, [x], outputs="probs") == pytest.approx(
        expected, rel=1e-9
    )


def test_batch_norm_and_dropout_are_in_evaluation_mode():
    """A sample alone is as far as in a batch, and nothing about the model changes."""
    model = nn.Sequential(
        nn.Linear(7, 16), nn.BatchNorm1d(16), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(16, 5)
    )
    model = model.double().train()
    running = model[1].running_mean.clone()
    x = linear()[1]
    whole = hs.torch.boundary_distance(model, [x])
    assert hs.torch.boundary_distance(model, list(x.split(1))) == pytest.approx(whole, rel=1e-9)
    assert torch.equal(model[1].running_mean, running)
    assert model.training
    assert all(p.grad is None for p in model.parameters())


def test_it_works_where_gradients_are_off():
    model, x = linear()
    with torch.inference_mode():
        inside = hs.torch.boundary_distance(model, [x.clone()])
    with torch.no_grad():
        assert np.array_equal(hs.torch.boundary_distance(model, [x]), inside)


def test_a_first_layer_may_work_in_place():
    x = linear()[1]
    before = x.clone()
    model = nn.Sequential(nn.ReLU(inplace=True), linear()[0])
    assert np.isfinite(hs.torch.boundary_distance(model, [x])).all()
    assert torch.equal(x, before)


def test_edges():
    model, x = linear(k=2)
    with torch.no_grad():
        model.weight[1] = model.weight[0]
    assert (hs.torch.boundary_distance(model, [x]) == inf).all()
    with torch.no_grad():
        model.bias[1] = model.bias[0]
    assert (hs.torch.boundary_distance(model, [x]) == 0).all()


def test_one_logit():
    model, x = linear(k=1)
    expected = np.abs(model(x).detach().numpy()[:, 0]) / np.linalg.norm(
        model.weight.detach().numpy()
    )
    assert hs.torch.boundary_distance(model, [(x, torch.zeros(30))]) == pytest.approx(expected)


def test_it_ranks_the_errors_of_a_real_network(trained, loader):
    preds = hs.torch.collect(trained, loader)
    assert (
        hs.auroc(hs.tally(hs.torch.boundary_distance(trained, loader), correct=preds.correct)) > 0.7
    )


@pytest.mark.parametrize(
    ("batch", "options", "message"),
    [
        (
            torch.zeros(2, 7, dtype=torch.long),
            {},
            "the inputs are torch.int64; a distance needs one tensor of floats",
        ),
        ({"a": torch.zeros(2, 7)}, {}, "the inputs are dict; a distance needs one tensor"),
        (torch.zeros(2, 7), {"norm": 0.5}, "norm is 0.5; a number of at least 1"),
        (torch.zeros(2, 7), {"norm": float("nan")}, "norm is nan"),
    ],
)
def test_bad_input(batch, options, message):
    with pytest.raises(InputError) as e:
        hs.torch.boundary_distance(nn.Linear(7, 3), [batch], **options)
    assert message in str(e.value)


def test_probabilities_called_logits_and_an_empty_loader():
    model = nn.Sequential(nn.Linear(7, 3), nn.Softmax(1))
    with pytest.raises(InputError, match="so the model returns probabilities"):
        hs.torch.boundary_distance(model, [torch.randn(4, 7)])
    with pytest.raises(InputError, match="the loader gave no batch"):
        hs.torch.boundary_distance(model, [])
