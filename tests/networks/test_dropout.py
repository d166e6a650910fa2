"""MC dropout: what varies, what does not, and that both ways of running a pass give the same."""

import copy

import numpy as np
import pytest

import howsure as hs
from howsure import InputError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

X, Y = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3


class Headed(nn.Module):
    """Any head on a linear layer."""

    def __init__(self, forward, *, p=0.5):
        super().__init__()
        self.body, self.drop, self.last, self.ahead = (
            nn.Linear(4, 16),
            nn.Dropout(p),
            nn.Linear(16, 3),
            forward,
        )

    def forward(self, x):
        return self.ahead(self, self.body(x))


def counting(layer):
    """How often a layer has run."""
    seen = []
    layer.register_forward_hook(lambda *_: seen.append(1))
    return seen


def test_passes_vary_and_batch_norm_does_not(trained, loader, monkeypatch):
    monkeypatch.setattr(
        "howsure.torch.sampling.build_tail", lambda *_: None
    )  # all layers in every pass
    model = copy.deepcopy(trained).train()
    normed, running = [], model[1].running_mean.clone()
    model[1].register_forward_hook(lambda _, __, out: normed.append(out.clone()))
    preds = hs.torch.mc_dropout(model, [next(iter(loader))], passes=8)
    assert preds.samples == 8
    assert preds.values.std(axis=0).min() > 0
    assert len(normed) == 8
    assert all(torch.equal(a, normed[0]) for a in normed)
    assert torch.equal(model[1].running_mean, running)
    assert all(module.training for module in model.modules())


def test_a_seed_repeats_and_another_does_not(trained, loader):
    one, same, other = (
        hs.torch.mc_dropout(trained, loader, passes=3, seed=seed).values for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_fewer_passes_are_the_first_of_more(trained, loader):
    few, more = (hs.torch.mc_dropout(trained, loader, passes=n).values for n in (2, 5))
    assert np.array_equal(few, more[:2])


def test_nobody_elses_random_numbers_change(trained, loader):
    before = torch.get_rng_state()
    hs.torch.mc_dropout(trained, loader, passes=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_mean_answers_well_and_its_entropy_finds_errors(trained, loader):
    plain, mc = hs.torch.collect(trained, loader), hs.torch.mc_dropout(trained, loader, passes=25)
    assert hs.accuracy(mc) > hs.accuracy(plain) - 0.02
    assert hs.auroc(hs.tally(hs.scores.predictive_entropy(mc), correct=mc.correct)) > 0.7


def test_the_backbone_runs_once_for_each_batch(trained, loader):
    model = copy.deepcopy(trained)
    conv = counting(model[0])
    hs.torch.mc_dropout(model, loader, passes=6)
    assert len(conv) == len(loader)


HEADS = {  # what follows the first dropout, and whether it can be run again alone
    "a row of layers": (lambda m, h: m.last(m.drop(h)), True),
    "a function between": (lambda m, h: m.last(torch.relu(m.drop(h))), False),
    "a function at the end": (lambda m, h: m.last(m.drop(h)) * 2, False),
    "changed in place at the end": (lambda m, h: m.last(m.drop(h)).mul_(2), False),
    "around the dropout": (lambda m, h: m.last(m.drop(h) + h), False),
    "dropout twice": (lambda m, h: m.last(m.drop(m.drop(h))), True),
    "random outside": (lambda m, h: m.last(m.drop(F.dropout(h, 0.5, training=True))), False),
    "random behind": (lambda m, h: m.last(m.drop(h)) + torch.rand(3), False),
}


@pytest.mark.parametrize("name", HEADS)
def test_running_the_rest_alone_is_only_done_where_it_is_exact(name):
    forward, alone = HEADS[name]
    model = Headed(forward)
    body = counting(model.body)
    hs.torch.mc_dropout(model, [(X, Y)], passes=4)
    assert len(body) == (1 if alone else 4)


@pytest.mark.parametrize("name", HEADS)
def test_both_ways_give_the_same(name, monkeypatch):
    model = Headed(HEADS[name][0])
    found = hs.torch.mc_dropout(model, [(X, Y)], passes=4).values
    monkeypatch.setattr("howsure.torch.sampling.build_tail", lambda *_: None)
    assert np.array_equal(hs.torch.mc_dropout(model, [(X, Y)], passes=4).values, found)


def test_dropout_in_place_is_not_applied_twice():
    plain = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    placed = copy.deepcopy(plain)
    placed[1].inplace = True
    a, b = (hs.torch.mc_dropout(m, [(X, Y)], passes=4).values for m in (plain, placed))
    assert np.array_equal(a, b)
    assert placed[1].inplace


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Dropout, (12,)),
        (nn.AlphaDropout, (12,)),
        (nn.Dropout1d, (4, 3)),
        (nn.Dropout2d, (4, 3, 1)),
        (nn.Dropout3d, (4, 3, 1, 1)),
        (nn.FeatureAlphaDropout, (4, 3)),
    ],
)
def test_every_kind_of_dropout(layer, shape):
    model = nn.Sequential(
        nn.Linear(4, 12), nn.Unflatten(1, shape), layer(0.5), nn.Flatten(), nn.Linear(12, 3)
    )
    assert hs.torch.mc_dropout(model, [(X, Y)], passes=4).values.std(axis=0).max() > 0


def test_a_transformer_drops_too():
    """In evaluation mode its fast path would leave all dropout layers out."""
    encoder = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True)
    model = nn.Sequential(nn.Unflatten(1, (1, 4)), encoder, nn.Flatten(), nn.Linear(4, 3))
    assert hs.torch.mc_dropout(model, [(X, Y)], passes=4).values.std(axis=0).max() > 0
    assert torch.backends.mha.get_fastpath_enabled()


def test_p_is_replaced_for_the_while():
    model = Headed(HEADS["a row of layers"][0], p=0.5)
    spread = [
        hs.torch.mc_dropout(model, [(X, Y)], passes=50, p=p).values.std(axis=0).mean()
        for p in (0.05, 0.5)
    ]
    assert spread[0] < spread[1]
    assert model.drop.p == 0.5
    own = hs.torch.mc_dropout(model, [(X, Y)], passes=50).values.std(axis=0).mean()
    assert own == spread[1]


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (nn.Linear(4, 3), {}, "Linear has no dropout layer, so all passes would be equal"),
        (
            Headed(lambda m, h: m.last(m.drop(h)), p=0.0),
            {},
            "all 25 passes are equal, so the dropout layers had no effect",
        ),
        (Headed(lambda m, h: m.last(h)), {}, "forward does not call them"),
        (
            Headed(lambda m, h: m.last(m.drop(h))),
            {"p": 1.0},
            "p is 1; a probability above 0 and below 1",
        ),
        (Headed(lambda m, h: m.last(m.drop(h))), {"passes": 0}, "passes is 0"),
        (Headed(lambda m, h: m.last(m.drop(h))), {"seed": -1}, "seed is -1"),
    ],
)
def test_bad_input(model, options, message):
    with pytest.raises(InputError) as e:
        hs.torch.mc_dropout(model, [(X, Y)], **options)
    assert message in str(e.value)


def test_large_samples_are_mapped_and_written(trained, loader, tmp_path):
    kept = hs.torch.mc_dropout(trained, loader, passes=3)
    mapped = hs.torch.mc_dropout(trained, loader, passes=3, memory=1000, path=tmp_path / "mc.npz")
    assert np.array_equal(mapped.values, kept.values)
    assert hs.uce(mapped) == hs.uce(kept)
    assert np.array_equal(hs.read(tmp_path / "mc.npz", mc=True).values, kept.values)
