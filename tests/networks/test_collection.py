"""collect: what it gives, what it leaves alone, and what it says about bad input."""

import copy
import io
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure import InputError

torch = pytest.importorskip("torch")

X, Y = (
    torch.randn(6, 4, generator=torch.Generator().manual_seed(0)),
    torch.tensor([0, 1, 2, 0, 1, 2]),
)


def linear(**options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return torch.nn.Linear(4, 3, **options)


class Returning(torch.nn.Module):
    """A model that returns whatever a function makes of its logits."""

    def __init__(self, change):
        super().__init__()
        self.last, self.change = linear(), change

    def forward(self, x):
        return self.change(self.last(x))


def test_all_batches_in_order(trained, data, loader):
    preds = hs.torch.collect(trained, loader)
    x, y = data["test"].tensors
    with torch.no_grad():
        assert preds.values == pytest.approx(trained(x).numpy(), abs=1e-5)
    assert np.array_equal(preds.labels, y.numpy())
    assert hs.accuracy(preds) > 0.9


def test_each_submodule_keeps_its_mode(trained, loader):
    model = copy.deepcopy(trained).train()
    model[1].eval()
    before = [m.training for m in model.modules()]
    running = model[1].running_mean.clone()
    hs.torch.collect(model, loader)
    assert [m.training for m in model.modules()] == before
    assert torch.equal(model[1].running_mean, running)


def test_modes_come_back_after_an_error():
    model = torch.nn.Sequential(linear(), torch.nn.Softmax(1)).train()
    with pytest.raises(InputError):
        hs.torch.collect(model, [(X, Y)])
    assert model.training


def test_the_random_state_is_untouched(trained, data):
    shuffled = torch.utils.data.DataLoader(data["test"], batch_size=100, shuffle=True)
    before = torch.get_rng_state()
    hs.torch.collect(trained, shuffled)
    assert torch.equal(torch.get_rng_state(), before)


def test_inputs_go_to_the_device_of_the_parameters():
    with pytest.raises(
        (NotImplementedError, RuntimeError)
    ):  # values on the meta device cannot be read
        hs.torch.collect(linear(device="meta"), [(X, Y)])
    seen = []
    model = linear(device="meta")
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0].device.type))
    with pytest.raises((NotImplementedError, RuntimeError)):
        hs.torch.collect(model, [(X, Y)])
    with pytest.raises((NotImplementedError, RuntimeError)):
        hs.torch.collect(model, [(X, Y)], device="cpu")
    assert seen == ["meta", "cpu"]


def test_ids_from_tuples_and_dicts():
    z = hs.torch.collect(linear(), [(X, Y, list("abcdef"))])
    assert z.ids.tolist() == list("abcdef")
    named = hs.torch.collect(linear(), [{"input": X, "labels": Y, "ids": torch.arange(6)}])
    assert named.ids.tolist() == list(range(6))
    assert np.array_equal(named.values, z.values)


def test_several_inputs_go_by_position():
    class Two(torch.nn.Module):
        def forward(self, a, b):
            return a - b

    preds = hs.torch.collect(Two(), [((X, torch.ones_like(X)), Y)])
    assert preds.values == pytest.approx((X - 1).numpy())


def test_probabilities_when_they_are_stated():
    model = torch.nn.Sequential(linear(), torch.nn.Softmax(1))
    preds = hs.torch.collect(model, [(X, Y)], outputs="probs")
    assert preds.kind == "probs"
    assert preds.probs == pytest.approx(hs.torch.collect(linear(), [(X, Y)]).probs, abs=1e-6)


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_binary_models_may_give_one_column(shape):
    model = Returning(lambda z: z[:, 0].reshape(shape))
    preds = hs.torch.collect(model, [(X, Y % 2)])
    assert preds.values[:, 0].tolist() == [0] * 6
    assert preds.k == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_widens(dtype):
    assert hs.torch.collect(linear().to(dtype), [(X.to(dtype), Y)]).values.dtype == np.float32


