"""The steps of an exported policy as an ONNX graph, in double precision. Needs `onnx`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from howsure._core.checks import Array, need
from howsure.serving.export_steps import Pieces, Step
from howsure.serving.exports import Export, list_evidence

if TYPE_CHECKING:
    from onnx import ModelProto

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.And: "And", ast.Or: "Or",
    ast.Lt: "Less", ast.LtE: "LessOrEqual", ast.Gt: "Greater", ast.GtE: "GreaterOrEqual",
    ast.Eq: "Equal",
}  # fmt: skip
OPSET, ML_OPSET = 17, 3


class GraphWriter:
    """Writes nodes; every value has a row for each sample, and a column for each class or one."""

    def __init__(self, export: Export) -> None:
        self.export = export
        self.onnx: Any = need("onnx", for_="export --to onnx", extra="onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.names: dict[str, str] = {}  # of the steps so far
        self.made = 0

    def constant(self, values: Array | float | int) -> str:
        """A stored array."""
        self.made += 1
        name = f"constant_{self.made}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: object) -> str:
        """The name of what an operator makes."""
        self.made += 1
        name = f"{operator}_{self.made}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def write(self, node: ast.expr) -> str:
        """The nodes of a formula, and the name of the last one."""
        match node:
            case ast.Name(id="inf"):
                return self.constant(np.inf)
            case ast.Name(id="i"):
                return self.constant(np.arange(self.export.size)[None])
            case ast.Name():
                return self.names[node.id]
            case ast.Constant(value=(int() | float()) as value):
                return self.constant(np.float64(value) if isinstance(value, float) else value)
            case ast.UnaryOp():
                return self.node("Neg", self.write(node.operand))
            case ast.BinOp():
                return self.node(
                    OPERATORS[type(node.op)], self.write(node.left), self.write(node.right)
                )
            case ast.Compare():
                left, right = self.write(node.left), self.write(node.comparators[0])
                return self.node(OPERATORS[type(node.ops[0])], left, right)
            case ast.BoolOp():
                made, *others = [self.write(value) for value in node.values]
                for other in others:
                    made = self.node(OPERATORS[type(node.op)], made, other)
                return made
            case ast.IfExp():
                parts = [self.write(part) for part in (node.test, node.body, node.orelse)]
                return self.node("Where", *parts)
            case ast.Call(func=ast.Name(id=str(function))):
                return self.node(function.capitalize(), self.write(node.args[0]))
            case _:
                raise AssertionError(ast.dump(node))

    def add_step(self, step: Step) -> None:
        """The nodes of a step."""
        value = self.write(ast.parse(step.formula, mode="eval").body)
        match step.way:
            case "sum":
                value = self.node("ReduceSum", value, self.constant(np.array([1])), keepdims=1)
            case "max":
                value = self.node("ReduceMax", value, axes=[1], keepdims=1)
            case "argmax":
                most = self.node("ReduceMax", value, axes=[1], keepdims=1)
                self.names[f"{step.name}_most"] = most
                value = self.node("ArgMax", value, axis=1, keepdims=1)
            case "product":
                matrix = self.export.program.matrix
                assert matrix is not None
                value = self.node("MatMul", value, self.constant(np.ascontiguousarray(matrix.T)))
            case "look_up":
                value = self._look_up(value)
            case _:
                pass
        self.names[step.name] = value

    def _look_up(self, value: str) -> str:
        """The piece of each probability: as many starts as are not above it."""
        pieces = self.export.program.pieces
        k, most = len(pieces), max(len(piece.y) for piece in pieces)
        start = np.full((k, most), np.inf)
        for i, piece in enumerate(pieces):
            start[i, : len(piece.start)] = piece.start
        p = self.node("Unsqueeze", value, self.constant(np.array([2])))
        below = self.node("Cast", self.node("LessOrEqual", self.constant(start[None]), p), to=7)
        place = self.node("ReduceSum", below, self.constant(np.array([2])), keepdims=0)
        place = self.node("Add", place, self.constant((np.arange(k) * most)[None]))
        found: dict[str, str] = {}
        for name in Pieces._fields[1:]:
            table = np.zeros((k, most))
            for i, piece in enumerate(pieces):
                row: list[float] = getattr(piece, name)
                table[i, : len(row)] = row
            found[name] = self.node("Gather", self.constant(table.ravel()), place, axis=0)
        moved = self.node("Mul", found["slope"], self.node("Sub", value, found["x"]))
        return self.node("Add", moved, found["y"])


def write_onnx(export: Export) -> ModelProto:
    """A graph from `values` (samples, classes) and, where there are segments, `segment` (samples) to
    `accept`, `answer`, `score`, `threshold` and `known`, of which each has a number per sample.
    """
    writer = GraphWriter(export)
    helper, types = writer.onnx.helper, writer.onnx.TensorProto
    real = {"double": types.DOUBLE, "float": types.FLOAT}[export.precision]
    inputs = [helper.make_tensor_value_info("values", real, ["n", export.size])]
    writer.names = {"v": writer.node("Cast", "values", to=types.DOUBLE)}
    for name, values in export.program.vectors.items():
        writer.names[name] = writer.constant(values[None])
    for step in export.program.steps:
        writer.add_step(step)
    thresholds, count = np.array(export.thresholds), len(export.policy.keys)
    zero = writer.node("Mul", writer.names["valid"], writer.constant(0.0))
    place = writer.node("Cast", zero, to=types.INT64)
    if count:
        inputs.append(helper.make_tensor_value_info("segment", types.STRING, ["n"]))
        place = "segment_place"
        encoder = helper.make_node(
            "LabelEncoder", ["segment"], [place], domain="ai.onnx.ml",
            keys_strings=list(export.policy.keys), values_int64s=list(range(count)), default_int64=count,
        )  # fmt: skip
        writer.nodes.append(encoder)
    flat = writer.constant(np.array([-1]))
    place = writer.node("Reshape", place, flat)
    score = writer.node("Reshape", writer.names["score"], flat)
    valid = writer.node("Reshape", writer.names["valid"], flat)
    threshold = writer.node("Gather", writer.constant(thresholds), place)
    accept = writer.node("GreaterOrEqual", score, threshold)
    for check in (
        writer.node("Equal", valid, writer.constant(1.0)),
        writer.node("Less", threshold, writer.constant(np.inf)),
    ):
        accept = writer.node("And", accept, check)
    answer = writer.node("Sub", place, writer.node("Add", place, writer.constant(1)))
    if export.size > 1:
        answer = writer.node("Reshape", writer.names["top"], flat)
    outputs = {
        "accept": (accept, types.BOOL),
        "answer": (answer, types.INT64),
        "score": (score, types.DOUBLE),
        "threshold": (threshold, types.DOUBLE),
        "known": (writer.node("Less", place, writer.constant(max(count, 1))), types.BOOL),
    }
    for name, (source, _) in outputs.items():
        writer.nodes.append(helper.make_node("Identity", [source], [name]))
    listed = [
        helper.make_tensor_value_info(name, kind, ["n"]) for name, (_, kind) in outputs.items()
    ]
    graph = helper.make_graph(writer.nodes, "howsure", inputs, listed, writer.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="howsure")
    model.ir_version = 8  # of this opset: older runtimes refuse newer ones
    model.doc_string = "\n".join(list_evidence(export))
    writer.onnx.checker.check_model(model)
    return model
