"""Calibrators inside an ONNX graph: ONNX Runtime gives what we give."""

from functools import partial

import numpy as np
import pytest

from howsure import InputError, Predictions
from howsure.calibrators import (
    Isotonic,
    MatrixScaling,
    StructuredScaling,
    Temperature,
    VectorScaling,
)
from howsure.onnx import add_calibrator, export_calibrated

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def classifier(dtype=np.float32, *, softmax=False):
    """x → x W, a linear classifier of 6 features and 4 classes."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    weight = np.random.default_rng(0).normal(size=(6, 4)).astype(dtype)
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["logits"])]
    outputs = [onnx.helper.make_tensor_value_info("logits", kind, ["n", 4])]
    if softmax:
        nodes.append(onnx.helper.make_node("Softmax", ["logits"], ["plain"], axis=-1))
        outputs.append(onnx.helper.make_tensor_value_info("plain", kind, ["n", 4]))
    graph = onnx.helper.make_graph(
        nodes,
        "classifier",
        [onnx.helper.make_tensor_value_info("x", kind, ["n", 6])],
        outputs,
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    ), weight


def run(model, x, name="probs"):
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run([name], {"x": x})[0]


def inputs(weight, dtype):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 6)).astype(dtype)
    z = x @ weight
    return x, Predictions.from_logits(z, (z + 2 * rng.normal(size=z.shape)).argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "fit",
    [
        Temperature.fit,
        partial(Temperature.fit, mixed=True),
        VectorScaling.fit,
        MatrixScaling.fit,
        StructuredScaling.fit,
        partial(StructuredScaling.fit, matrix="diagonal"),
    ],
)
def test_runtime_agrees(fit, dtype):
    model, weight = classifier(dtype)
    x, preds = inputs(weight, dtype)
    made = fit(preds)
    p = run(add_calibrator(model, made), x)
    assert p.dtype == dtype
    assert p == pytest.approx(made(preds).probs, abs=1e-6)


def test_old_outputs_and_the_old_model_stay(tmp_path):
    model, weight = classifier()
    before = model.SerializeToString()
    onnx.save(model, tmp_path / "plain.onnx")
    x, preds = inputs(weight, np.float32)
    export_calibrated(tmp_path / "plain.onnx", Temperature(2.0), tmp_path / "made.onnx")
    made = onnx.load(tmp_path / "made.onnx")
    assert model.SerializeToString() == before
    assert run(made, x, "logits") == pytest.approx(preds.values, abs=1e-5)


@pytest.mark.parametrize(
    ("softmax", "options", "message"),
    [
        (True, {}, "several outputs; name the one that holds logits"),
        (True, {"logits": "plain"}, "comes from Softmax; the logits before it are needed"),
        (False, {"logits": "z"}, "there is no output 'z'"),
        (False, {"probabilities": "w"}, "the name 'w' is taken"),
    ],
)
def test_outputs_that_cannot_be(softmax, options, message):
    with pytest.raises(InputError, match=message):
        add_calibrator(classifier(softmax=softmax)[0], Temperature(2.0), **options)


def test_other_calibrators_are_refused():
    model, weight = classifier()
    _, preds = inputs(weight, np.float32)
    with pytest.raises(InputError, match="Isotonic cannot be put into an ONNX graph"):
        add_calibrator(model, Isotonic.fit(preds))