@pytest.mark.parametrize("output", ["logits", lambda raw: raw["logits"]])
def test_a_part_of_a_dict(output):
    model = Returning(lambda z: {"hidden": z * 0, "logits": z})
    assert np.array_equal(
        hs.torch.collect(model, [(X, Y)], output=output).values,
        hs.torch.collect(linear(), [(X, Y)]).values,
    )


def test_a_part_of_a_tuple():
    model = Returning(lambda z: (z * 0, z))
    assert np.array_equal(
        hs.torch.collect(model, [(X, Y)], output=1).values,
        hs.torch.collect(linear(), [(X, Y)]).values,
    )


def test_large_answers_go_to_a_file_and_stay_the_same(trained, loader, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = hs.torch.collect(trained, loader)
    mapped = hs.torch.collect(trained, loader, memory=1000)
    assert np.array_equal(mapped.values, kept.values)
    assert not mapped.values.flags.writeable
    assert kept.values.flags.writeable
    assert hs.nll(mapped) == hs.nll(kept)
    assert list(tmp_path.iterdir()) == []  # the file has no name


@pytest.mark.parametrize("name", ["test.npz", "test.npy", "test.csv"])
def test_predictions_are_written_whole(trained, loader, tmp_path, name):
    preds = hs.torch.collect(trained, loader, path=tmp_path / name, memory=1000)
    again = hs.read(tmp_path / name)
    assert np.array_equal(again.values, preds.values)
    assert np.array_equal(again.labels, preds.labels)


def test_a_path_that_cannot_be_is_refused_before_the_run(tmp_path):
    def never():
        raise AssertionError("the loader was run")
        yield

    with pytest.raises(InputError, match="does not exist; make it first"):
        hs.torch.collect(linear(), never(), path=tmp_path / "no" / "a.npz")
    with pytest.raises(InputError, match="unknown suffix"):
        hs.torch.collect(linear(), never(), path=tmp_path / "a.foo")


def test_nothing_is_written_when_a_batch_fails(tmp_path):
    with pytest.raises(InputError):
        hs.torch.collect(linear(), [(X, Y), (X, Y + 5)], path=tmp_path / "a.npz", memory=1)
    assert list(tmp_path.iterdir()) == []


def test_labels_may_be_left_out_when_that_is_said():
    assert repr(hs.torch.collect(linear(), [X], labels=False)).endswith("no labels>")
    assert repr(hs.torch.collect(linear(), [[X]], labels=False)).endswith("no labels>")


@pytest.mark.parametrize("labels", [Y.float(), torch.eye(3)[Y].long()], ids=["float", "one-hot"])
def test_labels_of_other_kinds(labels):
    assert hs.torch.collect(linear(), [(X, labels)]).labels.tolist() == Y.tolist()


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (X, "batch 0 of the loader has inputs but no labels"),
        ([X], "but no labels; give (inputs, labels)"),
        ({"input": X}, "has inputs with the keys 'input' but no labels"),
        ({"labels": Y}, "the keys 'labels'; there is no input in it"),
        ((X, Y, Y, Y), "a tuple of 4"),
        ("text", "gives a str"),
        (
            (X, Y + 1),
            "batch 0 of the loader: labels[2] is 3; with 3 classes labels run from 0 to 2",
        ),
        ((X, Y - 1), "labels[0] is -1"),
        ((X, Y + 0.5), "whole class numbers"),
        ((X, Y[:4]), "labels has 4 rows, logits has 6"),
        ((X, torch.ones(6, 3).long()), "labels"),
        ((X * torch.nan, Y), "logits has 18 nan (first: row 0)"),
        ((X, Y, ["a"]), "ids has 1 rows"),
    ],
)
def test_bad_batches(batch, message):
    with pytest.raises(InputError) as e:
        hs.torch.collect(linear(), [batch])
    assert message in str(e.value)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            lambda z: (z, z),
            {},
            "returned a tuple of 2 (Tensor, Tensor); one tensor (n, k) is needed. Say which part",
        ),
        (
            lambda z: {"h": z, "logits": z},
            {},
            "a dict with the keys 'h', 'logits'; one tensor (n, k) is needed",
        ),
        (lambda z: {"h": z, "logits": z}, {}, "e.g. output='logits'"),
        (lambda z: {"h": z}, {"output": "logits"}, "there is no part 'logits' in it"),
        (lambda z: (z,), {"output": 3}, "there is no part 3 in it"),
        (lambda z: None, {}, "returned a NoneType"),
        (lambda z: z.softmax(1), {}, "all 6 rows of a batch are non-negative and sum to 1"),
        (
            lambda z: z,
            {"outputs": "probs"},
            "probabilities are not negative and sum to 1. Pass outputs='logits'",
        ),
        (lambda z: z, {"outputs": "logit"}, "outputs is 'logit'; say 'logits' or 'probs'"),
        (lambda z: z[:, :, None], {}, "returned shape (6, 3, 1)"),
        (lambda z: z.argmax(1), {}, "returned torch.int64; floats are needed"),
    ],
)
def test_models_that_return_something_else(change, options, message):
    with pytest.raises(InputError) as e:
        hs.torch.collect(Returning(change), [(X, Y)], **options)
    assert message in str(e.value)


