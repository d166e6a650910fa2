"""Networks with their calibrator inside: equal to the calibrator outside, in torch, torch.export
and ONNX Runtime.
"""

import copy
import warnings

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.calibrators import (
    Identity,
    Isotonic,
    MatrixScaling,
    StructuredScaling,
    Temperature,
    VectorScaling,
)

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

FITS = {
    "temperature": Temperature.fit,
    "vector": lambda preds: VectorScaling.fit(preds, l2=0.01),
    "matrix": lambda preds: MatrixScaling.fit(preds, l2=0.01),
    "mixed": lambda preds: Temperature.fit(preds, mixed=True),
    "structured": StructuredScaling.fit,
    "diagonal": lambda preds: StructuredScaling.fit(preds, matrix="diagonal"),
    "none": Identity.fit,
}


@pytest.fixture(scope="module")
def val(trained, data):
    return hs.torch.collect(trained, DataLoader(data["val"], 200))


@pytest.fixture(scope="module")
def x(data):
    return data["test"].tensors[0][:50]


@pytest.fixture(scope="module")
def second(digits, data):
    return digits.fit(digits.build(1), data["train"], epochs=4).eval()


class Stacked(nn.Module):
    """Two networks as one that returns (s, n, k)."""

    def __init__(self, *models):
        super().__init__()
        self.models = nn.ModuleList(models)

    def forward(self, x):
        return torch.stack([model(x) for model in self.models])


def ready(*args, **options):
    return hs.torch.CalibratedModule(*args, **options).eval()


def answer(module, x):
    with torch.no_grad():
        return module(x).numpy()


@pytest.mark.parametrize("name", FITS)
def test_inside_is_outside(name, trained, val, x, tmp_path):
    hs.save(FITS[name](val), tmp_path / "c.json")
    saved = hs.load(tmp_path / "c.json")
    outside = saved(hs.torch.collect(trained, [x], labels=False)).probs
    assert answer(ready(trained, saved), x) == pytest.approx(outside, abs=1e-5)


@pytest.mark.parametrize("name", FITS)
def test_several_answers(name, trained, second, data, x):
    """A temperature acts inside the average, the others on its log: as on Predictions."""
    calibrator = FITS[name](hs.torch.ensemble([trained, second], DataLoader(data["val"], 200)))
    outside = calibrator(hs.torch.ensemble([trained, second], [x], labels=False)).probs
    assert answer(ready([trained, second], calibrator), x) == pytest.approx(outside, abs=1e-5)
    assert answer(ready(Stacked(trained, second), calibrator), x) == pytest.approx(
        outside, abs=1e-5
    )


def test_probabilities_in(trained, val, x):
    model = nn.Sequential(trained, nn.Softmax(1))
    t = Temperature(2.0)
    outside = t(hs.torch.collect(model, [x], labels=False, outputs="probs")).probs
    assert answer(ready(model, t, outputs="probs"), x) == pytest.approx(outside, abs=1e-5)


def test_binary_and_parts():
    model = nn.Sequential(nn.Linear(3, 1))
    x = torch.randn(5, 3)
    z = model(x).detach().numpy()[:, 0]
    assert answer(ready(model, Temperature(2.0)), x)[:, 1] == pytest.approx(
        1 / (1 + np.exp(-z / 2)), abs=1e-6
    )

    class Named(nn.Module):
        def forward(self, *, a):
            return {"logits": a, "rest": 0}

    named = hs.torch.CalibratedModule(Named(), Temperature(2.0), output="logits")
    assert named(a=torch.tensor([[2.0, 0.0]])).numpy() == pytest.approx(
        np.array([[0.7310586, 0.2689414]])
    )


def test_constants_are_part_of_the_module(trained, val):
    made = ready(copy.deepcopy(trained), VectorScaling.fit(val, l2=0.01)).double()
    assert made.state_dict()["constant_0"].dtype == torch.float64
    other = ready(copy.deepcopy(trained), VectorScaling(np.ones(10), np.zeros(10))).double()
    other.load_state_dict(made.state_dict())
    x = torch.rand(3, 1, 8, 8, dtype=torch.float64)
    assert np.array_equal(answer(other, x), answer(made, x))


def masked(trained, x, passes=30, **options):
    return ready(trained, Temperature(1.5), passes=passes, example=x[:2], **options)


