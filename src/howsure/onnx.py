"""For ONNX: put a fitted calibrator into a classifier's graph, so that it is served calibrated.
Needs `onnx`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from howsure._core.checks import InputError, need
from howsure._core.file_access import replace_file
from howsure.calibrators.linear import list_operators

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

    from howsure.calibrators import Calibrator

__all__ = ["add_calibrator", "export_calibrated"]

PROBABILITY_OPERATORS = {"Softmax", "Sigmoid", "LogSoftmax"}


def add_calibrator(
    model: ModelProto,
    calibrator: Calibrator,
    *,
    logits: str | None = None,
    probabilities: str = "probs",
) -> ModelProto:
    """A copy of an ONNX model with a new output: the calibrated probabilities.

    `logits` names the output (n, k) that holds the logits; it may be left out where there is one
    output. Temperature, vector, matrix and structured scaling become a few standard operators in the precision
    of the logits. All old outputs stay. The calibrator must have been fitted on logits of the same
    model.
    """
    onnx = need("onnx", for_="onnx.add_calibrator", extra="onnx")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    model = copy
    source = _find_logits_output(model.graph, logits)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(source.type.tensor_type.elem_type)
    inside = {name for node in model.graph.node for name in (*node.input, *node.output)}
    names = inside | {value.name for value in (*model.graph.input, *model.graph.output)}
    names |= {value.name for value in model.graph.initializer}
    if probabilities in names:
        raise InputError(
            f"the name {probabilities!r} is taken in this model; pass another as probabilities=."
        )
    parts = list_operators(calibrator, "an ONNX graph")
    made: list[NodeProto] = []
    current = source.name
    for operator, values in parts:
        inputs = [current]
        if values is not None:
            constant = _make_name(f"howsure_{operator}_by", names)
            stored = onnx.numpy_helper.from_array(values.astype(dtype), constant)
            model.graph.initializer.append(stored)
            inputs.append(constant)
        result = _make_name(f"howsure_{operator}", names)
        made.append(onnx.helper.make_node(operator, inputs, [result]))
        current = result
    made.append(onnx.helper.make_node("Softmax", [current], [probabilities], axis=-1))
    model.graph.node.extend(made)
    output = onnx.helper.make_empty_tensor_value_info(probabilities)
    output.type.CopyFrom(source.type)
    model.graph.output.append(output)
    onnx.checker.check_model(model)
    return model


def export_calibrated(
    source: str | os.PathLike[str],
    calibrator: Calibrator,
    path: str | os.PathLike[str],
    *,
    logits: str | None = None,
) -> None:
    """Read an ONNX file, add the calibrator as `add_calibrator` does, and write the result to
    `path`.
    """
    onnx = need("onnx", for_="onnx.export_calibrated", extra="onnx")
    made = add_calibrator(onnx.load(os.fspath(source)), calibrator, logits=logits)
    with replace_file(path) as temporary:
        onnx.save(made, os.fspath(temporary))


def _find_logits_output(graph: GraphProto, logits: str | None) -> ValueInfoProto:
    """The output that is named, or the only one; it must hold floats that are no probabilities."""
    outputs = {output.name: output for output in graph.output}
    if logits is None and len(outputs) == 1:
        logits = next(iter(outputs))
    if logits not in outputs:
        found = f"there is no output {logits!r}" if logits else "the model has several outputs"
        raise InputError(
            f"{found}; name the one that holds logits: logits= one of {', '.join(outputs)}."
        )
    source = outputs[logits]
    made_by = {name: node.op_type for node in graph.node for name in node.output}
    if made_by.get(logits) in PROBABILITY_OPERATORS:
        raise InputError(
            f"the output {logits!r} comes from {made_by[logits]}; the logits before it are needed."
        )
    if source.type.tensor_type.elem_type not in (1, 10, 11):  # float, float16, double
        raise InputError(
            f"the output {logits!r} does not hold floats; name the output with the logits."
        )
    return source


def _make_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
