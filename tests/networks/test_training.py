"""Training losses: hand-worked values, limits, and what they do to a real network."""

import copy

import numpy as np
import pytest

import howsure as hs
from howsure import InputError

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402


def batch(n=40, k=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, k, generator=generator, dtype=torch.float64)
    return z, torch.randint(k, (n,), generator=generator)


def test_label_smoothing_by_hand():
    z, y = batch()
    target = 0.9 * np.eye(4)[y] + 0.1 / 4
    expected = -(target * F.log_softmax(z, 1).numpy()).sum(axis=1).mean()
    assert float(hs.torch.label_smoothing(z, y, epsilon=0.1)) == pytest.approx(expected)
    assert float(hs.torch.label_smoothing(z, y, epsilon=0)) == pytest.approx(
        float(F.cross_entropy(z, y))
    )


def test_confidence_penalty_by_hand():
    """A uniform answer has entropy log k, so the penalty takes beta log k away."""
    z, y = torch.zeros(3, 4), torch.tensor([0, 1, 2])
    assert float(hs.torch.confidence_penalty(z, y, beta=0.5)) == pytest.approx(0.5 * np.log(4))
    z, y = batch()
    entropy = -hs.scores.neg_entropy(hs.Predictions.from_logits(z.numpy()))
    expected = float(F.cross_entropy(z, y)) - 0.1 * entropy.mean()
    assert float(hs.torch.confidence_penalty(z, y)) == pytest.approx(expected)


def test_the_penalty_is_finite_for_sure_answers():
    z = torch.tensor([[1e4, 0.0]], requires_grad=True)
    loss = hs.torch.confidence_penalty(z, torch.tensor([0]))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()


def test_narrow_ranks_are_the_aurc_of_the_batch():
    z, y = batch()
    preds = hs.Predictions.from_logits(z.numpy(), y.numpy())
    expected = hs.aurc(hs.tally(hs.scores.max_prob(preds), loss=hs.losses.nll(preds)))
    assert float(hs.torch.selective_loss(z, y, width=1e-7)) == pytest.approx(expected, rel=1e-6)


def test_wide_ranks_are_a_multiple_of_cross_entropy():
    (a, y), (b, _) = batch(), batch(seed=1)
    ratio = [
        float(hs.torch.selective_loss(z, y, width=1e9) / F.cross_entropy(z, y)) for z in (a, b)
    ]
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-6)


def test_gradients_of_the_surrogate():
    z, y = batch(n=6)
    assert torch.autograd.gradcheck(lambda x: hs.torch.selective_loss(x, y), z.requires_grad_())


def test_doubting_an_error_pays():
    """Of two answers, one right and one wrong, the loss falls where the wrong one becomes the less
    trusted.
    """
    y = torch.tensor([0, 1])
    surely_wrong, hardly_wrong = (
        torch.tensor([[1.0, 0.0], [2.0, 0.0]]),
        torch.tensor([[1.0, 0.0], [0.5, 0.0]]),
    )
    assert hs.torch.selective_loss(hardly_wrong, y) < hs.torch.selective_loss(surely_wrong, y)


def test_a_few_steps_lower_the_aurc_that_they_are_taken_for(trained, data):
    model = copy.deepcopy(trained)
    x, y = data["val"].tensors
    before = hs.torch.collect(model, [(x, y)])
    optimiser = torch.optim.SGD(model[-1].parameters(), lr=0.05)
    for _ in range(30):
        optimiser.zero_grad()
        hs.torch.selective_loss(model.eval()(x), y).backward()
        optimiser.step()
    after = hs.torch.collect(model, [(x, y)])
    score = lambda p: hs.aurc(hs.tally(hs.scores.max_prob(p), correct=p.correct))
    assert score(after) < score(before)


@pytest.mark.parametrize(
    "loss",
    [
        lambda z, y: hs.torch.label_smoothing(z, y, epsilon=0.2),
        lambda z, y: hs.torch.confidence_penalty(z, y, beta=0.5),
    ],
)
def test_regularised_networks_are_less_sure(digits, trained, data, loader, loss):
    made = hs.torch.collect(digits.fit(digits.build(), data["train"], loss), loader)
    plain = hs.torch.collect(trained, loader)
    assert made.confidence.mean() < plain.confidence.mean()
    assert hs.accuracy(made) > 0.8


def test_mixup_by_hand():
    x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([0, 1, 2])
    made, soft = hs.torch.mixup(x, y, classes=3, rng=np.random.default_rng(3), alpha=0.4)
    rng = np.random.default_rng(3)
    share, other = rng.beta(0.4, 0.4), rng.permutation(3)
    assert made[:, 0].numpy() == pytest.approx(share * np.arange(3) + (1 - share) * other)
    assert soft.numpy() == pytest.approx(share * np.eye(3) + (1 - share) * np.eye(3)[other])


def test_mixup_trains(digits, data, loader):
    rng = np.random.default_rng(0)
    model, (x, y) = digits.build(), data["train"].tensors
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        mixed, soft = hs.torch.mixup(x, y, classes=10, rng=rng)
        optimiser.zero_grad()
        F.cross_entropy(model(mixed), soft).backward()
        optimiser.step()
    assert hs.accuracy(hs.torch.collect(model, loader)) > 0.8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda z, y: hs.torch.label_smoothing(z, y, epsilon=1.5),
            "epsilon is 1.5; a share from 0 to 1",
        ),
        (lambda z, y: hs.torch.confidence_penalty(z, y, beta=-1), "beta is -1"),
        (lambda z, y: hs.torch.selective_loss(z, y, width=0), "width is 0; a number above 0"),
        (
            lambda z, y: hs.torch.mixup(z, y, classes=4, rng=np.random.default_rng(0), alpha=0),
            "alpha is 0",
        ),
        (
            lambda z, y: hs.torch.mixup(z, y[:3], classes=4, rng=np.random.default_rng(0)),
            "inputs has 40 rows, labels has 3",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError) as e:
        call(*batch())
    assert message in str(e.value)