def test_masks_average_like_mc_dropout(trained, data, x):
    """The same distribution for each sample, so many passes agree up to chance; sharing masks is no
    bias.
    """
    inside = answer(masked(trained, x, passes=400), x)
    outside = Temperature(1.5)(hs.torch.mc_dropout(trained, [x], passes=400, labels=False)).probs
    assert np.abs(inside - outside).mean() < 0.01
    plain = answer(ready(trained, Temperature(1.5)), x)
    assert np.abs(inside - plain).mean() > 0.03


def test_masks_are_a_function_of_the_seed(trained, x):
    one, same, other = (answer(masked(trained, x, seed=seed), x) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_model_itself_is_left_alone(trained, x):
    before = answer(trained, x)
    made = masked(trained, x)
    assert np.array_equal(answer(trained, x), before)
    assert isinstance(trained[7], nn.Dropout)
    assert made.models[0][0].weight is trained[0].weight  # no second copy of the weights


def test_a_layer_that_is_used_twice_has_two_masks():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(x)[:, :2] - self.drop(x)[:, :2]

    out = answer(ready(Twice(), Identity(), passes=50, example=torch.ones(1, 4)), torch.ones(1, 4))
    assert 0 < np.abs(out - 0.5).max() < 0.5  # one mask for both calls would cancel to exactly 1/2


@pytest.mark.parametrize("layer", [nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_masks_of_every_kind_have_the_mean_of_their_layer(layer):
    x = torch.linspace(-1, 1, 6).reshape(1, 3, 2)
    model = nn.Sequential(layer(0.3))
    (first,) = ready(model, Identity(), passes=2, example=x).models
    model.train()
    torch.manual_seed(0)
    real = torch.stack([model(x) for _ in range(4000)]).mean(0)
    scale, shift = ready(model, Identity(), passes=4000, example=x).models[0].buffers()
    assert (x * scale + shift).mean(0).numpy() == pytest.approx(real[0].numpy(), abs=0.1)
    assert first(x).shape == x.shape


CASES = ["temperature", "vector", "matrix", "structured", "mixed", "ensemble", "mc"]


def case(name, trained, second, val, x):
    if name == "ensemble":
        return ready([trained, second], Temperature(1.7))
    return masked(trained, x, passes=5) if name == "mc" else ready(trained, FITS[name](val))


SIZES = {"inputs": ({0: torch.export.Dim.DYNAMIC},)}


@pytest.mark.parametrize("name", CASES)
def test_torch_export_agrees(name, trained, second, val, x):
    made = case(name, trained, second, val, x)
    exported = torch.export.export(made, (x[:3],), dynamic_shapes=SIZES).module()
    assert answer(exported, x) == pytest.approx(answer(made, x), abs=1e-6)


@pytest.mark.parametrize("name", ["temperature", "vector", "matrix", "structured", "mc"])
def test_onnx_runtime_agrees(name, trained, second, val, x, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    made = case(name, trained, second, val, x)
    path = tmp_path / "net.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter itself
        torch.onnx.export(
            made,
            (x[:3],),
            path,
            dynamic_shapes=SIZES,
            input_names=["x"],
            output_names=["probs"],
            verbose=False,
        )
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (found,) = session.run(["probs"], {"x": x.numpy()})
    assert np.abs(found - answer(made, x)).max() < 1e-5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda m, v: ready(m, Isotonic.fit(v)),
            "Isotonic cannot be put into a network; Temperature",
        ),
        (
            lambda m, v: ready(m, Temperature(2.0), passes=5),
            "passes needs example=, one batch of inputs",
        ),
        (lambda m, v: ready(m, Temperature(2.0), passes=0), "passes is 0"),
        (
            lambda m, v: ready(
                m, Temperature(2.0), passes=2, seed=-1, example=torch.ones(1, 1, 8, 8)
            ),
            "seed is -1",
        ),
        (lambda m, v: ready(m, Temperature(2.0), outputs="p"), "outputs is 'p'"),
        (
            lambda m, v: ready(nn.Linear(2, 3), Temperature.fit(v))(torch.ones(1, 2)),
            "3 classes; the calibrator was fitted for 10",
        ),
        (
            lambda m, v: ready(
                nn.Linear(2, 3), Temperature(2.0), passes=5, example=torch.ones(1, 2)
            ),
            "Linear has no dropout layer",
        ),
    ],
)
def test_bad_input(make, message, trained, val):
    with pytest.raises(InputError) as e:
        make(trained, val)
    assert message in str(e.value)


def test_masks_of_a_layer_that_is_not_called():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout()

        def forward(self, x):
            return x

    with pytest.raises(InputError, match="1 of 1 dropout layers were not called"):
        ready(Idle(), Temperature(2.0), passes=5, example=torch.ones(1, 2))