def test_batches_must_agree():
    class Growing(torch.nn.Module):
        def forward(self, x):
            return torch.zeros(len(x), len(x))

    with pytest.raises(InputError, match="a batch gives 4 classes of float32, those before gave 6"):
        hs.torch.collect(Growing(), [(X, Y), (X[:4], Y[:4])])


def test_an_empty_loader():
    with pytest.raises(InputError, match="the loader gave no batch"):
        hs.torch.collect(linear(), [])


def test_not_a_module():
    with pytest.raises(InputError, match=r"model is a function; a torch\.nn\.Module is needed"):
        hs.torch.collect(lambda x: x, [(X, Y)])


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("patience", "terminal", "shown"), [(0.0, True, True), (60.0, True, False), (0.0, False, False)]
)
def test_a_bar_where_somebody_watches(monkeypatch, patience, terminal, shown):
    out = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr("howsure.torch.collection.BAR_DELAY_SECONDS", patience)
    assert hs.torch.collect(linear(), [(X, Y)] * 5).n == 30
    assert ("predicting" in out.getvalue()) == shown
    hs.torch.collect(linear(), [(X, Y)] * 5, progress=False)
    assert out.getvalue().count("predicting") == 0 or shown


def test_packed_sequences_go_as_they_are():
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.last = torch.nn.GRU(4, 5, batch_first=True), torch.nn.Linear(5, 3)

        def forward(self, sequence):
            return self.last(self.cell(sequence)[1][0])

    texts = torch.nn.utils.rnn.pack_sequence([X[:3], X[:2]])
    assert hs.torch.collect(Recurrent(), [(texts, Y[:2])]).n == 2


def test_a_model_that_keeps_what_it_computed_can_still_be_trained():
    class Keeping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.kept = linear(), None

        def forward(self, x):
            self.kept = torch.ones(4) * 2 if self.kept is None else self.kept
            return self.last(x * self.kept)

    model = Keeping()
    hs.torch.collect(model, [(X, Y)])
    model(X.requires_grad_()).sum().backward()
    X.requires_grad_(False).grad = None


@pytest.mark.parametrize("name", hs.torch.__all__)
def test_every_name_has_an_example_and_a_place_in_the_docs(name):
    page = Path(__file__).parents[2] / "docs/networks.md"
    assert ">>> " in (getattr(hs.torch, name).__doc__ or "")
    assert f"`{name}" in page.read_text()
